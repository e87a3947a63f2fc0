//! Every method of the tables by its name, and the settings of it that are tried on training identities: as many for each.

use super::contest::Part;
use kinfolk_baselines::Method;

/// Settings that are tried of each method that has anything to choose.
pub const SETTINGS: usize = 12;

/// Every name: in the order of the paper's tables, then what it does not have, then what is ours.
pub fn names() -> impl Iterator<Item = &'static str> {
    let (before, after) = Method::NAMES.split_at(PUBLISHED);
    let ours = ["density", "kin", "gcn-v", "gcn-ve"];
    before.iter().copied().chain(["lgcn", "ltc"]).chain(after.iter().copied()).chain(ours)
}

/// How many of the methods without networks are in the paper's tables.
const PUBLISHED: usize = 9;

/// A method with all its parameters.
#[derive(Clone)]
pub enum Setting {
    Baseline {
        method: Method,
        /// For methods that are told how many clusters to make: the larger the set, the more.
        rows_per_cluster: Option<f64>,
        /// What distinguishes it from the others that are tried.
        words: String,
    },
    /// The density tree, cut at tau.
    Density(f32),
    Kin,
    /// The networks, with or without GCN-E.
    Networks {
        connectivity: bool,
    },
    /// L-GCN.
    Lgcn,
    /// LTC.
    Ltc {
        /// At how many thresholds proposals are made; as it was fitted if not given.
        thresholds: Option<usize>,
    },
}

impl Setting {
    /// What was chosen, in words.
    pub fn describe(&self) -> String {
        match self {
            Setting::Baseline { words, .. } => words.clone(),
            Setting::Density(tau) => format!("tau {tau:.2}"),
            Setting::Kin => "nothing".to_owned(),
            Setting::Networks { connectivity: false } => "GCN-V".to_owned(),
            Setting::Networks { connectivity: true } => "GCN-V and GCN-E".to_owned(),
            Setting::Lgcn => "L-GCN".to_owned(),
            Setting::Ltc { .. } => "LTC".to_owned(),
        }
    }
}

/// Three decimals at most.
fn rounded(value: f64) -> String {
    format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What the training part says about where to look.
pub struct Scales {
    /// Similarities between which those of nearly all edges lie, evenly spaced.
    levels: [f64; SETTINGS],
    /// Mean size of an identity.
    mean: f64,
    /// Size of the largest.
    largest: usize,
}

impl Scales {
    pub fn of(part: &Part) -> Self {
        let mut similarities: Vec<f32> =
            (0..part.graph.len()).flat_map(|i| part.graph.neighbours(i).1).copied().collect();
        similarities.sort_unstable_by(f32::total_cmp);
        let at = |share: f64| match similarities.len() {
            0 => 0.5,
            n => f64::from(similarities[((n - 1) as f64 * share) as usize]),
        };
        let (low, high) = (at(0.01), at(0.99));
        let step = (high - low) / (SETTINGS - 1) as f64;
        let mut sizes = std::collections::HashMap::new();
        part.labels.iter().for_each(|label| *sizes.entry(label).or_insert(0) += 1);
        Scales {
            levels: std::array::from_fn(|i| low + i as f64 * step),
            mean: part.labels.len() as f64 / sizes.len().max(1) as f64,
            largest: sizes.into_values().max().unwrap_or(1),
        }
    }
}

/// What is tried, in words.
pub fn tried(name: &str) -> &'static str {
    match name {
        "kmeans" | "minibatch-kmeans" | "spectral" => {
            "rows a cluster, from 4 to 1/4 times the mean of identities"
        }
        "hac" => "average linkage, distance at mean similarities from 0 to the highest",
        "dbscan" | "dbscan-knn" => "eps at every other similarity, min 2 and 5",
        "meanshift" => "bandwidth at the similarities",
        "aro" => "threshold, from 0.05 to 4",
        "cdp" => "th at every other similarity, max_size 1 and 2 times the largest identity",
        "hdbscan" => "min_cluster_size 2, 3, 4, 6, 10, 15, min_samples 1 and 5",
        "chinese-whispers" | "infomap" => "th at the similarities",
        "density" => "tau at the similarities",
        "kin" => "nothing: needs no labels",
        "lgcn" => "by `train`, on identities held out from fitting: least probability, largest size",
        "ltc" => {
            "by `train`, on identities held out from fitting: thresholds, least score, whether GCN-S is asked"
        }
        _ => "by `train`, on identities held out from fitting: graph, density, rho, tau",
    }
}

