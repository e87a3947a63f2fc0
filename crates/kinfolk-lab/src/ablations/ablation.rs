//! The parts of a set, the networks that are fitted to it, and the report.

use super::Arguments;
use super::ranked::{Part, Ranked, Vertices};
use crate::labelled::{Labelled, identities, read_both};
use crate::measure::measure;
use kinfolk::laboratory::Kernel;
use kinfolk::metrics::{Judge, Scores, evaluate};
use kinfolk::stages::Links;
use kinfolk::{Embeddings, Error};
use kinfolk_cli::bars::Bars;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::{machine, make_directory, table, write_text};
use kinfolk_nn::GraphNetwork;
use kinfolk_nn::stages::{Candidates, rebuilt_features, vertex_confidence};
use kinfolk_nn::training::{FitParams, GcnEParams, GcnVParams, best_tau, train_gcn_e, train_gcn_v};
use std::path::PathBuf;
use std::rc::Rc;

/// One in this many training identities is held out.
const HELD_OUT: usize = 5;

/// Neighbours of the vertices in an epoch of GCN-E, limited so that it does not dominate the time of an ablation.
const NEIGHBOURS: usize = 100_000;

/// Shares of the vertices whose parents GCN-E may choose, in ablations of other parameters.
const RHOS: [f32; 4] = [0.1, 0.2, 0.5, 0.8];

/// The three parts of a set.
pub struct Ablation {
    name: &'static str,
    directory: PathBuf,
    arguments: Arguments,
    trains_gcn_e: bool,
    /// The training rows that networks are fitted to.
    pub fitted: Rc<Part>,
    /// All training rows.
    pub train: Rc<Part>,
    pub test: Rc<Part>,
    /// Those of `train` that are not in `fitted`.
    pub held_out: Vec<u32>,
    /// All of `train`.
    pub all: Vec<u32>,
}

impl Ablation {
    /// Reads or generates the set, and checks that results can be written.
    pub fn new(name: &'static str, arguments: Arguments) -> Result<Self, Failure> {
        Self::with(name, arguments, true)
    }

    /// The same for an ablation of GCN-V alone, which has no epochs of GCN-E.
    pub fn without_gcn_e(name: &'static str, arguments: Arguments) -> Result<Self, Failure> {
        if arguments.epochs_e.is_some() {
            let message = "--epochs-e: no effect, because GCN-E is not trained here";
            return Err(Failure::Usage(message.to_owned()));
        }
        Self::with(name, arguments, false)
    }

