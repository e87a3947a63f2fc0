//! The search for a partition of minimal codelength.
//!
//! Vertices move (`moves`), modules become vertices of a smaller network and move, and so on until no two join. Then,
//! as Infomap does, parts of modules move ("coarse tuning": each module is partitioned on its own, similar to the refinement of
//! Leiden: Traag, Waltman and van Eck, 2019), and single vertices move again ("fine tuning"), until the gain is small.
//!
//! With loops (see `equation`), vertices on their own would never meet: a pair needs more flow than a group that already has
//! members. So the search starts from the partition that is found without loops, and the parts of a module are found without
//! them too.
//!
//! Coarse tuning is parallel: the parts of a module do not depend on other modules.
//!
//! Cost: one to two dozen passes over the links. Memory: the network and a smaller one; coarse tuning copies the
//! links within the modules it is at.

use super::equation::{break_even_loop, plogp};
use super::limits::Surroundings;
use super::moves::Partition;
use super::network::{Members, Network};
use crate::random::{Purpose, Stream};
use crate::{Progress, Result};
use rayon::prelude::*;

/// Fine tuning must shorten the codelength by this share for another round to follow. On the synthetic set of 102,000
/// one round is enough; on LFW without a threshold, whose structure is weak, the second to the fourth gain 0.02 bits of
/// 11.7.
const LEAST_GAIN: f64 = 2e-4;

/// The most rounds in a region: its partition is nearly as good as it can be before the first.
const REGION_ROUNDS: u64 = 5;

/// What the search found.
pub(super) struct Found {
    pub partition: Partition,
    /// The rate of the loop at each vertex.
    pub loops: f64,
}

