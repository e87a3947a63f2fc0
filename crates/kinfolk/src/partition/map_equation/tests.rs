use super::limits::Surroundings;
use super::moves::Partition;
use super::network::Members;
use super::weighted_graph::Edges;
use super::*;
use crate::random::{Purpose, Stream};
use crate::testing::{graphs, knn, large_graph, on_one_and_three_threads};
use crate::{Embeddings, KnnGraph};
use proptest::prelude::*;

const FLOWS: [Flow; 2] = [Flow::Undirected, Flow::Directed];

fn graph_of(n: usize, edges: &[(usize, usize, f32)]) -> WeightedGraph {
    let mut edges = edges.to_vec();
    edges.sort_by_key(|edge| edge.0);
    let offsets = (0..=n).map(|i| edges.partition_point(|edge| edge.0 < i)).collect();
    let (targets, weights) = edges.iter().map(|edge| (edge.1 as u32, edge.2)).unzip();
    WeightedGraph::from_parts(offsets, targets, weights).unwrap()
}

fn modules(graph: &WeightedGraph, flow: Flow, seed: u64) -> Modules {
    map_equation(graph, &MapParams { flow, seed, ..MapParams::default() }, &()).unwrap()
}

/// Undirected, with loops.
fn modules_from(graph: &WeightedGraph, pair_weight: f32, seed: u64) -> Modules {
    map_equation(graph, &MapParams { pair_weight: Some(pair_weight), seed, ..MapParams::default() }, &())
        .unwrap()
}

/// The map equation with a dense matrix of flows and the logarithm of the library.
fn slow_codelength(graph: &WeightedGraph, flow: Flow, labels: &[i64]) -> f64 {
    slow_codelength_with(graph, 0.0, flow, labels)
}

/// The same with a loop of this weight at each vertex.
fn slow_codelength_with(graph: &WeightedGraph, loops: f64, flow: Flow, labels: &[i64]) -> f64 {
    let n = graph.len();
    let mut w = vec![vec![0.0; n]; n];
    (0..n).for_each(|u| w[u][u] = loops);
    (0..n).for_each(|u| graph.leaving(u).for_each(|(v, weight)| w[u][v] += weight as f64));
    let total: f64 = w.iter().flatten().sum();
    if total == 0.0 {
        return 0.0;
    }
    let leaving: Vec<f64> = w.iter().map(|row| row.iter().sum()).collect();
    let mut f = vec![vec![0.0; n]; n];
    match flow {
        Flow::Undirected => {
            (0..n * n).for_each(|e| f[e / n][e % n] = (w[e / n][e % n] + w[e % n][e / n]) / (2.0 * total));
        }
        Flow::Directed => {
            let mut x = vec![1.0 / n as f64; n];
            for _ in 0..300 {
                let stuck: f64 = (0..n).filter(|&u| leaving[u] == 0.0).map(|u| x[u]).sum();
                let mut next: Vec<f64> = leaving.iter().map(|s| (0.15 + 0.85 * stuck) * s / total).collect();
                for u in (0..n).filter(|&u| leaving[u] > 0.0) {
                    (0..n).for_each(|v| next[v] += 0.85 * x[u] * w[u][v] / leaving[u]);
                }
                x = next;
            }
            let moving: f64 = (0..n).filter(|&u| leaving[u] > 0.0).map(|u| x[u]).sum();
            for u in (0..n).filter(|&u| leaving[u] > 0.0) {
                (0..n).for_each(|v| f[u][v] = x[u] * w[u][v] / leaving[u] / moving);
            }
        }
    }
    let plogp = |x: f64| if x > 0.0 { x * x.log2() } else { 0.0 };
    let visit: Vec<f64> = (0..n).map(|v| (0..n).map(|u| f[u][v]).sum()).collect();
    let mut length = -visit.iter().map(|&p| plogp(p)).sum::<f64>();
    let mut entered = 0.0;
    for label in labels.iter().collect::<std::collections::BTreeSet<_>>() {
        let inside = |v: usize| labels[v] == *label;
        let crossing = |out: bool| -> f64 {
            let crosses = |u, v| inside(u) == out && inside(v) != out;
            (0..n * n).filter(|e| crosses(e / n, e % n)).map(|e| f[e / n][e % n]).sum()
        };
        let (exit, enter) = (crossing(true), crossing(false));
        let visited: f64 = (0..n).filter(|&v| inside(v)).map(|v| visit[v]).sum();
        length += plogp(exit + visited) - plogp(exit) - plogp(enter);
        entered += enter;
    }
    length + plogp(entered)
}

