//! Damaged files are named.

use super::{album, faces, keys, part};
use crate::Album;
use std::io::{Seek, SeekFrom, Write};

#[test]
fn every_damaged_file_is_named() {
    let (rows, _) = faces(30, 40);
    let (_directory, mut album) = album(&rows, 200);
    album.add(&part(&rows, 200..220), &keys(200..220), &()).unwrap();
    let directory = album.directory().to_owned();
    let names: Vec<String> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "lock" && !name.starts_with("album.sqlite"))
        .collect();
    assert_eq!(names.len(), 7, "{names:?}");
    for name in names {
        let path = directory.join(&name);
        let whole = std::fs::read(&path).unwrap();
        let at = whole.len() as u64 * 2 / 3;
        let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&[whole[at as usize] ^ 0x40]).unwrap();
        let damages = album.verify().unwrap().damages;
        assert!(damages.len() == 1 && damages[0].file == name, "{name}: {damages:?}");
        if name == "rows.f32" {
            assert!(damages[0].what.contains("(200 items, from k0 to k199)"), "{damages:?}");
        }
        // Cut short: it cannot even be opened.
        std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let refused = Album::open(&directory).err().map(|error| error.to_string());
        assert!(refused.as_ref().is_some_and(|refused| refused.contains(&name)), "{name}: {refused:?}");
        std::fs::write(&path, &whole).unwrap();
        assert!(Album::open(&directory).unwrap().verify().unwrap().damages.is_empty());
    }
    // The last connection writes what is in the journal into the database.
    drop(album);
    std::fs::write(
        directory.join("album.sqlite"),
        "not a database, but long enough to be looked at by SQLite",
    )
    .unwrap();
    assert!(Album::open(&directory).err().unwrap().to_string().contains("album.sqlite"));
}

#[test]
fn a_second_writer_is_refused_and_readers_are_not() {
    let (rows, _) = faces(20, 41);
    let (_directory, album) = album(&rows, 100);
    let lock = crate::lock::WriteLock::take(album.directory()).unwrap();
    let mut other = Album::open(album.directory()).unwrap();
    let refused = other.refresh(&()).unwrap_err().to_string();
    let expected =
        format!("expected no other process that changes the album, found process {}", std::process::id());
    assert!(refused.contains(&expected), "{refused}");
    assert_eq!(other.people().unwrap(), album.people().unwrap());
    drop(lock);
    other.refresh(&()).unwrap();
}
