//! Progress of long commands, on standard error and only on a terminal.
//!
//! Owns: the two shapes. Must never: write to standard output.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::time::Duration;

fn target() -> ProgressDrawTarget {
    match stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}

/// For work of unknown length.
pub fn spinner(message: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, target()).with_message(message.to_owned());
    if stderr().is_terminal() {
        bar.enable_steady_tick(Duration::from_millis(120));
    }
    bar
}

/// For `count` steps.
pub fn bar(count: u64, message: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(count), target()).with_message(message.to_owned());
    match ProgressStyle::with_template("{msg} {bar:30} {pos}/{len}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
