//! Any of the methods, on a file:
//!
//!     cargo run --release -p kinfolk-baselines --example run -- METHOD INPUT LABELS.npy [NAME=VALUE ...]
//!
//! INPUT is a file of features, or a graph that `kinfolk knn` wrote for the methods that need one. Parameters are the fields
//! of the method's struct, such as `clusters=100`. LABELS.npy is written and one line of JSON printed: number of clusters,
//! rows of noise, seconds without reading and writing.

use kinfolk::{Embeddings, Flow, KnnGraph, io};
use kinfolk_baselines::*;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::str::FromStr;
use std::time::Instant;

/// NAME=VALUE, taken one by one; what nobody took is an error.
struct Values(BTreeMap<String, String>);

impl Values {
    /// Sets `field` if it was given.
    fn set<T: FromStr>(&mut self, name: &str, field: &mut T) -> Result<(), Box<dyn Error>> {
        if let Some(text) = self.0.remove(name) {
            *field = text.parse().map_err(|_| format!("{name}: cannot read {text}"))?;
        }
        Ok(())
    }

    /// Sets `field` to what a word stands for.
    fn choose<T: Copy>(
        &mut self,
        name: &str,
        field: &mut T,
        words: &[(&str, T)],
    ) -> Result<(), Box<dyn Error>> {
        if let Some(text) = self.0.remove(name) {
            let word = words.iter().find(|word| word.0 == text);
            *field = word.ok_or_else(|| format!("{name}: {text} is none of its words"))?.1;
        }
        Ok(())
    }

    fn noise(&mut self, field: &mut Noise) -> Result<(), Box<dyn Error>> {
        let words = [("kept", Noise::Kept), ("assigned", Noise::Assigned), ("singletons", Noise::Singletons)];
        self.choose("noise", field, &words)
    }

    fn cut(&mut self, params: &mut HacParams) -> Result<(), Box<dyn Error>> {
        let words = [
            ("single", Linkage::Single),
            ("complete", Linkage::Complete),
            ("average", Linkage::Average),
            ("ward", Linkage::Ward),
        ];
        self.choose("linkage", &mut params.linkage, &words)?;
        let (mut clusters, mut distance) = (0, f32::NAN);
        self.set("clusters", &mut clusters)?;
        self.set("distance", &mut distance)?;
        match (clusters, distance.is_nan()) {
            (0, true) => {}
            (0, false) => params.cut = Cut::Distance(distance),
            _ => params.cut = Cut::Clusters(clusters),
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Box<dyn Error>> {
        match self.0.keys().next() {
            Some(name) => Err(format!("{name}: no such parameter").into()),
            None => Ok(()),
        }
    }
}

/// Reads parameters by their names.
macro_rules! fields {
    ($values:ident, $params:ident: $($name:ident),*) => { $($values.set(stringify!($name), &mut $params.$name)?;)* };
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [method, input, labels, rest @ ..] = arguments.as_slice() else {
        return Err("expected METHOD INPUT LABELS.npy [NAME=VALUE ...]".into());
    };
    let pair = |text: &String| -> Result<(String, String), Box<dyn Error>> {
        let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
        Ok((name.to_owned(), value.to_owned()))
    };
    let mut values = Values(rest.iter().map(pair).collect::<Result<_, _>>()?);
    let input = Path::new(input);
    let rows = || -> kinfolk::Result<Embeddings> { io::read_embeddings(input, &Default::default()) };
    let graph = || -> kinfolk::Result<KnnGraph> { io::read_graph(input, None) };
    let start: Instant;
    macro_rules! run {
        ($read:ident, $function:ident, $params:ident) => {{
            values.finish()?;
            let input = $read()?;
            start = Instant::now();
            $function(&input, &$params, &())?
        }};
    }
    let found = match method.as_str() {
        "kmeans" => {
            let mut params = KmeansParams::default();
            fields!(values, params: clusters, iterations, tolerance, spherical, restarts, seed);
            run!(rows, kmeans, params)
        }
        "minibatch-kmeans" => {
            let mut params = MinibatchKmeansParams::default();
            fields!(values, params: clusters, batch, passes, patience, reassignment, seedings, seed);
            run!(rows, minibatch_kmeans, params)
        }
        "hac" => {
            let mut params = HacParams::default();
            values.cut(&mut params)?;
            run!(rows, hac, params)
        }
        "hac-knn" => {
            let mut params = HacParams::default();
            values.cut(&mut params)?;
            run!(graph, hac_knn, params)
        }
        "dbscan" => {
            let mut params = DbscanParams::default();
            fields!(values, params: eps, min);
            values.noise(&mut params.noise)?;
            run!(rows, dbscan, params)
        }
        "dbscan-knn" => {
            let mut params = DbscanKnnParams::default();
            fields!(values, params: th, eps, min);
            values.noise(&mut params.noise)?;
            run!(graph, dbscan_knn, params)
        }
        "hdbscan" | "hdbscan-knn" => {
            let mut params = HdbscanParams::default();
            fields!(values, params: min_cluster_size);
            let mut min_samples = 0;
            values.set("min_samples", &mut min_samples)?;
            params.min_samples = (min_samples > 0).then_some(min_samples);
            let words = [("worth", Selection::Worth), ("leaves", Selection::Leaves)];
            values.choose("selection", &mut params.selection, &words)?;
            values.noise(&mut params.noise)?;
            if method == "hdbscan" { run!(rows, hdbscan, params) } else { run!(graph, hdbscan_knn, params) }
        }
        "spectral" => {
            let mut params = SpectralParams::default();
            fields!(values, params: clusters, seed);
            let words = [("kmeans", Assign::Kmeans), ("discretise", Assign::Discretise)];
            values.choose("assign", &mut params.assign, &words)?;
            run!(graph, spectral, params)
        }
        "meanshift" => {
            let mut params = MeanshiftParams::default();
            fields!(values, params: quantile, min_bin, iterations);
            let mut bandwidth = 0.0;
            values.set("bandwidth", &mut bandwidth)?;
            params.bandwidth = (bandwidth > 0.0).then_some(bandwidth);
            values.choose("seeds", &mut params.seeds, &[("rows", Seeds::Rows), ("bins", Seeds::Bins)])?;
            values.noise(&mut params.noise)?;
            run!(rows, meanshift, params)
        }
        "chinese-whispers" => {
            let mut params = ChineseWhispersParams::default();
            fields!(values, params: th, iterations, weighted, seed);
            run!(graph, chinese_whispers, params)
        }
        "infomap" => {
            let mut params = InfomapParams::default();
            fields!(values, params: th, seed);
            let flows = [("directed", Flow::Directed), ("undirected", Flow::Undirected)];
            values.choose("flow", &mut params.flow, &flows)?;
            run!(graph, infomap, params)
        }
        "aro" => {
            let mut params = AroParams::default();
            fields!(values, params: threshold);
            run!(graph, aro, params)
        }
        "cdp" => {
            let mut params = CdpParams::default();
            fields!(values, params: th, max_size, step, rounds);
            run!(graph, cdp, params)
        }
        other => return Err(format!("{other}: no such method").into()),
    };
    let seconds = start.elapsed().as_secs_f64();
    io::write_npy_i64(Path::new(labels), &found.labels)?;
    let noise = found.noise.as_ref().map_or(0, |noise| noise.iter().filter(|&&noise| noise).count());
    println!("{{\"clusters\": {}, \"noise\": {noise}, \"seconds\": {seconds:.3}}}", found.len());
    Ok(())
}
