//! Every table and figure, each into its own directory.

use super::contest::Rules;
use super::{ablation, confidence_designs, default, layers, m, measure, rho, runtime, table1, table2, tau};
use crate::commands::make_directory;
use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Example:  kinfolk bench all --quick
          about seven minutes on two cores; without --quick it takes most of a day")]
pub struct Arguments {
    /// Small sets, and little time for each method
    #[arg(long)]
    quick: bool,
    /// Directory to write to: a directory for each table in it
    #[arg(short, value_name = "DIR", default_value = "bench-all")]
    output: PathBuf,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { quick, output } = arguments;
    make_directory(&output)?;
    let rules = |name: &str| Rules::of(quick, output.join(name));
    let ablation = |name: &str| ablation::Arguments::of(quick, output.join(name));
    type Job<'a> = (&'a str, Box<dyn FnOnce() -> Result<(), Failure> + 'a>);
    let jobs: Vec<Job> = vec![
        ("table1", Box::new(|| table1::run(table1::Arguments::of(rules("table1"))))),
        ("table2", Box::new(|| table2::run(table2::Arguments::of(rules("table2"))))),
        ("runtime", Box::new(|| runtime::run(runtime::Arguments::of(rules("runtime"))))),
        ("confidence-designs", Box::new(|| confidence_designs::run(ablation("confidence-designs")))),
        ("rho", Box::new(|| rho::run(ablation("rho")))),
        ("m", Box::new(|| m::run(ablation("m")))),
        ("tau", Box::new(|| tau::run(ablation("tau")))),
        ("layers", Box::new(|| layers::run(ablation("layers")))),
        ("default", Box::new(|| default::run(default::Arguments::of(quick, output.join("default"))))),
    ];
    for (name, job) in jobs {
        println!("\n== {name}\n");
        let (result, cost) = measure(job);
        result?;
        println!("{name}: {:.0} s", cost.seconds);
    }
    Ok(())
}
