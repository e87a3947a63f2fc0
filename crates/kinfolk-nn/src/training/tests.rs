//! The networks against obvious loops, their gradients against differences, and training as a whole.

use super::batch::{Batch, Operators, Readout};
use super::fit::{FitRun, FittedNetwork};
use super::gcn_e::fit_gcn_e;
use super::gcn_v::fit_gcn_v;
use super::initial::{Shape, initial};
use super::params::FitParams;
use super::pass;
use super::random::{Purpose, random};
use super::rotation::Rotation;
use super::sampling::{Sampler, Sampling};
use super::sparse::{Operator, Sparse};
use super::{
    Choices, GcnEParams, GcnVParams, Loss, Target, TrainParams, Unfinished, train_gcn_e, train_gcn_v,
};
use crate::{GraphNetwork, Linear, ModelFile};
use kinfolk::stages::{Adjacency, u_weight};
use kinfolk::synth::{Synth, SynthParams};
use kinfolk::{Context, Embeddings, KnnParams, Problem, Reason, Result, knn_graph};

#[allow(dead_code, reason = "only the reader of arrays is used here")]
#[path = "../../tests/fixture/mod.rs"]
mod fixture;
#[cfg(feature = "wgpu")]
mod graphics;

/// x W + b for one row.
fn linear(layer: &Linear, x: &[f64]) -> Vec<f64> {
    let column = |o: usize| {
        let products = x.iter().enumerate().map(|(i, x)| x * layer.weight[i * layer.outputs + o] as f64);
        products.sum::<f64>() + layer.bias[o] as f64
    };
    (0..layer.outputs).map(column).collect()
}

/// A dense matrix.
type Dense = Vec<Vec<f64>>;

