//! The number M of links of each vertex (Section 4.3.2 of the paper).
//!
//! M = 1 gives trees, larger M directed acyclic graphs. With M = -1 a separate GCN-E chooses one parent from all neighbours,
//! not only from those of higher confidence.
//!
//! Cost: fitting GCN-V once and GCN-E twice, the second time on all neighbours, which are twice as many.

use super::Arguments;
use super::ablation::Ablation;
use crate::measure::measure;
use crate::picture::{Bars, draw_bars, palette};
use crate::scores::{both_f, percent};
use kinfolk_cli::failure::Failure;
use kinfolk_nn::stages::Candidates;

const COLUMNS: [(&str, &str); 9] = [
    ("M", "m"),
    ("pairwise F", "pairwise_f"),
    ("BCubed F", "bcubed_f"),
    ("tau", "tau"),
    ("rho", "rho"),
    ("clusters", "clusters"),
    ("pairwise F, tau of M = 1", "pairwise_f_at_tau_of_1"),
    ("BCubed F, tau of M = 1", "bcubed_f_at_tau_of_1"),
    ("seconds", "seconds"),
];

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let ablation = Ablation::new("m", arguments)?;
    let vertices = ablation.vertices()?;
    let (train, test) = (&vertices.train, &vertices.test);
    let (by_confidence, fitting) = ablation.fit_e(&vertices, Candidates::MoreConfident)?;
    let (all_neighbours, fitting_all) = ablation.fit_e(&vertices, Candidates::AllNeighbours)?;
    let (rho, tau_of_1) = ablation.best_rho(&vertices, &by_confidence, Candidates::MoreConfident)?;
    let (mut cells, mut bars) = (Vec::new(), Vec::new());
    for m in [-1, 1, 2, 3] {
        let (gcn_e, candidates, links) = match m {
            -1 => (&all_neighbours, Candidates::AllNeighbours, 1),
            m => (&by_confidence, Candidates::MoreConfident, m as usize),
        };
        let (rho, tau) = match m {
            -1 => ablation.best_rho(&vertices, gcn_e, candidates)?,
            _ => {
                let links = train.connected(links, &train.connectivity(gcn_e, rho, candidates)?)?;
                (rho, ablation.best_tau(&links, &ablation.held_out).0)
            }
        };
        let (links, cost) = measure(|| test.connected(links, &test.connectivity(gcn_e, rho, candidates)?));
        let links = links?;
        let scores = ablation.score(&links, tau)?;
        let (own, at_tau_of_1) = (both_f(&scores), both_f(&ablation.score(&links, tau_of_1)?));
        cells.push(vec![
            m.to_string(),
            percent(own[0] / 100.0),
            percent(own[1] / 100.0),
            format!("{tau:.2}"),
            format!("{rho:.1}"),
            scores.clusters.to_string(),
            percent(at_tau_of_1[0] / 100.0),
            percent(at_tau_of_1[1] / 100.0),
            format!("{:.3}", vertices.seconds[1] + cost.seconds),
        ]);
        let bar = |name: String, values| Bars { name, colour: palette::GCN_VE, values };
        bars.push(bar(format!("M = {m}, its own tau"), own));
        if m != 1 {
            bars.push(bar(format!("M = {m}, tau of M = 1"), at_tau_of_1));
        }
    }
    let picture = draw_bars("Links of each row (GCN-V+E)", ["pairwise F", "BCubed F"], &bars);
    let notes = [format!(
        "GCN-V {:.1} s, GCN-E {fitting:.1} s, GCN-E on all neighbours {fitting_all:.1} s to fit; {}.\n\
         tau chosen for each M, and rho for 1 and -1, by the mean of both F of held-out identities;\n\
         the columns \"tau of M = 1\" cut all at {tau_of_1:.2}.",
        vertices.seconds[0],
        vertices.describe_graph(),
    )];
    ablation.report(&COLUMNS, &cells, &picture, &notes)
}
