//! How long a run will take at least, said before it starts.

use crate::{Method, Problem, Progress};
use std::time::Duration;

/// Operations of a thread in a second. Products of matrices reach several times as much, everything else less.
const RATE: f64 = 2e10;

/// Runs that take longer are announced.
const LONG: Duration = Duration::from_secs(600);

/// Warns of a long run.
pub(crate) fn announce(method: &dyn Method, problem: &Problem, progress: &dyn Progress) {
    let Ok(rows) = problem.embeddings() else { return };
    let (n, dim) = (rows.len(), rows.dim());
    let seconds = method.operations(n, dim) / (RATE * rayon::current_num_threads() as f64);
    if seconds > LONG.as_secs_f64() {
        let name = method.info().name;
        progress.warn(&format!("{name} on {n} rows of {dim} columns takes about {}", words(seconds)));
    }
}

fn words(seconds: f64) -> String {
    match seconds / 60.0 {
        minutes if minutes < 90.0 => format!("{minutes:.0} minutes"),
        minutes if minutes < 48.0 * 60.0 => format!("{:.0} hours", minutes / 60.0),
        minutes => format!("{:.0} days", minutes / 60.0 / 24.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clusterer, Clustering, Context, Density, Embeddings, MethodInfo, Parameters, Result};
    use std::sync::Mutex;

    struct Slow(Density, f64);

    impl Method for Slow {
        fn info(&self) -> &'static MethodInfo {
            self.0.info()
        }
        fn parameters(&self) -> &dyn Parameters {
            self.0.parameters()
        }
        fn parameters_mut(&mut self) -> &mut dyn Parameters {
            self.0.parameters_mut()
        }
        fn operations(&self, rows: usize, dim: usize) -> f64 {
            self.1 * (rows * dim * rayon::current_num_threads()) as f64
        }
        fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
            self.0.run(problem, context)
        }
    }

    #[derive(Default)]
    struct Warnings(Mutex<Vec<String>>);

    impl Progress for Warnings {
        fn begin(&self, _stage: &str, _total: u64) {}
        fn advance(&self, _steps: u64) {}
        fn warn(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    #[test]
    fn long_runs_are_announced_and_short_ones_are_not() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let warnings = |operations: f64| {
            let warnings = Warnings::default();
            let method = Slow(Density::default(), operations);
            Clusterer::with(method).progress(&warnings).fit(&rows).unwrap();
            warnings.0.into_inner().unwrap()
        };
        assert!(warnings(1e9).is_empty());
        assert_eq!(warnings(1e13), ["density on 2 rows of 2 columns takes about 33 minutes"]);
        assert_eq!(warnings(1e14), ["density on 2 rows of 2 columns takes about 6 hours"]);
        assert_eq!(warnings(1e16), ["density on 2 rows of 2 columns takes about 23 days"]);
    }
}
