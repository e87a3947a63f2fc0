//! The networks against obvious loops, their gradients against differences, and training as a whole.

use super::fit::Trained;
use super::network::{Network, Shape, initial, values};
use super::params::FitParams;
use super::random::{Purpose, Random};
use super::rotation::Rotation;
use super::sparse::{Operator, Sparse};
use super::{GcnEParams, GcnVParams, Target, train_gcn_e, train_gcn_v};
use crate::{GraphNetwork, Linear};
use burn::tensor::{Device, Tensor, TensorData};
use kinfolk::synth::{Synth, SynthParams};
use kinfolk::{Embeddings, KnnParams, knn_graph, u_weight};

/// x W + b for one row.
fn linear(layer: &Linear, x: &[f64]) -> Vec<f64> {
    let column = |o: usize| {
        let products = x.iter().enumerate().map(|(i, x)| x * layer.weight[i * layer.outputs + o] as f64);
        products.sum::<f64>() + layer.bias[o] as f64
    };
    (0..layer.outputs).map(column).collect()
}

/// The network as the paper writes it; `a` is dense.
fn obvious(network: &GraphNetwork, a: &[Vec<f64>], x: &[Vec<f64>]) -> Vec<f64> {
    let mut features = x.to_vec();
    for convolution in &network.convolutions {
        let next = (0..features.len()).map(|i| {
            let mean = |c: usize| (0..features.len()).map(|j| a[i][j] * features[j][c]).sum::<f64>();
            let mut joined = features[i].clone();
            joined.extend((0..features[i].len()).map(mean));
            linear(convolution, &joined).into_iter().map(|v| v.max(0.0)).collect()
        });
        features = next.collect();
    }
    let head = |f: &Vec<f64>| {
        let hidden = linear(&network.hidden, f);
        let bent = hidden.iter().zip(&network.slopes).map(|(&v, &s)| if v < 0.0 { v * s as f64 } else { v });
        linear(&network.output, &bent.collect::<Vec<_>>())[0]
    };
    features.iter().map(head).collect()
}

/// A small graph with hubs, leaves and rows that sum to one, its operator, and features.
fn example(n: usize, dim: usize) -> (Vec<Vec<f64>>, Operator, Vec<Vec<f64>>) {
    let mut random = Random::new(7, Purpose::Noise, 0);
    let mut dense = vec![vec![0.0; n]; n];
    let mut sparse = Sparse::with_capacity(n, n * n);
    for (i, row) in dense.iter_mut().enumerate() {
        for (j, value) in row.iter_mut().enumerate() {
            if i == j || random.uniform() < 0.4 {
                *value = random.uniform() as f64 + 0.1;
            }
        }
        let sum: f64 = row.iter().sum();
        for (j, value) in row.iter_mut().enumerate().filter(|(_, v)| **v > 0.0) {
            *value = (*value / sum) as f32 as f64;
            sparse.columns.push(j as u32);
            sparse.values.push(*value as f32);
        }
        sparse.offsets.push(sparse.columns.len());
    }
    let draw = |_| (2.0 * random.uniform() - 1.0) as f64;
    let flat: Vec<f64> = (0..n * dim).map(draw).collect();
    (dense, Operator::new(sparse), flat.chunks(dim).map(<[f64]>::to_vec).collect())
}

/// [X, A X] as a tensor.
fn joined(operator: &Operator, x: &[Vec<f64>]) -> Tensor<2> {
    let dim = x[0].len();
    let flat: Vec<f32> = x.iter().flatten().map(|&v| v as f32).collect();
    let means = operator.matrix().times(&flat, dim);
    let rows = flat.chunks(dim).zip(means.chunks(dim)).flat_map(|(a, b)| a.iter().chain(b).copied());
    Tensor::from_data(TensorData::new(rows.collect::<Vec<_>>(), [x.len(), 2 * dim]), &Device::flex())
        .autodiff()
}

fn small(convolutions: &[usize]) -> GraphNetwork {
    let mut network = initial(&Shape { dim: 4, convolutions, hidden: 6 }, 3);
    // Slopes that differ, so that mixing them up shows.
    network.slopes.iter_mut().enumerate().for_each(|(i, slope)| *slope = 0.1 * i as f32 - 0.2);
    network
}

#[test]
fn the_network_does_what_the_paper_says() {
    let (a, operator, x) = example(9, 4);
    for convolutions in [&[5][..], &[5, 7], &[5, 7, 3, 3]] {
        let network = small(convolutions);
        let expected = obvious(&network, &a, &x);
        let found = Network::load(&network, &Device::flex()).forward(joined(&operator, &x), Some(&operator));
        for (expected, found) in expected.iter().zip(values(&found)) {
            assert!((expected - found as f64).abs() < 1e-5, "{convolutions:?}: {expected} {found}");
        }
    }
}

