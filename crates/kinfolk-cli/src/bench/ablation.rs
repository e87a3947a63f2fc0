//! What the ablations of Section 4.3 of the paper share: the set, the fitting of networks, the choice of tau, the report.
//!
//! The identities of the training part are divided once more. Networks are fitted to four fifths of them. What is chosen, tau
//! above all, is chosen by the mean of both F of the rows of the last fifth within a clustering of the whole training part,
//! where strangers are as near as they will be. Labels of the test part give the scores that are printed and nothing else.
//!
//! Cost: the fitting. GCN-V takes 6 (number of weights) operations for each row and epoch, GCN-E as many for each candidate.

use super::measure;
use crate::bars::Bars;
use crate::commands::{make_directory, write_text};
use crate::failure::Failure;
use crate::{machine, table};
use clap::Args;
use kinfolk::io::{check_label_count, read_embeddings, read_labels};
use kinfolk::metrics::{Judge, Scores, evaluate};
use kinfolk::synth::{self, Synth, SynthParams};
use kinfolk::{
    Adjacency, Embeddings, Error, Kernel, KnnGraph, KnnParams, Links, knn_graph, nearest_candidates,
};
use kinfolk_nn::{
    Among, Asked, Connectivity, FitParams, GcnEParams, GcnVParams, GraphNetwork, best_tau,
    connected_candidates, edge_connectivity, rebuilt_features, train_gcn_e, train_gcn_v, vertex_confidence,
};
use std::path::PathBuf;
use std::rc::Rc;

/// One in this many training identities is not fitted to.
const HELD_OUT: usize = 5;

/// Candidate sets in an epoch of GCN-E, so that it does not take most of an ablation's time.
const CANDIDATE_SETS: usize = 1000;

/// Shares of the vertices that GCN-E may be asked about, where the share is not what is studied.
const RHOS: [f32; 4] = [0.1, 0.2, 0.5, 0.8];

/// Identities of the synthetic set, and passes of GCN-V, where it must be quick.
const QUICK_IDENTITIES: usize = 75;
const QUICK_EPOCHS: usize = 4;

/// The set, and how networks are fitted to it.
#[derive(Args)]
pub struct Arguments {
    /// Labelled embeddings to train on, instead of a synthetic set
    #[arg(long, num_args = 2, value_names = ["FEATURES", "LABELS"], requires = "test", conflicts_with = "identities")]
    train: Option<Vec<PathBuf>>,
    /// Those to test on, of other identities
    #[arg(long, num_args = 2, value_names = ["FEATURES", "LABELS"], requires = "train")]
    test: Option<Vec<PathBuf>>,
    /// Identities of the synthetic set, about 68 rows of 256 columns each; two thirds are for training
    #[arg(long, value_name = "N", default_value_t = 450)]
    identities: usize,
    /// Seed of the synthetic set and of everything random in training
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Neighbours of each row
    #[arg(short, value_name = "K", default_value_t = 80)]
    k: usize,
    /// Passes of GCN-V over the rows; GCN-E makes at most 4
    #[arg(long, value_name = "E", default_value_t = FitParams::default().epochs)]
    epochs: usize,
    /// Directory to write to [default: bench-, then the name]
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Arguments {
    /// The usual synthetic set, or a small one.
    pub fn of(quick: bool, output: PathBuf) -> Self {
        let usual = FitParams::default().epochs;
        let (identities, epochs) = if quick { (QUICK_IDENTITIES, QUICK_EPOCHS) } else { (450, usual) };
        Arguments { train: None, test: None, identities, seed: 0, k: 80, epochs, output: Some(output) }
    }

    /// The best epoch would have to be chosen by rows that are held out from fitting: the last is kept.
    fn fit_params(&self, usual: FitParams) -> FitParams {
        FitParams { validation: 0.0, seed: self.seed, epochs: self.epochs, ..usual }
    }
}

/// Labelled rows and their graph.
pub struct Part {
    pub features: Embeddings,
    pub labels: Vec<i64>,
    pub graph: KnnGraph,
    adjacency: Adjacency,
}

impl Part {
    fn new(features: Embeddings, labels: Vec<i64>, k: usize) -> Result<Rc<Self>, Failure> {
        let (graph, _) = knn_graph(&features, &KnnParams { k, ..KnnParams::default() }, &Bars::default())?;
        let adjacency = Adjacency::from_knn(&graph, 0.0)?;
        Ok(Rc::new(Part { features, labels, graph, adjacency }))
    }
}

/// Rows with a confidence, in the graph that candidates are taken from.
pub struct Ranked {
    pub part: Rc<Part>,
    pub confidence: Vec<f32>,
}

impl Ranked {
    /// Each vertex with its nearest candidate: rho = 0, M = 1.
    pub fn nearest(&self) -> Result<Links, Failure> {
        Ok(nearest_candidates(&self.part.graph, &self.confidence, 1)?)
    }

