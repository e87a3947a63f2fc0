//! Local moves: one vertex after another goes where the codelength falls most, until no vertex wants to move.
//!
//! A vertex may join the modules of its neighbours or go off on its own. Of equally good ones it takes the module of
//! the smallest number. After a first round only those are asked again whose neighbours have moved.
//!
//! Serial: each move counts on all the moves before it, and so the result depends on nothing but the order.
//!
//! Cost: for each vertex asked, its links and 3 logarithms (4 if directed) for each module among its neighbours.
//! 44 bytes per vertex.

use super::equation::{Rates, modular_bits, plogp};
use super::network::{Network, Row};
use crate::random::Stream;

/// Moves that gain less are not made: rounding could take them back and forth.
const LEAST_GAIN: f64 = 1e-11;

/// A partition of a network into modules 0..M, and what the map equation knows of each.
pub(super) struct Partition {
    pub modules: Vec<u32>,
    pub rates: Vec<Rates>,
}

impl Partition {
    /// Each vertex on its own.
    pub fn singletons(network: &Network) -> Self {
        Self { modules: (0..network.len() as u32).collect(), rates: network.rates.clone() }
    }

    /// The codelength without the part that no move changes.
    pub fn bits(&self) -> f64 {
        modular_bits(&self.rates)
    }

    /// Moves vertices until none wants to move. With `within`, a vertex only looks at neighbours of the same number
    /// there. True if any moved.
    pub fn improve(&mut self, network: &Network, within: Option<&[u32]>, random: &mut Stream) -> bool {
        let n = network.len();
        let order = random.sample(n, n);
        let mut table = Table::new(self, n);
        let mut asked = vec![true; n];
        let mut row = Row::new(n);
        let mut moves = 0;
        loop {
            let before = moves;
            for &v in &order {
                let v = v as usize;
                if !std::mem::take(&mut asked[v]) {
                    continue;
                }
                for link in network.links(v) {
                    if within.is_none_or(|within| within[link.target as usize] == within[v]) {
                        row.add(self.modules[link.target as usize] as usize, link.flow as f64);
                    }
                }
                let (from, rates) = (self.modules[v], network.rates[v]);
                if let Some(to) = table.best(from, rates, &row) {
                    table.shift(from, to, rates, &row);
                    self.modules[v] = to;
                    moves += 1;
                    for link in network.links(v) {
                        asked[link.target as usize] |= self.modules[link.target as usize] != to;
                    }
                }
                row.clear();
            }
            if moves == before {
                break;
            }
        }
        self.rates = table.modules.iter().map(|module| module.rates).collect();
        self.close_ranks();
        moves > 0
    }

    /// Numbers the modules that have vertices 0, 1, 2 ... by their first vertex.
    fn close_ranks(&mut self) {
        const UNSEEN: u32 = u32::MAX;
        let mut numbers = vec![UNSEEN; self.rates.len()];
        let mut rates = Vec::new();
        for module in &mut self.modules {
            let number = &mut numbers[*module as usize];
            if *number == UNSEEN {
                *number = rates.len() as u32;
                rates.push(self.rates[*module as usize]);
            }
            *module = *number;
        }
        self.rates = rates;
    }
}

/// A module while vertices move.
#[derive(Clone, Copy, Default)]
struct Module {
    rates: Rates,
    /// What it adds to the codelength.
    term: f64,
}

/// The modules while vertices move, with what is needed to price a move.
struct Table {
    modules: Vec<Module>,
    members: Vec<u32>,
    /// Modules without vertices.
    free: Vec<u32>,
    /// The sum of how often modules are entered, and its plogp.
    entered: f64,
    index_term: f64,
}

impl Table {
    /// As many modules as vertices, so that each vertex could go off on its own.
    fn new(partition: &Partition, n: usize) -> Self {
        let mut modules = vec![Module::default(); n];
        for (module, &rates) in modules.iter_mut().zip(&partition.rates) {
            *module = Module { rates, term: rates.term() };
        }
        let mut members = vec![0; n];
        partition.modules.iter().for_each(|&m| members[m as usize] += 1);
        let free = (partition.rates.len() as u32..n as u32).rev().collect();
        let entered = partition.rates.iter().map(|rates| rates.enter).sum();
        Self { modules, members, free, entered, index_term: plogp(entered) }
    }

    /// Where a vertex of module `from` should go, if anywhere; `row` has its flow to each module.
    fn best(&self, from: u32, vertex: Rates, row: &Row) -> Option<u32> {
        let old = &self.modules[from as usize];
        let left = old.rates.without(vertex, row.flow(from as usize));
        let entered = self.entered + left.enter - old.rates.enter;
        let leaving = left.term() - old.term - self.index_term;
        // Alone it would be what it is now, and no empty module is needed for that.
        let alone = self.free.last().filter(|_| self.members[from as usize] > 1);
        let (mut best, mut least) = (None, -LEAST_GAIN);
        for &to in row.touched().iter().chain(alone).filter(|&&to| to != from) {
            let new = &self.modules[to as usize];
            let joined = new.rates.with(vertex, row.flow(to as usize));
            let change = leaving + joined.term() - new.term + plogp(entered + joined.enter - new.rates.enter);
            if change < least || (change == least && best.is_some_and(|best| to < best)) {
                (best, least) = (Some(to), change);
            }
        }
        best
    }

    /// Books the move of a vertex.
    fn shift(&mut self, from: u32, to: u32, vertex: Rates, row: &Row) {
        let left = self.modules[from as usize].rates.without(vertex, row.flow(from as usize));
        let joined = self.modules[to as usize].rates.with(vertex, row.flow(to as usize));
        if self.members[to as usize] == 0 {
            self.free.pop();
        }
        self.members[from as usize] -= 1;
        self.members[to as usize] += 1;
        let empty = self.members[from as usize] == 0;
        if empty {
            self.free.push(from);
        }
        // What rounding leaves of an empty module would add up.
        let left = if empty { Rates::default() } else { left };
        for (module, rates) in [(from, left), (to, joined)] {
            let module = &mut self.modules[module as usize];
            self.entered += rates.enter - module.rates.enter;
            *module = Module { rates, term: rates.term() };
        }
        self.index_term = plogp(self.entered);
    }
}
