//! The number of graph convolutions of GCN-V: how well one, two and three learn s_nbr, and the F that results.
//!
//! With L > 1 a row needs its neighbours, their neighbours and so on: (S + 1)^(L - 1) rows with S sampled neighbours
//! for each training row. With t sampled vertices for a batch (FastGCN) it is t (L - 1) rows for all training rows of
//! the batch. Both are compared, as is a second convolution on the graph of F_1 (`dynamic_graph.rs`). To limit the
//! time of three convolutions, all networks are narrower and see fewer rows in an epoch than in the other ablations;
//! compare them only with each other.

use super::Arguments;
use super::ablation::Ablation;
use super::dynamic_graph;
use super::ranked::{Part, Ranked};
use crate::measure::measure;
use crate::picture::{Bars, draw_bars, palette};
use crate::scores::{both_f, percent};
use kinfolk::stages::s_nbr;
use kinfolk_cli::failure::Failure;
use kinfolk_nn::GraphNetwork;
use kinfolk_nn::training::{FitParams, GcnVParams, Sampling};
use std::rc::Rc;

/// Outputs of each convolution.
const WIDTH: usize = 128;
/// Neighbours that are sampled for each convolution after the first.
const NEIGHBOURS: Sampling = Sampling::Neighbours(5);
/// Vertices that are sampled instead: as many rows as five neighbours for each of a batch's 64 rows, and more.
const FEW_VERTICES: Sampling = Sampling::Vertices(320);
const MANY_VERTICES: Sampling = Sampling::Vertices(1024);
/// Rows in an epoch.
const ROWS: usize = 8192;

const COLUMNS: [(&str, &str); 9] = [
    ("convolutions", "convolutions"),
    ("sampled", "sampled"),
    ("loss, fitted to", "fitted_loss"),
    ("loss, held out", "held_out_loss"),
    ("pairwise F", "pairwise_f"),
    ("BCubed F", "bcubed_f"),
    ("tau", "tau"),
    ("seconds to fit", "fitting_seconds"),
    ("seconds", "seconds"),
];

/// One row of the table.
struct Variant {
    layers: usize,
    sampling: Sampling,
    /// Whether the second convolution aggregates over the graph of F_1.
    dynamic: bool,
}

const VARIANTS: [Variant; 7] = [
    Variant { layers: 1, sampling: NEIGHBOURS, dynamic: false },
    Variant { layers: 2, sampling: NEIGHBOURS, dynamic: false },
    Variant { layers: 2, sampling: NEIGHBOURS, dynamic: true },
    Variant { layers: 2, sampling: FEW_VERTICES, dynamic: false },
    Variant { layers: 2, sampling: MANY_VERTICES, dynamic: false },
    Variant { layers: 3, sampling: NEIGHBOURS, dynamic: false },
    Variant { layers: 3, sampling: MANY_VERTICES, dynamic: false },
];

impl Variant {
    /// What it aggregates over after the first convolution.
    fn sampled(&self) -> String {
        match (self.layers, self.sampling) {
            (1, _) => "-".to_owned(),
            (_, Sampling::Neighbours(count)) if self.dynamic => format!("{count} neighbours in F_1"),
            (_, Sampling::Neighbours(count)) => format!("{count} neighbours"),
            (_, Sampling::Vertices(count)) => format!("{count} vertices"),
        }
    }

    fn name(&self) -> String {
        match self.layers {
            1 => "1 convolution".to_owned(),
            layers => format!("{layers} convolutions, {}", self.sampled()),
        }
    }

    fn fit(&self, ablation: &Ablation) -> Result<(GraphNetwork, f64), Failure> {
        let default = ablation.gcn_v_params();
        let params = GcnVParams {
            convolutions: vec![WIDTH; self.layers],
            hidden: WIDTH,
            sampling: self.sampling,
            fit: FitParams { examples: ROWS, ..default.fit.clone() },
            ..default
        };
        if self.dynamic { dynamic_graph::fit(ablation, &params) } else { ablation.fit_v(&params) }
    }

    fn rank(&self, ablation: &Ablation, gcn_v: &GraphNetwork, part: &Rc<Part>) -> Result<Ranked, Failure> {
        if self.dynamic { dynamic_graph::rank(gcn_v, part) } else { ablation.rank(gcn_v, part, false) }
    }
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let ablation = Ablation::without_gcn_e("layers", arguments)?;
    let truth = s_nbr(&ablation.train.graph, &ablation.train.labels)?;
    let mut held_out = vec![false; truth.len()];
    ablation.held_out.iter().for_each(|&row| held_out[row as usize] = true);
    let (mut cells, mut bars, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for variant in &VARIANTS {
        let (gcn_v, fitting) = variant.fit(&ablation)?;
        let train = variant.rank(&ablation, &gcn_v, &ablation.train)?;
        let loss = |wanted: bool| {
            let rows = (0..truth.len()).filter(|&row| held_out[row] == wanted);
            let errors: Vec<f64> =
                rows.map(|row| f64::from(train.confidence[row] - truth[row]).powi(2)).collect();
            errors.iter().sum::<f64>() / errors.len() as f64
        };
        let (tau, _) = ablation.best_tau(&train.nearest()?, &ablation.held_out);
        let (links, cost) = measure(|| variant.rank(&ablation, &gcn_v, &ablation.test)?.nearest());
        let f = both_f(&ablation.score(&links?, tau)?);
        cells.push(vec![
            variant.layers.to_string(),
            variant.sampled(),
            format!("{:.4}", loss(false)),
            format!("{:.4}", loss(true)),
            percent(f[0] / 100.0),
            percent(f[1] / 100.0),
            format!("{tau:.2}"),
            format!("{fitting:.1}"),
            format!("{:.3}", cost.seconds),
        ]);
        times.push([fitting, cost.seconds]);
        bars.push(Bars { name: variant.name(), colour: palette::GCN_V, values: f });
    }
    // The second and the third variant differ in the graph only.
    let [one_graph, dynamic]: [[f64; 2]; 2] = [times[1], times[2]];
    let picture = draw_bars("Graph convolutions of GCN-V", ["pairwise F", "BCubed F"], &bars);
    let notes = [format!(
        "loss: mean squared error against s_nbr over all neighbours, of rows fitted to and of held-out identities.\n\
         {WIDTH} outputs each, {ROWS} rows in an epoch; sampled: neighbours of each row, or vertices for a batch of 64.\n\
         neighbours in F_1: the second convolution on the graph of F_1, rebuilt in every epoch; {:.1} times as long to fit as\n\
         on one graph, {:.1} times as long to apply.\n\
         Candidates from the input graph; tau chosen by the mean of both F of held-out identities.",
        dynamic[0] / one_graph[0],
        dynamic[1] / one_graph[1]
    )];
    ablation.report(&COLUMNS, &cells, &picture, &notes)
}
