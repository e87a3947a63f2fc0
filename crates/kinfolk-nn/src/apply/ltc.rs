//! LTC: clusters chosen from overlapping proposals (Yang et al., "Learning to cluster faces on an affinity graph", CVPR 2019).
//!
//! Proposals are generated at several thresholds (`proposals.rs`). GCN-D estimates the IoU of each proposal with its most
//! frequent identity. For proposals of medium IoU, GCN-S finds the outliers, from a few of the rows as seeds; the largest
//! remaining set becomes a proposal too. Then rows are assigned to proposals, the best first (de-overlapping by non-maximum
//! suppression). Rows without a proposal are singletons.
//!
//! Both networks use the same graph convolutions as the others; GCN-D takes the maximum over the rows before its head. They
//! differ from the published ones: rows are relative to the mean of the proposal (GCN-D) or to the seed (GCN-S), because the
//! position of an identity does not generalise. GCN-D has one more column, the share of a row's affinities that stay inside,
//! which shows if a part of an identity is missing. Outliers are not removed for good, because GCN-D also scores the rest.
//!
//! Cost: with R = the sum of all proposals' sizes, up to N for each setting and level, 4 R 512 x 64 operations with the
//! published widths, and the proposals. Memory: R, and 8 N 512 bytes for the first layer.

use super::proposals::{ProposalParams, Proposals, proposals};
use super::subgraphs::{BATCH, Buffers, Centre, NONE, Prepared, SubGraphs, probability, side_by_side};
use crate::GraphNetwork;
use kinfolk::stages::{Adjacency, number_by_size};
use kinfolk::{Embeddings, Error, KnnGraph, Progress, Result};
use rayon::prelude::*;

/// Rows of a proposal that are seeds, one after the other.
const SEEDS: usize = 4;

/// Parameters of [`ltc`].
#[derive(Debug, Clone, PartialEq)]
pub struct LtcParams {
    /// How proposals are generated, as in training.
    pub proposals: ProposalParams,
    /// Proposals of less estimated IoU are dropped. Default 0.
    pub least: f32,
    /// GCN-S is applied to proposals whose estimated IoU is at least the first and at most the second; `None` disables it.
    /// Default 0.3 and 0.7.
    pub segment: Option<[f32; 2]>,
}

impl Default for LtcParams {
    fn default() -> Self {
        LtcParams { proposals: ProposalParams::default(), least: 0.0, segment: Some([0.3, 0.7]) }
    }
}

impl LtcParams {
    /// Refuses values out of range.
    pub fn check(&self) -> Result<()> {
        self.proposals.check()?;
        let wrong = |name, expected, found: String| Err(Error::Parameter { field: name, expected, found });
        if !(0.0..=1.0).contains(&self.least) {
            return wrong("least", "an IoU from 0 to 1", self.least.to_string());
        }
        match self.segment {
            Some([from, to]) if !(0.0 <= from && from <= to && to <= 1.0) => {
                wrong("segment", "IoUs from 0 to 1, the smaller first", format!("{from} to {to}"))
            }
            _ => Ok(()),
        }
    }
}

/// Clusters embeddings by LTC. Labels are 0.. by descending size.
///
/// Use it to compare the choice of whole clusters with the choice of links.
pub fn ltc(
    embeddings: &Embeddings,
    graph: &KnnGraph,
    [gcn_d, gcn_s]: [&GraphNetwork; 2],
    params: &LtcParams,
    progress: &dyn Progress,
) -> Result<Vec<i64>> {
    params.check()?;
    let adjacency = Adjacency::from_knn(graph, 0.0)?;
    let mut pool = proposals(embeddings, graph, &params.proposals, progress)?;
    let mut scores = proposal_scores(gcn_d, embeddings, &adjacency, &pool, progress)?;
    if let Some(range) = params.segment {
        let smallest = params.proposals.min_size;
        let left = segmented(gcn_s, embeddings, &adjacency, &pool, &scores, range, smallest, progress)?;
        scores.extend(proposal_scores(gcn_d, embeddings, &adjacency, &left, progress)?);
        left.iter().for_each(|members| pool.push(members));
    }
    Ok(de_overlapped(embeddings.len(), &pool, &scores, params.least))
}

