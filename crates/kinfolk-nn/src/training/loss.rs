//! The losses that training minimises.

/// The loss of a row; training minimises its mean over a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loss {
    /// (output - target)^2, with one output: Equations 5 and 8 of the paper.
    #[default]
    Squares,
    /// -log of the softmax's share of the right one of two outputs, as in the published code of GCN-E.
    CrossEntropy,
}

kinfolk::word_values!(Loss: "squares or cross-entropy",
    "squares" => Loss::Squares, "cross-entropy" => Loss::CrossEntropy);

impl Loss {
    /// How many outputs of the network it takes.
    pub(super) fn outputs(self) -> usize {
        match self {
            Loss::Squares => 1,
            Loss::CrossEntropy => 2,
        }
    }

    /// The gradient of the mean loss of a batch by its outputs, and the sum of the losses, in order and in double
    /// precision.
    pub(super) fn gradient(self, outputs: &[f32], targets: &[f32]) -> (Vec<f32>, f64) {
        assert_eq!(outputs.len(), targets.len() * self.outputs(), "expected the outputs of each target");
        let share = 1.0 / targets.len().max(1) as f32;
        let mut gradient = Vec::with_capacity(outputs.len());
        let mut sum = 0.0;
        for (output, &target) in outputs.chunks_exact(self.outputs()).zip(targets) {
            match self {
                Loss::Squares => {
                    let error = output[0] - target;
                    sum += f64::from(error * error);
                    gradient.push(2.0 * error * share);
                }
                Loss::CrossEntropy => {
                    let (a, b) = (output[0], output[1]);
                    let largest = a.max(b);
                    let log_sum = largest + ((a - largest).exp() + (b - largest).exp()).ln();
                    sum += f64::from((1.0 - target) * (log_sum - a) + target * (log_sum - b));
                    gradient.push(((a - log_sum).exp() - (1.0 - target)) * share);
                    gradient.push(((b - log_sum).exp() - target) * share);
                }
            }
        }
        (gradient, sum)
    }
}
