//! Words that clap could not read: its own text for people, a problem for scripts.
//!
//! Owns: the exit code of a command line that is wrong, and expressions that look like something else. Must never:
//! run a command. Next: `preview.rs`, `failure.rs`.

use super::failure::Failure;
use super::output::Format;
use super::preview::refuse_like_an_option;
use crate::problem::Exit;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::io;

/// Tells what is wrong with the words of this process.
pub(super) fn tell(error: &clap::Error) -> Exit {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let format = match asks_for_json(&words) {
        true => Format::Json,
        false => Format::Text,
    };
    let failure = match expression_of(error, words) {
        Some(failure) => failure,
        None if error.use_stderr() && format == Format::Json => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Failure::new(Exit::Usage, "usage", first, "See the command's --help.")
        }
        None => {
            // Standard output or error may be gone; there is nobody else to tell.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Ok };
        }
    };
    let _ = failure.show(format, &mut io::stderr());
    failure.exit
}

/// An expression that clap did not take for one: it did not validate.
fn expression_of(error: &clap::Error, words: Vec<OsString>) -> Option<Failure> {
    let previews = words.iter().take(2).eq(["schedule", "preview"].iter());
    if previews && error.kind() == ErrorKind::InvalidUtf8 {
        let detail = "An argument is not UTF-8 text.";
        return Some(Failure::new(
            Exit::Invalid,
            "argument_not_utf8",
            detail,
            "Write it in UTF-8.",
        ));
    }
    // Clap takes it for an option, but no option has a blank before its value.
    let is_like_an_option = |word: &String| {
        let name = word.split('=').next().unwrap_or_default();
        word.starts_with('-') && name.contains(char::is_whitespace)
    };
    let mut texts = words.into_iter().filter_map(|word| word.into_string().ok());
    let text = texts.find(is_like_an_option)?;
    refuse_like_an_option(&text).map(Failure::of)
}

/// Whether `-o json` stands among words that could not be read.
fn asks_for_json(words: &[OsString]) -> bool {
    let ours = words.split(|word| word == "--").next().unwrap_or_default();
    let is_pair =
        |pair: &[OsString]| matches!(pair, [name, value] if (name == "-o" || name == "--output") && value == "json");
    ours.windows(2).any(is_pair) || ours.iter().any(|word| word == "-ojson" || word == "--output=json")
}
