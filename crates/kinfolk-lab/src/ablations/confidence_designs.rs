//! Designs of vertex confidence (Table 3 of the paper), each with its nearest candidates: rho = 0, M = 1.
//!
//! Cost: GCN-V is fitted three times; the rest is O(N K) for each radius.

use super::Arguments;
use super::ablation::Ablation;
use super::ranked::{Part, Ranked};
use crate::measure::measure;
use crate::picture::{Bars, draw_bars, palette};
use crate::scores::{both_f, percent};
use kinfolk::KnnGraph;
use kinfolk::stages::{s_nbr, u_num, u_weight};
use kinfolk_cli::failure::Failure;
use kinfolk_nn::training::{GcnVParams, Target};
use std::rc::Rc;

/// Radii to choose from: cosine distances.
const RADII: [f32; 9] = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

const COLUMNS: [(&str, &str); 8] = [
    ("confidence", "confidence"),
    ("graph", "graph"),
    ("radius", "radius"),
    ("pairwise F", "pairwise_f"),
    ("BCubed F", "bcubed_f"),
    ("tau", "tau"),
    ("seconds", "seconds"),
    ("fitting s", "fitting_seconds"),
];

/// One line of the table.
struct Line {
    name: &'static str,
    colour: &'static str,
    rebuilt: bool,
    radius: Option<f32>,
    tau: f32,
    f: [f64; 2],
    seconds: f64,
    fitting: Option<f64>,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let ablation = Ablation::without_gcn_e("confidence-designs", arguments)?;
    let mut lines = vec![
        label_free(&ablation, "u_num", palette::U_NUM, u_num)?,
        label_free(&ablation, "u_weight", palette::U_WEIGHT, u_weight)?,
    ];
    for (name, colour, target) in [
        ("s_avg", palette::S_AVG, Target::Average),
        ("s_center", palette::S_CENTER, Target::Centre),
        ("s_nbr", palette::GCN_V, Target::Neighbours),
    ] {
        let (gcn_v, fitting) = ablation.fit_v(&GcnVParams { target, ..ablation.gcn_v_params() })?;
        let mut learned = |name, colour, rebuilt| {
            let train = ablation.rank(&gcn_v, &ablation.train, rebuilt)?;
            let (tau, _) = ablation.best_tau(&train.nearest()?, &ablation.held_out);
            let mut line =
                judged(&ablation, name, colour, tau, || ablation.rank(&gcn_v, &ablation.test, rebuilt))?;
            (line.rebuilt, line.fitting) = (rebuilt, Some(fitting));
            lines.push(line);
            Ok::<_, Failure>(())
        };
        learned(name, colour, false)?;
        if target == Target::Neighbours {
            learned("s_nbr^F", palette::GCN_V_REBUILT, true)?;
        }
    }
    let truth = |part: &Rc<Part>| {
        Ok::<_, Failure>(Ranked { confidence: s_nbr(&part.graph, &part.labels)?, part: part.clone() })
    };
    let (tau, _) = ablation.best_tau(&truth(&ablation.train)?.nearest()?, &ablation.all);
    let oracle = "oracle: true s_nbr";
    lines.push(judged(&ablation, oracle, palette::ORACLE, tau, || truth(&ablation.test))?);

    let bars: Vec<Bars> = lines
        .iter()
        .map(|line| Bars { name: line.name.to_owned(), colour: line.colour, values: line.f })
        .collect();
    let picture = draw_bars("Confidence designs, rho = 0, M = 1", ["pairwise F", "BCubed F"], &bars);
    let cells: Vec<Vec<String>> = lines.iter().map(Line::cells).collect();
    let notes = [
        "u_num, u_weight: without labels except for radius and tau, chosen from 9 radii by the mean of both F of the training \
         part.\ns_avg, s_center, s_nbr: what GCN-V learns; tau chosen by the mean of both F of held-out identities."
            .to_owned(),
        "oracle: s_nbr of the test labels themselves, an upper bound, not a result; its tau is chosen on the training \
         part."
            .to_owned(),
    ];
    ablation.report(&COLUMNS, &cells, &picture, &notes)
}

/// A density, with the best radius and tau of the training part.
fn label_free(
    ablation: &Ablation,
    name: &'static str,
    colour: &'static str,
    density: impl Fn(&KnnGraph, f32) -> kinfolk::Result<Vec<f32>>,
) -> Result<Line, Failure> {
    let rank = |part: &Rc<Part>, radius| {
        Ok::<_, Failure>(Ranked { confidence: density(&part.graph, radius)?, part: part.clone() })
    };
    let (mut radius, mut tau, mut best) = (RADII[0], 0.0, f64::MIN);
    for tried in RADII {
        let (at, f) = ablation.best_tau(&rank(&ablation.train, tried)?.nearest()?, &ablation.all);
        if f > best {
            (radius, tau, best) = (tried, at, f);
        }
    }
    let mut line = judged(ablation, name, colour, tau, || rank(&ablation.test, radius))?;
    line.radius = Some(radius);
    Ok(line)
}

/// From confidences of the test part to its scores.
fn judged(
    ablation: &Ablation,
    name: &'static str,
    colour: &'static str,
    tau: f32,
    rank: impl FnOnce() -> Result<Ranked, Failure>,
) -> Result<Line, Failure> {
    let (links, cost) = measure(|| rank()?.nearest());
    let f = both_f(&ablation.score(&links?, tau)?);
    let seconds = cost.seconds;
    Ok(Line { name, colour, rebuilt: false, radius: None, tau, f, seconds, fitting: None })
}

impl Line {
    fn cells(&self) -> Vec<String> {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        vec![
            self.name.to_owned(),
            (if self.rebuilt { "rebuilt" } else { "input" }).to_owned(),
            or_none(self.radius.map(|radius| format!("{radius:.1}"))),
            percent(self.f[0] / 100.0),
            percent(self.f[1] / 100.0),
            format!("{:.2}", self.tau),
            format!("{:.3}", self.seconds),
            or_none(self.fitting.map(|seconds| format!("{seconds:.1}"))),
        ]
    }
}
