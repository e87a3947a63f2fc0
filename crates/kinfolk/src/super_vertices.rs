//! Super vertices: rows that are nearly copies of each other are contracted to one before a method runs, and its result is
//! expanded to all rows afterwards.
//!
//! "Learning to Cluster Faces on an Affinity Graph" (Yang et al., CVPR 2019) builds its graph of super vertices; the paper that
//! this crate implements remarks that they would accelerate GCN-V too. Rows are looked at in order. A row that is more similar
//! than the bound to an earlier representative joins the most similar one, else it becomes a representative. So every row
//! is within the bound of its representative, and chains of near rows do not run from one identity into another.
//!
//! - Without a graph, rows are divided into about sqrt(N) lists around centroids, and a row is compared with the
//!   representatives of its own list only: about a fifth of the time of the search. Near rows in two lists are not
//!   contracted. Copies are always in one list.
//! - With a graph, a row is compared with those that it lists. The list of a representative is what its rows list, each
//!   once. Lists that became much shorter are found anew among the representatives.
//!
//! The representative is a row and not a mean, so a set with copies gives exactly the result of the set without them.
//!
//! Cost: O(N^1.5 D) without a graph, O(N K) with one; 8 bytes for each row and a matrix of the representatives.

use crate::knn::{dot, near_lists};
use crate::{
    Clustering, Cohesion, Context, Edge, EdgeEvidence, Embeddings, KnnGraph, Levels, Links, MergeTree,
    Problem, Progress, Reason, Result, Tree, number_by_size,
};
use rayon::prelude::*;

/// Lists of a contracted graph that keep less than this share of K are found anew.
const SHORT: f64 = 0.75;

/// Runs a method on the super vertices of a problem: rows of a similarity above `bound` are contracted. A bound of 1
/// contracts nothing.
pub fn with_super_vertices(
    problem: &Problem,
    bound: f32,
    context: &Context,
    run: impl FnOnce(&Problem) -> Result<Clustering>,
) -> Result<Clustering> {
    if bound >= 1.0 || problem.len() < 2 {
        return run(problem);
    }
    let rows = problem.embeddings()?;
    let (all, few) = context.timed("contraction", || -> Result<_> {
        let all = SuperVertices::of(rows, problem.given_graph(), bound, context)?;
        let few = (all.representatives.len() < rows.len()).then(|| all.rows(rows)).transpose()?;
        Ok((all, few))
    })?;
    let Some(few) = few else { return run(problem) };
    let contracted = Problem::new(&few).with_search(problem.search());
    let found = match problem.given_graph() {
        None => run(&contracted.with_k(problem.k())?)?,
        Some(graph) => {
            let graph = context.timed("contraction", || all.graph(graph, &few, context.progress()))?;
            run(&contracted.with_graph(&graph)?.with_k(Some(graph.k()).filter(|&k| k > 0))?)?
        }
    };
    Ok(all.expand(found, rows))
}

/// The representatives of a set, and which one stands for each row.
#[derive(Debug, Clone, PartialEq)]
struct SuperVertices {
    /// The rows that represent others or only themselves, ascending.
    representatives: Vec<u32>,
    /// For each row the place of its representative in `representatives`.
    place: Vec<u32>,
}

impl SuperVertices {
    fn of(rows: &Embeddings, graph: Option<&KnnGraph>, bound: f32, context: &Context) -> Result<Self> {
        let progress = context.progress();
        let leaders = match graph {
            Some(graph) => leaders_in_graph(graph, bound),
            None => leaders_in_lists(rows, &near_lists(rows, context.seed(), progress)?, bound, progress)?,
        };
        let n = leaders.len() as u32;
        let representatives: Vec<u32> = (0..n).filter(|&row| leaders[row as usize] == row).collect();
        let mut at = vec![0; n as usize];
        representatives.iter().zip(0..).for_each(|(&row, place)| at[row as usize] = place);
        let place = leaders.iter().map(|&leader| at[leader as usize]).collect();
        Ok(SuperVertices { representatives, place })
    }

    /// The representative of a row, if it is another.
    fn representative(&self, row: usize) -> Option<usize> {
        Some(self.representatives[self.place[row] as usize] as usize).filter(|&other| other != row)
    }

