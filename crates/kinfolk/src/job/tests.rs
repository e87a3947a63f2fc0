use super::*;
use crate::io::{write_npy_f32, write_npy_i64};
use crate::random::{Purpose, Stream};
use crate::synth::{Synth, SynthParams};
use crate::{Clusterer, Method, Problem};
use std::fs;
use tempfile::TempDir;

fn synthetic(identities: usize, dim: usize) -> Embeddings {
    let params = SynthParams { identities, dim, seed: 5, ..SynthParams::default() };
    Synth::new(params).unwrap().whole().to_embeddings().unwrap().0
}

/// Writes rows as shards of these lengths, the last with all that are left.
fn shards(directory: &Path, rows: &Embeddings, lengths: &[usize]) -> Vec<PathBuf> {
    let dim = rows.dim();
    let mut left = rows.as_slice();
    let mut paths = Vec::new();
    for shard in 0..=lengths.len() {
        let (these, others) = left.split_at(lengths.get(shard).map_or(left.len(), |length| length * dim));
        left = others;
        let path = directory.join(format!("shard{shard}.npy"));
        write_npy_f32(&path, these, dim).unwrap();
        paths.push(path);
    }
    paths
}

/// Runs all stages: blocks in random order, some of them twice, as if they had been lost.
fn run(job: &Job, seed: u64) -> Vec<String> {
    let mut stream = Stream::new(seed, Purpose::Image, 0, 0);
    let mut names = Vec::new();
    while let Some(JobStage { name, mut left, .. }) = job.next_stage().unwrap() {
        let again: Vec<usize> = left.iter().copied().filter(|block| block % 3 == 1).collect();
        left.extend(again);
        stream.shuffle(&mut left);
        for block in left {
            Job::open(job.directory()).unwrap().run(&name, block).unwrap();
        }
        assert!(job.next_stage().unwrap().unwrap().left.is_empty());
        job.finish(&name).unwrap();
        names.push(name);
    }
    names
}

/// A job on these rows finds what the clusterer finds.
fn check(rows: &Embeddings, lengths: &[usize], params: &JobParams) -> Vec<String> {
    let directory = TempDir::new().unwrap();
    let paths = shards(directory.path(), rows, lengths);
    let job = Job::create(&directory.path().join("job"), &paths, params).unwrap();
    let names = run(&job, 3);
    let found = job.result(&()).unwrap();
    let clusterer = Clusterer::with(params.method.clone()).seed(params.seed);
    let problem = Problem::new(rows).with_search(params.search).with_k(params.k).unwrap();
    let expected = clusterer.run(&problem).unwrap();
    assert!(found.labels == expected.labels, "other labels");
    let graph = |found: &Clustering| found.report.graph.clone();
    assert_eq!(graph(&found), graph(&expected));
    assert_eq!(found.report.parameters, expected.report.parameters);
    assert!(found.edges() == expected.edges(), "other reasons");
    names
}

#[test]
fn labels_are_those_of_the_clusterer_after_an_exact_search() {
    let rows = synthetic(25, 64);
    let params = |block_rows| JobParams { block_rows: Some(block_rows), ..JobParams::default() };
    for (lengths, block_rows) in [(&[][..], 8192), (&[100, 3, 700], 300), (&[1], 1000)] {
        let names = check(&rows, lengths, &params(block_rows));
        assert!(names.contains(&"exact-neighbours".to_owned()), "{names:?}");
    }
}

#[test]
fn labels_are_those_of_the_clusterer_after_an_approximate_search() {
    let rows = synthetic(45, 32);
    for (recall, block_rows, k) in [(0.98, 8192, None), (0.995, 700, Some(40)), (0.6, 1300, Some(7))] {
        let search = SearchKind::Recall(recall);
        let params = JobParams { search, k, block_rows: Some(block_rows), seed: 9, ..JobParams::default() };
        let names = check(&rows, &[600, 200], &params);
        assert!(names.contains(&"neighbours-0".to_owned()), "{names:?}");
    }
}

#[test]
fn copies_are_found_as_by_the_clusterer() {
    let rows = synthetic(30, 32);
    let mut data = rows.as_slice().to_vec();
    (0..150).for_each(|_| data.extend_from_slice(rows.row(17)));
    let rows = Embeddings::from_rows(data, 32, "test").unwrap();
    for search in [SearchKind::Auto, SearchKind::Recall(0.95)] {
        let params = JobParams { search, k: Some(20), block_rows: Some(400), ..JobParams::default() };
        let names = check(&rows, &[90], &params);
        assert_eq!(names.iter().filter(|name| *name == "copies").count(), 1);
    }
    let equal = Embeddings::from_rows([3.0, 4.0].repeat(200), 2, "test").unwrap();
    check(&equal, &[], &JobParams::default());
}

#[test]
fn tiny_sets_are_clustered() {
    for count in 1..5 {
        let data = (0..count).flat_map(|i| [1.0, i as f32, 0.3, -0.2]).collect();
        check(&Embeddings::from_rows(data, 4, "test").unwrap(), &[], &JobParams::default());
    }
}

#[test]
fn methods_are_applied_with_their_parameters() {
    let rows = synthetic(40, 32);
    let mut method = Kin::default();
    for (name, value) in [("prefer", "recall"), ("identity_size", "12")] {
        method.parameters_mut().set(name, value).unwrap();
    }
    check(&rows, &[], &JobParams { method, block_rows: Some(200), ..JobParams::default() });
}

