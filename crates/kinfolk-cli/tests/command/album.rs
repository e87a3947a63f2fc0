//! `kinfolk album`: every verb, what is refused, and what happens when a process is killed or two write at once.

use super::{kinfolk, succeeds};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

/// A set of 30 identities in two files, and an album of the first.
fn prepared() -> TempDir {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    succeeds(path, &["synth", "set", "--identities", "30", "--dim", "32", "--split", "0.5"]);
    succeeds(path, &["album", "create", "album", "set/train_features.npy"]);
    directory
}

fn json(directory: &Path, arguments: &[&str]) -> Value {
    succeeds(directory, &[&["album"], arguments, &["--json"]].concat()).json()
}

fn refused(directory: &Path, arguments: &[&str]) -> String {
    let run = kinfolk(directory, &[&["album"], arguments].concat());
    assert_eq!(run.code(), 1, "{arguments:?}: {}", run.stderr());
    run.stderr().trim().to_owned()
}

/// The people of all items, and what was said.
fn contents(directory: &Path) -> (BTreeMap<String, i64>, usize) {
    let people = json(directory, &["people", "album"]);
    let mut items = BTreeMap::new();
    for id in people.as_array().unwrap().iter().map(|person| person["id"].as_i64().unwrap()) {
        let person = json(directory, &["person", "album", &id.to_string()]);
        items.extend(
            person["items"].as_array().unwrap().iter().map(|key| (key.as_str().unwrap().to_owned(), id)),
        );
    }
    let history = json(directory, &["history", "album"]);
    (items, history.as_array().unwrap().len())
}

#[test]
fn every_verb_has_an_example_and_json() {
    let directory = prepared();
    let path = directory.path();
    let verbs = [
        "create",
        "add",
        "remove",
        "same",
        "apart",
        "name",
        "merge",
        "people",
        "person",
        "questions",
        "assign",
        "refresh",
        "history",
        "undo",
        "export",
        "verify",
    ];
    for verb in verbs {
        let help = succeeds(path, &["album", verb, "--help"]).stdout();
        assert!(help.contains(&format!("kinfolk album {verb}")) && help.contains("--json"), "{verb}");
    }
    let added = json(path, &["add", "album", "set/test_features.npy"]);
    let people = json(path, &["people", "album"]);
    assert!(added["items"].as_u64() > people[0]["size"].as_u64());
    let [first, second] = [0, 1].map(|at| people[at]["id"].to_string());
    assert_eq!(json(path, &["name", "album", &first, "Ada"])["events"][0]["after"], "Ada");
    let ada = json(path, &["person", "album", "Ada"]);
    let [a, b] = [0, 1].map(|at| ada["items"][at].as_str().unwrap().to_owned());
    json(path, &["apart", "album", &a, &b]);
    let chain = refused(path, &["same", "album", &a, &b]);
    assert!(
        chain.ends_with(&format!(
            "expected corrections that do not say that {a} and {b} are apart, found {a} | {b}"
        )),
        "{chain}"
    );
    json(path, &["undo", "album"]);
    json(path, &["same", "album", &a, &b]);
    json(path, &["merge", "album", "Ada", &second]);
    json(path, &["remove", "album", &a]);
    assert_eq!(json(path, &["questions", "album", "-n", "3"]).as_array().unwrap().len(), 3);
    let assigned = json(path, &["assign", "album", "set/test_features.npy", "--top", "2"]);
    assert!(assigned[0]["people"].as_array().unwrap().len() <= 2 && assigned[0]["new"].is_number());
    json(path, &["refresh", "album"]);
    assert_eq!(json(path, &["history", "album"])[0]["operation"], "refresh");
    json(path, &["export", "album", "-o", "out"]);
    succeeds(path, &["explain", "out", "0", "1"]);
    assert_eq!(json(path, &["verify", "album"])["damages"].as_array().unwrap().len(), 0);
    assert!(succeeds(path, &["album", "questions", "album", "-n", "1"]).stdout().contains("Are "));
}

#[test]
fn what_is_refused_names_the_file_the_key_and_the_row() {
    let directory = prepared();
    let path = directory.path();
    succeeds(path, &["synth", "wide", "--identities", "5", "--dim", "16"]);
    assert_eq!(
        refused(path, &["add", "album", "wide/features.npy"]),
        "error: wide/features.npy: expected 32 columns, as the album has, found 16"
    );
    assert_eq!(
        refused(path, &["remove", "album", "x"]),
        "error: album: expected the key of an item of the album, found x"
    );
    assert_eq!(
        refused(path, &["person", "album", "Eva"]),
        "error: album: expected the id or the name of a person, found Eva"
    );
    assert_eq!(
        refused(path, &["people", "nothing"]),
        "error: nothing: expected an album (kinfolk album create makes one), found no such directory"
    );
    fs::write(path.join("keys.txt"), "a\nb\n").unwrap();
    let short = refused(path, &["add", "album", "set/test_features.npy", "--keys", "keys.txt"]);
    assert!(
        short.starts_with("error: keys.txt: expected ") && short.ends_with("lines (one per row), found 2"),
        "{short}"
    );
    assert!(refused(path, &["create", "album", "set/test_features.npy"]).contains("found an album"));
}

