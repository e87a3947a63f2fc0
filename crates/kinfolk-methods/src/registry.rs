//! The registry of methods.

use kinfolk::{Density, Error, Kin, Method, MethodInfo, Result};
use kinfolk_baselines as baselines;
use kinfolk_nn::{
    Gcn, GcnModel, GcnVTraining, GcnVeTraining, KinLearner, Learn, LearnedMethod, Lgcn, LgcnLearner, Ltc,
    LtcLearner, ModelFile, read_kin_model,
};

/// Creates a method from its model file.
type Load = fn(ModelFile) -> Result<Box<dyn LearnedMethod>>;

/// One method: how to create it, how to load its model, how to train it.
pub struct MethodEntry {
    /// Without a model; `None` for methods that need one.
    make: Option<fn() -> Box<dyn Method>>,
    /// With a model, and the tag of its files.
    load: Option<(&'static str, Load)>,
    /// To train it.
    learner: Option<fn() -> Box<dyn Learn>>,
}

impl MethodEntry {
    /// A method that needs no model.
    const fn of(make: fn() -> Box<dyn Method>) -> Self {
        MethodEntry { make: Some(make), load: None, learner: None }
    }

    /// A method that needs a model.
    const fn learned(tag: &'static str, load: Load, learner: fn() -> Box<dyn Learn>) -> Self {
        MethodEntry { make: None, load: Some((tag, load)), learner: Some(learner) }
    }

    /// The name of the method, when to use it, what it needs.
    pub fn info(&self) -> &'static MethodInfo {
        match (self.make, self.learner) {
            (Some(make), _) => make().info(),
            (None, Some(learner)) => learner().info(),
            (None, None) => unreachable!("a method is created or trained"),
        }
    }

    /// The method with its default parameters; `None` if it needs a model.
    pub fn make(&self) -> Option<Box<dyn Method>> {
        self.make.map(|make| make())
    }

    /// Its training, with default parameters; `None` if it cannot be trained.
    pub fn learner(&self) -> Option<Box<dyn Learn>> {
        self.learner.map(|learner| learner())
    }
}

/// Every method, in the order in which tables and help list them: the default, the paper's, the baselines.
pub static METHODS: &[MethodEntry] = &[
    MethodEntry {
        make: Some(|| Box::new(Kin::default())),
        load: Some(("kin", |file| Ok(Box::new(Kin::trained(read_kin_model(file)?))))),
        learner: Some(|| Box::new(KinLearner::default())),
    },
    MethodEntry::of(|| Box::new(Density::default())),
    MethodEntry::learned(
        "gcn",
        |file| Ok(Box::new(Gcn::vertex_only(GcnModel::from_file(file)?))),
        || Box::new(GcnVTraining::default()),
    ),
    MethodEntry::learned(
        "gcn",
        |file| Ok(Box::new(with_gcn_e(GcnModel::from_file(file)?)?)),
        || Box::new(GcnVeTraining::default()),
    ),
    MethodEntry::learned(
        "lgcn",
        |file| Ok(Box::new(Lgcn::from_file(file)?)),
        || Box::new(LgcnLearner::default()),
    ),
    MethodEntry::learned(
        "ltc",
        |file| Ok(Box::new(Ltc::from_file(file)?)),
        || Box::new(LtcLearner::default()),
    ),
    MethodEntry::of(|| Box::new(baselines::Kmeans::default())),
    MethodEntry::of(|| Box::new(baselines::MinibatchKmeans::default())),
    MethodEntry::of(|| Box::new(baselines::Hac::default())),
    MethodEntry::of(|| Box::new(baselines::Dbscan::default())),
    MethodEntry::of(|| Box::new(baselines::DbscanKnn::default())),
    MethodEntry::of(|| Box::new(baselines::Meanshift::default())),
    MethodEntry::of(|| Box::new(baselines::Spectral::default())),
    MethodEntry::of(|| Box::new(baselines::Aro::default())),
    MethodEntry::of(|| Box::new(baselines::Cdp::default())),
    MethodEntry::of(|| Box::new(baselines::ChineseWhispers::default())),
    MethodEntry::of(|| Box::new(baselines::Hdbscan::default())),
    MethodEntry::of(|| Box::new(baselines::Optics::default())),
    MethodEntry::of(|| Box::new(baselines::Infomap::default())),
    MethodEntry::of(|| Box::new(baselines::FaceMap::default())),
    MethodEntry::of(|| Box::new(baselines::FcEs::default())),
];

