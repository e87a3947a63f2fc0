//! Both files of clusters hold the same rows, and what is not one of them is refused.

use super::clusters_parquet::{GROUP_ROWS, write_table};
use super::table::{EDGE_COLUMNS, Record};
use super::*;
use crate::stages::{Edge, EdgeEvidence, Links};
use crate::{Context, Density, Reason, Report, Tree};
use ::parquet::data_type::{DataType, FloatType, Int32Type, Int64Type};
use ::parquet::file::metadata::ParquetMetaDataReader;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use std::sync::Arc;

fn clustering(labels: Vec<i64>, reason: Reason) -> Clustering {
    Clustering::new(labels, reason, Report::new(&Density::default(), None, &Context::default()))
}

/// What both formats read of what they wrote.
fn round_trip(found: &Clustering) -> [Vec<RowReason>; 2] {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &dyn Fn(&mut AtomicFile) -> std::io::Result<()>| {
        let path = directory.path().join(name);
        let mut file = AtomicFile::create(&path).unwrap();
        content(&mut file).unwrap();
        file.commit().unwrap();
        std::fs::read(path).unwrap()
    };
    let csv = write("clusters.csv", &|file| clusters_csv::write(file, found));
    let parquet = write("clusters.parquet", &|file| clusters_parquet::write(file, found));
    [
        parse_clusters(&String::from_utf8(csv).unwrap(), "csv").unwrap(),
        parse_clusters_parquet(parquet, "parquet").unwrap(),
    ]
}

fn finite() -> impl Strategy<Value = f32> {
    prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO
}

fn edge(rows: usize) -> impl Strategy<Value = Option<Edge>> {
    let edge = (0..rows as u32, finite(), finite(), any::<[u32; 2]>(), any::<u32>());
    prop::option::of(edge.prop_map(|(row, similarity, probability, ranks, shared)| Edge {
        row,
        similarity,
        probability,
        ranks,
        shared,
    }))
}