/// Killed at random moments, the album is as before or as after.
#[test]
fn a_killed_change_was_made_or_not_made() {
    const KILLS: u32 = 200;
    let directory = prepared();
    let path = directory.path();
    let spawn = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kinfolk"));
        command.args(arguments).current_dir(path).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let start = Instant::now();
    let add = ["album", "add", "album", "set/test_features.npy"];
    assert!(spawn(&add).wait().unwrap().success());
    let mut whole = start.elapsed();
    succeeds(path, &["album", "undo", "album"]);
    let changes = || json(path, &["history", "album"]).as_array().unwrap().len();
    let sound = || assert_eq!(json(path, &["verify", "album"])["damages"].as_array().unwrap().len(), 0);
    let (mut made, mut round, mut killed) = (changes(), 0u32, 0);
    while killed < KILLS {
        let undo = ["album", "undo", "album"];
        let adding = made % 2 == 1;
        let mut child = spawn(if adding { &add } else { &undo });
        std::thread::sleep(whole.mul_f64(f64::from(round * 37 % 100) / 100.0));
        if child.try_wait().unwrap().is_none() {
            killed += 1;
        } else {
            // The machine is faster now than it was.
            whole = whole.mul_f64(0.99);
        }
        let _ = child.kill();
        child.wait().unwrap();
        let now = changes();
        assert!(now == made || now == made + 1);
        made = now;
        if round % 16 == 0 {
            sound();
        }
        round += 1;
    }
    sound();
}

#[test]
#[cfg(unix)]
fn a_reader_that_ends_early_is_no_error() {
    let directory = prepared();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kinfolk"));
    command.args(["album", "people", "album"]).current_dir(directory.path());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// On a full disk a change is refused, and the album is as before.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_and_changes_nothing() {
    let directory = prepared();
    let path = directory.path();
    let disk = path.join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = |options: &str| {
        Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&disk).output()
    };
    if !mount("size=100M").is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: mounting a small disk needs root");
        return;
    }
    /// Unmounts the disk, whatever happens.
    struct Mounted(std::path::PathBuf);
    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("-l").arg(&self.0).output();
        }
    }
    let _mounted = Mounted(disk.clone());
    succeeds(path, &["album", "create", "disk/album", "set/train_features.npy"]);
    let people = json(path, &["people", "disk/album"]);
    let history = json(path, &["history", "disk/album"]);
    // A disk cannot be smaller than the pages that are in use.
    let pages = |entry: fs::DirEntry| entry.metadata().unwrap().len().next_multiple_of(4096);
    let used: u64 = fs::read_dir(disk.join("album")).unwrap().map(|entry| pages(entry.unwrap())).sum();
    let (mut full, mut made) = (0, 0);
    // From no room at all to more than enough.
    for more in (0..).map(|step| step * 60_000) {
        assert!(mount(&format!("remount,size={}k", (used + more) / 1024)).unwrap().status.success());
        let run = kinfolk(path, &["album", "add", "disk/album", "set/test_features.npy"]);
        assert!(mount("remount,size=100M").unwrap().status.success());
        assert_eq!(json(path, &["verify", "disk/album"])["damages"].as_array().unwrap().len(), 0);
        if run.code() == 0 {
            made += 1;
            break;
        }
        full += 1;
        assert!(run.stderr().contains("disk/album"), "{}", run.stderr());
        assert_eq!(json(path, &["people", "disk/album"]), people);
        assert_eq!(json(path, &["history", "disk/album"]), history);
    }
    assert!(full > 3 && made == 1, "{full} {made}");
}

#[test]
fn two_processes_at_once_do_not_mix() {
    let directory = prepared();
    let path = directory.path();
    let before = contents(path).1;
    let spawn = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kinfolk"));
        let arguments = ["album", "refresh", "album"];
        command
            .args(arguments)
            .current_dir(path)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children = [spawn(), spawn()];
    // Readers do not wait.
    json(path, &["people", "album"]);
    let outputs = children.map(|child| child.wait_with_output().unwrap());
    let done = outputs.iter().filter(|output| output.status.success()).count();
    for output in outputs.iter().filter(|output| !output.status.success()) {
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            // Which one, if it has written its number by then.
            message.contains("expected no other process that changes the album, found "),
            "{message}"
        );
    }
    assert!(done >= 1);
    assert_eq!(contents(path).1, before + done);
}