    /// Each vertex with the `m` candidates that GCN-E connects it with, if it was asked.
    pub fn connected(&self, m: usize, said: &Connectivity) -> Result<Links, Failure> {
        Ok(connected_candidates(&self.part.graph, &self.confidence, m, Some(said))?)
    }

    /// Asks GCN-E about the most confident vertices.
    pub fn ask(&self, gcn_e: &GraphNetwork, rho: f32, among: Among) -> Result<Connectivity, Failure> {
        let Part { features, graph, adjacency, .. } = &*self.part;
        let (asked, bars) = (Asked { rho, among }, Bars::default());
        Ok(edge_connectivity(gcn_e, features, graph, adjacency, &self.confidence, &asked, &bars)?)
    }
}

/// A trained GCN-V applied to all that follows it.
pub struct Vertices {
    /// Whether the graph is rebuilt from F_L: whichever does better on held-out identities.
    rebuild: bool,
    pub fitted: Ranked,
    pub train: Ranked,
    pub test: Ranked,
    /// The best tau without GCN-E.
    pub tau: f32,
    /// How long fitting took, and applying to the test part.
    pub seconds: [f64; 2],
}

impl Vertices {
    /// Where candidates come from, in words.
    pub fn describe_graph(&self) -> &'static str {
        match self.rebuild {
            true => "candidates from the graph of F_L, better on held-out identities",
            false => "candidates from the graph as it is, better on held-out identities",
        }
    }
}

