//! Every method by its name, with parameters as text: for commands and tables, which know neither in advance.

use crate::*;
use kinfolk::{Embeddings, Error, Flow, KnnGraph, Progress, Result};

/// A method and its parameters.
///
/// ```
/// use kinfolk_baselines::Method;
///
/// let mut method = Method::named("dbscan").unwrap();
/// method.set("eps", "0.4")?;
/// assert_eq!(method.parameters()[0], ("eps", "0.4".to_owned()));
/// assert!(method.set("eps", "wide").is_err());
/// assert!(Method::named("guessing").is_none());
/// # Ok::<(), kinfolk::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each is the method of its name")]
pub enum Method {
    Kmeans(KmeansParams),
    MinibatchKmeans(MinibatchKmeansParams),
    Hac(HacParams),
    Dbscan(DbscanParams),
    DbscanKnn(DbscanKnnParams),
    Meanshift(MeanshiftParams),
    Spectral(SpectralParams),
    Aro(AroParams),
    Cdp(CdpParams),
    ChineseWhispers(ChineseWhispersParams),
    Hdbscan(HdbscanParams),
    Infomap(InfomapParams),
}

/// A parameter that text can be read into.
trait Field {
    /// Reads it, or says what was expected.
    fn read(&mut self, text: &str) -> std::result::Result<(), &'static str>;
    fn write(&self) -> String;
}

macro_rules! numbers {
    ($($kind:ty: $expected:literal),*) => { $(
        impl Field for $kind {
            fn read(&mut self, text: &str) -> std::result::Result<(), &'static str> {
                *self = text.parse().map_err(|_| $expected)?;
                Ok(())
            }
            fn write(&self) -> String {
                self.to_string()
            }
        }
    )* };
}

numbers!(usize: "a whole number, 0 or more", u64: "a whole number, 0 or more", f32: "a number", f64: "a number",
    bool: "true or false");

/// `auto` for what the method finds itself.
impl<T: Field + Default> Field for Option<T> {
    fn read(&mut self, text: &str) -> std::result::Result<(), &'static str> {
        *self = match text {
            "auto" => None,
            text => {
                let mut value = T::default();
                value.read(text)?;
                Some(value)
            }
        };
        Ok(())
    }

    fn write(&self) -> String {
        self.as_ref().map_or_else(|| "auto".to_owned(), Field::write)
    }
}

macro_rules! words {
    ($($kind:ty: $expected:literal, $($word:literal => $value:expr),*;)*) => { $(
        impl Field for $kind {
            fn read(&mut self, text: &str) -> std::result::Result<(), &'static str> {
                *self = match text {
                    $($word => $value,)*
                    _ => return Err($expected),
                };
                Ok(())
            }
            fn write(&self) -> String {
                let known = [$(($word, $value)),*];
                known.iter().find(|(_, value)| value == self).map_or("", |(word, _)| *word).to_owned()
            }
        }
    )* };
}

words! {
    Noise: "singletons, kept or assigned", "singletons" => Noise::Singletons, "kept" => Noise::Kept, "assigned" => Noise::Assigned;
    Linkage: "single, complete, average or ward", "single" => Linkage::Single, "complete" => Linkage::Complete,
        "average" => Linkage::Average, "ward" => Linkage::Ward;
    Flow: "directed or undirected", "directed" => Flow::Directed, "undirected" => Flow::Undirected;
    Assign: "kmeans or discretise", "kmeans" => Assign::Kmeans, "discretise" => Assign::Discretise;
    Seeds: "rows or bins", "rows" => Seeds::Rows, "bins" => Seeds::Bins;
    Selection: "worth or leaves", "worth" => Selection::Worth, "leaves" => Selection::Leaves;
}

/// A number of clusters, or the distance at which joining ends.
struct Number<'a>(&'a mut Cut);
struct Distance<'a>(&'a mut Cut);

impl Field for Number<'_> {
    fn read(&mut self, text: &str) -> std::result::Result<(), &'static str> {
        let mut clusters = 0usize;
        clusters.read(text)?;
        *self.0 = Cut::Clusters(clusters);
        Ok(())
    }

    fn write(&self) -> String {
        if let Cut::Clusters(clusters) = *self.0 { clusters.to_string() } else { "auto".to_owned() }
    }
}

impl Field for Distance<'_> {
    fn read(&mut self, text: &str) -> std::result::Result<(), &'static str> {
        let mut distance = 0f32;
        distance.read(text)?;
        *self.0 = Cut::Distance(distance);
        Ok(())
    }

    fn write(&self) -> String {
        if let Cut::Distance(distance) = *self.0 { distance.to_string() } else { "auto".to_owned() }
    }
}

