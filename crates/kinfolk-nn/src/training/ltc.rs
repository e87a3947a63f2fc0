//! Training of LTC (Yang et al., 2019): GCN-D, how good a proposal is, and GCN-S, which of its rows are outliers.
//!
//! Proposals are made of the training set as they are of any other (`apply/proposals.rs`), at thresholds evenly spaced between
//! the similarities that most of its edges have. An example of GCN-D is a proposal, its target the IoU with the identity that most
//! of its rows have, the loss the squared error, as published. An example of GCN-S is a proposal of several identities and one of
//! its rows as seed, drawn anew in each epoch; the target of each row is whether it has the seed's identity, the loss is cross-entropy. Proposals of
//! identities that are held out are judged by, not learned from.
//!
//! Which of the thresholds proposals are made at, their least score, and whether GCN-S is applied, are chosen on the held-out
//! identities: a score that is a little too kind to large proposals ruins what many thresholds could bring.
//!
//! Cost of an epoch: 6 (number of weights) operations for each row of each proposal.

use super::augment::augment;
use super::batch::{Batch, Examples, Operators, Readout};
use super::division::{Division, divide};
use super::fit::{FitRun, FittedNetwork, fit};
use super::initial::{Shape, initial};
use super::lgcn::{enlarge, largest_identity, scale};
use super::loss::Loss;
use super::params::{FitParams, at_least_one, held_out, one_per_row};
use super::random::Random;
use super::sparse::{Operator, Sparse};
use crate::apply::ltc::{ProposalScratch, push_proposal, segmented};
use crate::apply::subgraphs::{Centre, SubGraphs};
use crate::{
    Ltc, LtcParams, ProposalParams, ProposalSetting, Proposals, de_overlapped, proposal_scores, proposals,
};
use kinfolk::metrics::Judge;
use kinfolk::stages::{Adjacency, SizeLimit};
use kinfolk::{Embeddings, Error, KnnGraph, Progress, Result};

/// Thresholds of proposals.
const THRESHOLDS: usize = 8;

/// Scores that a proposal may need.
const LEAST: [f32; 8] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7];

/// Shares of a proposal's rows that one identity may have for it to be an example of outliers.
const MIXED: [f32; 2] = [0.3, 0.95];

/// Parameters of [`train_ltc`].
#[derive(Debug, Clone, PartialEq)]
pub struct LtcTraining {
    /// Outputs of each convolution, of both networks. Default 512, 64.
    pub convolutions: Vec<usize>,
    /// Outputs of the first layer of both heads. Default 64.
    pub hidden: usize,
    /// How the weights are fitted; an example is one proposal. Default: 10 epochs of at most 5,000 proposals in batches of 32, from
    /// a rate of 0.01.
    pub fit: FitParams,
    /// The rate that GCN-S begins with, whose loss, a mean over the rows of a proposal, is flatter than GCN-D's. Default 0.1.
    pub segment_rate: f32,
}

impl Default for LtcTraining {
    fn default() -> Self {
        Self {
            convolutions: vec![512, 64],
            hidden: 64,
            fit: FitParams {
                epochs: 10,
                batch: 32,
                examples: 5_000,
                learning_rate: 0.01,
                ..FitParams::default()
            },
            segment_rate: 0.1,
        }
    }
}

impl LtcTraining {
    /// Refuses what cannot be.
    pub fn validate(&self) -> Result<()> {
        at_least_one("layers", self.convolutions.len())?;
        for &width in self.convolutions.iter().chain([&self.hidden]) {
            at_least_one("width", width)?;
        }
        self.fit.validate()?;
        self.segment_fit().validate()
    }

    fn segment_fit(&self) -> FitParams {
        FitParams { learning_rate: self.segment_rate, ..self.fit.clone() }
    }
}

/// One way to choose among proposals, and how it did on held-out identities.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposalChoice {
    /// The thresholds that proposals are made at, descending.
    pub thresholds: Vec<f32>,
    /// Whether GCN-S is applied.
    pub segment: bool,
    /// Least score of a proposal.
    pub least: f32,
    /// Mean of pairwise and BCubed F of the held-out rows, from 0 to 1.
    pub f: f64,
}

