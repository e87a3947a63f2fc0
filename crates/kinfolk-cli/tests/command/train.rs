//! `kinfolk train`, and clustering with its models.

use super::*;

#[test]
fn a_trained_model_needs_no_thresholds() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "16", "--dim", "16", "--split", "0.5"]);
    let train = |model: &str, threads: &str| {
        let (features, labels) = ("set/train_features.npy", "set/train_labels.npy");
        let options = ["-k", "10", "--method", "gcn-v", "--epochs", "2", "--json", "--threads", threads];
        let mut all = vec!["train", features, labels, "-o", model];
        all.extend(options);
        succeeds(here, &all)
    };
    let report = train("one.safetensors", "1").json();
    assert_eq!(report["gcn_v"]["epochs"].as_array().unwrap().len(), 2);
    assert_eq!(report["config"]["k"], 10);
    train("two.safetensors", "2");
    assert_eq!(
        fs::read(here.join("one.safetensors")).unwrap(),
        fs::read(here.join("two.safetensors")).unwrap()
    );
    let run = succeeds(
        here,
        &["cluster", "set/test_features.npy", "--model", "one.safetensors", "--json", "-o", "out"],
    );
    assert_eq!(run.json()["parameters"]["method"], "gcn-v");
    // tau follows the size of the set, unless that is switched off or tau is set.
    assert!(run.json()["notes"][0].as_str().unwrap().starts_with("tau "), "{}", run.stdout());
    assert_ne!(run.json()["parameters"]["tau"], report["config"]["tau"]);
    let tau = report["config"]["tau"].to_string();
    for options in [["--param", "follow=false"], ["--tau", &tau]] {
        let cluster =
            ["cluster", "set/test_features.npy", "--model", "one.safetensors", "--json", "-o", "fixed"];
        let fixed = succeeds(here, &[&cluster[..], &options].concat()).json();
        assert_eq!(fixed["parameters"]["tau"], report["config"]["tau"], "{options:?}");
    }

    // The same model in another process, this one.
    let model = kinfolk_nn::GcnModel::read(&here.join("one.safetensors")).unwrap();
    let features = here.join("set/test_features.npy");
    let embeddings = kinfolk::io::read_embeddings(&features, &Default::default()).unwrap();
    let found = kinfolk::Clusterer::with(kinfolk_nn::Gcn::new(model)).fit(&embeddings).unwrap();
    let labels = kinfolk::io::read_labels(&here.join("out/labels.npy")).unwrap();
    assert_eq!(found.labels, labels);
}

// Other systems have no signal that one process sends to another alone.
#[cfg(unix)]
#[test]
fn interrupted_training_leaves_a_model_and_can_be_resumed() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "16", "--dim", "16", "--split", "0.5"]);
    let training = |model: &'static str| {
        let mut all = vec!["train", "set/train_features.npy", "set/train_labels.npy", "-o", model];
        all.extend(["-k", "10", "--method", "gcn-v", "--epochs", "40", "--batch", "16"]);
        all
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_kinfolk"))
        .args(training("m.safetensors"))
        .current_dir(here)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let model = here.join("m.safetensors");
    while !model.exists() {
        assert!(child.try_wait().unwrap().is_none(), "training ended without a model");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("interrupted after epoch "), "{message}");
    assert!(message.contains("of GCN-V (1 of 2); m.safetensors is usable"), "{message}");

    succeeds(here, &["cluster", "set/test_features.npy", "--model", "m.safetensors", "-o", "out"]);
    let mut resume = training("m.safetensors");
    resume.push("--resume");
    let mut other = resume.clone();
    other.extend(["--seed", "3"]);
    let run = kinfolk(here, &other);
    assert!(run.stderr().starts_with("error: training to resume (parameters of GCN-V): expected "));
    succeeds(here, &resume);
    succeeds(here, &training("whole.safetensors"));
    assert_eq!(fs::read(&model).unwrap(), fs::read(here.join("whole.safetensors")).unwrap());
    let run = kinfolk(here, &resume);
    let finished = "expected a model whose training was interrupted, found one whose training is finished";
    assert_eq!(run.stderr(), format!("error: m.safetensors: {finished}\n"));
}

#[test]
fn training_refuses_labels_of_another_set() {
    let directory = TempDir::new().unwrap();
    four_rows(directory.path());
    fs::write(directory.path().join("l.txt"), "0\n1\n").unwrap();
    let run = kinfolk(directory.path(), &["train", "x.npy", "l.txt", "-o", "m.safetensors"]);
    assert_eq!(run.stderr(), "error: l.txt: expected 4 labels (one per row of x.npy), found 2\n");
    assert_eq!(run.code(), 1);
    assert!(!directory.path().join("m.safetensors").exists());
}

