//! What is to be clustered: rows, their graph, or both. The one place that searches for neighbours, truncates K and
//! checks that everything is about the same rows.

use crate::knn::resumed_knn_graph;
use crate::{Context, Embeddings, Error, KnnGraph, KnnParams, KnnReport, Result, Search, knn_graph};
use std::borrow::Cow;

/// The largest K of a search. Methods gain nothing from more than a few hundred, and time
/// and memory grow with K.
pub const MAX_K: usize = 1024;

/// Rows to cluster, their graph if it is known, and how to search for it if not.
///
/// ```
/// use kinfolk::{Clusterer, Embeddings, Problem, Search};
/// let embeddings = Embeddings::from_rows(vec![1.0, 0.1, 1.0, 0.0, 0.0, 1.0], 2, "example")?;
/// let problem = Problem::new(&embeddings).with_k(Some(2))?.with_search(Search::Exact);
/// assert_eq!(Clusterer::new().run(&problem)?.labels.len(), 3);
/// # Ok::<(), kinfolk::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Problem<'a> {
    embeddings: Option<&'a Embeddings>,
    graph: Option<Cow<'a, KnnGraph>>,
    labels: Option<&'a [i64]>,
    k: Option<usize>,
    search: Search,
}

/// A graph, and how it was found.
#[derive(Debug, Clone)]
pub struct Neighbours<'a> {
    /// The graph.
    pub graph: Cow<'a, KnnGraph>,
    /// Its K, and the search if there was one.
    pub report: GraphReport,
}

/// What is known of a graph that was used.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GraphReport {
    /// Neighbours of each vertex.
    pub k: usize,
    /// How it was found; `None` if it was given.
    pub search: Option<KnnReport>,
}

impl<'a> Problem<'a> {
    /// Rows, whose neighbours will be searched for where a method needs them.
    pub fn new(embeddings: &'a Embeddings) -> Self {
        Problem { embeddings: Some(embeddings), graph: None, labels: None, k: None, search: Search::Auto }
    }

    /// A graph without its rows, for methods that look at neighbours and nothing else.
    pub fn of_graph(graph: &'a KnnGraph) -> Self {
        let graph = Some(Cow::Borrowed(graph));
        Problem { embeddings: None, graph, labels: None, k: None, search: Search::Auto }
    }

    /// With a graph that was found before. Refuses one of another number of vertices.
    pub fn with_graph(mut self, graph: &'a KnnGraph) -> Result<Self> {
        self.check_length("graph", "vertices (one per embedding)", graph.len())?;
        self.graph = Some(Cow::Borrowed(graph));
        let k = self.k;
        self.with_k(k)
    }

    /// With this many neighbours of each row instead of the method's default. A given graph is cut to them, and refused
    /// if it has fewer.
    pub fn with_k(mut self, k: Option<usize>) -> Result<Self> {
        self.k = k;
        let (Some(k), Some(graph)) = (k, &self.graph) else { return Ok(self) };
        if k > graph.k() {
            let (place, what) = ("graph".to_owned(), "neighbours of each vertex".to_owned());
            return Err(Error::Length { place, what, expected: k, found: graph.k() });
        }
        if k < graph.k() {
            self.graph = Some(Cow::Owned(graph.nearest(k)?));
        }
        Ok(self)
    }

    /// With another search than [`Search::Auto`].
    pub fn with_search(mut self, search: Search) -> Self {
        self.search = search;
        self
    }

    /// With true labels, one per row: for training, and for confidences that are computed from them.
    pub fn with_labels(mut self, labels: &'a [i64]) -> Result<Self> {
        self.check_length("labels", "labels (one per embedding)", labels.len())?;
        self.labels = Some(labels);
        Ok(self)
    }

    fn check_length(&self, place: &str, what: &str, found: usize) -> Result<()> {
        if found == self.len() {
            return Ok(());
        }
        let (place, what) = (place.to_owned(), what.to_owned());
        Err(Error::Length { place, what, expected: self.len(), found })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        let vertices = || self.graph.as_ref().map_or(0, |graph| graph.len());
        self.embeddings.map_or_else(vertices, Embeddings::len)
    }

