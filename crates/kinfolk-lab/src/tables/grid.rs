//! The settings that are tried on training identities, the same number for each method.

use super::paper;
use super::part::Part;
use kinfolk::{Method, Result};
use std::collections::HashMap;

/// The number of settings of each method that has parameters to choose.
pub const SETTINGS: usize = 12;

/// Values of parameters by name.
pub type Setting = Vec<(&'static str, String)>;

/// Not a parameter of any method: it gives the number of clusters, which grows with the set.
const ROWS_PER_CLUSTER: &str = "rows per cluster";

/// Settings with a description.
pub struct Grid {
    pub settings: Vec<Setting>,
    pub description: &'static str,
}

/// Sets the parameters of a method that is to cluster this many rows.
pub fn apply(setting: &Setting, method: &mut dyn Method, rows: usize) -> Result<()> {
    for (name, value) in setting {
        match value.parse::<f64>() {
            Ok(each) if *name == ROWS_PER_CLUSTER => {
                let clusters = (rows as f64 / each).round().max(1.0);
                method.parameters_mut().set("clusters", &clusters.to_string())?;
            }
            _ => method.parameters_mut().set(name, value)?,
        }
    }
    Ok(())
}

/// A setting in words: numbers with three decimals at most.
pub fn describe(setting: &Setting) -> String {
    let rounded = |value: &String| match value.parse::<f64>() {
        Ok(number) => format!("{number:.3}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        Err(_) => value.clone(),
    };
    match setting.is_empty() {
        true => "nothing".to_owned(),
        false => {
            let words: Vec<String> =
                setting.iter().map(|(name, value)| format!("{name} {}", rounded(value))).collect();
            words.join(" ")
        }
    }
}

/// Ranges of the parameters, from the training part.
pub struct Scales {
    /// Evenly spaced similarities that cover nearly all edges.
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
        let mut sizes = HashMap::new();
        part.labels.iter().for_each(|label| *sizes.entry(label).or_insert(0) += 1);
        Scales {
            levels: std::array::from_fn(|i| low + i as f64 * step),
            mean: part.labels.len() as f64 / sizes.len().max(1) as f64,
            largest: sizes.into_values().max().unwrap_or(1),
        }
    }
}

/// The settings of a method; its defaults alone if none are listed here.
pub fn grid(name: &str, scales: &Scales) -> Grid {
    // Every other level without the first, at which all rows are one cluster.
    let every_other: [f64; SETTINGS / 2] = std::array::from_fn(|i| scales.levels[2 * i + 1]);
    let distance = |level: f64| (2.0 - 2.0 * level).max(1e-6).sqrt();
    match name {
        "kmeans" | "minibatch-kmeans" | "spectral" => {
            // Few clusters first, which cost least.
            let sizes = geometric(4.0, 0.25).map(|times| (times * scales.mean).max(1.0));
            let mut settings = one(ROWS_PER_CLUSTER, sizes);
            if name == "spectral" {
                // Better than plain k-means where there are many clusters.
                settings.iter_mut().for_each(|setting| setting.push(("assign", "directions".to_owned())));
            }
            Grid { settings, description: "rows per cluster, from 4 to 1/4 times the mean of identities" }
        }
        "hac" => {
            // Mean similarities of clusters are below the similarities of edges.
            let highest = scales.levels[SETTINGS - 1];
            let means = std::array::from_fn(|i| distance(highest * (i as f64 + 0.5) / SETTINGS as f64));
            let description = "average linkage, distance at mean similarities from 0 to the highest";
            Grid { settings: one("distance", means), description }
        }
        "meanshift" => {
            // The smallest first: the time of mean shift grows with the bandwidth.
            let mut distances = scales.levels.map(distance);
            distances.reverse();
            Grid { settings: one("bandwidth", distances), description: "bandwidth at the similarities" }
        }
        "aro" => Grid {
            settings: one("threshold", geometric(0.05, 4.0)),
            description: "threshold, from 0.05 to 4",
        },
        "dbscan" | "dbscan-knn" => Grid {
            settings: two("eps", every_other.map(|level| (1.0 - level).max(1e-6)), "min", [2, 5]),
            description: "eps at every other similarity, min 2 and 5",
        },
        "cdp" => {
            let largest = scales.largest.max(2);
            let description = "th at every other similarity, max_size 1 and 2 times the largest identity";
            Grid { settings: two("th", every_other, "max_size", [largest, 2 * largest]), description }
        }
        "hdbscan" => Grid {
            settings: two("min_cluster_size", [2.0, 3.0, 4.0, 6.0, 10.0, 15.0], "min_samples", [1, 5]),
            description: "min_cluster_size 2, 3, 4, 6, 10, 15, min_samples 1 and 5",
        },
        "optics" => {
            let steep = [0.02, 0.05, 0.1].iter().flat_map(|xi| [2, 5].map(|min| (xi, min)));
            let steep = steep.map(|(xi, min)| vec![("xi", xi.to_string()), ("min", min.to_string())]);
            let flat = every_other.iter().map(|level| {
                let eps = (1.0 - level).max(1e-6).to_string();
                vec![("extraction", "threshold".to_owned()), ("eps", eps)]
            });
            let description = "xi 0.02, 0.05, 0.1 with min 2 and 5, and thresholds at every other similarity";
            Grid { settings: steep.chain(flat).collect(), description }
        }
        "chinese-whispers" | "infomap" => {
            Grid { settings: one("th", scales.levels), description: "th at the similarities" }
        }
        // The published settings of both, 20 and 0.22, are among these.
        "facemap" => {
            let windows = std::array::from_fn(|i| (2 + 2 * i) as f64);
            Grid { settings: one("window", windows), description: "window, from 2 to 24" }
        }
        "fc-es" => {
            let thresholds = std::array::from_fn(|i| (6 + 4 * i) as f64 / 100.0);
            Grid { settings: one("th", thresholds), description: "th, from 0.06 to 0.5" }
        }
        "density" => Grid { settings: one("tau", scales.levels), description: "tau at the similarities" },
        _ => Grid { settings: vec![Setting::new()], description: "nothing: its defaults" },
    }
}

/// The settings of the methods that `synth` is calibrated with. Those that take a number of clusters get the true number, or as
/// many for each identity as in the paper.
pub fn calibration_grid(name: &str, scales: &Scales) -> Grid {
    let fixed = |clusters: usize, others: &[(&'static str, &str)], description| {
        let each = scales.mean * paper::IDENTITIES / clusters as f64;
        let mut setting = vec![(ROWS_PER_CLUSTER, each.to_string())];
        setting.extend(others.iter().map(|&(name, value)| (name, value.to_owned())));
        Grid { settings: vec![setting], description }
    };
    match (name, paper::table2(name)) {
        ("kmeans", Some((clusters, _))) => fixed(clusters, &[], "nothing: the true number of clusters"),
        ("hac", Some((clusters, _))) => fixed(
            clusters,
            &[("linkage", "single")],
            "nothing: single linkage, the paper's number of clusters",
        ),
        ("spectral", Some((clusters, _))) => {
            fixed(clusters, &[("assign", "directions")], "nothing: the paper's number of clusters")
        }
        _ => grid(name, scales),
    }
}

/// Each value of one parameter.
fn one(name: &'static str, values: [f64; SETTINGS]) -> Vec<Setting> {
    values.iter().map(|value| vec![(name, value.to_string())]).collect()
}

/// Each value of one parameter with each of another.
fn two(
    first: &'static str,
    values: [f64; SETTINGS / 2],
    second: &'static str,
    others: [usize; 2],
) -> Vec<Setting> {
    let both = values.iter().flat_map(|value| others.map(|other| (value.to_string(), other.to_string())));
    both.map(|(value, other)| vec![(first, value), (second, other)]).collect()
}

/// Evenly spaced in logarithms.
fn geometric(from: f64, to: f64) -> [f64; SETTINGS] {
    std::array::from_fn(|i| from * (to / from).powf(i as f64 / (SETTINGS - 1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_one_that_its_method_takes() {
        let scales = Scales { levels: std::array::from_fn(|i| i as f64 / 12.0), mean: 20.0, largest: 70 };
        for entry in kinfolk_methods::METHODS.iter() {
            let name = entry.info().name;
            let Grid { settings, description } = grid(name, &scales);
            assert!(settings.len() == SETTINGS || settings == [Setting::new()], "{name}");
            assert!(!description.is_empty());
            for setting in settings {
                let Some(mut method) = entry.make() else { continue };
                apply(&setting, &mut *method, 1000).unwrap();
                assert!(
                    !entry.info().needs_clusters || method.parameters().get("clusters").unwrap() != "auto"
                );
            }
        }
    }

    #[test]
    fn settings_are_described_with_few_digits() {
        let setting = vec![("eps", 0.25f64.sqrt().cbrt().to_string()), ("min", "2".to_owned())];
        assert_eq!(describe(&setting), "eps 0.794 min 2");
        assert_eq!(describe(&Setting::new()), "nothing");
    }
}
