//! `levels.npy` and `levels.csv`: the labels of every level, and what distinguishes the levels.

use crate::Levels;
use crate::io::{AtomicFile, header_bytes};
use std::fmt::Write as _;
use std::io::Write;

/// The files that exist only with levels.
pub(super) const FILES: [&str; 3] = ["levels.npy", "levels.csv", "levels.svg"];

/// One row of labels for each level.
pub(super) fn write_labels(file: &mut AtomicFile, levels: &Levels) -> std::io::Result<()> {
    let count = levels.levels().len();
    file.write_all(&header_bytes("i8", &[count, levels.tree().rows()]))?;
    (0..count).try_for_each(|level| file.write_all(bytemuck::cast_slice(&levels.labels(level))))
}

/// One line for each level.
pub(super) fn csv(levels: &Levels) -> String {
    let mut text = "level,clusters,persistence,height,default\n".to_owned();
    for (at, level) in levels.levels().iter().enumerate() {
        let (clusters, persistence, height) = (level.clusters, level.persistence, level.height);
        let _ = writeln!(text, "{at},{clusters},{persistence:.4},{height},{}", level.default);
    }
    text
}
