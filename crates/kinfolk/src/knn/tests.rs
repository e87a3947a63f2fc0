//! Compares every fast path with a slow, obvious reference.

use super::candidates::{Candidate, nearest_first};
use super::codes::{Codes, Packed};
use super::dot::dot;
use super::exact::{bound, exact, tournament};
use super::join::join;
use super::kernel::{Kernel, Left, PANEL};
use super::scan::{Sides, scan};
use super::*;
use crate::random::{Purpose, Stream};
use proptest::prelude::*;

/// Every pair, sorted whole.
fn brute_force(rows: &Embeddings, k: usize) -> KnnGraph {
    let n = rows.len();
    let mut graph = KnnGraph::of_valid_parts(n, k, Vec::new(), Vec::new());
    for i in 0..n {
        let others = (0..n).filter(|&j| j != i);
        let mut all: Vec<Candidate> =
            others.map(|j| Candidate { score: dot(rows.row(i), rows.row(j)), id: j as u32 }).collect();
        all.sort_by(nearest_first);
        graph.ids.to_mut().extend(all[..k].iter().map(|c| c.id));
        graph.similarities.to_mut().extend(all[..k].iter().map(|c| c.score));
    }
    graph
}

/// `groups` directions with `each` noisy rows around them.
fn clustered(groups: usize, each: usize, dim: usize, noise: f32, seed: u64) -> Embeddings {
    let mut random = Stream::new(seed, Purpose::Image, 0, 0);
    let mut value = move || (random.below(20001) as f32 - 10000.0) / 10000.0;
    let centres: Vec<f32> = (0..groups * dim).map(|_| value()).collect();
    let rows = (0..groups * each).flat_map(|i| {
        let centre = &centres[i % groups * dim..][..dim];
        centre.iter().map(|c| c + noise * value()).collect::<Vec<_>>()
    });
    Embeddings::from_rows(rows.collect(), dim, "test").unwrap()
}

fn rows_of(data: Vec<f32>, dim: usize) -> Embeddings {
    Embeddings::from_rows(data, dim, "test").unwrap()
}

fn with_threads<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
}

