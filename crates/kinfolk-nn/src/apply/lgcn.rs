//! L-GCN: clusters from the probabilities of links (Wang et al., "Linkage based face clustering via graph convolution
//! network", CVPR 2019).
//!
//! For each row as pivot a network sees the graph around it (`pivots.rs`), rows X_j = f_j - f_p, and says of each neighbour
//! how probable it is that it has the pivot's identity. An edge that both ends were asked about has the mean of both answers. What
//! hangs together along edges of at least `th` is a cluster, parted at higher thresholds while it is too large
//! ([`kinfolk::limited_components`]): the paper's pseudo-label propagation, which begins with all edges and so leaves it to the
//! size alone where to stop; `th` is ours, and chosen when the network is trained.
//!
//! Cost: with V vertices in the graph of a pivot, some 150 to 480 with the usual shape, 4 N V (512 x 512 + 512 x 256 + 256 x 256)
//! operations with the published widths. Memory: 4 N k1 bytes for the probabilities, 12 for each edge, 8 N 512 for the first layer.

use super::pivots::{PivotScratch, PivotShape, push_pivot};
use super::subgraphs::{Buffers, Prepared, SubGraphs, probability, side_by_side};
use crate::GraphNetwork;
use kinfolk::{Embeddings, Error, KnnGraph, Progress, Result, SizeLimit, limited_components, number_by_size};
use rayon::prelude::*;

/// Pivots whose graphs are stacked.
const PIVOTS: usize = 4;

/// Parameters of [`lgcn`].
#[derive(Debug, Clone, PartialEq)]
pub struct LgcnParams {
    /// What each row sees of the graph; as the network was trained with.
    pub shape: PivotShape,
    /// Links of less probability are left out. Default 0.5.
    pub th: f32,
    /// How large a cluster may be.
    pub limit: SizeLimit,
}

impl Default for LgcnParams {
    fn default() -> Self {
        LgcnParams { shape: PivotShape::default(), th: 0.5, limit: SizeLimit::default() }
    }
}

impl LgcnParams {
    /// Refuses what cannot be.
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
    /// Neighbours of each row that were asked about.
    pub k1: usize,
    /// Row after row, nearest first.
    pub values: Vec<f32>,
}

/// Clusters embeddings by L-GCN. Labels are 0.. by descending size.
///
/// Use it to see what links alone are worth beside confidences; `gcn-v` is about as good and tens of times faster.
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

/// Asks the network about every row and its nearest neighbours.
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

/// Every edge once, with the mean of what its ends say where both list it; only those of at least `th`.
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