    /// The rows of the representatives. Unit rows are not changed by a bit.
    fn rows(&self, all: &Embeddings) -> Result<Embeddings> {
        let data = self.representatives.iter().flat_map(|&row| all.row(row as usize)).copied().collect();
        Ok(Embeddings::from_unit_rows(data, all.dim()))
    }

    /// The graph of the representatives, `few`.
    fn graph(&self, graph: &KnnGraph, few: &Embeddings, progress: &dyn Progress) -> Result<KnnGraph> {
        let n = self.representatives.len();
        let k = graph.k().min(n - 1);
        let mut listed: Vec<Vec<(u32, f32)>> = vec![Vec::new(); n];
        for (row, &own) in self.place.iter().enumerate() {
            let (ids, similarities) = graph.neighbours(row);
            let others = ids.iter().zip(similarities).map(|(&id, &s)| (self.place[id as usize], s));
            listed[own as usize].extend(others.filter(|&(other, _)| other != own));
        }
        let enough = (SHORT * k as f64).ceil() as usize;
        listed.par_iter_mut().enumerate().for_each(|(own, list)| {
            keep_nearest(list, k);
            if list.len() < enough && !progress.cancelled() {
                let others = (0..n as u32).filter(|&other| other as usize != own);
                *list = others.map(|other| (other, dot(few.row(own), few.row(other as usize)))).collect();
                keep_nearest(list, k);
            }
        });
        progress.check()?;
        let k = listed.iter().map(Vec::len).min().unwrap_or(0);
        let all = || listed.iter().flat_map(|list| &list[..k]);
        let (ids, similarities) =
            (all().map(|other| other.0).collect(), all().map(|other| other.1).collect());
        KnnGraph::from_parts(n, k, ids, similarities, "contracted graph")
    }

    /// The result for all rows, `rows`, from that of the representatives.
    fn expand(&self, found: Clustering, rows: &Embeddings) -> Clustering {
        let Clustering { labels: of_few, reason, levels, mut report } = found;
        let labels = number_by_size(&self.place.iter().map(|&at| of_few[at as usize]).collect::<Vec<_>>());
        let reason = match reason {
            Reason::None => Reason::None,
            Reason::Tree(Tree { links, tau }) => Reason::Tree(Tree { links: self.links(&links, rows), tau }),
            Reason::Edges(evidence) => Reason::Edges(self.evidence(evidence, &of_few, &labels, rows)),
        };
        let (n, few) = (labels.len(), of_few.len());
        report.set("vertices", few);
        report.notes.push(format!("{n} rows contracted to {few} super vertices"));
        let levels = levels.map(|levels| Levels::of_tree(self.tree(levels.tree())));
        Clustering::new(labels, reason, report).with_levels(levels)
    }

    /// Every other row is linked to its representative, which comes before it and is as confident.
    fn links(&self, few: &Links, rows: &Embeddings) -> Links {
        let (n, m) = (self.place.len(), few.m().max(1));
        let confidence = self.place.iter().map(|&at| few.confidence()[at as usize]).collect();
        let (mut parents, mut similarities) = (vec![Links::NONE; n * m], vec![0.0; n * m]);
        for row in 0..n {
            let at = row * m;
            match self.representative(row) {
                Some(other) => {
                    parents[at] = other as u32;
                    similarities[at] = dot(rows.row(row), rows.row(other));
                }
                None => {
                    let (of_few, values) = few.of(self.place[row] as usize);
                    for (slot, (&parent, &value)) in of_few.iter().zip(values).enumerate() {
                        parents[at + slot] = self.representatives[parent as usize];
                        similarities[at + slot] = value;
                    }
                }
            }
        }
        Links::of_valid_parts(confidence, m, parents, similarities)
    }

    /// Edges of representatives as they are. The edge of another row to its representative is certain: that is what the
    /// bound says.
    fn evidence(&self, few: EdgeEvidence, of_few: &[i64], labels: &[i64], rows: &Embeddings) -> EdgeEvidence {
        let moved = |edge: &Option<Edge>| {
            edge.map(|edge| Edge { row: self.representatives[edge.row as usize], ..edge })
        };
        let contracted = |row: usize, other: usize| Edge {
            row: other as u32,
            similarity: dot(rows.row(row), rows.row(other)),
            probability: 1.0,
            ranks: [0, 0],
            shared: 0,
        };
        let inside = |row: usize| match self.representative(row) {
            Some(other) => Some(contracted(row, other)),
            None => moved(&few.inside[self.place[row] as usize]),
        };
        let outside = |row: usize| match self.representative(row) {
            Some(_) => None,
            None => moved(&few.outside[self.place[row] as usize]),
        };
        // Clusters are numbered by their rows, no longer by their representatives.
        let mut clusters = vec![Cohesion::default(); few.clusters.len()];
        for (&row, &cluster) in self.representatives.iter().zip(of_few) {
            clusters[labels[row as usize] as usize] = few.clusters[cluster as usize];
        }
        EdgeEvidence {
            min_probability: few.min_probability,
            inside: (0..labels.len()).map(inside).collect(),
            outside: (0..labels.len()).map(outside).collect(),
            clusters,
        }
    }

