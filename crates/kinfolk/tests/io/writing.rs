//! Writing.

use super::*;

#[test]
fn written_matrices_and_labels_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    write_npy_i64(&path, &[i64::MIN, 0, i64::MAX]).unwrap();
    assert_eq!(read_labels(&path).unwrap(), [i64::MIN, 0, i64::MAX]);

    write_npy_f32(&path, &[0.6, 0.8, -1.0, 0.0], 2).unwrap();
    let embeddings = read(&path).unwrap();
    assert!(embeddings.is_mapped());
    assert_eq!(embeddings.as_slice(), [0.6, 0.8, -1.0, 0.0]);
}

#[test]
fn rows_can_be_written_a_few_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    let mut writer = NpyF32Writer::create(&path, 3, 2).unwrap();
    writer.write_rows(&[1.0, 0.0]).unwrap();
    writer.write_rows(&[0.0, 1.0, -1.0, 0.0]).unwrap();
    assert!(!path.exists());
    writer.finish().unwrap();
    assert_eq!(read(&path).unwrap().as_slice(), [1.0, 0.0, 0.0, 1.0, -1.0, 0.0]);
}

#[test]
fn missing_rows_leave_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    let mut writer = NpyF32Writer::create(&path, 3, 2).unwrap();
    writer.write_rows(&[1.0, 0.0]).unwrap();
    assert_eq!(
        message(writer.finish(), &path),
        "a.npy: expected 6 floats to write (3 rows x 2 columns), found 2"
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn writing_where_there_is_no_directory() {
    let directory = tempfile::tempdir().unwrap();
    let parent = directory.path().join("nowhere");
    let path = parent.join("a.npy");
    assert_eq!(
        write_npy_i64(&path, &[1]).unwrap_err().to_string(),
        format!(
            "{}: expected the directory {} to write it in, found no such directory",
            path.display(),
            parent.display()
        )
    );
}

#[test]
fn writing_onto_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.npy");
    fs::create_dir(&path).unwrap();
    assert_eq!(
        message(write_npy_i64(&path, &[1]), &path),
        "a.npy: expected a file to write, found a directory"
    );
}
