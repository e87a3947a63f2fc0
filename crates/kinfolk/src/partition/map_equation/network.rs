//! The network of the search: vertices with rates, and the flow between them.
//!
//! The codelength depends on the flow between two vertices only through its sum over both directions: if a vertex joins a
//! module, the rates of entering and leaving it change by the same number. So the network is symmetric, with one entry at each
//! end, for directed graphs too. Modules become the vertices of a smaller network
//! ("coarsening") on which whole modules move as vertices do.
//!
//! Cost: O(E) time, on all threads; 8 bytes for each entry, of which a kNN graph, where most edges are mutual, has
//! about 1.3 times as many as edges, at most 2. Flows are f32, all sums are f64: the flow between two vertices need not be
//! known better than the weights it was made from.

use super::equation::Rates;
use super::flow::Walk;
use super::transposed::Transposed;
use super::weighted_graph::Edges;
use crate::graph::{accumulate, split_rows};
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

/// One end of a connection: the other end and the flow.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
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
    /// Vertex `order[i]` of the graph is vertex i of the network.
    pub fn of(graph: &impl Edges, arriving: &Transposed, walk: &Walk, order: &[u32]) -> Self {
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(i, &u)| place[u as usize] = i);
        let flow = |from: usize, weight: f32| walk.factors[from] * weight as f64;
        let rates = order.iter().map(|&u| walk.rates[u as usize]).collect();
        let most = |i: usize| {
            let u = order[i] as usize;
            graph.leaving(u).count() + arriving.row(u).len()
        };
        Self::build(rates, most, |i, row| {
            let u = order[i] as usize;
            graph.leaving(u).for_each(|(v, weight)| row.add(place[v], flow(u, weight)));
            let arriving = arriving.row(u).iter().map(|link| (link.target as usize, link.flow));
            arriving.for_each(|(v, weight)| row.add(place[v], flow(v, weight)));
        })
    }

    /// The network of a part of a graph: `rates` are those of its vertices in the whole graph, and an edge of weight w carries the
    /// flow w `scale`.
    pub fn of_region(graph: &impl Edges, arriving: &Transposed, rates: Vec<Rates>, scale: f64) -> Self {
        let most = |u: usize| graph.leaving(u).count() + arriving.row(u).len();
        Self::build(rates, most, |u, row| {
            graph.leaving(u).for_each(|(v, weight)| row.add(v, scale * f64::from(weight)));
            arriving
                .row(u)
                .iter()
                .for_each(|link| row.add(link.target as usize, scale * f64::from(link.flow)));
        })
    }

    /// The network of the modules of `self`: `rates` has one entry for each.
    pub fn coarsen(&self, members: &Members, modules: &[u32], rates: Vec<Rates>) -> Self {
        let most = |m: usize| members.of(m).iter().map(|&v| self.links(v as usize).len()).sum();
        Self::build(rates, most, |m, row| {
            for &v in members.of(m) {
                for link in self.links(v as usize) {
                    let other = modules[link.target as usize] as usize;
                    if other != m {
                        row.add(other, link.flow as f64);
                    }
                }
            }
        })
    }

    /// The vertices of module `m` and the links between them, numbered as in `members`.
    pub fn inside(&self, members: &Members, modules: &[u32], m: usize) -> Self {
        let vertices = members.of(m);
        let rates = vertices.iter().map(|&v| self.rates[v as usize]).collect();
        let (mut offsets, mut links) = (vec![0], Vec::new());
        for &v in vertices {
            let within =
                self.links(v as usize).iter().filter(|link| modules[link.target as usize] == m as u32);
            links.extend(within.map(|link| Link { target: members.place(link.target), ..*link }));
            offsets.push(links.len());
        }
        Self { rates, offsets, links }
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.rates.len()
    }

    pub fn links(&self, v: usize) -> &[Link] {
        &self.links[self.offsets[v]..self.offsets[v + 1]]
    }

    /// Collects the links of each vertex, of which there are at most `most`; `collect` adds the flow to any vertex in any number
    /// of parts.
    ///
    /// Every vertex has room for the most links, and those that are there are then moved together. Pages of the room that is left
    /// over are never touched, so that the links are in memory once.
    fn build(
        rates: Vec<Rates>,
        most: impl Fn(usize) -> usize + Sync,
        collect: impl Fn(usize, &mut Row) + Sync,
    ) -> Self {
        let n = rates.len();
        let mut offsets = vec![0; n + 1];
        offsets[1..].par_iter_mut().enumerate().for_each(|(v, room)| *room = most(v));
        accumulate(&mut offsets);
        let mut links: Vec<Link> = bytemuck::zeroed_vec(offsets[n]);
        let mut lengths = vec![0; n];
        let tasks = split_rows(&mut links, &offsets, PER_TASK).zip(lengths.chunks_mut(PER_TASK));
        tasks.collect::<Vec<_>>().into_par_iter().enumerate().for_each_init(
            || Row::new(n),
            |row, (task, (links, lengths))| {
                let mut end = 0;
                for (v, length) in (task * PER_TASK..).zip(lengths) {
                    collect(v, row);
                    *length = row.drain_into(&mut links[end..]);
                    end += *length;
                }
            },
        );
        // The links of a task follow each other already.
        let mut end = 0;
        for (task, lengths) in lengths.chunks(PER_TASK).enumerate() {
            let (first, count) = (offsets[task * PER_TASK], lengths.iter().sum::<usize>());
            links.copy_within(first..first + count, end);
            end += count;
        }
        links.truncate(end);
        links.shrink_to_fit();
        offsets[1..].copy_from_slice(&lengths);
        accumulate(&mut offsets);
        Self { rates, offsets, links }
    }
}

/// The vertices of each module, ascending.
pub(super) struct Members {
    offsets: Vec<usize>,
    vertices: Vec<u32>,
    places: Vec<u32>,
}

impl Members {
    /// `modules[v]`, below `count`, is the module of vertex v.
    pub fn new(modules: &[u32], count: usize) -> Self {
        let mut offsets = vec![0; count + 1];
        modules.iter().for_each(|&m| offsets[m as usize + 1] += 1);
        accumulate(&mut offsets);
        let (mut vertices, mut places) = (vec![0; modules.len()], vec![0; modules.len()]);
        let mut filled = vec![0; count];
        for (v, &m) in modules.iter().enumerate() {
            let place = &mut filled[m as usize];
            vertices[offsets[m as usize] + *place as usize] = v as u32;
            places[v] = *place;
            *place += 1;
        }
        Self { offsets, vertices, places }
    }

    pub fn of(&self, m: usize) -> &[u32] {
        &self.vertices[self.offsets[m]..self.offsets[m + 1]]
    }

    /// The position of `v` within its module.
    pub fn place(&self, v: u32) -> u32 {
        self.places[v as usize]
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
        // A flow that is lost in rounding must not be recorded repeatedly.
        if *sum == 0.0 && flow > 0.0 {
            self.touched.push(vertex as u32);
        }
        *sum += flow;
    }

    /// Adds the flow of links to the modules they lead to.
    pub fn gather(&mut self, links: &[Link], modules: &[u32]) {
        for link in links {
            self.add(modules[link.target as usize] as usize, link.flow as f64);
        }
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

    /// Writes the sums as links, returns how many there are, and resets them. Flow that is 0 in f32 is left out.
    fn drain_into(&mut self, links: &mut [Link]) -> usize {
        let mut count = 0;
        for target in self.touched.drain(..) {
            let flow = std::mem::take(&mut self.flows[target as usize]) as f32;
            if flow > 0.0 {
                links[count] = Link { target, flow };
                count += 1;
            }
        }
        count
    }
}
