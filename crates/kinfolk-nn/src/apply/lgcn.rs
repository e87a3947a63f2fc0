//! L-GCN: clusters from the probabilities of links (Wang et al., "Linkage based face clustering via graph convolution
//! network", CVPR 2019).
//!
//! For each row as pivot, a network takes the graph around it (`pivots.rs`) with rows X_j = f_j - f_p, and estimates for each
//! neighbour the probability that it has the identity of the pivot. If each end of an edge is a neighbour of the other, the
//! mean of both estimates is used. Clusters are the connected components along edges of at least `th`, split at higher thresholds
//! while they are too large ([`kinfolk::stages::limited_components`]). This is the paper's pseudo-label propagation, which starts with
//! all edges and depends on the size alone; `th` is an addition, chosen in training.
//!
//! Cost: with V vertices in the graph of a pivot, about 150 to 480 with the default shape, 4 N V (512 x 512 + 512 x 256 + 256
//! x 256) operations with the published widths. Memory: 4 N k1 bytes for the probabilities, 12 for each edge, 8 N 512 for the
//! first layer.

use super::pivots::{PivotScratch, PivotShape, push_pivot};
use super::subgraphs::{Buffers, Prepared, SubGraphs, probability, side_by_side};
use crate::GraphNetwork;
use kinfolk::stages::{SizeLimit, limited_components, number_by_size};
use kinfolk::{Embeddings, Error, KnnGraph, Progress, Result};
use rayon::prelude::*;

/// Pivots whose graphs are stacked.
const PIVOTS: usize = 4;

/// Parameters of [`lgcn`].
#[derive(Debug, Clone, PartialEq)]
pub struct LgcnParams {
    /// The shape of the graph around a row, as in training.
    pub shape: PivotShape,
    /// Links of less probability are left out. Default 0.5.
    pub th: f32,
    /// The maximum size of a cluster.
    pub limit: SizeLimit,
}

impl Default for LgcnParams {
    fn default() -> Self {
        LgcnParams { shape: PivotShape::default(), th: 0.5, limit: SizeLimit::default() }
    }
}

impl LgcnParams {
    /// Refuses values out of range.
    pub fn check(&self) -> Result<()> {
        self.shape.check()?;
        if !(0.0..=1.0).contains(&self.th) {
            let expected = "a probability from 0 to 1";
            return Err(Error::Parameter { field: "th", expected, found: self.th.to_string() });
        }
        self.limit.check()
    }
}

/// The probability of every link from a row to one of its nearest neighbours.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkProbabilities {
    /// The number of neighbours of each row.
    pub k1: usize,
    /// Row after row, nearest first.
    pub values: Vec<f32>,
}

/// Clusters embeddings by L-GCN. Labels are 0.. by descending size.
///
/// Use it to compare links with confidences; `gcn-v` is about as good and tens of times faster.
pub fn lgcn(
    embeddings: &Embeddings,
    graph: &KnnGraph,
    network: &GraphNetwork,
    params: &LgcnParams,
    progress: &dyn Progress,
) -> Result<Vec<i64>> {
    params.check()?;
    let links = link_probabilities(network, embeddings, graph, &params.shape, progress)?;
    propagate(graph, &links, params.th, &params.limit, progress)
}

/// Applies the network to every row and its nearest neighbours.
pub fn link_probabilities(
    network: &GraphNetwork,
    embeddings: &Embeddings,
    graph: &KnnGraph,
    shape: &PivotShape,
    progress: &dyn Progress,
) -> Result<LinkProbabilities> {
    shape.check()?;
    let n = embeddings.len();
    let length = |what: &str, expected, found| match expected == found {
        true => Ok(()),
        false => Err(Error::Length { place: "L-GCN".to_owned(), what: what.to_owned(), expected, found }),
    };
    length("columns of features", network.inputs(), embeddings.dim())?;
    length("vertices of the graph (one per embedding)", n, graph.len())?;
    progress.begin("links", n as u64);
    let weights = side_by_side(network);
    let prepared = Prepared::new(network, &weights, embeddings.dim(), n, |i| embeddings.row(i));
    let k1 = shape.k1.min(graph.k());
    let mut values = vec![0.0; n * k1];
    values.par_chunks_mut((PIVOTS * k1).max(1)).enumerate().for_each_init(
        || (PivotScratch::new(n), SubGraphs::default(), Buffers::default()),
        |(scratch, graphs, buffers), (at, values)| {
            if progress.cancelled() {
                return;
            }
            let pivots = at * PIVOTS..at * PIVOTS + values.len() / k1;
            graphs.clear();
            let mut wanted: Vec<u32> = Vec::with_capacity(values.len());
            for p in pivots.clone() {
                wanted.extend(push_pivot(graph, shape, p as u32, scratch, graphs));
            }
            prepared.embed(graphs, Some(&wanted), buffers);
            let mut outputs = Vec::new();
            prepared.outputs(buffers, &mut outputs);
            let outputs = outputs.chunks_exact(network.output.outputs);
            values.iter_mut().zip(outputs).for_each(|(value, outputs)| *value = probability(outputs));
            progress.advance(pivots.len() as u64);
        },
    );
    progress.check()?;
    match values.iter().position(|value| !value.is_finite()) {
        Some(at) => {
            let (row, found) = (at / k1, values[at].into());
            Err(Error::NotFinite { place: "links by L-GCN".to_owned(), row, column: at % k1, found })
        }
        None => Ok(LinkProbabilities { k1, values }),
    }
}

/// Clusters along links of at least `th`, of limited size.
pub fn propagate(
    graph: &KnnGraph,
    links: &LinkProbabilities,
    th: f32,
    limit: &SizeLimit,
    progress: &dyn Progress,
) -> Result<Vec<i64>> {
    let edges = pooled(graph, links, th);
    Ok(number_by_size(&limited_components(graph.len(), edges, limit, progress)?))
}

/// Every edge once, with the mean of both estimates if both ends list it; only those of at least `th`.
fn pooled(graph: &KnnGraph, links: &LinkProbabilities, th: f32) -> Vec<(u32, u32, f32)> {
    let k1 = links.k1;
    let listed = |i: u32| &graph.neighbours(i as usize).0[..k1];
    (0..graph.len() as u32)
        .into_par_iter()
        .flat_map_iter(|i| {
            let answers = &links.values[i as usize * k1..][..k1];
            listed(i).iter().zip(answers).filter_map(move |(&j, &answer)| {
                let back = listed(j).iter().position(|&back| back == i);
                match back {
                    Some(at) if i < j => Some((i, j, (answer + links.values[j as usize * k1 + at]) / 2.0)),
                    Some(_) => None,
                    None => Some((i, j, answer)),
                }
            })
        })
        .filter(|edge| edge.2 >= th)
        .collect()
}
