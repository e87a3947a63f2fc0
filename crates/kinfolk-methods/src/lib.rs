//! Every clustering method of kinfolk by its name.
//!
//! [`METHODS`] is the registry. The command's `--method`, `--help`, `--param` and checks of options, the Python package's
//! signatures and docstrings, the benchmark tables and `docs/methods.md` are derived from it. A new method is one file with a
//! struct that implements [`Method`](kinfolk::Method), and one line here.
//!
//! ```
//! use kinfolk::Clusterer;
//! # fn main() -> kinfolk::Result<()> {
//! # let embeddings = kinfolk::Embeddings::from_rows(vec![1.0, 0.1, 1.0, 0.0, 0.0, 1.0], 2, "example")?;
//! let mut method = kinfolk_methods::new("dbscan")?;
//! method.parameters_mut().set("eps", "0.4")?;
//! let found = Clusterer::with_boxed(method).fit(&embeddings)?;
//! assert_eq!(found.labels.len(), 3);
//! # Ok(())
//! # }
//! ```

mod document;
mod registry;

pub use document::methods_markdown;
pub use registry::{METHODS, MethodEntry, find, learner, load, names, new};