/// The fields of a struct by their names.
macro_rules! fields {
    ($params:ident: $($name:ident),*) => { vec![$((stringify!($name), Box::new(&mut $params.$name) as Box<dyn Field>)),*] };
}

impl<T: Field> Field for &mut T {
    fn read(&mut self, text: &str) -> std::result::Result<(), &'static str> {
        (**self).read(text)
    }

    fn write(&self) -> String {
        (**self).write()
    }
}

impl Method {
    /// All names.
    pub const NAMES: [&'static str; 12] = [
        "kmeans",
        "minibatch-kmeans",
        "hac",
        "dbscan",
        "dbscan-knn",
        "meanshift",
        "spectral",
        "aro",
        "cdp",
        "chinese-whispers",
        "hdbscan",
        "infomap",
    ];

    /// The method of this name with its usual parameters.
    pub fn named(name: &str) -> Option<Method> {
        Some(match name {
            "kmeans" => Method::Kmeans(Default::default()),
            "minibatch-kmeans" => Method::MinibatchKmeans(Default::default()),
            "hac" => Method::Hac(Default::default()),
            "dbscan" => Method::Dbscan(Default::default()),
            "dbscan-knn" => Method::DbscanKnn(Default::default()),
            "meanshift" => Method::Meanshift(Default::default()),
            "spectral" => Method::Spectral(Default::default()),
            "aro" => Method::Aro(Default::default()),
            "cdp" => Method::Cdp(Default::default()),
            "chinese-whispers" => Method::ChineseWhispers(Default::default()),
            "hdbscan" => Method::Hdbscan(Default::default()),
            "infomap" => Method::Infomap(Default::default()),
            _ => return None,
        })
    }

    /// The parameters, in the order of their struct.
    fn fields(&mut self) -> Vec<(&'static str, Box<dyn Field + '_>)> {
        match self {
            Method::Kmeans(p) => fields!(p: clusters, iterations, tolerance, spherical, restarts, seed),
            Method::MinibatchKmeans(p) => {
                fields!(p: clusters, batch, passes, patience, reassignment, seedings, seed)
            }
            Method::Hac(p) => {
                // Both are the cut; the one that was set last counts.
                let cut = if let Cut::Clusters(_) = p.cut { "clusters" } else { "distance" };
                let linkage: Box<dyn Field> = Box::new(&mut p.linkage);
                let field: Box<dyn Field> = if cut == "clusters" {
                    Box::new(Number(&mut p.cut))
                } else {
                    Box::new(Distance(&mut p.cut))
                };
                vec![("linkage", linkage), (cut, field)]
            }
            Method::Dbscan(p) => fields!(p: eps, min, noise),
            Method::DbscanKnn(p) => fields!(p: th, eps, min, noise),
            Method::Meanshift(p) => fields!(p: bandwidth, quantile, seeds, min_bin, iterations, noise),
            Method::Spectral(p) => fields!(p: clusters, assign, seed),
            Method::Aro(p) => fields!(p: threshold),
            Method::Cdp(p) => fields!(p: th, max_size, step, rounds),
            Method::ChineseWhispers(p) => fields!(p: th, iterations, weighted, seed),
            Method::Hdbscan(p) => fields!(p: min_cluster_size, min_samples, selection, noise),
            Method::Infomap(p) => fields!(p: th, flow, seed),
        }
    }