/// The modules of a part of a network, from `modules` on; without loops in `network`. All modules outside stay, and vertices of one
/// unit only move together.
pub(super) fn search_region(
    mut network: Network,
    modules: Vec<u32>,
    units: Option<&[u32]>,
    pair_flow: f64,
    around: &Surroundings,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Vec<u32>> {
    let mut partition = Partition::of_modules(&network, modules);
    let loops = break_even_loop(pair_flow, around.outside + partition.entered());
    network.rates.iter_mut().for_each(|rates| rates.visit += loops);
    partition.add_loops(|_| loops);
    let Some(units) = units else {
        return Ok(improved_region(network, partition, |_| loops, around, seed, progress)?.modules);
    };
    // Units are modules that become vertices, with the loops of all their members.
    let of_units = Partition::of_modules(&network, units.to_vec());
    let count = of_units.rates.len();
    let (mut members, mut modules) = (vec![0u32; count], vec![0; count]);
    for (&unit, &module) in units.iter().zip(&partition.modules) {
        members[unit as usize] += 1;
        modules[unit as usize] = module;
    }
    let limits = around.limits.map(|limits| limits.coarsen(units, count));
    let around = &Surroundings { outside: around.outside, limits: limits.as_ref() };
    let partition = Partition { modules, rates: partition.rates };
    let loops = |unit: u32| loops * f64::from(members[unit as usize]);
    let found = improved_region(of_units.coarsen(&network), partition, loops, around, seed, progress)?;
    Ok(units.iter().map(|&unit| found.modules[unit as usize]).collect())
}

/// The same partition after moves; `loops` are the rates of the loops at the vertices, which are in the rates already.
fn improved_region(
    network: Network,
    mut partition: Partition,
    loops: impl Fn(u32) -> f64 + Sync,
    around: &Surroundings,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Partition> {
    let random = &mut Stream::new(seed, Purpose::Moves, 0, 0);
    if partition.improve(&network, around, random, progress)? {
        partition.merge(&network, around, random, progress)?;
    }
    let fixed: f64 = network.rates.iter().map(|rates| plogp(rates.visit)).sum();
    for round in 1..=REGION_ROUNDS {
        let start = partition.bits();
        partition.move_parts(&network, &loops, around, seed, round, progress)?;
        if partition.improve(&network, around, random, progress)? {
            partition.merge(&network, around, random, progress)?;
        }
        if start - partition.bits() <= LEAST_GAIN * (start - fixed).max(0.0) {
            break;
        }
    }
    Ok(partition)
}

/// A partition of the network, after at most `rounds` rounds of tuning. `pair_flow` is the flow that a single edge between two
/// vertices must exceed for them to join; without it there are no loops.
pub(super) fn search(
    mut network: Network,
    pair_flow: Option<f64>,
    seed: u64,
    rounds: u64,
    progress: &dyn Progress,
) -> Result<Found> {
    let random = &mut Stream::new(seed, Purpose::Moves, 0, 0);
    let around = &Surroundings::NONE;
    let mut partition = Partition::singletons(&network);
    partition.improve(&network, around, random, progress)?;
    partition.merge(&network, around, random, progress)?;
    let mut loops = 0.0;
    let mut set_loops = |network: &mut Network, partition: &mut Partition| {
        let Some(pair_flow) = pair_flow else { return 0.0 };
        let more = break_even_loop(pair_flow, partition.entered()) - loops;
        network.rates.iter_mut().for_each(|rates| rates.visit += more);
        partition.add_loops(|_| more);
        loops += more;
        loops
    };
    if pair_flow.is_some() {
        set_loops(&mut network, &mut partition);
        if partition.improve(&network, around, random, progress)? {
            partition.merge(&network, around, random, progress)?;
        }
    }
    for round in 1..=rounds {
        // The break-even depends on how often the modules are entered, which changes with them.
        let loops = set_loops(&mut network, &mut partition);
        let fixed: f64 = network.rates.iter().map(|rates| plogp(rates.visit)).sum();
        partition.move_parts(&network, &|_| loops, around, seed, round, progress)?;
        let before = partition.bits();
        if partition.improve(&network, around, random, progress)? {
            partition.merge(&network, around, random, progress)?;
        }
        // A small gain of single vertices after the moves of parts means that both have converged.
        let gain = before - partition.bits();
        // Where there is nothing to tell, rounding may make the length negative.
        if gain <= LEAST_GAIN * (before - fixed).max(0.0) {
            break;
        }
    }
    // Without clear groups, moves may end in a local optimum that is worse than a single module.
    let whole = Partition::whole(&network);
    let partition = if whole.bits() < partition.bits() { whole } else { partition };
    Ok(Found { partition, loops })
}

impl Partition {
    /// Merges modules, then modules of modules, until no merge improves the codelength.
    fn merge(
        &mut self,
        network: &Network,
        around: &Surroundings,
        random: &mut Stream,
        progress: &dyn Progress,
    ) -> Result<()> {
        let mut coarse = self.coarsen(network);
        loop {
            let limits = around.limits.map(|limits| limits.coarsen(&self.modules, self.rates.len()));
            let above = Surroundings { outside: around.outside, limits: limits.as_ref() };
            let mut joined = Partition::singletons(&coarse);
            if !joined.improve(&coarse, &above, random, progress)? {
                return Ok(());
            }
            coarse = joined.coarsen(&coarse);
            self.compose(joined);
        }
    }

    /// The network of the modules.
    fn coarsen(&self, network: &Network) -> Network {
        let members = Members::new(&self.modules, self.rates.len());
        network.coarsen(&members, &self.modules, self.rates.clone())
    }

    /// Breaks modules into parts and lets the parts move.
    fn move_parts(
        &mut self,
        network: &Network,
        loops: &(impl Fn(u32) -> f64 + Sync),
        around: &Surroundings,
        seed: u64,
        round: u64,
        progress: &dyn Progress,
    ) -> Result<()> {
        let (mut parts, owners) = self.parts(network, loops, around.outside, seed, round, progress)?;
        let coarse = parts.coarsen(network);
        let limits = around.limits.map(|limits| limits.coarsen(&parts.modules, parts.rates.len()));
        let around = &Surroundings { outside: around.outside, limits: limits.as_ref() };
        let mut moved = Partition { modules: owners, rates: std::mem::take(&mut self.rates) };
        let random = &mut Stream::new(seed, Purpose::Moves, round, 0);
        moved.improve(&coarse, around, random, progress)?;
        moved.merge(&coarse, around, random, progress)?;
        parts.compose(moved);
        *self = parts;
        Ok(())
    }

    /// The parts of each module, and the module of each part.
    fn parts(
        &self,
        network: &Network,
        loops: &(impl Fn(u32) -> f64 + Sync),
        outside: f64,
        seed: u64,
        round: u64,
        progress: &dyn Progress,
    ) -> Result<(Partition, Vec<u32>)> {
        let members = Members::new(&self.modules, self.rates.len());
        let entered = outside + self.entered();
        let parts: Result<Vec<Partition>> = (0..self.rates.len())
            .into_par_iter()
            .map(|m| {
                let mut inside = network.inside(&members, &self.modules, m);
                let loops = |place: u32| loops(members.of(m)[place as usize]);
                inside.rates.iter_mut().zip(0..).for_each(|(rates, place)| rates.visit -= loops(place));
                let mut parts = Partition::singletons(&inside);
                let random = &mut Stream::new(seed, Purpose::Moves, round, 1 + m as u64);
                let around = Surroundings { outside: entered - self.rates[m].enter, limits: None };
                parts.improve(&inside, &around, random, progress)?;
                parts.add_loops(loops);
                Ok(parts)
            })
            .collect();

        let mut all = Partition { modules: vec![0; network.len()], rates: Vec::new() };
        let mut owners = Vec::new();
        for (m, parts) in parts?.into_iter().enumerate() {
            let first = all.rates.len() as u32;
            for (&v, part) in members.of(m).iter().zip(parts.modules) {
                all.modules[v as usize] = first + part;
            }
            all.rates.extend(parts.rates);
            owners.resize(all.rates.len(), m as u32);
        }
        Ok((all, owners))
    }

    /// How often any module is entered.
    fn entered(&self) -> f64 {
        self.rates.iter().map(|rates| rates.enter).sum()
    }

    /// Adds a loop to every vertex.
    fn add_loops(&mut self, loops: impl Fn(u32) -> f64) {
        self.modules.iter().zip(0..).for_each(|(&m, v)| self.rates[m as usize].visit += loops(v));
    }

    /// Puts each vertex where `of_modules` puts its module.
    fn compose(&mut self, of_modules: Partition) {
        self.modules.iter_mut().for_each(|module| *module = of_modules.modules[*module as usize]);
        self.rates = of_modules.rates;
    }
}
