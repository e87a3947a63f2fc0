//! What each operation does.

use super::{album, contents, faces, keys, part, person, some, sound};
use crate::{AddOptions, Album};
use kinfolk::metrics::evaluate;
use kinfolk::{Clusterer, Embeddings};
use std::collections::{BTreeMap, BTreeSet};

fn labels(album: &Album) -> Vec<i64> {
    album.items().unwrap().into_iter().map(|item| item.1).collect()
}

#[test]
fn a_new_album_has_the_clusters_of_the_clusterer_and_exports_them() {
    let (rows, _) = faces(40, 1);
    let (directory, album) = album(&rows, rows.len());
    sound(&album);
    let found = Clusterer::new().fit(&rows).unwrap();
    let of_album = album.clustering(&()).unwrap();
    assert_eq!((of_album.labels, of_album.reason), (found.labels.clone(), found.reason.clone()));
    let out = directory.path().join("out");
    album.export(&out, &()).unwrap();
    assert_eq!(kinfolk::io::read_labels(&out.join("labels.npy")).unwrap(), found.labels);
    let of_run = std::fs::read_to_string(out.join("clusters.csv")).unwrap();
    let again = directory.path().join("again");
    let run = kinfolk::results::Run::new(&rows, "x".as_ref(), None, &found);
    kinfolk::results::write_results(&again, &found, &run, &Default::default()).unwrap();
    assert_eq!(of_run, std::fs::read_to_string(again.join("clusters.csv")).unwrap());
    let reopened = Album::open(album.directory()).unwrap();
    assert_eq!(contents(&reopened), contents(&album));
}

#[test]
fn rows_that_arrive_in_batches_are_clustered_nearly_as_at_once() {
    let (rows, truth) = faces(60, 2);
    let n = rows.len();
    let (_directory, mut album) = album(&rows, n / 2);
    for batch in 0..10 {
        let range = n / 2 + batch * (n - n / 2) / 10..n / 2 + (batch + 1) * (n - n / 2) / 10;
        album.add(&part(&rows, range.clone()), &keys(range), &()).unwrap();
        sound(&album);
    }
    let at_once = evaluate(&truth, &Clusterer::new().fit(&rows).unwrap().labels).unwrap();
    let grown = evaluate(&truth, &labels(&album)).unwrap();
    album.refresh(&()).unwrap();
    sound(&album);
    let refreshed = evaluate(&truth, &labels(&album)).unwrap();
    assert!(grown.bcubed.f > at_once.bcubed.f - 0.03, "{grown:?} {at_once:?}");
    assert!((refreshed.bcubed.f - at_once.bcubed.f).abs() < 1e-9, "{refreshed:?} {at_once:?}");
}

#[test]
fn only_people_to_whom_an_edge_leads_change() {
    let (rows, truth) = faces(60, 3);
    let last = truth[rows.len() - 1];
    let old: Vec<usize> = (0..rows.len()).filter(|&at| truth[at] != last).collect();
    let new: Vec<usize> = (0..rows.len()).filter(|&at| truth[at] == last).collect();
    let (_directory, mut album) = album(&some(&rows, &old), old.len());
    let before: BTreeMap<String, i64> = album.items().unwrap().into_iter().collect();
    let summary = album.add(&some(&rows, &new), &keys(old.len()..rows.len()), &()).unwrap();
    let moved = album
        .items()
        .unwrap()
        .into_iter()
        .filter(|(key, person)| before.get(key).is_some_and(|was| was != person));
    assert!(moved.count() <= old.len() / 50);
    assert!(summary.events.iter().any(|event| ["created", "grew"].contains(&event.kind.as_str())));
}

#[test]
fn names_and_ids_survive_a_doubled_album_and_a_refresh() {
    let (rows, _) = faces(50, 4);
    let n = rows.len();
    let (_directory, mut album) = album(&rows, n / 3);
    let largest: Vec<i64> = album.people().unwrap().iter().take(5).map(|person| person.id).collect();
    let mut of_person = BTreeMap::new();
    for (at, id) in largest.iter().enumerate() {
        album.name(&id.to_string(), &format!("Name {at}")).unwrap();
        of_person.insert(*id, album.person(&id.to_string()).unwrap());
    }
    album.add(&part(&rows, n / 3..n), &keys(n / 3..n), &()).unwrap();
    album.refresh(&()).unwrap();
    sound(&album);
    for (id, items) in of_person {
        let now: BTreeSet<String> = album.person(&id.to_string()).unwrap().into_iter().collect();
        assert!(items.iter().all(|item| now.contains(item)), "{id}");
        assert!(album.find(&id.to_string()).unwrap().name.is_some());
    }
}

