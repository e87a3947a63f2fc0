//! Training through WebGPU against training on the processor. Any adapter will do, also one of software such as Mesa's
//! llvmpipe; without one these tests are skipped.
//!
//! `cargo test -p kinfolk-nn --features wgpu --lib graphics -- --nocapture --test-threads 1` prints how far the two are apart.

use super::super::Compute;
use super::*;

/// Where products are by tiles of bfloat16, the processor has 16 of 24 bits of each factor. Elsewhere a
/// twentieth of this would do.
const TOLERANCE: f64 = 2e-4;

/// Whether there is an adapter; says so if there is none.
fn there_is_a_device() -> bool {
    let refused = Compute::Wgpu.validate().err();
    if let Some(error) = &refused {
        eprintln!("skipped: {error}");
    }
    refused.is_none()
}

/// The largest difference, as a share of the largest value. A hundredth is added to it, because the gradient of a bias is a
/// sum of terms that may cancel.
fn apart(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().all(|v| v.is_finite()));
    let largest = expected.iter().fold(0.0f32, |largest, v| largest.max(v.abs()));
    let worst = found.iter().zip(expected).fold(0.0f32, |worst, (a, b)| worst.max((a - b).abs()));
    f64::from(worst / (largest + 0.01))
}

/// Outputs, loss and the gradient by each parameter of one batch: the largest difference of each.
fn apart_in_a_batch(network: &GraphNetwork, batch: &Batch, loss: Loss) -> [f64; 3] {
    let outputs = Compute::Wgpu.outputs(network, batch).unwrap();
    let (mut found, sum) = Compute::Wgpu.gradients(network, batch, loss).unwrap();
    let (mut expected, expected_sum) = pass::gradients(network, batch, loss);
    let parameters = found.values_mut().into_iter().zip(expected.values_mut());
    let gradients = parameters.map(|(found, expected)| apart(found, expected)).fold(0.0, f64::max);
    [apart(&outputs, &pass::outputs(network, batch)), (sum / expected_sum - 1.0).abs(), gradients]
}

fn network(dim: usize, convolutions: &[usize], hidden: usize, loss: Loss) -> GraphNetwork {
    let mut network = initial(&Shape { dim, convolutions, hidden, outputs: loss.outputs() }, 3);
    network.slopes.iter_mut().enumerate().for_each(|(i, slope)| *slope = 0.1 * (i % 7) as f32 - 0.2);
    network
}

#[test]
fn batches_give_what_they_give_on_the_processor() {
    if !there_is_a_device() {
        return;
    }
    let (_, operator, x) = example(9, 4);
    let [second, third] = [8, 9].map(|seed| example_of(seed, 9, 4).1);
    let mut worst = [0.0f64; 3];
    for loss in [Loss::Squares, Loss::CrossEntropy] {
        for convolutions in [&[5][..], &[5, 7], &[5, 7, 3], &[5, 7, 3, 3]] {
            for readout in readouts() {
                let mut batch = example_batch(&operator, &x, readout);
                if loss == Loss::CrossEntropy {
                    batch.targets.iter_mut().enumerate().for_each(|(i, target)| *target = (i % 2) as f32);
                }
                if convolutions.len() == 3 {
                    batch.operators = Operators::Each(vec![second.clone(), third.clone()]);
                }
                let found = apart_in_a_batch(&network(4, convolutions, 6, loss), &batch, loss);
                assert!(found.iter().all(|&by| by < TOLERANCE), "{loss:?} {convolutions:?}: {found:?}");
                worst = std::array::from_fn(|i| worst[i].max(found[i]));
            }
        }
    }
    let [outputs, sum, gradients] = worst;
    eprintln!("small batches: outputs {outputs:.1e}, loss {sum:.1e}, gradients {gradients:.1e} apart");
}

