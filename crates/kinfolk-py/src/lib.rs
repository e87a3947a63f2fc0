//! The extension module of the Python package `kinfolk`: the library's functions with NumPy arrays. The public interface
//! is in `python/kinfolk`, which calls these functions with positional arguments.

mod album;
mod arrays;
mod cluster;
mod errors;
mod functions;
mod job;
mod levels;
mod predict;
mod pseudo_labels;
mod registry;
mod train;
mod work;

use pyo3::prelude::*;

#[pymodule]
mod _kinfolk {
    #[pymodule_export]
    use crate::album::StoredAlbum;
    #[pymodule_export]
    use crate::cluster::{cluster, method_of};
    #[pymodule_export]
    use crate::errors::ZeroRow;
    #[pymodule_export]
    use crate::functions::{explain, knn_graph, run, scores, synth, write};
    #[pymodule_export]
    use crate::job::StoredJob;
    #[pymodule_export]
    use crate::levels::{branches, curve, cut, levels};
    #[pymodule_export]
    use crate::predict::FittedPredictor;
    #[pymodule_export]
    use crate::pseudo_labels::pseudo_labels;
    #[pymodule_export]
    use crate::registry::methods;
    #[pymodule_export]
    use crate::train::train;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