fn check(name: &str, network: &GraphNetwork, embeddings: &Embeddings, adjacency: &Adjacency) -> Result<()> {
    let length = |what: &str, expected, found| match expected == found {
        true => Ok(()),
        false => Err(Error::Length { place: name.to_owned(), what: what.to_owned(), expected, found }),
    };
    length("columns of features, and one more", network.inputs(), embeddings.dim() + 1)?;
    length("vertices of the adjacency (one per embedding)", embeddings.len(), adjacency.len())
}

/// Buffers that a thread reuses.
pub(crate) struct ProposalScratch {
    /// For each vertex its row in the stack if it is in the current proposal, or [`NONE`].
    slots: Vec<u32>,
}

impl ProposalScratch {
    pub(crate) fn new(n: usize) -> Self {
        ProposalScratch { slots: vec![NONE; n] }
    }
}

/// Appends the graph of a proposal: A~ between its rows, divided by the sums of what is left. Seen from a seed, the last
/// column of X marks it; seen from the mean, it is the share of A~ that is left.
pub(crate) fn push_proposal(
    adjacency: &Adjacency,
    members: &[u32],
    centre: Centre,
    scratch: &mut ProposalScratch,
    graphs: &mut SubGraphs,
) {
    let slots = &mut scratch.slots;
    for (slot, &i) in (graphs.rows() as u32..).zip(members) {
        slots[i as usize] = slot;
    }
    graphs.vertices.extend_from_slice(members);
    for &i in members {
        let (columns, values) = adjacency.row(i as usize);
        let mut inside = 0.0;
        for (&j, &value) in columns.iter().zip(values).filter(|(j, _)| slots[**j as usize] != NONE) {
            graphs.columns.push(slots[j as usize]);
            graphs.values.push(value);
            inside += value;
        }
        graphs.extra.push(match centre {
            Centre::Vertex(seed) => f32::from(i == seed),
            Centre::Mean => inside,
        });
        // Never without entries: a vertex is its own neighbour.
        graphs.end_row();
    }
    graphs.end_graph(centre);
    members.iter().for_each(|&i| slots[i as usize] = NONE);
}

/// The largest of each column over the rows of each graph; `rows` have `width` columns.
pub(crate) fn pool(
    graphs: impl Iterator<Item = std::ops::Range<usize>>,
    rows: &[f32],
    width: usize,
) -> Vec<f32> {
    let mut pooled = Vec::new();
    for graph in graphs {
        let start = pooled.len();
        pooled.extend_from_slice(&rows[graph.start * width..][..width]);
        for row in rows[graph.start * width..graph.end * width].chunks_exact(width).skip(1) {
            pooled[start..].iter_mut().zip(row).for_each(|(most, &x)| *most = x.max(*most));
        }
    }
    pooled
}

/// Consecutive items whose sizes together make about [`BATCH`] rows.
fn batches(sizes: impl Iterator<Item = usize>) -> Vec<std::ops::Range<usize>> {
    let (mut batches, mut first, mut rows, mut end) = (Vec::new(), 0, 0, 0);
    for size in sizes {
        end += 1;
        rows += size;
        if rows >= BATCH {
            batches.push(first..end);
            (first, rows) = (end, 0);
        }
    }
    batches.push(first..end);
    batches
}

/// The IoU of each proposal with the identity that most of its rows have, by GCN-D.
pub fn proposal_scores(
    network: &GraphNetwork,
    embeddings: &Embeddings,
    adjacency: &Adjacency,
    proposals: &Proposals,
    progress: &dyn Progress,
) -> Result<Vec<f32>> {
    check("GCN-D", network, embeddings, adjacency)?;
    progress.begin("detect", proposals.len() as u64);
    let weights = side_by_side(network);
    let (n, dim) = (embeddings.len(), embeddings.dim());
    let prepared = Prepared::new(network, &weights, dim, n, |i| embeddings.row(i));
    let scores: Vec<Vec<f32>> = batches(proposals.iter().map(<[u32]>::len))
        .into_par_iter()
        .map_init(
            || (ProposalScratch::new(n), SubGraphs::default(), Buffers::default()),
            |(scratch, graphs, buffers), batch| {
                if progress.cancelled() {
                    return Vec::new();
                }
                graphs.clear();
                for at in batch.clone() {
                    push_proposal(adjacency, proposals.members(at), Centre::Mean, scratch, graphs);
                }
                prepared.embed(graphs, None, buffers);
                buffers.x = pool(graphs.graphs(), &buffers.x, network.width());
                let mut outputs = Vec::new();
                prepared.outputs(buffers, &mut outputs);
                progress.advance(batch.len() as u64);
                outputs.chunks_exact(network.output.outputs).map(probability).collect()
            },
        )
        .collect();
    progress.check()?;
    let scores = scores.concat();
    match scores.iter().position(|score| !score.is_finite()) {
        Some(row) => {
            let (place, found) = ("proposals by GCN-D".to_owned(), scores[row].into());
            Err(Error::NotFinite { place, row, column: 0, found })
        }
        None => Ok(scores),
    }
}