#[test]
fn weights_survive_loading_and_storing() {
    let network = small(&[5, 7]);
    assert_eq!(Network::load(&network, &Device::flex()).store(), network);
}

/// Every parameter as a plain list, in the order of `Network::parameters`.
fn flat(network: &mut GraphNetwork) -> Vec<&mut Vec<f32>> {
    let layers = network.convolutions.iter_mut().chain([&mut network.hidden, &mut network.output]);
    let mut all: Vec<_> = layers.flat_map(|layer| [&mut layer.weight, &mut layer.bias]).collect();
    all.push(&mut network.slopes);
    all
}

#[test]
fn gradients_are_slopes_of_the_loss() {
    let (a, operator, x) = example(9, 4);
    // Weights that differ from row to row, so that a transposed product done wrongly shows.
    let loss = |network: &GraphNetwork| -> f64 {
        obvious(network, &a, &x).iter().enumerate().map(|(i, o)| (o - 0.3 * i as f64).powi(2)).sum()
    };
    for convolutions in [&[5][..], &[5, 7], &[5, 7, 3, 3]] {
        let mut weights = small(convolutions);
        let mut network = Network::load(&weights, &Device::flex());
        let outputs = network.forward(joined(&operator, &x), Some(&operator));
        let goals: Vec<f32> = (0..x.len()).map(|i| 0.3 * i as f32).collect();
        let goals = Tensor::from_data(TensorData::new(goals, [x.len(), 1]), &Device::flex()).autodiff();
        let mut gradients = (outputs - goals).powi_scalar(2).sum().backward();
        for (p, parameter) in network.parameters().into_iter().enumerate() {
            let gradient =
                values(&parameter.grad_remove(&mut gradients).expect("every parameter has a gradient"));
            for (i, &found) in gradient.iter().enumerate() {
                // Small, so that hardly any relu changes sides in between; the loops are in double precision.
                let h = 1e-5_f32;
                let at = flat(&mut weights)[p][i];
                let mut moved = |to: f32| {
                    flat(&mut weights)[p][i] = to;
                    loss(&weights)
                };
                let expected = (moved(at + h) - moved(at - h)) / ((at + h) as f64 - (at - h) as f64);
                moved(at);
                let error = (expected - found as f64).abs() / (1.0 + expected.abs());
                assert!(error < 2e-3, "{convolutions:?}: parameter {p}, value {i}: {expected} {found}");
            }
        }
    }
}

#[test]
fn the_transpose_is_the_transpose() {
    let (a, operator, _) = example(13, 1);
    for column in 0..13 {
        let unit: Vec<f32> = (0..13).map(|i| (i == column) as u8 as f32).collect();
        let forwards: Vec<f32> = a.iter().map(|row| row[column] as f32).collect();
        let backwards: Vec<f32> = a[column].iter().map(|&value| value as f32).collect();
        assert_eq!(operator.matrix().times(&unit, 1), forwards);
        assert_eq!(operator.transposed().times(&unit, 1), backwards);
    }
}

#[test]
fn rotations_keep_products() {
    for dim in [1, 2, 3, 16, 37] {
        let mut random = Random::new(1, Purpose::Noise, dim as u64);
        let rotation = Rotation::random(dim, &mut random);
        let mut draw = || (0..dim).map(|_| random.uniform() - 0.5).collect::<Vec<f32>>();
        let (mut a, mut b) = (draw(), draw());
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let (before, first) = (product(&a, &b), a.clone());
        rotation.turn(&mut a);
        rotation.turn(&mut b);
        assert!((before - product(&a, &b)).abs() < 1e-5);
        assert!(dim == 1 || a != first);
    }
}

fn faces() -> (Embeddings, Vec<i64>) {
    let params = SynthParams { identities: 30, dim: 16, ..SynthParams::default() };
    Synth::new(params).unwrap().whole().to_embeddings().unwrap()
}

fn quick(convolutions: &[usize]) -> GcnVParams {
    GcnVParams {
        knn: KnnParams { k: 10, ..KnnParams::default() },
        convolutions: convolutions.to_vec(),
        hidden: 24,
        // A set this small is learned by heart or not at all.
        fit: FitParams { epochs: 8, batch: 64, rotate: false, decay_at: vec![], ..FitParams::default() },
        ..GcnVParams::default()
    }
}

fn train(params: &GcnVParams) -> Trained {
    let (embeddings, labels) = faces();
    train_gcn_v(&embeddings, &labels, None, params, &()).unwrap()
}