/// What [`train_ltc`] made.
#[derive(Debug, Clone)]
pub struct TrainedLtc {
    /// The networks, and the best way to apply them.
    pub model: Ltc,
    /// How GCN-D was trained.
    pub gcn_d: FittedNetwork,
    /// How GCN-S was trained.
    pub gcn_s: FittedNetwork,
    /// Every way that was tried.
    pub choices: Vec<ProposalChoice>,
}

/// Trains LTC on labelled embeddings and their graph.
pub fn train_ltc(
    embeddings: &Embeddings,
    labels: &[i64],
    graph: &KnnGraph,
    params: &LtcTraining,
    progress: &dyn Progress,
) -> Result<TrainedLtc> {
    params.validate()?;
    one_per_row("labels", "labels", labels.len(), embeddings)?;
    one_per_row("graph", "vertices", graph.len(), embeddings)?;
    let division = held_out(divide(labels, &params.fit), &params.fit)?;
    let adjacency = Adjacency::from_knn(graph, 0.0)?;
    let defaults = LtcParams::default();
    let limit = SizeLimit { max_size: largest_identity(labels), ..SizeLimit::default() };
    let widest = ProposalParams {
        settings: proposal_settings(graph, THRESHOLDS),
        limit,
        ..defaults.proposals.clone()
    };
    let pool = proposals(embeddings, graph, &widest, progress)?;
    let judged = Judged::new(labels, &pool);

    let all = Fitting {
        embeddings,
        labels,
        adjacency: &adjacency,
        pool: &pool,
        judged: &judged,
        params,
        scale: scale(embeddings, graph, graph.k()),
    };
    let everything = all.divided(&division, |_| true);
    let mixed = |at: usize| (MIXED[0]..=MIXED[1]).contains(&judged.purity[at]);
    let gcn_d = all.fit(&mut Whole(&all), &everything, Loss::Squares, &params.fit, progress)?;
    // Where all proposals are pure there are no outliers, and any are as good to learn that from.
    let mut outliers = all.divided(&division, mixed);
    if outliers.training.is_empty() {
        outliers = everything;
    }
    let gcn_s =
        all.fit(&mut Outliers(&all), &outliers, Loss::CrossEntropy, &params.segment_fit(), progress)?;

    let networks = [&gcn_d.network, &gcn_s.network];
    let range = defaults.segment.unwrap_or([0.3, 0.7]);
    let judge = Judge::new(labels, division.validation);
    let mut choices = Vec::new();
    for window in windows(&widest.settings) {
        let some = ProposalParams { settings: window.to_vec(), ..widest.clone() };
        let mut pool = proposals(embeddings, graph, &some, progress)?;
        let mut scores = proposal_scores(networks[0], embeddings, &adjacency, &pool, progress)?;
        for segment in [false, true] {
            if segment {
                let left = segmented(
                    networks[1],
                    embeddings,
                    &adjacency,
                    &pool,
                    &scores,
                    range,
                    widest.min_size,
                    progress,
                )?;
                scores.extend(proposal_scores(networks[0], embeddings, &adjacency, &left, progress)?);
                left.iter().for_each(|members| pool.push(members));
            }
            for least in LEAST {
                let f = judge.score(&de_overlapped(labels.len(), &pool, &scores, least));
                let thresholds = window.iter().map(|setting| setting.th).collect();
                choices.push(ProposalChoice { thresholds, segment, least, f });
            }
        }
    }
    let best = choices.iter().fold(&choices[0], |best, choice| if choice.f > best.f { choice } else { best });
    let chosen = widest.settings.iter().filter(|setting| best.thresholds.contains(&setting.th));
    let params = LtcParams {
        proposals: ProposalParams { settings: chosen.copied().collect(), ..widest.clone() },
        least: best.least,
        segment: Some(range).filter(|_| best.segment),
    };
    let model = Ltc::new(gcn_d.network.clone(), gcn_s.network.clone(), params);
    Ok(TrainedLtc { model, gcn_d, gcn_s, choices })
}

/// All settings, then each half of them, each quarter, and each alone.
fn windows(settings: &[ProposalSetting]) -> impl Iterator<Item = &[ProposalSetting]> {
    let widths =
        std::iter::successors(Some(settings.len()), |&width| Some(width / 2).filter(|&half| half > 0));
    widths.flat_map(|width| settings.chunks(width))
}

