//! What changes of albums cost, for albums of several sizes.

use super::{Arguments, remove, some};
use crate::measure::measure;
use kinfolk::Clusterer;
use kinfolk::results::{ResultOptions, Run, write_results};
use kinfolk_album::{AddOptions, Album};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::table;

/// Rows that are added at a time.
const ADDED: usize = 1000;
/// Additions of so many rows; the median is reported.
const ADDITIONS: usize = 3;
/// Corrections of each kind; the slowest is reported.
const CORRECTIONS: usize = 10;

pub(super) fn run(arguments: &Arguments) -> Result<String, Failure> {
    let headings = [
        "rows",
        "cluster, s",
        "create, s",
        "open, ms",
        "add 1,000, s",
        "CPU-s",
        "assign 1,000, s",
        "same, ms",
        "apart, ms",
        "moved",
        "undo add, s",
    ];
    let lines = arguments.rows.iter().map(|&rows| line(arguments, rows)).collect::<Result<Vec<_>, _>>()?;
    println!(
        "Changes of albums (synth, 256 columns; additions: median of {ADDITIONS}, corrections: slowest of {CORRECTIONS})"
    );
    table::print(&headings, &lines);
    println!();
    Ok(table::markdown(&headings, &lines))
}

fn line(arguments: &Arguments, rows: usize) -> Result<Vec<String>, Failure> {
    let set = arguments.synthetic(rows + (ADDITIONS + 1) * ADDED)?.features;
    let first = set.len() - (ADDITIONS + 1) * ADDED;
    let old = some(&set, 0..first)?;
    let results = arguments.directory("speed-clusters")?;
    let (clustered, cluster) = measure(|| -> Result<(), Failure> {
        let found = Clusterer::new().progress(&Bars::default()).fit(&old)?;
        let run = Run::new(&old, "features.npy".as_ref(), None, &found);
        Ok(write_results(&results, &found, &run, &ResultOptions::default())?)
    });
    clustered?;
    remove(&results)?;
    let directory = arguments.directory("speed-album")?;
    let options = AddOptions::default();
    let (created, create) = measure(|| Album::create(&directory, &old, &options, 0, &Bars::default()));
    drop((created?, old));
    let (album, open) = measure(|| Album::open(&directory));
    let mut album = album?;
    let mut additions = Vec::new();
    for addition in 0..ADDITIONS {
        let start = first + addition * ADDED;
        let new = some(&set, start..start + ADDED)?;
        let (added, cost) = measure(|| album.add(&new, &options, &()));
        added?;
        additions.push(cost);
    }
    additions.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let add = &additions[ADDITIONS / 2];
    let (undone, undo) = measure(|| album.undo());
    undone?;
    let last = some(&set, set.len() - ADDED..set.len())?;
    let (assigned, assign) = measure(|| album.assign(&last, 5, &()));
    assigned?;
    // Questions come in pairs of people, and in parts of one person.
    let questions = album.questions(20 * CORRECTIONS)?;
    let (mut slowest, mut moved) = ([0.0f64; 2], [0usize; 2]);
    for (kind, same) in [(0, true), (1, false)] {
        let of_kind = questions.iter().filter(|question| (question.people.len() == 2) == same);
        for question in of_kind.take(CORRECTIONS) {
            let [a, b] = &question.items;
            let (corrected, cost) =
                measure(|| if same { album.same(a, b, &()) } else { album.apart(a, b, &()) });
            slowest[kind] = slowest[kind].max(cost.seconds);
            moved[kind] += usize::from(!corrected?.events.is_empty());
        }
    }
    drop(album);
    remove(&directory)?;
    let milliseconds = |seconds: f64| format!("{:.0}", 1000.0 * seconds);
    Ok(vec![
        first.to_string(),
        format!("{:.1}", cluster.seconds),
        format!("{:.1} ({:+.0} %)", create.seconds, 100.0 * (create.seconds / cluster.seconds - 1.0)),
        milliseconds(open.seconds),
        format!("{:.2}", add.seconds),
        format!("{:.2}", add.cpu_seconds),
        format!("{:.2}", assign.seconds),
        milliseconds(slowest[0]),
        milliseconds(slowest[1]),
        format!("{} and {}", moved[0], moved[1]),
        format!("{:.2}", undo.seconds),
    ])
}