#[test]
fn the_loss_falls() {
    for target in [Target::Neighbours, Target::Average, Target::Centre] {
        let trained = train(&GcnVParams { target, ..quick(&[32]) });
        let (first, last) = (&trained.history[0], &trained.history[7]);
        assert!(last.training_loss < 0.8 * first.training_loss, "{target:?}: {:?}", trained.history);
        let best = trained.history[trained.best].validation_loss.unwrap();
        assert!(trained.history.iter().all(|epoch| epoch.validation_loss.unwrap() >= best));
    }
}

#[test]
fn two_convolutions_learn_too() {
    let mut params = quick(&[32, 16]);
    params.fit = FitParams { epochs: 300, learning_rate: 0.3, ..params.fit };
    let history = train(&params).history;
    let (first, last) = (history[0].training_loss, history[299].training_loss);
    assert!(last < 0.8 * first, "{first} {last}");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let on = |threads: usize, params: &GcnVParams| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| train(params))
    };
    for convolutions in [&[128][..], &[32, 16]] {
        // Wide enough that burn's products are shared between threads.
        let mut params = GcnVParams { hidden: 128, ..quick(convolutions) };
        params.fit = FitParams { epochs: 2, batch: 512, dropout: 0.1, rotate: true, ..params.fit };
        let one = on(1, &params);
        assert_eq!(one, on(2, &params));
        assert_eq!(one, on(3, &params));
        params.fit.seed = 1;
        assert_ne!(one.network, on(1, &params).network);
    }
}

#[test]
fn without_validation_the_last_epoch_is_kept() {
    let mut params = quick(&[8]);
    params.fit.validation = 0.0;
    let trained = train(&params);
    assert_eq!(trained.best, 7);
    assert!(trained.history.iter().all(|epoch| epoch.validation_loss.is_none()));
}

#[test]
fn a_single_row_can_be_trained_on() {
    let embeddings = Embeddings::from_rows(vec![1.0, 2.0], 2, "m").unwrap();
    let trained = train_gcn_v(&embeddings, &[5], None, &quick(&[4]), &()).unwrap();
    assert!(trained.network.output.bias[0].is_finite());
}

#[test]
fn wrong_input_is_refused_by_name() {
    let (embeddings, labels) = faces();
    let message = |labels: &[i64], change: fn(&mut GcnVParams)| {
        let mut params = quick(&[8]);
        change(&mut params);
        train_gcn_v(&embeddings, labels, None, &params, &()).unwrap_err().to_string()
    };
    let n = labels.len();
    let expected = format!("labels: expected {n} labels (one per embedding), found {}", n - 1);
    assert_eq!(message(&labels[1..], |_| ()), expected);
    assert_eq!(message(&labels, |p| p.fit.epochs = 0), "--epochs: expected at least 1, found 0");
    assert_eq!(message(&labels, |p| p.convolutions.clear()), "--layers: expected at least 1, found 0");
    let expected = "--dropout: expected at least 0, below 1, found 1";
    assert_eq!(message(&labels, |p| p.fit.dropout = 1.0), expected);
    let message = message(&labels, |p| p.fit.learning_rate = 1e6);
    assert!(message.starts_with("--learning-rate: expected a rate at which training does not diverge"));
}

#[test]
fn blocks_keep_to_their_rows_and_sum_to_one() {
    let mut matrix = Sparse::with_capacity(0, 0);
    matrix.push_block_row(0, &[2, 5], &[1, 2, 5], &[0.5, 0.1, 0.4]);
    matrix.push_block_row(0, &[2, 5], &[0, 5], &[0.5, 0.5]);
    matrix.push_block_row(2, &[3], &[3, 4], &[0.25, 0.75]);
    assert_eq!(matrix.columns, [0, 1, 1, 2]);
    assert_eq!(matrix.values, [0.2, 0.8, 1.0, 1.0]);
    assert_eq!(matrix.offsets, [0, 2, 3, 4]);
}

#[test]
fn connectivity_is_learned_alike_on_any_number_of_threads() {
    let (embeddings, labels) = faces();
    let (graph, _) = knn_graph(&embeddings, &KnnParams { k: 10, ..KnnParams::default() }, &()).unwrap();
    let confidence = u_weight(&graph, kinfolk::DEFAULT_RADIUS).unwrap();
    let params = GcnEParams {
        convolutions: vec![24, 24, 16, 16],
        hidden: 16,
        rho: 1.0,
        fit: FitParams { epochs: 6, ..GcnEParams::default().fit },
        ..GcnEParams::default()
    };
    let on = |threads: usize| {
        let train = || train_gcn_e(&embeddings, &labels, &graph, &confidence, &params, &()).unwrap();
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(train)
    };
    let trained = on(1);
    let (first, last) = (&trained.history[0], &trained.history[5]);
    assert!(last.training_loss < first.training_loss, "{:?}", trained.history);
    assert_eq!(trained, on(2));
}