/// Rows with few different values, so that duplicates and ties are common.
fn small_sets() -> impl Strategy<Value = Embeddings> {
    (1usize..70, 2usize..90).prop_flat_map(|(dim, n)| {
        let coarse = prop::collection::vec((-3i8..=3).prop_map(|v| v as f32), dim * n);
        let fine = prop::collection::vec(-1.0f32..1.0, dim * n);
        prop_oneof![coarse, fine].prop_map(move |mut data| {
            data.chunks_exact_mut(dim)
                .for_each(|row| row[0] += if row.iter().all(|v| *v == 0.0) { 1.0 } else { 0.0 });
            rows_of(data, dim)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn exact_is_brute_force(rows in small_sets(), k in 1usize..40) {
        let k = k.min(rows.len() - 1);
        let expected = brute_force(&rows, k);
        for kernel in Kernel::available() {
            prop_assert_eq!(&exact(Rows::all(&rows), k, kernel, &()).unwrap(), &expected);
        }
    }

    #[test]
    fn codes_are_within_their_bound(rows in small_sets()) {
        let codes = Codes::quantise(Rows::all(&rows), &(0..rows.len() as u32).collect::<Vec<_>>());
        for i in 0..rows.len() {
            for j in 0..rows.len() {
                let product: i32 = codes.row(i).iter().zip(codes.row(j)).map(|(&a, &b)| a as i32 * b as i32).sum();
                let score = product as f32 * codes.scale[j] * codes.scale[i];
                let error = (score - dot(rows.row(i), rows.row(j))).abs();
                prop_assert!(error <= bound(codes.rest[i], codes.rest[j], rows.dim()), "{error}");
            }
        }
    }

    #[test]
    fn kernels_give_the_same_integers_and_hits(
        dim in 1usize..200, left_rows in 1usize..70, right_rows in 1usize..70, seed in any::<u64>(),
    ) {
        let rows = clustered(left_rows.max(right_rows), 1, dim, 0.0, seed);
        let codes = Codes::quantise(Rows::all(&rows), &(0..rows.len() as u32).collect::<Vec<_>>());
        let mut left = Left::new(codes.width);
        left.gather(&codes, 0..left_rows);
        let (right, _) = Packed::pack(&codes, std::slice::from_ref(&(0..right_rows)), |i| i as u32);
        let threshold: Vec<f32> = (0..right.ids.len().max(left.rows())).map(|i| (i % 7) as f32 / 7.0).collect();
        let mut per_kernel = Vec::new();
        for kernel in Kernel::available() {
            let mut products = vec![vec![0; right_rows]; left_rows];
            let mut hits = (Vec::new(), Vec::new());
            kernel.for_each_tile(&left, &right.bytes, |row, panel, count, tile| {
                let column = panel * PANEL;
                for (products, tile) in products[row..].iter_mut().zip(&tile.0) {
                    for (product, &value) in products[column..].iter_mut().zip(&tile[..count * PANEL]) {
                        *product = value;
                    }
                }
                let sides = Sides {
                    row_scale: &left.scale[row..],
                    row_threshold: &threshold[row..],
                    column_scale: &right.scale[column..],
                    column_threshold: Some(&threshold[column..]),
                };
                let (mut for_rows, mut for_columns) = (Vec::new(), Vec::new());
                scan(kernel, tile, count, &sides, &mut for_rows, &mut for_columns);
                let place = |h: super::scan::Hit| (row + h.row as usize, column + h.column as usize, h.score);
                hits.0.extend(for_rows.into_iter().map(place));
                hits.1.extend(for_columns.into_iter().map(place));
            });
            hits.0.sort_by(|a, b| a.partial_cmp(b).unwrap());
            hits.1.sort_by(|a, b| a.partial_cmp(b).unwrap());
            for (r, products) in products.iter().enumerate() {
                for (c, &product) in products.iter().enumerate() {
                    let expected: i32 =
                        codes.row(r).iter().zip(codes.row(c)).map(|(&a, &b)| a as i32 * b as i32).sum();
                    prop_assert_eq!(product, expected, "{:?}", kernel);
                    let score = expected as f32 * codes.scale[c] * codes.scale[r];
                    prop_assert_eq!(score >= threshold[r], hits.0.contains(&(r, c, score)));
                    prop_assert_eq!(score >= threshold[c], hits.1.contains(&(r, c, score)));
                }
            }
            per_kernel.push(hits);
        }
        prop_assert!(per_kernel.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

proptest! {
    #[test]
    fn kernels_give_the_same_products_of_one_row(rows in small_sets(), picks in prop::collection::vec(any::<prop::sample::Index>(), 1..40)) {
        let all = Rows::all(&rows);
        let codes = Codes::from_rows(rows.dim(), rows.len(), |i| all.row(i));
        let places: Vec<u32> = picks.iter().map(|pick| pick.index(rows.len()) as u32).collect();
        let slow: Vec<i32> = places
            .iter()
            .map(|&place| codes.row(0).iter().zip(codes.row(place as usize)).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum())
            .collect();
        for kernel in Kernel::available() {
            let mut found = vec![7];
            kernel.products(codes.row(0), &codes, &places, &mut found);
            prop_assert_eq!(&found, &slow, "{}", kernel.name());
        }
    }
}

#[test]
fn dot_is_near_a_sum_in_double_precision() {
    for dim in [1, 15, 16, 17, 128, 300] {
        let rows = clustered(2, 1, dim, 0.0, dim as u64);
        let slow: f64 = rows.row(0).iter().zip(rows.row(1)).map(|(&a, &b)| a as f64 * b as f64).sum();
        assert!((dot(rows.row(0), rows.row(1)) as f64 - slow).abs() < 1e-6);
        assert_eq!(dot(rows.row(0), rows.row(1)).to_bits(), dot(rows.row(1), rows.row(0)).to_bits());
    }
}

#[test]
fn every_pair_of_blocks_meets_once() {
    for n in 0..20 {
        let rounds = tournament(n);
        let mut met: Vec<_> = rounds.iter().flatten().copied().collect();
        met.sort();
        let all: Vec<_> = (0..n).flat_map(|a| (a..n).map(move |b| (a, b))).collect();
        assert_eq!(met, all);
        for round in &rounds[1..] {
            let mut players: Vec<_> = round.iter().flat_map(|&(a, b)| [a, b]).collect();
            players.sort();
            assert!(players.windows(2).all(|pair| pair[0] != pair[1]));
        }
    }
}

#[test]
fn several_blocks_are_brute_force() {
    let rows = clustered(40, 60, 24, 0.8, 1);
    assert_eq!(exact(Rows::all(&rows), 30, Kernel::default(), &()).unwrap(), brute_force(&rows, 30));
}

#[test]
fn join_reaches_the_recall_it_reports() {
    let rows = clustered(100, 40, 32, 0.7, 2);
    let truth = brute_force(&rows, 20);
    for recall in [0.6, 0.9, 0.98] {
        let (graph, report) = join(Rows::all(&rows), 20, recall, 0, Kernel::default(), None, &()).unwrap();
        let found = (0..rows.len()).map(|i| {
            let (true_ids, _) = truth.neighbours(i);
            graph.neighbours(i).0.iter().filter(|id| true_ids.contains(id)).count()
        });
        let actual = found.sum::<usize>() as f32 / (rows.len() * 20) as f32;
        assert!(report.recall.unwrap() >= recall);
        assert!((actual - report.recall.unwrap()).abs() < 0.02, "{actual} {report:?}");
        for i in 0..rows.len() {
            let (ids, similarities) = graph.neighbours(i);
            for (&id, &similarity) in ids.iter().zip(similarities) {
                assert_eq!(similarity, dot(rows.row(i), rows.row(id as usize)));
                assert_ne!(id as usize, i);
            }
        }
    }
}

#[test]
fn threads_do_not_change_the_graph() {
    let rows = clustered(50, 60, 48, 0.9, 3);
    for search in [Search::Exact, Search::Recall(0.9)] {
        let params = KnnParams { k: 25, search, seed: 7, ..Default::default() };
        let one = with_threads(1, || knn_graph(&rows, &params, &()).unwrap());
        let two = with_threads(2, || knn_graph(&rows, &params, &()).unwrap());
        assert_eq!(one, two);
    }
}

#[test]
fn kernels_find_the_same_approximate_graph() {
    let rows = clustered(50, 30, 40, 0.9, 4);
    let graphs: Vec<_> = Kernel::available()
        .into_iter()
        .map(|kernel| join(Rows::all(&rows), 10, 0.9, 0, kernel, None, &()).unwrap().0)
        .collect();
    assert!(graphs.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn one_row_has_no_neighbours() {
    for search in [Search::Auto, Search::Exact, Search::Recall(0.5)] {
        let (graph, _) =
            knn_graph(&rows_of(vec![1.0, 2.0], 2), &KnnParams { search, ..Default::default() }, &()).unwrap();
        assert_eq!((graph.len(), graph.k()), (1, 0));
        assert!(graph.neighbours(0).0.is_empty());
    }
}

#[test]
fn two_rows_are_each_others_neighbour() {
    for search in [Search::Exact, Search::Recall(0.5)] {
        let rows = rows_of(vec![1.0, 0.0, 0.0, 1.0], 2);
        let (graph, _) = knn_graph(&rows, &KnnParams { search, ..Default::default() }, &()).unwrap();
        assert_eq!(graph.k(), 1);
        assert_eq!(graph.neighbours(0), (&[1][..], &[0.0][..]));
        assert_eq!(graph.neighbours(1), (&[0][..], &[0.0][..]));
    }
}

#[test]
fn equal_rows_are_listed_by_id() {
    let rows = rows_of([0.3, 0.4, -0.5].repeat(1500), 3);
    for search in [Search::Exact, Search::Recall(0.9)] {
        let (graph, _) = knn_graph(&rows, &KnnParams { k: 4, search, ..Default::default() }, &()).unwrap();
        assert_eq!(graph.neighbours(0).0, [1, 2, 3, 4]);
        assert_eq!(graph.neighbours(2).0, [0, 1, 3, 4]);
        assert_eq!(graph.neighbours(1499).0, [0, 1, 2, 3]);
    }
}

fn plan(recall: f32) -> Plan<'static> {
    Plan { recall, seed: 0, kernel: Kernel::default(), journal: None }
}

/// Rows of which some are copies, in any order, and K.
fn sets_with_copies() -> impl Strategy<Value = (Embeddings, usize)> {
    (small_sets(), prop::collection::vec(0usize..1000, 1..120), 1usize..40).prop_map(|(rows, drawn, k)| {
        // Few of the first rows, so that these have many copies.
        let drawn =
            drawn.iter().map(|&at| if at % 2 == 0 { at % rows.len() } else { at % rows.len().min(3) });
        let data: Vec<f32> = drawn.flat_map(|at| rows.row(at)).copied().collect();
        let rows = rows_of(data, rows.dim());
        let k = k.min(rows.len() - 1);
        (rows, k)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn setting_copies_aside_changes_nothing((rows, k) in sets_with_copies(), most in 0usize..4) {
        prop_assume!(k > 0);
        let expected = brute_force(&rows, k);
        let (graph, report) = search(&rows, k, most, &plan(1.0), &()).unwrap();
        prop_assert_eq!(&graph, &expected);
        prop_assert!(report.exact);
        // A join may miss rows, but no copy, and what it lists is true.
        let (graph, _) = search(&rows, k, most, &plan(0.9), &()).unwrap();
        for i in 0..rows.len() {
            let (ids, similarities) = graph.neighbours(i);
            for (&j, &similarity) in ids.iter().zip(similarities) {
                prop_assert_eq!(similarity, dot(rows.row(i), rows.row(j as usize)));
            }
            let listed: std::collections::HashSet<u32> = ids.iter().copied().collect();
            prop_assert!(listed.len() == k && !listed.contains(&(i as u32)));
            let copy = |j: usize| j != i && rows.row(j) == rows.row(i);
            let of_itself = dot(rows.row(i), rows.row(i));
            prop_assert!(of_itself <= similarities[k - 1] || (0..rows.len()).filter(|&j| copy(j)).all(|j| listed.contains(&(j as u32))));
        }
    }

    #[test]
    fn copies_are_those_of_comparing_all_pairs((rows, _) in sets_with_copies()) {
        let n = rows.len();
        let equal = |i: usize| -> Vec<u32> {
            (0..n).filter(|&j| rows.row(i) == rows.row(j)).map(|j| j as u32).collect()
        };
        let copies = Copies::of(&rows, 0, &()).unwrap().unwrap();
        prop_assert!(copies.firsts.is_sorted_by(|a, b| a < b));
        for i in 0..n {
            prop_assert_eq!(copies.of_row(i), equal(i));
        }
        let most = (0..n).map(|i| equal(i).len()).max().unwrap();
        prop_assert!(Copies::of(&rows, most, &()).unwrap().is_none());
        prop_assert!(Copies::of(&rows, most - 1, &()).unwrap().is_some());
    }
}

#[test]
fn zeros_of_either_sign_are_copies() {
    let rows = rows_of(vec![1.0, 0.0, 1.0, -0.0, 0.0, 1.0], 2);
    assert_eq!(Copies::of(&rows, 1, &()).unwrap().unwrap().firsts[..], [0, 2]);
}

/// Copies used to be compared in float, each with each: hundreds of times the work.
#[test]
fn copies_cost_no_more_than_different_rows() {
    let different = clustered(15_000, 1, 64, 0.0, 8);
    let mut data = different.as_slice().to_vec();
    let (one, rest) = data.split_at_mut(64);
    // All but each tenth row.
    rest.chunks_exact_mut(64)
        .enumerate()
        .filter(|(i, _)| i % 10 > 0)
        .for_each(|(_, row)| row.copy_from_slice(one));
    let copied = rows_of(data, 64);
    for search in [Search::Exact, Search::Recall(0.9)] {
        let seconds = |rows: &Embeddings| {
            let start = std::time::Instant::now();
            knn_graph(rows, &KnnParams { k: 20, search, ..Default::default() }, &()).unwrap();
            start.elapsed().as_secs_f64()
        };
        let [of_different, of_copied] = [&different, &copied].map(seconds);
        assert!(of_copied < 5.0 * of_different + 0.5, "{search:?}: {of_copied} s, {of_different} s");
    }
}

#[test]
fn negative_similarities_are_neighbours_too() {
    let rows = rows_of(vec![1.0, 0.0, -0.5, 0.8, -0.5, -0.8], 2);
    let (graph, _) = knn_graph(&rows, &KnnParams { k: 2, ..Default::default() }, &()).unwrap();
    assert!(graph.neighbours(0).1.iter().all(|&s| s < 0.0));
    assert_eq!(graph.neighbours(0).0, [1, 2]);
}

#[test]
fn k_is_at_most_the_others() {
    let rows = clustered(5, 2, 8, 0.5, 5);
    let (graph, _) = knn_graph(&rows, &KnnParams { k: 80, ..Default::default() }, &()).unwrap();
    assert_eq!(graph, brute_force(&rows, 9));
}

#[test]
fn impossible_parameters_are_refused() {
    let rows = clustered(2, 2, 4, 0.5, 6);
    let refused = |params| knn_graph(&rows, &params, &()).unwrap_err().to_string();
    assert_eq!(refused(KnnParams { k: 0, ..Default::default() }), "k: expected at least 1, found 0");
    let wide = rows_of(vec![1.0; 2 * 65_537], 65_537);
    let message = knn_graph(&wide, &KnnParams::default(), &()).unwrap_err().to_string();
    assert!(message.starts_with("features: expected at most 65536 columns"), "{message}");
    let search = Search::Recall(1.5);
    assert!(
        refused(KnnParams { search, ..Default::default() }).starts_with("recall: expected a number above 0")
    );
}

/// Cancels a search after some of its blocks.
struct After(std::sync::atomic::AtomicI64);

impl crate::Progress for After {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, rows: u64) {
        self.0.fetch_sub(rows as i64, std::sync::atomic::Ordering::SeqCst);
    }
    fn cancelled(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::SeqCst) < 0
    }
}

#[test]
fn a_cancelled_search_goes_on_from_its_last_block() {
    let rows = clustered(300, 60, 16, 0.4, 5);
    let params = KnnParams { k: 10, search: Search::Recall(0.95), ..KnnParams::default() };
    let whole = knn_graph(&rows, &params, &()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let work = crate::Work::open(directory.path()).unwrap();
    let key = params.key().with_rows(&rows);
    let part = directory.path().join("knn.part");
    // Rows until it is cancelled: within k-means, the lists, the sample, the blocks of the search.
    let mut lengths = Vec::new();
    for rows_left in [3, 1000, 9300, 12_000] {
        let journal = work.journal("knn", &key).unwrap();
        let progress = After((rows_left).into());
        let died = with_threads(1, || resumed_knn_graph(&rows, &params, Some(&journal), &progress));
        assert!(matches!(died, Err(Error::Cancelled)), "not cancelled after {rows_left}");
        lengths.push(std::fs::metadata(&part).unwrap().len());
    }
    assert!(lengths.is_sorted() && lengths[3] > lengths[0], "{lengths:?}");
    let before = std::fs::read(&part).unwrap();
    let journal = work.journal("knn", &key).unwrap();
    let resumed = resumed_knn_graph(&rows, &params, Some(&journal), &()).unwrap();
    assert!(resumed == whole, "another graph");
    let after = std::fs::read(&part).unwrap();
    assert!(after.len() > before.len() && after.starts_with(&before));
}
