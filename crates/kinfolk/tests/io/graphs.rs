//! Graphs.

use super::*;

fn small_graph() -> KnnGraph {
    let ids = vec![1, 2, 0, 2, 0, 1];
    KnnGraph::from_parts(3, 2, ids, vec![0.9, 0.3, 0.9, -0.1, 0.3, -0.1], "g").unwrap()
}

fn graph_complaint(arrays: &[(&str, &[u8])], expected_rows: Option<usize>) -> String {
    let (_directory, path) = file("g.npz", &npz(CompressionMethod::Deflated, arrays));
    message(read_graph(&path, expected_rows), &path)
}

fn u32_bytes(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn published_graph_reads_without_the_vertices_themselves() {
    for name in ["published_f4.npz", "published_fortran_f8.npz"] {
        let graph = read_graph(&data(name), Some(4)).unwrap();
        assert_eq!((graph.len(), graph.k()), (4, 2), "{name}");
        assert_eq!(graph.neighbours(0), (&[1, 2][..], &[1.0, 0.75][..]), "{name}");
        assert_eq!(graph.neighbours(1), (&[0, 2][..], &[1.0, 0.75][..]), "{name}");
        assert_eq!(graph.neighbours(2), (&[0, 1][..], &[0.75, 0.75][..]), "{name}");
        // The vertex itself is not listed, so the farthest entry is dropped; of two equal ones, the last.
        assert_eq!(graph.neighbours(3), (&[2, 1][..], &[0.5, 0.25][..]), "{name}");
    }
}

#[test]
fn graphs_survive_both_layouts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("g.npz");
    for graph in [small_graph(), KnnGraph::from_parts(1, 0, vec![], vec![], "g").unwrap()] {
        write_graph(&path, &graph, GraphLayout::Kinfolk).unwrap();
        assert_eq!(read_graph(&path, Some(graph.len())).unwrap(), graph);

        write_graph(&path, &graph, GraphLayout::Published).unwrap();
        let back = read_graph(&path, None).unwrap();
        assert_eq!((back.len(), back.k()), (graph.len(), graph.k()));
        for i in 0..graph.len() {
            assert_eq!(back.neighbours(i).0, graph.neighbours(i).0);
            assert_close(back.neighbours(i).1, graph.neighbours(i).1);
        }
    }
}

#[test]
fn published_ids_beyond_float32_are_refused() {
    let graph = KnnGraph::from_parts((1 << 24) + 1, 0, vec![], vec![], "g").unwrap();
    let path = Path::new("g.npz");
    assert_eq!(
        write_graph(path, &graph, GraphLayout::Published).unwrap_err().to_string(),
        "g.npz: expected at most 16777216 vertices, whose ids float32 can hold, found 16777217 vertices"
    );
}

#[test]
fn published_ids_that_their_type_cannot_hold_are_refused() {
    let data = npy("<f2", false, "(2049, 2, 1)", &[0; 2049 * 4]);
    assert_eq!(
        graph_complaint(&[("data", &data)], None),
        "g.npz (array data): expected at most 2048 vertices, whose ids dtype '<f2' can hold, found 2049 vertices"
    );
}

#[test]
fn graph_without_known_arrays() {
    assert_eq!(
        graph_complaint(&[("ids", &npy("<u4", false, "(1, 0)", b""))], None),
        "g.npz: expected arrays \"ids\" and \"similarities\", or \"data\", found arrays: ids"
    );
}

#[test]
fn graph_about_other_embeddings() {
    let (ids, similarities) = (npy("<u4", false, "(2, 1)", &u32_bytes(&[1, 0])), npy_f32(2, 1, &[0.5, 0.5]));
    let arrays: [(&str, &[u8]); 2] = [("ids", &ids), ("similarities", &similarities)];
    assert_eq!(graph_complaint(&arrays, Some(3)), "g.npz: expected 3 vertices (one per embedding), found 2");
}

#[test]
fn graph_with_unequal_arrays() {
    let (ids, similarities) = (npy("<u4", false, "(2, 1)", &u32_bytes(&[1, 0])), npy_f32(2, 2, &[0.5; 4]));
    assert_eq!(
        graph_complaint(&[("ids", &ids), ("similarities", &similarities)], None),
        "g.npz (array similarities): expected shape (2, 1), that of ids, found shape (2, 2)"
    );
}

