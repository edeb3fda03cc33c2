//! What a server says to the person who started it.
//!
//! Owns: lines on standard error outside the log, which no level of the log leaves out; where the log is JSON, so are
//! they. Must never: fail a server because nobody reads.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

static IN_JSON: AtomicBool = AtomicBool::new(false);

/// From now on lines have the form of a log in JSON.
pub fn say_in_json() {
    IN_JSON.store(true, Ordering::SeqCst);
}

/// One line.
pub fn say(line: &str) {
    write("INFO", line);
}

/// Why the server ends before its time.
pub fn say_failure(text: &str) {
    write("ERROR", text);
}

fn write(level: &str, text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = match IN_JSON.load(Ordering::SeqCst) {
        true => writeln!(out, "{}", in_json(level, text)),
        false => writeln!(out, "{text}"),
    };
}

/// With the fields that every event of the log has.
fn in_json(level: &str, text: &str) -> String {
    let mut timestamp = String::new();
    let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
    serde_json::json!({ "timestamp": timestamp, "level": level, "message": text }).to_string()
}