    /// The tree in which every row merges with its representative before anything else does.
    fn tree(&self, few: &MergeTree) -> MergeTree {
        let (n, of_few) = (self.place.len(), few.rows());
        // The default is the cut at 0.
        let first = few.heights().first().map_or(0.0, |height| height.min(0.0));
        let mut node = self.representatives.clone();
        let mut merges = Vec::with_capacity(n);
        for row in (0..n).filter(|&row| self.representative(row).is_some()) {
            let own = &mut node[self.place[row] as usize];
            merges.push([*own, row as u32]);
            *own = (n + merges.len() - 1) as u32;
        }
        let contracted = merges.len();
        let moved = |part: u32| match part as usize {
            row if row < of_few => node[row],
            merge => (n + contracted + merge - of_few) as u32,
        };
        merges.extend(few.merges().iter().map(|parts| parts.map(moved)));
        let heights = std::iter::repeat_n(first, contracted).chain(few.heights().iter().copied()).collect();
        MergeTree::of_valid_parts(n, merges, heights)
    }
}

/// The `k` nearest of a list, each once, with its largest similarity.
fn keep_nearest(list: &mut Vec<(u32, f32)>, k: usize) {
    list.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    list.dedup_by_key(|other| other.0);
    list.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    list.truncate(k);
}

/// The representative of each row, where a row is compared with the representatives in its list; lists are ascending.
fn leaders_in_lists(
    rows: &Embeddings,
    lists: &[Vec<u32>],
    bound: f32,
    progress: &dyn Progress,
) -> Result<Vec<u32>> {
    let of_list = |list: &Vec<u32>| -> Vec<u32> {
        let mut leaders: Vec<u32> = Vec::new();
        let mut chosen = Vec::with_capacity(list.len());
        for &row in list {
            if progress.cancelled() {
                break;
            }
            let mut best = (bound, None);
            for &leader in &leaders {
                let similarity = dot(rows.row(row as usize), rows.row(leader as usize));
                if similarity > best.0 {
                    best = (similarity, Some(leader));
                }
            }
            chosen.push(best.1.unwrap_or_else(|| {
                leaders.push(row);
                row
            }));
        }
        chosen
    };
    let chosen: Vec<Vec<u32>> = lists.par_iter().map(of_list).collect();
    progress.check()?;
    let mut leaders = vec![0; rows.len()];
    for (list, chosen) in lists.iter().zip(chosen) {
        list.iter().zip(chosen).for_each(|(&row, leader)| leaders[row as usize] = leader);
    }
    Ok(leaders)
}

