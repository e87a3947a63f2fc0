//! Random operations, after which `verify` must find nothing.

use super::{Arguments, remove, some};
use crate::measure::measure;
use kinfolk::random::{SplitMix64, Stream};
use kinfolk_album::{AddOptions, Album};
use kinfolk_cli::failure::Failure;
use kinfolk_cli::table;
use std::collections::BTreeMap;

/// Rows in the album at the start, and in all.
const START: usize = 600;
const ROWS: usize = 1500;
/// The album is verified after so many operations.
const VERIFIED: usize = 50;

pub(super) fn run(arguments: &Arguments) -> Result<String, Failure> {
    let directory = arguments.directory("operations-album")?;
    let set = arguments.synthetic(ROWS)?.features;
    let n = set.len();
    let key = |row: usize| format!("item {row}");
    let options = |rows: &[usize]| AddOptions {
        keys: Some(rows.iter().map(|&row| key(row)).collect()),
        ..AddOptions::default()
    };
    let start: Vec<usize> = (0..START.min(n)).collect();
    let (mut album, _) =
        Album::create(&directory, &some(&set, start.iter().copied())?, &options(&start), 0, &())?;
    let mut random = Stream::from_state(arguments.seed);
    // How many of each operation were made, and how many refused.
    let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    let mut damages = Vec::new();
    let (mut verified, mut seconds) = (0, 0.0);
    for operation in 1..=arguments.operations {
        let inside: Vec<String> = album.items()?.into_iter().map(|(key, _)| key).collect();
        let any = |random: &mut Stream<SplitMix64>| inside[random.below(inside.len())].clone();
        let name = match random.below(100) {
            0..30 => "add",
            30..45 if inside.len() > START / 2 => "remove",
            45..60 => "same",
            60..75 => "apart",
            75..80 => "merge",
            80..85 => "name",
            85..99 => "undo",
            99 => "refresh",
            _ => "add",
        };
        let (result, cost) = match name {
            "add" => {
                let outside: Vec<usize> = (0..n).filter(|&row| !inside.contains(&key(row))).collect();
                let mut rows: Vec<usize> = (0..1 + random.below(4))
                    .filter(|_| !outside.is_empty())
                    .map(|_| outside[random.below(outside.len())])
                    .collect();
                rows.sort_unstable();
                rows.dedup();
                if rows.is_empty() {
                    continue;
                }
                let new = some(&set, rows.iter().copied())?;
                measure(|| album.add(&new, &options(&rows), &()))
            }
            "remove" => {
                let keys: Vec<String> = (0..1 + random.below(4)).map(|_| any(&mut random)).collect();
                measure(|| album.remove(&keys, &()))
            }
            "same" | "apart" => {
                // Half of them of one person, because two random items nearly never are.
                let a = any(&mut random);
                let person = album.person_of(&a)?;
                let members = album.person(&person.to_string())?;
                let b = if random.below(2) == 0 {
                    members[random.below(members.len())].clone()
                } else {
                    any(&mut random)
                };
                measure(|| if name == "same" { album.same(&a, &b, &()) } else { album.apart(&a, &b, &()) })
            }
            "merge" => {
                let people = album.people()?;
                let [a, b] = [0; 2].map(|_| people[random.below(people.len())].id.to_string());
                measure(|| album.merge(&a, &b, &()))
            }
            "name" => {
                let people = album.people()?;
                let person = people[random.below(people.len())].id;
                measure(|| album.name(&person.to_string(), &format!("name {person}")))
            }
            "undo" => measure(|| album.undo()),
            _ => measure(|| album.refresh(&())),
        };
        seconds += cost.seconds;
        counts.entry(name).or_default()[usize::from(result.is_err())] += 1;
        if operation % VERIFIED == 0 || operation == arguments.operations {
            verified += 1;
            damages.extend(album.verify()?.damages.into_iter().map(|damage| (operation, damage)));
            if !damages.is_empty() {
                break;
            }
        }
    }
    let headings = ["operation", "made", "refused"];
    let lines: Vec<Vec<String>> = counts
        .iter()
        .map(|(name, [made, refused])| vec![(*name).to_owned(), made.to_string(), refused.to_string()])
        .collect();
    println!(
        "{} random operations in {seconds:.0} s, verified {verified} times: {} damages",
        arguments.operations,
        damages.len()
    );
    damages.iter().for_each(|(operation, damage)| println!("after operation {operation}: {damage:?}"));
    table::print(&headings, &lines);
    println!();
    if !damages.is_empty() {
        return Err(kinfolk::Error::format(
            &directory,
            "an album without damages",
            format!("{} damages", damages.len()),
        )
        .into());
    }
    drop(album);
    remove(&directory)?;
    Ok(table::markdown(&headings, &lines))
}
