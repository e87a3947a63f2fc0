//! What holds for every method.

use kinfolk::{Clusterer, Context, Embeddings, Input, KnnParams, Method, Problem, knn_graph};
use kinfolk_baselines::METHODS;
use std::collections::HashSet;

fn forty() -> Embeddings {
    let rows = (0..40 * 8).map(|v| ((v * 37 % 101) as f32 / 50.0) - 1.0).collect();
    Embeddings::from_rows(rows, 8, "test").unwrap()
}

/// All methods, with this number of clusters for those that need one.
fn methods(clusters: &str) -> Vec<Box<dyn Method>> {
    let ready = |make: &fn() -> Box<dyn Method>| {
        let mut method = make();
        if method.info().needs_clusters {
            method.parameters_mut().set("clusters", clusters).unwrap();
        }
        method
    };
    METHODS.iter().map(ready).collect()
}

#[test]
fn names_are_in_order_and_descriptions_complete() {
    let infos: Vec<_> = METHODS.iter().map(|make| make().info()).collect();
    let names: Vec<&str> = infos.iter().map(|info| info.name).collect();
    let expected = [
        "kmeans",
        "minibatch-kmeans",
        "hac",
        "dbscan",
        "dbscan-knn",
        "meanshift",
        "spectral",
        "aro",
        "cdp",
        "chinese-whispers",
        "hdbscan",
        "optics",
        "infomap",
        "facemap",
        "fc-es",
    ];
    assert_eq!(names, expected);
    assert_eq!(infos.iter().map(|info| info.color).collect::<HashSet<_>>().len(), infos.len());
    for (at, info) in infos.into_iter().enumerate() {
        assert!(![info.title, info.summary, info.when, info.cost].contains(&""), "{info:?}");
        assert_eq!(info.in_paper, at < 9, "{info:?}");
        assert!(!info.needs_model && !info.learns, "{info:?}");
    }
}

#[test]
fn every_method_runs_and_every_parameter_comes_back_as_it_was_written() {
    let rows = forty();
    for mut method in methods("4") {
        let name = method.info().name;
        let before = method.parameters().values();
        for (parameter, value) in &before {
            method.parameters_mut().set(parameter, value).unwrap();
        }
        assert_eq!(method.parameters().values(), before, "{name}");
        let found = Clusterer::with_boxed(method).fit(&rows).unwrap();
        assert_eq!((found.labels.len(), found.report.method), (40, name));
        assert!(found.report.timings.iter().any(|timing| timing.0 == "partition"), "{name}");
        let of_rows = ["kmeans", "minibatch-kmeans", "hac", "dbscan", "meanshift", "hdbscan"].contains(&name);
        assert_eq!(found.report.k(), (!of_rows).then_some(39), "{name}");
        let with_noise = ["dbscan", "dbscan-knn", "meanshift", "hdbscan", "optics"].contains(&name);
        assert_eq!(found.report.noise_rows.is_some(), with_noise, "{name}");
    }
}

#[test]
fn unknown_parameters_are_refused_by_listing_the_known_ones() {
    for mut method in methods("4") {
        let known: Vec<&str> = method.parameters().specs().iter().map(|spec| spec.name).collect();
        let message = method.parameters_mut().set("colour", "blue").unwrap_err().to_string();
        assert!(message.ends_with(&format!("colour (there are {})", known.join(", "))), "{message}");
    }
}

#[test]
fn methods_that_do_not_need_rows_run_on_a_graph_alone() {
    let (rows, context) = (forty(), Context::default());
    let (graph, _) = knn_graph(&rows, &KnnParams { k: 10, ..Default::default() }, &()).unwrap();
    for method in methods("4") {
        let (found, info) = (method.run(&Problem::of_graph(&graph), &context), method.info());
        match info.input {
            Input::Rows => assert!(found.unwrap_err().to_string().starts_with("embeddings"), "{info:?}"),
            _ => assert_eq!(found.unwrap().report.k(), Some(10), "{info:?}"),
        }
    }
}

#[test]
fn a_missing_number_of_clusters_is_named() {
    let rows = forty();
    for make in METHODS {
        let (needed, found) = (make().info().needs_clusters, Clusterer::with_boxed(make()).fit(&rows));
        match found {
            Ok(_) => assert!(!needed),
            Err(error) => {
                assert!(needed);
                assert_eq!(error.to_string(), "clusters: expected how many clusters to make, found none");
            }
        }
    }
}

#[test]
fn one_row_is_one_cluster() {
    let one = Embeddings::from_rows(vec![1.0, 0.0], 2, "test").unwrap();
    for mut method in methods("1") {
        if method.info().name == "dbscan-knn" {
            method.parameters_mut().set("min", "1").unwrap();
        }
        let name = method.info().name;
        assert_eq!(Clusterer::with_boxed(method).fit(&one).unwrap().labels, [0], "{name}");
    }
}