/// So many thresholds, descending, evenly spaced between the similarities that nine tenths and a tenth of the edges stay below;
/// the middle if it is one.
pub fn proposal_settings(graph: &KnnGraph, count: usize) -> Vec<ProposalSetting> {
    let mut all: Vec<f32> = (0..graph.len()).flat_map(|i| graph.neighbours(i).1).copied().collect();
    all.sort_unstable_by(f32::total_cmp);
    let at = |share: f64| all.get((all.len() as f64 * share) as usize).copied().unwrap_or(0.5);
    let (low, high) = (at(0.1).clamp(-1.0, 1.0), at(0.9).clamp(-1.0, 1.0));
    let th = |i: usize| high - (high - low) * (i as f32 + 0.5) / count as f32;
    (0..count).map(|i| ProposalSetting { k: graph.k().max(1), th: th(i) }).collect()
}

/// What labels say of proposals.
struct Judged {
    /// The identity that most rows have; of several the smallest label.
    identity: Vec<i64>,
    /// The share of the rows that have it.
    purity: Vec<f32>,
    /// Rows in both the proposal and the identity, of those in either.
    iou: Vec<f32>,
}

impl Judged {
    fn new(labels: &[i64], pool: &Proposals) -> Self {
        let mut sizes = std::collections::HashMap::new();
        labels.iter().for_each(|label| *sizes.entry(*label).or_insert(0usize) += 1);
        let mut judged = Judged { identity: Vec::new(), purity: Vec::new(), iou: Vec::new() };
        for members in pool.iter() {
            let mut own: Vec<i64> = members.iter().map(|&i| labels[i as usize]).collect();
            own.sort_unstable();
            let mut most = (0, 0);
            for group in own.chunk_by(|a, b| a == b) {
                if group.len() > most.1 {
                    most = (group[0], group.len());
                }
            }
            let (identity, both) = most;
            judged.identity.push(identity);
            judged.purity.push(both as f32 / members.len() as f32);
            judged.iou.push(both as f32 / (members.len() + sizes[&identity] - both) as f32);
        }
        judged
    }
}

/// What both networks are fitted to.
struct Fitting<'a> {
    embeddings: &'a Embeddings,
    labels: &'a [i64],
    adjacency: &'a Adjacency,
    pool: &'a Proposals,
    judged: &'a Judged,
    params: &'a LtcTraining,
    /// What rows are multiplied by; see `lgcn.rs`.
    scale: f32,
}

impl Fitting<'_> {
    /// Proposals by the identity of most of their rows.
    fn divided(&self, rows: &Division, used: impl Fn(usize) -> bool) -> Division {
        let mut held: Vec<i64> = rows.validation.iter().map(|&row| self.labels[row as usize]).collect();
        held.sort_unstable();
        held.dedup();
        let is_held = |&at: &u32| held.binary_search(&self.judged.identity[at as usize]).is_ok();
        let (validation, training) =
            (0..self.pool.len() as u32).filter(|&at| used(at as usize)).partition(is_held);
        Division { training, validation }
    }

    fn fit(
        &self,
        examples: &mut impl Examples,
        division: &Division,
        loss: Loss,
        params: &FitParams,
        progress: &dyn Progress,
    ) -> Result<FittedNetwork> {
        if division.training.is_empty() {
            let (expected, found) = ("rows that hang together in threes".to_owned(), "none".to_owned());
            return Err(Error::Format { place: "graph".to_owned(), expected, found });
        }
        let LtcTraining { convolutions, hidden, .. } = self.params;
        let dim = self.embeddings.dim();
        let shape = Shape { dim: dim + 1, convolutions, hidden: *hidden, outputs: loss.outputs() };
        let run = FitRun { resumed: None, after_epoch: &mut |_| Ok(()), progress };
        let mut trained = fit(initial(&shape, params.seed), examples, division, loss, params, run)?;
        enlarge(&mut trained.network, self.scale, dim);
        Ok(trained)
    }

    /// [X, A^ X] of some proposals seen from `centres`, and A^.
    fn joined(
        &self,
        examples: &[u32],
        centres: &[Centre],
        random: Option<&mut Random>,
    ) -> (Vec<f32>, SubGraphs) {
        let dim = self.embeddings.dim();
        let mut scratch = ProposalScratch::new(self.embeddings.len());
        let mut graphs = SubGraphs::default();
        let mut rows: Vec<f32> = Vec::new();
        for (&at, &centre) in examples.iter().zip(centres) {
            let members = self.pool.members(at as usize);
            push_proposal(self.adjacency, members, centre, &mut scratch, &mut graphs);
            let from = match centre {
                Centre::Vertex(seed) => self.embeddings.row(seed as usize).to_vec(),
                Centre::Mean => {
                    let mut mean = vec![0.0; dim];
                    let share = 1.0 / members.len() as f32;
                    for &i in members {
                        let row = self.embeddings.row(i as usize);
                        mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += share * x);
                    }
                    mean
                }
            };
            for &i in members {
                let own = self.embeddings.row(i as usize);
                rows.extend(own.iter().zip(&from).map(|(own, from)| self.scale * (own - from)));
            }
        }
        // Before the last column, which must not be turned, is added.
        if let Some(random) = random {
            augment(&mut rows, dim, &self.params.fit, random);
        }
        let with_extra = rows.chunks_exact(dim).zip(&graphs.extra);
        let rows = with_extra.flat_map(|(row, extra)| row.iter().chain([extra]).copied()).collect();
        (rows, graphs)
    }

    /// Of X: the features, and one that marks the centre.
    fn columns(&self) -> usize {
        self.embeddings.dim() + 1
    }
}

