//! What a run will need, said before it starts, and refused if it cannot be had.

use crate::error::gigabytes;
use crate::knn::expected_time;
use crate::{Context, Method, Problem, Result};
use std::time::Duration;

/// Operations of a thread in a second. Products of matrices reach several times as much, everything else less.
const RATE: f64 = 2e10;

/// Runs that take longer are announced.
const NOTABLE: Duration = Duration::from_secs(30);
/// There is a warning of runs that take longer.
const LONG: Duration = Duration::from_secs(600);

/// Sets of fewer rows are searched before they could be announced.
const FEW: usize = 20_000;
/// The K of methods that have no other.
const USUAL_K: usize = 80;

/// Announces a run that takes long, and refuses one that needs more memory than it may use.
pub(crate) fn announce(method: &dyn Method, problem: &Problem, context: &Context) -> Result<()> {
    let Ok(rows) = problem.embeddings() else { return Ok(()) };
    let (n, dim, progress) = (rows.len(), rows.dim(), context.progress());
    let k = problem.given_graph().map_or(problem.k().unwrap_or(USUAL_K).min(n - 1), |graph| graph.k());
    let exact = problem.search().recall(n) == 1.0;
    let name = method.info().name;
    let memory = method.memory(n, dim, k, exact);
    let what = format!("{name} on {n} rows of {dim} columns");
    context.memory().check(memory, || format!("{what} with {k} neighbours"))?;
    let own = method.operations(n, dim) / (RATE * rayon::current_num_threads() as f64);
    let searches = n > FEW && problem.given_graph().is_none() && method.uses_graph(n);
    let search = if searches { expected_time(n, dim, exact).as_secs_f64() } else { 0.0 };
    if own + search > NOTABLE.as_secs_f64() {
        let (time, memory) = (words(own + search), gigabytes(memory));
        progress.forecast(&format!("{what}: at least {time}, {memory} of memory"));
    }
    if own > LONG.as_secs_f64() {
        progress.warn(&format!("{what} takes about {}", words(own)));
    }
    Ok(())
}

fn words(seconds: f64) -> String {
    match seconds / 60.0 {
        minutes if minutes < 1.5 => format!("{seconds:.0} seconds"),
        minutes if minutes < 90.0 => format!("{minutes:.0} minutes"),
        minutes if minutes < 48.0 * 60.0 => format!("{:.0} hours", minutes / 60.0),
        minutes => format!("{:.0} days", minutes / 60.0 / 24.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Clusterer, Clustering, Density, Embeddings, Error, KnnParams, MethodInfo, Parameters, Progress,
        knn_graph,
    };
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

    #[test]
    fn what_needs_more_memory_than_is_allowed_is_refused() {
        let rows: Vec<f32> = (0..400).map(|at| ((at * at) % 17) as f32 - 3.0).collect();
        let rows = Embeddings::from_rows(rows, 4, "test").unwrap();
        let error = Clusterer::new().memory(20_000).fit(&rows).unwrap_err();
        assert!(matches!(error, Error::Memory { budget: 20_000, .. }));
        let message = error.to_string();
        assert!(message.starts_with("kin on 100 rows of 4 columns with 80 neighbours needs 0."), "{message}");
        assert!(message.ends_with(" MB of memory, 0.0 MB may be used"), "{message}");
        // A given graph needs no search.
        let graph = knn_graph(&rows, &KnnParams { k: 2, ..KnnParams::default() }, &()).unwrap().0;
        Clusterer::with(Density::default()).memory(20_000).fit_graph(&rows, &graph).unwrap();
        assert_eq!(Clusterer::new().memory(1 << 30).fit(&rows).unwrap().labels.len(), 100);
    }
}
