//! The two-level map equation.
//!
//! L = plogp(sum q_m) - sum plogp(q_m) - sum plogp(r_m) - sum plogp(p_v) + sum plogp(r_m + sum_{v in m} p_v),
//!
//! in bits per step of the walk, with plogp(x) = x log2 x, p_v how often vertex v is visited, q_m how often module
//! m is entered and r_m how often it is left; without directions q = r (Rosvall, Axelsson and Bergstrom, "The map
//! equation", 2009; q and r differ as in the Infomap program, where teleportation is not counted, so that a
//! module may be entered more often than left).
//!
//! The term of a module depends only on its own three numbers, so the effect of moving a vertex costs a few logarithms.
//!
//! A loop at each vertex raises p_v and no other rate. Vertices then join only if the flow between them outweighs the loops:
//! [`break_even_loop`] is the loop at which two vertices with a single edge between them are described equally well together
//! and apart. Groups of more vertices are judged by all edges within them.

/// The rates of a vertex or a module: how often the walk visits, enters and leaves it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rates {
    pub visit: f64,
    pub enter: f64,
    pub exit: f64,
}

impl Rates {
    /// These rates with those of `other` added; `between` is the flow between the two in both directions,
    /// which no longer enters or leaves.
    pub fn with(self, other: Rates, between: f64) -> Rates {
        Rates {
            visit: self.visit + other.visit,
            enter: self.enter + other.enter - between,
            exit: self.exit + other.exit - between,
        }
    }

    /// These rates without `other`, a part of it; `between` is the flow between `other` and what is left.
    pub fn without(self, other: Rates, between: f64) -> Rates {
        Rates {
            visit: self.visit - other.visit,
            enter: self.enter - other.enter + between,
            exit: self.exit - other.exit + between,
        }
    }

    /// The contribution of a module with these rates to the codelength.
    pub fn term(self) -> f64 {
        let exit = plogp(self.exit);
        // Without directions the two are the same number: one logarithm less.
        let enter = if self.enter == self.exit { exit } else { plogp(self.enter) };
        plogp(self.exit + self.visit) - exit - enter
    }
}

/// The codelength of modules without the part that is the same for every partition, - sum plogp(p_v).
pub(super) fn modular_bits(modules: &[Rates]) -> f64 {
    plogp(modules.iter().map(|rates| rates.enter).sum())
        + modules.iter().map(|rates| rates.term()).sum::<f64>()
}

/// The loop at which two vertices, whose only edge has the flow `edge` in each direction, gain nothing by joining, where other
/// modules are entered at the rate `entered`.
///
/// With a loop l, apart they cost plogp(e + 2f) + 2 (plogp(2f + l) - 2 plogp(f)), together plogp(e) + plogp(2f + 2l). The
/// difference falls with l, so bisection finds where it is 0.
pub(super) fn break_even_loop(edge: f64, entered: f64) -> f64 {
    if edge <= 0.0 {
        return 0.0;
    }
    let gain = |l: f64| {
        let apart = plogp(entered + 2.0 * edge) + 2.0 * (plogp(2.0 * edge + l) - 2.0 * plogp(edge));
        apart - plogp(entered) - plogp(2.0 * (edge + l))
    };
    let (mut low, mut high) = (0.0, edge);
    while gain(high) > 0.0 {
        (low, high) = (high, 2.0 * high);
    }
    // Halved 50 times, the interval is as narrow as numbers allow.
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if gain(middle) > 0.0 { low = middle } else { high = middle }
    }
    high
}

/// x log2 x, and 0 for what rounding has left of nothing.
pub(super) fn plogp(x: f64) -> f64 {
    if x < f64::MIN_POSITIVE { 0.0 } else { x * log2(x) }
}

/// The derivative of [`plogp`]: log2 x + log2 e.
pub(super) fn plogp_slope(x: f64) -> f64 {
    if x < f64::MIN_POSITIVE { f64::NEG_INFINITY } else { log2(x) + std::f64::consts::LOG2_E }
}

/// The parts into which the numbers from 1 to 2 are cut for [`log2`].
const CELLS: usize = 128;

/// For each part the reciprocal of its middle and minus the logarithm of that.
const TABLE: [(f64, f64); CELLS] = {
    let mut table = [(0.0, 0.0); CELLS];
    let mut i = 0;
    while i < CELLS {
        let inverse = 1.0 / (1.0 + (i as f64 + 0.5) / CELLS as f64);
        // log x = 2 artanh((x - 1) / (x + 1)); of the argument, at most 1/3, the 35th power is lost in rounding.
        let s = (inverse - 1.0) / (inverse + 1.0);
        let (mut sum, mut power) = (0.0, 35);
        while power > 0 {
            sum = sum * s * s + 1.0 / power as f64;
            power -= 2;
        }
        table[i] = (inverse, -2.0 * std::f64::consts::LOG2_E * s * sum);
        i += 1;
    }
    table
};

/// The logarithm of a positive normal number, with an error below 1e-15.
///
/// Made of what IEEE 754 fixes, unlike that of the system's library: which of two nearly equal moves is the
/// better one must not depend on the machine.
fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let (inverse, logarithm) = TABLE[(bits >> 45) as usize % CELLS];
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let r = mantissa * inverse - 1.0;
    // |r| <= 1/256: the seventh power is lost in rounding.
    let low = 1.0 - r * (1.0 / 2.0 - r * (1.0 / 3.0));
    let high = 1.0 / 4.0 - r * (1.0 / 5.0 - r * (1.0 / 6.0));
    let r2 = r * r;
    exponent as f64 + logarithm + std::f64::consts::LOG2_E * r * (low - r2 * r * high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_gains_nothing_at_its_break_even() {
        assert_eq!(break_even_loop(0.0, 0.5), 0.0);
        for edge in [1e-9, 1e-6, 1e-3, 0.3] {
            for entered in [0.0, 1e-4, 0.1, 0.9] {
                let l = break_even_loop(edge, entered);
                let vertex = Rates { visit: edge + l, enter: edge, exit: edge };
                let rest = Rates { visit: 0.5, enter: entered, exit: entered };
                let apart = modular_bits(&[rest, vertex, vertex]);
                let together = modular_bits(&[rest, vertex.with(vertex, 2.0 * edge)]);
                assert!((apart - together).abs() < 1e-10 * (1.0 + l), "{edge} {entered}: {apart} {together}");
            }
        }
    }

    #[test]
    fn log2_agrees_with_the_library() {
        let mut x = 1e-12;
        while x < 10.0 {
            assert!((log2(x) - x.log2()).abs() <= 1e-15 * x.log2().abs().max(1.0), "{x}");
            x *= 1.000_37;
        }
        assert_eq!(plogp(0.0), 0.0);
        assert_eq!(plogp(-1e-20), 0.0);
        assert!(plogp(1.0).abs() < 1e-15);
    }
}
