//! `kinfolk demo`: generates a small set, clusters it without labels and with a trained model, and draws a picture.

use super::{make_directory, write_text};
use crate::bars::Bars;
use crate::failure::Failure;
use crate::picture::{Panel, draw, map};
use crate::table;
use clap::Args;
use kinfolk::metrics::evaluate;
use kinfolk::synth::{Synth, SynthParams};
use kinfolk::{Clusterer, Context, Density, KnnParams, Problem, Progress, io, knn_graph};
use kinfolk_nn::{Checkpoints, GcnVTraining, Learn};
use std::path::PathBuf;

/// Generate a small set, cluster it without labels and with a trained model, print scores and draw a picture
#[derive(Args)]
#[command(
    after_help = "Example:  kinfolk demo\n          writes kinfolk-demo/features.npy, labels.npy, clusters.npy, model.safetensors and picture.svg"
)]
pub struct Arguments {
    /// Directory to write to
    #[arg(default_value = "kinfolk-demo")]
    directory: PathBuf,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let file = |name: &str| arguments.directory.join(name);
    make_directory(&arguments.directory)?;
    let params = SynthParams { identities: 180, mean_size: 40.0, dim: 128, ..SynthParams::default() };
    let bars = Bars::default();
    let synth = Synth::new(params)?;
    let (others, shown) = synth.split(2.0 / 3.0)?;
    shown.write_features(&file("features.npy"), &bars)?;
    io::write_npy_i64(&file("labels.npy"), &shown.labels())?;

    let embeddings = io::read_embeddings(&file("features.npy"), &io::ReadOptions::default())?;
    let truth = io::read_labels(&file("labels.npy"))?;
    let found = Clusterer::new().progress(&bars).fit(&embeddings)?;
    io::write_npy_i64(&file("clusters.npy"), &found.labels)?;
    let scores = evaluate(&truth, &found.labels)?;
    let knn = KnnParams { k: 40, ..KnnParams::default() };
    let (graph, _) = knn_graph(&embeddings, &knn, &bars)?;
    let tree = Clusterer::with(Density::default()).progress(&bars).fit_graph(&embeddings, &graph)?;
    let tree = evaluate(&truth, &tree.labels)?;

    let (features, labels) = others.to_embeddings()?;
    let problem = Problem::new(&features).with_labels(&labels)?.with_k(Some(40))?;
    let context = Context::new(&bars);
    let trained = GcnVTraining::default().train(&problem, Checkpoints::default(), &context)?;
    trained.write(&file("model.safetensors"))?;
    let applied = trained.method.run(&Problem::new(&embeddings).with_graph(&graph)?, &context)?;
    let with_model = evaluate(&truth, &applied.labels)?;

    bars.begin("picture", 1);
    let at = map(&graph, 0);
    let grouped = alone_as_grey(&found.labels);
    let found_title = format!(
        "{} clusters found without labels, {} single rows (grey)",
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
    let lines = [
        table::scores("kin, no labels", &scores),
        table::scores("density, no labels", &tree),
        table::scores("gcn-v, trained on 120 other identities", &with_model),
    ];
    table::print(&headings, &lines);
    println!("\n{}", file("picture.svg").display());
    println!(
        "next: kinfolk cluster {} --labels {} --model {}",
        file("features.npy").display(),
        file("labels.npy").display(),
        file("model.safetensors").display()
    );
    Ok(())
}

/// The labels, but -1 for a row that is alone in its cluster.
fn alone_as_grey(labels: &[i64]) -> Vec<i64> {
    let mut sizes = vec![0; labels.len()];
    labels.iter().for_each(|&l| sizes[l as usize] += 1);
    labels.iter().map(|&l| if sizes[l as usize] > 1 { l } else { -1 }).collect()
}
