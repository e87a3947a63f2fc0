//! Explains why a row is in its cluster, and why two rows are in one cluster or not.

use crate::review::trust;
use crate::{Clustering, Edge, Embeddings, Error, Reason, Result};
use std::fmt::Write;

/// The reason for the cluster of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowReason {
    /// Its cluster; -1 for noise.
    pub cluster: i64,
    /// The confidence of the row, as defined by the method.
    pub confidence: Option<f32>,
    /// The row it is linked to, and their similarity. A link to another cluster was cut.
    pub parent: Option<(u32, f32)>,
    /// More about that link, from methods that estimate edge probabilities.
    pub edge: Option<Edge>,
    /// The most probable edge to another cluster: the other row, similarity and probability.
    pub outside: Option<(u32, f32, f32)>,
}

/// The threshold that an edge must exceed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Criterion {
    /// A probability.
    Probability(f32),
    /// A similarity, tau.
    Similarity(f32),
}

impl Clustering {
    /// The reasons of all rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = RowReason> + '_ {
        let confidence = self.edges().map(|evidence| evidence.confidence());
        (0..self.labels.len()).map(move |row| {
            let nothing = RowReason {
                cluster: self.labels[row],
                confidence: None,
                parent: None,
                edge: None,
                outside: None,
            };
            match &self.reason {
                Reason::None => nothing,
                Reason::Tree(tree) => RowReason {
                    confidence: Some(tree.links.confidence()[row]),
                    parent: tree.links.parent(row),
                    ..nothing
                },
                Reason::Edges(evidence) => RowReason {
                    confidence: confidence.as_ref().map(|confidence| confidence[row]),
                    parent: evidence.inside[row].map(|edge| (edge.row, edge.similarity)),
                    edge: evidence.inside[row],
                    outside: evidence.outside[row].map(|edge| (edge.row, edge.similarity, edge.probability)),
                    ..nothing
                },
            }
        })
    }

    /// The threshold that edges had to exceed; `None` from methods that return no reasons.
    pub fn criterion(&self) -> Option<Criterion> {
        match &self.reason {
            Reason::None => None,
            Reason::Tree(tree) => Some(Criterion::Similarity(tree.tau)),
            Reason::Edges(evidence) => Some(Criterion::Probability(evidence.min_probability)),
        }
    }

    /// The probability that a row and its parent are of one identity, see [`review`](crate::review); `None` without a
    /// parent.
    pub fn probability(&self, row: usize) -> Option<f32> {
        match &self.reason {
            Reason::None => None,
            Reason::Tree(tree) => tree.links.parent(row).map(|(_, similarity)| trust(tree.tau, similarity)),
            Reason::Edges(evidence) => evidence.inside[row].map(|edge| edge.probability),
        }
    }
}

/// Explains a clustering in words.
///
/// ```
/// use kinfolk::{Clusterer, Density, Embeddings, Explainer};
///
/// let rows = vec![1.0, 0.1, 1.0, 0.0, 0.9, 0.1, -0.1, 1.0, 0.0, 1.0];
/// let embeddings = Embeddings::from_rows(rows, 2, "example")?;
/// let found = Clusterer::with(Density { tau: Some(0.8), ..Density::default() }).fit(&embeddings)?;
/// let text = Explainer::new(&found)?.with_embeddings(embeddings).explain(0, Some(3))?;
/// assert!(text.contains("They are apart"), "{text}");
/// # Ok::<(), kinfolk::Error>(())
/// ```
pub struct Explainer {
    rows: Vec<RowReason>,
    /// Rows of each cluster.
    sizes: Vec<usize>,
    k: usize,
    criterion: Criterion,
    embeddings: Option<Embeddings>,
}

impl Explainer {
    /// Explains a result. Refuses the result of a method that returns no reasons.
    pub fn new(found: &Clustering) -> Result<Self> {
        let method = found.report.method;
        let criterion = found.criterion().ok_or_else(|| Error::Parameter {
            field: "method",
            expected: "one that returns reasons (kin, density, gcn-v or gcn-ve)",
            found: method.to_owned(),
        })?;
        Self::of_rows(found.rows().collect(), found.report.k().unwrap_or(0), criterion, method)
    }

