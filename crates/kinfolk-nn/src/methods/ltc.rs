//! LTC: proposals of clusters at several thresholds, the best chosen by networks (see `apply/ltc.rs`).
//!
//! The model file has tensors `gcn_d.conv1.weight`, `gcn_s.conv1.weight` ...

use super::check_columns;
use crate::{GraphNetwork, LearnedMethod, LtcParams, ModelFile, ProposalParams, ProposalSetting, ltc};
use kinfolk::stages::SizeLimit;
use kinfolk::{Clustering, Context, Error, Method, MethodInfo, Parameters, Problem, Reason, Report, Result};
use serde::{Deserialize, Serialize};

/// The tag of the model file.
pub(crate) const TAG: &str = "ltc";

kinfolk::parameters! {
    /// Parameters of the application of a model.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LtcSettings {
        /// Proposals of less estimated IoU are dropped; the default is that of the model.
        pub least: f32 = 0.0, "an IoU from 0 to 1", |least| (0.0..=1.0).contains(least);
        /// Maximum number of rows of a proposal.
        pub max_size: usize = 300, "at least 1", |size| *size >= 1;
        /// Each round raises the threshold of proposals that are too large by this share of its difference to 1.
        pub step: f32 = 0.05, "above 0", |step| *step > 0.0 && step.is_finite();
        /// How often proposals are merged into larger ones.
        pub levels: usize = 1;
    }
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    settings: Vec<Setting>,
    min_size: usize,
    levels: usize,
    max_size: usize,
    step: f32,
    rounds: usize,
    least: f32,
    segment: Option<[f32; 2]>,
}

#[derive(Serialize, Deserialize)]
struct Setting {
    k: usize,
    th: f32,
}

/// Clusters by proposals that two trained networks score and trim.
#[derive(Debug, Clone, PartialEq)]
pub struct Ltc {
    gcn_d: GraphNetwork,
    gcn_s: GraphNetwork,
    params: LtcParams,
    /// How it is applied.
    pub settings: LtcSettings,
}

impl Ltc {
    /// GCN-D, which estimates the IoU of a proposal, GCN-S, which tells its outliers, and how to apply them.
    pub fn new(gcn_d: GraphNetwork, gcn_s: GraphNetwork, params: LtcParams) -> Self {
        let SizeLimit { max_size, step, .. } = params.proposals.limit;
        let settings = LtcSettings { least: params.least, max_size, step, levels: params.proposals.levels };
        Ltc { gcn_d, gcn_s, params, settings }
    }

    /// GCN-D and GCN-S.
    pub fn networks(&self) -> [&GraphNetwork; 2] {
        [&self.gcn_d, &self.gcn_s]
    }

    /// How they are applied.
    pub fn params(&self) -> LtcParams {
        let mut params = self.params.clone();
        let LtcSettings { least, max_size, step, levels } = self.settings;
        params.least = least;
        params.proposals.levels = levels;
        params.proposals.limit = SizeLimit { max_size, step, ..params.proposals.limit };
        params
    }

    /// Columns of the embeddings it takes.
    pub fn dim(&self) -> usize {
        self.gcn_d.inputs().saturating_sub(1)
    }

    /// Reads a model from a file's contents.
    pub fn from_file(mut file: ModelFile) -> Result<Self> {
        file.expect(TAG)?;
        let Metadata { settings, min_size, levels, max_size, step, rounds, least, segment } =
            file.metadata()?;
        let settings = settings.into_iter().map(|Setting { k, th }| ProposalSetting { k, th }).collect();
        let limit = SizeLimit { max_size, step, rounds };
        let proposals = ProposalParams { settings, limit, min_size, levels };
        let params = LtcParams { proposals, least, segment };
        params.check().map_err(|e| file.unusable(e))?;
        let (gcn_d, gcn_s) = (file.take_network("gcn_d")?, file.take_network("gcn_s")?);
        if gcn_d.inputs() != gcn_s.inputs() {
            let expected = format!("GCN-S for rows of {}, as GCN-D", gcn_d.inputs());
            return Err(Error::format(file.place(), expected, format!("for rows of {}", gcn_s.inputs())));
        }
        file.finish()?;
        Ok(Ltc::new(gcn_d, gcn_s, params))
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "ltc",
    "LTC",
    "Generates proposals of clusters at several thresholds and selects the best by two networks",
)
.when("for comparison: it selects whole clusters instead of links")
.cost("N K for each of up to 8 thresholds")
.needs_model()
.in_paper()
.color("#e377c2");

impl Method for Ltc {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn parameters(&self) -> &dyn Parameters {
        &self.settings
    }

    fn parameters_mut(&mut self) -> &mut dyn Parameters {
        &mut self.settings
    }

    fn run(&self, problem: &Problem, context: &Context) -> Result<Clustering> {
        self.settings.check()?;
        let embeddings = problem.embeddings()?;
        check_columns(embeddings, self.dim())?;
        let params = self.params();
        let k = params.proposals.settings.iter().map(|setting| setting.k).max().unwrap_or(80);
        let found = problem.neighbours(k, context)?;
        let labels = context.timed("partition", || {
            ltc(embeddings, &found.graph, self.networks(), &params, context.progress())
        })?;
        let mut report = Report::new(self, Some(found.report), context);
        let thresholds: Vec<String> =
            params.proposals.settings.iter().map(|setting| setting.th.to_string()).collect();
        report.set("thresholds", thresholds.join(","));
        report.set("segment", params.segment.is_some());
        Ok(Clustering::new(labels, Reason::None, report))
    }
}

impl LearnedMethod for Ltc {
    fn to_model(&self) -> Option<ModelFile> {
        let LtcParams { proposals, least, segment } = self.params();
        let settings =
            proposals.settings.iter().map(|&ProposalSetting { k, th }| Setting { k, th }).collect();
        let SizeLimit { max_size, step, rounds } = proposals.limit;
        let (min_size, levels) = (proposals.min_size, proposals.levels);
        let metadata = Metadata { settings, min_size, levels, max_size, step, rounds, least, segment };
        let mut file = ModelFile::new(TAG, &metadata);
        file.insert_network("gcn_d", &self.gcn_d);
        file.insert_network("gcn_s", &self.gcn_s);
        Some(file)
    }
}

/// The description of the method, for the registry.
pub(crate) fn info() -> &'static MethodInfo {
    &INFO
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn model(gcn_s: GraphNetwork, params: LtcParams) -> Ltc {
        Ltc::new(testing::network(1, 5, &[6, 3], 1), gcn_s, params)
    }

    #[test]
    fn a_model_is_read_as_it_was_written() {
        for segment in [None, Some([0.25, 0.5])] {
            let params = LtcParams { least: 0.4, segment, ..LtcParams::default() };
            let model = model(testing::network(2, 5, &[4], 2), params);
            let bytes = model.to_model().unwrap().to_bytes().unwrap();
            assert_eq!(Ltc::from_file(ModelFile::parse(&bytes, "m").unwrap()).unwrap(), model);
        }
    }

    #[test]
    fn what_cannot_be_is_said() {
        let message = |model: Ltc| Ltc::from_file(model.to_model().unwrap()).unwrap_err().to_string();
        let said = message(model(testing::network(2, 6, &[4], 2), LtcParams::default()));
        assert!(said.ends_with("expected GCN-S for rows of 5, as GCN-D, found for rows of 6"), "{said}");
        let params = LtcParams { least: 2.0, ..LtcParams::default() };
        let said = message(model(testing::network(2, 5, &[4], 2), params));
        assert!(said.ends_with("least: expected an IoU from 0 to 1, found 2"), "{said}");
    }
}
