//! What the search works on: vertices with rates, and the flow between any two of them.
//!
//! The codelength depends on the flow between two vertices only through its sum over both directions: what a
//! module is entered and left more or less when a vertex joins it is the same number. So directed or not,
//! the network is symmetric, one entry at each end. Modules become the vertices of a smaller network
//! ("coarsening") on which whole modules move as vertices do.
//!
//! Cost: O(E) time, on all threads; 8 bytes for each entry, of which a kNN graph, where most edges are mutual, has
//! about 1.3 times as many as edges, at most 2; while one is made twice that. Flows are f32, all sums are f64: the flow
//! between two vertices need not be known better than the weights it was made from.

use super::WeightedGraph;
use super::equation::Rates;
use super::flow::Walk;
use super::transposed::Transposed;
use crate::graph::accumulate;
use rayon::prelude::*;

/// One end of a connection: the other end and the flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub target: u32,
    pub flow: f32,
}

pub(super) struct Network {
    /// Of each vertex as a module of its own.
    pub rates: Vec<Rates>,
    offsets: Vec<usize>,
    links: Vec<Link>,
}

/// Vertices whose links one task collects.
const PER_TASK: usize = 1024;

impl Network {
    pub fn of(graph: &WeightedGraph, arriving: &Transposed, walk: &Walk) -> Self {
        let flow = |from: usize, weight: f32| walk.factors[from] * weight as f64;
        Self::build(walk.rates.clone(), graph.len(), |u, row| {
            graph.leaving(u).for_each(|(v, weight)| row.add(v, flow(u, weight)));
            let arriving = arriving.row(u).iter().map(|link| (link.target as usize, link.flow));
            arriving.for_each(|(v, weight)| row.add(v, flow(v, weight)));
        })
    }

    /// The network of the modules of `self`: `modules[v]` is the module of vertex v, `rates` has one entry for each
    /// module.
    pub fn coarsen(&self, modules: &[u32], rates: Vec<Rates>) -> Self {
        let mut ends = vec![0; rates.len() + 1];
        modules.iter().for_each(|&m| ends[m as usize + 1] += 1);
        accumulate(&mut ends);
        let mut next = ends.clone();
        let mut members = vec![0u32; modules.len()];
        for (v, &m) in modules.iter().enumerate() {
            members[next[m as usize]] = v as u32;
            next[m as usize] += 1;
        }
        let count = rates.len();
        Self::build(rates, count, |m, row| {
            for &v in &members[ends[m]..ends[m + 1]] {
                for link in self.links(v as usize) {
                    let other = modules[link.target as usize] as usize;
                    if other != m {
                        row.add(other, link.flow as f64);
                    }
                }
            }
        })
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.rates.len()
    }

    pub fn links(&self, v: usize) -> &[Link] {
        &self.links[self.offsets[v]..self.offsets[v + 1]]
    }

    /// Collects the links of each of `n` vertices; `collect` adds the flow to any vertex in any number of parts.
    fn build(rates: Vec<Rates>, n: usize, collect: impl Fn(usize, &mut Row) + Sync) -> Self {
        let tasks: Vec<(Vec<usize>, Vec<Link>)> = (0..n.div_ceil(PER_TASK))
            .into_par_iter()
            .map_init(
                || Row::new(n),
                |row, task| {
                    let (mut lengths, mut links) = (Vec::new(), Vec::new());
                    for v in task * PER_TASK..n.min((task + 1) * PER_TASK) {
                        collect(v, row);
                        let before = links.len();
                        row.drain_into(&mut links);
                        lengths.push(links.len() - before);
                    }
                    (lengths, links)
                },
            )
            .collect();
        let mut offsets = Vec::with_capacity(n + 1);
        offsets.push(0);
        let mut links = Vec::with_capacity(tasks.iter().map(|task| task.1.len()).sum());
        for (lengths, part) in tasks {
            offsets.extend(lengths);
            links.extend(part);
        }
        accumulate(&mut offsets);
        Self { rates, offsets, links }
    }
}

/// Flow to other vertices, or modules, summed in a table that is zero where nothing was added.
pub(super) struct Row {
    flows: Vec<f64>,
    touched: Vec<u32>,
}

impl Row {
    /// A table for `n` vertices.
    pub fn new(n: usize) -> Self {
        Self { flows: vec![0.0; n], touched: Vec::new() }
    }

    pub fn add(&mut self, vertex: usize, flow: f64) {
        let sum = &mut self.flows[vertex];
        // A flow that is lost in rounding must not be touched again and again.
        if *sum == 0.0 && flow > 0.0 {
            self.touched.push(vertex as u32);
        }
        *sum += flow;
    }

    pub fn flow(&self, vertex: usize) -> f64 {
        self.flows[vertex]
    }

    /// What was added to, in the order of the first addition.
    pub fn touched(&self) -> &[u32] {
        &self.touched
    }

    pub fn clear(&mut self) {
        self.touched.drain(..).for_each(|vertex| self.flows[vertex as usize] = 0.0);
    }

    /// Appends what was added as links, and forgets it. Flow that f32 cannot tell from nothing is left out.
    fn drain_into(&mut self, links: &mut Vec<Link>) {
        for target in self.touched.drain(..) {
            let flow = std::mem::take(&mut self.flows[target as usize]) as f32;
            if flow > 0.0 {
                links.push(Link { target, flow });
            }
        }
    }
}
