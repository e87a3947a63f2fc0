//! The similarity tau at which links are cut: both F over tau, for the density tree, GCN-V and GCN-V+E.
//!
//! Cost: fitting both networks once; a cut is O(N).

use super::Arguments;
use super::ablation::Ablation;
use super::ranked::Ranked;
use crate::picture::{Line, LineChart, draw_lines, palette};
use crate::scores::{both_f, percent};
use kinfolk::stages::{DEFAULT_RADIUS, Links, u_weight};
use kinfolk_cli::failure::Failure;
use kinfolk_nn::stages::Candidates;

const COLUMNS: [(&str, &str); 7] = [
    ("tau", "tau"),
    ("density, pairwise F", "density_pairwise_f"),
    ("BCubed F", "density_bcubed_f"),
    ("GCN-V, pairwise F", "gcn_v_pairwise_f"),
    ("BCubed F", "gcn_v_bcubed_f"),
    ("GCN-V+E, pairwise F", "gcn_ve_pairwise_f"),
    ("BCubed F", "gcn_ve_bcubed_f"),
];

/// Links of the test part, and the tau that was chosen for them.
struct Method {
    name: &'static str,
    colour: &'static str,
    links: Links,
    chosen: f32,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let ablation = Ablation::new("tau", arguments)?;
    let vertices = ablation.vertices()?;
    let candidates = Candidates::MoreConfident;
    let (gcn_e, fitting) = ablation.fit_e(&vertices, candidates)?;
    let (rho, tau) = ablation.best_rho(&vertices, &gcn_e, candidates)?;
    let [train, test] = [&ablation.train, &ablation.test].map(|part| {
        let confidence = u_weight(&part.graph, DEFAULT_RADIUS)?;
        Ranked { part: part.clone(), confidence }.nearest()
    });
    let methods = [
        Method {
            name: "density tree",
            colour: palette::U_WEIGHT,
            links: test?,
            chosen: ablation.best_tau(&train?, &ablation.all).0,
        },
        Method {
            name: "GCN-V",
            colour: palette::GCN_V,
            links: vertices.test.nearest()?,
            chosen: vertices.tau,
        },
        Method {
            name: "GCN-V+E",
            colour: palette::GCN_VE,
            links: vertices.test.connected(1, &vertices.test.connectivity(&gcn_e, rho, candidates)?)?,
            chosen: tau,
        },
    ];
    let taus: Vec<f32> = (0..20).map(|step| step as f32 * 0.05).collect();
    let mut cells: Vec<Vec<String>> = taus.iter().map(|tau| vec![format!("{tau:.2}")]).collect();
    let (mut pairwise, mut bcubed, mut at_chosen) = (Vec::new(), Vec::new(), Vec::new());
    for method in &methods {
        let f = |tau: f32| Ok::<_, Failure>(both_f(&ablation.score(&method.links, tau)?));
        let curve: Vec<[f64; 2]> = taus.iter().map(|&tau| f(tau)).collect::<Result<_, _>>()?;
        let ring = f(method.chosen)?;
        for (line, f) in cells.iter_mut().zip(&curve) {
            line.extend(f.map(|f| percent(f / 100.0)));
        }
        at_chosen.push(format!(
            "{}: tau {:.2}, pairwise / BCubed F {:.2} / {:.2}",
            method.name, method.chosen, ring[0], ring[1]
        ));
        for (at, lines) in [&mut pairwise, &mut bcubed].into_iter().enumerate() {
            lines.push(Line {
                name: method.name.to_owned(),
                colour: method.colour,
                // If GCN-E chooses for few rows, its line covers that of GCN-V; dashes keep both visible.
                dashed: method.colour == palette::GCN_VE,
                points: taus.iter().zip(&curve).map(|(&tau, f)| (f64::from(tau), f[at])).collect(),
                ring: Some((f64::from(method.chosen), ring[at])),
            });
        }
    }
    let chart = |title: &str, lines| LineChart { title: title.to_owned(), axis: "tau".to_owned(), lines };
    let charts = [chart("Pairwise F, percent", pairwise), chart("BCubed F, percent", bcubed)];
    let picture = draw_lines(&charts, "the tau that was chosen on training identities");
    let notes = [
        format!("At the tau that was chosen on training identities:\n{}.", at_chosen.join(";\n")),
        format!(
            "Chosen by BCubed F: of the training part for the density tree, of held-out identities for the others,\n\
             and rho {rho:.1} with it. GCN-V {:.1} s, GCN-E {fitting:.1} s to fit; {}.",
            vertices.seconds[0],
            vertices.describe_graph()
        ),
    ];
    ablation.report(&COLUMNS, &cells, &picture, &notes)
}
