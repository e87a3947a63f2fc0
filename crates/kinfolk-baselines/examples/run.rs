//! Any of the methods, on a file:
//!
//!     cargo run --release -p kinfolk-baselines --example run -- METHOD INPUT LABELS.npy [NAME=VALUE ...]
//!
//! INPUT is a file of features, or a graph that `kinfolk knn` wrote for the methods that need one, `hac-knn` and
//! `hdbscan-knn` among them. Parameters are the fields of the method's struct, such as `clusters=100`. LABELS.npy is written and one
//! line of JSON printed: number of clusters, rows of noise, seconds without reading and writing.

use kinfolk::io;
use kinfolk_baselines::Method;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, input, labels, rest @ ..] = arguments.as_slice() else {
        return Err("expected METHOD INPUT LABELS.npy [NAME=VALUE ...]".into());
    };
    // Two methods choose the graph by the number of rows; here it is asked for by name.
    let plain = match name.as_str() {
        "hac-knn" => "hac",
        "hdbscan-knn" => "hdbscan",
        name => name,
    };
    let mut method = Method::named(plain).ok_or_else(|| format!("{name}: no such method"))?;
    for text in rest {
        let (parameter, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
        method.set(parameter, value)?;
    }
    let input = Path::new(input);
    let start: Instant;
    let found = if plain != name || method.needs_graph(0) {
        let graph = io::read_graph(input, None)?;
        start = Instant::now();
        method.run_on(&graph, &())?
    } else {
        let rows = io::read_embeddings(input, &Default::default())?;
        start = Instant::now();
        method.run(&rows, None, &())?
    };
    let seconds = start.elapsed().as_secs_f64();
    io::write_npy_i64(Path::new(labels), &found.labels)?;
    let noise = found.noise.as_ref().map_or(0, |noise| noise.iter().filter(|&&noise| noise).count());
    println!("{{\"clusters\": {}, \"noise\": {noise}, \"seconds\": {seconds:.3}}}", found.len());
    Ok(())
}