    /// Explains rows from another source, such as a file, found on a graph of `k` neighbours; `place` names them in errors.
    pub fn of_rows(rows: Vec<RowReason>, k: usize, criterion: Criterion, place: &str) -> Result<Self> {
        let n = rows.len();
        let mut sizes = vec![0; n];
        for (row, line) in rows.iter().enumerate() {
            let wrong = |expected: &str, found: i64| Error::Row {
                place: place.to_owned(),
                row,
                expected: format!("{expected} below {n}"),
                found: found.to_string(),
            };
            let cluster = usize::try_from(line.cluster).ok().and_then(|cluster| sizes.get_mut(cluster));
            *cluster.ok_or_else(|| wrong("a cluster", line.cluster))? += 1;
            let mut ends =
                line.parent.map(|parent| parent.0).into_iter().chain(line.outside.map(|other| other.0));
            if let Some(end) = ends.find(|&end| end as usize >= n) {
                return Err(wrong("another row", i64::from(end)));
            }
        }
        Ok(Explainer { rows, sizes, k, criterion, embeddings: None })
    }

    /// With the embeddings, which add the similarity of two rows.
    pub fn with_embeddings(mut self, embeddings: Embeddings) -> Self {
        self.embeddings = Some(embeddings).filter(|embeddings| embeddings.len() == self.rows.len());
        self
    }

    /// Why a row is in its cluster or, with another row, why the two are in one cluster or not.
    pub fn explain(&self, row: usize, other: Option<usize>) -> Result<String> {
        let row = self.check(row)?;
        Ok(match other {
            None => self.why(row),
            Some(other) => self.why_both(row, self.check(other)?),
        })
    }

    fn check(&self, row: usize) -> Result<usize> {
        match row < self.rows.len() {
            true => Ok(row),
            false => Err(Error::Parameter {
                field: "row",
                expected: "a row of the embeddings, from 0",
                found: format!("{row} of {} rows", self.rows.len()),
            }),
        }
    }

    fn size(&self, row: usize) -> usize {
        self.sizes[self.rows[row].cluster as usize]
    }

    /// "row 7, in cluster 3 with 40 others".
    fn place(&self, row: usize) -> String {
        let cluster = self.rows[row].cluster;
        match self.size(row) - 1 {
            0 => format!("row {row}, alone in cluster {cluster}"),
            1 => format!("row {row}, in cluster {cluster} with one other"),
            others => format!("row {row}, in cluster {cluster} with {others} others"),
        }
    }

    /// The edge of a row to its parent as a sentence, if it was not cut.
    fn edge(&self, row: usize) -> Option<(usize, String)> {
        let line = &self.rows[row];
        let (parent, similarity) = line.parent?;
        if self.rows[parent as usize].cluster != line.cluster {
            return None;
        }
        let mut text = format!("{row} - {parent}: similarity {similarity:.3}");
        if let Some(edge) = &line.edge {
            // A listed edge has a rank at one end at least.
            if edge.ranks == [0, 0] {
                text += "; they were contracted to one super vertex";
                return Some((parent as usize, text));
            }
            let _ = write!(text, ", {} likely one identity", percent(edge.probability));
            let listed = |rank, by, whom| match rank {
                0 => format!("{whom} is not among the {} nearest of {by}", self.k),
                rank => format!("{whom} is {} nearest of {by}", ordinal(rank)),
            };
            let [rank, back] = edge.ranks;
            let _ =
                write!(text, "; {}, {}", listed(rank, row as u32, parent), listed(back, parent, row as u32));
            let _ = write!(text, "; they share {} of {} neighbours", edge.shared, self.k);
        } else {
            let confidence = self.rows[parent as usize].confidence.unwrap_or_default();
            let _ = write!(text, "; {parent} is the more confident ({confidence:.3})");
        }
        Some((parent as usize, text))
    }

    /// From a row to the root of its cluster.
    fn upwards(&self, row: usize) -> Vec<usize> {
        let mut chain = vec![row];
        // At most as long as the cluster: a damaged file might contain a cycle.
        while let Some((parent, _)) = self.edge(chain[chain.len() - 1])
            && chain.len() <= self.size(row)
        {
            chain.push(parent);
        }
        chain
    }

    fn why(&self, row: usize) -> String {
        let mut text = format!("{}.\n", capital(&self.place(row)));
        let chain = self.upwards(row);
        match &chain[..] {
            [_] if self.size(row) == 1 => text += "No edge to another row was strong enough.\n",
            [_] => {
                text += "It is the root of its cluster: the others are linked to it, directly or through each other.\n"
            }
            chain => {
                let _ = writeln!(
                    text,
                    "It is linked to row {}, the root of the cluster, by",
                    chain[chain.len() - 1]
                );
                self.list(&mut text, &chain[..chain.len() - 1]);
            }
        }
        if let Some((other, what)) = self.outside(row) {
            let _ = writeln!(text, "Its strongest edge to another cluster: {what}, {}.", self.place(other));
        }
        text
    }