/// Calls `with` for each partition of `n` things: labels each of which is at most one above all before it.
fn for_each_partition(n: usize, with: &mut impl FnMut(&[i64])) {
    fn extend(labels: &mut Vec<i64>, n: usize, with: &mut impl FnMut(&[i64])) {
        if labels.len() == n {
            return with(labels);
        }
        for label in 0..=labels.iter().max().map_or(0, |most| most + 1) {
            labels.push(label);
            extend(labels, n, with);
            labels.pop();
        }
    }
    extend(&mut Vec::new(), n, with);
}

/// Any graph of up to `most` vertices; edges may be missing, one-sided, doubled or without weight.
fn weighted(most: usize) -> impl Strategy<Value = WeightedGraph> {
    (2..=most).prop_flat_map(|n| {
        let edge = (0..n, 1..n, 0u8..5).prop_map(move |(u, step, w)| (u, (u + step) % n, w as f32 / 4.0));
        prop::collection::vec(edge, 0..4 * n).prop_map(move |edges| graph_of(n, &edges))
    })
}

fn network_of(graph: &WeightedGraph, flow: Flow) -> Network {
    let arriving = Transposed::of(graph);
    let order: Vec<u32> = (0..graph.len() as u32).collect();
    Network::of(graph, &arriving, &Walk::of(graph, &arriving, flow), &order)
}

/// Several groups of `size` vertices; an edge has weight 1 within a group, and a few of weight 0.5 lead elsewhere.
fn planted(groups: usize, size: usize) -> (WeightedGraph, Vec<i64>) {
    let mut random = Stream::new(5, Purpose::Image, 0, 0);
    let n = groups * size;
    // Vertex i is in group i mod groups: numbers must not give the groups away.
    let mut edges = Vec::new();
    for u in 0..n {
        for _ in 0..8 {
            let v = (u + groups * (1 + random.below(size - 1))) % n;
            edges.push((u, v, 1.0));
        }
        for _ in 0..3 {
            edges.push((u, (u + 1 + random.below(n - 1)) % n, 0.5));
        }
    }
    (graph_of(n, &edges), (0..n).map(|u| (u % groups) as i64).collect())
}