fn reason(rows: usize) -> impl Strategy<Value = Reason> {
    let edges = (prop::collection::vec(edge(rows), rows), prop::collection::vec(edge(rows), rows));
    let parent = prop_oneof![Just(Links::NONE), 0..rows as u32];
    let links = prop::collection::vec((finite(), parent, finite()), rows);
    prop_oneof![
        Just(Reason::None),
        edges.prop_map(|(inside, outside)| {
            Reason::Edges(EdgeEvidence { inside, outside, ..EdgeEvidence::default() })
        }),
        links.prop_map(|links| {
            let (confidence, (parents, similarities)) =
                links.into_iter().map(|(c, p, s)| (c, (p, s))).unzip();
            let links = Links::from_parts(confidence, 1, parents, similarities).unwrap();
            Reason::Tree(Tree { links, tau: 0.5 })
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn both_formats_return_the_rows_that_were_written(
        (labels, reason) in (1usize..40).prop_flat_map(|rows| {
            (prop::collection::vec(any::<i64>(), rows), reason(rows))
        })
    ) {
        let found = clustering(labels, reason);
        let expected: Vec<RowReason> = found.rows().collect();
        let [csv, parquet] = round_trip(&found);
        prop_assert_eq!(&csv, &expected);
        prop_assert_eq!(&parquet, &expected);
    }
}

#[test]
fn many_rows_are_written_in_groups() {
    let rows = 2 * GROUP_ROWS + 3;
    let edge = |row: usize| Edge {
        row: ((row * 7919) % rows) as u32,
        similarity: (row as f32).sin(),
        probability: (row as f32).cos(),
        ranks: [(row % 81) as u32, (row % 79) as u32],
        shared: (row % 80) as u32,
    };
    // The second group has no edges at all.
    let inside = |row: usize| (row / GROUP_ROWS != 1 && !row.is_multiple_of(3)).then(|| edge(row));
    let reason = Reason::Edges(EdgeEvidence {
        inside: (0..rows).map(inside).collect(),
        outside: (0..rows).map(|row| (!row.is_multiple_of(5)).then(|| edge(row + 1))).collect(),
        ..EdgeEvidence::default()
    });
    let found = clustering((0..rows as i64).map(|row| row % 1000 - 1).collect(), reason);
    let bytes = table(EDGE_COLUMNS, Record::all(&found));
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(bytes.clone())).unwrap();
    assert_eq!(metadata.num_row_groups(), 3);
    assert!(parse_clusters_parquet(bytes, "parquet").unwrap().into_iter().eq(found.rows()));
}

fn table(columns: &[(&'static str, table::Column)], records: impl Iterator<Item = Record>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_table(&mut bytes, columns, records).unwrap();
    bytes
}

fn message(bytes: Vec<u8>) -> String {
    parse_clusters_parquet(bytes, "clusters.parquet").unwrap_err().to_string()
}

const EDGES: &str = include_str!("../../tests/data/golden/clusters_edges.csv");

#[test]
fn a_part_of_a_file_is_refused() {
    let rows = parse_clusters(EDGES, "csv").unwrap();
    let whole = table(EDGE_COLUMNS, rows.iter().enumerate().map(|(row, reason)| Record::new(row, reason)));
    assert_eq!(parse_clusters_parquet(whole.clone(), "parquet").unwrap(), rows);
    for length in 0..whole.len() {
        let message = message(whole[..length].to_vec());
        assert!(
            message.starts_with("clusters.parquet: expected a parquet file, found "),
            "{length}: {message}"
        );
    }
}

#[test]
fn a_damaged_file_is_refused_or_read() {
    let rows = parse_clusters(EDGES, "csv").unwrap();
    let whole = table(EDGE_COLUMNS, rows.iter().enumerate().map(|(row, reason)| Record::new(row, reason)));
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        if let Err(error) = parse_clusters_parquet(damaged, "clusters.parquet") {
            assert!(error.to_string().starts_with("clusters.parquet"), "{at}: {error}");
        }
    }
}

/// A file as another program might write it: columns as "optional int32 row", and their values.
fn other(columns: &[(&str, &[Option<i32>])]) -> Vec<u8> {
    fn write<T: DataType>(
        mut writer: SerializedColumnWriter<'_>,
        values: &[Option<i32>],
        value: fn(i32) -> T::T,
    ) {
        let present: Vec<T::T> = values.iter().flatten().map(|&v| value(v)).collect();
        let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        writer.typed::<T>().write_batch(&present, Some(&levels), Some(&vec![0; levels.len()])).unwrap();
        writer.close().unwrap();
    }
    let fields: String = columns.iter().map(|(field, _)| format!("{field};")).collect();
    let schema = parse_message_type(&format!("message other {{ {fields} }}")).unwrap();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Default::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    for (field, values) in columns {
        let writer = group.next_column().unwrap().unwrap();
        match field.split(' ').nth(1).unwrap() {
            "int32" => write::<Int32Type>(writer, values, |value| value),
            "int64" => write::<Int64Type>(writer, values, i64::from),
            _ => write::<FloatType>(writer, values, |value| value as f32),
        }
    }
    group.close().unwrap();
    file.close().unwrap();
    bytes
}

#[test]
fn tables_of_other_programs_are_read_if_they_are_whole() {
    const ROW: &str = "optional int32 row (INTEGER(32, false))";
    const CLUSTER: &str = "optional int64 cluster (INTEGER(64, true))";
    const CONFIDENCE: &str = "optional float confidence";
    const PARENT: &str = "optional int32 parent (INTEGER(32, false))";
    const SIMILARITY: &str = "optional float similarity";
    let rows: &[Option<i32>] = &[Some(0), Some(1), Some(2)];
    let some: &[Option<i32>] = &[Some(1), None, Some(0)];
    let good = [(ROW, rows), (CLUSTER, rows), (CONFIDENCE, some), (PARENT, some), (SIMILARITY, some)];
    let read = parse_clusters_parquet(other(&good), "clusters.parquet").unwrap();
    assert_eq!(read[2].parent, Some((0, 0.0)));
    assert_eq!((read[1].cluster, read[1].confidence, read[1].parent), (1, None, None));

    let with = |at: usize, column: (&'static str, &'static [Option<i32>])| {
        let mut columns = good;
        columns[at] = column;
        message(other(&columns))
    };
    let place = "clusters.parquet";
    assert_eq!(
        with(0, (ROW, &[Some(0), Some(2), Some(1)])),
        format!("{place}: row 1: expected 1 in column row, found 2")
    );
    assert_eq!(
        with(0, (ROW, &[Some(0), None, Some(2)])),
        format!("{place}: row 1: expected a number in column row, found none")
    );
    assert_eq!(
        with(1, (CLUSTER, &[Some(0), Some(0), None])),
        format!("{place}: row 2: expected a number in column cluster, found none")
    );
    assert_eq!(
        with(4, (SIMILARITY, &[None; 3])),
        format!("{place}: row 0: expected parent and similarity, or none of them, found only some")
    );
    assert_eq!(
        with(1, ("optional int32 cluster", &[Some(0); 3])),
        format!("{place} (column cluster): expected Int64, found Int32")
    );
    assert_eq!(
        with(0, ("optional int64 row", &[Some(0), Some(1), Some(2)])),
        format!("{place} (column row): expected UInt32, found Int64")
    );
    assert_eq!(
        with(2, ("optional int32 confidence", &[None; 3])),
        format!("{place} (column confidence): expected Float32, found Int32")
    );
    assert_eq!(
        message(other(&good[..4])),
        format!(
            "{place}: expected the columns row,cluster,confidence,parent,similarity, found \
             row,cluster,confidence,parent"
        )
    );
    let lists = [(ROW, rows), ("repeated int64 cluster", rows), good[2], good[3], good[4]];
    assert!(message(other(&lists)).contains("(column cluster): expected Int64, found List(Int64"));
}
