//! The same small sets through programs from PyPI (`data/make_peers.py`) and through kinfolk.

use kinfolk::{Embeddings, KnnParams, Search, knn_graph, number_by_size};
use kinfolk_baselines::*;
use std::collections::HashMap;
use std::str::FromStr;

fn numbers<T: FromStr>(line: &str) -> Vec<T> {
    line.split(' ').map(|word| word.parse().ok().expect(word)).collect()
}

/// The parameters of a case.
struct Given<'a>(HashMap<&'a str, &'a str>);

impl Given<'_> {
    fn get<T: FromStr>(&self, name: &str) -> T {
        self.0[name].parse().ok().expect(name)
    }
}

fn run(method: &str, given: &Given, rows: &Embeddings, k: usize) -> Clusters {
    let params = KnnParams { k, search: Search::Exact, ..Default::default() };
    let graph = knn_graph(rows, &params, &()).unwrap().0;
    let noise = Noise::Kept;
    let found = match method {
        "kmeans" => {
            let params = KmeansParams { clusters: given.get("clusters"), restarts: 8, ..Default::default() };
            kmeans(rows, &params, &())
        }
        "minibatch-kmeans" => {
            let (clusters, batch) = (given.get("clusters"), given.get("batch"));
            minibatch_kmeans(rows, &MinibatchKmeansParams { clusters, batch, ..Default::default() }, &())
        }
        "hac" => {
            let linkage = match given.0["linkage"] {
                "single" => Linkage::Single,
                "complete" => Linkage::Complete,
                "average" => Linkage::Average,
                _ => Linkage::Ward,
            };
            let cut = if given.0.contains_key("clusters") {
                Cut::Clusters(given.get("clusters"))
            } else {
                Cut::Distance(given.get("distance"))
            };
            hac(rows, &HacParams { linkage, cut }, &())
        }
        "dbscan" => dbscan(rows, &DbscanParams { eps: given.get("eps"), min: given.get("min"), noise }, &()),
        "dbscan-knn" => {
            let (th, eps, min) = (given.get("th"), given.get("eps"), given.get("min"));
            dbscan_knn(&graph, &DbscanKnnParams { th, eps, min, noise }, &())
        }
        "hdbscan" => {
            let selection = match given.0["selection"] {
                "leaves" => Selection::Leaves,
                _ => Selection::Worth,
            };
            let (min_cluster_size, min_samples) =
                (given.get("min_cluster_size"), Some(given.get("min_samples")));
            hdbscan(rows, &HdbscanParams { min_cluster_size, min_samples, selection, noise }, &())
        }
        "meanshift" => {
            let seeds = if given.0["seeds"] == "bins" { Seeds::Bins } else { Seeds::Rows };
            let bandwidth = Some(given.get("bandwidth"));
            meanshift(rows, &MeanshiftParams { bandwidth, seeds, ..Default::default() }, &())
        }
        "aro" => aro(&graph, &AroParams { threshold: given.get("threshold") }, &()),
        "cdp" => {
            let (th, max_size, step) = (given.get("th"), given.get("max_size"), given.get("step"));
            cdp(&graph, &CdpParams { th, max_size, step, ..Default::default() }, &())
        }
        "spectral" => {
            let assign = if given.0["assign"] == "kmeans" { Assign::Kmeans } else { Assign::Discretise };
            spectral(&graph, &SpectralParams { clusters: given.get("clusters"), assign, seed: 0 }, &())
        }
        "infomap" => infomap(&graph, &InfomapParams { th: given.get("th"), ..Default::default() }, &()),
        "chinese-whispers" => {
            let (th, iterations) = (given.get("th"), given.get("iterations"));
            let params = ChineseWhispersParams { th, iterations, ..Default::default() };
            chinese_whispers(&graph, &params, &())
        }
        other => panic!("{other}"),
    };
    found.unwrap()
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
            let given = Given(words.map(|word| word.split_once('=').unwrap()).collect());
            let expected: Vec<i64> = numbers(lines.next().unwrap());
            let found = run(method, &given, &rows, k);
            let (found, expected) = (numbered(&found.labels), numbered(&expected));
            if method == "hdbscan" {
                // Many edges of its spanning tree are as long as others, and which of them are taken is anybody's choice.
                let scores = kinfolk::metrics::evaluate(&alone(&expected), &alone(&found)).unwrap();
                assert!(scores.bcubed.f > 0.95, "{case}: {scores:?}");
            } else {
                assert_eq!(found, expected, "{case}");
            }
            cases += 1;
        }
    }
    assert_eq!(cases, 51);
}
