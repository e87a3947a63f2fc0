//! The table, the lines for a machine, and the figure: the hit rate as unlabelled images are added.

use crate::picture::{Line, LineChart, draw_lines, palette};
use kinfolk_cli::failure::Failure;
use kinfolk_cli::{machine, table, write_text};
use std::path::Path;

/// What was asked for.
pub struct Setup {
    pub seeds: u64,
    pub steps: usize,
    /// Numbers of unlabelled splits.
    pub sizes: Vec<usize>,
    pub k: usize,
}

/// One final recogniser.
#[derive(Debug, Clone, Default)]
pub struct Result {
    pub seed: u64,
    pub method: &'static str,
    /// Unlabelled splits.
    pub size: usize,
    /// Top-1 hit rate, from 0 to 1.
    pub hit_rate: f64,
    /// Of the pseudo-labels: pairwise and BCubed F, clusters, the share of the images that are kept.
    pub f: [f64; 2],
    pub clusters: usize,
    pub kept: f64,
    pub cluster_seconds: f64,
    pub train_seconds: f64,
    /// Processor time of the training.
    pub train_cpu_seconds: f64,
}

impl Result {
    /// A line of progress.
    pub fn say(&self) {
        let Result { seed, method, size, hit_rate, f, clusters, kept, .. } = self;
        let [pairwise, bcubed] = f.map(|f| 100.0 * f);
        eprintln!(
            "seed {seed}, {method}, {size} unlabelled splits: top-1 {:.2} %; {clusters} clusters, \
             pairwise F {pairwise:.2}, BCubed F {bcubed:.2}, {:.1} % kept (clustered in {:.0} s, trained in {:.0} processor seconds)",
            100.0 * hit_rate,
            100.0 * kept,
            self.cluster_seconds,
            self.train_cpu_seconds
        );
    }
}

/// Prints and writes everything.
pub fn write(
    directory: &Path,
    set: &str,
    setup: &Setup,
    results: &[Result],
) -> std::result::Result<(), Failure> {
    let file = |extension: &str| directory.join(format!("recognition.{extension}"));
    let mut methods: Vec<&'static str> = Vec::new();
    for result in results {
        if !methods.contains(&result.method) {
            methods.push(result.method);
        }
    }
    let sizes: Vec<usize> = std::iter::once(0).chain(setup.sizes.iter().copied()).collect();
    let cell = |found: Option<(f64, f64)>| match found {
        Some((mean, _)) if setup.seeds == 1 => format!("{mean:.1}"),
        Some((mean, deviation)) => format!("{mean:.1} ± {deviation:.1}"),
        None => "-".to_owned(),
    };
    let grid = |value: &dyn Fn(&Result) -> f64| -> Vec<Vec<String>> {
        let line = |method: &&'static str| {
            let cells = sizes.iter().map(|&size| cell(mean_of(results, method, size, value)));
            std::iter::once((*method).to_owned()).chain(cells).collect()
        };
        methods.iter().map(line).collect()
    };
    let hits = grid(&|result| result.hit_rate);
    let unscored = |method: &&Vec<String>| method[0] != methods[0];
    let bcubed: Vec<Vec<String>> = grid(&|result| result.f[1]).iter().filter(unscored).cloned().collect();
    let pairwise: Vec<Vec<String>> = grid(&|result| result.f[0]).iter().filter(unscored).cloned().collect();
    let headings: Vec<String> = std::iter::once("unlabelled splits".to_owned())
        .chain(sizes.iter().map(|size| size.to_string()))
        .collect();
    let notes = notes(setup, results);
    let markdown = format!(
        "# Pseudo-labels for a recogniser\n\n{set}\n\nTop-1 hit rate, percent:\n\n{}\n![Top-1 hit rate](recognition.svg)\n\n\
         Pairwise F of the pseudo-labels, percent:\n\n{}\nBCubed F:\n\n{}\n{}",
        table::markdown(&headings, &hits),
        table::markdown(&headings, &pairwise),
        table::markdown(&headings, &bcubed),
        notes.iter().map(|note| format!("- {note}\n")).collect::<String>()
    );
    write_text(&file("csv"), &csv(results))?;
    write_text(&file("svg"), &picture(&methods, &sizes, results))?;
    write_text(&file("md"), &markdown)?;
    println!("{set}\n\nTop-1 hit rate, percent\n");
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    table::print(&headings, &hits);
    println!("\nPairwise F of the pseudo-labels, percent\n");
    table::print(&headings, &pairwise);
    println!("\nBCubed F of the pseudo-labels, percent\n");
    table::print(&headings, &bcubed);
    println!();
    notes.iter().for_each(|note| println!("{note}"));
    println!("{}, {}, {}", file("md").display(), file("csv").display(), file("svg").display());
    Ok(())
}

