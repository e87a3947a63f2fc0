//! The density tree: kNN graph, confidence, nearest candidate of higher confidence, cut at tau.
//!
//! It needs no labels and no training, and is the baseline of the networks of the paper. With a confidence that is computed
//! from true labels it gives an upper bound for the tree.
//!
//! Cost beyond the graph: O(N K).

use crate::{
    Clustering, Context, DEFAULT_RADIUS, Embeddings, KnnGraph, Method, MethodInfo, ParamKind, ParamValue,
    Parameters, Problem, Reason, Report, Result, Tree, average_ranks, natural_tau, nearest_candidates, s_avg,
    s_center, s_nbr, u_num, u_weight,
};

/// A definition of vertex confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    /// Number of neighbours within a radius.
    UNum,
    /// Sum of the similarities of the neighbours within a radius.
    UWeight,
    /// Eq. 1 of the paper, from true labels: an oracle.
    SNbr,
    /// Mean similarity to the other rows of the same label: an oracle.
    SAvg,
    /// Similarity to the centre of the rows of the same label: an oracle.
    SCenter,
}

crate::word_values!(Confidence: "u-num, u-weight, s-nbr, s-avg or s-center",
    "u-num" => Confidence::UNum, "u-weight" => Confidence::UWeight, "s-nbr" => Confidence::SNbr,
    "s-avg" => Confidence::SAvg, "s-center" => Confidence::SCenter);

impl Confidence {
    /// Whether it is computed from true labels.
    pub fn needs_labels(self) -> bool {
        matches!(self, Confidence::SNbr | Confidence::SAvg | Confidence::SCenter)
    }
}

/// One confidence, or several that are averaged by rank ([`average_ranks`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confidences(pub Vec<Confidence>);

impl ParamValue for Confidences {
    const KIND: ParamKind = ParamKind::Text;
    const EXPECTED: &'static str = "u-num, u-weight, s-nbr, s-avg or s-center, several separated by commas";

    fn parse(text: &str) -> Option<Self> {
        text.split(',').map(Confidence::parse).collect::<Option<_>>().map(Confidences)
    }

    fn format(&self) -> String {
        self.0.iter().map(ParamValue::format).collect::<Vec<_>>().join(",")
    }
}

crate::parameters! {
    /// The density tree.
    ///
    /// ```
    /// use kinfolk::{Clusterer, Density, Embeddings};
    ///
    /// let rows = vec![1.0, 0.1, 1.0, 0.0, 0.9, 0.1, -0.1, 1.0, 0.0, 1.0];
    /// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
    /// let found = Clusterer::with(Density { tau: Some(0.8), ..Density::default() }).fit(&embeddings)?;
    /// assert_eq!(found.labels, [0, 0, 0, 1, 1]);
    /// // Cutting at another tau does not repeat the work.
    /// assert_eq!(found.tree().unwrap().links.cut(-1.0), [0; 5]);
    /// # Ok::<(), kinfolk::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    pub struct Density {
        /// The confidence; several are averaged by rank. Those that begin with s are computed from true labels and give an
        /// upper bound.
        pub confidence: Confidences = Confidences(vec![Confidence::UWeight]);
        /// Cosine distance within which u-num and u-weight count neighbours.
        pub radius: f32 = DEFAULT_RADIUS, "above 0, at most 2", |radius| *radius > 0.0 && *radius <= 2.0;
        /// Links of each row to rows of higher confidence: 1 builds trees, more builds directed acyclic graphs.
        pub m: usize = 1, "1 or more", |m| *m >= 1;
        /// Links of at most this similarity are cut; auto derives it from the data.
        pub tau: Option<f32> = None, "a similarity from -1 to 1",
            |tau| tau.is_none_or(|tau| (-1.0..=1.0).contains(&tau));
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "density",
    "Density tree",
    "Links every row to its nearest neighbour of higher density and cuts weak links",
)
.when("as the baseline of the paper's framework, or when a similarity threshold is known")
.cost("N K")
.color("#8c6d31");

impl Method for Density {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn parameters(&self) -> &dyn Parameters {
        self
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        self
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.check()?;
        let embeddings = problem.embeddings()?;
        if self.confidence.0.iter().any(|confidence| confidence.needs_labels()) {
            problem.labels()?;
        }
        let found = problem.neighbours(80, context)?;
        let graph = &*found.graph;
        let confidence = context.timed("confidence", || self.estimate(problem, embeddings, graph))?;
        let links = context.timed("connectivity", || nearest_candidates(graph, &confidence, self.m))?;
        let (labels, tau) = context.timed("partition", || {
            let tau = self.tau.unwrap_or_else(|| natural_tau(embeddings, graph, context.seed()));
            (links.cut(tau), tau)
        });
        let mut report = Report::new(self, Some(found.report), context);
        report.set("tau", tau);
        report.set("tau_given", self.tau.is_some());
        Ok(Clustering::new(labels, Reason::Tree(Tree { links, tau }), report))
    }
}

impl Density {
    fn estimate(&self, problem: &Problem, embeddings: &Embeddings, graph: &KnnGraph) -> Result<Vec<f32>> {
        let one = |confidence: &Confidence| match confidence {
            Confidence::UNum => u_num(graph, self.radius),
            Confidence::UWeight => u_weight(graph, self.radius),
            Confidence::SNbr => s_nbr(graph, problem.labels()?),
            Confidence::SAvg => s_avg(embeddings, problem.labels()?),
            Confidence::SCenter => s_center(embeddings, problem.labels()?),
        };
        match &self.confidence.0[..] {
            [confidence] => one(confidence),
            several => {
                let all: Vec<Vec<f32>> = several.iter().map(one).collect::<Result<_>>()?;
                average_ranks(&all.iter().map(|confidence| (&confidence[..], 1.0)).collect::<Vec<_>>())
            }
        }
    }
}
