//! Divides a person along its weakest structure, so that two items (or two sets of them) come apart.
//!
//! A random walk along the edges of the person starts at an item and ends at the first item of either side: f is the probability
//! that it ends at the first side. f is harmonic, each value the mean of its neighbours' by the weights of the edges. Of two cuts
//! that is made whose parts are less probably one person (`evidence`, by edges and sizes):
//!
//! - items in descending f, cut where the conductance, the weight of the edges across over the smaller of the weights of all edges
//!   of either part, is smallest (the sweep of spectral partitioning, with f instead of an eigenvector). This divides two people,
//!   of whom a minimum cut would nearly always take off the one item;
//! - items with f above and below 1/2. This takes off a stray with what clings to it, where the first cut would divide the others.
//!
//! Cost: [`ROUNDS`] passes over the edges of the person.

use crate::evidence::{Asked, Evidence};
use crate::records::UNIT;
use crate::region::Region;
use std::collections::HashMap;

/// Passes over the edges. On a path of n items f has converged after some n^2 of them, but then its middle is as good a cut as any.
const ROUNDS: usize = 60;

/// Which of the members come to the first side; `first` and `second` are among them and have no member in common.
pub(crate) fn divide(region: &Region, members: &[u32], first: &[u32], second: &[u32]) -> Vec<bool> {
    let place_of: HashMap<u32, usize> = members.iter().copied().zip(0..).collect();
    let links = links_within(region, members, &place_of);
    let mut fixed = vec![None; members.len()];
    first.iter().for_each(|&member| fixed[place_of[&member]] = Some(1.0));
    second.iter().for_each(|&member| fixed[place_of[&member]] = Some(0.0));
    let mut f: Vec<f64> = fixed.iter().map(|fixed| fixed.unwrap_or(0.5)).collect();
    for _ in 0..ROUNDS {
        for at in 0..members.len() {
            if fixed[at].is_none() {
                let (sum, weight) = links[at]
                    .iter()
                    .fold((0.0, 0.0), |(sum, all), &(other, w)| (sum + w * f[other], all + w));
                if weight > 0.0 {
                    f[at] = sum / weight;
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..members.len()).collect();
    let side = |at: usize| fixed[at].unwrap_or(0.5);
    order.sort_by(|&a, &b| side(b).total_cmp(&side(a)).then(f[b].total_cmp(&f[a])).then(a.cmp(&b)));
    // Fixed items stay at their ends, whatever else has their value.
    let swept = sweep(&order, &links, first.len(), second.len());
    let nearer: Vec<bool> = f.iter().zip(&fixed).map(|(f, fixed)| fixed.unwrap_or(*f) > 0.5).collect();
    if binding(&links, &nearer) < binding(&links, &swept) { nearer } else { swept }
}

/// How probably the parts are one person, by their edges and sizes: a logit.
fn binding(links: &[Vec<(usize, f64)>], first: &[bool]) -> f64 {
    let (mut sums, mut sizes) = ([0.0; 2], [0; 2]);
    for (links, &side) in links.iter().zip(first) {
        let across = links.iter().filter(|link| first[link.0] != side);
        // Weights are of both directions.
        let best = across.map(|link| link.1 / (2.0 * UNIT)).fold(0.0, f64::max);
        sums[usize::from(side)] += best;
        sizes[usize::from(side)] += 1;
    }
    let mean = |side: usize| sums[side] / sizes[side].max(1) as f64;
    Evidence { asked: Asked::Parts, sizes, edges: mean(0).max(mean(1)), best: 0.0, similarity: 1.0 }
        .logit(0.0)
}

/// The edges between members, by their places among them.
fn links_within(region: &Region, members: &[u32], place_of: &HashMap<u32, usize>) -> Vec<Vec<(usize, f64)>> {
    let of_member = |&member: &u32| {
        let links = region.links(member).iter();
        links.filter_map(|&(other, weight)| Some((*place_of.get(&other)?, weight as f64))).collect()
    };
    members.iter().map(of_member).collect()
}

/// The weakest structure of a person without any two items in mind, by the second eigenvector of the random walk; none if there are
/// fewer than two members.
pub(crate) fn weakest(region: &Region, members: &[u32]) -> Option<Vec<bool>> {
    if members.len() < 2 {
        return None;
    }
    let links = links_within(region, members, &members.iter().copied().zip(0..).collect());
    let strength: Vec<f64> = links.iter().map(|links| links.iter().map(|link| link.1).sum()).collect();
    let volume: f64 = strength.iter().sum();
    // Any start will do that is not symmetric: a walk that turns by the golden section.
    let mut x: Vec<f64> = (0..members.len()).map(|at| (at as f64 * 0.618_033_988_75).fract() - 0.5).collect();
    for _ in 0..ROUNDS {
        let mean = x.iter().zip(&strength).map(|(x, s)| x * s).sum::<f64>() / volume.max(1.0);
        x.iter_mut().for_each(|x| *x -= mean);
        // Half of the walk stays, so that no eigenvalue is negative.
        let step = |at: usize| {
            let sum: f64 = links[at].iter().map(|&(other, weight)| weight * x[other]).sum();
            if strength[at] > 0.0 { (x[at] + sum / strength[at]) / 2.0 } else { x[at] }
        };
        x = (0..members.len()).map(step).collect();
        let length = x.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-300);
        x.iter_mut().for_each(|x| *x /= length);
    }
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by(|&a, &b| x[b].total_cmp(&x[a]).then(a.cmp(&b)));
    Some(sweep(&order, &links, 1, 1))
}

/// Cuts an order where the conductance is smallest, at least so many from either end; which members are before the cut.
fn sweep(order: &[usize], links: &[Vec<(usize, f64)>], first: usize, second: usize) -> Vec<bool> {
    let volume: f64 = links.iter().flatten().map(|link| link.1).sum();
    let mut taken = vec![false; order.len()];
    let (mut inside, mut cut) = (0.0, 0.0);
    let (mut best, mut least) = (first, f64::INFINITY);
    for (count, &at) in order.iter().enumerate().take(order.len() - second) {
        taken[at] = true;
        for &(other, weight) in &links[at] {
            inside += weight;
            cut += if taken[other] { -weight } else { weight };
        }
        if count + 1 >= first {
            let smaller = inside.min(volume - inside);
            let conductance = if cut <= 0.0 { 0.0 } else { cut / smaller.max(1.0) };
            // Of equal cuts the first: what no edge binds to the first side stays on the second.
            if conductance < least {
                (best, least) = (count + 1, conductance);
            }
        }
    }
    let mut sides = vec![false; order.len()];
    order[..best].iter().for_each(|&at| sides[at] = true);
    sides
}