proptest! {
    #[test]
    fn codelength_is_the_map_equation(graph in weighted(12), names in prop::collection::vec(-2i64..3, 12)) {
        let labels = &names[..graph.len()];
        for flow in FLOWS {
            let (found, slow) = (codelength(&graph, flow, labels).unwrap(), slow_codelength(&graph, flow, labels));
            prop_assert!((found - slow).abs() < 1e-6, "{:?}: {} is not {}", flow, found, slow);
        }
    }

    #[test]
    fn loops_are_part_of_the_codelength(graph in weighted(12), pair_weight in 0.0f32..1.0, seed in 0u64..9) {
        let found = modules_from(&graph, pair_weight, seed);
        let slow = slow_codelength_with(&graph, found.loops, Flow::Undirected, &found.labels);
        prop_assert!((found.codelength - slow).abs() < 1e-6, "{} is not {}", found.codelength, slow);
    }

    /// The rates that are updated move by move equal those of the final modules, and no single move improves the codelength.
    #[test]
    fn moves_end_where_no_vertex_wants_to_move(graph in weighted(14), seed in 0u64..9) {
        for flow in FLOWS {
            let network = network_of(&graph, flow);
            let mut partition = Partition::singletons(&network);
            let random = &mut Stream::new(seed, Purpose::Moves, 0, 0);
            // One call does not visit a vertex again if its neighbours do not move, although their module may change.
            while partition.improve(&network, &Surroundings::NONE, random, &()).unwrap() {}
            let fixed: f64 = network.rates.iter().map(|rates| plogp(rates.visit)).sum();
            let mut labels: Vec<i64> = partition.modules.iter().map(|&m| m as i64).collect();
            let length = codelength(&graph, flow, &labels).unwrap();
            // plogp is steep at 0, where f32 flows leave some 1e-8 of nothing.
            let updated = partition.bits() - fixed;
            prop_assert!((updated - length).abs() < 1e-5, "{} is not {}", updated, length);
            for v in 0..graph.len() {
                let stays = labels[v];
                for to in network.links(v).iter().map(|link| partition.modules[link.target as usize] as i64).chain([99]) {
                    labels[v] = to;
                    prop_assert!(codelength(&graph, flow, &labels).unwrap() > length - 1e-5);
                }
                labels[v] = stays;
            }
        }
    }

    /// A module moves as a vertex of the smaller network, with the same rates and flows.
    #[test]
    fn coarse_networks_have_the_same_codelength(graph in weighted(14), names in prop::collection::vec(0u32..4, 14)) {
        for flow in FLOWS {
            let network = network_of(&graph, flow);
            let dense = densify(&names[..graph.len()]);
            let mut rates = vec![Rates::default(); dense.sizes.len()];
            let mut row = network::Row::new(rates.len());
            for v in 0..graph.len() {
                // Only vertices before it are in a module yet.
                let before: Vec<_> = network.links(v).iter().filter(|link| (link.target as usize) < v).copied().collect();
                row.gather(&before, &dense.labels);
                let module = dense.labels[v] as usize;
                rates[module] = rates[module].with(network.rates[v], row.flow(module));
                row.clear();
            }
            let coarse = network.coarsen(&Members::new(&dense.labels, rates.len()), &dense.labels, rates.clone());
            let labels: Vec<i64> = dense.labels.iter().map(|&m| m as i64).collect();
            let fixed: f64 = network.rates.iter().map(|rates| plogp(rates.visit)).sum();
            let length = codelength(&graph, flow, &labels).unwrap();
            // As above: f32 flows leave some 1e-8 of nothing.
            prop_assert!((modular_bits(&coarse.rates) - fixed - length).abs() < 1e-5);
            for (m, rates) in coarse.rates.iter().enumerate() {
                let flow: f64 = coarse.links(m).iter().map(|link| link.flow as f64).sum();
                prop_assert!((flow - rates.enter - rates.exit).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn any_knn_graph_has_modules(graph in graphs(), seed in 0u64..3) {
        let weights: Vec<f32> = (0..graph.len()).flat_map(|i| graph.neighbours(i).1).map(|s| s.max(0.0)).collect();
        let graph = WeightedGraph::from_knn(&graph, &weights).unwrap();
        for flow in FLOWS {
            let found = modules(&graph, flow, seed);
            prop_assert!(found.codelength.is_finite() && found.codelength >= 0.0);
            prop_assert_eq!(number_by_size(&found.labels), found.labels);
        }
    }
}

#[test]
fn a_pair_joins_if_its_edge_weighs_more_than_the_pair_weight() {
    for groups in [3, 40] {
        let (graph, truth) = planted(groups, 20);
        let n = graph.len();
        for pair_weight in [0.1f32, 0.3, 0.5, 0.8] {
            let mut edges: Vec<(usize, usize, f32)> =
                (0..n).flat_map(|u| graph.leaving(u).map(move |(v, weight)| (u, v, weight))).collect();
            for (pair, weight) in [(n, 0.95 * pair_weight), (n + 2, 1.05 * pair_weight)] {
                edges.extend([(pair, pair + 1, weight), (pair + 1, pair, weight)]);
            }
            let graph = graph_of(n + 4, &edges);
            let found = modules_from(&graph, pair_weight, 1);
            let labels = &found.labels;
            assert_ne!(labels[n], labels[n + 1], "{groups} groups, below {pair_weight}");
            assert_eq!(labels[n + 2], labels[n + 3], "{groups} groups, above {pair_weight}");
            let mut apart = truth.clone();
            apart.extend([n as i64, n as i64 + 1, n as i64 + 2, n as i64 + 2]);
            let groups_bits = slow_codelength_with(&graph, found.loops, Flow::Undirected, &apart);
            assert!(found.codelength < groups_bits + 1e-9, "{groups} groups, {pair_weight}");
        }
    }
}

#[test]
fn tiny_graphs_with_loops_are_mostly_optimal() {
    let mut random = Stream::new(9, Purpose::Image, 0, 0);
    let (mut optimal, count) = (0, 200);
    for _ in 0..count {
        let n = 3 + random.below(5);
        let mut edge = || {
            let u = random.below(n);
            (u, (u + 1 + random.below(n - 1)) % n, random.uniform() as f32)
        };
        let graph = graph_of(n, &(0..2 * n).map(|_| edge()).collect::<Vec<_>>());
        // Only partitions with the loop that was found can be compared: it depends on the partition.
        let found = modules_from(&graph, 0.3, 0);
        let mut least = f64::INFINITY;
        for_each_partition(n, &mut |labels| {
            least = least.min(slow_codelength_with(&graph, found.loops, Flow::Undirected, labels));
        });
        assert!(found.codelength > least - 1e-6);
        optimal += usize::from(found.codelength < least + 1e-6);
    }
    assert!(optimal > 150, "{optimal} of {count}");
}

#[test]
fn impossible_loops_are_refused() {
    let graph = graph_of(2, &[(0, 1, 1.0)]);
    let message = |pair_weight, flow| {
        let params = MapParams { pair_weight: Some(pair_weight), flow, ..MapParams::default() };
        map_equation(&graph, &params, &()).unwrap_err().to_string()
    };
    assert_eq!(message(-1.0, Flow::Undirected), "pair_weight: expected a weight of 0 or more, found -1");
    assert_eq!(message(0.5, Flow::Directed), "pair_weight: expected none with directed flow, found 0.5");
}

/// Random graphs have no clear groups, and moves end in local optima; even so the best partition is mostly found.
#[test]
fn tiny_graphs_are_mostly_optimal() {
    let mut random = Stream::new(8, Purpose::Image, 0, 0);
    let (mut optimal, mut excess) = (0, 0.0);
    let count = 200;
    for _ in 0..count {
        let n = 3 + random.below(5);
        let mut edge = || {
            let u = random.below(n);
            (u, (u + 1 + random.below(n - 1)) % n, random.uniform() as f32)
        };
        let graph = graph_of(n, &(0..2 * n).map(|_| edge()).collect::<Vec<_>>());
        for flow in FLOWS {
            let found =
                (0..10).map(|seed| modules(&graph, flow, seed).codelength).fold(f64::INFINITY, f64::min);
            let walk = Walk::of(&graph, &Transposed::of(&graph), flow);
            let mut least = f64::INFINITY;
            for_each_partition(n, &mut |labels| {
                least = least.min(bits(&graph, &walk, flow, &densify(labels)));
            });
            assert!(found > least - 1e-9);
            optimal += (found < least + 1e-9) as usize;
            excess += found / least - 1.0;
        }
    }
    assert!(optimal * 10 > 2 * count * 9 && excess < 0.005 * (2 * count) as f64);
}

#[test]
fn planted_groups_are_found() {
    for (groups, size) in [(4, 20), (60, 25), (200, 12)] {
        let (graph, truth) = planted(groups, size);
        for flow in FLOWS {
            assert_eq!(modules(&graph, flow, 0).labels, truth, "{groups} of {size}, {flow:?}");
        }
    }
}

#[test]
fn threads_do_not_change_a_label() {
    let (planted, _) = planted(300, 20);
    let knn = large_graph(4000, 10);
    let weights: Vec<f32> = (0..4000).flat_map(|i| knn.neighbours(i).1).map(|s| s.max(0.0)).collect();
    for graph in [planted, WeightedGraph::from_knn(&knn, &weights).unwrap()] {
        for flow in FLOWS {
            let [one, three] = on_one_and_three_threads(|| modules(&graph, flow, 3));
            assert!(one == three);
        }
    }
}

#[test]
fn nothing_has_no_modules() {
    for flow in FLOWS {
        let found = modules(&graph_of(0, &[]), flow, 0);
        assert_eq!(found, Modules { labels: vec![], codelength: 0.0, loops: 0.0 });
        assert_eq!(modules(&graph_of(1, &[]), flow, 0).labels, [0]);
    }
}

#[test]
fn vertices_without_edges_are_modules_of_one() {
    for flow in FLOWS {
        let found = modules(&graph_of(5, &[]), flow, 0);
        assert_eq!(found, Modules { labels: vec![0, 1, 2, 3, 4], codelength: 0.0, loops: 0.0 });
        let found = modules(&graph_of(5, &[(1, 3, 1.0), (3, 1, 1.0), (0, 2, 0.0)]), flow, 0);
        assert_eq!(found, Modules { labels: vec![1, 0, 2, 0, 3], codelength: 1.0, loops: 0.0 });
    }
}

#[test]
fn two_rows_are_one_module() {
    for edges in [&[(0, 1, 0.3), (1, 0, 0.3)][..], &[(0, 1, 0.3)]] {
        assert_eq!(modules(&graph_of(2, edges), Flow::Undirected, 0).labels, [0, 0]);
    }
    assert_eq!(modules(&graph_of(2, &[(0, 1, 0.3), (1, 0, 0.3)]), Flow::Directed, 0).labels, [0, 0]);
    // Only the step to 1 is counted, so the codelength is 0.
    assert_eq!(modules(&graph_of(2, &[(0, 1, 0.3)]), Flow::Directed, 0).codelength, 0.0);
}

#[test]
fn a_clique_is_one_module() {
    let n = 300;
    let edges: Vec<_> = (0..n * n).map(|e| (e / n, e % n, 1.0)).filter(|(u, v, _)| u != v).collect();
    let graph = graph_of(n, &edges);
    for flow in FLOWS {
        let found = modules(&graph, flow, 0);
        assert_eq!(found.labels, vec![0; n]);
        assert!((found.codelength - (n as f64).log2()).abs() < 1e-6, "{}", found.codelength);
    }
}

#[test]
fn duplicates_share_a_module() {
    // Three rows, each 20 times; duplicates list each other, all with similarity 1.
    let rows = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]];
    let data = (0..60).flat_map(|i| rows[i % 3]).collect();
    let graph = knn(&Embeddings::from_rows(data, 2, "test").unwrap(), 15);
    let graph = WeightedGraph::from_knn(&graph, &[1.0; 60 * 15]).unwrap();
    for flow in FLOWS {
        let labels = modules(&graph, flow, 0).labels;
        assert!((0..60).all(|i| labels[i] == labels[i % 3]), "{labels:?}");
    }
}

#[test]
fn weights_of_any_size_are_weights() {
    let edges =
        [(0, 1, f32::MAX), (1, 0, f32::MAX), (1, 2, 1e-45), (2, 3, 1e-45), (3, 2, 1e-30), (3, 0, 1.0)];
    for flow in FLOWS {
        let found = modules(&graph_of(4, &edges), flow, 0);
        assert!(found.codelength.is_finite());
        assert_eq!(found.labels[0], found.labels[1]);
    }
}

#[test]
fn bad_graphs_are_named() {
    let message = |offsets: &[usize], targets: &[u32], weights: &[f32]| {
        let graph = WeightedGraph::from_parts(offsets.to_vec(), targets.to_vec(), weights.to_vec());
        graph.unwrap_err().to_string()
    };
    let place = "weighted graph: row 1, column 0: expected";
    assert_eq!(message(&[0, 0, 1], &[2], &[1.0]), format!("{place} a vertex below 2, found 2"));
    let own = "a vertex other than the one the edge leaves";
    assert_eq!(message(&[0, 0, 1], &[1], &[1.0]), format!("{place} {own}, found 1"));
    for weight in [f32::NAN, -0.5, f32::INFINITY] {
        let expected = format!("{place} a weight of 0 or more, found {weight}");
        assert_eq!(message(&[0, 0, 1], &[0], &[weight]), expected);
    }
    assert_eq!(message(&[0, 1], &[0], &[]), "weighted graph: expected 1 weights (one per target), found 0");
    for offsets in [&[][..], &[1, 1], &[0, 2], &[0, 1, 0, 1]] {
        assert!(message(offsets, &[0], &[1.0]).starts_with("offsets: expected ascending numbers"));
    }

    let knn = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.5; 2], "test").unwrap();
    let error = WeightedGraph::from_knn(&knn, &[0.5]).unwrap_err().to_string();
    assert_eq!(error, "weighted graph: expected 2 weights (2 vertices x 1 neighbours), found 1");
    let error = WeightedGraph::from_knn(&knn, &[0.5, f32::NAN]).unwrap_err().to_string();
    assert_eq!(error, format!("{place} a weight of 0 or more, found NaN"));
    let graph = WeightedGraph::from_knn(&knn, &[0.5, 0.5]).unwrap();
    let error = codelength(&graph, Flow::Directed, &[0]).unwrap_err().to_string();
    assert_eq!(error, "labels: expected 2 labels (one per vertex), found 1");
}

