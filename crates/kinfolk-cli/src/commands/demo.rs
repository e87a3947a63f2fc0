//! `kinfolk demo`: a small set, its clusters, their scores and a picture.

use super::{make_directory, write_text};
use crate::bars::Bars;
use crate::failure::Failure;
use crate::picture::{Panel, draw, map};
use crate::table;
use clap::Args;
use kinfolk::metrics::evaluate;
use kinfolk::synth::{Synth, SynthParams};
use kinfolk::{ClusterParams, KnnParams, Progress, cluster, io, knn_graph};
use std::path::PathBuf;

/// Make a small set, cluster it, print the scores and draw a picture
#[derive(Args)]
#[command(
    after_help = "Example:  kinfolk demo\n          writes kinfolk-demo/features.npy, labels.npy, clusters.npy and picture.svg"
)]
pub struct Arguments {
    /// Directory to write to
    #[arg(default_value = "kinfolk-demo")]
    directory: PathBuf,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let file = |name: &str| arguments.directory.join(name);
    make_directory(&arguments.directory)?;
    let params = SynthParams { identities: 60, mean_size: 40.0, dim: 128, ..SynthParams::default() };
    let bars = Bars::default();
    let synth = Synth::new(params)?;
    synth.whole().write_features(&file("features.npy"), &bars)?;
    io::write_npy_i64(&file("labels.npy"), &synth.whole().labels())?;

    let embeddings = io::read_embeddings(&file("features.npy"), &io::ReadOptions::default())?;
    let truth = io::read_labels(&file("labels.npy"))?;
    let (graph, _) = knn_graph(&embeddings, &KnnParams { k: 40, ..KnnParams::default() }, &bars)?;
    let found = cluster(&embeddings, Some(&graph), &ClusterParams::default(), &bars)?;
    io::write_npy_i64(&file("clusters.npy"), &found.labels)?;
    let scores = evaluate(&truth, &found.labels)?;

    bars.begin("picture", 1);
    let at = map(&graph, 0);
    let grouped = alone_as_grey(&found.labels);
    let found_title = format!(
        "{} clusters found without labels, {} rows left alone (grey)",
        scores.clusters - scores.singletons,
        scores.singletons
    );
    let panels = [
        Panel { title: format!("{} true identities", scores.identities), groups: &truth },
        Panel { title: found_title, groups: &grouped },
    ];
    write_text(&file("picture.svg"), &draw(&at, &panels))?;
    drop(bars);

    println!("{} rows x {}, {} identities\n", embeddings.len(), embeddings.dim(), scores.identities);
    let mut headings = vec!["method"];
    headings.extend(table::SCORE_HEADINGS);
    table::print(&headings, &[table::scores(&format!("density, tau {:.2}", found.tau), &scores)]);
    println!("\n{}", file("picture.svg").display());
    println!(
        "next: kinfolk cluster {} --labels {}",
        file("features.npy").display(),
        file("labels.npy").display()
    );
    Ok(())
}

/// The labels, but -1 for a row that is alone in its cluster.
fn alone_as_grey(labels: &[i64]) -> Vec<i64> {
    let mut sizes = vec![0; labels.len()];
    labels.iter().for_each(|&l| sizes[l as usize] += 1);
    labels.iter().map(|&l| if sizes[l as usize] > 1 { l } else { -1 }).collect()
}