/// Mean and standard deviation over the seeds of what `value` takes from results, in percent.
fn mean_of(
    results: &[Result],
    method: &str,
    size: usize,
    value: &dyn Fn(&Result) -> f64,
) -> Option<(f64, f64)> {
    let found = results.iter().filter(|result| result.method == method && result.size == size);
    let values: Vec<f64> = found.map(|result| 100.0 * value(result)).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (!values.is_empty()).then(|| (mean, (squares / (count - 1.0).max(1.0)).sqrt()))
}

fn csv(results: &[Result]) -> String {
    let mut csv = "seed,method,unlabelled_splits,hit_rate,clusters,pairwise_f,bcubed_f,kept,\
                   cluster_seconds,train_seconds,train_cpu_seconds\n"
        .to_owned();
    for r in results {
        csv += &format!(
            "{},{},{},{:.6},{},{:.6},{:.6},{:.6},{:.3},{:.3},{:.3}\n",
            r.seed,
            r.method,
            r.size,
            r.hit_rate,
            r.clusters,
            r.f[0],
            r.f[1],
            r.kept,
            r.cluster_seconds,
            r.train_seconds,
            r.train_cpu_seconds
        );
    }
    csv
}

/// The hit rates and the BCubed F over the number of splits; all lines begin with the labelled split alone.
fn picture(methods: &[&'static str], sizes: &[usize], results: &[Result]) -> String {
    let colour = |method: &str| match kinfolk_methods::find(method) {
        Ok(entry) => entry.info().color,
        Err(_) => palette::ORACLE,
    };
    let lines = |value: &dyn Fn(&Result) -> f64, start: bool| -> Vec<Line> {
        let line = |&method: &&'static str| {
            let points = sizes.iter().filter_map(|&size| {
                let method = if size == 0 && start { methods[0] } else { method };
                Some((size as f64, mean_of(results, method, size, value)?.0))
            });
            let dashed = colour(method) == palette::ORACLE;
            Line {
                name: method.to_owned(),
                colour: colour(method),
                dashed,
                points: points.collect(),
                ring: None,
            }
        };
        // The labelled split alone is where the others begin.
        methods.iter().skip(1).map(line).collect()
    };
    let axis = "unlabelled splits";
    let chart = |title: &str, lines| LineChart { title: title.to_owned(), axis: axis.to_owned(), lines };
    let mut scored = lines(&|result| result.f[1], false);
    scored.retain(|line| line.colour != palette::ORACLE);
    let charts = [
        chart("Top-1 hit rate, percent", lines(&|result| result.hit_rate, true)),
        chart("BCubed F of the pseudo-labels, percent", scored),
    ];
    draw_lines(&charts, "")
}

fn notes(setup: &Setup, results: &[Result]) -> Vec<String> {
    let mean = |of: fn(&Result) -> f64| results.iter().map(of).sum::<f64>() / results.len().max(1) as f64;
    let (seconds, cpu) = (mean(|result| result.train_seconds), mean(|result| result.train_cpu_seconds));
    vec![
        format!(
            "Mean{} over {} {}; splits, weights and distortions differ between them.",
            if setup.seeds > 1 { " ± standard deviation" } else { "" },
            setup.seeds,
            if setup.seeds > 1 { "seeds" } else { "seed" }
        ),
        format!(
            "0: the labelled split alone. All recognisers are trained for {} steps of {} images, {seconds:.0} s \
             ({cpu:.0} processor seconds) each.",
            setup.steps,
            super::train::BATCH
        ),
        format!(
            "A trial is a pair of images of one probe identity; it is a hit if the second is nearer to the first than all \
             distractors. Settings of cdp are chosen, gcn-ve and kin are trained on the labelled split, K = {}; kin \
             searches for its own neighbours and knows the size of the labelled identities, like cdp. Clusters of fewer \
             than {} images are not used.",
            setup.k,
            super::LEAST_SIZE
        ),
        format!(
            "kinfolk {}{}, {} threads of {}.",
            env!("CARGO_PKG_VERSION"),
            if cfg!(debug_assertions) { " (built without --release)" } else { "" },
            rayon::current_num_threads(),
            machine::processor()
        ),
    ]
}