#[test]
fn a_job_goes_on_where_it_was_and_refuses_another() {
    let directory = TempDir::new().unwrap();
    let rows = synthetic(30, 32);
    let paths = shards(directory.path(), &rows, &[50]);
    let at = directory.path().join("job");
    let params = JobParams { block_rows: Some(256), ..JobParams::default() };
    let job = Job::create(&at, &paths, &params).unwrap();
    let stage = job.next_stage().unwrap().unwrap();
    assert_eq!((&*stage.name, stage.blocks, stage.left), ("shapes", 2, vec![0, 1]));
    job.run("shapes", 1).unwrap();
    let message = |result: Result<()>| result.unwrap_err().to_string();
    let text = message(job.finish("shapes"));
    assert!(text.ends_with("expected all 2 blocks of shapes done, found block 0 that is not"), "{text}");
    let text = message(job.run("rows", 0));
    assert!(text.ends_with("expected stage shapes, found stage rows"), "{text}");
    let text = message(job.run("shapes", 2));
    assert!(text.ends_with("expected one of 2 blocks of shapes, found block 2"), "{text}");
    let text = message(job.result(&()).map(drop));
    assert!(text.ends_with("expected a job whose stages are finished, found one in stage shapes"), "{text}");
    let again = Job::create(&at, &paths, &params).unwrap();
    assert_eq!(again.next_stage().unwrap().unwrap().left, [0]);
    let others = JobParams { seed: 1, ..params.clone() };
    let text = message(Job::create(&at, &paths, &others).map(drop));
    assert!(
        text.contains("expected a job with seed 1 (remove the directory to begin anew), found seed 0"),
        "{text}"
    );
    let text = message(Job::create(&at, &paths[..1], &params).map(drop));
    assert!(text.contains("number of shards 1"), "{text}");
    // Memory may change: the blocks are those of the beginning.
    let more = JobParams { block_rows: None, memory: Some(4 << 30), ..params };
    run(&Job::create(&at, &paths, &more).unwrap(), 1);
    job.remove().unwrap();
    assert!(!at.exists());
}

#[test]
fn bad_shards_are_named() {
    let directory = TempDir::new().unwrap();
    let rows = synthetic(12, 16);
    let paths = shards(directory.path(), &rows, &[40, 40, 30]);
    let first_error = |paths: &[PathBuf]| {
        let at = TempDir::new().unwrap();
        let job = Job::create(&at.path().join("job"), paths, &JobParams::default());
        let all = job.and_then(|job| {
            while let Some(stage) = job.next_stage()? {
                stage.left.iter().try_for_each(|&block| job.run(&stage.name, block))?;
                job.finish(&stage.name)?;
            }
            Ok(())
        });
        all.unwrap_err().to_string()
    };
    let write = |name: &str, data: &[f32], dim: usize| {
        let path = directory.path().join(name);
        write_npy_f32(&path, data, dim).unwrap();
        path
    };
    let mut data = rows.as_slice()[..30 * 16].to_vec();
    data[12 * 16 + 5] = f32::NAN;
    let bad = write("nan.npy", &data, 16);
    let place = bad.display().to_string();
    let with = |path: PathBuf| [paths[0].clone(), path, paths[1].clone()];
    assert_eq!(
        first_error(&with(bad)),
        format!("{place}: row 12, column 5: expected a finite number, found NaN")
    );
    let other = write("other.npy", &rows.as_slice()[..30 * 16], 8);
    let (place, first) = (other.display().to_string(), paths[0].display().to_string());
    assert_eq!(first_error(&with(other)), format!("{place}: expected 16 columns, as in {first}, found 8"));
    let missing = directory.path().join("missing.npy");
    let place = missing.display().to_string();
    assert_eq!(first_error(&with(missing)), format!("{place}: no such file"));
    let labels = directory.path().join("labels.npy");
    write_npy_i64(&labels, &[1, 2]).unwrap();
    assert!(first_error(&with(labels)).contains("labels.npy: expected"));
    let cut = directory.path().join("cut.npy");
    let bytes = fs::read(&paths[2]).unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 9]).unwrap();
    assert!(first_error(&with(cut)).contains("cut.npy: expected 1920 bytes of data"));
}

#[test]
fn parameters_that_a_job_cannot_have_are_refused() {
    let directory = TempDir::new().unwrap();
    let paths = shards(directory.path(), &synthetic(10, 16), &[]);
    let message = |params: JobParams| {
        let job = Job::create(&directory.path().join("job"), &paths, &params);
        job.map(drop).unwrap_err().to_string()
    };
    let mut method = Kin::default();
    method.parameters_mut().set("super_vertices", "0.9").unwrap();
    let params = JobParams::default;
    assert_eq!(
        message(JobParams { method, ..params() }),
        "super_vertices: expected 1 in a job, which contracts nothing, found 0.9"
    );
    assert_eq!(message(JobParams { k: Some(0), ..params() }), "k: expected at least 1, found 0");
    assert_eq!(
        message(JobParams { k: Some(2000), ..params() }),
        "k: expected at most 1024 neighbours, found 2000"
    );
    let search = SearchKind::Recall(1.5);
    assert_eq!(
        message(JobParams { search, ..params() }),
        "recall: expected a number above 0, at most 1, found 1.5"
    );
    assert_eq!(
        message(JobParams { memory: Some(100 << 20), ..params() }),
        "a block of a job needs 235 MB of memory, 105 MB may be used"
    );
    let none = Job::create(&directory.path().join("job"), &[], &params()).map(drop).unwrap_err();
    assert_eq!(none.to_string(), "paths: expected at least one file of embeddings, found none");
    let text = Job::open(directory.path()).map(drop).unwrap_err().to_string();
    assert!(text.ends_with("expected the directory of a job, found none"), "{text}");
}
