//! The directory that `kinfolk cluster` writes and `kinfolk explain` reads.
//!
//! `labels.npy`, `clusters.csv` with the cluster of each row and the reason for it, `review.csv` with the decisions most worth
//! checking, and `run.json` with the parameters and the cost; with levels also `levels.npy`, `levels.csv` and a picture of
//! them. All files are written and synchronised under temporary names and
//! then renamed, `run.json` last, so a directory with `run.json` is complete. `docs/formats.md` describes the columns and keys.

mod clusters_csv;
mod levels;
mod run;

pub use clusters_csv::parse_clusters;
pub use run::{
    ClusterCounts, Cost, Features, GraphInfo, LevelInfo, PseudoLabelInfo, RUN_FORMAT, Run, json_scalar,
};

use crate::io::{AtomicFile, ReadOptions, read_embeddings, write_npy_i64_to};
use crate::{Clustering, Criterion, Error, Explainer, Result, review};
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

/// The maximum number of lines of `review.csv`.
pub const REVIEWED: usize = 1000;

/// Writes the files of a run: all of them, or none.
pub fn write_results(directory: &Path, found: &Clustering, run: &Run) -> Result<()> {
    write_results_with_picture(directory, found, run, None)
}

/// The same with a picture of the levels.
pub fn write_results_with_picture(
    directory: &Path,
    found: &Clustering,
    run: &Run,
    levels_svg: Option<&str>,
) -> Result<()> {
    let is_new = !directory.exists();
    if !is_new && !directory.is_dir() {
        return Err(Error::format(directory, "a directory to write to", "a file"));
    }
    std::fs::create_dir_all(directory).map_err(|e| Error::io(directory, e))?;
    let written = write_all(directory, found, run, levels_svg);
    if written.is_err() && is_new {
        // Only if nothing is in it.
        let _ = std::fs::remove_dir(directory);
    }
    written
}

fn write_all(directory: &Path, found: &Clustering, run: &Run, levels_svg: Option<&str>) -> Result<()> {
    let write =
        |name: &str, content: &dyn Fn(&mut AtomicFile) -> std::io::Result<()>| -> Result<AtomicFile> {
            let path = directory.join(name);
            let mut file = AtomicFile::create(&path)?;
            content(&mut file).and_then(|()| file.sync()).map_err(|e| Error::io(&path, e))?;
            Ok(file)
        };
    let labels = write("labels.npy", &|file| write_npy_i64_to(file, &found.labels))?;
    let clusters = write("clusters.csv", &|file| clusters_csv::write(file, found))?;
    let review = write("review.csv", &|file| file.write_all(review_csv(found).as_bytes()))?;
    let mut files = vec![labels, clusters, review];
    if let Some(found) = &found.levels {
        files.push(write("levels.npy", &|file| levels::write_labels(file, found))?);
        files.push(write("levels.csv", &|file| file.write_all(levels::csv(found).as_bytes()))?);
    }
    if let Some(svg) = levels_svg {
        files.push(write("levels.svg", &|file| file.write_all(svg.as_bytes()))?);
    }
    let json = run.to_json();
    let summary = write("run.json", &|file| file.write_all(json.as_bytes()))?;
    // From here on files are only renamed. An earlier run.json is removed first, which marks the directory as incomplete.
    if summary.path().exists() {
        std::fs::remove_file(summary.path()).map_err(|e| Error::io(summary.path(), e))?;
    }
    // Levels of an earlier run would not fit these labels.
    for name in levels::FILES {
        let path = directory.join(name);
        if path.is_file() && files.iter().all(|file| file.path() != path) {
            std::fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
        }
    }
    files.push(summary);
    files.into_iter().try_for_each(AtomicFile::commit)
}

fn review_csv(found: &Clustering) -> String {
    let mut text =
        "decision,doubt,row_a,row_b,cluster_a,cluster_b,rows_a,rows_b,similarity,probability\n".to_owned();
    for doubt in review(found, REVIEWED) {
        let [a, b] = doubt.rows;
        let [cluster_a, cluster_b] = doubt.rows.map(|row| found.labels[row as usize]);
        let decision = if doubt.together { "together" } else { "apart" };
        let (wrong, [rows_a, rows_b]) = (doubt.doubt(), doubt.sizes);
        let (similarity, probability) = (doubt.similarity, doubt.probability);
        let _ = writeln!(
            text,
            "{decision},{wrong:.3},{a},{b},{cluster_a},{cluster_b},{rows_a},{rows_b},{similarity:.4},{probability:.3}"
        );
    }
    text
}

/// Reads what [`write_results`] wrote, to be explained.
pub fn read_results(directory: &Path) -> Result<Explainer> {
    let run = Run::read(&directory.join("run.json"))?;
    let number =
        |name: &str| run.parameters.get(name).and_then(serde_json::Value::as_f64).map(|value| value as f32);
    let criterion = number("least_probability").map(Criterion::Probability);
    let criterion = criterion.or(number("tau").map(Criterion::Similarity)).ok_or_else(|| {
        let expected = "a run of a method that returns reasons (kin, density, gcn-v or gcn-ve)";
        Error::format(directory.join("run.json"), expected, run.method().to_owned())
    })?;
    let path = directory.join("clusters.csv");
    let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, e))?;
    let place = path.display().to_string();
    let rows = parse_clusters(&text, &place)?;
    let k = run.graph.as_ref().map_or(0, |graph| graph.k);
    let explainer = Explainer::of_rows(rows, k, criterion, &place)?;
    // The embeddings add one figure; the results stand without them. Edges of whitened embeddings have other
    // similarities than the file.
    if run.parameters.get("whitened") == Some(&true.into()) {
        return Ok(explainer);
    }
    let Features { file, dim, array, .. } = run.features;
    let is_raw = file.extension().is_some_and(|extension| extension == "bin");
    let options = ReadOptions { dim: is_raw.then_some(dim), array };
    Ok(match read_embeddings(&file, &options) {
        Ok(embeddings) => explainer.with_embeddings(embeddings),
        Err(_) => explainer,
    })
}
