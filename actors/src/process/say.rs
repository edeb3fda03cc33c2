//! What a server says to the person who started it.
//!
//! Owns: lines on standard error outside the log. Must never: fail a server because nobody reads.

use std::io::Write;

/// One line.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
