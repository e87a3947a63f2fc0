//! Whether the probabilities of `album assign` mean what they say.
//!
//! Of every fifth identity all rows are kept back, of the others every fifth row; the album is made of the rest. An answer is right
//! if most items of the likeliest person are of the row's identity or, for somebody new, if the identity is not in the album.

use super::{Arguments, remove, shuffled, some};
use crate::labelled::Labelled;
use crate::scores::percent;
use kinfolk_album::{AddOptions, Album};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::table;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Every so many identities, and every so many rows of the others, are kept back.
const KEPT_BACK: usize = 5;
/// Intervals of the probability.
const BINS: usize = 10;

/// An answer: its probability, whether it is right, whether it says somebody new, and whether somebody new would be right.
struct Answer {
    probability: f64,
    right: bool,
    says_new: bool,
    is_new: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, Failure> {
    let mut sets = vec![("synth".to_owned(), arguments.synthetic(14_000)?)];
    for name in ["facepool_test", "lfw"] {
        if let Some(set) = arguments.faces(name)? {
            sets.push((name.to_owned(), shuffled(&set, arguments.seed)?));
        }
    }
    let headings =
        ["set", "rows", "right, %", "expected, %", "calibration error, %", "new: recall, %", "precision, %"];
    let mut lines = Vec::new();
    for (name, set) in &sets {
        lines.push(line(name, &answers(arguments, set)?));
    }
    println!("The likeliest answers of album assign: how many are right, and how many are expected to be");
    table::print(&headings, &lines);
    println!();
    Ok(table::markdown(&headings, &lines))
}

fn answers(arguments: &Arguments, set: &Labelled) -> Result<Vec<Answer>, Failure> {
    let mut number_of: HashMap<i64, usize> = HashMap::new();
    for &label in &set.labels {
        let next = number_of.len();
        number_of.entry(label).or_insert(next);
    }
    let number = |row: &usize| number_of[&set.labels[*row]];
    let is_back = |row: &usize| number(row).is_multiple_of(KEPT_BACK) || row.is_multiple_of(KEPT_BACK);
    let (back, inside): (Vec<usize>, Vec<usize>) = (0..set.labels.len()).partition(is_back);
    let known: HashSet<i64> = inside.iter().map(|&row| set.labels[row]).collect();
    let directory = arguments.directory("assign-album")?;
    let rows = some(&set.features, inside.iter().copied())?;
    let (album, _) = Album::create(&directory, &rows, &AddOptions::default(), 0, &Bars::default())?;
    let mut count: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    for ((_, person), &row) in album.items()?.into_iter().zip(&inside) {
        *count.entry((person, set.labels[row])).or_default() += 1;
    }
    let mut most: HashMap<i64, (usize, i64)> = HashMap::new();
    for ((person, label), count) in count {
        let best = most.entry(person).or_default();
        *best = (*best).max((count, label));
    }
    let found = album.assign(&some(&set.features, back.iter().copied())?, 1, &Bars::default())?;
    drop(album);
    remove(&directory)?;
    let answer = |(row, found): (usize, kinfolk_album::Assignment)| {
        let label = set.labels[row];
        let is_new = !known.contains(&label);
        match found.people.first().filter(|likeliest| likeliest.probability > found.new) {
            Some(likeliest) => {
                let right = most.get(&likeliest.person).is_some_and(|most| most.1 == label);
                Answer { probability: likeliest.probability, right, says_new: false, is_new }
            }
            None => Answer { probability: found.new, right: is_new, says_new: true, is_new },
        }
    };
    Ok(back.into_iter().zip(found).map(answer).collect())
}

fn line(name: &str, answers: &[Answer]) -> Vec<String> {
    let share = |wanted: &dyn Fn(&Answer) -> bool, of: &dyn Fn(&Answer) -> bool| {
        let all = answers.iter().filter(|answer| of(answer)).count();
        percent(
            answers.iter().filter(|answer| of(answer) && wanted(answer)).count() as f64 / all.max(1) as f64,
        )
    };
    let expected = answers.iter().map(|answer| answer.probability).sum::<f64>() / answers.len().max(1) as f64;
    vec![
        name.to_owned(),
        answers.len().to_string(),
        share(&|answer| answer.right, &|_| true),
        percent(expected),
        percent(calibration_error(answers)),
        share(&|answer| answer.says_new, &|answer| answer.is_new),
        share(&|answer| answer.is_new, &|answer| answer.says_new),
    ]
}

/// The mean distance between how many answers of similar probability are right and how many are expected to be.
fn calibration_error(answers: &[Answer]) -> f64 {
    let mut bins = [0.0; BINS];
    for answer in answers {
        let bin = ((answer.probability * BINS as f64) as usize).min(BINS - 1);
        bins[bin] += answer.probability - f64::from(u8::from(answer.right));
    }
    bins.iter().map(|difference: &f64| difference.abs()).sum::<f64>() / answers.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_that_hold_have_no_error() {
        let answers = |right: usize| -> Vec<Answer> {
            let answer = |at| Answer { probability: 0.75, right: at < right, says_new: false, is_new: false };
            (0..100).map(answer).collect()
        };
        assert!(calibration_error(&answers(75)) < 1e-9);
        assert!((calibration_error(&answers(50)) - 0.25).abs() < 1e-9);
    }
}