#[test]
fn edges_of_weight_0_are_left_out_wherever_they_are() {
    // More rows than one task takes.
    let (n, k) = (3000u32, 3);
    let targets: Vec<u32> = (0..n).flat_map(|i| [1, 2, 3].map(|step| (i + step) % n)).collect();
    let knn = KnnGraph::from_parts(n as usize, k, targets, vec![0.5; 9000], "test").unwrap();
    let weights: Vec<f32> = (0..9000).map(|at| (at * 7 % 5) as f32).collect();
    let graph = WeightedGraph::from_knn(&knn, &weights).unwrap();
    for i in 0..n as usize {
        let edges = knn.neighbours(i).0.iter().zip(&weights[i * k..]).filter(|edge| *edge.1 != 0.0);
        let (targets, weights): (Vec<u32>, Vec<f32>) = edges.unzip();
        assert_eq!(graph.row(i), (&targets[..], &weights[..]));
    }
    // Of two errors the first is reported.
    let mut wrong = weights;
    (wrong[2000 * k + 1], wrong[70 * k + 2]) = (-1.0, f32::NAN);
    let error = WeightedGraph::from_knn(&knn, &wrong).unwrap_err().to_string();
    assert!(error.contains("70") && !error.contains("2000"), "{error}");
}

mod regions {
    use super::super::weighted_graph::Edges;
    use super::super::{MapParams, Region, WeightedGraph, codelength, regional_modules};
    use crate::stages::Flow;
    use crate::testing::{graphs, on_one_and_three_threads};
    use proptest::prelude::*;

