//! Scores of as many labels as MS-Celeb-1M has.

use crate::measure::best_of;
use kinfolk::metrics::evaluate;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::table;

const ROWS: i64 = 5_200_000;

pub fn run() -> Result<(), Failure> {
    let one_cluster = vec![0; ROWS as usize];
    let identities: Vec<i64> = (0..ROWS).map(|i| i / 68).collect();
    // Every identity in two clusters, the smaller of which also takes rows of the next.
    let mixed: Vec<i64> = (0..ROWS).map(|i| (i + 17) / 68 * 2 + i64::from(i % 68 < 20)).collect();
    // Labels far apart, as hashes or database keys are.
    let sparse: Vec<i64> = mixed.iter().map(|l| l.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64)).collect();
    let cases =
        [("one cluster", &one_cluster), ("76,470 identities", &mixed), ("the same, sparse labels", &sparse)];
    let mut lines = Vec::new();
    for (name, predicted) in cases {
        let (scores, cost) = best_of(3, || evaluate(&identities, predicted));
        let scores = scores?;
        lines.push(vec![
            name.to_owned(),
            format!("{:.3}", cost.seconds),
            format!("{:.3}", cost.cpu_seconds),
            format!("{:.6}", scores.pairwise.f),
            format!("{:.6}", scores.bcubed.f),
            scores.pairs.predicted.to_string(),
        ]);
    }
    println!("{ROWS} labels, best of 3");
    table::print(&["predicted", "seconds", "CPU-s", "pairwise F", "BCubed F", "pairs predicted"], &lines);
    Ok(())
}
