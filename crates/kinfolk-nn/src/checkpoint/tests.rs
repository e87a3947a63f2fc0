//! Checkpoints written byte by byte, valid ones as `torch.save` writes them and invalid ones.

use super::*;
use crate::tensors::{Tensor, tensors};
use crate::testing;
use std::io::Write;
use zip::write::SimpleFileOptions;

/// Writes pickles, protocol 2.
#[derive(Default)]
struct Pickler(Vec<u8>);

impl Pickler {
    fn new() -> Self {
        Pickler(b"\x80\x02".to_vec())
    }
    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
    fn text(self, text: &str) -> Self {
        let length = (text.len() as u32).to_le_bytes();
        self.raw(b"X").raw(&length).raw(text.as_bytes())
    }
    fn int(self, value: usize) -> Self {
        self.raw(b"J").raw(&(value as i32).to_le_bytes())
    }
    fn tuple(self, values: &[usize]) -> Self {
        values.iter().fold(self.raw(b"("), |pickler, &value| pickler.int(value)).raw(b"t")
    }
    /// A tensor of float32 in storage `key`.
    fn tensor(self, key: &str, kind: &str, length: usize, view: &View<'_>, legacy: bool) -> Self {
        let storage = format!("ctorch\n{kind}Storage\n");
        self.raw(b"ctorch._utils\n_rebuild_tensor_v2\n((")
            .text("storage")
            .raw(storage.as_bytes())
            .text(key)
            .text("cpu")
            .int(length)
            .raw(if legacy { b"NtQ" } else { b"tQ" })
            .int(view.offset)
            .tuple(view.shape)
            .tuple(view.strides)
            .raw(b"\x89ccollections\nOrderedDict\n)RtR")
    }
    fn end(self) -> Vec<u8> {
        self.raw(b".").0
    }
}

struct View<'a> {
    offset: usize,
    shape: &'a [usize],
    strides: &'a [usize],
}

fn strides(shape: &[usize]) -> Vec<usize> {
    (0..shape.len()).map(|d| shape[d + 1..].iter().product()).collect()
}

/// The state_dict of `all`, storages numbered in order, keys with `prefix` before them.
fn state_dict(pickler: Pickler, all: &Tensors, prefix: &str, legacy: bool) -> Pickler {
    let start = pickler.raw(b"ccollections\nOrderedDict\n)R(");
    let fill = |pickler: Pickler, (s, (name, tensor)): (usize, (&String, &Tensor))| {
        let strides = strides(&tensor.shape);
        let view = View { offset: 0, shape: &tensor.shape, strides: &strides };
        let key = format!("{prefix}{name}");
        pickler.text(&key).tensor(&s.to_string(), "Float", tensor.data.len(), &view, legacy)
    };
    all.iter().enumerate().fold(start, fill).raw(b"u")
}

fn bytes_of(data: &[f32]) -> Vec<u8> {
    data.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn archive(pickle: &[u8], storages: &[Vec<u8>]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut member = |name: &str, content: &[u8]| {
        zip.start_file(format!("net/{name}"), stored).unwrap();
        zip.write_all(content).unwrap();
    };
    member("data.pkl", pickle);
    member("byteorder", b"little");
    for (s, storage) in storages.iter().enumerate() {
        member(&format!("data/{s}"), storage);
    }
    zip.finish().unwrap().into_inner()
}

fn zip_of(all: &Tensors) -> Vec<u8> {
    let storages: Vec<_> = all.values().map(|tensor| bytes_of(&tensor.data)).collect();
    // What torch.save adds to a state_dict: its version, as the state of the object.
    let pickle = state_dict(Pickler::new(), all, "", false).raw(b"}").text("_metadata").raw(b"}sb").end();
    archive(&pickle, &storages)
}

/// The older format, wrapped as the published checkpoints are.
fn legacy_of(all: &Tensors) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend(Pickler::new().int(1001).end());
    file.extend(Pickler::new().raw(b"}").text("little_endian").raw(b"\x88s").end());
    let pickle = Pickler::new().raw(b"}(").text("meta").raw(b"}").text("epoch").int(3).raw(b"s");
    let pickle = state_dict(pickle.text("state_dict"), all, "module.", true);
    let pickle = pickle.text("optimizer").raw(b"}").text("lr").raw(b"G\x3f\xf0\0\0\0\0\0\0s");
    file.extend(pickle.raw(b"u").end());
    let keys = (0..all.len()).rev().fold(Pickler::new().raw(b"]("), |p, s| p.text(&s.to_string()));
    file.extend(keys.raw(b"e").end());
    for tensor in all.values().rev() {
        file.extend((tensor.data.len() as u64).to_le_bytes());
        file.extend(bytes_of(&tensor.data));
    }
    file
}