    /// The weight of all edges of each vertex, and of all edges.
    fn strengths(graph: &WeightedGraph) -> (Vec<f64>, f64) {
        let mut strengths = vec![0.0; graph.len()];
        let mut total = 0.0;
        for u in 0..graph.len() {
            for (v, weight) in graph.leaving(u) {
                strengths[u] += f64::from(weight);
                strengths[v] += f64::from(weight);
                total += f64::from(weight);
            }
        }
        (strengths, total)
    }

    /// The vertices of some modules, with the edges between them, and what surrounds them.
    fn region(graph: &WeightedGraph, modules: &[u32], inside: &[u32]) -> (WeightedGraph, f64) {
        let place = |v: usize| inside.iter().position(|&u| u as usize == v);
        let (mut offsets, mut targets, mut weights) = (vec![0], Vec::new(), Vec::new());
        for &u in inside {
            for (v, weight) in graph.leaving(u as usize) {
                if let Some(v) = place(v) {
                    targets.push(v as u32);
                    weights.push(weight);
                }
            }
            offsets.push(targets.len());
        }
        let mut outside = 0.0;
        for u in 0..graph.len() {
            for (v, weight) in graph.leaving(u).filter(|&(v, _)| modules[v] != modules[u]) {
                let ends = [u, v].iter().filter(|&&end| place(end).is_none()).count();
                outside += ends as f64 * f64::from(weight);
            }
        }
        (WeightedGraph::from_parts(offsets, targets, weights).unwrap(), outside)
    }

