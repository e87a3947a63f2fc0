//! What a run will need, said before it starts, and refused if it cannot be had.

use crate::error::gigabytes;
use crate::knn::{expected_time, needed_memory};
use crate::{Context, Embeddings, KnnParams, Method, Problem, Result};
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
/// Bytes that a kept stage takes for every edge: blocks of the search, the neighbours, the probabilities.
const KEPT: usize = 8 + 8 + 4;

/// What a run is expected to need.
#[derive(Default)]
struct Needs {
    seconds: f64,
    memory: u64,
    disk: u64,
}

impl Needs {
    /// Announces a run that takes long, and refuses one that needs more memory than it may use.
    fn announce(&self, what: &str, k: usize, context: &Context) -> Result<()> {
        context.memory().check(self.memory, || format!("{what} with {k} neighbours"))?;
        if self.seconds > NOTABLE.as_secs_f64() {
            let disk = match self.disk {
                0 => String::new(),
                disk => format!(", {} of disk", gigabytes(disk)),
            };
            let (time, memory) = (words(self.seconds), gigabytes(self.memory));
            context.progress().forecast(&format!("{what}: at least {time}, {memory} of memory{disk}"));
        }
        Ok(())
    }
}

/// Announces what a method needs.
pub(crate) fn announce(method: &dyn Method, problem: &Problem, context: &Context) -> Result<()> {
    let Ok(rows) = problem.embeddings() else { return Ok(()) };
    let (n, dim) = (rows.len(), rows.dim());
    let exact = problem.search().recall(n) == 1.0;
    let k = k_of(problem);
    let own = seconds(method.operations(n, dim));
    let searches = problem.given_graph().is_none() && method.uses_graph(n);
    let large = method.rewritten_rows(n, dim);
    let written = if context.scratch().is_some() && context.memory().is_large(large) { large } else { 0 };
    let kept = if context.work().is_some() { n * (KEPT * k + 8) } else { 0 };
    let (search, of_search) = match searches {
        true => (search_seconds(n, dim, exact), needed_memory(n, dim, k, exact)),
        false => (0.0, 0),
    };
    let needs = Needs {
        seconds: own + search,
        memory: method.memory(n, dim, k).max(of_search) + (large - written),
        disk: written + kept as u64,
    };
    let what = describe(method.info().name, rows);
    needs.announce(&what, k, context)?;
    if own > LONG.as_secs_f64() {
        context.progress().warn(&format!("{what} takes about {}", words(own)));
    }
    Ok(())
}

/// Announces what a search needs, if it takes long, and refuses one that needs more memory than the context allows.
pub fn announce_search(rows: &Embeddings, params: &KnnParams, context: &Context) -> Result<()> {
    let (n, dim) = (rows.len(), rows.dim());
    let (k, exact) = (params.k.min(n - 1), params.search.recall(n) == 1.0);
    let (seconds, memory) = (search_seconds(n, dim, exact), needed_memory(n, dim, k, exact));
    let file = (8 * n * k) as u64;
    Needs { seconds, memory, disk: file }.announce(&describe("the search", rows), k, context)
}

/// Announces what training needs, which takes so many operations besides the search, as [`announce_search`] does.
pub fn announce_training(name: &str, operations: f64, problem: &Problem, context: &Context) -> Result<()> {
    let rows = problem.embeddings()?;
    let (n, dim) = (rows.len(), rows.dim());
    let (k, exact) = (k_of(problem), problem.search().recall(n) == 1.0);
    let search = if problem.given_graph().is_none() { search_seconds(n, dim, exact) } else { 0.0 };
    // The features of all rows, beside those of their neighbourhoods.
    let memory = needed_memory(n, dim, k, exact).max((n * (8 * k + 8 * dim)) as u64);
    let needs = Needs { seconds: search + seconds(operations), memory, disk: 0 };
    needs.announce(&describe(&format!("training {name}"), rows), k, context)
}

fn describe(what: &str, rows: &Embeddings) -> String {
    format!("{what} on {} rows of {} columns", rows.len(), rows.dim())
}

fn k_of(problem: &Problem) -> usize {
    let few = || problem.k().unwrap_or(USUAL_K).min(problem.len() - 1);
    problem.given_graph().map_or_else(few, |graph| graph.k())
}

fn seconds(operations: f64) -> f64 {
    operations / (RATE * rayon::current_num_threads() as f64)
}

fn search_seconds(n: usize, dim: usize, exact: bool) -> f64 {
    if n > FEW { expected_time(n, dim, exact).as_secs_f64() } else { 0.0 }
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
        Search, knn_graph,
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
    struct Said {
        forecasts: Mutex<Vec<String>>,
        warnings: Mutex<Vec<String>>,
    }

    impl Progress for Said {
        fn begin(&self, _stage: &str, _total: u64) {}
        fn advance(&self, _steps: u64) {}
        fn forecast(&self, text: &str) {
            self.forecasts.lock().unwrap().push(text.to_owned());
        }
        fn warn(&self, text: &str) {
            self.warnings.lock().unwrap().push(text.to_owned());
        }
    }

    #[test]
    fn long_runs_are_announced_and_short_ones_are_not() {
        let rows = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let warnings = |operations: f64| {
            let said = Said::default();
            let method = Slow(Density::default(), operations);
            Clusterer::with(method).progress(&said).fit(&rows).unwrap();
            said.warnings.into_inner().unwrap()
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

    #[test]
    fn searches_and_training_are_announced_with_all_they_need() {
        let rows = Embeddings::from_rows(vec![1.0; 1 << 21], 2, "test").unwrap();
        let params = KnnParams { search: Search::Exact, ..KnnParams::default() };
        let said = Said::default();
        announce_search(&rows, &params, &Context::new(&said).with_memory(Some(1 << 40))).unwrap();
        let labels = vec![0; 1 << 20];
        let problem = Problem::new(&rows).with_search(Search::Exact).with_labels(&labels).unwrap();
        let problem = problem.with_k(Some(10)).unwrap();
        let operations = RATE * 3600.0 * rayon::current_num_threads() as f64;
        announce_training("gcn-v", operations, &problem, &Context::new(&said).with_memory(Some(1 << 40)))
            .unwrap();
        let forecasts = said.forecasts.into_inner().unwrap();
        assert_eq!(forecasts.len(), 2);
        let text = &forecasts[0];
        assert!(text.starts_with("the search on 1048576 rows of 2 columns: at least "), "{text}");
        assert!(text.ends_with(", 2.7 GB of memory, 671 MB of disk"), "{text}");
        let text = &forecasts[1];
        assert!(text.starts_with("training gcn-v on 1048576 rows of 2 columns: at least "), "{text}");
        assert!(text.ends_with(", 340 MB of memory"), "{text}");
        let small = Context::default().with_memory(Some(1 << 20));
        let error = announce_search(&rows, &params, &small).unwrap_err().to_string();
        assert_eq!(
            error,
            "the search on 1048576 rows of 2 columns with 80 neighbours needs 2.7 GB of memory, 1.0 MB may be used"
        );
        let error = announce_training("gcn-v", 0.0, &problem, &small).unwrap_err().to_string();
        assert!(
            error.starts_with("training gcn-v on 1048576 rows of 2 columns with 10 neighbours needs"),
            "{error}"
        );
    }
}
