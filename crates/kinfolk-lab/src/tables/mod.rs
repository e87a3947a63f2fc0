//! Every method of the registry on the same sets.
//!
//! Every method has the same graph, the same number of settings to choose from (`grid`) and the same time limit. The setting
//! with the best mean of pairwise and BCubed F on the training part is then used on the test parts. Networks are fitted to the
//! training part (`fit`). Labels of the test part are used only for the printed scores.
//!
//! | file | contents |
//! |---|---|
//! | `methods` | the registry in the order of the tables |
//! | `part` | labelled rows and their graph |
//! | `options` | methods, time limit, output directory |
//! | `grid` | the settings of each method that are tried |
//! | `fit` | the training of methods that need a model |
//! | `comparison` | choosing a setting, running within a time limit (`limit`, `outcome`) |
//! | `report` | tables and notes on the terminal and in files |
//! | `paper` | the figures of the paper, shown beside ours |
//! | `super_vertices` | what they save and cost, as a part of `runtime` |
//! | `table1`, `table2`, `runtime`, `calibrate`, `published` | the tables |
//!
//! Cost: for each method [`grid::SETTINGS`] runs on the training part and one on each test part; the fitting of networks.

pub mod calibrate;
mod comparison;
mod fit;
mod grid;
mod limit;
mod methods;
mod options;
mod outcome;
mod paper;
mod part;
pub mod published;
mod report;
pub mod runtime;
mod super_vertices;
pub mod table1;
pub mod table2;

pub use comparison::Comparison;
pub use options::TableOptions;
pub use part::Part;
