//! Tables 1 and 2 of the paper on the data that its authors published, beside the paper's figures.
//!
//! | file of DATA | |
//! |---|---|
//! | `features/part0_train.bin`, `labels/part0_train.meta` | MS-Celeb-1M, to train on and to choose settings on |
//! | `features/partN_test.bin`, `labels/partN_test.meta`, N = 1, 3, 5, 7, 9 | so many parts to test on, those that are there |
//! | `features/deepfashion_train.bin`, `deepfashion_test.bin`, and their labels | DeepFashion |
//! | `knns/NAME/faiss_k_80.npz`, `faiss_k_5.npz` for DeepFashion | graphs; a missing one is made |
//! | `pretrained_gcn_v_ms1m.pth`, `pretrained_gcn_e_ms1m.pth`, `..._deepfashion.pth` | published weights, also in `pretrained_models` |
//!
//! Published weights are rows of their own, with the tau of the paper. Where a graph is given, seconds count reading it instead
//! of the search for neighbours.
//!
//! Cost: that of table1 and table2. The five sizes of MS-Celeb-1M have 14 million rows together.

use super::TableOptions;
use super::comparison::Comparison;
use super::fit::Fitted;
use super::methods::{Listed, listed};
use super::paper;
use super::part::Part;
use super::{table1, table2};
use clap::Args;
use kinfolk::Error;
use kinfolk_cli::failure::Failure;
use kinfolk_nn::{Gcn, GcnConfig, GcnModel, LearnedMethod, read_checkpoint};
use std::path::{Path, PathBuf};

/// Neighbours of each row, itself included, as in the names of the files.
const K_FACES: usize = 80;
const K_FASHION: usize = 5;

/// The share of rows whose parents GCN-E chooses, in the tables of the paper.
const RHO: f32 = 0.2;

#[derive(Args)]
#[command(after_help = "Example:  kinfolk bench published data --methods cdp,gcn-v-paper,gcn-ve-paper,kin
          reads data/features/part0_train.bin, data/labels/part0_train.meta, part1_test and so on,
          and writes bench-published/table1.md and, with DeepFashion, table2.md")]
pub struct Arguments {
    #[command(flatten)]
    options: TableOptions,
    /// Directory with features, labels and, if they are there, knns and pretrained weights
    data: PathBuf,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { options, data } = arguments;
    let options = TableOptions { output: Some(options.directory("published")?), ..options };
    let exists = |name: &str| data.join("features").join(format!("{name}.bin")).is_file();
    let parts: Vec<u32> =
        paper::PARTS.into_iter().filter(|parts| exists(&format!("part{parts}_test"))).collect();
    let fashion = exists("deepfashion_test");
    if parts.is_empty() && !fashion {
        let expected = "features/part1_test.bin or another part, or features/deepfashion_test.bin";
        return Err(Error::format(&data, expected, "none of them").into());
    }
    let seed = options.seed;
    let read = |name: &str, k| Part::read(&data, name, k, seed);
    if !parts.is_empty() {
        let train = read("part0_train", K_FACES)?;
        let mut comparison = Comparison::new("table1", options.clone(), train)?;
        add_published(&mut comparison, &data, "ms1m", K_FACES)?;
        let origin = format!("MS-Celeb-1M, {}", data.display());
        table1::compare(comparison, &origin, &parts, |count| read(&format!("part{count}_test"), K_FACES))?;
    }
    if fashion {
        let train = read("deepfashion_train", K_FASHION)?;
        let mut comparison = Comparison::new("table2", options, train)?;
        add_published(&mut comparison, &data, "deepfashion", K_FASHION)?;
        let origin = format!("DeepFashion, {}", data.display());
        table2::compare(comparison, &origin, &read("deepfashion_test", K_FASHION)?, true)?;
    }
    Ok(())
}

/// Adds rows for the published weights that are there.
fn add_published(comparison: &mut Comparison, data: &Path, set: &str, k: usize) -> Result<(), Failure> {
    let find = |network: &str| {
        let name = format!("pretrained_gcn_{network}_{set}.pth");
        [data.join(&name), data.join("pretrained_models").join(&name)].into_iter().find(|file| file.is_file())
    };
    let Some(gcn_v) = find("v") else { return Ok(()) };
    let config = GcnConfig { k: k - 1, k_rebuild: k - 1, rho: RHO, ..GcnConfig::default() };
    let gcn_e = find("e").map(|file| read_checkpoint(&file)).transpose()?;
    let model = GcnModel { gcn_v: read_checkpoint(&gcn_v)?, gcn_e, config };
    if model.dim() != comparison.train.features.dim() {
        let expected =
            format!("a network for {} columns, as the features have", comparison.train.features.dim());
        return Err(Error::format(&gcn_v, expected, model.dim().to_string()).into());
    }
    let mut rows = vec![("gcn-v-published", "gcn-v-paper", Gcn::vertex_only(model.clone()))];
    if model.gcn_e.is_some() {
        rows.push(("gcn-ve-published", "gcn-ve-paper", Gcn::new(model)));
    }
    for (row, like, gcn) in rows {
        let Some(like) = listed().into_iter().find(|listed| listed.row == like) else { continue };
        let Some(model) = gcn.to_model() else { continue };
        let fitted = Fitted {
            name: row,
            model,
            tried: "nothing: published weights, tau of the paper",
            chosen: "tau 0.8".to_owned(),
            note: String::new(),
        };
        comparison.add(Listed { row, ..like }, fitted);
    }
    Ok(())
}