    /// Sets a parameter.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        // A number of clusters in place of a distance, or the other way round.
        if let Method::Hac(params) = self {
            match (name, params.cut) {
                ("clusters", Cut::Distance(_)) => params.cut = Cut::Clusters(1),
                ("distance", Cut::Clusters(_)) => params.cut = Cut::Distance(1.0),
                _ => {}
            }
        }
        let known: Vec<&str> = self.parameters().iter().map(|parameter| parameter.0).collect();
        match self.fields().into_iter().find(|field| field.0 == name) {
            Some((name, mut field)) => field.read(value).map_err(|expected| Error::Parameter {
                field: name,
                expected,
                found: value.to_owned(),
            }),
            None => {
                let found = format!("{name} (there are {})", known.join(", "));
                Err(Error::Parameter { field: "param", expected: "a parameter of the method", found })
            }
        }
    }

    /// Every parameter and its value.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        self.clone().fields().into_iter().map(|(name, field)| (name, field.write())).collect()
    }

    /// Whether it works on the graph of nearest neighbours, for a set of this many rows.
    pub fn needs_graph(&self, rows: usize) -> bool {
        match self {
            Method::Kmeans(_) | Method::MinibatchKmeans(_) | Method::Dbscan(_) | Method::Meanshift(_) => {
                false
            }
            Method::Hac(_) => rows > HAC_UP_TO,
            Method::Hdbscan(_) => rows > HDBSCAN_UP_TO,
            _ => true,
        }
    }

    /// Clusters; `graph` is needed where [`needs_graph`](Self::needs_graph) says so.
    pub fn run(
        &self,
        embeddings: &Embeddings,
        graph: Option<&KnnGraph>,
        progress: &dyn Progress,
    ) -> Result<Clusters> {
        if self.needs_graph(embeddings.len()) {
            let graph = graph.ok_or_else(|| Error::Parameter {
                field: "graph",
                expected: "nearest neighbours for this method",
                found: "none".to_owned(),
            })?;
            return self.run_on(graph, progress);
        }
        match self {
            Method::Kmeans(p) => kmeans(embeddings, p, progress),
            Method::MinibatchKmeans(p) => minibatch_kmeans(embeddings, p, progress),
            Method::Hac(p) => hac(embeddings, p, progress),
            Method::Dbscan(p) => dbscan(embeddings, p, progress),
            Method::Meanshift(p) => meanshift(embeddings, p, progress),
            Method::Hdbscan(p) => hdbscan(embeddings, p, progress),
            on_graph => Err(on_graph.wrong_input("a method of rows")),
        }
    }

    /// Clusters from the neighbours alone, for methods that can.
    pub fn run_on(&self, graph: &KnnGraph, progress: &dyn Progress) -> Result<Clusters> {
        match self {
            Method::Hac(p) => hac_knn(graph, p, progress),
            Method::DbscanKnn(p) => dbscan_knn(graph, p, progress),
            Method::Spectral(p) => spectral(graph, p, progress),
            Method::Aro(p) => aro(graph, p, progress),
            Method::Cdp(p) => cdp(graph, p, progress),
            Method::ChineseWhispers(p) => chinese_whispers(graph, p, progress),
            Method::Hdbscan(p) => hdbscan_knn(graph, p, progress),
            Method::Infomap(p) => infomap(graph, p, progress),
            of_rows => Err(of_rows.wrong_input("a method of neighbours")),
        }
    }

    fn wrong_input(&self, expected: &'static str) -> Error {
        Error::Parameter { field: "method", expected, found: format!("{self:?}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinfolk::{KnnParams, knn_graph};

    #[test]
    fn every_name_runs_and_every_parameter_comes_back_as_it_was_written() {
        let rows = (0..40 * 8).map(|v| ((v * 37 % 101) as f32 / 50.0) - 1.0).collect();
        let embeddings = Embeddings::from_rows(rows, 8, "test").unwrap();
        let (graph, _) = knn_graph(&embeddings, &KnnParams { k: 10, ..Default::default() }, &()).unwrap();
        for name in Method::NAMES {
            let mut method = Method::named(name).unwrap();
            for (parameter, value) in method.parameters() {
                method.set(parameter, &value).unwrap();
            }
            assert_eq!(Some(&method), Method::named(name).as_ref(), "{name}");
            if method.parameters().iter().any(|parameter| parameter.0 == "clusters") {
                method.set("clusters", "4").unwrap();
            }
            let found = method.run(&embeddings, Some(&graph), &()).unwrap();
            assert_eq!(found.labels.len(), 40, "{name}");
            let message = method.set("colour", "blue").unwrap_err().to_string();
            assert!(message.contains("colour (there are "), "{message}");
        }
    }

    #[test]
    fn the_last_cut_that_was_set_counts() {
        let mut method = Method::named("hac").unwrap();
        method.set("clusters", "7").unwrap();
        assert_eq!(method.parameters()[1], ("clusters", "7".to_owned()));
        method.set("distance", "0.5").unwrap();
        assert_eq!(method.parameters()[1], ("distance", "0.5".to_owned()));
    }

    #[test]
    fn a_missing_graph_is_named() {
        let embeddings = Embeddings::from_rows(vec![1.0, 0.0, 0.0, 1.0], 2, "test").unwrap();
        let message = Method::named("aro").unwrap().run(&embeddings, None, &()).unwrap_err().to_string();
        assert!(message.contains("nearest neighbours"), "{message}");
    }
}
