//! `cargo xtask test`: everything that must hold before a change lands.

use std::process::{Command, exit};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("test") => test(),
        _ => {
            eprintln!("usage: cargo xtask test");
            exit(2);
        }
    }
}

fn test() {
    run("cargo", &["fmt", "--all", "--check"]);
    run("cargo", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    run("cargo", &["test", "--workspace"]);
}

fn run(program: &str, args: &[&str]) {
    eprintln!("+ {program} {}", args.join(" "));
    let status = Command::new(program).args(args).status();
    if !status.is_ok_and(|s| s.success()) {
        eprintln!("failed: {program} {}", args.join(" "));
        exit(1);
    }
}