/// The network as the paper writes it, with a dense matrix for each convolution.
fn obvious(network: &GraphNetwork, a: &[&Dense], x: &[Vec<f64>], readout: &Readout) -> Vec<f64> {
    let mut features = x.to_vec();
    for (convolution, a) in network.convolutions.iter().zip(a) {
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
    obvious_readout(features, readout).iter().map(head).collect()
}

/// A small graph with hubs, leaves and rows that sum to one, its operator, and features.
fn example(n: usize, dim: usize) -> (Dense, Operator, Vec<Vec<f64>>) {
    example_of(7, n, dim)
}

/// Another one for each seed.
fn example_of(seed: u64, n: usize, dim: usize) -> (Dense, Operator, Vec<Vec<f64>>) {
    let mut random = random(seed, Purpose::Noise, 0);
    let mut dense = vec![vec![0.0; n]; n];
    let mut sparse = Sparse::with_capacity(n, n * n);
    for (i, row) in dense.iter_mut().enumerate() {
        for (j, value) in row.iter_mut().enumerate() {
            if i == j || random.uniform_f32() < 0.4 {
                *value = random.uniform_f32() as f64 + 0.1;
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
    let draw = |_| (2.0 * random.uniform_f32() - 1.0) as f64;
    let flat: Vec<f64> = (0..n * dim).map(draw).collect();
    (dense, Operator::new(sparse), flat.chunks(dim).map(<[f64]>::to_vec).collect())
}

/// All rows of the example, with targets that differ from row to row.
fn batch(operator: &Operator, x: &[Vec<f64>]) -> Batch {
    let flat: Vec<f32> = x.iter().flatten().map(|&v| v as f32).collect();
    let joined = operator.matrix().joined(&flat, x[0].len());
    let targets = (0..x.len()).map(|i| 0.3 * i as f32).collect();
    Batch { joined, operators: Operators::Same(operator.clone()), readout: Readout::All, targets }
}

fn small(convolutions: &[usize]) -> GraphNetwork {
    let mut network = initial(&Shape { dim: 4, convolutions, hidden: 6, outputs: 1 }, 3);
    // Slopes that differ, so that mixing them up shows.
    network.slopes.iter_mut().enumerate().for_each(|(i, slope)| *slope = 0.1 * i as f32 - 0.2);
    network
}

/// What the head makes of the rows of the last convolution.
fn obvious_readout(features: Vec<Vec<f64>>, readout: &Readout) -> Vec<Vec<f64>> {
    match readout {
        Readout::All => features,
        Readout::Rows(rows) => rows.iter().map(|&row| features[row as usize].clone()).collect(),
        Readout::Largest(graphs) => {
            let largest = |graph: &std::ops::Range<usize>, c: usize| {
                features[graph.clone()].iter().map(|row| row[c]).fold(f64::MIN, f64::max)
            };
            let columns = features[0].len();
            graphs.iter().map(|graph| (0..columns).map(|c| largest(graph, c)).collect()).collect()
        }
    }
}

/// Every readout of nine rows; one row is chosen twice, one graph is a single row.
fn readouts() -> [Readout; 3] {
    [Readout::All, Readout::Rows(vec![4, 0, 8, 4]), Readout::Largest(vec![0..4, 4..5, 5..9])]
}

fn example_batch(operator: &Operator, x: &[Vec<f64>], readout: Readout) -> Batch {
    let mut batch = batch(operator, x);
    match &readout {
        Readout::All => {}
        Readout::Rows(rows) => batch.targets.truncate(rows.len()),
        Readout::Largest(graphs) => batch.targets.truncate(graphs.len()),
    }
    Batch { readout, ..batch }
}

#[test]
fn the_network_does_what_the_paper_says() {
    let (a, operator, x) = example(9, 4);
    for convolutions in [&[5][..], &[5, 7], &[5, 7, 3, 3]] {
        for readout in readouts() {
            let network = small(convolutions);
            let batch = example_batch(&operator, &x, readout);
            let expected = obvious(&network, &vec![&a; convolutions.len()], &x, &batch.readout);
            let found = pass::outputs(&network, &batch);
            assert_eq!(found.len(), expected.len());
            for (expected, found) in expected.iter().zip(found) {
                assert!((expected - found as f64).abs() < 1e-5, "{convolutions:?}: {expected} {found}");
            }
        }
    }
}

/// The gradients of a network of `convolutions` against differences of the loss, with a matrix for each convolution.
fn check_gradients(convolutions: &[usize], a: &[&Dense], x: &[Vec<f64>], batch: &Batch) {
    let mut weights = small(convolutions);
    let loss = |network: &GraphNetwork| -> f64 {
        let outputs = obvious(network, a, x, &batch.readout);
        let squares = outputs.iter().zip(&batch.targets).map(|(o, t)| (o - *t as f64).powi(2));
        squares.sum()
    };
    let (mut gradients, sum) = pass::gradients(&weights, batch, Loss::Squares);
    assert!((sum / loss(&weights) - 1.0).abs() < 1e-4);
    for (p, gradient) in gradients.values_mut().into_iter().enumerate() {
        for (i, &mut found) in gradient.iter_mut().enumerate() {
            // Small, so that hardly any relu changes sides in between; the loops are in double precision.
            let h = 1e-5_f32;
            let at = weights.values_mut()[p][i];
            let mut moved = |to: f32| {
                weights.values_mut()[p][i] = to;
                loss(&weights) / batch.targets.len() as f64
            };
            let expected = (moved(at + h) - moved(at - h)) / ((at + h) as f64 - (at - h) as f64);
            moved(at);
            let error = (expected - found as f64).abs() / (1.0 + expected.abs());
            assert!(error < 2e-4, "{convolutions:?}: parameter {p}, value {i}: {expected} {found}");
        }
    }
}

#[test]
fn gradients_are_slopes_of_the_loss() {
    let (a, operator, x) = example(9, 4);
    for convolutions in [&[5][..], &[5, 7], &[5, 7, 3, 3]] {
        for readout in readouts() {
            let batch = example_batch(&operator, &x, readout);
            check_gradients(convolutions, &vec![&a; convolutions.len()], &x, &batch);
        }
    }
}

#[test]
fn every_convolution_may_have_an_operator_of_its_own() {
    let (a, operator, x) = example(9, 4);
    let [(b, second, _), (c, third, _)] = [8, 9].map(|seed| example_of(seed, 9, 4));
    for readout in readouts() {
        let mut batch = example_batch(&operator, &x, readout);
        batch.operators = Operators::Each(vec![second.clone(), third.clone()]);
        check_gradients(&[5, 7, 3], &[&a, &b, &c], &x, &batch);
    }
}

/// The rows of a small graph that are drawn for some examples, through the network and back, against the dense estimate of A~.
#[test]
fn gradients_of_sampled_vertices_are_slopes_of_their_loss() {
    let (embeddings, _) = faces();
    let (graph, _) = knn_graph(&embeddings, &ten_neighbours(), &()).unwrap();
    let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
    let examples = [5, 90, 17];
    let sampler = Sampler::new(Sampling::Vertices(12), &adjacency);
    let (rows, operators) = sampler.draw(&adjacency, 3, &examples, &mut random(1, Purpose::Noise, 0));
    let dense = |operator: &Operator| -> Dense {
        let unit = |j: usize| (0..rows.len()).map(|i| (i == j) as u8 as f32).collect::<Vec<_>>();
        let columns: Vec<Vec<f32>> = (0..rows.len()).map(|j| operator.matrix().times(&unit(j), 1)).collect();
        (0..rows.len()).map(|i| columns.iter().map(|column| column[i] as f64).collect()).collect()
    };
    let [second, third] = [dense(operators.of(1)), dense(operators.of(2))];
    assert!(second.iter().flatten().any(|&v| v > 0.0) && second != third);
    // The first product is not estimated; any matrix will do here.
    let (first, operator, x) = example(rows.len(), 4);
    let batch = Batch {
        operators,
        readout: Readout::Rows((0..3).collect()),
        targets: vec![0.3, 0.6, 0.9],
        ..batch(&operator, &x)
    };
    check_gradients(&[5, 7, 3], &[&first, &second, &third], &x, &batch);
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
        let mut random = random(1, Purpose::Noise, dim as u64);
        let rotation = Rotation::random(dim, &mut random);
        let mut draw = || (0..dim).map(|_| random.uniform_f32() - 0.5).collect::<Vec<f32>>();
        let (mut a, mut b) = (draw(), draw());
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let (before, first) = (product(&a, &b), a.clone());
        // Alone or among others, a row is turned alike.
        let mut many = [&b[..], &a].concat().repeat(9);
        rotation.turn(&mut many, dim);
        rotation.turn(&mut a, dim);
        rotation.turn(&mut b, dim);
        assert_eq!(many, [&b[..], &a].concat().repeat(9));
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
        convolutions: convolutions.to_vec(),
        hidden: 24,
        // A set this small is learned by heart or not at all.
        fit: FitParams { epochs: 8, batch: 64, rotate: false, decay_at: vec![], ..FitParams::default() },
        ..GcnVParams::default()
    }
}

fn ten_neighbours() -> KnnParams {
    KnnParams { k: 10, ..KnnParams::default() }
}

fn train(params: &GcnVParams) -> FittedNetwork {
    let (embeddings, labels) = faces();
    let (graph, _) = knn_graph(&embeddings, &ten_neighbours(), &()).unwrap();
    train_gcn_v(&embeddings, &labels, &graph, params, &()).unwrap()
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
    for sampling in [Sampling::default(), Sampling::Vertices(800)] {
        let history = train(&GcnVParams { sampling, ..quick(&[32, 16]) }).history;
        let (first, last) = (history[0].training_loss, history[7].training_loss);
        assert!(last < 0.8 * first, "{sampling:?}: {first} {last}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let on = |threads: usize, params: &GcnVParams| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| train(params))
    };
    let neighbours = Sampling::default();
    for (convolutions, sampling) in [
        (&[128][..], neighbours),
        (&[32, 16], neighbours),
        (&[32, 16], Sampling::Vertices(300)),
        (&[32, 16, 16], Sampling::Vertices(100)),
    ] {
        // Wide enough that products are divided between threads.
        let mut params = GcnVParams { hidden: 128, sampling, ..quick(convolutions) };
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
    let (graph, _) = knn_graph(&embeddings, &ten_neighbours(), &()).unwrap();
    let trained = train_gcn_v(&embeddings, &[5], &graph, &quick(&[4]), &()).unwrap();
    assert!(trained.network.output.bias[0].is_finite());
}

#[test]
fn wrong_input_is_refused_by_name() {
    let (embeddings, labels) = faces();
    let (graph, _) = knn_graph(&embeddings, &ten_neighbours(), &()).unwrap();
    let message = |labels: &[i64], change: fn(&mut GcnVParams)| {
        let mut params = quick(&[8]);
        change(&mut params);
        train_gcn_v(&embeddings, labels, &graph, &params, &()).unwrap_err().to_string()
    };
    let n = labels.len();
    let expected = format!("labels: expected {n} labels (one per embedding), found {}", n - 1);
    assert_eq!(message(&labels[1..], |_| ()), expected);
    assert_eq!(message(&labels, |p| p.fit.epochs = 0), "epochs: expected at least 1, found 0");
    assert_eq!(message(&labels, |p| p.convolutions.clear()), "layers: expected at least 1, found 0");
    for sampling in [Sampling::Neighbours(0), Sampling::Vertices(0)] {
        let params = GcnVParams { sampling, ..quick(&[8, 8]) };
        let error = train_gcn_v(&embeddings, &labels, &graph, &params, &()).unwrap_err();
        assert_eq!(error.to_string(), "sampled: expected at least 1, found 0");
    }
    let expected = "dropout: expected at least 0, below 1, found 1";
    assert_eq!(message(&labels, |p| p.fit.dropout = 1.0), expected);
    let message = message(&labels, |p| p.fit.learning_rate = 1e6);
    assert!(message.starts_with("learning_rate: expected a rate at which training does not diverge"));
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
    let (graph, _) = knn_graph(&embeddings, &ten_neighbours(), &()).unwrap();
    let confidence = u_weight(&graph, kinfolk::stages::DEFAULT_RADIUS).unwrap();
    for loss in [Loss::Squares, Loss::CrossEntropy] {
        let params = GcnEParams { loss, ..quick_gcn_e() };
        let on = |threads: usize| {
            let train = || train_gcn_e(&embeddings, &labels, &graph, &confidence, &params, &()).unwrap();
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(train)
        };
        let trained = on(1);
        let (first, last) = (&trained.history[0], &trained.history[5]);
        assert!(last.training_loss < first.training_loss, "{:?}", trained.history);
        assert_eq!(trained.network.output.outputs, loss.outputs());
        assert_eq!(trained, on(2));
    }
}

fn quick_gcn_e() -> GcnEParams {
    GcnEParams {
        convolutions: vec![24, 24, 16, 16],
        hidden: 16,
        rho: 1.0,
        fit: FitParams { epochs: 6, ..GcnEParams::default().fit },
        ..GcnEParams::default()
    }
}

#[test]
fn cross_entropy_has_the_slopes_of_its_formula() {
    let (outputs, targets) = ([0.3f32, -0.2, 1.5, 0.1, -2.0, 0.4], [1.0f32, 0.0, 1.0]);
    let loss = |outputs: &[f32]| -> f64 {
        let row = |(pair, target): (&[f32], &f32)| {
            let (a, b) = (pair[0] as f64, pair[1] as f64);
            let right = if *target == 1.0 { b } else { a };
            (a.exp() + b.exp()).ln() - right
        };
        outputs.chunks(2).zip(&targets).map(row).sum::<f64>()
    };
    let (gradient, sum) = Loss::CrossEntropy.gradient(&outputs, &targets);
    assert!((sum - loss(&outputs)).abs() < 1e-6);
    for (i, &found) in gradient.iter().enumerate() {
        let moved = |by: f32| {
            let mut outputs = outputs;
            outputs[i] += by;
            loss(&outputs)
        };
        let expected = (moved(1e-3) - moved(-1e-3)) / 2e-3 / 3.0;
        assert!((expected - found as f64).abs() < 1e-4, "{i}: {expected} {found}");
    }
}

#[test]
fn aggregates_that_do_not_fit_are_computed_for_each_batch() {
    for convolutions in [&[16][..], &[16, 8]] {
        let params = quick(convolutions);
        assert_eq!(train(&params), train(&GcnVParams { memory: 0, ..params }));
    }
}

#[test]
fn with_everything_sampled_nothing_is_left_to_chance() {
    // A batch of everything with every neighbour is the whole graph; other draws then only change the order of sums.
    // With every vertex, a batch of any size is exact.
    let mut params = quick(&[8, 6]);
    params.fit = FitParams { epochs: 1, batch: 100_000, ..params.fit };
    let losses = [Sampling::Neighbours(1000), Sampling::Vertices(100_000)]
        .map(|sampling| train(&GcnVParams { sampling, ..params.clone() }).history[0].training_loss);
    let (embeddings, labels) = faces();
    let (graph, _) = knn_graph(&embeddings, &ten_neighbours(), &()).unwrap();
    let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
    let shape = Shape { dim: 16, convolutions: &[8, 6], hidden: 24, outputs: 1 };
    let network = initial(&shape, 0);
    let said = crate::vertex_confidence(&network, &embeddings, &adjacency, false, &()).unwrap().confidence;
    let goals = kinfolk::stages::s_nbr(&graph, &labels).unwrap();
    let rows = super::division::divide(&labels, &params.fit).training;
    let squares = rows.iter().map(|&i| (said[i as usize] as f64 - goals[i as usize] as f64).powi(2));
    let expected = squares.sum::<f64>() / rows.len() as f64;
    assert!(losses.iter().all(|loss| (loss - expected).abs() < 1e-6), "{losses:?} {expected}");
}

#[test]
fn the_second_convolution_may_have_a_graph_of_its_own() {
    let (embeddings, labels) = faces();
    let (graph, _) = knn_graph(&embeddings, &ten_neighbours(), &()).unwrap();
    let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
    let params = quick(&[8, 8]);
    let train = |params: &GcnVParams, graph_of: &mut crate::GraphOf| {
        super::train_gcn_v_on_graphs(&embeddings, &labels, &graph, params, graph_of, &())
    };
    // The same graph in each epoch is one graph for both.
    let mut made = 0;
    let mut same = |f_1: Vec<f32>| {
        assert_eq!(f_1.len(), 8 * labels.len());
        made += 1;
        Ok(adjacency.clone())
    };
    let trained = train(&params, &mut same).unwrap();
    assert_eq!(made, 8);
    let plain = train_gcn_v(&embeddings, &labels, &graph, &params, &()).unwrap();
    assert_eq!(trained, plain);
    let confidence =
        |network| crate::vertex_confidence(network, &embeddings, &adjacency, false, &()).unwrap();
    let mut same = |_| Ok(adjacency.clone());
    let on_graphs =
        crate::vertex_confidence_on_graphs(&plain.network, &embeddings, &adjacency, &mut same, &()).unwrap();
    assert_eq!(on_graphs, confidence(&plain.network));

    // The graph of F_1 is another one, and what it is made from is what the network computes.
    let mut rebuilt = |f_1: Vec<f32>| {
        let (graph, _) = knn_graph(&crate::rebuilt_features(f_1, 8)?, &ten_neighbours(), &())?;
        Adjacency::from_knn(&graph, 0.0)
    };
    assert_ne!(train(&params, &mut rebuilt).unwrap(), plain);
    let short =
        GraphNetwork { convolutions: plain.network.convolutions[..1].to_vec(), ..plain.network.clone() };
    let f_1 = crate::vertex_confidence(&short, &embeddings, &adjacency, true, &()).unwrap().embeddings;
    let mut checked = |given: Vec<f32>| {
        assert_eq!(given, f_1);
        rebuilt(given)
    };
    let on_graphs =
        crate::vertex_confidence_on_graphs(&plain.network, &embeddings, &adjacency, &mut checked, &())
            .unwrap();
    assert_ne!(on_graphs, confidence(&plain.network));

    let message = train(&quick(&[8]), &mut |_| Ok(adjacency.clone())).unwrap_err().to_string();
    assert_eq!(message, "layers: expected 2, one for each graph, found 1");
}

fn quick_model() -> TrainParams {
    let mut gcn_e = quick_gcn_e();
    gcn_e.fit.epochs = 3;
    let mut gcn_v = quick(&[16]);
    gcn_v.fit.epochs = 4;
    TrainParams { gcn_v, gcn_e: Some(gcn_e), k_rebuild: Some(10), choices: Default::default() }
}

#[test]
fn given_choices_are_made_and_the_others_are_tried() {
    let (embeddings, labels) = faces();
    let found = |choices: Choices| {
        let params = TrainParams { choices, ..quick_model() };
        train_model(&embeddings, &labels, &params, None, &mut |_| Ok(())).unwrap()
    };
    let paper = found(Choices::PAPER);
    let config = &paper.model.config;
    assert!(config.rebuild && config.density == 0.0 && config.rho == 0.2, "{config:?}");
    // Without GCN-E and with it; tau is chosen for each.
    assert_eq!(paper.choices.len(), 2);
    assert_eq!([paper.choices[0].rho, paper.choices[1].rho], [0.0, 0.2]);
    assert_eq!([config.tau_v, config.tau], [paper.choices[0].tau, paper.choices[1].tau]);

    let choices = Choices { rebuild: Some(false), rho: Some(0.0), tau: Some(0.63), ..Choices::default() };
    let given = found(choices);
    let config = &given.model.config;
    assert!(!config.rebuild && config.rho == 0.0 && config.tau == 0.63 && config.tau_v == 0.63, "{config:?}");
    assert!(given.choices.iter().all(|choice| !choice.rebuild && choice.tau == 0.63));

    // With everything open, all combinations are tried.
    let open = found(Choices::default());
    assert_eq!(open.choices.len(), 2 * 2 * 5 + 4);
    let tried =
        |rotate: bool| open.choices.iter().filter(move |choice| choice.rotate == rotate && choice.rho == 0.0);
    assert_eq!([tried(true).count(), tried(false).count()], [10, 10]);
    let wrong = Choices { rho: Some(1.5), ..Choices::default() };
    let params = TrainParams { choices: wrong, ..quick_model() };
    let error = train_model(&embeddings, &labels, &params, None, &mut |_| Ok(())).unwrap_err().to_string();
    assert_eq!(error, "rho: expected a share from 0 to 1, found 1.5");
}

/// Trains on ten neighbours.
fn train_model(
    embeddings: &Embeddings,
    labels: &[i64],
    params: &TrainParams,
    resumed: Option<Unfinished>,
    save: &mut dyn FnMut(&Unfinished) -> Result<()>,
) -> Result<super::TrainedGcn> {
    let problem = Problem::new(embeddings).with_labels(labels)?.with_k(Some(10))?;
    super::train(&problem, params, resumed, save, &Context::default())
}

#[test]
fn training_goes_on_where_it_stopped() {
    let (embeddings, labels) = faces();
    let params = quick_model();
    let directory = tempfile::tempdir().unwrap();
    let file = |epoch: usize| directory.path().join(format!("{epoch}.safetensors"));
    let mut epoch = 0;
    let mut save = |unfinished: &Unfinished| {
        epoch += 1;
        unfinished.write(&file(epoch))
    };
    let whole = train_model(&embeddings, &labels, &params, None, &mut save).unwrap();
    assert_eq!(epoch, 11);
    // In the middle of each GCN-V and at its end, in the middle of GCN-E and at its end.
    let networks = ["GCN-V (1 of 2)", "GCN-V (2 of 2)", "GCN-E"];
    for (epoch, network) in [2, 4, 5, 8, 9, 11].into_iter().zip(networks.iter().flat_map(|n| [n, n])) {
        let unfinished = Unfinished::read(&file(epoch)).unwrap();
        assert_eq!(unfinished.network(), *network);
        let model = crate::GcnModel::read(&file(epoch)).unwrap();
        assert_eq!(model, unfinished.model);
        let found = kinfolk::Clusterer::with(crate::Gcn::new(model)).fit(&embeddings).unwrap();
        assert_eq!(found.labels.len(), embeddings.len());
        let resumed = train_model(&embeddings, &labels, &params, Some(unfinished), &mut |_| Ok(()));
        let resumed = resumed.unwrap();
        assert_eq!(resumed.model, whole.model, "from epoch {epoch}");
        assert_eq!((resumed.gcn_v, resumed.gcn_e), (whole.gcn_v.clone(), whole.gcn_e.clone()));
        assert_eq!(resumed.choices, whole.choices);
    }
}

#[test]
fn training_does_not_go_on_under_other_conditions() {
    let (embeddings, labels) = faces();
    let params = quick_model();
    let mut last = None;
    let mut save = |unfinished: &Unfinished| {
        last = Some(unfinished.clone());
        Ok(())
    };
    train_model(&embeddings, &labels, &params, None, &mut save).unwrap();
    let message = |labels: &[i64], params: &TrainParams| {
        train_model(&embeddings, labels, params, last.clone(), &mut |_| Ok(())).unwrap_err().to_string()
    };
    let mut others = labels.clone();
    others[0] += 1000;
    assert!(message(&others, &params).starts_with("training to resume (labels): expected "));
    let mut changed = params.clone();
    changed.gcn_v.fit.seed = 9;
    assert!(message(&labels, &changed).starts_with("training to resume (parameters of GCN-V)"));
    // The same rows on another graph of as many neighbours.
    let (graph, _) = kinfolk::knn_graph(&embeddings, &ten_neighbours(), &()).unwrap();
    let (n, k) = (graph.len(), graph.k());
    let (ids, mut similarities) = graph.into_parts();
    similarities.iter_mut().for_each(|similarity| *similarity *= 0.5);
    let other = kinfolk::KnnGraph::from_parts(n, k, ids, similarities, "other").unwrap();
    let problem = Problem::new(&embeddings).with_labels(&labels).unwrap().with_graph(&other).unwrap();
    let resumed = super::train(&problem, &params, last.clone(), &mut |_| Ok(()), &Context::default());
    let message = resumed.unwrap_err().to_string();
    assert!(message.starts_with("training to resume (graph): expected "), "{message}");
}

#[test]
fn finished_and_damaged_files_are_not_gone_on_from() {
    let (embeddings, labels) = faces();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.safetensors");
    let mut save = |unfinished: &Unfinished| unfinished.write(&path);
    let whole = train_model(&embeddings, &labels, &quick_model(), None, &mut save).unwrap().model;
    let bytes = std::fs::read(&path).unwrap();
    for end in [0, 7, 100, bytes.len() / 2, bytes.len() - 1] {
        assert!(ModelFile::parse(&bytes[..end], "m").and_then(Unfinished::from_file).is_err());
    }
    let text = String::from_utf8_lossy(&bytes);
    let at = text.find("\\\"best\\\":").expect("the best epoch");
    let mut damaged = bytes.clone();
    damaged[at + 3] = b'p';
    let message = ModelFile::parse(&damaged, "m").and_then(Unfinished::from_file).unwrap_err().to_string();
    assert!(message.starts_with("m (metadata, training): expected what kinfolk writes"), "{message}");
    whole.write(&path).unwrap();
    let message = Unfinished::read(&path).unwrap_err().to_string();
    assert!(
        message.ends_with(
            "expected a model whose training was interrupted, found one whose training is finished"
        )
    );
}

/// All weights in the order of `bench/network_fixtures.py`: the slopes before the output layer.
fn in_torch_order(mut network: GraphNetwork) -> Vec<f64> {
    let mut all = network.values_mut();
    let slopes = all.pop().unwrap();
    all.insert(all.len() - 2, slopes);
    all.into_iter().flatten().map(|&mut value| f64::from(value)).collect()
}

/// As far as 16 of 24 bits of each factor go, where products are by tiles of bfloat16.
#[test]
fn steps_are_those_of_pytorch() {
    for (name, loss) in [
        ("gcn_v_1", Loss::Squares),
        ("gcn_v_3", Loss::Squares),
        ("gcn_e_1", Loss::Squares),
        ("gcn_e_2", Loss::CrossEntropy),
    ] {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torch").join(name);
        let arrays = fixture::expected(&directory);
        let floats = |name: &str| arrays[name].iter().map(|&v| v as f32).collect::<Vec<f32>>();
        let weights = crate::read_checkpoint(&directory.join("network.pth")).unwrap();
        let offsets = arrays["offsets"].iter().map(|&v| v as usize).collect();
        let columns = arrays["columns"].iter().map(|&v| v as u32).collect();
        let operator = Operator::new(Sparse { offsets, columns, values: floats("values") });

        let super::FitState { now: weights, velocities, .. } = super::FitState::new(weights);
        let mut sgd = super::sgd::Sgd { momentum: 0.9, weight_decay: 1e-5, weights, velocities };
        let targets = floats("targets");
        let readout = Readout::All;
        let batch =
            Batch { joined: floats("joined"), operators: Operators::Same(operator), readout, targets };
        for step in ["step1", "step2"] {
            let (gradients, sum) = pass::gradients(&sgd.weights, &batch, loss);
            if step == "step1" {
                assert!((sum / batch.targets.len() as f64 - arrays["loss"][0]).abs() < 1e-5, "{name}");
            }
            sgd.step(gradients, 0.1);
            if step == "step1" {
                // After one step the velocity is the gradient and the pull of the decay.
                let found = in_torch_order(sgd.velocities.clone());
                let worst = fixture::largest_difference(&found, &arrays["gradient"]);
                assert!(worst < 2e-5, "{name}: gradients differ by {worst}");
            }
            let worst = fixture::largest_difference(&in_torch_order(sgd.weights.clone()), &arrays[step]);
            assert!(worst < 5e-6, "{name}: weights after {step} differ by {worst}");
        }
    }
}

/// Both networks from the same weights by the same steps, all rows in each, and then the clusters of other identities.
#[test]
fn training_ends_where_that_of_pytorch_does() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torch/end_to_end");
    let expected = fixture::expected(&directory);
    let synth = SynthParams { identities: 40, dim: 32, seed: 7, ..SynthParams::default() };
    let synth = Synth::new(synth).unwrap();
    let (train, test) = synth.split(0.5).unwrap();
    let (features, labels) = train.to_embeddings().unwrap();
    let search = KnnParams { k: 20, ..KnnParams::default() };
    let fit = |losses: &str| FitParams {
        epochs: expected[losses].len(),
        batch: usize::MAX,
        rotate: false,
        validation: 0.0,
        ..FitParams::default()
    };
    let from = |name: &str| super::FitState::new(crate::read_checkpoint(&directory.join(name)).unwrap());
    let same_losses = |name: &str, trained: &FittedNetwork| {
        for (step, (epoch, expected)) in trained.history.iter().zip(&expected[name]).enumerate() {
            let found = epoch.training_loss;
            assert!((found - expected).abs() < 1e-4 + 1e-3 * expected, "{name} {step}: {found} {expected}");
        }
    };

    let (graph, _) = knn_graph(&features, &search, &()).unwrap();
    let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
    let params =
        GcnVParams { convolutions: vec![64], hidden: 64, fit: fit("losses_v"), ..Default::default() };
    let (mut ignore, mut ignore_too) = (|_: &mut super::FitState| Ok(()), |_: &mut super::FitState| Ok(()));
    let run = FitRun { resumed: Some(from("gcn_v.pth")), after_epoch: &mut ignore, progress: &() };
    let gcn_v = fit_gcn_v(&features, &labels, &graph, &adjacency, &params, run).unwrap();
    same_losses("losses_v", &gcn_v);

    let estimate = crate::vertex_confidence(&gcn_v.network, &features, &adjacency, true, &()).unwrap();
    let rebuilt = crate::apply::rebuilt_features(estimate.embeddings, 64).unwrap();
    let (graph, _) = knn_graph(&rebuilt, &search, &()).unwrap();
    let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
    let convolutions = vec![32, 32, 16, 16];
    let params =
        GcnEParams { rho: 0.5, convolutions, hidden: 16, fit: fit("losses_e"), ..Default::default() };
    let confidence = &estimate.confidence;
    let run = FitRun { resumed: Some(from("gcn_e.pth")), after_epoch: &mut ignore_too, progress: &() };
    let gcn_e = fit_gcn_e(&rebuilt, &labels, &graph, &adjacency, confidence, &params, run).unwrap();
    same_losses("losses_e", &gcn_e);

    let (features, labels) = test.to_embeddings().unwrap();
    let tau = expected["tau"][0] as f32;
    let config = crate::GcnConfig { k: 20, k_rebuild: 20, tau, tau_v: tau, rho: 0.5, ..Default::default() };
    let model = crate::GcnModel { gcn_v: gcn_v.network, gcn_e: Some(gcn_e.network), config };
    for (name, method) in
        [("scores_v", crate::Gcn::vertex_only(model.clone())), ("scores_ve", crate::Gcn::new(model.clone()))]
    {
        let problem = Problem::new(&features).with_k(Some(20)).unwrap();
        let found = method.apply(&problem, &Context::default()).unwrap().clustering;
        let Reason::Tree(tree) = &found.reason else { panic!("no tree") };
        let both = tree.links.confidence().iter().zip(&expected["confidence"]);
        let worst = both.fold(0.0f64, |worst, (&a, b)| worst.max((f64::from(a) - b).abs()));
        assert!(worst < 0.005, "confidence differs by {worst}");
        let scores = kinfolk::metrics::evaluate(&labels, &found.labels).unwrap();
        for (found, expected) in [scores.pairwise.f, scores.bcubed.f].iter().zip(&expected[name]) {
            assert!((100.0 * found - expected).abs() < 0.3, "{name}: {found} {expected}");
        }
    }
}