fn message(bytes: &[u8]) -> String {
    parse_checkpoint(bytes, "c").unwrap_err().to_string()
}

/// What is said of a checkpoint whose pickle this is.
fn pickled(pickle: Pickler) -> String {
    message(&archive(&pickle.end(), &[vec![0; 24]]))
}

#[test]
fn both_formats_give_the_network_back() {
    for outputs in [1, 2] {
        let network = testing::network(7, 3, &[4, 2], outputs);
        let all = tensors(&network);
        assert_eq!(parse_checkpoint(&zip_of(&all), "c").unwrap(), network);
        assert_eq!(parse_checkpoint(&legacy_of(&all), "c").unwrap(), network);
    }
}

#[test]
fn a_file_cut_short_anywhere_is_an_error() {
    let all = tensors(&testing::network(7, 1, &[1], 1));
    for whole in [zip_of(&all), legacy_of(&all)] {
        parse_checkpoint(&whole, "c").unwrap();
        for length in 0..whole.len() {
            assert!(parse_checkpoint(&whole[..length], "c").is_err(), "{length} of {} bytes", whole.len());
        }
    }
}

#[test]
fn damaged_bytes_never_panic() {
    let whole = legacy_of(&tensors(&testing::network(7, 1, &[1], 1)));
    for at in 0..whole.len() {
        for value in [0, b'.', b'(', b'R', b'Q', b'u', 0x86, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = value;
            let _ = parse_checkpoint(&damaged, "c");
        }
    }
}

#[test]
fn calls_are_refused_and_named() {
    let call = Pickler::new().raw(b"cposix\nsystem\n(").text("true").raw(b"tR");
    let expected = "c: expected only tensors, dicts, lists and numbers, found a call of posix.system";
    assert_eq!(pickled(call), expected);
    let stacked = Pickler::new().text("posix").text("system").raw(b"\x93(").text("true").raw(b"tR");
    assert_eq!(pickled(stacked), expected);
    let nested = Pickler::new().raw(b"c__builtin__\neval\n");
    assert!(pickled(nested).ends_with("a call of __builtin__.eval"));
}

#[test]
fn unknown_opcodes_are_refused_and_placed() {
    let instance = Pickler::new().raw(b"(iposix\nsystem\n");
    assert_eq!(
        pickled(instance),
        "c: expected a pickle of tensors, found opcode 0x69 at byte 3 of the pickle"
    );
}

#[test]
fn pickles_that_make_no_sense_are_refused() {
    let cases: [&[u8]; 16] = [
        b"", b"t", b"u", b"e", b"R", b"Q", b"b", b"a", b"s", b"0", b"2", b"h\x05", b"\x86", b"(.", b"q\x01",
        b"}(Nu",
    ];
    for case in cases {
        assert!(!pickled(Pickler::new().raw(case)).is_empty(), "{case:?}");
    }
    // A container inside itself, and one doubled again and again.
    assert!(pickled(Pickler::new().raw(b"]q\0h\0a")).contains("a state_dict"));
    let doubled = (0..200).fold(Pickler::new().raw(b"]q\0"), |p, _| p.raw(b"h\0h\0\x86q\0"));
    assert!(pickled(doubled).contains("a state_dict"));
    let endless = Pickler::new().raw(&vec![b'('; 1 << 21]);
    assert!(pickled(endless).contains("at most 1048576 steps"));
}

/// The network's `conv1.weight` shown by a view of 6 elements.
fn viewed(kind: &str, view: View, storage: Vec<u8>) -> Result<GraphNetwork> {
    let mut all = tensors(&testing::network(7, 1, &[3], 1));
    let length = 6;
    all.remove("conv1.weight");
    let mut storages = vec![storage];
    let mut pickler = Pickler::new().raw(b"ccollections\nOrderedDict\n)R(").text("conv1.weight");
    pickler = pickler.tensor("0", kind, length, &view, false);
    for (name, tensor) in &all {
        let strides = strides(&tensor.shape);
        let view = View { offset: 0, shape: &tensor.shape, strides: &strides };
        let key = storages.len().to_string();
        pickler = pickler.text(name).tensor(&key, "Float", tensor.data.len(), &view, false);
        storages.push(bytes_of(&tensor.data));
    }
    parse_checkpoint(&archive(&pickler.raw(b"u").end(), &storages), "c")
}

