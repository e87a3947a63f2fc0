//! The layers against PyTorch (`torch.txt`, by `bench/recogniser_fixtures.py`) and against slow twins, and a whole small
//! experiment.

use super::distort::distort;
use super::identify::hit_rate;
use super::images::Images;
use super::layers::{Layer, Shape, Window};
use super::margin::Head;
use super::recogniser::{DIM, Recogniser, What, normalise, normalise_backward, stream};
use super::train::{Labels, Start, train};
use std::fs::File;
use std::path::Path;

/// An array of `torch.txt`.
fn torch(name: &str) -> Vec<f32> {
    let line = include_str!("torch.txt").lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
    line.split(' ').skip(1).map(|value| value.parse().unwrap()).collect()
}

fn assert_close(found: &[f32], name: &str) {
    let expected = torch(name);
    assert_eq!(found.len(), expected.len(), "{name}");
    let largest = expected.iter().fold(0f32, |largest, value| largest.max(value.abs()));
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() <= 1e-4 * largest, "{name}: expected {expected}, found {found}");
    }
}

fn torch_layer() -> Layer {
    let window = Window { input: Shape { side: 7, channels: 2 }, size: 3, stride: 2, padding: 1 };
    let (scale, shift) = (torch("scale"), torch("shift"));
    let (mean, variance) = (vec![0.0; 4], vec![1.0; 4]);
    Layer { window, rectified: true, weight: torch("weight"), scale, shift, mean, variance }
}

#[test]
fn a_layer_agrees_with_pytorch_forwards_and_backwards() {
    let mut layer = torch_layer();
    let trace = layer.forward(&torch("images"));
    assert_close(&trace.output, "output");
    layer.average(&trace);
    assert_close(&layer.mean, "mean");
    assert_close(&layer.variance, "variance");
    let (gradient, by_images) = layer.backward(trace, torch("by_output"), true);
    assert_close(&gradient.weight, "by_weight");
    assert_close(&gradient.scale, "by_scale");
    assert_close(&gradient.shift, "by_shift");
    assert_close(&by_images, "by_images");
    assert_close(&layer.apply(&torch("images")), "applied");
}

#[test]
fn the_margin_softmax_agrees_with_pytorch() {
    let mut embeddings = torch("margin_embeddings");
    let lengths = normalise(&mut embeddings, DIM);
    let targets: Vec<u32> = torch("margin_targets").iter().map(|&target| target as u32).collect();
    let loss = Head { weight: torch("margin_weight") }.loss(&embeddings, &targets);
    assert_close(&[loss.sum as f32], "margin_loss");
    assert_close(&loss.by_weight, "margin_by_weight");
    let mut by_embeddings = loss.by_embeddings;
    normalise_backward(&embeddings, &lengths, &mut by_embeddings, DIM);
    assert_close(&by_embeddings, "margin_by_embeddings");
}

#[test]
fn windows_are_unfolded_as_by_definition() {
    let mut random = stream(1, What::Weights, 0);
    for (side, channels, size, stride, padding) in
        [(5, 1, 3, 1, 1), (7, 3, 5, 2, 2), (4, 2, 4, 1, 0), (6, 1, 1, 1, 0), (9, 2, 3, 3, 0)]
    {
        let window = Window { input: Shape { side, channels }, size, stride, padding };
        let images: Vec<f32> = (0..2 * window.input.len()).map(|_| random.rough_normal()).collect();
        let (places, mut expected) = (window.places(), Vec::new());
        for image in 0..2 {
            for (place, at) in
                (0..places * places).flat_map(|place| (0..size * size).map(move |at| (place, at)))
            {
                let [y, x] = [place / places * stride + at / size, place % places * stride + at % size];
                for channel in 0..channels {
                    let inside = [y, x].iter().all(|v| (padding..side + padding).contains(v));
                    let from = || ((image * side + y - padding) * side + x - padding) * channels + channel;
                    expected.push(if inside { images[from()] } else { 0.0 });
                }
            }
        }
        assert_eq!(window.unfold(&images), expected, "{window:?}");
        // Folding is the transpose of unfolding: <unfold(a), b> = <a, fold(b)>.
        let other: Vec<f32> = expected.iter().map(|_| random.rough_normal()).collect();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        let (left, right) = (dot(&expected, &other), dot(&images, &window.fold(&other)));
        assert!((left - right).abs() < 1e-3, "{window:?}: {left} and {right}");
    }
}

#[test]
fn a_trial_is_a_hit_if_the_mate_is_nearer_than_all_distractors() {
    let row = |x: f32, y: f32| {
        let mut row = vec![0.0; DIM];
        (row[0], row[1]) = (x, y);
        row
    };
    let probes = [row(1.0, 0.0), row(0.8, 0.6), row(0.0, 1.0), row(-0.6, 0.8)].concat();
    // The similarity of both mates is 0.8.
    let identities = [0, 0, 1, 1];
    assert_eq!(hit_rate(&probes, &identities, &row(0.0, -1.0)), 1.0);
    // Nearer than their mates to the second and the third probe: 0.94 and 0.83.
    let distractor = row(0.5547, 0.83205);
    assert_eq!(hit_rate(&probes, &identities, &distractor), 0.5);
}

