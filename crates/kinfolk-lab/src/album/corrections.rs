//! What answers gain: questions answered by the true labels, in the order of `album questions`, in random order, and in the order of
//! `review.csv`.
//!
//! Questions are asked one at a time, and after each answer those that are left are ordered anew. In random order the same
//! questions are asked, any of them with equal probability, from a list that is made anew after every 25 answers. The list of
//! `review.csv` is that of the first clustering.

use super::{Arguments, labels, remove};
use crate::labelled::Labelled;
use crate::scores::both_f;
use kinfolk::metrics::evaluate;
use kinfolk::random::Stream;
use kinfolk::{Clusterer, review};
use kinfolk_album::{AddOptions, Album};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::table;
use std::collections::BTreeSet;

/// Answers after which scores are computed.
const AFTER: [usize; 6] = [0, 25, 50, 100, 200, 400];
/// The first answers of which those that changed something are counted.
const FIRST: usize = 20;
/// Answers after which the list of questions in random order is made anew.
const ANEW: usize = 25;
/// Questions among which one is drawn: more than there are.
const ALL: usize = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    Questions,
    Random,
    Review,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, Failure> {
    let mut sets = Vec::new();
    for name in ["facepool_test", "lfw"] {
        sets.extend(arguments.faces(name)?.map(|set| (name.to_owned(), set)));
    }
    if sets.is_empty() {
        sets.push(("synth".to_owned(), arguments.synthetic(14_000)?));
    }
    let mut headings: Vec<String> =
        vec!["set".to_owned(), "order".to_owned(), format!("of the first {FIRST}")];
    headings.extend(AFTER.iter().map(|count| format!("{count} answers")));
    let mut lines = Vec::new();
    for (name, set) in &sets {
        for order in [Order::Questions, Order::Random, Order::Review] {
            lines.push(line(arguments, name, set, order)?);
        }
    }
    println!(
        "Questions answered by the true labels: how many of the first answers changed something, pairwise / BCubed F"
    );
    table::print(&headings.iter().map(String::as_str).collect::<Vec<_>>(), &lines);
    println!();
    Ok(table::markdown(&headings, &lines))
}

fn line(arguments: &Arguments, name: &str, set: &Labelled, order: Order) -> Result<Vec<String>, Failure> {
    let directory = arguments.directory("corrections-album")?;
    let bars = Bars::default();
    let (mut album, _) = Album::create(&directory, &set.features, &AddOptions::default(), 0, &bars)?;
    let mut listed: Vec<[String; 2]> = match order {
        Order::Review => {
            let found = Clusterer::new().progress(&bars).fit(&set.features)?;
            let doubts = review(&found, 2 * AFTER[AFTER.len() - 1]);
            doubts.into_iter().rev().map(|doubt| doubt.rows.map(|row| row.to_string())).collect()
        }
        _ => Vec::new(),
    };
    let mut random = Stream::from_state(arguments.seed);
    let (mut answers, mut changed) = (0, 0);
    let mut refused: BTreeSet<[String; 2]> = BTreeSet::new();
    let mut cells = Vec::new();
    for &count in &AFTER {
        while answers < count {
            let next = match order {
                Order::Review => listed.pop(),
                Order::Questions => {
                    let questions = album.questions(1 + refused.len())?;
                    questions
                        .into_iter()
                        .map(|question| question.items)
                        .find(|items| !refused.contains(items))
                }
                Order::Random => {
                    if answers % ANEW == 0 {
                        let questions = album.questions(ALL)?;
                        listed = questions.into_iter().map(|question| question.items).collect();
                        listed.retain(|items| !refused.contains(items));
                        random.shuffle(&mut listed);
                    }
                    listed.pop()
                }
            };
            let Some(items) = next else { break };
            let [a, b] = items.each_ref().map(|key| key.parse::<usize>().map_or(-1, |row| set.labels[row]));
            let (first, second) = (&items[0], &items[1]);
            let answer =
                if a == b { album.same(first, second, &()) } else { album.apart(first, second, &()) };
            match answer {
                Ok(summary) => {
                    changed += usize::from(answers < FIRST && !summary.events.is_empty());
                }
                // The labels contradict themselves: some photographs are there twice, with two of them.
                Err(_) => drop(refused.insert(items)),
            }
            answers += 1;
        }
        let [pairwise, bcubed] = both_f(&evaluate(&set.labels, &labels(&album)?)?);
        cells.push(format!("{pairwise:.2} / {bcubed:.2}"));
    }
    drop(album);
    remove(&directory)?;
    let order = match order {
        Order::Questions => "album questions",
        Order::Random => "random",
        Order::Review => "review.csv",
    };
    let mut line = vec![name.to_owned(), order.to_owned(), changed.to_string()];
    line.extend(cells);
    Ok(line)
}
