//! Compares kinfolk with packages from PyPI (`data/make_peers.py`) on the same small sets.

use kinfolk::stages::number_by_size;
use kinfolk::{Clustering, Context, Embeddings, KnnParams, Problem, Search, knn_graph};
use kinfolk_baselines::METHODS;
use std::str::FromStr;

fn numbers<T: FromStr>(line: &str) -> Vec<T> {
    line.split(' ').map(|word| word.parse().ok().expect(word)).collect()
}

fn run(name: &str, given: &[(&str, &str)], rows: &Embeddings, k: usize) -> Clustering {
    let mut method = METHODS.iter().map(|make| make()).find(|method| method.info().name == name).expect(name);
    let more = match name {
        "kmeans" => Some(("restarts", "8")),
        "dbscan" | "dbscan-knn" | "hdbscan" | "optics" => Some(("noise", "keep")),
        _ => None,
    };
    for (parameter, value) in given.iter().copied().chain(more) {
        method.parameters_mut().set(parameter, value).unwrap();
    }
    let params = KnnParams { k, search: Search::Exact, ..Default::default() };
    let graph = knn_graph(rows, &params, &()).unwrap().0;
    let problem = Problem::new(rows).with_graph(&graph).unwrap();
    method.run(&problem, &Context::default()).unwrap()
}

/// Names for clusters that do not depend on how they were numbered; noise stays noise.
fn numbered(labels: &[i64]) -> Vec<i64> {
    let clustered: Vec<i64> = labels.iter().copied().filter(|&label| label >= 0).collect();
    let mut renamed = number_by_size(&clustered).into_iter();
    labels.iter().map(|&label| if label < 0 { -1 } else { renamed.next().unwrap() }).collect()
}

/// Every row of noise as a cluster of its own.
fn alone(labels: &[i64]) -> Vec<i64> {
    labels.iter().zip(1000..).map(|(&label, own)| if label < 0 { own } else { label }).collect()
}

#[test]
fn clusters_are_those_of_the_peers() {
    let mut lines = include_str!("data/peers.txt").lines();
    let mut cases = 0;
    while let Some(header) = lines.next() {
        let header: Vec<usize> = numbers(header);
        let [n, dim, k] = header[..] else { panic!("{header:?}") };
        let data: Vec<f32> = lines.by_ref().take(n).flat_map(numbers).collect();
        let rows = Embeddings::from_rows(data, dim, "peers.txt").unwrap();
        while let Some(case) = lines.next().filter(|&line| line != "-") {
            let mut words = case.split(' ');
            let method = words.next().unwrap();
            let given: Vec<(&str, &str)> = words.map(|word| word.split_once('=').unwrap()).collect();
            let expected: Vec<i64> = numbers(lines.next().unwrap());
            let found = run(method, &given, &rows, k);
            let (found, expected) = (numbered(&found.labels), numbered(&expected));
            if method == "hdbscan" {
                // Many edges of the spanning tree have equal lengths, so implementations may choose different ones.
                let scores = kinfolk::metrics::evaluate(&alone(&expected), &alone(&found)).unwrap();
                assert!(scores.bcubed.f > 0.95, "{case}: {scores:?}");
            } else {
                assert_eq!(found, expected, "{case}");
            }
            cases += 1;
        }
    }
    assert_eq!(cases, 57);
}