#[test]
fn same_makes_people_one_and_apart_divides_them_for_good() {
    let (rows, _) = faces(40, 5);
    let n = rows.len();
    let (_directory, mut album) = album(&rows, n - 50);
    let people = album.people().unwrap();
    let [first, second] = [0, 1].map(|at| album.person(&people[at].id.to_string()).unwrap());
    album.same(&first[0], &second[0], &()).unwrap();
    assert_eq!(album.people().unwrap()[0].size, first.len() + second.len());
    let refused = album.apart(&first[0], &second[0], &()).unwrap_err().to_string();
    assert!(refused.contains(&format!("{} = {}", first[0], second[0])), "{refused}");
    album.undo().unwrap();
    assert_eq!(album.people().unwrap(), people);
    album.same(&first[0], &second[0], &()).unwrap();
    // Two other items of the two come apart with the structure around them, not alone.
    album.undo().unwrap();
    album.merge(&people[0].id.to_string(), &people[1].id.to_string(), &()).unwrap();
    sound(&album);
    album.add(&part(&rows, n - 50..n), &keys(n - 50..n), &()).unwrap();
    album.refresh(&()).unwrap();
    sound(&album);
    assert_eq!(person(&album, &first[0]), person(&album, &second[0]));
}

#[test]
fn apart_divides_two_merged_people_where_they_were_merged() {
    let (rows, truth) = faces(40, 6);
    let (_directory, mut album) = album(&rows, rows.len());
    let people = album.people().unwrap();
    let [first, second] = [0, 1].map(|at| album.person(&people[at].id.to_string()).unwrap());
    // Joined by a stray item of the second, as a wrong answer does.
    album.same(&first[0], &second[1], &()).unwrap();
    album.undo().unwrap();
    let identity = |key: &str| truth[key[1..].parse::<usize>().unwrap()];
    let other = second.iter().find(|key| identity(key) == identity(&second[0])).unwrap();
    let within = first.iter().find(|key| **key != first[0]).unwrap();
    let before = album.person(&people[0].id.to_string()).unwrap().len();
    album.apart(&first[0], within, &()).unwrap();
    sound(&album);
    assert_ne!(person(&album, &first[0]), person(&album, within));
    let sizes = [&first[0], within].map(|key| album.person(&person(&album, key).to_string()).unwrap().len());
    assert_eq!(sizes[0] + sizes[1], before);
    album.apart(&first[0], other, &()).unwrap();
    album.refresh(&()).unwrap();
    sound(&album);
    assert_ne!(person(&album, &first[0]), person(&album, within));
}

#[test]
fn corrections_survive_removal_and_adding_again() {
    let (rows, _) = faces(40, 7);
    let (_directory, mut album) = album(&rows, rows.len());
    let person_of = album.people().unwrap()[0].id.to_string();
    let items = album.person(&person_of).unwrap();
    album.apart(&items[0], &items[1], &()).unwrap();
    album.remove(&[items[1].clone()], &()).unwrap();
    sound(&album);
    let row: usize = items[1][1..].parse().unwrap();
    let again = AddOptions { keys: Some(vec!["other key".to_owned()]), ..AddOptions::default() };
    album.add(&part(&rows, row..row + 1), &again, &()).unwrap();
    sound(&album);
    assert_ne!(person(&album, &items[0]), person(&album, "other key"));
}

#[test]
fn what_cannot_be_is_refused_with_reasons() {
    let (rows, _) = faces(30, 8);
    let (directory, mut album) = album(&rows, 200);
    let people = album.people().unwrap();
    let before = contents(&album);
    let message = |result: kinfolk::Result<crate::Summary>| result.unwrap_err().to_string();
    let place = album.directory().display().to_string();
    assert_eq!(
        message(album.remove(&["nobody".into()], &())),
        format!("{place}: expected the key of an item of the album, found nobody")
    );
    assert_eq!(
        message(album.name("Ada", "Eva")),
        format!("{place}: expected the id or the name of a person, found Ada")
    );
    assert!(message(album.name(&people[0].id.to_string(), "12")).contains("no number"));
    let narrow = Embeddings::from_rows(vec![1.0; 16], 16, "x").unwrap();
    assert_eq!(
        message(album.add(&narrow, &AddOptions::default(), &())),
        "embeddings: expected 32 columns, as the album has, found 16"
    );
    assert_eq!(
        message(album.add(&part(&rows, 0..1), &keys(0..1), &())),
        "keys: row 0: expected a key that no other item has, found k0"
    );
    let nameless = AddOptions { keys: Some(vec![String::new()]), ..AddOptions::default() };
    assert_eq!(
        message(album.add(&part(&rows, 0..1), &nameless, &())),
        "keys: row 0: expected a key, found nothing"
    );
    let twice = Album::create(&directory.path().join("album"), &rows, &AddOptions::default(), 0, &());
    assert!(
        twice
            .err()
            .unwrap()
            .to_string()
            .ends_with("expected a directory that does not exist or is empty, found an album")
    );
    album.name(&people[0].id.to_string(), "Ada").unwrap();
    album.name(&people[1].id.to_string(), "Eva").unwrap();
    let [a, b] = ["Ada", "Eva"].map(|name| album.person(name).unwrap()[0].clone());
    assert!(message(album.same(&a, &b, &())).contains("found Ada and Eva"));
    album.undo().unwrap();
    album.undo().unwrap();
    assert_eq!(contents(&album), before);
    assert!(message(album.undo()).contains("expected a change that can be undone, found change 1 (create)"));
    sound(&album);
}

