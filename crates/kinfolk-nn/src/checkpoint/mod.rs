//! Reads PyTorch checkpoints without executing code from them.
//!
//! `torch.save` writes a pickle that refers to storages by key, and the storages beside it. Since version 1.6
//! both are members of a zip archive (`NAME/data.pkl`, `NAME/data/0` ...); before, the file was five pickles
//! in a row (a magic number, the version, facts about the machine, the object, the keys) and then, for each
//! key, the number of elements and the elements.
//!
//! The object is a state_dict, or a dict with one under `state_dict`; keys may begin with `module.`, which
//! training on several GPUs adds. Cost: one copy of the tensors that are used.

mod pickle;
mod views;

use crate::GraphNetwork;
use crate::tensors::{Tensors, network};
use kinfolk::{Error, Result};
use pickle::{Pickle, Refusal, Value, refuse, unpickle};
use std::collections::{BTreeMap, HashMap};
use std::io::{Cursor, Read};
use std::path::Path;
use views::dense;
use zip::{CompressionMethod, ZipArchive};

/// The pickle of the magic number that the older format begins with.
const MAGIC: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

/// The version of the older format.
const LEGACY_VERSION: i64 = 1001;

/// Reads a GCN-V or GCN-E of the published shape from a PyTorch checkpoint, new or old.
///
/// The pickle in it is parsed, not executed: it can create only tensors and containers. A checkpoint that uses anything else is
/// refused with an error that names it.
pub fn read_checkpoint(path: &Path) -> Result<GraphNetwork> {
    let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    parse_checkpoint(&bytes, &path.display().to_string())
}

/// Reads a checkpoint from the bytes of a file; `place` names it in errors.
pub fn parse_checkpoint(bytes: &[u8], place: &str) -> Result<GraphNetwork> {
    let tensors = if bytes.starts_with(b"PK\x03\x04") {
        from_zip(bytes)
    } else if bytes.starts_with(MAGIC) {
        from_legacy(bytes)
    } else {
        let start = bytes[..bytes.len().min(8)].escape_ascii();
        refuse("a checkpoint written by torch.save", format!("a file that begins with \"{start}\""))
    };
    network(tensors.map_err(|(expected, found)| Error::format(place, expected, found))?, place)
}

fn from_zip(bytes: &[u8]) -> std::result::Result<Tensors, Refusal> {
    let damaged = |e: &dyn std::fmt::Display| ("a readable zip archive".to_owned(), e.to_string());
    let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(|e| damaged(&e))?;
    let root = zip.file_names().find_map(|name| Some(name.ok()?.strip_suffix("data.pkl")?.to_owned()));
    let Some(root) = root else {
        return refuse("a checkpoint with data.pkl in it", "an archive without");
    };
    let mut member = |name: &str| -> std::result::Result<Vec<u8>, Refusal> {
        let name = format!("{root}{name}");
        let file = zip.by_name(&name).map_err(|e| (format!("a member {name}"), e.to_string()))?;
        if file.compression() != CompressionMethod::Stored {
            return refuse("members that are not compressed, as torch.save writes them", name);
        }
        let mut content = Vec::new();
        // What is stored is no longer than the file, whatever the archive says of it.
        file.take(bytes.len() as u64).read_to_end(&mut content).map_err(|e| damaged(&e))?;
        Ok(content)
    };
    // Older archives do not have this member.
    if let Ok(order) = member("byteorder")
        && order != b"little"
    {
        return refuse("little-endian numbers", order.escape_ascii().to_string());
    }
    let pickle = member("data.pkl")?;
    let (pickle, _) = unpickle(&pickle)?;
    state(&pickle, bytes.len(), |key| member(&format!("data/{key}")))
}

fn from_legacy(bytes: &[u8]) -> std::result::Result<Tensors, Refusal> {
    let rest = &bytes[MAGIC.len()..];
    let (version, rest) = unpickle(rest)?;
    if version.root != Value::Int(LEGACY_VERSION) {
        return refuse(format!("version {LEGACY_VERSION} of the format"), format!("{:?}", version.root));
    }
    let (machine, rest) = unpickle(rest)?;
    if entry(&machine, machine.root, "little_endian") == Some(Value::Bool(false)) {
        return refuse("little-endian numbers", "big-endian ones");
    }
    let (pickle, rest) = unpickle(rest)?;
    let (keys, mut rest) = unpickle(rest)?;
    let Value::Sequence(list) = keys.root else {
        return refuse("a list of storages after the pickle", "something else");
    };
    let mut storages: HashMap<&str, &[u8]> = HashMap::new();
    for &key in &keys.sequences[list] {
        let Value::Text(key) = key else { return refuse("the keys of storages", "something else") };
        let Some(storage) = pickle.storages.get(key) else {
            return refuse("storages that a tensor uses", key.escape_debug().to_string());
        };
        let cut = || ("all storages".to_owned(), format!("the end of the file in storage {key}"));
        let (length, after) = rest.split_first_chunk::<8>().ok_or_else(cut)?;
        let length = i64::from_le_bytes(*length);
        if usize::try_from(length) != Ok(storage.length) {
            return refuse(format!("{} elements in storage {key}", storage.length), length.to_string());
        }
        let size = storage.length.checked_mul(storage.kind.size()).ok_or_else(cut)?;
        let (content, after) = after.split_at_checked(size).ok_or_else(cut)?;
        storages.insert(key, content);
        rest = after;
    }
    state(&pickle, bytes.len(), |key| match storages.get(key) {
        Some(&content) => Ok(content),
        None => refuse(format!("storage {key}"), "a file without it"),
    })
}

/// What a dict holds under a name; of several the last, as in Python.
fn entry<'a>(pickle: &Pickle<'a>, dict: Value<'a>, name: &str) -> Option<Value<'a>> {
    let Value::Dict(dict) = dict else { return None };
    let found = pickle.dicts[dict].iter().rev().find(|(key, _)| *key == Value::Text(name));
    found.map(|&(_, value)| value)
}

/// The tensors of the state_dict; `content` gives the bytes of a storage.
///
/// Several names for one storage make several copies of it. A valid file has at least two bytes for
/// each element, so that `most` elements, the length of the file, are enough for it and too few to fill the memory.
fn state<'a, Bytes: AsRef<[u8]>>(
    pickle: &Pickle<'a>,
    most: usize,
    mut content: impl FnMut(&'a str) -> std::result::Result<Bytes, Refusal>,
) -> std::result::Result<Tensors, Refusal> {
    let root = entry(pickle, pickle.root, "state_dict").unwrap_or(pickle.root);
    let Value::Dict(dict) = root else { return refuse("a state_dict", "something else") };
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for &(key, value) in &pickle.dicts[dict] {
        let (Value::Text(key), Value::Tensor(view)) = (key, value) else {
            return refuse("a state_dict of tensors by name", format!("{key:?}: {value:?}"));
        };
        named.insert(key.strip_prefix("module.").unwrap_or(key), view);
    }
    let mut tensors = Tensors::new();
    let mut elements = 0usize;
    for (key, view) in named {
        let view = &pickle.views[view];
        elements = elements.saturating_add(view.shape.iter().copied().fold(1, usize::saturating_mul));
        if elements > most {
            return refuse(format!("at most {most} elements in all"), format!("more, with tensor {key}"));
        }
        let tensor = dense(view, content(view.storage.key)?.as_ref())
            .map_err(|(expected, found)| (format!("in tensor {key} {expected}"), found))?;
        tensors.insert(key.to_owned(), tensor);
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests;
