//! The disk alone: how often it syncs, without an engine.
//!
//! Owns: one file that is allocated beforehand. It tells a slow disk from a slow engine when a rate falls
//! between two runs. Next: `beside.rs`.

use crate::bench::BenchOptions;
use crate::bench::figure::per_second;
use crate::chance::{SystemChance, draw_u64};
use crate::clock::{Clock, SystemClock};
use fencepost_core::time::Span;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

/// Of `sync_rate`.
pub const SYNC_UNIT: &str = "syncs/s";
const PAGE: usize = 4_096;
const PAGES: usize = 2_048;
const SYNCS_MAX: usize = 4_000;
const LIMIT: Span = Span::from_secs(1);

/// Writes of 4 KiB with `fdatasync` per second, for at most a second.
pub fn sync_rate(options: &BenchOptions) -> Result<f64, String> {
    let path = options.folder.join(format!("sync-{:016x}", draw_u64(&SystemChance)));
    let measured = measure(&path, options.jobs.clamp(1, SYNCS_MAX));
    let _ = std::fs::remove_file(&path);
    measured.map_err(|error| format!("{}: {error}", path.display()))
}

fn measure(path: &std::path::Path, count: usize) -> std::io::Result<f64> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    for page in 0..PAGES {
        file.write_all_at(&[0; PAGE], place(page))?;
    }
    file.sync_all()?;
    let clock = SystemClock::new();
    let began = clock.mono();
    let mut done = 0;
    while done < count && clock.mono().since(began) < LIMIT {
        file.write_all_at(&[1; PAGE], place(done % PAGES))?;
        file.sync_data()?;
        done += 1;
    }
    Ok(per_second(done, clock.mono().since(began).to_std()))
}

fn place(page: usize) -> u64 {
    (page * PAGE) as u64
}
