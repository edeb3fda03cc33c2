//! `fencepost bench`: measures this machine, prints JSON lines.
//!
//! Owns: the arguments. Must never: measure (see `../bench/`).

use crate::bench::{self, BenchOptions};
use crate::problem::Exit;
use crate::process::say::say;
use crate::process::threads;
use std::path::PathBuf;

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    /// What to measure; nothing named means all.
    #[arg(value_name = "BENCH", value_parser = clap::builder::PossibleValuesParser::new(bench::NAMES))]
    names: Vec<String>,
    /// Where stores are made and removed again; its disk is what is measured.
    #[arg(long, value_name = "FOLDER", default_value = "./fencepost-bench")]
    folder: PathBuf,
    /// Jobs per bench, 100 to 10,000,000; 100,000 by default, 1,000,000 for "passed".
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    jobs: Option<u32>,
    /// Threads for shards; one per processor when not named.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    lanes: Option<u32>,
}

impl BenchArgs {
    /// Measures and prints.
    pub fn run(self) -> Exit {
        let lanes = self.lanes.map_or_else(threads::processors, |lanes| lanes as usize);
        let options = BenchOptions {
            names: self.names,
            folder: self.folder,
            jobs: self.jobs.map_or(bench::JOBS_DEFAULT, |jobs| jobs as usize),
            passed: self.jobs.map_or(bench::PASSED_DEFAULT, |jobs| jobs as usize),
            lanes,
        };
        let measured = threads::main_system().block_on(async move {
            std::fs::create_dir_all(&options.folder).map_err(|error| error.to_string())?;
            bench::run(&options, &mut std::io::stdout()).await
        });
        match measured {
            Ok(()) => Exit::Ok,
            Err(why) => {
                say(&format!("error: {why}"));
                Exit::Failed
            }
        }
    }
}
