//! Every write fails in turn: the album is as before, and works.

use super::{album, contents, faces, keys, part, sound};
use crate::faults::fail_after;
use crate::{AddOptions, Album, Summary};
use kinfolk::Result;

/// Runs a change with a failure at every write in turn until none fails.
fn at_every_write(album: &mut Album, step: usize, change: impl Fn(&mut Album) -> Result<Summary>) {
    let before = contents(album);
    for writes in (0..).step_by(step) {
        fail_after(Some(writes));
        let done = change(album);
        fail_after(None);
        match done {
            Ok(_) => {
                assert!(writes > 5);
                sound(album);
                return;
            }
            Err(error) => {
                assert!(error.to_string().contains("no space left"), "{error}");
                assert_eq!(contents(album), before);
                if writes % (10 * step) == 0 {
                    sound(album);
                    let reopened = Album::open(album.directory()).unwrap();
                    assert_eq!(contents(&reopened), before);
                }
            }
        }
    }
}

#[test]
fn a_change_whose_write_fails_changes_nothing() {
    let (rows, _) = faces(30, 30);
    let (_directory, mut album) = album(&rows, 200);
    at_every_write(&mut album, 1, |album| album.add(&part(&rows, 200..215), &keys(200..215), &()));
    let items = album.person(&album.people().unwrap()[0].id.to_string()).unwrap();
    at_every_write(&mut album, 1, |album| album.apart(&items[0], &items[1], &()));
    at_every_write(&mut album, 1, |album| album.remove(&[items[0].clone()], &()));
    at_every_write(&mut album, 1, |album| album.undo());
    at_every_write(&mut album, 7, |album| album.refresh(&()));
    at_every_write(&mut album, 1, |album| album.undo());
}

#[test]
fn an_album_whose_creation_failed_can_be_created() {
    let (rows, _) = faces(10, 31);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("album");
    for writes in (0..).step_by(5) {
        fail_after(Some(writes));
        let created = Album::create(&path, &rows, &AddOptions::default(), 0, &());
        fail_after(None);
        match created {
            Ok((album, _)) => return sound(&album),
            Err(error) => assert!(error.to_string().contains("no space left"), "{error}"),
        }
        let opened = Album::open(&path).err().unwrap().to_string();
        assert!(
            opened.contains("expected a whole album") || opened.contains("expected an album"),
            "{opened}"
        );
    }
}
