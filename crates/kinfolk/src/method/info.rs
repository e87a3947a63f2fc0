//! [`MethodInfo`], the static description of a method.

/// The input that a method uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The rows alone.
    Rows,
    /// The graph of nearest neighbours alone.
    Graph,
    /// The rows and their graph.
    RowsAndGraph,
    /// The rows up to some number of them, above it the graph; the graph alone is sufficient.
    RowsOrGraph,
}

/// The name of a method, when to use it, its cost and its requirements.
///
/// Built by [`MethodInfo::new`] and the methods that follow it, so that fields can be added:
///
/// ```
/// use kinfolk::{Input, MethodInfo};
/// static INFO: MethodInfo = MethodInfo::new("nearest", "Nearest", "Joins every row with its nearest neighbour")
///     .when("never: it is an example")
///     .cost("N")
///     .input(Input::Graph);
/// assert!(!INFO.needs_model);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MethodInfo {
    /// The name in the command, Python and tables.
    pub name: &'static str,
    /// The name in prose and charts.
    pub title: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// When to use it, in one line.
    pub when: &'static str,
    /// Operations beyond the search for neighbours; N rows of D columns, K neighbours, C clusters.
    pub cost: &'static str,
    /// The input that it uses.
    pub input: Input,
    /// Whether it needs a trained model.
    pub needs_model: bool,
    /// Whether `train` can train models for it.
    pub learns: bool,
    /// Whether it requires the number of clusters.
    pub needs_clusters: bool,
    /// Whether it can return levels, nested partitions from fine to coarse.
    pub levels: bool,
    /// Whether it is in the tables of the paper.
    pub in_paper: bool,
    /// Its colour in charts, as `#rrggbb`.
    pub color: &'static str,
}

impl MethodInfo {
    /// A method that needs rows and graph only.
    pub const fn new(name: &'static str, title: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            title,
            summary,
            when: "",
            cost: "",
            input: Input::RowsAndGraph,
            needs_model: false,
            learns: false,
            needs_clusters: false,
            levels: false,
            in_paper: false,
            color: "#777777",
        }
    }

    /// Sets when to use it.
    pub const fn when(mut self, when: &'static str) -> Self {
        self.when = when;
        self
    }

    /// Sets its cost beyond the search for neighbours.
    pub const fn cost(mut self, cost: &'static str) -> Self {
        self.cost = cost;
        self
    }

    /// Sets the input that it uses.
    pub const fn input(mut self, input: Input) -> Self {
        self.input = input;
        self
    }

    /// Needs a trained model, which `train` produces.
    pub const fn needs_model(mut self) -> Self {
        self.needs_model = true;
        self.learns = true;
        self
    }

    /// Can be trained, and works without.
    pub const fn learns(mut self) -> Self {
        self.learns = true;
        self
    }

    /// Requires the number of clusters.
    pub const fn needs_clusters(mut self) -> Self {
        self.needs_clusters = true;
        self
    }

    /// Can return levels.
    pub const fn levels(mut self) -> Self {
        self.levels = true;
        self
    }

    /// Is in the tables of the paper.
    pub const fn in_paper(mut self) -> Self {
        self.in_paper = true;
        self
    }

    /// Its colour in charts, as `#rrggbb`.
    pub const fn color(mut self, color: &'static str) -> Self {
        self.color = color;
        self
    }
}
