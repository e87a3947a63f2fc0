//! The result of a method: labels, the reasons for them, and a report of the run.

use crate::context::Timings;
use crate::{Context, EdgeEvidence, GraphReport, Levels, Links, Method};

/// Labels, the reasons for them, and a report of the run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Clustering {
    /// The cluster of every row: 0.. by descending size, ties by smallest member; -1 for noise, if the method is
    /// configured to leave it unlabelled.
    pub labels: Vec<i64>,
    /// The reasons for the labels.
    pub reason: Reason,
    /// Nested partitions from fine to coarse, if they were requested.
    pub levels: Option<Levels>,
    /// The report of the run.
    pub report: Report,
}

/// The reasons for a clustering.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// None: the method returns labels only.
    None,
    /// Each row was linked to a neighbour of higher confidence, and weak links were cut.
    Tree(Tree),
    /// The most probable edges inside and between clusters.
    Edges(EdgeEvidence),
}

/// Links to neighbours of higher confidence, cut at tau.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// Every row with its parents, their similarities and its confidence; `links.cut(tau)` cuts elsewhere.
    pub links: Links,
    /// Links of at most this similarity were cut.
    pub tau: f32,
}

/// The report of a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The method's name.
    pub method: &'static str,
    /// Its parameters as they were applied, including those that it chose itself, such as tau.
    pub parameters: Vec<(&'static str, String)>,
    /// The graph, if one was used.
    pub graph: Option<GraphReport>,
    /// The graph that was rebuilt from a network's embeddings, if one was.
    pub rebuilt_graph: Option<GraphReport>,
    /// The number of noise rows, however they are labelled; `None` from methods without noise.
    pub noise_rows: Option<usize>,
    /// Notes for the reader of the result.
    pub notes: Vec<String>,
    /// How long each stage took.
    pub timings: Timings,
}

impl Report {
    /// The report of a run that ends now.
    pub fn new(method: &dyn Method, graph: Option<GraphReport>, context: &Context) -> Self {
        Report {
            method: method.info().name,
            parameters: method.parameters().values(),
            graph,
            rebuilt_graph: None,
            noise_rows: None,
            notes: Vec::new(),
            timings: context.take_timings(),
        }
    }

    /// Sets or adds a parameter.
    pub fn set(&mut self, name: &'static str, value: impl ToString) {
        let value = value.to_string();
        match self.parameters.iter_mut().find(|parameter| parameter.0 == name) {
            Some(parameter) => parameter.1 = value,
            None => self.parameters.push((name, value)),
        }
    }

    /// K of the graph that was used.
    pub fn k(&self) -> Option<usize> {
        self.graph.as_ref().map(|graph| graph.k)
    }
}

impl Clustering {
    /// The result of a method.
    pub fn new(labels: Vec<i64>, reason: Reason, report: Report) -> Self {
        Self { labels, reason, levels: None, report }
    }

    /// The same with levels.
    pub fn with_levels(mut self, levels: Option<Levels>) -> Self {
        self.levels = levels;
        self
    }

    /// The number of clusters; noise does not count.
    pub fn len(&self) -> usize {
        self.labels.iter().max().map_or(0, |&last| (last + 1) as usize)
    }

    /// True when there is no cluster.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows of each cluster.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.len()];
        self.labels.iter().filter(|&&label| label >= 0).for_each(|&label| sizes[label as usize] += 1);
        sizes
    }

    /// The tree of links, from methods that build one.
    pub fn tree(&self) -> Option<&Tree> {
        match &self.reason {
            Reason::Tree(tree) => Some(tree),
            _ => None,
        }
    }

    /// The edges inside and between clusters, from methods that estimate edge probabilities.
    pub fn edges(&self) -> Option<&EdgeEvidence> {
        match &self.reason {
            Reason::Edges(edges) => Some(edges),
            _ => None,
        }
    }
}