/// The three parts of a set.
pub struct Ablation {
    name: &'static str,
    directory: PathBuf,
    arguments: Arguments,
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
    /// Reads or makes the set, and sees to it that results can be written.
    pub fn new(name: &'static str, arguments: Arguments) -> Result<Self, Failure> {
        arguments.fit_params(FitParams::default()).validate()?;
        let [train, test] = match (&arguments.train, &arguments.test) {
            (Some(train), Some(test)) => read(train, test)?,
            _ => {
                let (identities, seed) = (arguments.identities, arguments.seed);
                let synth = Synth::new(SynthParams { identities, seed, ..SynthParams::default() })?;
                let (train, test) = synth.split(2.0 / 3.0)?;
                let both = |part: synth::Part| part.to_embeddings();
                [both(train)?, both(test)?]
            }
        };
        let (held_out, kept) = divide(&train.1)?;
        let directory = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("bench-{name}")));
        make_directory(&directory)?;
        let rows = kept.iter().flat_map(|&i| train.0.row(i as usize)).copied().collect();
        let fitted = Embeddings::from_rows(rows, train.0.dim(), "training rows")?;
        let labels = kept.iter().map(|&i| train.1[i as usize]).collect();
        let all = (0..train.1.len() as u32).collect();
        let part = |(features, labels)| Part::new(features, labels, arguments.k);
        let (fitted, train, test) = (part((fitted, labels))?, part(train)?, part(test)?);
        Ok(Ablation { name, directory, arguments, fitted, train, test, held_out, all })
    }

    /// How GCN-V is fitted, unless something about it is studied.
    pub fn gcn_v_params(&self) -> GcnVParams {
        let usual = GcnVParams::default();
        GcnVParams { fit: self.arguments.fit_params(usual.fit.clone()), ..usual }
    }

    /// Fits GCN-V; says how long it took.
    pub fn fit_v(&self, params: &GcnVParams) -> Result<(GraphNetwork, f64), Failure> {
        let Part { features, labels, graph, .. } = &*self.fitted;
        let (trained, cost) = measure(|| train_gcn_v(features, labels, graph, params, &Bars::default()));
        Ok((trained?.network, cost.seconds))
    }

    /// Fits GCN-E to what follows GCN-V; says how long it took.
    pub fn fit_e(&self, vertices: &Vertices, among: Among) -> Result<(GraphNetwork, f64), Failure> {
        let Ranked { part, confidence } = &vertices.fitted;
        let usual = GcnEParams::default();
        let fit = FitParams {
            epochs: self.arguments.epochs.min(usual.fit.epochs),
            examples: CANDIDATE_SETS,
            ..self.arguments.fit_params(usual.fit.clone())
        };
        // From all vertices, since it may be asked about all.
        let params = GcnEParams { rho: 1.0, among, fit, ..usual };
        let (trained, cost) = measure(|| {
            train_gcn_e(&part.features, &part.labels, &part.graph, confidence, &params, &Bars::default())
        });
        Ok((trained?.network, cost.seconds))
    }

    /// Confidences by GCN-V, in the graph as it is or in one rebuilt from F_L.
    pub fn rank(&self, gcn_v: &GraphNetwork, part: &Rc<Part>, rebuild: bool) -> Result<Ranked, Failure> {
        let estimate = vertex_confidence(gcn_v, &part.features, &part.adjacency, rebuild, &Bars::default())?;
        let part = match rebuild {
            true => {
                let features = rebuilt_features(estimate.embeddings, gcn_v.width())?;
                Part::new(features, part.labels.clone(), self.arguments.k)?
            }
            false => part.clone(),
        };
        Ok(Ranked { part, confidence: estimate.confidence })
    }

    /// Fits GCN-V to s_nbr and applies it to every part, on the graph that suits it.
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

    /// The share of vertices to ask GCN-E about, and tau, that do best on held-out identities.
    pub fn best_rho(
        &self,
        vertices: &Vertices,
        gcn_e: &GraphNetwork,
        among: Among,
    ) -> Result<(f32, f32), Failure> {
        let said = vertices.train.ask(gcn_e, RHOS[RHOS.len() - 1], among)?;
        let mut best = (0.0, 0.0, f64::MIN);
        for rho in RHOS {
            let said = said.up_to(rho, vertices.train.confidence.len());
            let (tau, f) = self.best_tau(&vertices.train.connected(1, &said)?, &self.held_out);
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
        let identities = |labels: &[i64]| {
            let mut labels = labels.to_vec();
            labels.sort_unstable();
            labels.dedup();
            labels.len()
        };
        let origin = match &self.arguments.train {
            Some(files) => files[0].display().to_string(),
            None => "synth".to_owned(),
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
        let Arguments { seed, epochs, .. } = self.arguments;
        format!(
            "F in percent, of the test part. Networks fitted to {} of the training rows, epochs {epochs}, seed {seed};\n\
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

/// A score in percent.
pub fn percent(f: f64) -> String {
    format!("{:.2}", 100.0 * f)
}

/// Both F's in percent.
pub fn both_f(scores: &Scores) -> [f64; 2] {
    [100.0 * scores.pairwise.f, 100.0 * scores.bcubed.f]
}

/// Rows and their labels.
pub type Labelled = (Embeddings, Vec<i64>);

/// Reads features and labels of a training and a test part, of as many columns.
pub fn read(train: &[PathBuf], test: &[PathBuf]) -> Result<[Labelled; 2], Failure> {
    let labelled = |files: &[PathBuf]| {
        let features = read_embeddings(&files[0], &Default::default())?;
        let labels = read_labels(&files[1])?;
        check_label_count(&labels, features.len(), &files[1], &files[0])?;
        Ok::<_, Failure>((features, labels))
    };
    let parts = [labelled(train)?, labelled(test)?];
    let [expected, found] = [0, 1].map(|part: usize| parts[part].0.dim());
    if expected != found {
        let expected = format!("{expected} columns, as {} has", train[0].display());
        return Err(Error::format(&test[0], expected, found.to_string()).into());
    }
    Ok(parts)
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
        let (held_out, kept) = divide(&labels).unwrap();
        assert_eq!((held_out.len(), kept.len()), (8, 32));
        assert!(held_out.iter().all(|&h| kept.iter().all(|&k| labels[h as usize] != labels[k as usize])));
        assert!(divide(&[3, 3]).is_err());
    }
}