/// What a run costs, after the neighbours where it needs them.
pub fn cost(name: &str) -> &'static str {
    match name {
        "kmeans" => "N C D a round",
        "minibatch-kmeans" => "N C D",
        "hac" => "quadratic to 30,000 rows, then N K",
        "dbscan" => "quadratic",
        "meanshift" => "quadratic, dozens of times",
        "spectral" => "N C^2, to 2,000 clusters",
        "hdbscan" => "quadratic to 100,000 rows, then N K",
        "aro" => "N K^2",
        "cdp" => "N K log N",
        "lgcn" => "N V, V rows within two hops",
        "ltc" => "N K for each of up to 8 thresholds",
        "gcn-v" | "gcn-ve" => "N K D, and a second search",
        _ => "N K",
    }
}

/// The settings of a method that are tried.
pub fn settings(name: &str, scales: &Scales, seed: u64) -> kinfolk::Result<Vec<Setting>> {
    let Some(mut usual) = Method::named(name) else {
        return Ok(match name {
            "density" => scales.levels.iter().map(|&level| Setting::Density(level as f32)).collect(),
            "kin" => vec![Setting::Kin],
            "lgcn" => vec![Setting::Lgcn],
            "ltc" => vec![Setting::Ltc { thresholds: None }],
            _ => vec![Setting::Networks { connectivity: name == "gcn-ve" }],
        });
    };
    if usual.parameters().iter().any(|parameter| parameter.0 == "seed") {
        usual.set("seed", &seed.to_string())?;
    }
    let with = |parameters: &[(&str, f64)]| {
        let mut method = usual.clone();
        for (name, value) in parameters {
            method.set(name, &value.to_string())?;
        }
        let words: Vec<String> =
            parameters.iter().map(|&(name, value)| format!("{name} {}", rounded(value))).collect();
        Ok(Setting::Baseline { method, rows_per_cluster: None, words: words.join(" ") })
    };
    let one =
        |name: &str, values: [f64; SETTINGS]| values.iter().map(|&value| with(&[(name, value)])).collect();
    let two = |first: &str, values: [f64; SETTINGS / 2], second: &str, others: [usize; 2]| {
        let both = values.iter().flat_map(|&value| others.map(|other| (value, other as f64)));
        both.map(|(value, other)| with(&[(first, value), (second, other)])).collect()
    };
    // Every other level, and not the first, where everything is one cluster.
    let every_other: [f64; SETTINGS / 2] = std::array::from_fn(|i| scales.levels[2 * i + 1]);
    let distance = |level: f64| (2.0 - 2.0 * level).max(1e-6).sqrt();
    // The smallest first: mean shift takes the longer the farther it looks.
    let mut distances = scales.levels.map(distance);
    distances.reverse();
    // Means of pairs that are not neighbours are less than the similarity of any edge.
    let highest = scales.levels[SETTINGS - 1];
    let means = std::array::from_fn(|i| distance(highest * (i as f64 + 0.5) / SETTINGS as f64));
    let from_to = |from: f64, to: f64| -> [f64; SETTINGS] {
        std::array::from_fn(|i| from * (to / from).powf(i as f64 / (SETTINGS - 1) as f64))
    };
    match name {
        // Few clusters first, which cost least.
        "kmeans" | "minibatch-kmeans" | "spectral" => Ok(from_to(4.0, 0.25)
            .map(|times| {
                let rows = (times * scales.mean).max(1.0);
                let words = format!("{rows:.1} rows a cluster");
                Setting::Baseline { method: usual.clone(), rows_per_cluster: Some(rows), words }
            })
            .to_vec()),
        "hac" => one("distance", means),
        "meanshift" => one("bandwidth", distances),
        "aro" => one("threshold", from_to(0.05, 4.0)),
        "dbscan" | "dbscan-knn" => {
            two("eps", every_other.map(|level| (1.0 - level).max(1e-6)), "min", [2, 5])
        }
        "cdp" => two("th", every_other, "max_size", [scales.largest.max(2), 2 * scales.largest.max(2)]),
        "hdbscan" => two("min_cluster_size", [2.0, 3.0, 4.0, 6.0, 10.0, 15.0], "min_samples", [1, 5]),
        _ => one("th", scales.levels),
    }
}
