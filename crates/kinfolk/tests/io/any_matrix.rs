//! Random matrices, in every format and layout.

use super::*;

/// Rows of values that are exact in float16, none of them all zero.
fn matrices() -> impl Strategy<Value = (usize, usize, Vec<f64>)> {
    let value = (-2000_i32..2000).prop_map(|v| f64::from(v) / 16.0);
    (1..40_usize, 1..20_usize)
        .prop_flat_map(move |(rows, dim)| {
            (Just(rows), Just(dim), prop::collection::vec(value.clone(), rows * dim))
        })
        .prop_map(|(rows, dim, mut values)| {
            for row in values.chunks_mut(dim).filter(|row| row.iter().all(|&v| v == 0.0)) {
                row[0] = 1.0;
            }
            (rows, dim, values)
        })
}

fn encode(descr: &str, values: &[f64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|&v| match descr {
            "<f2" => f16::from_f64(v).to_le_bytes().to_vec(),
            ">f2" => f16::from_f64(v).to_be_bytes().to_vec(),
            "<f4" => (v as f32).to_le_bytes().to_vec(),
            ">f4" => (v as f32).to_be_bytes().to_vec(),
            "<f8" => v.to_le_bytes().to_vec(),
            _ => v.to_be_bytes().to_vec(),
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_encoding_gives_the_rows_of_the_reference((rows, dim, values) in matrices()) {
        let expected = normalised(&values, dim);
        let transposed = (0..dim).flat_map(|j| (0..rows).map(move |i| i * dim + j));
        let columns: Vec<f64> = transposed.map(|at| values[at]).collect();
        let shape = format!("({rows}, {dim})");
        let options = ReadOptions::default();
        let mut first: Option<Vec<f32>> = None;
        for descr in ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"] {
            for (fortran, values) in [(false, &values), (true, &columns)] {
                let array = npy(descr, fortran, &shape, &encode(descr, values));
                let stored = npz(CompressionMethod::Stored, &[("a", &array)]);
                let deflated = npz(CompressionMethod::Deflated, &[("a", &array)]);
                use EmbeddingFormat::{Npy, Npz};
                for (format, bytes) in [(Npy, array), (Npz, stored), (Npz, deflated)] {
                    let found = parse_embeddings(bytes, format, &options, "a").unwrap();
                    prop_assert_eq!(found.dim(), dim);
                    assert_close(found.as_slice(), &expected);
                    // To the last bit, all encodings are one.
                    let first = first.get_or_insert_with(|| found.as_slice().to_vec());
                    prop_assert_eq!(found.as_slice(), first.as_slice());
                }
            }
        }
        let raw = parse_embeddings(
            encode("<f4", &values),
            EmbeddingFormat::Bin,
            &ReadOptions { dim: Some(dim), ..options },
            "a",
        )
        .unwrap();
        prop_assert_eq!(Some(raw.as_slice()), first.as_deref());
    }

    #[test]
    fn a_map_and_a_copy_hold_the_same_floats((rows, dim, values) in matrices()) {
        let unit = normalised(&values, dim);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        write_npy_f32(&path, &unit, dim).unwrap();
        let mapped = read(&path).unwrap();
        let owned = Embeddings::from_rows(unit, dim, "a").unwrap();
        prop_assert!(mapped.is_mapped() && !owned.is_mapped());
        prop_assert_eq!((mapped.len(), owned.len()), (rows, rows));
        prop_assert_eq!(mapped.as_slice(), owned.as_slice());
        for i in 0..rows {
            prop_assert_eq!(mapped.row(i), owned.row(i));
        }
    }

    #[test]
    fn any_graph_survives_the_file(
        n in 1..30_usize,
        k in 0..8_usize,
        similarities in prop::collection::vec(-1.0_f32..1.0, 240),
    ) {
        let k = k.min(n - 1);
        let ids = (0..n).flat_map(|i| (1..=k).map(move |j| ((i + j) % n) as u32)).collect();
        let graph = KnnGraph::from_parts(n, k, ids, similarities[..n * k].to_vec(), "g").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("g.npz");
        write_graph(&path, &graph, GraphLayout::Kinfolk).unwrap();
        prop_assert_eq!(read_graph(&path, Some(n)).unwrap(), graph);
    }

    #[test]
    fn any_labels_survive_the_file(labels in prop::collection::vec(any::<i64>(), 1..50)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("labels.npy");
        write_npy_i64(&path, &labels).unwrap();
        prop_assert_eq!(&read_labels(&path).unwrap(), &labels);
        let text: String = labels.iter().map(|label| format!("{label}\n")).collect();
        prop_assert_eq!(parse_labels(text.as_bytes(), LabelFormat::Text, "a").unwrap(), labels);
    }
}
