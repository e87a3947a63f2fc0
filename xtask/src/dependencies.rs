//! Checks the licences, sources and versions of dependencies.
//!
//! All packages of `Cargo.lock` for any system are checked, with default features. Advisories are not checked, because their
//! database is not a package of a registry. The features `wgpu` and `cuda` are not checked either; they bring drivers under other
//! licences (MPL-2.0, CDLA-Permissive-2.0, Apache-2.0 WITH LLVM-exception), which matters when a build with them is shipped.

use serde_json::Value;
use std::collections::HashSet;

/// Licences that anything may have.
const ALLOWED: [&str; 9] =
    ["Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT", "Unicode-3.0", "Zlib"];

/// Licences that one package may have.
const EXCEPTIONS: [(&str, &str); 1] = [
    // pyo3's, when it is built; no part of what is shipped.
    ("target-lexicon", "Apache-2.0 WITH LLVM-exception"),
];

/// What the source of a package from a registry begins with.
const REGISTRY: &str = "registry+";

/// What is wrong with the dependencies, one line each. `metadata` is what `cargo metadata` prints, which lists packages of
/// features that are off, too; `tree` is what `cargo tree --prefix none` prints, which does not.
pub fn complaints(metadata: &str, tree: &str) -> Result<Vec<String>, String> {
    let metadata: Value = serde_json::from_str(metadata).map_err(|e| e.to_string())?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let members = list(&metadata["workspace_members"]);
    // "serde v1.0.229 (proc-macro)".
    let used: HashSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?.strip_prefix('v')?))
        })
        .collect();
    if members.is_empty() || used.len() <= members.len() {
        return Err("no packages".to_owned());
    }
    let mut complaints = Vec::new();
    for package in list(&metadata["packages"]) {
        let [name, version] = ["name", "version"].map(|key| package[key].as_str().unwrap_or_default());
        if !used.contains(&(name, version)) {
            continue;
        }
        let mut complain = |what: String| complaints.push(format!("{name} {}: {what}", package["version"]));
        match package["license"].as_str() {
            Some(licence) if permits(name, licence) => {}
            licence => complain(format!("licence {}", licence.unwrap_or("not named"))),
        }
        if members.contains(&package["id"]) {
            for dependency in list(&package["dependencies"]) {
                if dependency["req"] == "*" && dependency["path"].is_null() {
                    complain(format!("any version of {}", dependency["name"]));
                }
            }
        } else if !package["source"].as_str().is_some_and(|source| source.starts_with(REGISTRY)) {
            complain(format!("from {}", package["source"]));
        }
    }
    Ok(complaints)
}

/// Whether a package may be used under its licences: `OR` leaves the choice to us, `AND` asks for both. Old packages have `/`
/// for `OR`.
fn permits(package: &str, expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let permitted = any(package, &mut words);
    permitted == Some(true) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(package: &str, words: &mut Words) -> Option<bool> {
    let mut permitted = all(package, words)?;
    while words.next_if_eq(&"OR").is_some() {
        permitted |= all(package, words)?;
    }
    Some(permitted)
}

fn all(package: &str, words: &mut Words) -> Option<bool> {
    let mut permitted = one(package, words)?;
    while words.next_if_eq(&"AND").is_some() {
        permitted &= one(package, words)?;
    }
    Some(permitted)
}

/// A licence, or an expression in parentheses; none where there is neither.
fn one(package: &str, words: &mut Words) -> Option<bool> {
    let word = words.next()?;
    if word == "(" {
        let permitted = any(package, words)?;
        return words.next_if_eq(&")").map(|_| permitted);
    }
    let mut licence = word.to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        licence = format!("{licence} WITH {}", words.next()?);
    }
    Some(ALLOWED.contains(&&*licence) || EXCEPTIONS.contains(&(package, &*licence)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn expressions_of_licences() {
        let good = [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "MIT AND (Zlib OR (ISC AND GPL-3.0))",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
        ];
        for licence in good {
            assert!(permits("x", licence), "{licence}");
        }
        let bad = [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "MIT OR",
            "(MIT",
            "MIT)",
            "MIT Zlib",
            "Apache-2.0 WITH LLVM-exception",
            "MPL-2.0",
        ];
        for licence in bad {
            assert!(!permits("x", licence), "{licence}");
        }
        assert!(permits("target-lexicon", "Apache-2.0 WITH LLVM-exception"));
    }

    #[test]
    fn each_kind_of_complaint() {
        let package = |name: &str, licence: &str, source: Value, dependencies: Value| {
            json!({"id": name, "name": name, "version": "1.0.0", "license": licence, "source": source,
                "dependencies": dependencies})
        };
        let wild = json!([
            {"name": "free", "req": "*", "path": null},
            {"name": "near", "req": "*", "path": "/near"},
            {"name": "tied", "req": "^1", "path": null},
        ]);
        let packages = [
            package("ours", "MIT", Value::Null, wild),
            package("good", "MIT", REGISTRY.into(), json!([])),
            package("bad", "GPL-3.0", REGISTRY.into(), json!([])),
            package("far", "MIT", "git+https://example.org/far".into(), json!([])),
            package("unused", "GPL-3.0", REGISTRY.into(), json!([])),
        ];
        let metadata = json!({"packages": packages, "workspace_members": ["ours"]});
        let tree = "ours v1.0.0 (/ours)\ngood v1.0.0\nbad v1.0.0 (*)\n\nfar v1.0.0\nunused v2.0.0\n";
        let expected = [
            "ours \"1.0.0\": any version of \"free\"",
            "bad \"1.0.0\": licence GPL-3.0",
            "far \"1.0.0\": from \"git+https://example.org/far\"",
        ];
        assert_eq!(complaints(&metadata.to_string(), tree).unwrap(), expected);
        assert!(complaints("{}", tree).is_err());
    }
}
