use super::*;
use crate::testing::network;
use tempfile::TempDir;

fn model() -> GcnModel {
    let config = GcnConfig {
        k: 7,
        k_rebuild: 9,
        tau: 0.7,
        tau_v: 0.6,
        density: 0.25,
        radius: 0.5,
        rho: 0.25,
        m: 3,
        all_neighbours: true,
        rebuild: true,
        tau_scale: None,
    };
    GcnModel { gcn_v: network(1, 4, &[6, 5], 1), gcn_e: Some(network(2, 5, &[4, 3], 2)), config }
}

fn bytes(model: &GcnModel) -> Vec<u8> {
    model.to_file().to_bytes().unwrap()
}

fn parse(bytes: &[u8]) -> Result<GcnModel> {
    GcnModel::from_file(ModelFile::parse(bytes, "m")?)
}

fn message(bytes: &[u8]) -> String {
    parse(bytes).unwrap_err().to_string()
}

/// The file with `from` in its header replaced by `to` of the same length.
fn edited(from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes(&model());
    let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).expect("the text to edit");
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    bytes
}

#[test]
fn a_model_comes_back_as_it_was() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("m.safetensors");
    for model in [model(), GcnModel { gcn_e: None, ..model() }] {
        model.write(&path).unwrap();
        assert_eq!(GcnModel::read(&path).unwrap(), model);
        assert_eq!(bytes(&model), bytes(&model), "the same model is the same file");
    }
}

