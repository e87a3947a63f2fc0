//! `kinfolk explain`: why a row is in its cluster, and why two rows are together or not.

use super::results::{Line, read_clusters};
use crate::failure::Failure;
use clap::Args;
use kinfolk::{Embeddings, Error};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Say why a row is in its cluster, or why two rows are together or not
#[derive(Args)]
#[command(after_help = "Example:  kinfolk explain album 17 4031
          where album is what `kinfolk cluster faces.npy -o album` wrote; rows count from 0")]
pub struct Arguments {
    /// Directory that `kinfolk cluster` wrote
    directory: PathBuf,
    /// A row of the embeddings
    row: usize,
    /// Another row, to compare with
    other: Option<usize>,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let album = Album::read(&arguments.directory)?;
    print!("{}", album.explain(arguments.row, arguments.other)?);
    Ok(())
}

/// The results of a run, to be asked why.
pub struct Album {
    lines: Vec<Line>,
    /// Rows of each cluster.
    sizes: Vec<usize>,
    k: u64,
    needs: Needs,
    features: Option<Embeddings>,
}

/// Where a method draws the line.
pub enum Needs {
    /// kin: a probability.
    Probability(f32),
    /// Trees: a similarity.
    Similarity(f32),
}

impl Album {
    fn read(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join("run.json");
        let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, e))?;
        let wrong =
            |found: String| Failure::from(Error::format(&path, "what `kinfolk cluster` writes", found));
        let run: Value = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        let number = |value: &Value, name: &str| {
            value.as_f64().ok_or_else(|| wrong(format!("{value} for {name}"))).map(|value| value as f32)
        };
        let parameters = &run["parameters"];
        let needs = match parameters["method"].as_str() {
            Some("kin") => Needs::Probability(number(&parameters["least_probability"], "least_probability")?),
            Some(method)
                if ["lgcn", "ltc"].contains(&method)
                    || kinfolk_baselines::Method::named(method).is_some() =>
            {
                let expected = "a run of density, kin, gcn-v or gcn-ve, which keep their ties";
                return Err(Error::format(&path, expected, method.to_owned()).into());
            }
            _ => Needs::Similarity(number(&parameters["tau"], "tau")?),
        };
        let path = directory.join("clusters.csv");
        let lines = read_clusters(&path)?;
        // Only for one more figure; the results stand without them.
        let file = &run["features"];
        let dim = file["dim"].as_u64().map(|dim| dim as usize);
        let options = kinfolk::io::ReadOptions { dim: dim.filter(|_| bin(file)), array: None };
        let features = file["file"]
            .as_str()
            // Of whitened embeddings ties have other similarities than the file.
            .filter(|_| parameters["whitened"] != true)
            .and_then(|file| kinfolk::io::read_embeddings(Path::new(file), &options).ok())
            .filter(|features| features.len() == lines.len());
        let k = run["graph"]["k"].as_u64().unwrap_or(0);
        Ok(Album::new(lines, k, needs, features, &path.display().to_string())?)
    }

    /// What was found on a graph of `k` neighbours. The embeddings are only for one more figure; `place` names the result
    /// in errors.
    pub fn new(
        lines: Vec<Line>,
        k: u64,
        needs: Needs,
        features: Option<Embeddings>,
        place: &str,
    ) -> kinfolk::Result<Self> {
        let rows = lines.len();
        let mut sizes = vec![0; rows];
        for (row, line) in lines.iter().enumerate() {
            let wrong = |expected: &str, found: i64| Error::Row {
                place: place.to_owned(),
                row,
                expected: format!("{expected} below {rows}"),
                found: found.to_string(),
            };
            let cluster = usize::try_from(line.cluster).ok().and_then(|cluster| sizes.get_mut(cluster));
            *cluster.ok_or_else(|| wrong("a cluster", line.cluster))? += 1;
            let ends =
                line.parent.map(|parent| parent.0).into_iter().chain(line.outside.map(|other| other.0));
            if let Some(end) = ends.into_iter().find(|&end| end as usize >= rows) {
                return Err(wrong("another row", i64::from(end)));
            }
        }
        Ok(Album { lines, sizes, k, needs, features })
    }

    /// Why a row is in its cluster or, with another row, why they are together or not.
    pub fn explain(&self, row: usize, other: Option<usize>) -> kinfolk::Result<String> {
        let row = self.check(row)?;
        Ok(match other {
            None => self.why(row),
            Some(other) => self.why_both(row, self.check(other)?),
        })
    }

    fn check(&self, row: usize) -> kinfolk::Result<usize> {
        match row < self.lines.len() {
            true => Ok(row),
            false => Err(Error::Parameter {
                field: "ROW",
                expected: "a row of the embeddings, from 0",
                found: format!("{row} of {} rows", self.lines.len()),
            }),
        }
    }

    fn size(&self, row: usize) -> usize {
        self.sizes[self.lines[row].cluster as usize]
    }

    /// "row 7, in cluster 3 with 40 others".
    fn place(&self, row: usize) -> String {
        let cluster = self.lines[row].cluster;
        match self.size(row) - 1 {
            0 => format!("row {row}, alone in cluster {cluster}"),
            1 => format!("row {row}, in cluster {cluster} with one other"),
            others => format!("row {row}, in cluster {cluster} with {others} others"),
        }
    }

    /// The tie of a row to its parent if it holds, as a sentence.
    fn tie(&self, row: usize) -> Option<(usize, String)> {
        let line = &self.lines[row];
        let (parent, similarity) = line.parent?;
        if self.lines[parent as usize].cluster != line.cluster {
            return None;
        }
        let mut text = format!("{row} - {parent}: similarity {similarity:.3}");
        if let Some(tie) = &line.tie {
            let _ = write!(text, ", {} likely one identity", percent(tie.probability));
            let listed = |rank, by, whom| match rank {
                0 => format!("{whom} is not among the {} nearest of {by}", self.k),
                rank => format!("{whom} is {} nearest of {by}", ordinal(rank)),
            };
            let [rank, back] = tie.ranks;
            let _ =
                write!(text, "; {}, {}", listed(rank, row as u32, parent), listed(back, parent, row as u32));
            let _ = write!(text, "; they share {} of {} neighbours", tie.shared, self.k);
        } else {
            let _ = write!(
                text,
                "; {parent} is the more confident ({:.3})",
                self.lines[parent as usize].confidence
            );
        }
        Some((parent as usize, text))
    }

    /// From a row to the root of its cluster.
    fn upwards(&self, row: usize) -> Vec<usize> {
        let mut chain = vec![row];
        // No longer than the cluster: a damaged file might go in circles.
        while let Some((parent, _)) = self.tie(chain[chain.len() - 1])
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
            [_] if self.size(row) == 1 => text += "No tie to another row was strong enough.\n",
            [_] => {
                text += "It is the root of its cluster: the others are tied to it, directly or through each other.\n"
            }
            chain => {
                let _ = writeln!(
                    text,
                    "It is tied to row {}, the root of the cluster, by",
                    chain[chain.len() - 1]
                );
                self.list(&mut text, &chain[..chain.len() - 1]);
            }
        }
        if let Some((other, what)) = self.outside(row) {
            let _ = writeln!(text, "The nearest it came to another cluster: {what}, {}.", self.place(other));
        }
        text
    }

    fn why_both(&self, a: usize, b: usize) -> String {
        let mut text = format!("{}.\n{}.\n", capital(&self.place(a)), capital(&self.place(b)));
        if let Some(features) = &self.features {
            let similarity: f32 = features.row(a).iter().zip(features.row(b)).map(|(a, b)| a * b).sum();
            let _ = writeln!(text, "Their similarity is {similarity:.3}.");
        }
        if a == b {
            return text + "They are the same row.\n";
        }
        if self.lines[a].cluster == self.lines[b].cluster {
            self.together(&mut text, a, b);
        } else {
            self.apart(&mut text, a, b);
        }
        text
    }

    /// The chain of ties between two rows of a cluster.
    fn together(&self, text: &mut String, a: usize, b: usize) {
        let (up_a, up_b) = (self.upwards(a), self.upwards(b));
        let Some(meeting) = up_a.iter().find(|row| up_b.contains(row)) else {
            *text += "They are together, but by no chain of single ties.\n";
            return;
        };
        let below =
            |chain: &[usize]| chain.iter().copied().take_while(|row| row != meeting).collect::<Vec<_>>();
        let (mut ties, mut back) = (below(&up_a), below(&up_b));
        back.reverse();
        ties.append(&mut back);
        let _ = writeln!(
            text,
            "They are together by {}:",
            if ties.len() == 1 { "this tie".to_owned() } else { format!("a chain of {} ties", ties.len()) }
        );
        self.list(text, &ties);
        if ties.len() > 1 {
            let strength = |&&row: &&usize| {
                let line = &self.lines[row];
                line.tie
                    .map(|tie| tie.probability)
                    .or(line.parent.map(|(_, similarity)| similarity))
                    .unwrap_or(0.0)
            };
            let weakest = ties.iter().min_by(|x, y| strength(x).total_cmp(&strength(y)));
            if let Some((parent, _)) = weakest.and_then(|&row| self.tie(row)) {
                let row = weakest.unwrap_or(&a);
                let _ = writeln!(
                    text,
                    "The weakest is {row} - {parent}: look there first if they do not belong together."
                );
            }
        }
    }

    /// The strongest tie between two clusters, and what it lacks.
    fn apart(&self, text: &mut String, a: usize, b: usize) {
        let clusters = [self.lines[a].cluster, self.lines[b].cluster];
        let between = (0..self.lines.len())
            .filter(|&row| clusters.contains(&self.lines[row].cluster))
            .filter_map(|row| {
                let (other, what) = self.outside(row)?;
                let strength = self.lines[row].outside.map(|(.., probability)| probability);
                let strength = strength.or(self.lines[row].parent.map(|(_, similarity)| similarity))?;
                (clusters.contains(&self.lines[other].cluster)).then_some((strength, what))
            });
        match between.max_by(|x, y| x.0.total_cmp(&y.0)) {
            Some((_, what)) => {
                let _ = writeln!(text, "They are apart. The strongest tie between their clusters: {what}.");
            }
            None => {
                *text += "They are apart: no row of either cluster has its strongest tie to the outside in the other.\n";
            }
        }
    }

    /// The strongest tie of a row to another cluster, and what it lacks.
    fn outside(&self, row: usize) -> Option<(usize, String)> {
        let line = &self.lines[row];
        let (other, similarity, lacks) = match (&self.needs, line.outside) {
            (Needs::Probability(least), Some((other, similarity, probability))) => {
                let verdict = match probability > *least {
                    true => "enough for a tie, but both have more ties elsewhere".to_owned(),
                    false => format!("a tie needs more than {}", percent(*least)),
                };
                (other, similarity, format!("{} likely one identity ({verdict})", percent(probability)))
            }
            (Needs::Similarity(tau), _) => {
                let (parent, similarity) = line.parent?;
                if self.lines[parent as usize].cluster == line.cluster {
                    return None;
                }
                (parent, similarity, format!("a link needs more than {tau:.3}"))
            }
            _ => return None,
        };
        Some((other as usize, format!("{row} - {other}, similarity {similarity:.3}, {lacks}")))
    }

    fn list(&self, text: &mut String, rows: &[usize]) {
        for (_, tie) in rows.iter().filter_map(|&row| self.tie(row)) {
            let _ = writeln!(text, "  {tie}");
        }
    }
}

/// Whether the features are in the one format that does not say its columns.
fn bin(file: &Value) -> bool {
    file["file"].as_str().is_some_and(|file| file.ends_with(".bin"))
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
