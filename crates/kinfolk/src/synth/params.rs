//! Parameters of a synthetic set.

use crate::{Error, Result};

/// A calibrated set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Faces, as hard as MS-Celeb-1M with K = 80: about 68 images of an identity.
    #[default]
    Faces,
    /// Many small identities, as hard as DeepFashion with K = 5: 3 to 8 images of most, 162 of the largest.
    Fashion,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Profile; 2] = [Profile::Faces, Profile::Fashion];

    /// Its name in the command and in Python.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Faces => "faces",
            Profile::Fashion => "fashion",
        }
    }

    /// Number of neighbours that it is calibrated with.
    pub fn k(self) -> usize {
        match self {
            Profile::Faces => 80,
            Profile::Fashion => 5,
        }
    }

    /// Its parameters.
    pub fn params(self) -> SynthParams {
        match self {
            Profile::Faces => SynthParams::default(),
            Profile::Fashion => SynthParams {
                identities: 3991,
                histogram: Some(FASHION_SIZES),
                intrinsic_dim: 4.93,
                group_size: 6.16,
                likeness: 0.455,
                max_modes: 6,
                mode_size: 4.52,
                mode_spread: 0.393,
                noise: 0.27,
                noise_tail: 0.349,
                noise_dim: 19.1,
                noise_between: 0.194,
                drift_from: 0.708,
                drift: 1.745,
                ..SynthParams::default()
            },
        }
    }
}

impl std::str::FromStr for Profile {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Profile::ALL.into_iter().find(|profile| profile.name() == name);
        found.ok_or_else(|| Error::Parameter {
            field: "profile",
            expected: "faces or fashion",
            found: name.to_owned(),
        })
    }
}

/// The sizes of the identities of the test half of DeepFashion, each with their number: 26,960 images of 3,991 identities.
/// Most are multiples of four: a piece of clothing has about four photographs of each of its colours.
#[rustfmt::skip]
const FASHION_SIZES: &[(u32, u32)] = &[
    (1, 6), (2, 13), (3, 407), (4, 1519), (5, 690), (6, 110), (7, 124), (8, 382), (9, 132), (10, 110),
    (11, 48), (12, 122), (13, 42), (14, 35), (15, 48), (16, 44), (17, 20), (18, 10), (19, 14), (20, 24),
    (21, 4), (22, 5), (23, 5), (24, 11), (25, 7), (26, 1), (27, 5), (28, 5), (29, 1), (30, 5), (31, 2),
    (32, 3), (33, 4), (34, 2), (35, 3), (39, 1), (40, 2), (43, 1), (45, 1), (46, 2), (47, 1), (48, 1),
    (49, 2), (50, 1), (51, 1), (55, 2), (56, 1), (62, 1), (66, 1), (73, 1), (76, 1), (77, 1), (89, 2),
    (102, 2), (112, 1), (131, 1), (162, 1),
];

/// The description of a synthetic set. The defaults are the faces of the [module documentation](super), whose formulas use the
/// symbols in brackets. [`Profile::params`] has the other calibrated set, and any field can be changed:
///
/// ```
/// use kinfolk::synth::{Profile, SynthParams};
///
/// let noisy = SynthParams { noise: 1.1, ..SynthParams::default() };
/// assert!(noisy.validate().is_ok());
/// let clothes = SynthParams { identities: 500, ..Profile::Fashion.params() };
/// assert!(clothes.validate().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SynthParams {
    /// Number of identities (1,500).
    pub identities: usize,
    /// Number of columns (256).
    pub dim: usize,
    /// The same seed gives the same bytes (0).
    pub seed: u64,
    /// Number of directions in which embeddings really vary: the participation ratio of the spectrum (48)
    /// \[d₀\]. With fewer directions, different identities are more similar.
    pub intrinsic_dim: f64,
    /// Mean number of images of an identity (68). Met to within rounding by every set, not only on average.
    pub mean_size: f64,
    /// Standard deviation of the logarithm of the size (0.7); 0 gives identities of one size.
    pub size_spread: f64,
    /// Smallest identity (2), singletons aside.
    pub min_size: usize,
    /// Largest identity (300).
    pub max_size: usize,
    /// Share of the identities that have one image only (0). They count in `mean_size`.
    pub singletons: f64,
    /// Sizes, each with its number of identities, instead of the five fields above (none). As many successive identities as
    /// it counts have exactly these sizes, in random order.
    pub histogram: Option<&'static [(u32, u32)]>,
    /// Mean number of identities in a group of look-alikes (10); 1 for no look-alikes.
    pub group_size: f64,
    /// Squared share of an identity's centre that its group has in common, 0 to 1 (0.3) \[g\].
    pub likeness: f64,
    /// Most modes (poses, ages) an identity can have (4); each has 1 to this many, equally often.
    pub max_modes: usize,
    /// Mean number of images of a mode (0), so that large identities have more modes; 0 for any number up to `max_modes`.
    pub mode_size: f64,
    /// Squared share of a mode's centre that is not its identity's, 0 to 1 (0.12) \[m\].
    pub mode_spread: f64,
    /// Median length of the noise of an image whose mode has length one (0.91) \[σ₀\].
    pub noise: f64,
    /// How unequal the quality of images is, and how heavy the tail of low quality (0.22) \[h\]; 0 for equal.
    pub noise_tail: f64,
    /// Participation ratio of the spectrum of the noise (0); 0 for that of the identities.
    pub noise_dim: f64,
    /// How unequal the noise of identities is (0): the standard deviation of the logarithm of σ₀ \[e\].
    pub noise_between: f64,
    /// Number of directions, shared by everybody, towards which low quality drifts (8).
    pub drift_directions: usize,
    /// Length of noise from which an image drifts (1.25) \[σ₁\].
    pub drift_from: f64,
    /// How much it drifts per length of noise beyond that (1.25) \[b\]; 0 for none.
    pub drift: f64,
}