#[test]
fn graph_with_an_id_that_is_no_vertex() {
    let similarities = npy_f32(2, 1, &[0.5; 2]);
    let ids = npy("<i4", false, "(2, 1)", &u32_bytes(&[1, u32::MAX]));
    assert_eq!(
        graph_complaint(&[("ids", &ids), ("similarities", &similarities)], None),
        "g.npz (array ids): row 1, column 0: expected the id of a vertex, 0 to 1, found -1"
    );
    for (id, text) in [(2.0, "2"), (0.5, "0.5"), (f32::NAN, "NaN")] {
        let data = npy("<f4", false, "(2, 2, 2)", &f32_bytes(&[0.0, 1.0, 0.0, 0.5, 1.0, id, 0.0, 0.5]));
        assert_eq!(
            graph_complaint(&[("data", &data)], None),
            format!("g.npz (array data): row 1, column 1: expected the id of a vertex, 0 to 1, found {text}")
        );
    }
}

#[test]
fn graph_with_a_vertex_as_its_own_neighbour() {
    let (ids, similarities) = (npy("<u4", false, "(2, 1)", &u32_bytes(&[1, 1])), npy_f32(2, 1, &[0.5; 2]));
    assert_eq!(
        graph_complaint(&[("ids", &ids), ("similarities", &similarities)], None),
        "g.npz: row 1, column 0: expected a neighbour other than the vertex itself, found 1"
    );
}

#[test]
fn graph_with_a_neighbour_listed_twice() {
    let ids = npy("<u4", false, "(3, 2)", &u32_bytes(&[1, 2, 0, 2, 1, 1]));
    let similarities = npy_f32(3, 2, &[0.5; 6]);
    assert_eq!(
        graph_complaint(&[("ids", &ids), ("similarities", &similarities)], None),
        "g.npz: row 2, column 1: expected each neighbour once, found 1 again"
    );
    // With itself first, without itself, and itself twice: the column is that of the file.
    let rows = [([0, 2, 2], 2, 2), ([1, 2, 1], 2, 1), ([0, 1, 0], 2, 0)];
    for (first, column, id) in rows {
        let mut values: Vec<f32> = first.map(|id| id as f32).to_vec();
        values.extend([0.0, 0.25, 0.5, 1.0, 0.0, 2.0, 0.0, 0.25, 0.5, 2.0, 0.0, 1.0, 0.0, 0.25, 0.5]);
        let data = npy("<f4", false, "(3, 2, 3)", &f32_bytes(&values));
        assert_eq!(
            graph_complaint(&[("data", &data)], None),
            format!(
                "g.npz (array data): row 0, column {column}: expected each neighbour once, found {id} again"
            )
        );
    }
}

#[test]
fn graph_with_nan() {
    let data = npy("<f4", false, "(2, 2, 2)", &f32_bytes(&[0.0, 1.0, 0.0, f32::NAN, 1.0, 0.0, 0.0, 0.5]));
    assert_eq!(
        graph_complaint(&[("data", &data)], None),
        "g.npz (array data): row 0, column 1: expected a finite number, found NaN"
    );
    let (ids, similarities) =
        (npy("<u4", false, "(2, 1)", &u32_bytes(&[1, 0])), npy_f32(2, 1, &[0.5, f32::INFINITY]));
    assert_eq!(
        graph_complaint(&[("ids", &ids), ("similarities", &similarities)], None),
        "g.npz: row 1, column 0: expected a finite similarity, found inf"
    );
}

#[test]
fn graph_of_another_shape() {
    for shape in ["(2, 4)", "(2, 1, 4)", "(4, 2, 0)"] {
        assert_eq!(
            graph_complaint(&[("data", &npy("<f4", false, shape, &[0; 32]))], None),
            format!("g.npz (array data): expected shape (vertices, 2, neighbours), found shape {shape}")
        );
    }
    assert_eq!(
        graph_complaint(&[("data", &npy("<f4", false, "(0, 2, 3)", b""))], None),
        "g.npz: expected a graph of 1 to 2^32 vertices, found 0 vertices"
    );
}

#[test]
fn unknown_graph_extension() {
    let path = data("raw.bin");
    assert_eq!(message(read_graph(&path, None), &path), "raw.bin: expected a graph file: .npz, found .bin");
}