    /// True when there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows; an error where only their graph is known.
    pub fn embeddings(&self) -> Result<&'a Embeddings> {
        self.embeddings.ok_or_else(|| Error::Parameter {
            field: "embeddings",
            expected: "the rows, which this method needs",
            found: "only their graph".to_owned(),
        })
    }

    /// Whether the rows are known.
    pub fn has_embeddings(&self) -> bool {
        self.embeddings.is_some()
    }

    /// The graph, if it was given.
    pub fn given_graph(&self) -> Option<&KnnGraph> {
        self.graph.as_deref()
    }

    /// True labels; an error without them.
    pub fn labels(&self) -> Result<&'a [i64]> {
        self.labels.ok_or_else(|| Error::Parameter {
            field: "labels",
            expected: "true labels, one per row",
            found: "none".to_owned(),
        })
    }

    /// The requested number of neighbours.
    pub fn k(&self) -> Option<usize> {
        self.k
    }

    /// How neighbours are searched for.
    pub fn search(&self) -> Search {
        self.search
    }

    /// Parameters of a search for the requested K, or else `default_k`.
    pub fn knn_params(&self, default_k: usize, context: &Context) -> KnnParams {
        let k = self.k.unwrap_or(default_k);
        KnnParams { k, search: self.search, seed: context.seed(), ..KnnParams::default() }
    }

    /// The given graph as it is, or else that of the K nearest neighbours, by default `default_k`.
    pub fn neighbours(&self, default_k: usize, context: &Context) -> Result<Neighbours<'_>> {
        match &self.graph {
            Some(graph) => Ok(Neighbours {
                report: GraphReport { k: graph.k(), search: None },
                graph: Cow::Borrowed(graph),
            }),
            None => search(self.embeddings()?, &self.knn_params(default_k, context), "knn", context),
        }
    }

    /// The graph with exactly `k` neighbours. A given graph with more is cut; one with fewer is refused, unless it is
    /// only one fewer: the published layout counts a row as its own first neighbour.
    pub fn nearest(&self, k: usize, context: &Context) -> Result<Neighbours<'_>> {
        let Some(graph) = &self.graph else { return self.neighbours(k, context) };
        let k = k.min(self.len().saturating_sub(1));
        let graph = match graph.k() {
            found if found + 1 < k => {
                let (place, what) = ("graph".to_owned(), "neighbours, as the model expects".to_owned());
                return Err(Error::Length { place, what, expected: k, found });
            }
            found if found > k => Cow::Owned(graph.nearest(k)?),
            _ => Cow::Borrowed(&**graph),
        };
        Ok(Neighbours { report: GraphReport { k: graph.k(), search: None }, graph })
    }
}

/// Searches for neighbours, as a stage of a run.
pub fn search<'a>(
    embeddings: &Embeddings,
    params: &KnnParams,
    stage: &'static str,
    context: &Context,
) -> Result<Neighbours<'a>> {
    let k = params.k.min(embeddings.len().saturating_sub(1));
    if k > MAX_K {
        return Err(Error::Parameter {
            field: "k",
            expected: "at most 1024 neighbours",
            found: k.to_string(),
        });
    }
    let (graph, report) = context.timed(stage, || {
        let Some(work) = context.work() else { return knn_graph(embeddings, params, context.progress()) };
        let key = params.key().with_rows(embeddings);
        work.keep(stage, &key, || {
            let journal = work.journal(stage, &key)?;
            resumed_knn_graph(embeddings, params, Some(&journal), context.progress())
        })
    })?;
    Ok(Neighbours { report: GraphReport { k: graph.k(), search: Some(report) }, graph: Cow::Owned(graph) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: usize) -> Embeddings {
        let rows = (0..n).flat_map(|i| [(i as f32 / n as f32).cos(), (i as f32 / n as f32).sin()]).collect();
        Embeddings::from_rows(rows, 2, "test").unwrap()
    }

    fn message<T>(result: Result<T>) -> String {
        result.err().unwrap().to_string()
    }

    #[test]
    fn a_given_graph_is_cut_to_k_and_never_searched() {
        let rows = line(9);
        let graph = knn_graph(&rows, &KnnParams { k: 5, ..KnnParams::default() }, &()).unwrap().0;
        let context = Context::default();
        let given = Problem::new(&rows).with_graph(&graph).unwrap();
        assert_eq!(given.neighbours(3, &context).unwrap().report, GraphReport { k: 5, search: None });
        assert_eq!(given.nearest(3, &context).unwrap().graph.k(), 3);
        assert_eq!(given.nearest(6, &context).unwrap().graph.k(), 5);
        assert_eq!(
            message(given.nearest(7, &context)),
            "graph: expected 7 neighbours, as the model expects, found 5"
        );
        let cut = given.clone().with_k(Some(2)).unwrap();
        assert_eq!(cut.neighbours(8, &context).unwrap().graph.neighbours(0).0, &graph.neighbours(0).0[..2]);
        assert_eq!(message(given.with_k(Some(6))), "graph: expected 6 neighbours of each vertex, found 5");
        assert!(context.take_timings().is_empty());
        let problem = Problem::new(&rows);
        let searched = problem.neighbours(3, &context).unwrap();
        assert!(searched.report.search.is_some() && context.take_timings()[0].0 == "knn");
    }

    #[test]
    fn what_is_about_other_rows_is_refused() {
        let (rows, others) = (line(4), line(5));
        let graph = knn_graph(&others, &KnnParams { k: 2, ..KnnParams::default() }, &()).unwrap().0;
        assert_eq!(
            message(Problem::new(&rows).with_graph(&graph)),
            "graph: expected 4 vertices (one per embedding), found 5"
        );
        assert_eq!(
            message(Problem::new(&rows).with_labels(&[1, 2])),
            "labels: expected 4 labels (one per embedding), found 2"
        );
        assert!(message(Problem::of_graph(&graph).embeddings()).starts_with("embeddings: expected the rows"));
    }

    #[test]
    fn a_k_beyond_sense_is_refused() {
        let rows = line(2000);
        let found =
            |k| Problem::new(&rows).with_k(Some(k)).unwrap().neighbours(80, &Context::default()).map(drop);
        assert_eq!(message(found(1500)), "k: expected at most 1024 neighbours, found 1500");
        assert_eq!(message(found(100_000)), "k: expected at most 1024 neighbours, found 1999");
    }
}