#[test]
fn embeddings_of_another_space_are_refused() {
    let (rows, _) = faces(60, 9);
    // Rows that share an offset, and rows of the same shape that do not.
    let shifted: Vec<f32> =
        rows.as_slice().iter().enumerate().map(|(at, v)| v + if at % 32 == 0 { 1.0 } else { 0.0 }).collect();
    let other = part(&rows, 0..40);
    let rows = Embeddings::from_rows(shifted, 32, "x").unwrap();
    let (_directory, mut album) = album(&rows, rows.len() - 40);
    let message = album.add(&other, &AddOptions::default(), &()).unwrap_err().to_string();
    assert!(message.contains("expected embeddings of the space of"), "{message}");
    album.add(&part(&rows, rows.len() - 40..rows.len()), &AddOptions::default(), &()).unwrap();
}

#[test]
fn items_of_one_photograph_are_different_people() {
    let (rows, truth) = faces(40, 10);
    let (_directory, mut album) = album(&rows, rows.len() - 30);
    let last = rows.len() - 30..rows.len();
    let groups = Some(last.clone().map(|_| Some("photograph".to_owned())).collect());
    album.add(&part(&rows, last.clone()), &AddOptions { groups, ..keys(last.clone()) }, &()).unwrap();
    sound(&album);
    let people: BTreeSet<i64> = last.clone().map(|at| person(&album, &format!("k{at}"))).collect();
    let identities: BTreeSet<i64> = last.map(|at| truth[at]).collect();
    assert!(people.len() > identities.len());
}

#[test]
fn known_rows_are_assigned_and_strangers_are_new() {
    let (rows, truth) = faces(60, 11);
    let n = rows.len() - 60;
    let (_directory, album) = album(&rows, n);
    let before = contents(&album);
    let found = album.assign(&part(&rows, n..rows.len()), 3, &()).unwrap();
    let mut of_person: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (at, (_, person)) in album.items().unwrap().into_iter().enumerate() {
        of_person.entry(person).or_default().push(truth[at]);
    }
    let (mut right, mut sure) = (0, 0);
    for (assignment, at) in found.iter().zip(n..) {
        let sum =
            assignment.new + assignment.people.iter().map(|candidate| candidate.probability).sum::<f64>();
        assert!(sum <= 1.0 + 1e-9 && assignment.people.len() <= 3);
        if let Some(best) = assignment.people.first().filter(|best| best.probability > 0.8) {
            sure += 1;
            let identities = &of_person[&best.person];
            right += usize::from(
                identities.iter().filter(|&&identity| identity == truth[at]).count() * 2 > identities.len(),
            );
        }
    }
    assert!(sure > 20 && right * 10 >= sure * 8, "{right} of {sure} of {}", found.len());
    assert_eq!(contents(&album), before);
}

#[test]
fn answers_to_questions_help_and_are_not_asked_twice() {
    let (rows, truth) = faces(80, 12);
    let (_directory, mut album) = album(&rows, rows.len());
    let score = |album: &Album| evaluate(&truth, &labels(album)).unwrap().bcubed.f;
    let before = score(&album);
    let mut asked = BTreeSet::new();
    for _ in 0..25 {
        let Some(question) = album.questions(1).unwrap().into_iter().next() else { break };
        assert!(asked.insert(question.items.clone()), "{question:?}");
        let [a, b] = &question.items;
        let identity = |key: &str| truth[key[1..].parse::<usize>().unwrap()];
        let answer = if identity(a) == identity(b) { album.same(a, b, &()) } else { album.apart(a, b, &()) };
        answer.unwrap();
    }
    sound(&album);
    assert!(score(&album) > before, "{} {before}", score(&album));
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let (rows, _) = faces(40, 13);
    let run = || {
        let (directory, mut album) = album(&rows, 300);
        album.add(&part(&rows, 300..400), &keys(300..400), &()).unwrap();
        album.remove(&["k7".to_owned()], &()).unwrap();
        let questions = album.questions(20).unwrap();
        let state: String = album
            .connection
            .query_row("SELECT value FROM meta WHERE name = 'state'", [], |r| r.get(0))
            .unwrap();
        let state = std::fs::read(album.directory().join(state)).unwrap();
        let records = std::fs::read(album.directory().join("edges-1")).unwrap();
        drop(directory);
        (contents(&album), questions, state, records)
    };
    let [one, three] = [1, 3]
        .map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run));
    assert!(one == three);
}
