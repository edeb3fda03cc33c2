//! Benches: figures as JSON lines, sync on, rates beside the floor of the same disk.
//!
//! Owns: what is measured. Must never: run in timed tests, or report a figure that was not measured.
//! Next: `rig.rs` (the node under measure), `beside.rs` (its floor), `docs/performance.md` (what each means).

mod beside;
mod child;
mod cluster;
mod create;
mod create_http;
mod disk;
mod drain;
mod figure;
mod floor;
mod http;
mod late;
mod passed;
mod pending;
mod rig;

use figure::Figure;
use std::io::Write;
use std::path::PathBuf;

/// Jobs per bench when nobody says otherwise.
pub const JOBS_DEFAULT: usize = 100_000;
/// Jobs that pass through before a used store is measured, when nobody says otherwise.
pub const PASSED_DEFAULT: usize = 1_000_000;

/// What to measure and how much of it.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// Names; empty means all.
    pub names: Vec<String>,
    /// Where stores are made; its disk is what is measured.
    pub folder: PathBuf,
    /// Jobs per bench.
    pub jobs: usize,
    /// Jobs that pass through before a used store is measured.
    pub passed: usize,
    /// Threads for shards.
    pub lanes: usize,
}

/// Every bench, in order.
pub const NAMES: &[&str] = &[
    "floor",
    "create-batch",
    "create-single",
    "create-batch-http",
    "create-single-http",
    "drain",
    "drain-cluster",
    "lateness",
    "lateness-live",
    "schedules-1000",
    "schedules-10000",
    "pending",
    "passed",
];

/// Runs the benches that were asked for and prints a JSON line per figure; says which one begins.
pub async fn run(options: &BenchOptions, out: &mut dyn Write, begins: &mut dyn FnMut(&str)) -> Result<(), String> {
    let asked = |name: &str| options.names.is_empty() || options.names.iter().any(|asked| asked == name);
    if let Some(unknown) = options.names.iter().find(|name| !NAMES.contains(&name.as_str())) {
        return Err(format!(
            "no bench is called '{unknown}'; there are {}",
            NAMES.join(", ")
        ));
    }
    let mut report = Report { out };
    for name in NAMES.iter().copied().filter(|name| asked(name)) {
        begins(name);
        match name {
            // Minutes long: each figure is told as soon as it is there.
            "pending" => pending::run(options, &mut report).await?,
            "passed" => passed::run(options, &mut report).await?,
            _ => report.tell(measure(name, options).await?)?,
        }
    }
    Ok(())
}

/// Where figures go.
struct Report<'a> {
    out: &'a mut dyn Write,
}

impl Report<'_> {
    fn tell(&mut self, figures: impl IntoIterator<Item = Figure>) -> Result<(), String> {
        let mut figures = figures.into_iter();
        figures.try_for_each(|figure| figure.print(self.out).map_err(|error| error.to_string()))
    }
}

async fn measure(name: &str, options: &BenchOptions) -> Result<Vec<Figure>, String> {
    match name {
        "floor" => floor::run(options),
        "create-batch" => create::batches(options).await,
        "create-single" => create::singles(options).await,
        "create-batch-http" => create_http::batches(options).await,
        "create-single-http" => create_http::singles(options).await,
        "drain" => drain::run(options).await,
        "drain-cluster" => cluster::run(options).await,
        "lateness" => late::jobs(options).await,
        "lateness-live" => late::live_jobs(options).await,
        "schedules-1000" => late::thousand_schedules(options).await,
        _ => late::many_schedules(options).await,
    }
}
