//! Local moves: each vertex in turn moves to the module that reduces the codelength most, until no move improves it.
//!
//! A vertex can move to the modules of its neighbours or form a module of its own. Ties go to the module with the smallest
//! number. After the first round, only vertices whose neighbours have moved are visited again.
//!
//! Moves are serial, because each depends on all moves before it; the result depends only on the order of the vertices.
//!
//! A bound without logarithms excludes most modules of the neighbours of a vertex: plogp is convex, so plogp(x + d) -
//! plogp(x) >= d slope(x), and for d >= 0 it is <= d slope(x + d) <= d (slope(x) + d log2(e) / x), with slope(x) = log2 x +
//! log2 e.
//!
//! Cost: for each visited vertex, its links and 3 logarithms (4 if directed) for each module that passes the bound.
//! 80 bytes per vertex.

use super::equation::{Rates, modular_bits, plogp, plogp_slope};
use super::limits::Surroundings;
use super::network::{Network, Row};
use crate::random::Stream;
use crate::{Progress, Result};
use std::f64::consts::LOG2_E;
use std::ops::Range;

/// Moves that gain less are not made, because rounding could reverse them forever.
const LEAST_GAIN: f64 = 1e-11;

/// The maximum number of passes. More than ten are rare; the limit guarantees termination.
const MOST_PASSES: usize = 1000;

/// A partition of a network into modules 0..M, and the rates of each.
pub(super) struct Partition {
    pub modules: Vec<u32>,
    pub rates: Vec<Rates>,
}

impl Partition {
    /// Each vertex on its own.
    pub fn singletons(network: &Network) -> Self {
        Self { modules: (0..network.len() as u32).collect(), rates: network.rates.clone() }
    }

    /// The partition into these modules, which are numbered 0, 1, 2 ... without gaps.
    pub fn of_modules(network: &Network, modules: Vec<u32>) -> Self {
        let count = modules.iter().max().map_or(0, |&last| last as usize + 1);
        let mut rates = vec![Rates::default(); count];
        for (v, &m) in modules.iter().enumerate() {
            let within = network.links(v).iter().filter(|link| modules[link.target as usize] == m);
            // Every link is met from both of its ends.
            let between: f64 = within.map(|link| f64::from(link.flow)).sum();
            rates[m as usize] = rates[m as usize].with(network.rates[v], between / 2.0);
        }
        // What rounding has left of nothing would be entered a negative number of times.
        rates.iter_mut().for_each(|rates| {
            rates.enter = rates.enter.max(0.0);
            rates.exit = rates.exit.max(0.0);
        });
        Self { modules, rates }
    }

    /// All vertices in one module, but for those without links, which stay on their own.
    pub fn whole(network: &Network) -> Self {
        let mut rates = vec![Rates::default()];
        let module = |v| {
            let own = network.rates[v];
            if !network.links(v).is_empty() {
                rates[0].visit += own.visit;
                return 0;
            }
            rates.push(own);
            rates.len() as u32 - 1
        };
        Self { modules: (0..network.len()).map(module).collect(), rates }
    }

    /// The codelength without the part that no move changes.
    pub fn bits(&self) -> f64 {
        modular_bits(&self.rates)
    }

