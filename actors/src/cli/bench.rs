//! `fencepost bench`: measures this machine, prints JSON lines.
//!
//! Owns: the arguments. Must never: measure (see `../bench/`).

use super::progress::{self, Above};
use crate::bench::{self, BenchOptions};
use crate::problem::Exit;
use crate::process::say::say;
use crate::process::signals::Signals;
use crate::process::threads;
use futures_util::future::{Either, select};
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
        let measured = threads::main_system().block_on(measure(options));
        match measured {
            Ok(()) => Exit::Ok,
            Err(why) => {
                say(&format!("error: {why}"));
                Exit::Failed
            }
        }
    }
}

/// In a folder of this run alone, which is removed also when a signal ends it early.
async fn measure(mut options: BenchOptions) -> Result<(), String> {
    let mut signals = Signals::listen().map_err(|error| error.to_string())?;
    options.folder.push(format!("run-{}", std::process::id()));
    std::fs::create_dir_all(&options.folder).map_err(|error| format!("{}: {error}", options.folder.display()))?;
    let measured = {
        let count = if options.names.is_empty() {
            bench::NAMES.len()
        } else {
            options.names.len()
        };
        let bar = progress::bar(count as u64, "bench");
        let mut begun = 0;
        let mut begins = |name: &str| {
            bar.set_message(name.to_owned());
            bar.set_position(begun);
            begun += 1;
        };
        let mut stdout = std::io::stdout();
        let mut out = Above {
            bar: &bar,
            out: &mut stdout,
        };
        let measuring = Box::pin(bench::run(&options, &mut out, &mut begins));
        let measured = match select(measuring, Box::pin(signals.next())).await {
            Either::Left((measured, _)) => measured,
            Either::Right(((), _)) => Err("stopped by a signal; what was not printed was not measured".to_owned()),
        };
        bar.finish_and_clear();
        measured
    };
    let _ = std::fs::remove_dir_all(&options.folder);
    measured
}
