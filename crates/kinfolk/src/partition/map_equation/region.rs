//! Modules of a part of a graph, while all others stay as they are.
//!
//! The codelength depends on the modules outside only through how often any of them is entered (`equation`), and on the edges
//! that lead there only through the rates of the vertices inside. So the moves of a region are those of the whole graph, and a
//! move improves the codelength of the whole by exactly what it improves that of the region.
//!
//! Cost: a few passes over the edges of the region.

use super::equation::Rates;
use super::limits::{Limits, Surroundings};
use super::network::Network;
use super::search::search_region;
use super::transposed::Transposed;
use super::{Flow, MapParams, WeightedGraph};
use crate::{Error, Progress, Result};

/// A part of a graph whose modules may change. Weights are those of edges in both directions.
#[derive(Debug, Clone, Copy)]
pub struct Region<'a> {
    /// The edges between its vertices.
    pub graph: &'a WeightedGraph,
    /// The weight of all edges of each vertex, also of those to other parts.
    pub strengths: &'a [f64],
    /// The weight of all edges of the whole graph.
    pub total: f64,
    /// The weight of the edges that lead out of each module elsewhere, summed over these modules.
    pub outside: f64,
    /// The module of each vertex: 0, 1, 2 ... without gaps.
    pub modules: &'a [u32],
    /// Pairs of vertices that may not come into one module. They are in different ones now.
    pub apart: &'a [[u32; 2]],
    /// The colours of vertices: those of different colours may not come into one module. They are in different ones now.
    pub colours: &'a [Option<u32>],
    /// The unit of each vertex, if there are any: 0, 1, 2 ... without gaps. Vertices of one unit, which are in one module now, only
    /// move together.
    pub units: Option<&'a [u32]>,
}

/// The modules of a region, improved by the moves of [`map_equation`](super::map_equation), numbered 0, 1, 2 ... without gaps.
///
/// ```
/// use kinfolk::stages::{MapParams, Region, WeightedGraph, regional_modules};
/// // Two triangles, 0-1-2 and 3-4-5, and a weak edge between them: all there is.
/// let offsets = vec![0, 2, 4, 7, 9, 11, 13];
/// let targets = vec![1, 2, 0, 2, 0, 1, 3, 4, 5, 3, 5, 3, 4];
/// let weights = vec![1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// let graph = WeightedGraph::from_parts(offsets, targets, weights)?;
/// let region = Region {
///     graph: &graph,
///     strengths: &[4.0, 4.0, 4.1, 4.1, 4.0, 4.0],
///     total: 12.1,
///     outside: 0.0,
///     modules: &[0, 1, 2, 3, 4, 5],
///     apart: &[[0, 1]],
///     colours: &[None; 6],
///     units: None,
/// };
/// let params = MapParams { pair_weight: Some(0.1), ..MapParams::default() };
/// let modules = regional_modules(&region, &params, &())?;
/// assert_eq!(modules[3..], [modules[3]; 3]);
/// assert_ne!(modules[0], modules[1]);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub fn regional_modules(
    region: &Region<'_>,
    params: &MapParams,
    progress: &dyn Progress,
) -> Result<Vec<u32>> {
    let n = region.graph.len();
    for (place, found) in [
        ("strengths", region.strengths.len()),
        ("modules", region.modules.len()),
        ("colours", region.colours.len()),
        ("units", region.units.map_or(n, <[u32]>::len)),
    ] {
        if found != n {
            let (place, what) = (place.to_owned(), "values (one per vertex)".to_owned());
            return Err(Error::Length { place, what, expected: n, found });
        }
    }
    let Some(pair) = params.pair_weight.filter(|_| params.flow == Flow::Undirected) else {
        let expected = "undirected flow with a weight that a pair must exceed";
        return Err(Error::Parameter { field: "pair_weight", expected, found: format!("{:?}", params.flow) });
    };
    let scale = if region.total > 0.0 { 1.0 / region.total } else { 0.0 };
    let rates = region.strengths.iter().map(|strength| {
        let visit = strength * scale / 2.0;
        Rates { visit, enter: visit, exit: visit }
    });
    let network = Network::of_region(region.graph, &Transposed::of(region.graph), rates.collect(), scale);
    let limited = !region.apart.is_empty() || region.colours.iter().any(Option::is_some);
    let limits = limited.then(|| Limits::new(region.apart, region.colours));
    let outside = region.outside * scale / 2.0;
    let pair_flow = f64::from(pair) * scale;
    let modules = region.modules.to_vec();
    let around = Surroundings { outside, limits: limits.as_ref() };
    search_region(network, modules, region.units, pair_flow, &around, params.seed, progress)
}
