//! Every option with every method: it has an effect or it is refused.

use super::*;
use kinfolk::Parameters;

/// The options of `cluster` that stand for a parameter, with a value that is not the default.
const CLUSTER: [(&[&str], &str); 9] = [
    (&["--prefer", "0.9"], "prefer"),
    (&["--clusters", "5"], "clusters"),
    (&["--tau", "0.7"], "tau"),
    (&["-m", "2"], "m"),
    (&["--confidence", "u-num"], "confidence"),
    (&["--radius", "0.4"], "radius"),
    (&["--rho", "0.5"], "rho"),
    (&["--density", "0.5"], "density"),
    (&["--k-rebuild", "7"], "k_rebuild"),
];

/// The same for `train`.
const TRAIN: [(&[&str], &str); 18] = [
    (&["--recipe", "paper"], "recipe"),
    (&["--density", "0.25"], "density"),
    (&["--rotate", "false"], "rotate"),
    (&["--rebuild", "true"], "rebuild"),
    (&["--tau", "0.6"], "tau"),
    (&["--rho", "0.3"], "rho"),
    (&["--epochs-e", "5"], "epochs_e"),
    (&["--epochs", "2"], "epochs"),
    (&["--batch", "8"], "batch"),
    (&["--learning-rate", "0.02"], "learning_rate"),
    (&["--validation", "0.4"], "validation"),
    (&["--layers", "2"], "layers"),
    (&["--sampling", "vertices"], "sampling"),
    (&["--sampled", "20"], "sampled"),
    (&["--target", "s-avg"], "target"),
    (&["--k-rebuild", "7"], "k_rebuild"),
    (&["--loss", "cross-entropy"], "loss"),
    (&["-m", "-1"], "m"),
];

fn takes(parameters: &dyn Parameters, name: &str) -> bool {
    parameters.get(name).is_some()
}

#[test]
fn every_option_of_cluster_has_an_effect_or_is_refused() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "12", "--dim", "16"]);
    for entry in kinfolk_methods::METHODS {
        let Some(method) = entry.make() else { continue };
        let name = entry.info().name;
        let needed: &[&str] = if entry.info().needs_clusters { &["--clusters", "6"] } else { &[] };
        let run = |more: &[&str]| {
            let base = ["cluster", "set/features.npy", "-o", "out", "--json", "--method", name];
            kinfolk(here, &[&base[..], needed, more].concat())
        };
        let before = run(&[]);
        assert_eq!(before.code(), 0, "{name}: {}", before.stderr());
        for (option, parameter) in CLUSTER {
            if needed.first() == option.first() {
                continue;
            }
            let after = run(option);
            if takes(method.parameters(), parameter) {
                assert_eq!(after.code(), 0, "{name} {option:?}: {}", after.stderr());
                let (before, after) = (before.json(), after.json());
                assert_ne!(before["parameters"], after["parameters"], "{name} {option:?} has no effect");
            } else {
                let message =
                    format!("error: {}: expected a method that uses it, found --method {name}\n", option[0]);
                assert_eq!((after.code(), after.stderr()), (2, message));
            }
        }
        // Methods that use rows only have no options of the neighbour search.
        for option in [&["-k", "9"][..], &["--exact"], &["--recall", "0.9"]] {
            let after = run(option);
            let uses = method.uses_graph(before.json()["features"]["rows"].as_u64().unwrap() as usize);
            assert_eq!(after.code(), if uses { 0 } else { 2 }, "{name} {option:?}: {}", after.stderr());
            if !uses {
                assert!(
                    after.stderr().contains("expected a method that uses neighbours"),
                    "{}",
                    after.stderr()
                );
            }
        }
    }
}

#[test]
fn every_option_of_train_has_an_effect_or_is_refused() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "12", "--dim", "8"]);
    for entry in kinfolk_methods::METHODS {
        let Some(learner) = entry.learner() else { continue };
        let name = entry.info().name;
        for (option, parameter) in TRAIN {
            let base =
                ["train", "set/features.npy", "set/labels.npy", "-o", "m.safetensors", "--method", name];
            if takes(learner.parameters(), parameter) {
                // The option sets a parameter of the training, which is tested there.
                let mut learner = kinfolk_methods::learner(name).unwrap();
                learner.parameters_mut().set(parameter, option[1]).unwrap();
                assert_eq!(learner.parameters().get(parameter).unwrap(), option[1], "{name} {parameter}");
            } else {
                let run = kinfolk(here, &[&base[..], option].concat());
                let message =
                    format!("error: {}: expected a method that uses it, found --method {name}\n", option[0]);
                assert_eq!((run.code(), run.stderr()), (2, message));
                assert!(!here.join("m.safetensors").exists());
            }
        }
    }
}

