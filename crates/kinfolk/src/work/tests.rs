use super::*;
use crate::testing::on_one_and_three_threads;
use crate::{Clusterer, Embeddings, KnnParams, knn_graph};
use proptest::prelude::*;

fn key(k: usize) -> Key {
    Key::new().with("k", k)
}

fn directory() -> (tempfile::TempDir, Work) {
    let directory = tempfile::tempdir().unwrap();
    let work = Work::open(directory.path()).unwrap();
    (directory, work)
}

fn never() -> Result<Vec<i64>> {
    panic!("the stage was kept")
}

fn message<T>(result: Result<T>) -> String {
    result.err().unwrap().to_string()
}

#[test]
fn a_stage_runs_once_and_only_for_its_inputs() {
    let (directory, work) = directory();
    assert_eq!(work.keep("partition", &key(5), || Ok(vec![3, -1])).unwrap(), [3, -1]);
    assert_eq!(work.keep("partition", &key(5), never).unwrap(), [3, -1]);
    let place = directory.path().join("partition.kept");
    let place = place.display();
    assert_eq!(
        message(work.keep("partition", &key(6), never)),
        format!("{place}: expected stage partition with k 6 (remove the file to run it again), found k 5")
    );
    assert!(
        message(work.keep("partition", &key(5).with("graph", "of 3 rows"), never))
            .ends_with("found no graph")
    );
    std::fs::copy(directory.path().join("partition.kept"), directory.path().join("other.kept")).unwrap();
    assert!(message(work.keep("other", &key(5), never)).ends_with("expected stage other, found partition"));
    // One that fails leaves nothing.
    assert!(work.keep::<Vec<i64>>("failed", &key(5), || Err(Error::Cancelled)).is_err());
    let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().contains("failed")));
}

#[test]
fn a_damaged_file_is_refused_wherever_it_is_damaged() {
    let (directory, work) = directory();
    let path = directory.path().join("partition.kept");
    work.keep("partition", &key(5), || Ok((0..20).collect::<Vec<i64>>())).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let message = message(work.keep("partition", &key(5), never));
        assert!(message.contains("partition.kept: expected"), "{length}: {message}");
    }
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        std::fs::write(&path, &damaged).unwrap();
        let message = message(work.keep("partition", &key(5), never));
        assert!(message.contains("partition.kept: expected"), "{at}: {message}");
    }
}

#[test]
fn a_directory_has_one_user() {
    let (directory, work) = directory();
    assert!(
        message(Work::open(directory.path()))
            .ends_with("expected a directory that no other run uses, found one in use")
    );
    drop(work);
    Work::open(directory.path()).unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(message(Work::open(&file)).ends_with("expected a directory to work in, found a file"));
}

/// Fills two arrays of three bytes.
fn take(journal: &Journal, number: u64) -> Option<[u8; 6]> {
    let mut found = [0; 6];
    let (one, other) = found.split_at_mut(3);
    journal.take(number, &mut [one, other]).unwrap().then_some(found)
}

#[test]
fn a_journal_that_was_cut_anywhere_has_the_blocks_before() {
    let (directory, work) = directory();
    let path = directory.path().join("knn.part");
    let journal = work.journal("knn", &key(5)).unwrap();
    let start = std::fs::metadata(&path).unwrap().len();
    for (number, array) in [(7, b"abc"), (2, b"def"), (9, b"ghi")] {
        journal.add(number, &[array, b"xyz"]).unwrap();
    }
    drop(journal);
    let whole = std::fs::read(&path).unwrap();
    let block = (whole.len() as u64 - start) / 3;
    for length in 0..=whole.len() as u64 {
        std::fs::write(&path, &whole[..length as usize]).unwrap();
        let journal = work.journal("knn", &key(5)).unwrap();
        let blocks = length.saturating_sub(start) / block;
        let expected = [blocks >= 1, blocks >= 2, blocks >= 3];
        assert_eq!([7, 2, 9].map(|number| take(&journal, number).is_some()), expected, "{length}");
        journal.add(4, &[b"new", b"..."]).unwrap();
        let journal = work.journal("knn", &key(5)).unwrap();
        assert_eq!(take(&journal, 4), Some(*b"new..."));
        assert_eq!(take(&journal, 7), (blocks >= 1).then_some(*b"abcxyz"));
    }
    // A damaged block ends what is known.
    let mut damaged = whole.clone();
    damaged[(start + block) as usize + 21] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let journal = work.journal("knn", &key(5)).unwrap();
    assert_eq!([7, 2, 9].map(|number| take(&journal, number).is_some()), [true, false, false]);
    assert!(
        message(journal.take(7, &mut [&mut [0; 5]])).ends_with("expected block 7 of 5 bytes, found 6 bytes")
    );
    assert!(message(work.journal("knn", &key(6)).map(drop)).ends_with("found k 5"));
    std::fs::write(&path, b"something else\n").unwrap();
    assert!(
        message(work.journal("knn", &key(5)).map(drop))
            .ends_with("expected unfinished stage knn, found a damaged header")
    );
}

#[test]
fn a_kept_run_is_the_run() {
    let params = crate::synth::SynthParams { identities: 40, dim: 32, ..Default::default() };
    let (rows, _) = crate::synth::Synth::new(params).unwrap().whole().to_embeddings().unwrap();
    let expected = Clusterer::new().fit(&rows).unwrap();
    let (directory, work) = directory();
    let kept = || {
        let found = Clusterer::new().work(&work).fit(&rows).unwrap();
        assert_eq!((&found.labels, &found.reason), (&expected.labels, &expected.reason));
        assert_eq!(found.report.parameters, expected.report.parameters);
        assert_eq!(found.report.graph, expected.report.graph);
    };
    on_one_and_three_threads(kept);
    // Without the last stages.
    for stages in
        [&["partition"][..], &["partition", "connectivity"], &["knn"], &["knn", "connectivity", "partition"]]
    {
        for stage in stages {
            std::fs::remove_file(directory.path().join(format!("{stage}.kept"))).unwrap();
        }
        kept();
    }
    let others = Clusterer::new().work(&work).seed(1).fit(&rows);
    assert!(message(others).contains("knn.kept: expected stage knn with seed 1"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn keys_depend_on_every_value_and_its_place(values in prop::collection::vec(0.1f32..1.0, 12), other in 0usize..12) {
        let rows = |values: &[f32]| Embeddings::from_rows(values.to_vec(), 3, "test").unwrap();
        let key = |values: &[f32]| Key::new().with_rows(&rows(values));
        let mut changed = values.clone();
        changed[other] += 0.5;
        prop_assert_ne!(key(&values), key(&changed));
        let mut turned = values.clone();
        turned.rotate_left(3);
        prop_assert!(key(&values) != key(&turned) || values == turned);
        let graph = |k| knn_graph(&rows(&values), &KnnParams { k, ..KnnParams::default() }, &()).unwrap().0;
        prop_assert_ne!(Key::new().with_graph(&graph(1)), Key::new().with_graph(&graph(2)));
        prop_assert_eq!(key(&values).difference(&key(&values)), None);
    }
}
