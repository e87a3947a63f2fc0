//! The weights of edges inside and between default clusters, and the merges that follow from them.

use super::RowLink;
use super::agglomerate::{Link, agglomerate};
use crate::partition::members;
use crate::{DisjointSets, KnnGraph, Progress, Result};
use rayon::prelude::*;

/// Weights are whole multiples of 2^-24, so that sums do not depend on their order.
fn whole(probability: f32) -> u64 {
    (f64::from(probability) * f64::from(1 << 24)) as u64
}

pub(super) struct Weights<'a> {
    graph: &'a KnnGraph,
    probabilities: &'a [f32],
    /// 0 to C - 1, each occurs.
    labels: &'a [i64],
    /// The weight of all edges of each row.
    strength: Vec<u64>,
}

impl<'a> Weights<'a> {
    pub fn of(graph: &'a KnnGraph, probabilities: &'a [f32], labels: &'a [i64]) -> Self {
        let mut strength = vec![0; graph.len()];
        for i in 0..graph.len() {
            for (&j, &p) in graph.neighbours(i).0.iter().zip(&probabilities[i * graph.k()..]) {
                strength[i] += whole(p);
                strength[j as usize] += whole(p);
            }
        }
        Self { graph, probabilities, labels, strength }
    }

    /// The edges that a row lists, as (row, weight).
    fn listed(&self, row: u32) -> impl Iterator<Item = (u32, u64)> {
        let (ids, k) = (self.graph.neighbours(row as usize).0, self.graph.k());
        ids.iter().zip(&self.probabilities[row as usize * k..]).map(|(&other, &p)| (other, whole(p)))
    }

    /// The merges inside default clusters, of each cluster until it is one. The similarity of parts without an edge is 0.
    pub fn inside(&self, progress: &dyn Progress) -> Result<Vec<RowLink>> {
        let clusters = members(self.labels);
        let mut place = vec![0u32; self.labels.len()];
        for rows in clusters.rows() {
            rows.iter().zip(0..).for_each(|(&row, at)| place[row as usize] = at);
        }
        let all: Vec<&[u32]> = clusters.rows().collect();
        let merge = |rows: &&[u32]| match progress.cancelled() {
            true => Vec::new(),
            false => self.inside_one(rows, &place),
        };
        let links = all.par_iter().map(merge).collect::<Vec<_>>();
        progress.check()?;
        Ok(links.concat())
    }

    fn inside_one(&self, rows: &[u32], place: &[u32]) -> Vec<RowLink> {
        let mut lists: Vec<Vec<(u32, u64)>> = vec![Vec::new(); rows.len()];
        let mut total = 0;
        for (&row, at) in rows.iter().zip(0..) {
            for (other, weight) in self.listed(row) {
                if weight > 0 && self.labels[other as usize] == self.labels[row as usize] {
                    let other = place[other as usize];
                    lists[at as usize].push((other, weight));
                    lists[other as usize].push((at, weight));
                    total += 2 * weight;
                }
            }
        }
        let masses: Vec<f64> = rows.iter().map(|&row| (self.strength[row as usize] as f64).sqrt()).collect();
        let (sum, squares) = masses.iter().fold((0.0, 0.0), |(sum, squares), m| (sum + m, squares + m * m));
        // The mean of w_ij / (m_i m_j) over pairs, weighted by m_i m_j.
        let mean = total as f64 / (sum * sum - squares);
        let links = agglomerate(lists, masses);
        let links = links.into_iter().map(|link| Link { similarity: link.similarity / mean, ..link });
        measured(&vec![1; rows.len()], links.collect(), true, |at| rows[at as usize])
    }

    /// The merges of default clusters.
    pub fn between(&self, progress: &dyn Progress) -> Result<Vec<RowLink>> {
        let clusters = members(self.labels);
        let all: Vec<&[u32]> = clusters.rows().collect();
        // The weights of the edges that leave a cluster, by the cluster at the other end.
        let leaving = |sums: &mut Vec<u64>, rows: &&[u32]| {
            let mut others = Vec::new();
            for &row in rows.iter().filter(|_| !progress.cancelled()) {
                let own = self.labels[row as usize];
                for (other, weight) in self.listed(row) {
                    let to = self.labels[other as usize];
                    if to != own && weight > 0 {
                        if sums[to as usize] == 0 {
                            others.push((to as u32, 0));
                        }
                        sums[to as usize] += weight;
                    }
                }
            }
            others.iter_mut().for_each(|(to, weight)| *weight = std::mem::take(&mut sums[*to as usize]));
            others
        };
        let count = all.len();
        let mut lists: Vec<Vec<(u32, u64)>> = all.par_iter().map_init(|| vec![0; count], leaving).collect();
        progress.check()?;
        let ends: Vec<usize> = lists.iter().map(Vec::len).collect();
        for (from, end) in ends.into_iter().enumerate() {
            for at in 0..end {
                let (to, weight) = lists[from][at];
                lists[to as usize].push((from as u32, weight));
            }
        }
        let strength =
            |rows: &&[u32]| rows.iter().map(|&row| self.strength[row as usize]).sum::<u64>() as f64;
        let masses = all.iter().map(|rows| strength(rows).sqrt()).collect();
        let links = agglomerate(lists, masses);
        let links = links.into_iter().map(|link| Link { similarity: 2.0 * link.similarity, ..link });
        let sizes: Vec<u32> = all.iter().map(|rows| rows.len() as u32).collect();
        Ok(measured(&sizes, links.collect(), false, |at| all[at as usize][0]))
    }
}

/// The links with the rows that they move; `whole` also joins what remains apart, with similarity 0.
fn measured(sizes: &[u32], mut links: Vec<Link>, whole: bool, row: impl Fn(u32) -> u32) -> Vec<RowLink> {
    let (mut sets, mut sizes) = (DisjointSets::new(sizes.len()), sizes.to_vec());
    if whole {
        for link in &links {
            sets.join(link.ends[0], link.ends[1]);
        }
        let apart = (1..sizes.len() as u32).filter(|&v| sets.find(v) == v);
        links.extend(apart.map(|v| Link { ends: [0, v], similarity: 0.0 }));
        sets = DisjointSets::new(sizes.len());
    }
    let mut measure = |link: Link| {
        let [a, b] = link.ends.map(|end| sets.find(end));
        let [of_a, of_b] = [a, b].map(|v| sizes[v as usize]);
        sets.join(a, b);
        sizes[a.min(b) as usize] = of_a + of_b;
        RowLink { ends: link.ends.map(&row), similarity: link.similarity, moved: of_a.min(of_b) }
    };
    links.into_iter().map(&mut measure).collect()
}
