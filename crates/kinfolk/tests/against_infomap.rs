//! Compares kinfolk with the Infomap program (`data/make_infomap.py`) on the same small graphs.

use kinfolk::stages::{Flow, MapParams, WeightedGraph, codelength, map_equation};
use std::str::FromStr;

fn numbers<T: FromStr>(line: &str) -> Vec<T> {
    line.split(' ').map(|word| word.parse().ok().expect(word)).collect()
}

#[test]
fn codelengths_are_those_of_infomap() {
    let lines: Vec<&str> = include_str!("data/map_equation.txt").lines().collect();
    for (case, lines) in lines.chunks(5).enumerate() {
        let header: Vec<f64> = numbers(lines[0]);
        let sources: Vec<usize> = numbers(lines[1]);
        // Edges are sorted by where they begin.
        let offsets =
            (0..=header[0] as usize).map(|i| sources.partition_point(|&source| source < i)).collect();
        let graph = WeightedGraph::from_parts(offsets, numbers(lines[2]), numbers(lines[3])).unwrap();
        let labels: Vec<i64> = numbers(lines[4]);
        for (flow, expected) in [(Flow::Undirected, &header[1..3]), (Flow::Directed, &header[3..5])] {
            let of_labels = codelength(&graph, flow, &labels).unwrap();
            assert!(
                (of_labels / expected[0] - 1.0).abs() < 1e-6,
                "{case} {flow:?}: {of_labels}, not {expected:?}"
            );

            let best = |seed| {
                let found =
                    map_equation(&graph, &MapParams { flow, seed, ..MapParams::default() }, &()).unwrap();
                assert_eq!(found.codelength, codelength(&graph, flow, &found.labels).unwrap());
                found.codelength
            };
            // Infomap's is the best of 20.
            let least = (0..20).map(best).fold(f64::INFINITY, f64::min);
            assert!(least < expected[1] * 1.001, "{case} {flow:?}: {least}, not {expected:?}");
        }
    }
}
