//! Rows that arrive in 100 batches, compared with clustering them at once; and what people who were named after half of the
//! batches have kept in the end.
//!
//! A second album is corrected: whenever an item leaves somebody with a name whose items are mostly of its identity, the user says
//! that it is the same as the first of those items.

use super::{Arguments, labels, remove, shuffled, some};
use crate::labelled::Labelled;
use crate::scores::{both_f, percent};
use kinfolk::Clusterer;
use kinfolk::metrics::evaluate;
use kinfolk_album::{AddOptions, Album, Summary};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::table;
use std::collections::{BTreeMap, HashMap};

const BATCHES: usize = 100;
/// People of fewer items are not named.
const LEAST: usize = 2;

pub(super) fn run(arguments: &Arguments) -> Result<String, Failure> {
    let mut sets = vec![("synth".to_owned(), arguments.synthetic(arguments.batched)?)];
    for name in ["facepool_test", "lfw"] {
        if let Some(set) = arguments.faces(name)? {
            sets.push((name.to_owned(), shuffled(&set, arguments.seed)?));
        }
    }
    let headings = [
        "set",
        "rows",
        "at once",
        "100 batches",
        "after refresh",
        "named",
        "their items",
        "kept, %",
        "after refresh, %",
        "corrected",
        "kept, %",
        "s",
    ];
    let mut lines = Vec::new();
    for (name, set) in &sets {
        lines.push(line(arguments, name, set)?);
    }
    println!("Rows in {BATCHES} batches: pairwise / BCubed F, and what people with names keep");
    table::print(&headings, &lines);
    println!();
    Ok(table::markdown(&headings, &lines))
}

fn line(arguments: &Arguments, name: &str, set: &Labelled) -> Result<Vec<String>, Failure> {
    let once = Clusterer::new().progress(&Bars::default()).fit(&set.features)?;
    let start = std::time::Instant::now();
    let plain = grown(arguments, set, false)?;
    let seconds = start.elapsed().as_secs_f64();
    let corrected = grown(arguments, set, true)?;
    let f = |labels: &[i64]| -> Result<String, Failure> {
        let [pairwise, bcubed] = both_f(&evaluate(&set.labels, labels)?);
        Ok(format!("{pairwise:.2} / {bcubed:.2}"))
    };
    Ok(vec![
        name.to_owned(),
        set.labels.len().to_string(),
        f(&once.labels)?,
        f(&plain.labels)?,
        f(&plain.refreshed)?,
        plain.named.to_string(),
        plain.items.to_string(),
        percent(plain.kept),
        percent(plain.kept_after_refresh),
        corrected.corrections.to_string(),
        percent(corrected.kept),
        format!("{seconds:.0}"),
    ])
}

/// What is known of an album that grew.
struct Grown {
    labels: Vec<i64>,
    refreshed: Vec<i64>,
    named: usize,
    items: usize,
    corrections: usize,
    /// The share of the items of named people that are theirs.
    kept: f64,
    kept_after_refresh: f64,
}

/// The items that people had when they were named: by key the person, and by person its first item that is of the identity that
/// most of its items are of.
struct Named {
    person_of: HashMap<String, i64>,
    first: HashMap<i64, String>,
    identity: HashMap<i64, i64>,
}

impl Named {
    /// Gives names to all people of at least [`LEAST`] items.
    fn all(album: &mut Album, set: &Labelled) -> Result<Self, Failure> {
        let mut members: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for (key, person) in album.items()? {
            members.entry(person).or_default().push(key);
        }
        members.retain(|_, keys| keys.len() >= LEAST);
        let (mut person_of, mut first, mut identity) = (HashMap::new(), HashMap::new(), HashMap::new());
        for (person, keys) in members {
            album.name(&person.to_string(), &format!("name {person}"))?;
            let mut count: BTreeMap<i64, usize> = BTreeMap::new();
            keys.iter().for_each(|key| *count.entry(identity_of(key, set)).or_default() += 1);
            let most =
                count.into_iter().max_by_key(|&(label, count)| (count, -label)).map(|(label, _)| label);
            let Some(most) = most else { continue };
            identity.insert(person, most);
            first.extend(
                keys.iter().find(|key| identity_of(key, set) == most).map(|key| (person, key.clone())),
            );
            person_of.extend(keys.into_iter().map(|key| (key, person)));
        }
        Ok(Self { person_of, first, identity })
    }

    /// The share of these items that are with their person.
    fn kept(&self, album: &Album) -> Result<f64, Failure> {
        let now: HashMap<String, i64> = album.items()?.into_iter().collect();
        let kept = self.person_of.iter().filter(|(key, person)| now.get(*key) == Some(*person)).count();
        Ok(kept as f64 / self.person_of.len().max(1) as f64)
    }

    /// Brings items back that have left a person of their identity, as its user would.
    fn correct(&self, album: &mut Album, summary: &Summary, set: &Labelled) -> Result<usize, Failure> {
        let mut corrections = 0;
        let moved = summary.events.iter().filter(|event| event.other.is_some());
        for key in moved.flat_map(|event| &event.items) {
            let Some(person) = self.person_of.get(key) else { continue };
            let is_now = album.person_of(key)?;
            if is_now != *person && self.identity.get(person) == Some(&identity_of(key, set)) {
                corrections += usize::from(album.same(&self.first[person], key, &()).is_ok());
            }
        }
        Ok(corrections)
    }
}

/// Keys are the numbers of rows.
fn identity_of(key: &str, set: &Labelled) -> i64 {
    key.parse::<usize>().map_or(-1, |row| set.labels[row])
}

fn grown(arguments: &Arguments, set: &Labelled, correct: bool) -> Result<Grown, Failure> {
    let directory = arguments.directory("batches-album")?;
    let options = AddOptions::default();
    let n = set.labels.len();
    let batch = |at: usize| some(&set.features, at * n / BATCHES..(at + 1) * n / BATCHES);
    let (mut album, _) = Album::create(&directory, &batch(0)?, &options, 0, &())?;
    let (mut named, mut corrections) = (None, 0);
    for at in 1..BATCHES {
        let summary = album.add(&batch(at)?, &options, &())?;
        match &named {
            Some(named) if correct => corrections += Named::correct(named, &mut album, &summary, set)?,
            None if at + 1 == BATCHES / 2 => named = Some(Named::all(&mut album, set)?),
            _ => {}
        }
    }
    let named = match named {
        Some(named) => named,
        None => Named::all(&mut album, set)?,
    };
    let (found, kept) = (labels(&album)?, named.kept(&album)?);
    let summary = album.refresh(&())?;
    if correct {
        corrections += named.correct(&mut album, &summary, set)?;
    }
    let (refreshed, kept_after_refresh) = (labels(&album)?, named.kept(&album)?);
    drop(album);
    remove(&directory)?;
    Ok(Grown {
        labels: found,
        refreshed,
        named: named.first.len(),
        items: named.person_of.len(),
        corrections,
        kept,
        kept_after_refresh,
    })
}
