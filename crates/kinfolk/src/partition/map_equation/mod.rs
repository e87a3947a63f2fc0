//! Modules by the map equation: the partition that gives a random walk on the graph the shortest description.
//!
//! A walk that stays long within groups of vertices is described best by names of the groups and short names within each
//! group. [`equation`] has the formula, [`flow`] the walk, [`search`] the optimisation. The Infomap program (Rosvall and
//! Bergstrom, 2008; mapequation.org) does the same with `--two-level`; this is an independent implementation.
//!
//! The result is the same on any number of threads: the order of parallel sums does not depend on the threads, and moves are
//! serial.
//!
//! Cost: O(E) memory and a few dozen passes over the edges.

mod equation;
mod flow;
mod limits;
mod moves;
mod network;
mod region;
mod search;
mod transposed;
mod weighted_graph;

pub use region::{Region, regional_modules};
pub(crate) use weighted_graph::HeavyEdges;
pub use weighted_graph::WeightedGraph;

use super::number_by_size;
use crate::graph::depth_first;
use crate::labels::{Dense, densify};
use crate::{Error, Progress, Result};
use equation::{Rates, modular_bits, plogp};
use flow::Walk;
use network::Network;
use rayon::prelude::*;
use transposed::Transposed;
use weighted_graph::Edges;

/// The directions in which a random walk follows an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// Both directions, with the sum of the weights if both ends list the edge.
    #[default]
    Undirected,
    /// One direction. With probability 0.15, and at vertices without outgoing edges, the walk jumps; jumps are not counted.
    Directed,
}

crate::word_values!(Flow: "directed or undirected", "directed" => Flow::Directed, "undirected" => Flow::Undirected);

/// Parameters of [`map_equation`].
#[derive(Debug, Clone)]
pub struct MapParams {
    /// The directions in which the walk follows edges.
    pub flow: Flow,
    /// Seed of the order in which vertices move.
    pub seed: u64,
    /// The maximum number of refinement rounds, in which parts of modules and single vertices move again; they end earlier if
    /// the gain is small. 0 returns the first partition, whose modules are too large.
    pub rounds: u64,
    /// The weight that a single edge between two vertices without other edges must exceed for them to join, if the flow is
    /// undirected: every vertex gets a loop, see `equation.rs`. None is the map equation as published, where any edge suffices.
    pub pair_weight: Option<f32>,
}

impl Default for MapParams {
    fn default() -> Self {
        // More than five are rare; the limit guarantees termination.
        Self { flow: Flow::default(), seed: 0, rounds: 100, pair_weight: None }
    }
}

/// The result of [`map_equation`].
#[derive(Debug, Clone, PartialEq)]
pub struct Modules {
    /// The module of each vertex: 0..C-1 by descending size, ties by smallest member.
    pub labels: Vec<i64>,
    /// Bits per step of the walk.
    pub codelength: f64,
    /// The weight of the loop at each vertex, 0 without [`MapParams::pair_weight`].
    pub loops: f64,
}

/// Finds modules in which a random walk stays long, by minimising the two-level map equation.
///
/// A vertex without edges is a module of its own.
///
/// ```
/// use kinfolk::stages::{MapParams, WeightedGraph, map_equation};
/// // Two triangles, 0-1-2 and 3-4-5, and a weak edge from 2 to 3.
/// let offsets = vec![0, 2, 4, 7, 9, 11, 13];
/// let targets = vec![1, 2, 0, 2, 0, 1, 3, 4, 5, 3, 5, 3, 4];
/// let weights = vec![1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// let graph = WeightedGraph::from_parts(offsets, targets, weights)?;
/// let modules = map_equation(&graph, &MapParams::default(), &())?;
/// assert_eq!(modules.labels, [0, 0, 0, 1, 1, 1]);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn map_equation(graph: &WeightedGraph, params: &MapParams, progress: &dyn Progress) -> Result<Modules> {
    modules_of(graph, params, progress)
}

/// The same for the heavy edges of a kNN graph.
pub(crate) fn modules_of_heavy(
    edges: &HeavyEdges,
    params: &MapParams,
    progress: &dyn Progress,
) -> Result<Modules> {
    modules_of(edges, params, progress)
}