/// The representative of each row, where a row is compared with those it lists, the most similar first.
fn leaders_in_graph(graph: &KnnGraph, bound: f32) -> Vec<u32> {
    let mut leaders: Vec<u32> = Vec::with_capacity(graph.len());
    for row in 0..graph.len() {
        let (ids, similarities) = graph.neighbours(row);
        let near = ids.iter().zip(similarities).take_while(|&(_, &similarity)| similarity > bound);
        let leader = near.map(|(&id, _)| id).find(|&id| leaders.get(id as usize) == Some(&id));
        leaders.push(leader.unwrap_or(row as u32));
    }
    leaders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knn::{KnnParams, knn_graph};
    use crate::metrics::evaluate;
    use crate::synth::{Synth, SynthParams};
    use crate::testing::{embeddings, on_one_and_three_threads};
    use crate::{Clusterer, Explainer, Kin, Method, review};
    use proptest::prelude::*;

    /// A synthetic set in which every tenth row is repeated with a little noise, and its labels.
    fn with_near_copies(identities: usize, noise: f32) -> (Embeddings, Vec<i64>) {
        let params = SynthParams { identities, dim: 64, seed: 3, ..SynthParams::default() };
        let (rows, labels) = Synth::new(params).unwrap().whole().to_embeddings().unwrap();
        let mut stream = crate::random::Stream::new(1, crate::random::Purpose::Image, 0, 0);
        let (mut data, mut all) = (rows.as_slice().to_vec(), labels.clone());
        for row in (0..rows.len()).step_by(10) {
            data.extend(rows.row(row).iter().map(|v| v + noise * stream.rough_normal()));
            all.push(labels[row]);
        }
        (Embeddings::from_rows(data, 64, "test").unwrap(), all)
    }

    fn kin(bound: f32) -> Kin {
        let mut kin = Kin::default();
        kin.parameters_mut().set("super_vertices", &bound.to_string()).unwrap();
        kin
    }

    proptest! {
        #[test]
        fn rows_join_the_nearest_earlier_representative_of_their_list(
            rows in embeddings(),
            bound in 0.1f32..0.99,
            of_row in prop::collection::vec(0usize..3, 40),
        ) {
            let lists: Vec<Vec<u32>> = (0..3)
                .map(|list| (0..rows.len() as u32).filter(|&row| of_row[row as usize] == list).collect())
                .collect();
            let [found, again] =
                on_one_and_three_threads(|| leaders_in_lists(&rows, &lists, bound, &()).unwrap());
            prop_assert_eq!(&found, &again);
            // One after the other, comparing with all rows before.
            let mut expected: Vec<usize> = Vec::new();
            for row in 0..rows.len() {
                let near = |&other: &usize| {
                    expected[other] == other
                        && of_row[other] == of_row[row]
                        && dot(rows.row(row), rows.row(other)) > bound
                };
                let similarity = |&other: &usize| dot(rows.row(row), rows.row(other));
                let best = (0..row).filter(near).rev().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
                expected.push(best.unwrap_or(row));
            }
            prop_assert_eq!(found.iter().map(|&leader| leader as usize).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn a_complete_graph_contracts_like_one_list_and_to_the_graph_of_the_representatives(
            rows in embeddings(),
            bound in 0.1f32..0.99,
        ) {
            let n = rows.len();
            prop_assume!(n > 1);
            let graph = knn_graph(&rows, &KnnParams { k: n, ..KnnParams::default() }, &()).unwrap().0;
            let list = vec![(0..n as u32).collect::<Vec<_>>()];
            prop_assert_eq!(
                leaders_in_graph(&graph, bound),
                leaders_in_lists(&rows, &list, bound, &()).unwrap()
            );
            let context = Context::default();
            let all = SuperVertices::of(&rows, Some(&graph), bound, &context).unwrap();
            let few = all.rows(&rows).unwrap();
            let contracted = all.graph(&graph, &few, &()).unwrap();
            prop_assert_eq!(contracted.k(), few.len() - 1);
            for at in 0..few.len() {
                let mut ids = contracted.neighbours(at).0.to_vec();
                ids.sort_unstable();
                prop_assert_eq!(ids, (0..few.len() as u32).filter(|&id| id != at as u32).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn where_nothing_is_near_nothing_changes() {
        let (rows, _) = with_near_copies(30, 0.03);
        let plain = Clusterer::new().fit(&rows).unwrap();
        let same = Clusterer::with(kin(0.9999)).fit(&rows).unwrap();
        assert_eq!((&plain.labels, &plain.reason), (&same.labels, &same.reason));
        assert!(same.report.notes.is_empty());
    }

    #[test]
    fn contracted_copies_have_the_labels_of_the_set_without_them() {
        let (rows, _) = with_near_copies(30, 0.0);
        let plain = Clusterer::new().fit(&rows).unwrap();
        let found = Clusterer::with(kin(0.9999)).fit(&rows).unwrap();
        let scores = evaluate(&plain.labels, &found.labels).unwrap();
        assert!(scores.bcubed.f > 0.97, "{scores:?}");
        // The result for the different rows is that of the set without copies.
        let different = rows.len() * 10 / 11;
        let few = Embeddings::from_unit_rows(rows.as_slice()[..different * 64].to_vec(), 64);
        let alone = Clusterer::new().fit(&few).unwrap();
        assert_eq!(evaluate(&alone.labels, &found.labels[..different]).unwrap().bcubed.f, 1.0);
    }

    #[test]
    fn near_copies_are_contracted_the_same_on_any_number_of_threads_and_can_be_explained() {
        let (rows, truth) = with_near_copies(60, 0.02);
        let plain = Clusterer::new().fit(&rows).unwrap();
        let run = || Clusterer::with(kin(0.95)).levels(true).fit(&rows).unwrap();
        let [found, again] = on_one_and_three_threads(run);
        assert_eq!(
            (&found.labels, &found.reason, &found.levels),
            (&again.labels, &again.reason, &again.levels)
        );
        assert!(found.report.notes[0].ends_with("super vertices"), "{:?}", found.report.notes);
        let [before, after] = [&plain, &found].map(|found| evaluate(&truth, &found.labels).unwrap());
        assert!(after.bcubed.f > before.bcubed.f - 0.02, "{before:?} {after:?}");
        let levels = found.levels.as_ref().unwrap();
        assert_eq!(levels.labels(levels.default_level()), found.labels);
        let last = rows.len() - 1;
        let edge = found.edges().unwrap().inside[last].unwrap();
        assert_eq!((edge.probability, edge.ranks), (1.0, [0, 0]));
        assert!(edge.similarity > 0.95 && found.labels[edge.row as usize] == found.labels[last]);
        let text = Explainer::new(&found).unwrap().explain(last, Some(edge.row as usize)).unwrap();
        assert!(text.contains("one super vertex"), "{text}");
        assert!(!review(&found, 10).is_empty());
        assert_eq!(found.cluster_probabilities().unwrap().len(), found.len());
        assert!(found.sizes().is_sorted_by(|a, b| a >= b));
        assert!(found.report.timings.iter().any(|timing| timing.0 == "contraction"));
    }

    #[test]
    fn a_given_graph_is_contracted() {
        let (rows, truth) = with_near_copies(60, 0.02);
        let graph = knn_graph(&rows, &KnnParams { k: 40, ..KnnParams::default() }, &()).unwrap().0;
        let plain = Clusterer::new().fit_graph(&rows, &graph).unwrap();
        let found = Clusterer::with(kin(0.95)).fit_graph(&rows, &graph).unwrap();
        assert!(found.report.k().unwrap() >= 30 && found.report.notes.len() == 1, "{:?}", found.report);
        let [before, after] = [&plain, &found].map(|found| evaluate(&truth, &found.labels).unwrap());
        assert!(after.bcubed.f > before.bcubed.f - 0.02, "{before:?} {after:?}");
    }

    #[test]
    fn a_set_of_copies_is_one_super_vertex() {
        let rows = Embeddings::from_rows([0.6, 0.8].repeat(50), 2, "test").unwrap();
        let graph = knn_graph(&rows, &KnnParams { k: 5, ..KnnParams::default() }, &()).unwrap().0;
        for found in [
            Clusterer::with(kin(0.9)).levels(true).fit(&rows).unwrap(),
            Clusterer::with(kin(0.9)).fit_graph(&rows, &graph).unwrap(),
        ] {
            assert_eq!(found.labels, [0; 50]);
            assert_eq!(found.report.notes, ["50 rows contracted to 1 super vertices"]);
        }
    }

    #[test]
    fn bounds_that_are_no_similarities_are_refused_by_name() {
        for wrong in ["0", "-0.5", "1.01", "NaN", "inf", "near"] {
            let message =
                Kin::default().parameters_mut().set("super_vertices", wrong).unwrap_err().to_string();
            assert!(message.starts_with("super_vertices: expected"), "{message}");
        }
    }

    #[test]
    fn links_lead_to_the_representative() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0, 1.0, 0.01, 0.6, 0.8], 2, "test").unwrap();
        let all = SuperVertices { representatives: vec![0, 1, 3], place: vec![0, 1, 0, 2] };
        let few =
            Links::from_parts(vec![0.1, 0.2, 0.3], 1, vec![2, 2, Links::NONE], vec![0.6, 0.8, 0.0]).unwrap();
        let links = all.links(&few, &rows);
        assert_eq!(links.confidence(), [0.1, 0.2, 0.1, 0.3]);
        assert_eq!([0, 1, 3].map(|row| links.parent(row)), [Some((3, 0.6)), Some((3, 0.8)), None]);
        let (parent, similarity) = links.parent(2).unwrap();
        assert!(parent == 0 && similarity > 0.999);
        assert_eq!(links.cut(0.7), [0, 1, 0, 1]);
    }
}