#[test]
fn strides_are_followed() {
    let storage = || bytes_of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let transposed = View { offset: 0, shape: &[2, 3], strides: &[1, 2] };
    let network = viewed("Float", transposed, storage()).unwrap();
    assert_eq!(network.convolutions[0].weight, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
    let outside = View { offset: 1, shape: &[2, 3], strides: &[1, 2] };
    assert_eq!(
        viewed("Float", outside, storage()).unwrap_err().to_string(),
        "c: expected in tensor conv1.weight a view of 6 elements, found shape [2, 3], strides [1, 2] from 1"
    );
    let expanded = View { offset: 0, shape: &[2, 300], strides: &[0, 0] };
    assert!(viewed("Float", expanded, storage()).unwrap_err().to_string().contains("a view of 6 elements"));
}

#[test]
fn many_names_for_one_storage_are_refused() {
    let view = View { offset: 0, shape: &[600], strides: &[1] };
    let start = Pickler::new().raw(b"ccollections\nOrderedDict\n)R(").text("x0");
    let start = start.tensor("0", "Float", 600, &view, false).raw(b"q\x07");
    let many = (1..1000).fold(start, |p, i| p.text(&format!("x{i}")).raw(b"h\x07"));
    let file = archive(&many.raw(b"u").end(), &[vec![0; 2400]]);
    assert!(message(&file).contains("elements in all"), "{}", message(&file));
}

#[test]
fn other_types_are_converted_or_refused() {
    let plain = || View { offset: 0, shape: &[2, 3], strides: &[3, 1] };
    let values = [1.0, -2.0, 0.5, 4.0, 8.0, 0.0];
    let doubles = values.iter().flat_map(|v: &f64| v.to_le_bytes()).collect();
    let halves = values.iter().flat_map(|&v| half::f16::from_f64(v).to_le_bytes()).collect();
    let brains = values.iter().flat_map(|&v| half::bf16::from_f64(v).to_le_bytes()).collect();
    for (kind, storage) in [("Double", doubles), ("Half", halves), ("BFloat16", brains)] {
        let network = viewed(kind, plain(), storage).unwrap();
        assert_eq!(network.convolutions[0].weight, values.map(|v| v as f32), "{kind}");
    }
    assert_eq!(
        viewed("Long", plain(), vec![0; 48]).unwrap_err().to_string(),
        "c: expected in tensor conv1.weight floating-point numbers, found integers"
    );
    assert_eq!(
        viewed("Float", plain(), vec![0; 20]).unwrap_err().to_string(),
        "c: expected in tensor conv1.weight 6 elements of 4 bytes, found 20 bytes"
    );
}

#[test]
fn shapes_are_checked_by_name() {
    let change = |name: &str, shape: &[usize]| {
        let mut all = tensors(&testing::network(7, 3, &[4, 2], 1));
        let data = vec![0.5; shape.iter().product()];
        all.insert(name.to_owned(), Tensor { shape: shape.to_vec(), data });
        message(&zip_of(&all))
    };
    let cases: [(&str, &[usize], &str); 7] = [
        ("conv1.weight", &[5, 4], "expected an even number of rows, and columns, found shape (5, 4)"),
        ("conv1.bias", &[5], "expected 4 values, found shape (5)"),
        ("conv2.weight", &[6, 2], "expected 8 rows, two for each output before, found shape (6, 2)"),
        ("classifier.0.weight", &[3, 4], "expected rows of 2 columns, found shape (3, 4)"),
        ("classifier.1.weight", &[2], "expected 3 values, or 1, found shape (2)"),
        ("classifier.2.bias", &[2], "expected 1 values, found shape (2)"),
        ("conv1.weight", &[6], "expected a matrix of inputs x outputs, found shape (6)"),
    ];
    for (name, shape, expected) in cases {
        assert_eq!(change(name, shape), format!("c (tensor {name}): {expected}"));
    }
    assert_eq!(
        change("bn0.weight", &[3]),
        "c: expected only conv1 to conv2 and classifier.0 to 2, found a tensor bn0.weight"
    );
}

#[test]
fn what_is_no_checkpoint_says_so() {
    assert_eq!(
        message(b"\x93NUMPY.."),
        "c: expected a checkpoint written by torch.save, found a file that begins with \"\\x93NUMPY..\""
    );
    assert!(message(b"").contains("begins with \"\""));
}
