//! `fencepost bench`: measures this machine; a table on a terminal, JSON lines elsewhere.
//!
//! Owns: the arguments, and figures as rows for people. Must never: measure (see `../bench/`).

use super::output::cell;
use super::progress::{self, Above};
use crate::bench::{self, BenchOptions};
use crate::problem::{Exit, plain};
use crate::process::say::say;
use crate::process::signals::Signals;
use crate::process::threads;
use futures_util::future::{Either, select};
use serde_json::Value;
use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};

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
    /// Form of the output; a table on a terminal, else JSON lines.
    #[arg(short = 'o', long, value_enum)]
    output: Option<FormArg>,
}

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FormArg {
    /// Rows with blanks between the columns.
    Text,
    /// One JSON document a line; the same as jsonl.
    Json,
    /// One JSON document a line.
    Jsonl,
}

impl BenchArgs {
    /// Measures and prints.
    pub fn run(self) -> Exit {
        let is_table = match self.output {
            Some(form) => form == FormArg::Text,
            None => std::io::stdout().is_terminal(),
        };
        let lanes = self.lanes.map_or_else(threads::processors, |lanes| lanes as usize);
        let options = BenchOptions {
            names: self.names,
            folder: self.folder,
            jobs: self.jobs.map_or(bench::JOBS_DEFAULT, |jobs| jobs as usize),
            passed: self.jobs.map_or(bench::PASSED_DEFAULT, |jobs| jobs as usize),
            lanes,
        };
        if self.jobs.is_some_and(|jobs| (jobs as usize) < bench::JOBS_DEFAULT) {
            say(&format!(
                "note: targets are for {} jobs and more; a load this small says little about them",
                bench::JOBS_DEFAULT
            ));
        }
        let measured = threads::main_system().block_on(measure(options, is_table));
        match measured {
            Ok(()) => Exit::Ok,
            Err(why) => {
                say(&format!("error: {why} [bench_failed]"));
                say("hint: run it again; --folder names another folder, on another disk if you like");
                Exit::Failed
            }
        }
    }
}

/// In a folder of this run alone, which is removed, with those made around it, also when a signal ends it early.
async fn measure(mut options: BenchOptions, is_table: bool) -> Result<(), String> {
    let mut signals = Signals::listen().map_err(|error| error.to_string())?;
    options.folder.push(format!("run-{}", std::process::id()));
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let made: Vec<_> = options.folder.ancestors().take_while(is_missing).collect();
    std::fs::create_dir_all(&options.folder)
        .map_err(|error| format!("{}: {}", options.folder.display(), plain(&error)))?;
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
        let mut rows = Rows::new(&mut out);
        let sheet: &mut dyn Write = match is_table {
            true => &mut rows,
            false => rows.out,
        };
        let measuring = Box::pin(bench::run(&options, sheet, &mut begins));
        let measured = match select(measuring, Box::pin(signals.next())).await {
            Either::Left((measured, _)) => measured,
            Either::Right(((), _)) => Err("stopped by a signal; what was not printed was not measured".to_owned()),
        };
        bar.finish_and_clear();
        measured
    };
    let _ = std::fs::remove_dir_all(&options.folder);
    // Innermost first; one that holds something else by now stays.
    for folder in made {
        let _ = std::fs::remove_dir(folder);
    }
    measured
}

/// JSON lines as they come, each made a row.
struct Rows<'a> {
    out: &'a mut dyn Write,
    line: Vec<u8>,
    has_head: bool,
}

impl<'a> Rows<'a> {
    fn new(out: &'a mut dyn Write) -> Rows<'a> {
        Rows {
            out,
            line: Vec::new(),
            has_head: false,
        }
    }

    fn row(&mut self, line: &[u8]) -> std::io::Result<()> {
        let figure: Value = serde_json::from_slice(line)?;
        let text = |name: &str| cell(&figure, &[name]);
        let value = figure.get("value").and_then(Value::as_f64).unwrap_or(0.0);
        let met = match figure.get("met").and_then(Value::as_bool) {
            Some(true) => "met",
            Some(false) => "missed",
            None => "",
        };
        if !std::mem::replace(&mut self.has_head, true) {
            self.put(["BENCH", "FIGURE", "VALUE", "UNIT", "TARGET", ""])?;
        }
        let value = format!("{value:.3}");
        let (bench, name, unit, target) = (text("bench"), text("figure"), text("unit"), text("target"));
        self.put([&bench, &name, &value, &unit, &target, met])
    }

    fn put(&mut self, [bench, name, value, unit, target, met]: [&str; 6]) -> std::io::Result<()> {
        let row = format!("{bench:<18}  {name:<23}  {value:>15}  {unit:<13}  {target:<10}  {met}");
        writeln!(self.out, "{}", row.trim_end())
    }
}

impl Write for Rows<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            self.row(&line)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