#[test]
fn rotations_are_other_identities_of_the_same_group() {
    let folder = tempfile::tempdir().unwrap();
    drawings(folder.path(), 2, 3);
    let images = Images::read(folder.path()).unwrap();
    let (count, side) = (images.len(), images.side);
    let first = images.pixels(1).to_vec();
    let rotated = images.rotated();
    assert_eq!(rotated.len(), 4 * count);
    assert_eq!(rotated.group_count(), 2);
    assert_eq!(rotated.labels.iter().max(), Some(&7));
    assert_eq!(rotated.groups[count..2 * count], rotated.groups[..count]);
    // A quarter turn against the clock: the last column becomes the first row.
    let turned = rotated.pixels(count as u32 + 1);
    for (x, &value) in turned[..side].iter().enumerate() {
        assert_eq!(value, first[x * side + side - 1]);
    }
    // Four quarter turns are none.
    let last = rotated.pixels(3 * count as u32 + 1);
    let again: Vec<u8> = (0..side * side).map(|at| last[at % side * side + side - 1 - at / side]).collect();
    assert_eq!(again, first);
}

#[test]
fn images_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: &Path| Images::read(path).err().unwrap().to_string();
    assert!(error(folder.path()).contains("expected folders of .png files"));
    std::fs::create_dir(folder.path().join("a")).unwrap();
    std::fs::write(folder.path().join("a/broken.png"), "no picture").unwrap();
    let message = error(folder.path());
    assert!(message.contains("broken.png") && message.contains("a readable PNG file"), "{message}");
}

#[test]
fn distorted_images_keep_their_ink_and_differ() {
    let mut image = vec![0u8; 28 * 28];
    (8..20).for_each(|y| image[y * 28 + 14] = 255);
    let of = |index: u64| {
        let mut out = vec![0.0; 28 * 28];
        distort(&image, 28, &mut stream(3, What::Distortion, index), &mut out);
        out
    };
    for index in 0..20 {
        let ink: f32 = of(index).iter().sum();
        assert!((7.0..18.0).contains(&ink), "{ink}");
    }
    assert_ne!(of(0), of(1));
    assert_eq!(of(2), of(2));
}

#[test]
fn training_learns_and_does_not_depend_on_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    drawings(folder.path(), 12, 10);
    let images = Images::read(folder.path()).unwrap();
    let train_on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (rows, classes) = ((0..images.len() as u32).collect(), images.labels.clone());
        let sets = [Labels { images: &images, rows, classes }];
        pool.install(|| train(Start::Random(images.side), &sets, 30, 7, &()).unwrap())
    };
    let (one, two) = (train_on(1), train_on(2));
    assert!(one == two);
    // The mean similarity of images of one identity, less that of different ones.
    let separation = |recogniser: &Recogniser| {
        let rows = recogniser.embed(&images.gather(&(0..images.len() as u32).collect::<Vec<_>>()));
        let row = |i: usize| &rows[i * DIM..][..DIM];
        let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
        for (i, j) in (0..images.len()).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let same = usize::from(images.labels[i] == images.labels[j]);
            sums[same] += row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum::<f32>();
            counts[same] += 1.0;
        }
        sums[1] / counts[1] - sums[0] / counts[0]
    };
    let before = separation(&Recogniser::new(images.side, &mut stream(7, What::Weights, 0)));
    let after = separation(&one);
    assert!(after > before + 0.1 && after > 0.5, "{before} -> {after}");
}

/// Writes drawings as PNG files, dark on white: three strokes for each identity, shaken in each image.
pub fn drawings(folder: &Path, identities: usize, each: usize) {
    const SIDE: usize = 42;
    for identity in 0..identities {
        let directory = folder.join(format!("{identity:03}"));
        std::fs::create_dir(&directory).unwrap();
        let mut random = stream(11, What::Parts, identity as u64);
        let strokes: Vec<[f32; 4]> =
            (0..3).map(|_| [(); 4].map(|()| 6.0 + 30.0 * random.uniform_f32())).collect();
        for number in 0..each {
            let mut pixels = vec![255u8; SIDE * SIDE];
            for stroke in &strokes {
                let [a, b, c, d] = stroke.map(|place| place + 4.0 * (random.uniform_f32() - 0.5));
                for step in 0..=60 {
                    let t = step as f32 / 60.0;
                    let (x, y) = (a + t * (c - a), b + t * (d - b));
                    for (dx, dy) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                        pixels[(y as usize + dy) * SIDE + x as usize + dx] = 0;
                    }
                }
            }
            let file = File::create(directory.join(format!("{number}.png"))).unwrap();
            let mut encoder = png::Encoder::new(file, SIDE as u32, SIDE as u32);
            encoder.set_color(png::ColorType::Grayscale);
            encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
        }
    }
}