fn modules_of(graph: &impl Edges, params: &MapParams, progress: &dyn Progress) -> Result<Modules> {
    let wrong = |expected, found| Err(Error::Parameter { field: "pair_weight", expected, found });
    match params.pair_weight {
        Some(weight) if !(weight >= 0.0 && weight.is_finite()) => {
            return wrong("a weight of 0 or more", weight.to_string());
        }
        Some(weight) if params.flow == Flow::Directed => {
            return wrong("none with directed flow", weight.to_string());
        }
        _ => {}
    }
    progress.check()?;
    progress.begin("flow", 1);
    let (mut walk, order, network) = {
        let arriving = Transposed::of(graph);
        progress.check()?;
        let walk = Walk::of(graph, &arriving, params.flow);
        progress.check()?;
        let order = by_locality(graph, &walk);
        let network = Network::of(graph, &arriving, &walk, &order);
        (walk, order, network)
    };
    progress.check()?;
    progress.advance(1);
    progress.begin("modules", 1);
    // Undirected, the flow of a weight is the same at all vertices.
    let scale = walk.factors.first().copied().unwrap_or(0.0);
    let pair_flow = params.pair_weight.map(|weight| f64::from(weight) * scale);
    let found = search::search(network, pair_flow, params.seed, params.rounds, progress)?;
    walk.rates.iter_mut().for_each(|rates| rates.visit += found.loops);
    let mut modules = vec![0; graph.len()];
    order.iter().zip(found.partition.modules).for_each(|(&v, module)| modules[v as usize] = module);
    let labels = number_by_size(&modules);
    progress.advance(1);
    // With loops the walk takes more steps.
    let steps = 1.0 + found.loops * graph.len() as f64;
    let codelength = bits(graph, &walk, params.flow, &densify(&labels)) / steps;
    let loops = if scale > 0.0 { found.loops / scale } else { 0.0 };
    Ok(Modules { labels, codelength, loops })
}

/// The codelength of a partition: bits per step of the walk. Labels are arbitrary integers, one for each vertex;
/// only their equality matters.
///
/// ```
/// use kinfolk::stages::{Flow, WeightedGraph, codelength};
/// // Two vertices and an edge between them: the walk alternates, and naming one of two takes a bit.
/// let graph = WeightedGraph::from_parts(vec![0, 1, 1], vec![1], vec![0.5])?;
/// assert_eq!(codelength(&graph, Flow::Undirected, &[0, 0])?, 1.0);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn codelength(graph: &WeightedGraph, flow: Flow, labels: &[i64]) -> Result<f64> {
    if labels.len() != graph.len() {
        let (place, what) = ("labels".to_owned(), "labels (one per vertex)".to_owned());
        return Err(Error::Length { place, what, expected: graph.len(), found: labels.len() });
    }
    let walk = Walk::of(graph, &Transposed::of(graph), flow);
    Ok(bits(graph, &walk, flow, &densify(labels)))
}

/// An order of the vertices in which those that share neighbours are near each other: the parent of a vertex is
/// the neighbour, of those visited more often, to which its edge is heaviest.
fn by_locality(graph: &impl Edges, walk: &Walk) -> Vec<u32> {
    let above = |j: usize, i: usize| {
        let (at_j, at_i) = (walk.rates[j].visit, walk.rates[i].visit);
        at_j > at_i || (at_j == at_i && j < i)
    };
    let parent = |i: usize| {
        let heavier = |best: Option<(usize, f32)>, edge: (usize, f32)| match best {
            Some(best) if best.1 >= edge.1 => Some(best),
            _ => Some(edge),
        };
        let heaviest = graph.leaving(i).filter(|&(j, _)| above(j, i)).fold(None, heavier);
        heaviest.map_or(graph.len(), |(j, _)| j)
    };
    let parents: Vec<usize> = (0..graph.len()).into_par_iter().map(parent).collect();
    depth_first(&parents)
}

/// The map equation by its definition.
fn bits(graph: &impl Edges, walk: &Walk, flow: Flow, labels: &Dense) -> f64 {
    let mut modules = vec![Rates::default(); labels.sizes.len()];
    for (u, &from) in labels.labels.iter().enumerate() {
        modules[from as usize].visit += walk.rates[u].visit;
        for (v, weight) in graph.leaving(u) {
            let to = labels.labels[v];
            if from != to {
                let flow_uv = walk.factors[u] * weight as f64;
                match flow {
                    Flow::Directed => {
                        modules[from as usize].exit += flow_uv;
                        modules[to as usize].enter += flow_uv;
                    }
                    Flow::Undirected => {
                        for module in [from, to] {
                            modules[module as usize].exit += flow_uv / 2.0;
                            modules[module as usize].enter += flow_uv / 2.0;
                        }
                    }
                }
            }
        }
    }
    let vertices: f64 = walk.rates.iter().map(|rates| plogp(rates.visit)).sum();
    modular_bits(&modules) - vertices
}

#[cfg(test)]
mod tests;
