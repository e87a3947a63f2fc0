//! [`Method`], the interface of all clustering methods: description, parameters, and how to run it.
//!
//! A method is a struct that holds its parameters. [`MethodInfo`] describes it for code that knows it only by name: the
//! command, the Python package, the benchmark tables and the generated documentation.

mod info;
mod parameters;

pub use info::{Input, MethodInfo};
pub use parameters::{ParamKind, ParamSpec, ParamValue, Parameters, param_spec, unknown_parameter};

use crate::{Clustering, Context, Problem, Result};

/// A clustering method with its parameters.
///
/// ```
/// use kinfolk::{Context, Density, Embeddings, Method, Problem};
///
/// // Three rows near one direction, two near another.
/// let rows = vec![1.0, 0.1, 1.0, 0.0, 0.9, 0.1, -0.1, 1.0, 0.0, 1.0];
/// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
/// let method = Density { tau: Some(0.8), ..Density::default() };
/// let found = method.run(&Problem::new(&embeddings), &Context::default())?;
/// assert_eq!(found.labels, [0, 0, 0, 1, 1]);
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub trait Method: Send + Sync {
    /// Its name, when to use it, what it needs.
    fn info(&self) -> &'static MethodInfo;

    /// Its parameters by name.
    fn parameters(&self) -> &dyn Parameters;

    /// Its parameters by name, to change them.
    fn parameters_mut(&mut self) -> &mut dyn Parameters;

    /// Whether it works on the graph of nearest neighbours, for a problem of this many rows.
    fn uses_graph(&self, _rows: usize) -> bool {
        self.info().input != Input::Rows
    }

    /// Roughly how many operations it takes for rows of `dim` columns beyond the search for neighbours, so that long runs
    /// can be announced; 0 if that grows no faster than the graph.
    fn operations(&self, _rows: usize, _dim: usize) -> f64 {
        0.0
    }

    /// About how many bytes of memory it needs after the search, for rows of `dim` columns with `k` neighbours, besides pages of
    /// mapped files; 0 if that is no more than the search needs.
    fn memory(&self, _rows: usize, _dim: usize, _k: usize) -> u64 {
        0
    }

    /// Bytes of rows that it writes anew, which go to a file where that is much of the memory ([`Context::scratch`]).
    fn rewritten_rows(&self, _rows: usize, _dim: usize) -> u64 {
        0
    }

    /// Clusters the rows of a problem.
    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering>;
}