/// The proposals whose scores are in `range`, without the outliers that GCN-S finds: of the results for several seeds, the
/// largest one that is smaller than the proposal and has at least `smallest` rows.
#[expect(clippy::too_many_arguments, reason = "inputs and parameters of a stage")]
pub(crate) fn segmented(
    network: &GraphNetwork,
    embeddings: &Embeddings,
    adjacency: &Adjacency,
    proposals: &Proposals,
    scores: &[f32],
    range: [f32; 2],
    smallest: usize,
    progress: &dyn Progress,
) -> Result<Proposals> {
    check("GCN-S", network, embeddings, adjacency)?;
    let selected: Vec<usize> =
        (0..proposals.len()).filter(|&at| (range[0]..=range[1]).contains(&scores[at])).collect();
    progress.begin("segment", selected.len() as u64);
    if selected.is_empty() {
        return Ok(Proposals::default());
    }
    let weights = side_by_side(network);
    let (n, dim) = (embeddings.len(), embeddings.dim());
    let prepared = Prepared::new(network, &weights, dim, n, |i| embeddings.row(i));
    let trimmed: Vec<Vec<Vec<u32>>> = batches(selected.iter().map(|&at| SEEDS * proposals.members(at).len()))
        .into_par_iter()
        .map_init(
            || (ProposalScratch::new(n), SubGraphs::default(), Buffers::default()),
            |(scratch, graphs, buffers), batch| {
                if progress.cancelled() {
                    return Vec::new();
                }
                graphs.clear();
                for &at in &selected[batch.clone()] {
                    let members = proposals.members(at);
                    for seed in seeds(members) {
                        push_proposal(adjacency, members, Centre::Vertex(seed), scratch, graphs);
                    }
                }
                prepared.embed(graphs, None, buffers);
                let mut outputs = Vec::new();
                prepared.outputs(buffers, &mut outputs);
                let mut answers = outputs.chunks_exact(network.output.outputs).map(probability);
                let mut trimmed = Vec::with_capacity(batch.len());
                for &at in &selected[batch.clone()] {
                    let members = proposals.members(at);
                    let mut most: Vec<u32> = Vec::new();
                    for _ in seeds(members) {
                        let left = members.iter().zip(&mut answers).filter(|(_, answer)| *answer > 0.5);
                        let left: Vec<u32> = left.map(|(&i, _)| i).collect();
                        if left.len() > most.len() {
                            most = left;
                        }
                    }
                    trimmed.push(most);
                }
                progress.advance(batch.len() as u64);
                trimmed
            },
        )
        .collect();
    progress.check()?;
    let mut left = Proposals::default();
    for (members, &at) in trimmed.iter().flatten().zip(&selected) {
        if members.len() >= smallest && members.len() < proposals.members(at).len() {
            left.push(members);
        }
    }
    Ok(left)
}

/// Seeds of a proposal. The published code takes random rows; the rows have no order, so evenly spaced ones are equivalent.
fn seeds(members: &[u32]) -> impl Iterator<Item = u32> {
    let count = SEEDS.min(members.len());
    (0..count).map(move |at| members[(2 * at + 1) * members.len() / (2 * count)])
}

/// Assigns rows to proposals, the best first; ties go to the larger, then to the earlier. Rows without a proposal are singletons.
pub fn de_overlapped(n: usize, proposals: &Proposals, scores: &[f32], least: f32) -> Vec<i64> {
    let mut order: Vec<usize> = (0..proposals.len()).filter(|&at| scores[at] >= least).collect();
    let size = |at: usize| proposals.members(at).len();
    order.par_sort_unstable_by(|&a, &b| {
        scores[b].total_cmp(&scores[a]).then(size(b).cmp(&size(a))).then(a.cmp(&b))
    });
    // Names of proposals come after those of rows.
    let mut names: Vec<i64> = (0..n as i64).collect();
    for at in order {
        for &i in proposals.members(at) {
            if names[i as usize] < n as i64 {
                names[i as usize] = (n + at) as i64;
            }
        }
    }
    number_by_size(&names)
}
