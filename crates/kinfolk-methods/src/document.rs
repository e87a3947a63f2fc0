//! `docs/methods.md`, made from the registry.

use crate::METHODS;
use kinfolk::{Input, MethodInfo, ParamSpec};
use std::fmt::Write;

/// The text of `docs/methods.md`: which method when, and every method with its parameters.
pub fn methods_markdown() -> String {
    let mut text = "# Methods\n\n\
        Made by `cargo xtask methods` from the registry; a test keeps it up to date. N rows of D columns, K neighbours, C\n\
        clusters; the cost is that beyond the search for neighbours.\n\n\
        ## Which method when\n\n| method | use it | needs | cost |\n|---|---|---|---|\n"
        .to_owned();
    for info in METHODS.iter().map(|entry| entry.info()) {
        let _ = writeln!(
            text,
            "| [`{0}`](#{0}) | {1} | {2} | {3} |",
            info.name,
            info.when,
            needs(info),
            info.cost
        );
    }
    for entry in METHODS {
        let info = entry.info();
        let _ = write!(text, "\n## {}\n\n{}.\n", info.name, info.summary);
        let mut section = |title: &str, specs: Vec<ParamSpec>| {
            if specs.is_empty() {
                return;
            }
            let _ = write!(text, "\n{title}\n\n| parameter | default | range | |\n|---|---|---|---|\n");
            for spec in specs {
                let help = spec.help.split_whitespace().collect::<Vec<_>>().join(" ");
                let auto = if spec.automatic && !spec.range.contains("auto") { ", or auto" } else { "" };
                let _ =
                    writeln!(text, "| `{}` | {} | {}{auto} | {help} |", spec.name, spec.default, spec.range);
            }
        };
        if let Some(method) = entry.make() {
            section("Parameters:", method.parameters().specs());
        }
        if let Some(learner) = entry.learner() {
            section("Parameters of `train`:", learner.parameters().specs());
        }
    }
    text
}

fn needs(info: &MethodInfo) -> String {
    let input = match info.input {
        Input::Rows => "rows",
        Input::Graph => "the graph",
        Input::RowsAndGraph => "rows and graph",
        Input::RowsOrGraph => "rows, or the graph",
    };
    let mut needs = vec![input];
    if info.needs_model {
        needs.push("a model");
    } else if info.learns {
        needs.push("optionally a model");
    }
    if info.needs_clusters {
        needs.push("the number of clusters");
    }
    needs.join(", ")
}
