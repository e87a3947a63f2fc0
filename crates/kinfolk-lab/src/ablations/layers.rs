//! The number of graph convolutions of GCN-V: how well one, two and three learn s_nbr, and the F that results.
//!
//! With L > 1 a row needs its neighbours, their neighbours and so on: (S + 1)^(L - 1) rows with S sampled neighbours for each
//! training row. To limit the time of three convolutions, all three networks are narrower and see fewer rows in an epoch than
//! in the other ablations; compare them only with each other.

use super::Arguments;
use super::ablation::Ablation;
use crate::measure::measure;
use crate::picture::{Bars, draw_bars, palette};
use crate::scores::{both_f, percent};
use kinfolk::stages::s_nbr;
use kinfolk_cli::failure::Failure;
use kinfolk_nn::training::{FitParams, GcnVParams};

/// Outputs of each convolution.
const WIDTH: usize = 128;
/// Neighbours that are sampled for each convolution after the first.
const SAMPLED: usize = 5;
/// Rows in an epoch.
const ROWS: usize = 8192;

const COLUMNS: [(&str, &str); 7] = [
    ("convolutions", "convolutions"),
    ("loss, fitted to", "fitted_loss"),
    ("loss, held out", "held_out_loss"),
    ("pairwise F", "pairwise_f"),
    ("BCubed F", "bcubed_f"),
    ("tau", "tau"),
    ("seconds", "seconds"),
];

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let ablation = Ablation::without_gcn_e("layers", arguments)?;
    let truth = s_nbr(&ablation.train.graph, &ablation.train.labels)?;
    let mut held_out = vec![false; truth.len()];
    ablation.held_out.iter().for_each(|&row| held_out[row as usize] = true);
    let (mut cells, mut bars, mut fitting) = (Vec::new(), Vec::new(), Vec::new());
    for layers in 1..=3 {
        let default = ablation.gcn_v_params();
        let params = GcnVParams {
            convolutions: vec![WIDTH; layers],
            hidden: WIDTH,
            sampled: SAMPLED,
            fit: FitParams { examples: ROWS, ..default.fit.clone() },
            ..default
        };
        let (gcn_v, seconds) = ablation.fit_v(&params)?;
        fitting.push(format!("{seconds:.1} s"));
        let train = ablation.rank(&gcn_v, &ablation.train, false)?;
        let loss = |wanted: bool| {
            let rows = (0..truth.len()).filter(|&row| held_out[row] == wanted);
            let errors: Vec<f64> =
                rows.map(|row| f64::from(train.confidence[row] - truth[row]).powi(2)).collect();
            errors.iter().sum::<f64>() / errors.len() as f64
        };
        let (tau, _) = ablation.best_tau(&train.nearest()?, &ablation.held_out);
        let (links, cost) = measure(|| ablation.rank(&gcn_v, &ablation.test, false)?.nearest());
        let f = both_f(&ablation.score(&links?, tau)?);
        cells.push(vec![
            layers.to_string(),
            format!("{:.4}", loss(false)),
            format!("{:.4}", loss(true)),
            percent(f[0] / 100.0),
            percent(f[1] / 100.0),
            format!("{tau:.2}"),
            format!("{:.3}", cost.seconds),
        ]);
        let name = format!("{layers} convolution{}", if layers == 1 { "" } else { "s" });
        bars.push(Bars { name, colour: palette::GCN_V, values: f });
    }
    let picture = draw_bars("Graph convolutions of GCN-V", ["pairwise F", "BCubed F"], &bars);
    let notes = [format!(
        "loss: mean squared error against s_nbr over all neighbours, of rows fitted to and of held-out identities.\n\
         {WIDTH} outputs each, {SAMPLED} sampled neighbours, {ROWS} rows in an epoch, fitted in {}.\n\
         Candidates from the input graph; tau chosen by the mean of both F of held-out identities.",
        fitting.join(", ")
    )];
    ablation.report(&COLUMNS, &cells, &picture, &notes)
}