fn with_gcn_e(model: GcnModel) -> Result<Gcn> {
    match model.gcn_e {
        Some(_) => Ok(Gcn::new(model)),
        None => {
            let (expected, found) = ("a model with GCN-E", "one without".to_owned());
            Err(Error::Parameter { field: "model", expected, found })
        }
    }
}

/// The names of all methods.
pub fn names() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|entry| entry.info().name)
}

/// The method of this name; an error that lists all names if there is none.
pub fn find(name: &str) -> Result<&'static MethodEntry> {
    METHODS.iter().find(|entry| entry.info().name == name).ok_or_else(|| {
        let known: Vec<&str> = names().collect();
        let found = format!("{name} (there are {})", known.join(", "));
        Error::Parameter { field: "method", expected: "the name of a method", found }
    })
}

/// The method of this name with its default parameters; an error if it needs a model.
pub fn new(name: &str) -> Result<Box<dyn Method>> {
    find(name)?.make().ok_or_else(|| Error::Parameter {
        field: "method",
        expected: "a model, which this method needs",
        found: format!("{name} without one"),
    })
}

/// The method of a model file or, if one is named, that method. A model of GCN-V and GCN-E can be used by both `gcn-v` and
/// `gcn-ve`.
pub fn load(file: ModelFile, name: Option<&str>) -> Result<Box<dyn LearnedMethod>> {
    let tag = file.method().to_owned();
    let of_tag = |entry: &&MethodEntry| entry.load.is_some_and(|(own, _)| own == tag);
    if let Some(name) = name {
        let Some((_, load)) = Some(find(name)?).filter(of_tag).and_then(|entry| entry.load) else {
            let found = format!("{name} with a model of {tag}");
            return Err(Error::Parameter { field: "method", expected: "the method of the model", found });
        };
        return load(file);
    }
    if tag == "gcn" {
        return Ok(Box::new(Gcn::new(GcnModel::from_file(file)?)));
    }
    match METHODS.iter().find(of_tag).and_then(|entry| entry.load) {
        Some((_, load)) => load(file),
        None => {
            let place = format!("{} (metadata, method)", file.place());
            Err(Error::format(place, "a model of a method of this version", tag))
        }
    }
}

/// The training of the method of this name, with default parameters.
pub fn learner(name: &str) -> Result<Box<dyn Learn>> {
    find(name)?.learner().ok_or_else(|| {
        let learn: Vec<&str> =
            METHODS.iter().map(MethodEntry::info).filter(|i| i.learns).map(|i| i.name).collect();
        let found = format!("{name} (there are {})", learn.join(", "));
        Error::Parameter { field: "method", expected: "a method that learns", found }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_method_says_what_it_is() {
        let mut seen = [HashSet::new(), HashSet::new(), HashSet::new()];
        for entry in METHODS {
            let info = entry.info();
            for (seen, value) in seen.iter_mut().zip([info.name, info.title, info.color]) {
                assert!(seen.insert(value), "{}: {value} twice", info.name);
            }
            for text in [info.summary, info.when, info.cost] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{}: {text:?}", info.name);
            }
            assert_eq!(info.needs_model, entry.make().is_none(), "{}", info.name);
            assert_eq!(info.learns, entry.learner().is_some(), "{}", info.name);
            for spec in entry.make().map(|method| method.parameters().specs()).unwrap_or_default() {
                assert!(spec.help.ends_with('.') && !spec.range.is_empty(), "{} {}", info.name, spec.name);
            }
        }
    }

    #[test]
    fn unknown_names_are_answered_with_the_known_ones() {
        let message = |result: Result<Box<dyn Method>>| result.err().unwrap().to_string();
        assert!(message(new("guessing")).contains("guessing (there are kin, density, "));
        assert!(message(new("gcn-v")).contains("expected a model, which this method needs"));
        let message = learner("dbscan").err().unwrap().to_string();
        assert!(message.ends_with("dbscan (there are kin, gcn-v, gcn-ve, lgcn, ltc)"), "{message}");
    }
}