#[test]
fn a_newer_format_is_refused() {
    assert_eq!(
        message(&edited(r#"\"version\":3"#, r#"\"version\":4"#)),
        "m (metadata, version): expected a version up to 3; a newer kinfolk wrote this model, found 4"
    );
}

#[test]
fn what_an_older_format_lacks_has_a_default() {
    // Files of version 1 had none of these keys, and files before version 3 no method.
    let mut file = model().to_file();
    for key in ["tau_v", "density", "radius", "all_neighbours"] {
        file.remove_entry(key);
    }
    let bytes = file.to_bytes().unwrap();
    let config = GcnConfig {
        tau_v: 0.7,
        density: 0.0,
        radius: DEFAULT_RADIUS,
        all_neighbours: false,
        ..model().config
    };
    assert_eq!(parse(&bytes).unwrap(), GcnModel { config, ..model() });
    let untagged = edited(r#"{\"all"#, r#"{\"all"#);
    assert!(parse(&untagged).is_ok());
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    assert!(message(&edited("gcn_e.conv1.bias", "gcn_e.conv1.bios")).starts_with(
        "m (gcn_e): expected a tensor conv1.bias, found classifier.0.bias, classifier.0.weight"
    ));
    assert_eq!(
        message(&edited("gcn_e.conv1.bias", "gcn_w.conv1.bias")).split(", found").next().unwrap(),
        "m (gcn_e): expected a tensor conv1.bias"
    );
    assert_eq!(
        message(&edited(r#"\"rho\":0.25"#, r#"\"rho\":9.25"#)),
        "m: expected a usable configuration, found rho: expected a share from 0 to 1, found 9.25"
    );
    assert_eq!(
        message(&edited(r#"\"m\":3"#, r#"\"n\":3"#)),
        "m (metadata): expected what kinfolk writes, found missing field `m`"
    );
    let foreign =
        safetensors::serialize(Vec::<(String, safetensors::tensor::TensorView)>::new(), None).unwrap();
    assert_eq!(
        message(&foreign),
        "m: expected a kinfolk model (.safetensors), found a .safetensors file that kinfolk did not write"
    );
}

#[test]
fn networks_that_do_not_fit_are_refused() {
    let mut wide = model();
    wide.gcn_e = Some(network(2, 4, &[4], 2));
    assert_eq!(
        message(&bytes(&wide)),
        "m: expected GCN-E for rows of 5, the width of the embeddings of GCN-V, found for rows of 4"
    );
    let mut two = model();
    two.gcn_v = network(1, 4, &[5], 2);
    assert_eq!(message(&bytes(&two)), "m: expected GCN-V with 1 output, the confidence, found 2");
}

#[test]
fn damage_is_an_error_and_no_panic() {
    let whole = bytes(&model());
    for length in 0..whole.len() {
        assert!(parse(&whole[..length]).is_err(), "{length} bytes");
    }
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    for at in 0..header {
        for flip in [1, 0x80] {
            let mut damaged = whole.clone();
            damaged[at] ^= flip;
            // Some digits can change without harm; what counts is that there is an answer.
            let _ = parse(&damaged);
        }
    }
    let mut nan = whole;
    nan[header..header + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(message(&nan).ends_with("expected finite numbers, found NaN"), "{}", message(&nan));
}

/// On numbers that are normal, tau lets as many wrong pairs through for each row of any set.
#[test]
fn tau_follows_the_tail_of_random_pairs() {
    let small = TauScale { rows: 5_000, null: [0.1, 0.08] };
    assert_eq!(small.follow(0.5, &small), 0.5);
    let large = TauScale { rows: 50_000, ..small };
    let tau = small.follow(0.5, &large);
    // Complementary error function by a sum of slices, to compare the tails.
    let spread = 1.4826 * 0.08_f64;
    let tail = |tau: f32| {
        let z = (f64::from(tau) - 0.1) / spread;
        (0..100_000)
            .map(|i| z + (f64::from(i) + 0.5) * 1e-4)
            .map(|x| (-x * x / 2.0).exp() * 1e-4)
            .sum::<f64>()
    };
    let [before, after] = [5_000.0 * tail(0.5), 50_000.0 * tail(tau)];
    assert!(tau > 0.5 && (after / before - 1.0).abs() < 0.2, "{tau}: {before} {after}");
    // Another spread moves it along; what is not above the median stays.
    assert!(small.follow(0.5, &TauScale { null: [0.1, 0.1], ..large }) > tau);
    assert_eq!(small.follow(0.05, &large), 0.05);
    assert_eq!(small.follow(0.5, &TauScale { rows: 0, null: [0.0; 2] }), 0.5);
    // Back again.
    assert!((large.follow(tau, &small) - 0.5).abs() < 1e-5);
}

#[test]
fn a_tau_that_is_set_does_not_follow() {
    let mut fixed = model();
    fixed.config.tau_scale = Some(TauScale { rows: 10, null: [0.0, 0.1] });
    let mut gcn = Gcn::new(fixed);
    assert!(gcn.settings.follow);
    gcn.parameters_mut().set("tau", "0.5").unwrap();
    assert!(!gcn.settings.follow && gcn.settings.tau == 0.5);
    assert!(!Gcn::new(model()).settings.follow);
}

#[test]
fn super_vertices_have_the_clusters_of_their_representatives() {
    let different = 60;
    let value =
        |row: usize, column: usize| ((row * 37 + column * 101 + row * column * 13) % 89) as f32 - 44.0;
    // Copies of the first twenty rows follow.
    let rows = (0..different).chain(0..20).flat_map(|row| (0..4).map(move |column| value(row, column)));
    let embeddings = Embeddings::from_rows(rows.collect(), 4, "test").unwrap();
    let first = Embeddings::from_rows(embeddings.as_slice()[..different * 4].to_vec(), 4, "test").unwrap();
    for (gcn, name) in [(Gcn::new(model()), "gcn-ve"), (Gcn::vertex_only(model()), "gcn-v")] {
        let mut gcn = gcn;
        gcn.settings.m = 2;
        let run = |bound: f32, rows: &Embeddings| {
            let mut gcn = gcn.clone();
            gcn.set("super_vertices", &bound.to_string()).unwrap();
            gcn.run(&Problem::new(rows), &Context::default()).unwrap()
        };
        assert_eq!(gcn.info().name, name);
        let (found, alone) = (run(0.999_999, &embeddings), run(1.0, &first));
        assert_eq!(found.report.notes[0], "80 rows contracted to 60 super vertices");
        assert_eq!(found.labels[..20], found.labels[different..]);
        let same = kinfolk::metrics::evaluate(&alone.labels, &found.labels[..different]).unwrap();
        assert_eq!(same.bcubed.f, 1.0);
        let tree = found.tree().unwrap();
        assert_eq!(tree.links.parent(different).unwrap().0, 0);
        assert_eq!(tree.links.of(5), alone.tree().unwrap().links.of(5));
        assert!(kinfolk::Explainer::new(&found).unwrap().explain(different, Some(0)).is_ok());
        // Without near rows nothing changes.
        assert_eq!(run(0.999_999, &first).labels, alone.labels);
        for wrong in ["0", "1.5", "NaN"] {
            let message = gcn.clone().set("super_vertices", wrong).unwrap_err().to_string();
            assert_eq!(
                message,
                format!("super_vertices: expected a similarity above 0, at most 1, found {wrong}")
            );
        }
    }
}
