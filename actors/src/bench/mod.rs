//! Benches: figures as JSON lines, sync on, each beside the floor of the same disk.
//!
//! Owns: what is measured. Must never: run in timed tests, or report a figure that was not measured.
//! Next: `rig.rs` (the node under measure), `floor.rs`, `create.rs`, `drain.rs`.

mod create;
mod drain;
mod floor;
mod late;
mod pending;
mod rig;

use std::io::Write;
use std::path::PathBuf;

/// What to measure and how much of it.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// Names; empty means all.
    pub names: Vec<String>,
    /// Where stores are made; its disk is what is measured.
    pub folder: PathBuf,
    /// Jobs per bench.
    pub jobs: usize,
    /// Threads for shards.
    pub lanes: usize,
}

/// One measured figure.
#[derive(Debug)]
pub struct Figure {
    /// Which bench.
    pub bench: &'static str,
    /// What.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
}

/// Every bench, in order.
pub const NAMES: &[&str] = &[
    "floor",
    "create-batch",
    "create-single",
    "drain",
    "lateness",
    "schedules-1000",
    "schedules-10000",
    "pending",
];

/// Runs the benches that were asked for and prints a JSON line per figure.
pub async fn run(options: &BenchOptions, out: &mut dyn Write) -> Result<(), String> {
    let asked = |name: &str| options.names.is_empty() || options.names.iter().any(|asked| asked == name);
    if let Some(unknown) = options.names.iter().find(|name| !NAMES.contains(&name.as_str())) {
        return Err(format!(
            "no bench is called '{unknown}'; there are {}",
            NAMES.join(", ")
        ));
    }
    for name in NAMES.iter().copied().filter(|name| asked(name)) {
        let figures = match name {
            "floor" => floor::run(options)?,
            "create-batch" => create::batches(options).await?,
            "create-single" => create::singles(options).await?,
            "drain" => drain::run(options).await?,
            "lateness" => late::jobs(options).await?,
            "schedules-1000" => late::schedules(options, 1_000).await?,
            "schedules-10000" => late::schedules(options, 10_000).await?,
            _ => pending::run(options).await?,
        };
        for figure in figures {
            print(&figure, out).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn print(figure: &Figure, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        r#"{{"bench":"{}","figure":"{}","value":{:.3},"unit":"{}"}}"#,
        figure.bench, figure.name, figure.value, figure.unit
    )
}

/// Things per second.
fn rate(bench: &'static str, count: usize, took: std::time::Duration) -> Figure {
    Figure {
        bench,
        name: "rate",
        value: count as f64 / took.as_secs_f64(),
        unit: "jobs/s",
    }
}