#[test]
fn kin_learns_from_labels() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "30", "--dim", "32", "--split", "0.5"]);
    let model = ["-o", "kin.safetensors", "--method", "kin", "-k", "20", "--json"];
    let labelled = ["train", "set/train_features.npy", "set/train_labels.npy"];
    let report = succeeds(here, &[&labelled[..], &model].concat()).json();
    assert_eq!(report["config"]["k"], 20);
    // Options that are not given have the defaults of the library.
    let features = kinfolk::io::read_embeddings(&here.join(labelled[1]), &Default::default()).unwrap();
    let labels = kinfolk::io::read_labels(&here.join(labelled[2])).unwrap();
    let problem = kinfolk::Problem::new(&features).with_labels(&labels).unwrap().with_k(Some(20)).unwrap();
    let trained = kinfolk::train_kin(&problem, &Default::default(), &Default::default()).unwrap();
    let written = kinfolk_nn::ModelFile::read(&here.join("kin.safetensors")).unwrap();
    assert!(kinfolk_nn::read_kin_model(written).unwrap() == trained.model);
    let cluster = ["cluster", "set/test_features.npy", "--model", "kin.safetensors", "--json"];
    let run = succeeds(here, &cluster).json();
    assert_eq!((&run["parameters"]["method"], &run["graph"]["k"]), (&"kin".into(), &20.into()));
    let run = kinfolk(here, &[&cluster[..], &["--method", "gcn-v"]].concat());
    assert_eq!(run.code(), 2);
    assert!(run.stderr().contains("found one of kin"), "{}", run.stderr());
    let run = kinfolk(here, &[&labelled[..], &model, &["--resume"]].concat());
    assert!(run.stderr().contains("--resume: expected"), "{}", run.stderr());
}

#[test]
fn lgcn_and_ltc_learn_from_labels() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    succeeds(here, &["synth", "set", "--identities", "20", "--dim", "16", "--split", "0.5"]);
    let labelled = ["train", "set/train_features.npy", "set/train_labels.npy", "-k", "10", "--epochs", "1"];
    for (method, other, network, unknown) in [
        (
            "lgcn",
            "ltc",
            "lgcn",
            "--param: expected a parameter of the method, found least (there are th, max_size, step, rounds)",
        ),
        (
            "ltc",
            "lgcn",
            "gcn_d",
            "--param: expected a parameter of the method, found th (there are least, max_size, step, levels)",
        ),
    ] {
        let file = format!("{method}.safetensors");
        let model = ["--method", method, "-o", &file];
        let report = succeeds(here, &[&labelled[..], &model, &["--json"]].concat()).json();
        assert_eq!(report["method"], method);
        assert_eq!(report[network]["epochs"].as_array().unwrap().len(), 1);
        let cluster = ["cluster", "set/test_features.npy", "--model", &file];
        let run = succeeds(here, &[&cluster[..], &["--json", "-o", "one"]].concat()).json();
        assert_eq!(run["parameters"]["method"], method);
        assert_eq!(run["parameters"]["max_size"], report["config"]["max_size"]);
        assert_eq!(run["graph"]["k"], 10);
        // The method may be named, and a graph and the number of threads may be given.
        succeeds(here, &["knn", "set/test_features.npy", "-k", "10", "-o", "graph.npz"]);
        let named = ["--method", method, "--graph", "graph.npz", "--threads", "1", "-o", "two"];
        succeeds(here, &[&cluster[..], &named].concat());
        let labels = |name: &str| fs::read(here.join(name).join("labels.npy")).unwrap();
        assert_eq!(labels("one"), labels("two"));
        let run = succeeds(here, &[&cluster[..], &["--json", "--param", "max_size=7"]].concat()).json();
        assert_eq!(run["parameters"]["max_size"], 7);

        let unknown_name = if method == "lgcn" { "least=1" } else { "th=1" };
        for (arguments, message) in [
            (
                &["--method", other][..],
                format!("--method {other}: expected a model of this method, found one of {method}"),
            ),
            (
                &["--method", "kmeans"],
                "--model: expected a method that uses it, found --method kmeans".to_owned(),
            ),
            (&["--tau", "0.5"], format!("--tau: expected a method that uses it, found --method {method}")),
            (&["--rho", "0.5"], format!("--rho: expected a method that uses it, found --method {method}")),
            (
                &["--prefer", "recall"],
                format!("--prefer: expected a method that uses it, found --method {method}"),
            ),
            (&["--param", unknown_name], unknown.to_owned()),
            (&["--param", "step=x"], "--param step: expected above 0, found x".to_owned()),
        ] {
            let run = kinfolk(here, &[&cluster[..], arguments].concat());
            assert_eq!((run.code(), run.stderr()), (2, format!("error: {message}\n")));
        }
        let run = kinfolk(here, &["cluster", "set/test_features.npy", "--method", method]);
        let message = format!("error: --method {method}: expected a --model, found none\n");
        assert_eq!((run.code(), run.stderr()), (2, message));
        let run = kinfolk(here, &[&labelled[..], &model, &["--resume"]].concat());
        let message = format!("error: --resume: expected --method gcn-v or gcn-ve, found {method}\n");
        assert_eq!((run.code(), run.stderr()), (2, message));
        let run = kinfolk(here, &["explain", "one", "0"]);
        assert!(run.stderr().contains(&format!("found {method}")), "{}", run.stderr());
        succeeds(here, &["synth", "wide", "--identities", "5", "--dim", "17"]);
        let run = kinfolk(here, &["cluster", "wide/features.npy", "--model", &file]);
        assert_eq!(run.code(), 1);
        assert!(run.stderr().contains("expected 16 columns, as"), "{}", run.stderr());
    }
}
