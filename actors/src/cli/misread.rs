//! Words that clap could not read: its own text and a code for people, a problem for scripts.
//!
//! Owns: the exit code of a command line that is wrong, and expressions that look like something else. Must never:
//! run a command. Next: `preview.rs`, `failure.rs`.

use super::failure::Failure;
use super::output::Format;
use super::preview::refuse_like_an_option;
use crate::api::fields::sentence;
use crate::problem::Exit;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};

/// Tells what is wrong with the words of this process.
pub(super) fn tell(error: &clap::Error) -> Exit {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let format = match asks_for_json(&words) {
        true => Format::Json,
        false => Format::Text,
    };
    let failure = match expression_of(error, words) {
        Some(failure) => failure,
        None if error.use_stderr() && format == Format::Json => usage(&error.to_string()),
        // Standard output or error may be gone; there is nobody else to tell.
        None if error.use_stderr() => {
            let _ = io::stderr().write_all(with_code(&shown(error)).as_bytes());
            return Exit::Usage;
        }
        None => {
            let _ = error.print();
            return Exit::Ok;
        }
    };
    let _ = failure.show(format, &mut io::stderr());
    failure.exit
}

/// The code of a command line that is wrong.
const USAGE: &str = "usage";

/// What clap says, with colours where it would show them itself.
fn shown(error: &clap::Error) -> String {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match io::stderr().is_terminal() && !is_plain {
        true => error.render().ansi().to_string(),
        false => error.to_string(),
    }
}

/// The text with the code where other problems have it: behind what is wrong.
fn with_code(text: &str) -> String {
    match text.split_once('\n') {
        Some((first, rest)) if first.contains("error:") => format!("{first} [{USAGE}]\n{rest}"),
        // The help, where a subcommand is missing.
        _ => format!("{text}\nerror: a subcommand is missing [{USAGE}]\n"),
    }
}

/// The same as a problem: what is wrong is the text up to its first empty line.
fn usage(text: &str) -> Failure {
    let is_error = text.starts_with("error:");
    let detail = match is_error {
        true => in_a_row(
            text.trim_start_matches("error:")
                .lines()
                .take_while(|line| !line.is_empty()),
        ),
        false => "A subcommand is missing.".to_owned(),
    };
    let tip = in_a_row(text.lines().filter_map(|line| line.trim_start().strip_prefix("tip:")));
    let hint = match tip.is_empty() {
        true => "See the command's --help.".to_owned(),
        false => format!("{}; see the command's --help.", sentence(&tip).trim_end_matches('.')),
    };
    Failure::new(Exit::Usage, USAGE, sentence(&detail), hint)
}

fn in_a_row<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ")
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

/// Whether `-o json` or `-o jsonl` stands among words that could not be read.
fn asks_for_json(words: &[OsString]) -> bool {
    let ours = words.split(|word| word == "--").next().unwrap_or_default();
    let is_json = |value: &OsString| value == "json" || value == "jsonl";
    let is_pair =
        |pair: &[OsString]| matches!(pair, [name, value] if (name == "-o" || name == "--output") && is_json(value));
    let glued = ["-ojson", "-ojsonl", "--output=json", "--output=jsonl"];
    ours.windows(2).any(is_pair) || ours.iter().any(|word| glued.iter().any(|known| word == known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misread(words: &[&str]) -> String {
        let words = ["fencepost"].iter().chain(words);
        super::super::grammar()
            .try_get_matches_from(words)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_clap_says_is_told_whole_with_a_code_and_a_next_step() {
        let text = misread(&["job", "show"]);
        let first = with_code(&text).lines().next().unwrap().to_owned();
        assert_eq!(
            first,
            "error: the following required arguments were not provided: [usage]"
        );
        let problem = usage(&text).problem;
        assert_eq!(&*problem.code, "usage");
        assert_eq!(
            &*problem.detail,
            "The following required arguments were not provided: <ID>."
        );
        let problem = usage(&misread(&["job", "lst"])).problem;
        assert!(
            problem.hint.starts_with("A similar subcommand exists: 'list'; see"),
            "{}",
            problem.hint
        );
    }

    #[test]
    fn both_forms_of_json_are_known_before_the_words_are() {
        for (words, is_json) in [
            (&["-o", "json"][..], true),
            (&["x", "--output", "jsonl"], true),
            (&["-ojsonl"], true),
            (&["-o", "text"], false),
            (&["--", "-o", "json"], false),
        ] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(asks_for_json(&words), is_json, "{words:?}");
        }
    }

    #[test]
    fn a_missing_subcommand_has_the_code_too() {
        let text = misread(&["job"]);
        assert!(
            with_code(&text).ends_with("error: a subcommand is missing [usage]\n"),
            "{text}"
        );
        assert_eq!(&*usage(&text).problem.detail, "A subcommand is missing.");
    }
}