    fn with(name: &'static str, arguments: Arguments, trains_gcn_e: bool) -> Result<Self, Failure> {
        for (option, epochs) in [("epochs", arguments.epochs), ("epochs_e", arguments.epochs_e())] {
            let found = epochs.to_string();
            if epochs == 0 {
                return Err(Error::Parameter { field: option, expected: "at least 1", found }.into());
            }
        }
        let [train, test] = match (&arguments.train, &arguments.test) {
            (Some(train), Some(test)) => read_both(train, test)?,
            _ => arguments.synthetic()?,
        };
        let (held_out, rest) = divide(&train.labels)?;
        let directory = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("bench-{name}")));
        make_directory(&directory)?;
        let rows = rest.iter().flat_map(|&i| train.features.row(i as usize)).copied().collect();
        let features = Embeddings::from_rows(rows, train.features.dim(), "training rows")?;
        let labels = rest.iter().map(|&i| train.labels[i as usize]).collect();
        let all = (0..train.labels.len() as u32).collect();
        let part = |rows| Part::new(rows, arguments.k());
        let (fitted, train, test) = (part(Labelled { features, labels })?, part(train)?, part(test)?);
        Ok(Ablation { name, directory, arguments, trains_gcn_e, fitted, train, test, held_out, all })
    }

    /// The parameters of GCN-V, except in ablations of GCN-V itself.
    pub fn gcn_v_params(&self) -> GcnVParams {
        let default = GcnVParams::default();
        let fit =
            self.arguments.fit_params(FitParams { epochs: self.arguments.epochs, ..default.fit.clone() });
        GcnVParams { fit, ..default }
    }

    /// Fits GCN-V; also returns the time.
    pub fn fit_v(&self, params: &GcnVParams) -> Result<(GraphNetwork, f64), Failure> {
        let Part { features, labels, graph, .. } = &*self.fitted;
        let (trained, cost) = measure(|| train_gcn_v(features, labels, graph, params, &Bars::default()));
        Ok((trained?.network, cost.seconds))
    }

    /// Fits GCN-E to the confidences of GCN-V; also returns the time.
    pub fn fit_e(&self, vertices: &Vertices, candidates: Candidates) -> Result<(GraphNetwork, f64), Failure> {
        let Ranked { part, confidence } = &vertices.fitted;
        let default = GcnEParams::default();
        let fit = self.arguments.fit_params(FitParams {
            epochs: self.arguments.epochs_e(),
            examples: NEIGHBOURS / self.arguments.k(),
            ..default.fit.clone()
        });
        // From all vertices, because it may be applied to all.
        let params = GcnEParams { rho: 1.0, candidates, fit, ..default };
        let (trained, cost) = measure(|| {
            train_gcn_e(&part.features, &part.labels, &part.graph, confidence, &params, &Bars::default())
        });
        Ok((trained?.network, cost.seconds))
    }

    /// Confidences by GCN-V, with the input graph or with one rebuilt from F_L.
    pub fn rank(&self, gcn_v: &GraphNetwork, part: &Rc<Part>, rebuild: bool) -> Result<Ranked, Failure> {
        let estimate = vertex_confidence(gcn_v, &part.features, &part.adjacency, rebuild, &Bars::default())?;
        let part = match rebuild {
            true => {
                let features = rebuilt_features(estimate.embeddings, gcn_v.width())?;
                Part::new(Labelled { features, labels: part.labels.clone() }, self.arguments.k())?
            }
            false => part.clone(),
        };
        Ok(Ranked { part, confidence: estimate.confidence })
    }

    /// Fits GCN-V to s_nbr and applies it to every part, on the graph that does better on held-out identities.
    pub fn vertices(&self) -> Result<Vertices, Failure> {
        let (gcn_v, fitting) = self.fit_v(&self.gcn_v_params())?;
        let tried = [true, false].map(|rebuild| {
            let train = self.rank(&gcn_v, &self.train, rebuild)?;
            let (tau, f) = self.best_tau(&train.nearest()?, &self.held_out);
            Ok::<_, Failure>((rebuild, train, tau, f))
        });
        let [rebuilt, as_it_is] = tried;
        let (rebuilt, as_it_is) = (rebuilt?, as_it_is?);
        let (rebuild, train, tau, _) = if rebuilt.3 > as_it_is.3 { rebuilt } else { as_it_is };
        let fitted = self.rank(&gcn_v, &self.fitted, rebuild)?;
        let (test, applying) = measure(|| self.rank(&gcn_v, &self.test, rebuild));
        Ok(Vertices { rebuild, fitted, train, test: test?, tau, seconds: [fitting, applying.seconds] })
    }

    /// The share of vertices whose parents GCN-E chooses, and tau, that do best on held-out identities.
    pub fn best_rho(
        &self,
        vertices: &Vertices,
        gcn_e: &GraphNetwork,
        candidates: Candidates,
    ) -> Result<(f32, f32), Failure> {
        let connectivity = vertices.train.connectivity(gcn_e, RHOS[RHOS.len() - 1], candidates)?;
        let mut best = (0.0, 0.0, f64::MIN);
        for rho in RHOS {
            let connectivity = connectivity.up_to(rho, vertices.train.confidence.len());
            let (tau, f) = self.best_tau(&vertices.train.connected(1, &connectivity)?, &self.held_out);
            if f > best.2 {
                best = (rho, tau, f);
            }
        }
        Ok((best.0, best.1))
    }

    /// The tau at which links of the training part give these rows of it the best F, and that F.
    pub fn best_tau(&self, links: &Links, rows: &[u32]) -> (f32, f64) {
        best_tau(&Judge::new(&self.train.labels, rows.to_vec()), links)
    }

    /// Cuts links of the test part and compares with its labels.
    pub fn score(&self, links: &Links, tau: f32) -> Result<Scores, Failure> {
        Ok(evaluate(&self.test.labels, &links.cut(tau))?)
    }

    /// Prints the table, and writes it and the picture into the directory.
    pub fn report(
        &self,
        columns: &[(&str, &str)],
        lines: &[Vec<String>],
        picture: &str,
        notes: &[String],
    ) -> Result<(), Failure> {
        let mut csv = columns.iter().map(|column| column.1).collect::<Vec<_>>().join(",") + "\n";
        for line in lines {
            csv += &(line.join(",") + "\n");
        }
        let file = |extension: &str| self.directory.join(format!("{}.{extension}", self.name));
        write_text(&file("csv"), &csv)?;
        write_text(&file("svg"), picture)?;
        println!("{}\n", self.describe_set());
        table::print(&columns.iter().map(|column| column.0).collect::<Vec<_>>(), lines);
        println!();
        for note in notes.iter().chain([&self.describe_run()]) {
            println!("{note}");
        }
        println!("{}, {}", file("csv").display(), file("svg").display());
        Ok(())
    }

    fn describe_set(&self) -> String {
        let origin = match &self.arguments.train {
            Some(files) => files[0].display().to_string(),
            None => format!("synth, {}", self.arguments.profile.name()),
        };
        let rows = |part: &Part| format!("{} rows of {}", part.labels.len(), identities(&part.labels));
        format!(
            "{origin}: {} identities to train on, {} to test on, {} columns, K = {}",
            rows(&self.train),
            rows(&self.test),
            self.train.features.dim(),
            self.test.graph.k()
        )
    }

    fn describe_run(&self) -> String {
        let Arguments { seed, epochs, rotate, .. } = self.arguments;
        let of_gcn_e = match self.trains_gcn_e {
            true => format!(" and {}", self.arguments.epochs_e()),
            false => String::new(),
        };
        let turned = if rotate { "rotated" } else { "not rotated" };
        format!(
            "F in percent, of the test part. Networks fitted to {} of the training rows, epochs {epochs}{of_gcn_e}, {turned}, seed {seed};\n\
             held-out identities: those of the other {}. Seconds: on the test part, from its graph to labels.\n\
             kinfolk {}, {} kernel, {} threads of {}",
            self.fitted.labels.len(),
            self.held_out.len(),
            env!("CARGO_PKG_VERSION"),
            Kernel::default().name(),
            rayon::current_num_threads(),
            machine::processor()
        )
    }
}

/// Rows to hold out and rows to fit to. Every [`HELD_OUT`]th identity by its label: sets are often in the order of
/// their sources, and each source should be in both.
fn divide(labels: &[i64]) -> Result<(Vec<u32>, Vec<u32>), Failure> {
    let mut identities = labels.to_vec();
    identities.sort_unstable();
    identities.dedup();
    if identities.len() < 2 {
        let found = identities.len().to_string();
        let (name, expected) = ("train", "at least 2 identities, one of them to be held out");
        return Err(Error::Parameter { field: name, expected, found }.into());
    }
    let held_out = |&row: &u32| {
        identities.binary_search(&labels[row as usize]).is_ok_and(|at| at.is_multiple_of(HELD_OUT))
    };
    Ok((0..labels.len() as u32).partition(held_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_not_divided() {
        let labels: Vec<i64> = (0..40).map(|i| i / 4).collect();
        let (held_out, rest) = divide(&labels).unwrap();
        assert_eq!((held_out.len(), rest.len()), (8, 32));
        assert!(held_out.iter().all(|&h| rest.iter().all(|&r| labels[h as usize] != labels[r as usize])));
        assert!(divide(&[3, 3]).is_err());
    }
}
