//! The search for a partition of small codelength.
//!
//! Vertices move (`moves`), modules become vertices of a smaller network and move, and so on until no two join. Then,
//! as Infomap does, single vertices move again from where they are ("fine tuning"), and parts of modules
//! do ("coarse tuning": each module falls apart into what its vertices form when they start anew without leaving the
//! module; the idea of Leiden's refinement too: Traag, Waltman and van Eck, 2019). Both repeat until they gain
//! next to nothing.
//!
//! Cost: a few dozen passes over the links. Memory: the network and a smaller one.

use super::moves::Partition;
use super::network::Network;
use crate::random::{Purpose, Stream};

/// A round of tuning must shorten the codelength by this share for another to follow.
const LEAST_GAIN: f64 = 1e-4;

/// A partition of the network.
pub(super) fn search(network: &Network, seed: u64) -> Partition {
    let mut random = Stream::new(seed, Purpose::Moves, 0, 0);
    let random = &mut random;
    let t = std::time::Instant::now();
    let mut partition = Partition::singletons(network);
    partition.improve(network, None, random);
    if std::env::var("MAPDEBUG").is_ok() { eprintln!("v {} {} {:?}", partition.bits(), partition.rates.len(), t.elapsed()); }
    partition.merge(network, random);
    let debug = std::env::var("MAPDEBUG").is_ok();
    if debug {
        eprintln!("first {} {} {:?}", partition.bits(), partition.rates.len(), t.elapsed());
    }
    loop {
        let before = partition.bits();
        if partition.improve(network, None, random) {
            partition.merge(network, random);
        }
        if debug {
            eprintln!("fine {} {} {:?}", partition.bits(), partition.rates.len(), t.elapsed());
        }
        partition.move_parts(network, random);
        if debug {
            eprintln!("coarse {} {} {:?}", partition.bits(), partition.rates.len(), t.elapsed());
        }
        if before - partition.bits() <= LEAST_GAIN * before.abs() {
            return partition;
        }
    }
}

impl Partition {
    /// Joins whole modules, then modules of modules, until no two want to.
    fn merge(&mut self, network: &Network, random: &mut Stream) {
        let mut coarse = network.coarsen(&self.modules, self.rates.clone());
        loop {
            let mut joined = Partition::singletons(&coarse);
            if !joined.improve(&coarse, None, random) {
                return;
            }
            coarse = coarse.coarsen(&joined.modules, joined.rates.clone());
            self.compose(joined);
        }
    }

    /// Breaks modules into parts and lets the parts move.
    fn move_parts(&mut self, network: &Network, random: &mut Stream) {
        let mut parts = Partition::singletons(network);
        parts.improve(network, Some(&self.modules), random);
        let coarse = network.coarsen(&parts.modules, parts.rates.clone());
        let mut owners = vec![0; coarse.len()];
        for (&part, &module) in parts.modules.iter().zip(&self.modules) {
            owners[part as usize] = module;
        }
        let mut moved = Partition { modules: owners, rates: std::mem::take(&mut self.rates) };
        moved.improve(&coarse, None, random);
        moved.merge(&coarse, random);
        *self = parts;
        self.compose(moved);
    }

    /// Puts each vertex where `of_modules` puts its module.
    fn compose(&mut self, of_modules: Partition) {
        self.modules.iter_mut().for_each(|module| *module = of_modules.modules[*module as usize]);
        self.rates = of_modules.rates;
    }
}