/// Of the widths that networks have in use, whose products are divided into tiles.
#[test]
fn batches_of_wide_networks_give_what_they_give_on_the_processor() {
    if !there_is_a_device() {
        return;
    }
    let (_, operator, x) = example(70, 40);
    for (convolutions, loss) in [
        (&[512][..], Loss::Squares),
        (&[128, 128], Loss::Squares),
        (&[128, 128, 64, 64], Loss::Squares),
        (&[128, 128, 64, 64], Loss::CrossEntropy),
    ] {
        let mut batch = batch(&operator, &x);
        batch.targets.iter_mut().enumerate().for_each(|(i, target)| *target = (i % 2) as f32);
        let found = apart_in_a_batch(&network(40, convolutions, 128, loss), &batch, loss);
        let [outputs, sum, gradients] = found;
        eprintln!(
            "{convolutions:?}, {loss:?}: outputs {outputs:.1e}, loss {sum:.1e}, gradients {gradients:.1e} apart"
        );
        assert!(found.iter().all(|&by| by < TOLERANCE), "{loss:?} {convolutions:?}: {found:?}");
    }
}

/// Compares every epoch of two histories. Differences in rounding grow from step to step where a network learns.
fn same_losses(what: &str, found: &FittedNetwork, expected: &FittedNetwork) {
    assert_eq!(found.history.len(), expected.history.len());
    let [first, .., last] = &expected.history[..] else { panic!("too few epochs") };
    assert!(last.training_loss < first.training_loss, "{what}: what does not learn is easily equal");
    let mut worst = 0.0f64;
    for (epoch, (found, expected)) in found.history.iter().zip(&expected.history).enumerate() {
        let both = [
            (found.training_loss, expected.training_loss),
            (found.validation_loss.unwrap(), expected.validation_loss.unwrap()),
        ];
        for (found, expected) in both {
            let by = (found / expected - 1.0).abs();
            assert!(by < 2e-2, "{what}, epoch {}: {found} {expected}", epoch + 1);
            worst = worst.max(by);
        }
    }
    let seconds = |trained: &FittedNetwork| {
        let mut all: Vec<f64> = trained.history.iter().map(|epoch| epoch.seconds).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let [card, processor] = [seconds(found), seconds(expected)];
    let losses: Vec<f64> = found.history.iter().map(|epoch| epoch.training_loss).collect();
    eprintln!("{what}: losses {losses:.4?}, {worst:.1e} apart, {card:.3} s and {processor:.3} s an epoch");
}

#[test]
fn epochs_have_the_losses_of_the_processor() {
    if !there_is_a_device() {
        return;
    }
    for (convolutions, sampling) in [
        (&[32][..], Sampling::default()),
        (&[32, 16], Sampling::default()),
        (&[32, 16, 16], Sampling::Vertices(100)),
    ] {
        let mut params = GcnVParams { sampling, ..quick(convolutions) };
        params.fit.epochs = 6;
        let expected = train(&params);
        params.fit.compute = Compute::Wgpu;
        same_losses(&format!("GCN-V {convolutions:?}, {sampling:?}"), &train(&params), &expected);
    }
    let (embeddings, labels) = faces();
    let (graph, _) = knn_graph(&embeddings, &ten_neighbours(), &()).unwrap();
    let confidence = u_weight(&graph, kinfolk::stages::DEFAULT_RADIUS).unwrap();
    for loss in [Loss::Squares, Loss::CrossEntropy] {
        let mut params = GcnEParams { loss, ..quick_gcn_e() };
        params.fit = FitParams { epochs: 6, rotate: false, ..params.fit };
        let [expected, found] = [Compute::Cpu, Compute::Wgpu].map(|compute| {
            params.fit.compute = compute;
            train_gcn_e(&embeddings, &labels, &graph, &confidence, &params, &()).unwrap()
        });
        same_losses(&format!("GCN-E, {loss:?}"), &found, &expected);
    }
}

/// In a process of its own, which is told to use an adapter that no machine has.
#[test]
fn without_a_device_training_is_refused() {
    const CHILD: &str = "KINFOLK_TEST_WITHOUT_A_DEVICE";
    if std::env::var_os(CHILD).is_some() {
        let mut params = quick(&[8]);
        params.fit.compute = Compute::Wgpu;
        let message = params.validate().unwrap_err().to_string();
        assert_eq!(
            message,
            "device: expected a graphics card with a driver for Vulkan, Metal or DirectX, found none"
        );
        return;
    }
    let name = "training::tests::graphics::without_a_device_training_is_refused";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(CHILD, "1")
        .env("CUBECL_WGPU_DEFAULT_DEVICE", "DiscreteGpu(1000)")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}
