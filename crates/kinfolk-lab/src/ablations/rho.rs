//! The share rho of the vertices, by descending confidence, whose parents GCN-E chooses (Section 4.3.2 of the paper).
//!
//! Cost: fitting both networks once, then GCN-E on 5.5 times the test part and once the training part.

use super::Arguments;
use super::ablation::Ablation;
use crate::measure::measure;
use crate::picture::{Line, LineChart, draw_lines, palette};
use crate::scores::{both_f, percent};
use kinfolk_cli::failure::Failure;
use kinfolk_nn::stages::Candidates;

const COLUMNS: [(&str, &str); 5] = [
    ("rho", "rho"),
    ("pairwise F", "pairwise_f"),
    ("BCubed F", "bcubed_f"),
    ("tau", "tau"),
    ("seconds", "seconds"),
];

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let ablation = Ablation::new("rho", arguments)?;
    let vertices = ablation.vertices()?;
    let candidates = Candidates::MoreConfident;
    let (gcn_e, fitting) = ablation.fit_e(&vertices, candidates)?;
    let (train, test) = (&vertices.train, &vertices.test);
    let connectivity = train.connectivity(&gcn_e, 1.0, candidates)?;
    let mut cells = Vec::new();
    let mut curves = [Vec::new(), Vec::new(), Vec::new()];
    let (mut chosen, mut best) = (0, f64::MIN);
    for step in 0..=10 {
        let rho = step as f32 / 10.0;
        let links = train.connected(1, &connectivity.up_to(rho, train.confidence.len()))?;
        let (tau, held_out_f) = ablation.best_tau(&links, &ablation.held_out);
        if held_out_f > best {
            (chosen, best) = (step, held_out_f);
        }
        let (links, cost) = measure(|| match step {
            0 => test.nearest(),
            _ => test.connected(1, &test.connectivity(&gcn_e, rho, candidates)?),
        });
        let f = both_f(&ablation.score(&links?, tau)?);
        let seconds = vertices.seconds[1] + cost.seconds;
        for (curve, value) in curves.iter_mut().zip([f[0], f[1], seconds]) {
            curve.push((f64::from(step) / 10.0, value));
        }
        cells.push(vec![
            format!("{rho:.1}"),
            percent(f[0] / 100.0),
            percent(f[1] / 100.0),
            format!("{tau:.2}"),
            format!("{seconds:.3}"),
        ]);
    }
    let line = |name: &str, dashed, points: &[(f64, f64)]| Line {
        name: name.to_owned(),
        colour: palette::GCN_VE,
        dashed,
        points: points.to_vec(),
        ring: Some(points[chosen as usize]),
    };
    let chart = |title: &str, lines| LineChart {
        title: title.to_owned(),
        axis: "rho, the share of rows whose parents GCN-E chooses".to_owned(),
        lines,
    };
    let [pairwise, bcubed, seconds] = &curves;
    let charts = [
        chart(
            "F, percent (GCN-V+E)",
            vec![line("pairwise F", false, pairwise), line("BCubed F", true, bcubed)],
        ),
        chart(
            "Seconds on the test part",
            vec![Line { colour: "#222222", ..line("seconds", false, seconds) }],
        ),
    ];
    let picture = draw_lines(&charts, "the rho that held-out identities prefer");
    let notes = [format!(
        "One GCN-V ({:.1} s) and GCN-E ({fitting:.1} s) for all; {}.\n\
         tau chosen for each rho by the mean of both F of held-out identities, which prefer rho {:.1}.",
        vertices.seconds[0],
        vertices.describe_graph(),
        f64::from(chosen) / 10.0
    )];
    ablation.report(&COLUMNS, &cells, &picture, &notes)
}
