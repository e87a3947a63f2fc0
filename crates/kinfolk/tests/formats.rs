//! Reads stored files of every version of the result formats, so that old results stay readable.

use kinfolk::RowReason;
use kinfolk::results::{RUN_FORMAT, Run, parse_clusters};
use kinfolk::stages::Edge;

const RUN_1: &str = include_str!("data/golden/run_1.json");
const RUN_2: &str = include_str!("data/golden/run_2.json");
const EDGES: &str = include_str!("data/golden/clusters_edges.csv");
const TREE: &str = include_str!("data/golden/clusters_tree.csv");

#[test]
fn run_json_of_every_version_is_read() {
    let first = Run::parse(RUN_1, "run.json").unwrap();
    assert_eq!((first.format, first.method(), first.graph.as_ref().unwrap().k), (1, "kin", 3));
    let second = Run::parse(RUN_2, "run.json").unwrap();
    assert_eq!((second.format, second.method()), (RUN_FORMAT, "gcn-v"));
    assert_eq!(second.features.array.as_deref(), Some("embeddings"));
    assert_eq!(second.notes, ["GCN-E was not used: rho is 0"]);
    assert_eq!(second.scores.as_ref().unwrap().pairs.truth, 2);
    // What is read is written again as it was.
    assert_eq!(second.to_json(), RUN_2);
}

#[test]
fn newer_and_damaged_run_json_is_refused() {
    let message = |text: &str| Run::parse(text, "out/run.json").unwrap_err().to_string();
    let newer = RUN_2.replacen("\"format\": 2", "\"format\": 3", 1);
    assert_eq!(
        message(&newer),
        "out/run.json: expected format 2 or older; a newer kinfolk wrote this file, found format 3"
    );
    for text in ["", "{", "[1]", &RUN_2[..RUN_2.len() / 2], &RUN_2.replacen("\"rows\": 4", "\"rows\": -4", 1)]
    {
        assert!(message(text).starts_with("out/run.json: expected a run.json of `kinfolk cluster`, found "));
    }
}

#[test]
fn clusters_csv_of_both_kinds_is_read() {
    let rows = parse_clusters(EDGES, "clusters.csv").unwrap();
    let edge = Edge { row: 1, similarity: 0.99503714, probability: 0.9, ranks: [1, 1], shared: 1 };
    let first = RowReason {
        cluster: 0,
        confidence: Some(0.9),
        parent: Some((1, 0.99503714)),
        edge: Some(edge),
        outside: Some((2, 0.1, 0.05)),
    };
    assert_eq!((rows.len(), rows[0]), (3, first));
    assert_eq!((rows[1].parent, rows[2].outside), (None, None));
    let rows = parse_clusters(TREE, "clusters.csv").unwrap();
    assert_eq!((rows[2].cluster, rows[2].parent, rows[2].edge), (1, Some((1, 0.3)), None));
}

#[cfg(feature = "parquet")]
#[test]
fn clusters_parquet_of_both_kinds_is_read() {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden");
    for (name, text) in [("clusters_edges.parquet", EDGES), ("clusters_tree.parquet", TREE)] {
        let bytes = std::fs::read(golden.join(name)).unwrap();
        let rows = kinfolk::results::parse_clusters_parquet(bytes, name).unwrap();
        assert_eq!(rows, parse_clusters(text, "clusters.csv").unwrap());
    }
}

#[test]
fn damaged_clusters_csv_is_refused_by_line() {
    let message = |text: &str| parse_clusters(text, "clusters.csv").unwrap_err().to_string();
    assert!(message("").starts_with("clusters.csv (line 1): expected the heading row,cluster,"));
    assert!(message(&TREE.replace("1,0,2.5,,", "1,0,2.5,")).starts_with("clusters.csv (line 3): expected"));
    assert!(message(&EDGES.replace(",0.9,1,1,1,2,", ",0.9,1,1,1,x,")).starts_with("clusters.csv (line 2)"));
    let moved = message(&TREE.replace("\n1,0,", "\n2,0,"));
    assert_eq!(moved, "clusters.csv (line 3): expected 1 in column row, found 2");
    let partly = message(&TREE.replace("1,0.3", ",0.3"));
    assert_eq!(
        partly,
        "clusters.csv (line 4): expected parent and similarity, or none of them, found only some"
    );
}
