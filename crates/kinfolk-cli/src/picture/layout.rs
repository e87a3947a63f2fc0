//! A map of a kNN graph: neighbours attract, random rows repel, as in LargeVis (Tang et al., 2016).
//!
//! Stochastic descent on sum log(1 / (1 + |y_i - y_j|^2)) over edges and sum log(1 - 1 / (1 + |y_i - y_j|^2)) over
//! random pairs; O(N K) for each of [`ROUNDS`] rounds, one thread, the same picture for the same seed.

use kinfolk::KnnGraph;
use kinfolk::random::{Purpose, Stream};

const ROUNDS: usize = 150;
/// Neighbours that attract.
const NEAREST: usize = 12;
/// Random others that repel, for each edge.
const REPELLED: usize = 4;

pub fn layout(graph: &KnnGraph, seed: u64) -> Vec<[f32; 2]> {
    let n = graph.len();
    let mut stream = Stream::new(seed, Purpose::Picture, 0, 0);
    let mut random = move |end: usize| stream.below(end);
    let mut at: Vec<[f32; 2]> =
        (0..n).map(|_| [0, 1].map(|_| random(20_001) as f32 / 1000.0 - 10.0)).collect();
    for round in 0..ROUNDS {
        let rate = 1.0 - round as f32 / ROUNDS as f32;
        for i in 0..n {
            for &j in graph.neighbours(i).0.iter().take(NEAREST) {
                let j = j as usize;
                let (d, d2) = difference(at[i], at[j]);
                let pull = -2.0 / (1.0 + d2);
                step(&mut at, i, d, rate * pull);
                step(&mut at, j, d, -rate * pull);
                for _ in 0..REPELLED {
                    let j = random(n);
                    if j != i {
                        let (d, d2) = difference(at[i], at[j]);
                        step(&mut at, i, d, rate * 2.0 / ((0.01 + d2) * (1.0 + d2)));
                    }
                }
            }
        }
    }
    at
}

fn difference(a: [f32; 2], b: [f32; 2]) -> ([f32; 2], f32) {
    let d = [a[0] - b[0], a[1] - b[1]];
    (d, d[0] * d[0] + d[1] * d[1])
}

/// Moves point `i` along `d` by a limited distance, so that a single pair has a limited effect.
fn step(at: &mut [[f32; 2]], i: usize, d: [f32; 2], amount: f32) {
    for (at, d) in at[i].iter_mut().zip(d) {
        *at += (amount * d).clamp(-2.0, 2.0) * 0.25;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cliques_lie_apart() {
        let ids = (0..20u32).flat_map(|i| (0..20).filter(move |&j| j != i && j / 10 == i / 10)).collect();
        let graph = KnnGraph::from_parts(20, 9, ids, vec![0.9; 180], "test").unwrap();
        let at = layout(&graph, 0);
        let distance = |i: usize, j: usize| difference(at[i], at[j]).1.sqrt();
        let within = (1..10).map(|j| distance(0, j)).fold(0.0, f32::max);
        let between = (10..20).map(|j| distance(0, j)).fold(f32::INFINITY, f32::min);
        assert!(within < between, "{within} {between}");
        assert_eq!(at, layout(&graph, 0));
    }

    #[test]
    fn one_vertex_has_a_place() {
        let graph = KnnGraph::from_parts(1, 0, vec![], vec![], "test").unwrap();
        assert!(layout(&graph, 0)[0].iter().all(|v| v.is_finite()));
    }
}