    fn why_both(&self, a: usize, b: usize) -> String {
        let mut text = format!("{}.\n{}.\n", capital(&self.place(a)), capital(&self.place(b)));
        if let Some(embeddings) = &self.embeddings {
            let similarity: f32 = embeddings.row(a).iter().zip(embeddings.row(b)).map(|(a, b)| a * b).sum();
            let _ = writeln!(text, "Their similarity is {similarity:.3}.");
        }
        if a == b {
            return text + "They are the same row.\n";
        }
        if self.rows[a].cluster == self.rows[b].cluster {
            self.together(&mut text, a, b);
        } else {
            self.apart(&mut text, a, b);
        }
        text
    }

    /// The chain of edges between two rows of a cluster.
    fn together(&self, text: &mut String, a: usize, b: usize) {
        let (up_a, up_b) = (self.upwards(a), self.upwards(b));
        let Some(meeting) = up_a.iter().find(|row| up_b.contains(row)) else {
            *text += "They are in one cluster, but not connected by a chain of edges.\n";
            return;
        };
        let below =
            |chain: &[usize]| chain.iter().copied().take_while(|row| row != meeting).collect::<Vec<_>>();
        let (mut edges, mut back) = (below(&up_a), below(&up_b));
        back.reverse();
        edges.append(&mut back);
        let _ = writeln!(
            text,
            "They are together by {}:",
            if edges.len() == 1 {
                "this edge".to_owned()
            } else {
                format!("a chain of {} edges", edges.len())
            }
        );
        self.list(text, &edges);
        if edges.len() > 1 {
            let strength = |&&row: &&usize| {
                let line = &self.rows[row];
                line.edge
                    .map(|edge| edge.probability)
                    .or(line.parent.map(|(_, similarity)| similarity))
                    .unwrap_or(0.0)
            };
            let weakest = edges.iter().min_by(|x, y| strength(x).total_cmp(&strength(y)));
            if let Some((parent, _)) = weakest.and_then(|&row| self.edge(row)) {
                let row = weakest.unwrap_or(&a);
                let _ = writeln!(
                    text,
                    "The weakest is {row} - {parent}: check it first if the rows should not be in one cluster."
                );
            }
        }
    }

    /// The strongest edge between two clusters, and the threshold that it misses.
    fn apart(&self, text: &mut String, a: usize, b: usize) {
        let clusters = [self.rows[a].cluster, self.rows[b].cluster];
        let between = (0..self.rows.len())
            .filter(|&row| clusters.contains(&self.rows[row].cluster))
            .filter_map(|row| {
                let (other, what) = self.outside(row)?;
                let strength = self.rows[row].outside.map(|(.., probability)| probability);
                let strength = strength.or(self.rows[row].parent.map(|(_, similarity)| similarity))?;
                (clusters.contains(&self.rows[other].cluster)).then_some((strength, what))
            });
        match between.max_by(|x, y| x.0.total_cmp(&y.0)) {
            Some((_, what)) => {
                let _ = writeln!(text, "They are apart. The strongest edge between their clusters: {what}.");
            }
            None => {
                *text +=
                    "They are apart: no row of either cluster has its strongest outside edge in the other.\n";
            }
        }
    }

    /// The strongest edge of a row to another cluster, and the threshold that it misses.
    fn outside(&self, row: usize) -> Option<(usize, String)> {
        let line = &self.rows[row];
        let (other, similarity, lacks) = match (self.criterion, line.outside) {
            (Criterion::Probability(least), Some((other, similarity, probability))) => {
                let verdict = match probability > least {
                    true => "enough for two rows, but both have more edges elsewhere".to_owned(),
                    false => format!("two rows alone need more than {}", percent(least)),
                };
                (other, similarity, format!("{} likely one identity ({verdict})", percent(probability)))
            }
            (Criterion::Similarity(tau), _) => {
                let (parent, similarity) = line.parent?;
                if self.rows[parent as usize].cluster == line.cluster {
                    return None;
                }
                (parent, similarity, format!("a link needs more than {tau:.3}"))
            }
            _ => return None,
        };
        Some((other as usize, format!("{row} - {other}, similarity {similarity:.3}, {lacks}")))
    }

    fn list(&self, text: &mut String, rows: &[usize]) {
        for (_, edge) in rows.iter().filter_map(|&row| self.edge(row)) {
            let _ = writeln!(text, "  {edge}");
        }
    }
}

fn percent(probability: f32) -> String {
    format!("{:.0}%", 100.0 * probability)
}

fn ordinal(rank: u32) -> String {
    match (rank, rank % 10, rank % 100) {
        (1, ..) => "the".to_owned(),
        (_, 1, hundred) if hundred != 11 => format!("the {rank}st"),
        (_, 2, hundred) if hundred != 12 => format!("the {rank}nd"),
        (_, 3, hundred) if hundred != 13 => format!("the {rank}rd"),
        _ => format!("the {rank}th"),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
