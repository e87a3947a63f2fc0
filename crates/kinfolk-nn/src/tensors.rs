//! A network as named tensors, and back, with every shape checked.
//!
//! Names and layouts are those of the published checkpoints: `conv1.weight` (in x out) and `conv1.bias` for
//! each graph convolution, `classifier.0.*` (out x in, as PyTorch's Linear has it), `classifier.1.weight` (the
//! slopes of the PReLU) and `classifier.2.*`. kinfolk's own files use them too, so there is one check for all.

use crate::{GraphNetwork, Linear};
use kinfolk::{Error, Result};
use std::collections::BTreeMap;

/// A dense row-major tensor.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Tensor {
    pub shape: Vec<usize>,
    pub data: Vec<f32>,
}

/// Tensors by name.
pub(crate) type Tensors = BTreeMap<String, Tensor>;

/// The network that `tensors` describe. All must be used: one that is not known might change the answer.
pub(crate) fn network(mut tensors: Tensors, place: &str) -> Result<GraphNetwork> {
    let mut convolutions: Vec<Linear> = Vec::new();
    while convolutions.is_empty() || tensors.contains_key(&format!("conv{}.weight", convolutions.len() + 1)) {
        let name = format!("conv{}", convolutions.len() + 1);
        let key = format!("{name}.weight");
        let weight = take(&mut tensors, &key, place)?;
        let &[inputs, outputs] = &weight.shape[..] else {
            return Err(wrong(place, &key, "a matrix of inputs x outputs", &weight.shape));
        };
        match convolutions.last() {
            Some(before) if inputs != 2 * before.outputs => {
                let expected = format!("{} rows, two for each output before", 2 * before.outputs);
                return Err(wrong(place, &key, &expected, &weight.shape));
            }
            _ if inputs == 0 || inputs % 2 != 0 || outputs == 0 => {
                return Err(wrong(place, &key, "an even number of rows, and columns", &weight.shape));
            }
            _ => {}
        }
        let bias = vector(&mut tensors, &format!("{name}.bias"), outputs, place)?;
        convolutions.push(Linear { weight: weight.data, bias, inputs, outputs });
    }
    let width = convolutions.last().map_or(0, |last| last.outputs);
    let hidden = linear(&mut tensors, "classifier.0", width, place)?;
    let slopes = slopes(&mut tensors, "classifier.1.weight", hidden.outputs, place)?;
    let output = linear(&mut tensors, "classifier.2", hidden.outputs, place)?;
    if !(1..=2).contains(&output.outputs) {
        let shape = [output.outputs, output.inputs];
        return Err(wrong(place, "classifier.2.weight", "1 or 2 rows", &shape));
    }
    match tensors.keys().next() {
        Some(key) => {
            let expected = format!("only conv1 to conv{} and classifier.0 to 2", convolutions.len());
            Err(Error::format(place, expected, format!("a tensor {key}")))
        }
        None => Ok(GraphNetwork { convolutions, hidden, slopes, output }),
    }
}

/// The tensors of a network, the inverse of [`network`].
pub(crate) fn tensors(network: &GraphNetwork) -> Tensors {
    let mut all = Tensors::new();
    let vector = |data: &[f32]| Tensor { shape: vec![data.len()], data: data.to_vec() };
    for (l, layer) in network.convolutions.iter().enumerate() {
        let weight = Tensor { shape: vec![layer.inputs, layer.outputs], data: layer.weight.clone() };
        all.insert(format!("conv{}.weight", l + 1), weight);
        all.insert(format!("conv{}.bias", l + 1), vector(&layer.bias));
    }
    for (name, layer) in [("classifier.0", &network.hidden), ("classifier.2", &network.output)] {
        let data = transpose(&layer.weight, layer.inputs, layer.outputs);
        all.insert(format!("{name}.weight"), Tensor { shape: vec![layer.outputs, layer.inputs], data });
        all.insert(format!("{name}.bias"), vector(&layer.bias));
    }
    all.insert("classifier.1.weight".to_owned(), vector(&network.slopes));
    all
}

fn linear(tensors: &mut Tensors, name: &str, inputs: usize, place: &str) -> Result<Linear> {
    let key = format!("{name}.weight");
    let weight = take(tensors, &key, place)?;
    let outputs = match weight.shape[..] {
        [outputs, columns] if columns == inputs && outputs > 0 => outputs,
        _ => return Err(wrong(place, &key, &format!("rows of {inputs} columns"), &weight.shape)),
    };
    let bias = vector(tensors, &format!("{name}.bias"), outputs, place)?;
    Ok(Linear { weight: transpose(&weight.data, outputs, inputs), bias, inputs, outputs })
}

fn vector(tensors: &mut Tensors, key: &str, length: usize, place: &str) -> Result<Vec<f32>> {
    let tensor = take(tensors, key, place)?;
    match tensor.shape[..] {
        [found] if found == length => Ok(tensor.data),
        _ => Err(wrong(place, key, &format!("{length} values"), &tensor.shape)),
    }
}

/// One slope for each hidden value; PyTorch's default PReLU has one for all.
fn slopes(tensors: &mut Tensors, key: &str, length: usize, place: &str) -> Result<Vec<f32>> {
    let tensor = take(tensors, key, place)?;
    match (&tensor.shape[..], &tensor.data[..]) {
        (&[found], _) if found == length => Ok(tensor.data),
        (&[1], &[slope]) => Ok(vec![slope; length]),
        _ => Err(wrong(place, key, &format!("{length} values, or 1"), &tensor.shape)),
    }
}

fn take(tensors: &mut Tensors, key: &str, place: &str) -> Result<Tensor> {
    let tensor = tensors.remove(key).ok_or_else(|| {
        let names: Vec<&str> = tensors.keys().map(String::as_str).take(20).collect();
        let found = if names.is_empty() { "no tensors".to_owned() } else { names.join(", ") };
        Error::format(place, format!("a tensor {key}"), found)
    })?;
    match tensor.data.iter().find(|value| !value.is_finite()) {
        Some(value) => {
            Err(Error::format(format!("{place} (tensor {key})"), "finite numbers", value.to_string()))
        }
        None => Ok(tensor),
    }
}

fn wrong(place: &str, key: &str, expected: &str, shape: &[usize]) -> Error {
    let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
    Error::format(format!("{place} (tensor {key})"), expected, format!("shape ({})", shape.join(", ")))
}

/// The transpose of a row-major matrix.
fn transpose(data: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| data[r * columns + c])).collect()
}
