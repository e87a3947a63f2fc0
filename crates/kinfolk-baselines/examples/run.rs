//! Any of the methods, on a file:
//!
//!     cargo run --release -p kinfolk-baselines --example run -- METHOD INPUT LABELS.npy [NAME=VALUE ...]
//!
//! INPUT is a file of features, or a graph that `kinfolk knn` wrote for the methods that need one, including `hac-knn` and
//! `hdbscan-knn`. Parameters are the fields of the method's struct, such as `clusters=100`, and `seed`.
//! LABELS.npy is written and one line of JSON printed: number of clusters, rows of noise, seconds without reading and
//! writing.

use kinfolk::{Context, Input, Problem, io};
use kinfolk_baselines::METHODS;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, input, labels, rest @ ..] = arguments.as_slice() else {
        return Err("expected METHOD INPUT LABELS.npy [NAME=VALUE ...]".into());
    };
    // Two methods choose the graph by the number of rows; here it is chosen by name.
    let plain = match name.as_str() {
        "hac-knn" => "hac",
        "hdbscan-knn" => "hdbscan",
        name => name,
    };
    let mut methods = METHODS.iter().map(|make| make());
    let found = methods.find(|method| method.info().name == plain);
    let mut method = found.ok_or_else(|| format!("{name}: no such method"))?;
    let mut context = Context::default();
    for text in rest {
        match text.split_once('=').ok_or("expected NAME=VALUE")? {
            ("seed", seed) => context = context.with_seed(seed.parse()?),
            (parameter, value) => method.parameters_mut().set(parameter, value)?,
        }
    }
    let input = Path::new(input);
    let start: Instant;
    let found = if plain != name || method.info().input == Input::Graph {
        let graph = io::read_graph(input, None)?;
        start = Instant::now();
        method.run(&Problem::of_graph(&graph), &context)?
    } else {
        let rows = io::read_embeddings(input, &Default::default())?;
        start = Instant::now();
        method.run(&Problem::new(&rows), &context)?
    };
    let seconds = start.elapsed().as_secs_f64();
    io::write_npy_i64(Path::new(labels), &found.labels)?;
    let noise = found.report.noise_rows.unwrap_or(0);
    println!("{{\"clusters\": {}, \"noise\": {noise}, \"seconds\": {seconds:.3}}}", found.len());
    Ok(())
}
