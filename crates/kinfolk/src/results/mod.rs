//! The directory that `kinfolk cluster` writes and `kinfolk explain` reads.
//!
//! `labels.npy`, `clusters.csv` or `clusters.parquet` with the cluster of each row and the reason for it, `review.csv` with the
//! decisions most worth checking, and `run.json` with the parameters and the cost; with levels also `levels.npy`,
//! `levels.csv` and a picture of them. All files are written and synchronised under temporary names and then renamed,
//! `run.json` last, so a directory with `run.json` is complete. `docs/formats.md` describes the columns and keys.

mod clusters_csv;
#[cfg(feature = "parquet")]
mod clusters_parquet;
mod levels;
mod run;
mod table;
#[cfg(all(test, feature = "parquet"))]
mod tests;

pub use clusters_csv::parse_clusters;
#[cfg(feature = "parquet")]
pub use clusters_parquet::parse_clusters_parquet;
pub use run::{
    ClusterCounts, Cost, Features, GraphInfo, LevelInfo, PartCost, PseudoLabelInfo, RUN_FORMAT, Run,
    json_scalar,
};

#[cfg(not(feature = "parquet"))]
use crate::io::without_parquet;
use crate::io::{AtomicFile, ReadOptions, read_embeddings, write_npy_i64_to};
use crate::{Clustering, Criterion, Error, Explainer, Result, RowReason, review};
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The maximum number of lines of `review.csv`.
pub const REVIEWED: usize = 1000;

/// The file that holds the cluster of each row and the reason for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClustersFormat {
    /// `clusters.csv`.
    #[default]
    Csv,
    /// `clusters.parquet`: smaller, and faster to load. Needs the cargo feature `parquet`.
    Parquet,
}

impl ClustersFormat {
    const ALL: [ClustersFormat; 2] = [ClustersFormat::Csv, ClustersFormat::Parquet];

    fn file_name(self) -> &'static str {
        match self {
            ClustersFormat::Csv => "clusters.csv",
            ClustersFormat::Parquet => "clusters.parquet",
        }
    }
}

/// Options for writing results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResultOptions<'a> {
    /// The format of the file of clusters.
    pub clusters: ClustersFormat,
    /// A picture of the levels, as SVG.
    pub levels_svg: Option<&'a str>,
}

/// Writes the files of a run: all of them, or none.
pub fn write_results(
    directory: &Path,
    found: &Clustering,
    run: &Run,
    options: &ResultOptions<'_>,
) -> Result<()> {
    let is_new = !directory.exists();
    if !is_new && !directory.is_dir() {
        return Err(Error::format(directory, "a directory to write to", "a file"));
    }
    std::fs::create_dir_all(directory).map_err(|e| Error::io(directory, e))?;
    let written = write_all(directory, found, run, options);
    if written.is_err() && is_new {
        // Only if nothing is in it.
        let _ = std::fs::remove_dir(directory);
    }
    written
}

fn write_all(directory: &Path, found: &Clustering, run: &Run, options: &ResultOptions<'_>) -> Result<()> {
    let write =
        |name: &str, content: &dyn Fn(&mut AtomicFile) -> std::io::Result<()>| -> Result<AtomicFile> {
            let path = directory.join(name);
            let mut file = AtomicFile::create(&path)?;
            content(&mut file).and_then(|()| file.sync()).map_err(|e| Error::io(&path, e))?;
            Ok(file)
        };
    let labels = write("labels.npy", &|file| write_npy_i64_to(file, &found.labels))?;
    let clusters = options.clusters.file_name();
    let clusters = match options.clusters {
        ClustersFormat::Csv => write(clusters, &|file| clusters_csv::write(file, found))?,
        #[cfg(feature = "parquet")]
        ClustersFormat::Parquet => write(clusters, &|file| clusters_parquet::write(file, found))?,
        #[cfg(not(feature = "parquet"))]
        ClustersFormat::Parquet => return Err(without_parquet(&directory.join(clusters), "write")),
    };
    let review = write("review.csv", &|file| file.write_all(review_csv(found).as_bytes()))?;
    let mut files = vec![labels, clusters, review];
    if let Some(found) = &found.levels {
        files.push(write("levels.npy", &|file| levels::write_labels(file, found))?);
        files.push(write("levels.csv", &|file| file.write_all(levels::csv(found).as_bytes()))?);
    }
    if let Some(svg) = options.levels_svg {
        files.push(write("levels.svg", &|file| file.write_all(svg.as_bytes()))?);
    }
    let json = run.to_json();
    let summary = write("run.json", &|file| file.write_all(json.as_bytes()))?;
    // From here on files are only renamed. An earlier run.json is removed first, which marks the directory as incomplete.
    if summary.path().exists() {
        std::fs::remove_file(summary.path()).map_err(|e| Error::io(summary.path(), e))?;
    }
    // Levels of an earlier run would not fit these labels, nor would its clusters in the other format.
    for name in levels::FILES.into_iter().chain(ClustersFormat::ALL.map(ClustersFormat::file_name)) {
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
    let (path, rows) = read_clusters(directory)?;
    let place = path.display().to_string();
    if rows.len() != run.features.rows {
        let what = "rows (as run.json says)".to_owned();
        return Err(Error::Length { place, what, expected: run.features.rows, found: rows.len() });
    }
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

/// Reads the file of clusters, in whichever format it is.
fn read_clusters(directory: &Path) -> Result<(PathBuf, Vec<RowReason>)> {
    let [csv, parquet] = ClustersFormat::ALL.map(|format| directory.join(format.file_name()));
    let one = |found| Error::format(directory, "either clusters.csv or clusters.parquet", found);
    match (csv.exists(), parquet.exists()) {
        (true, false) => {
            let text = std::fs::read_to_string(&csv).map_err(|e| Error::io(&csv, e))?;
            let rows = parse_clusters(&text, &csv.display().to_string())?;
            Ok((csv, rows))
        }
        (false, true) => read_parquet(&parquet).map(|rows| (parquet, rows)),
        // A program that does not know the one may leave it beside the other.
        (true, true) => Err(one("both")),
        (false, false) => Err(one("neither")),
    }
}

#[cfg(feature = "parquet")]
fn read_parquet(path: &Path) -> Result<Vec<RowReason>> {
    let bytes = bytes::Bytes::from_owner(crate::io::map_file(path)?);
    parse_clusters_parquet(bytes, &path.display().to_string())
}

#[cfg(not(feature = "parquet"))]
fn read_parquet(path: &Path) -> Result<Vec<RowReason>> {
    Err(without_parquet(path, "read"))
}