    /// Moves vertices until no move improves the codelength; true if any moved.
    pub fn improve(
        &mut self,
        network: &Network,
        around: &Surroundings,
        random: &mut Stream,
        progress: &dyn Progress,
    ) -> Result<bool> {
        let n = network.len();
        let mut table = Table::new(self, n, around.outside);
        let mut colours = around.limits.map(|limits| limits.colours_of(&self.modules));
        let mut pending = vec![true; n];
        let mut row = Row::new(n);
        let order = order(n, random);
        let mut moves = 0;
        for _ in 0..MOST_PASSES {
            let before = moves;
            let unless_cancelled = |block: &Range<usize>| (!progress.cancelled()).then(|| block.clone());
            for v in order.iter().map_while(unless_cancelled).flatten() {
                if !std::mem::take(&mut pending[v]) {
                    continue;
                }
                row.gather(network.links(v), &self.modules);
                let (from, rates) = (self.modules[v], network.rates[v]);
                let allowed = |to: u32| match (around.limits, &colours) {
                    (Some(limits), Some(colours)) => limits.allow(v, to, &self.modules, colours),
                    _ => true,
                };
                if let Some(to) = table.best(from, rates, &row, allowed) {
                    table.shift(from, to, rates, &row);
                    self.modules[v] = to;
                    if let Some((limits, colours)) = around.limits.zip(colours.as_mut()) {
                        limits.moved(v, from, to, colours);
                    }
                    moves += 1;
                    for link in network.links(v) {
                        pending[link.target as usize] |= self.modules[link.target as usize] != to;
                    }
                }
                row.clear();
            }
            progress.check()?;
            if moves == before {
                break;
            }
        }
        self.rates = table.modules.iter().map(|module| module.rates).collect();
        self.close_ranks();
        Ok(moves > 0)
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

/// The vertices in random order. In large networks whole blocks of consecutive ones stay together: those are near
/// each other in the network and in memory.
fn order(n: usize, random: &mut Stream) -> Vec<Range<usize>> {
    let block = (n / 1024).clamp(1, 256);
    let blocks = n.div_ceil(block);
    let block = |b: u32| b as usize * block..n.min((b as usize + 1) * block);
    random.sample(blocks, blocks).into_iter().map(block).collect()
}

/// A module while vertices move.
#[derive(Clone, Copy, Default)]
struct Module {
    rates: Rates,
    /// Its contribution to the codelength.
    term: f64,
    /// The derivative of plogp at how often it is visited or left, left, and entered.
    slopes: [f64; 3],
    members: u32,
}

impl Module {
    fn update(&mut self, rates: Rates) {
        self.rates = rates;
        self.term = rates.term();
        self.slopes = [rates.visit + rates.exit, rates.exit, rates.enter].map(plogp_slope);
    }

    /// A lower bound of the change of the term if a vertex with the flow `between` to this module joins; see the header. Minus
    /// infinity if the bound does not hold, because rounding made a rate negative.
    fn least_change(&self, vertex: Rates, between: f64) -> f64 {
        let (enter, exit) = (vertex.enter - between, vertex.exit - between);
        let holds = enter >= 0.0 && exit >= 0.0 && self.rates.enter > 0.0 && self.rates.exit > 0.0;
        if !holds {
            return f64::NEG_INFINITY;
        }
        let bend = (exit * exit / self.rates.exit + enter * enter / self.rates.enter) * LOG2_E;
        (vertex.visit + exit) * self.slopes[0] - exit * self.slopes[1] - enter * self.slopes[2] - bend
    }
}

/// The modules while vertices move, with the data to compute the gain of a move.
struct Table {
    modules: Vec<Module>,
    /// Modules without vertices.
    free: Vec<u32>,
    /// How often any module is entered, and plogp of it.
    entered: f64,
    index_term: f64,
}

impl Table {
    /// As many modules as vertices, so that each vertex could go off on its own.
    fn new(partition: &Partition, n: usize, outside: f64) -> Self {
        let mut modules = vec![Module::default(); n];
        modules.iter_mut().zip(&partition.rates).for_each(|(module, &rates)| module.update(rates));
        partition.modules.iter().for_each(|&m| modules[m as usize].members += 1);
        let free = (partition.rates.len() as u32..n as u32).rev().collect();
        let entered = outside + partition.rates.iter().map(|rates| rates.enter).sum::<f64>();
        Self { modules, free, entered, index_term: plogp(entered) }
    }

    /// The module to which a vertex of module `from` should move, if any; `row` has its flow to each module.
    fn best(&self, from: u32, vertex: Rates, row: &Row, allowed: impl Fn(u32) -> bool) -> Option<u32> {
        let old = &self.modules[from as usize];
        let left = old.rates.without(vertex, row.flow(from as usize));
        let entered = self.entered + left.enter - old.rates.enter;
        let leaving = left.term() - old.term - self.index_term;
        let (index_term, index_slope) = (plogp(entered), plogp_slope(entered));
        // A vertex that is alone already has a module of its own.
        let alone = self.free.last().filter(|_| old.members > 1);
        let (mut best, mut least) = (None, -LEAST_GAIN);
        for &to in row.touched().iter().chain(alone).filter(|&&to| to != from) {
            let (new, between) = (&self.modules[to as usize], row.flow(to as usize));
            let index_change = index_slope * (vertex.enter - between);
            if leaving + index_term + index_change + new.least_change(vertex, between) > least {
                continue;
            }
            let joined = new.rates.with(vertex, between);
            let change = leaving + joined.term() - new.term + plogp(entered + joined.enter - new.rates.enter);
            let better = change < least || (change == least && best.is_some_and(|best| to < best));
            if better && allowed(to) {
                (best, least) = (Some(to), change);
            }
        }
        best
    }

    /// Applies the move of a vertex.
    fn shift(&mut self, from: u32, to: u32, vertex: Rates, row: &Row) {
        let mut left = self.modules[from as usize].rates.without(vertex, row.flow(from as usize));
        let joined = self.modules[to as usize].rates.with(vertex, row.flow(to as usize));
        if self.modules[to as usize].members == 0 {
            self.free.pop();
        }
        self.modules[to as usize].members += 1;
        self.modules[from as usize].members -= 1;
        if self.modules[from as usize].members == 0 {
            self.free.push(from);
            // The rounding errors of empty modules would accumulate.
            left = Rates::default();
        }
        for (module, rates) in [(from, left), (to, joined)] {
            let module = &mut self.modules[module as usize];
            self.entered += rates.enter - module.rates.enter;
            module.update(rates);
        }
        self.index_term = plogp(self.entered);
    }
}