/// Examples of GCN-D.
struct Whole<'a>(&'a Fitting<'a>);

impl Examples for Whole<'_> {
    fn batch(&self, examples: &[u32], random: &mut Random, augmented: bool) -> Batch {
        let centres = vec![Centre::Mean; examples.len()];
        let (rows, graphs) = self.0.joined(examples, &centres, augmented.then_some(random));
        let readout = Readout::Largest(graphs.graphs().collect());
        let matrix = Sparse::of(graphs);
        let joined = matrix.joined(&rows, self.0.columns());
        let targets = examples.iter().map(|&at| self.0.judged.iou[at as usize]).collect();
        Batch { joined, operators: Operators::Same(Operator::new(matrix)), readout, targets }
    }
}

/// Examples of GCN-S.
struct Outliers<'a>(&'a Fitting<'a>);

impl Examples for Outliers<'_> {
    fn batch(&self, examples: &[u32], random: &mut Random, augmented: bool) -> Batch {
        let members = |at: u32| self.0.pool.members(at as usize);
        let seeds: Vec<u32> =
            examples.iter().map(|&at| members(at)[random.below(members(at).len())]).collect();
        let label = |i: u32| self.0.labels[i as usize];
        let target = |(&at, &seed)| members(at).iter().map(move |&i| f32::from(label(i) == label(seed)));
        let targets = examples.iter().zip(&seeds).flat_map(target).collect();
        let centres: Vec<Centre> = seeds.iter().map(|&seed| Centre::Vertex(seed)).collect();
        let (rows, graphs) = self.0.joined(examples, &centres, augmented.then_some(random));
        let matrix = Sparse::of(graphs);
        let joined = matrix.joined(&rows, self.0.columns());
        Batch { joined, operators: Operators::Same(Operator::new(matrix)), readout: Readout::All, targets }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pass;
    use super::super::random::{Purpose, random};
    use super::*;
    use crate::testing::labelled_sets;
    use kinfolk::metrics::evaluate;

    fn quick() -> LtcTraining {
        LtcTraining {
            convolutions: vec![24, 16],
            hidden: 16,
            fit: FitParams { epochs: 6, learning_rate: 0.05, validation: 0.25, ..LtcTraining::default().fit },
            segment_rate: 0.05,
        }
    }

    #[test]
    fn clusters_of_other_identities_are_found_on_any_number_of_threads() {
        let [(rows, labels, graph), (others, truth, others_graph)] = labelled_sets();
        let on = |threads: usize| {
            let train = || train_ltc(&rows, &labels, &graph, &quick(), &()).unwrap();
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(train)
        };
        let found = on(1);
        let again = on(2);
        assert_eq!((&found.model, &found.choices), (&again.model, &again.choices));
        for trained in [&found.gcn_d, &found.gcn_s] {
            let (first, last) = (&trained.history[0], &trained.history[5]);
            assert!(last.training_loss < first.training_loss, "{:?}", trained.history);
        }
        let (networks, params) = (found.model.networks(), found.model.params());
        let labels = crate::ltc(&others, &others_graph, networks, &params, &()).unwrap();
        let scores = evaluate(&truth, &labels).unwrap();
        assert!(scores.bcubed.f > 0.6, "{scores:?}");
    }

    #[test]
    fn windows_are_all_and_ever_smaller_parts() {
        let settings: Vec<ProposalSetting> =
            (0..8).map(|i| ProposalSetting { k: 1, th: 0.9 - 0.1 * i as f32 }).collect();
        let widths: Vec<usize> = windows(&settings).map(<[_]>::len).collect();
        assert_eq!(widths, [8, 4, 4, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn labels_judge_proposals_by_their_largest_identity() {
        let labels = [1, 1, 1, 1, 2, 2, 3, 3];
        let mut pool = Proposals::default();
        for members in [&[0, 1, 2, 3][..], &[0, 1, 4], &[4, 6], &[0, 1, 2, 3, 4, 5, 6, 7]] {
            pool.push(members);
        }
        let judged = Judged::new(&labels, &pool);
        assert_eq!(judged.identity, [1, 1, 2, 1]);
        assert_eq!(judged.purity, [1.0, 2.0 / 3.0, 0.5, 0.5]);
        // Of sets, element by element.
        for (members, iou) in pool.iter().zip(&judged.iou) {
            let own = |label: i64| (0..8u32).filter(move |&i| labels[i as usize] == label);
            let best = [1, 2, 3].map(|label| {
                let both = own(label).filter(|i| members.contains(i)).count();
                let either =
                    (0..8u32).filter(|i| members.contains(i) || labels[*i as usize] == label).count();
                (both, both as f32 / either as f32)
            });
            let most = best.iter().fold((0, 0.0), |most, &b| if b.0 > most.0 { b } else { most });
            assert_eq!(*iou, most.1);
        }
    }

    #[test]
    fn the_networks_in_training_are_those_that_are_applied() {
        let [(embeddings, labels, graph), _] = labelled_sets();
        let adjacency = Adjacency::from_knn(&graph, 0.0).unwrap();
        let widest =
            ProposalParams { settings: proposal_settings(&graph, THRESHOLDS), ..ProposalParams::default() };
        let pool = proposals(&embeddings, &graph, &widest, &()).unwrap();
        let judged = Judged::new(&labels, &pool);
        let params = quick();
        let fitting = Fitting {
            embeddings: &embeddings,
            labels: &labels,
            adjacency: &adjacency,
            pool: &pool,
            judged: &judged,
            params: &params,
            scale: 3.0,
        };
        let shape = Shape { dim: 33, convolutions: &params.convolutions, hidden: 16, outputs: 1 };
        let mut network = initial(&shape, 1);
        let examples = [0, 5, 3];
        let batch = Whole(&fitting).batch(&examples, &mut random(0, Purpose::Noise, 0), false);
        let outputs = pass::outputs(&network, &batch);
        enlarge(&mut network, 3.0, 32);
        let scores = proposal_scores(&network, &embeddings, &adjacency, &pool, &()).unwrap();
        assert_eq!(outputs.len(), 3);
        for (output, at) in outputs.iter().zip(examples) {
            assert!((output - scores[at as usize]).abs() < 1e-4, "{output} {}", scores[at as usize]);
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let [(rows, labels, graph), _] = labelled_sets();
        let message =
            |params: LtcTraining| train_ltc(&rows, &labels, &graph, &params, &()).unwrap_err().to_string();
        let fit = FitParams { validation: 0.0, ..quick().fit };
        assert_eq!(
            message(LtcTraining { fit, ..quick() }),
            "validation: expected a share of the identities that is at least one of them, found 0"
        );
        assert_eq!(message(LtcTraining { hidden: 0, ..quick() }), "width: expected at least 1, found 0");
        let apart = kinfolk::Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let two = KnnGraph::from_parts(2, 1, vec![1, 0], vec![0.0; 2], "test").unwrap();
        let error = train_ltc(&apart, &[0, 1], &two, &quick(), &()).unwrap_err().to_string();
        assert_eq!(error, "graph: expected rows that hang together in threes, found none");
    }
}