#[test]
fn options_of_sampling_are_refused_where_nothing_is_sampled() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "14", "--dim", "8"]);
    let train = ["train", "set/features.npy", "set/labels.npy", "-o", "m.safetensors", "--method", "gcn-v"];
    let run = |more: &[&str]| kinfolk(here, &[&train[..], &["-k", "10", "--epochs", "1"], more].concat());
    for option in [["--sampling", "vertices"], ["--sampled", "20"]] {
        let refused = run(&option);
        let message = format!(
            "error: {}: expected auto with layers 1, because the first convolution samples nothing, found {}\n",
            option[0], option[1]
        );
        assert_eq!((refused.code(), refused.stderr()), (2, message));
        let accepted = run(&[&option[..], &["--layers", "2"]].concat());
        assert_eq!(accepted.code(), 0, "{}", accepted.stderr());
    }
}

#[test]
fn options_of_networks_are_refused_with_a_model_of_kin() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "14", "--dim", "8"]);
    let labelled =
        ["train", "set/features.npy", "set/labels.npy", "-o", "kin.safetensors", "--method", "kin"];
    succeeds(here, &[&labelled[..], &["-k", "10", "--epochs", "1"]].concat());
    let cluster = ["cluster", "set/features.npy", "--model", "kin.safetensors"];
    for option in [&["--rho", ".5"][..], &["--density", "1"], &["--no-rebuild"], &["--tau", "0.5"]] {
        let run = kinfolk(here, &[&cluster[..], option].concat());
        let message = format!("error: {}: expected a method that uses it, found --method kin\n", option[0]);
        assert_eq!((run.code(), run.stderr()), (2, message));
    }
}

#[test]
fn every_option_of_cluster_has_an_effect_or_is_refused_with_a_model() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "14", "--dim", "8"]);
    for entry in kinfolk_methods::METHODS {
        let name = entry.info().name;
        let Some(learner) = entry.learner() else { continue };
        let model = format!("{name}.safetensors");
        let train =
            ["train", "set/features.npy", "set/labels.npy", "-o", &model, "--method", name, "-k", "10"];
        let epochs = ["--epochs", "1"];
        let few = if takes(learner.parameters(), "epochs") { &epochs[..] } else { &[] };
        succeeds(here, &[&train[..], few].concat());
        let file = kinfolk_nn::ModelFile::read(&here.join(&model)).unwrap();
        let method = kinfolk_methods::load(file, None).unwrap();
        let run = |more: &[&str]| {
            let base = ["cluster", "set/features.npy", "-o", "out", "--json", "--model", &model];
            kinfolk(here, &[&base[..], more].concat())
        };
        let before = run(&[]);
        assert_eq!(before.code(), 0, "{name}: {}", before.stderr());
        for (option, parameter) in CLUSTER {
            let after = run(option);
            if takes(method.parameters(), parameter) {
                assert_eq!(after.code(), 0, "{name} {option:?}: {}", after.stderr());
                let (before, after) = (before.json(), after.json());
                assert_ne!(before["parameters"], after["parameters"], "{name} {option:?} has no effect");
            } else {
                let message =
                    format!("error: {}: expected a method that uses it, found --method {name}\n", option[0]);
                assert_eq!((after.code(), after.stderr()), (2, message));
            }
        }
    }
}

#[test]
fn a_k_beyond_sense_is_refused_at_once() {
    let directory = TempDir::new().unwrap();
    succeeds(directory.path(), &["synth", "set", "--identities", "30", "--dim", "8"]);
    let run = kinfolk(directory.path(), &["cluster", "set/features.npy", "-k", "100000"]);
    assert_eq!(run.code(), 2);
    assert!(run.stderr().contains("-k: expected at most 1024 neighbours, found "), "{}", run.stderr());
}

#[test]
fn the_seed_reaches_the_density_tree_on_a_given_graph() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "40", "--dim", "16"]);
    succeeds(here, &["knn", "set/features.npy", "-k", "20", "-o", "graph.npz"]);
    let tau = |more: &[&str]| {
        let base = ["cluster", "set/features.npy", "--method", "density", "--json", "--seed", "5"];
        succeeds(here, &[&base[..], more].concat()).json()["parameters"]["tau"].as_f64().unwrap()
    };
    assert_eq!(tau(&["--graph", "graph.npz"]), tau(&["-k", "20"]));
}