impl Default for SynthParams {
    fn default() -> Self {
        Self {
            identities: 1500,
            dim: 256,
            seed: 0,
            intrinsic_dim: 48.0,
            mean_size: 68.0,
            size_spread: 0.7,
            min_size: 2,
            max_size: 300,
            singletons: 0.0,
            histogram: None,
            group_size: 10.0,
            likeness: 0.3,
            max_modes: 4,
            mode_size: 0.0,
            mode_spread: 0.12,
            noise: 0.91,
            noise_tail: 0.22,
            noise_between: 0.0,
            noise_dim: 0.0,
            drift_directions: 8,
            drift_from: 1.25,
            drift: 1.25,
        }
    }
}

/// The most values (rows x columns) a set may have: what a file offset can address.
const MAX_VALUES: f64 = (1u64 << 60) as f64;

impl SynthParams {
    /// Refuses what no set can have, naming the first such parameter.
    pub fn validate(&self) -> Result<()> {
        let check = |name, ok: bool, expected, found: String| match ok {
            true => Ok(()),
            false => Err(Error::Parameter { field: name, expected, found }),
        };
        let count = |name, value: usize, most: usize, expected| {
            check(name, (1..=most).contains(&value), expected, value.to_string())
        };
        // A comparison with NaN is false, so NaN fails every one of these.
        let real = |name, value: f64, least: f64, most: f64, expected| {
            check(name, least <= value && value <= most, expected, value.to_string())
        };
        count("identities", self.identities, u32::MAX as usize, "at least 1 and fewer than 2^32")?;
        count("dim", self.dim, 65_536, "1 to 65536")?;
        real("intrinsic-dim", self.intrinsic_dim, 1.0, 65_536.0, "1 to 65536")?;
        real("size-spread", self.size_spread, 0.0, 5.0, "0 to 5")?;
        count("min-size", self.min_size, u32::MAX as usize, "at least 1 and fewer than 2^32")?;
        count("max-size", self.max_size, u32::MAX as usize, "at least 1 and fewer than 2^32")?;
        check(
            "max-size",
            self.max_size >= self.min_size,
            "at least min-size",
            format!("{} below {}", self.max_size, self.min_size),
        )?;
        real("singletons", self.singletons, 0.0, 1.0, "0 to 1")?;
        // With singletons, the others must make up for them.
        let others = self.mean_of_others();
        check(
            "mean-size",
            self.histogram.is_some()
                || self.mean_size.is_finite()
                    && (self.singletons == 1.0
                        || (self.min_size as f64..=self.max_size as f64).contains(&others)),
            "a mean that sizes between min-size and max-size can have, singletons included",
            self.mean_size.to_string(),
        )?;
        check(
            "identities",
            self.identities as f64 * self.mean_size.max(1.0) * self.dim as f64 <= MAX_VALUES,
            "a set of at most 2^60 values",
            format!("{} identities of {} rows of {}", self.identities, self.mean_size, self.dim),
        )?;
        real("group-size", self.group_size, 1.0, u32::MAX as f64, "at least 1 and less than 2^32")?;
        real("likeness", self.likeness, 0.0, 1.0, "0 to 1")?;
        real("mode-size", self.mode_size, 0.0, u32::MAX as f64, "0 or more and less than 2^32")?;
        count("max-modes", self.max_modes, 1000, "1 to 1000")?;
        real("mode-spread", self.mode_spread, 0.0, 1.0, "0 to 1")?;
        real("noise", self.noise, 0.0, 1e6, "0 to 1e6")?;
        real("noise-tail", self.noise_tail, 0.0, 5.0, "0 to 5")?;
        let spectrum = self.noise_dim == 0.0 || (1.0..=65_536.0).contains(&self.noise_dim);
        check("noise-dim", spectrum, "0, or 1 to 65536", self.noise_dim.to_string())?;
        real("noise-between", self.noise_between, 0.0, 5.0, "0 to 5")?;
        count("drift-directions", self.drift_directions, 1_000_000, "1 to 1000000")?;
        real("drift-from", self.drift_from, 0.0, f64::MAX, "a number, 0 or more")?;
        real("drift", self.drift, 0.0, 1e6, "0 to 1e6")
    }

    /// The mean size that identities other than singletons must have.
    pub(super) fn mean_of_others(&self) -> f64 {
        (self.mean_size - self.singletons) / (1.0 - self.singletons)
    }
}