    proptest! {
        #[test]
        fn a_region_improves_the_whole_and_keeps_to_its_limits(
            graph in graphs(),
            modules in prop::collection::vec(0u32..5, 40),
            apart in prop::collection::vec((0usize..40, 0usize..40), 0..4),
            colours in prop::collection::vec(prop::option::of(0u32..3), 40),
            units in prop::option::of(prop::collection::vec(0usize..8, 40)),
        ) {
            let n = graph.len();
            let weights: Vec<f32> = (0..graph.len() * graph.k()).map(|edge| (edge % 5) as f32 / 5.0).collect();
            let graph = WeightedGraph::from_knn(&graph, &weights).unwrap();
            let modules = &modules[..n];
            // What may change: the first modules, from singletons on.
            let inside: Vec<u32> = (0..n as u32).filter(|&v| modules[v as usize] < 3).collect();
            // Units are numbered by their first members.
            let firsts: Vec<usize> = match &units {
                Some(units) => (0..inside.len()).map(|v| units.iter().position(|unit| *unit == units[v]).unwrap()).collect(),
                None => (0..inside.len()).collect(),
            };
            let number = |v: usize| firsts[..firsts[v]].iter().zip(0..).filter(|&(&first, at)| first == at).count() as u32;
            let start: Vec<u32> = (0..inside.len()).map(number).collect();
            let mut before: Vec<i64> = modules.iter().map(|&m| i64::from(m)).collect();
            inside.iter().zip(&start).for_each(|(&v, &m)| before[v as usize] = 10 + i64::from(m));
            let (all, total) = strengths(&graph);
            let (part, outside) = region(&graph, modules, &inside);
            let of_inside: Vec<f64> = inside.iter().map(|&v| all[v as usize]).collect();
            let apart: Vec<[u32; 2]> = apart.into_iter()
                .filter(|&(a, b)| a < inside.len() && b < inside.len() && start[a] != start[b])
                .map(|(a, b)| [a as u32, b as u32]).collect();
            let colours: Vec<Option<u32>> = firsts.iter().map(|&first| colours[first]).collect();
            let region = Region {
                graph: &part, strengths: &of_inside, total, outside, modules: &start, apart: &apart, colours: &colours,
                units: units.is_some().then_some(&start[..]),
            };
            // A weight of nothing: no loops, the equation as published.
            let params = MapParams { pair_weight: Some(0.0), ..MapParams::default() };
            let [found, three] = on_one_and_three_threads(|| regional_modules(&region, &params, &()).unwrap());
            prop_assert_eq!(&found, &three);
            for [a, b] in &apart {
                prop_assert_ne!(found[*a as usize], found[*b as usize]);
            }
            for (a, one) in colours.iter().enumerate() {
                for (b, other) in colours.iter().enumerate() {
                    prop_assert!(one.is_none() || other.is_none() || one == other || found[a] != found[b]);
                }
            }
            for (v, &first) in firsts.iter().enumerate() {
                prop_assert_eq!(found[v], found[first], "a unit fell apart");
            }
            if units.is_none() {
                let one_each = Region { units: Some(&start), ..region };
                prop_assert_eq!(&found, &regional_modules(&one_each, &params, &()).unwrap());
            }
            let mut after = before.clone();
            inside.iter().zip(&found).for_each(|(&v, &m)| after[v as usize] = 10 + i64::from(m));
            let bits = |labels: &[i64]| codelength(&graph, Flow::Undirected, labels).unwrap();
            prop_assert!(bits(&after) <= bits(&before) + 1e-6, "{} {}", bits(&before), bits(&after));
        }
    }
}
