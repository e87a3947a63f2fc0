//! L-GCN: the probability of every link, then components of limited size (see `apply/lgcn.rs`).
//!
//! The model file has tensors `lgcn.conv1.weight` ...

use super::check_columns;
use crate::{GraphNetwork, LearnedMethod, LgcnParams, ModelFile, PivotShape, lgcn};
use kinfolk::stages::SizeLimit;
use kinfolk::{Clustering, Context, Method, MethodInfo, Parameters, Problem, Reason, Report, Result};
use serde::{Deserialize, Serialize};

/// The tag of the model file.
pub(crate) const TAG: &str = "lgcn";

kinfolk::parameters! {
    /// Parameters of the application of a model.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LgcnSettings {
        /// Links of less probability are left out; the default is that of the model.
        pub th: f32 = 0.5, "a probability from 0 to 1", |th| (0.0..=1.0).contains(th);
        /// Maximum number of rows of a cluster.
        pub max_size: usize = 300, "at least 1", |size| *size >= 1;
        /// Each round raises the threshold of clusters that are too large by this share of its difference to 1.
        pub step: f32 = 0.05, "above 0", |step| *step > 0.0 && step.is_finite();
        /// Maximum number of rounds.
        pub rounds: usize = 100, "at least 1", |rounds| *rounds >= 1;
    }
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    k1: usize,
    k2: usize,
    active: usize,
    th: f32,
    max_size: usize,
    step: f32,
    rounds: usize,
}

/// Clusters by the links that a trained L-GCN finds probable.
#[derive(Debug, Clone, PartialEq)]
pub struct Lgcn {
    network: GraphNetwork,
    shape: PivotShape,
    /// How it is applied.
    pub settings: LgcnSettings,
}

impl Lgcn {
    /// A network, and how to apply it.
    pub fn new(network: GraphNetwork, params: &LgcnParams) -> Self {
        let LgcnParams { shape, th, limit } = params;
        let SizeLimit { max_size, step, rounds } = *limit;
        Lgcn { network, shape: *shape, settings: LgcnSettings { th: *th, max_size, step, rounds } }
    }

    /// The network: one output, or two that are logits.
    pub fn network(&self) -> &GraphNetwork {
        &self.network
    }

    /// How it is applied.
    pub fn params(&self) -> LgcnParams {
        let LgcnSettings { th, max_size, step, rounds } = self.settings;
        LgcnParams { shape: self.shape, th, limit: SizeLimit { max_size, step, rounds } }
    }

    /// Reads a model from a file's contents.
    pub fn from_file(mut file: ModelFile) -> Result<Self> {
        file.expect(TAG)?;
        let Metadata { k1, k2, active, th, max_size, step, rounds } = file.metadata()?;
        let limit = SizeLimit { max_size, step, rounds };
        let params = LgcnParams { shape: PivotShape { k1, k2, active }, th, limit };
        params.check().map_err(|e| file.unusable(e))?;
        let network = file.take_network(TAG)?;
        file.finish()?;
        Ok(Lgcn::new(network, &params))
    }
}

static INFO: MethodInfo = MethodInfo::new(
    "lgcn",
    "L-GCN",
    "Estimates the probability of the links of every row to its neighbours; clusters are components of limited size",
)
.when("for comparison: it uses links only, and is tens of times slower than gcn-v")
.cost("N V, with V rows within two hops of a row, about 100 to 400")
.needs_model()
.in_paper()
.color("#6b3fa0");

impl Method for Lgcn {
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
        check_columns(embeddings, self.network.inputs())?;
        let mut params = self.params();
        params.shape.k1 = problem.k().unwrap_or(params.shape.k1);
        let found = problem.neighbours(params.shape.k1, context)?;
        let labels = context.timed("partition", || {
            lgcn(embeddings, &found.graph, &self.network, &params, context.progress())
        })?;
        let mut report = Report::new(self, Some(found.report), context);
        report.set("k1", params.shape.k1);
        report.set("k2", params.shape.k2);
        report.set("active", params.shape.active);
        Ok(Clustering::new(labels, Reason::None, report))
    }
}

impl LearnedMethod for Lgcn {
    fn to_model(&self) -> Option<ModelFile> {
        let LgcnSettings { th, max_size, step, rounds } = self.settings;
        let PivotShape { k1, k2, active } = self.shape;
        let mut file = ModelFile::new(TAG, &Metadata { k1, k2, active, th, max_size, step, rounds });
        file.insert_network(TAG, &self.network);
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

    #[test]
    fn a_model_is_read_as_it_was_written() {
        let shape = PivotShape { k1: 9, k2: 3, active: 4 };
        let params = LgcnParams { shape, th: 0.7, ..LgcnParams::default() };
        let model = Lgcn::new(testing::network(1, 4, &[6, 5], 2), &params);
        let bytes = model.to_model().unwrap().to_bytes().unwrap();
        let file = ModelFile::parse(&bytes, "m").unwrap();
        assert_eq!(file.method(), "lgcn");
        assert_eq!(Lgcn::from_file(file.clone()).unwrap(), model);
        // It is not taken for another's.
        assert!(crate::GcnModel::from_file(file).is_err());
    }

    #[test]
    fn what_cannot_be_is_said() {
        let params = LgcnParams { th: 3.0, ..LgcnParams::default() };
        let file = Lgcn::new(testing::network(1, 4, &[6, 5], 2), &params).to_model().unwrap();
        let message = Lgcn::from_file(file).unwrap_err().to_string();
        let expected =
            "expected a usable configuration, found th: expected a probability from 0 to 1, found 3";
        assert!(message.ends_with(expected), "{message}");
    }
}
