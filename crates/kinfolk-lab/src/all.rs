//! Every table and figure, each into its own directory.

use crate::ablations::{self, confidence_designs, layers, m, rho, tau};
use crate::default;
use crate::measure::measure;
use crate::tables::{TableOptions, calibrate, runtime, table1, table2};
use clap::Args;
use kinfolk_cli::failure::Failure;
use kinfolk_cli::make_directory;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "Example:  kinfolk bench all --quick")]
pub struct Arguments {
    /// Small sets, and little time for each method
    #[arg(long)]
    quick: bool,
    /// Directory to write to; each table gets a directory in it
    #[arg(short, value_name = "DIR", default_value = "bench-all")]
    output: PathBuf,
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { quick, output } = arguments;
    make_directory(&output)?;
    let table = |name: &str| TableOptions::of(quick, output.join(name));
    let of_gcn_v = |name: &str| ablations::Arguments::of(quick, false, output.join(name));
    let of_gcn_e = |name: &str| ablations::Arguments::of(quick, true, output.join(name));
    type Job<'a> = (&'a str, Box<dyn FnOnce() -> Result<(), Failure> + 'a>);
    let jobs: Vec<Job> = vec![
        ("table1", Box::new(|| table1::run(table1::Arguments::of(table("table1"))))),
        ("table2", Box::new(|| table2::run(table2::Arguments::of(table("table2"))))),
        ("calibrate", Box::new(|| calibrate::run(calibrate::Arguments::of(table("calibrate"))))),
        ("runtime", Box::new(|| runtime::run(runtime::Arguments::of(table("runtime"))))),
        ("confidence-designs", Box::new(|| confidence_designs::run(of_gcn_v("confidence-designs")))),
        ("rho", Box::new(|| rho::run(of_gcn_e("rho")))),
        ("m", Box::new(|| m::run(of_gcn_e("m")))),
        ("tau", Box::new(|| tau::run(of_gcn_e("tau")))),
        ("layers", Box::new(|| layers::run(of_gcn_v("layers")))),
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
