//! Words that clap could not read, told as other problems are: what, code and hint; for people with the usage.
//!
//! Owns: the exit code of a command line that is wrong, and values that look like something else. Must never:
//! run a command. Next: `preview.rs`, `failure.rs`.

use super::failure::Failure;
use super::output::Format;
use super::preview::refuse_like_an_option;
use crate::api::fields::sentence;
use crate::problem::Exit;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use std::io::{self, Write as _};

/// Tells what is wrong with the words of this process.
pub(super) fn tell(error: &clap::Error) -> Exit {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let format = match asks_for_json(&words) {
        true => Format::Json,
        false => Format::Text,
    };
    if !error.use_stderr() {
        let _ = error.print();
        return Exit::Ok;
    }
    let text = error.to_string();
    let told = expression_of(error, &words).or_else(|| negative(error, &words));
    let failure = told.unwrap_or_else(|| usage(error, &text));
    let is_usage = failure.exit == Exit::Usage && format == Format::Text;
    let (before, behind) = around(&text);
    let mut err = io::stderr();
    let mut put = |text: &str| is_usage.then(|| err.write_all(text.as_bytes()));
    // Standard error may be gone; there is nobody else to tell.
    let _ = put(&before);
    let _ = failure.show(format, &mut io::stderr());
    let _ = put(&behind);
    failure.exit
}

/// The code of a command line that is wrong.
const USAGE: &str = "usage";

/// What a person sees around the problem: the help before it where a subcommand is missing, so that the problem is
/// read last; else the usage behind it, where clap shows one.
fn around(text: &str) -> (String, String) {
    match usage_of(text) {
        Some(usage) => (String::new(), format!("\n{usage}\n")),
        None if text.starts_with("error:") => (String::new(), String::new()),
        None => (format!("{text}\n"), String::new()),
    }
}

/// How the command is written, of what clap says of an error.
fn usage_of(text: &str) -> Option<&str> {
    let begin = text.starts_with("error:").then(|| text.find("Usage:"))??;
    let rest = text.get(begin..)?;
    Some(rest.split("\n\n").next().unwrap_or(rest).trim_end())
}

/// The same as a problem: what is wrong is the text up to its first empty line.
fn usage(error: &clap::Error, text: &str) -> Failure {
    let said = match text.strip_prefix("error:") {
        Some(said) => in_a_row(said.lines().take_while(|line| !line.is_empty())),
        None => "a subcommand is missing".to_owned(),
    };
    let (said, hint) = hint_of(error, text, said);
    let failure = Failure::new(Exit::Usage, USAGE, sentence(&said), sentence(&hint));
    match place_of(error) {
        Some(place) => failure.at(&place),
        None => failure,
    }
}

/// What is wrong, and what to do about it: what our own readers say behind it, the words that are known, or clap's tip.
fn hint_of(error: &clap::Error, text: &str, said: String) -> (String, String) {
    if let (ErrorKind::ValueValidation, Some((wrong, hint))) = (error.kind(), said.rsplit_once("; ")) {
        return (wrong.to_owned(), hint.to_owned());
    }
    let tips = text.lines().filter_map(|line| line.trim_start().strip_prefix("tip:"));
    // How to give what looks like an option as a value: nobody who mistyped one means that.
    let tips = tips.map(str::trim).filter(|tip| !tip.starts_with("to pass "));
    let tip = tips.collect::<Vec<_>>().join("; ");
    if let Some((wrong, known)) = said.split_once(" [possible values: ") {
        let known = known.trim_end_matches(']');
        return (wrong.to_owned(), format!("use one of: {known}"));
    }
    let hint = match tip.is_empty() {
        true if is_loose_word(error, text) => LOOSE_WORD.to_owned(),
        true => "see the command's --help".to_owned(),
        false => format!("{tip}; see the command's --help"),
    };
    (said, hint)
}

/// What the words behind a missing `--` and those of an expression without quotes have in common.
const LOOSE_WORD: &str = "a command to run goes behind --, and an expression is one argument, in quotes; see the \
                          command's --help";

/// A word that stands alone where a command to run could follow.
fn is_loose_word(error: &clap::Error, text: &str) -> bool {
    error.kind() == ErrorKind::UnknownArgument
        && place_of(error).is_some_and(|word| !word.starts_with('-'))
        && usage_of(text).is_some_and(|usage| usage.contains("<COMMAND>"))
}

/// The option or argument that it is about, without what stands for its value.
fn place_of(error: &clap::Error) -> Option<String> {
    let said = match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(one) => one,
        ContextValue::Strings(many) => many.first()?,
        _ => return None,
    };
    let name = said.split(' ').next().unwrap_or_default();
    Some(name.trim_matches(|c| "<>[].".contains(c)).to_owned())
}

fn in_a_row<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

/// A value with a minus, which clap takes for an option: no value is negative.
fn negative(error: &clap::Error, words: &[OsString]) -> Option<Failure> {
    let is_number = |word: &str| {
        let rest = word.strip_prefix('-');
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let unknown = error.kind() == ErrorKind::UnknownArgument;
    let at = words
        .iter()
        .position(|word| word.to_str().is_some_and(is_number))
        .filter(|_| unknown)?;
    let word = words.get(at)?.to_string_lossy();
    let before = at
        .checked_sub(1)
        .and_then(|before| words.get(before))
        .map(|word| word.to_string_lossy());
    let of = before.filter(|word| word.starts_with('-'));
    let owner = of.as_ref().map_or_else(String::new, |option| format!(" of {option}"));
    let detail = format!("'{word}' is no value{owner}: it begins like an option.");
    let hint = "No number, time or length of time is negative; an expression is one argument, in quotes.";
    let place = of.unwrap_or(word);
    Some(Failure::new(Exit::Usage, USAGE, detail, hint).at(&place))
}

/// An expression that clap did not take for one: it did not validate.
fn expression_of(error: &clap::Error, words: &[OsString]) -> Option<Failure> {
    if error.kind() == ErrorKind::InvalidUtf8 {
        // Of a preview it is an expression that did not validate.
        let exit = match words.iter().take(2).eq(["schedule", "preview"].iter()) {
            true => Exit::Invalid,
            false => Exit::Usage,
        };
        let detail = "An argument is not UTF-8 text.";
        return Some(Failure::new(exit, "argument_not_utf8", detail, "Write it in UTF-8."));
    }
    // Clap takes it for an option, but no option has a blank before its value.
    let is_like_an_option = |word: &String| {
        let name = word.split('=').next().unwrap_or_default();
        word.starts_with('-') && name.contains(char::is_whitespace)
    };
    let mut texts = words.iter().filter_map(|word| word.clone().into_string().ok());
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

    fn misread(words: &[&str]) -> clap::Error {
        let words = ["fencepost"].iter().chain(words);
        super::super::grammar().try_get_matches_from(words).unwrap_err()
    }

    /// What is told: detail, hint and field.
    fn told(words: &[&str]) -> (String, String, String) {
        let error = misread(words);
        let problem = usage(&error, &error.to_string()).problem;
        assert_eq!(&*problem.code, USAGE);
        let field = problem.field.map(String::from).unwrap_or_default();
        (problem.detail.into(), problem.hint.into(), field)
    }

    #[test]
    fn what_clap_says_is_told_as_a_problem_with_its_place_and_a_next_step() {
        let text = misread(&["job", "show"]).to_string();
        assert_eq!(usage_of(&text), Some("Usage: fencepost job show <ID>"));
        for (words, detail, hint, field) in [
            (
                &["job", "show"][..],
                "The following required arguments were not provided: <ID>.",
                "See the command's --help.",
                "ID",
            ),
            (
                &["job", "lst"],
                "Unrecognized subcommand 'lst'.",
                "A similar subcommand exists: 'list'; see the command's --help.",
                "",
            ),
            (
                &["job", "list", "-o", "xml"],
                "Invalid value 'xml' for '--output <OUTPUT>'.",
                "Use one of: text, json, jsonl.",
                "--output",
            ),
            (
                &[
                    "schedule", "create", "x", "--cron", "*", "9", "*", "*", "*", "--", "date",
                ],
                "Unexpected argument '9' found.",
                "A command to run goes behind --, and an expression is one argument, in quotes; see the command's --help.",
                "9",
            ),
            (
                &["job", "create", "--key", "k", "date"],
                "Unexpected argument 'date' found.",
                "A command to run goes behind --, and an expression is one argument, in quotes; see the command's --help.",
                "date",
            ),
            (
                &["schedule", "create", "x", "--evry", "5s"],
                "Unexpected argument '--evry' found.",
                "A similar argument exists: '--every'; see the command's --help.",
                "--evry",
            ),
            (
                &["serve", "--listen", "x"],
                "Invalid value 'x' for '--listen <ADDRESS>': 'x' is not an IP address and a port.",
                "Write it as in \"127.0.0.1:4480\".",
                "--listen",
            ),
        ] {
            let wanted = (detail.to_owned(), hint.to_owned(), field.to_owned());
            assert_eq!(told(words), wanted, "{words:?}");
        }
    }

    #[test]
    fn a_value_with_a_minus_is_told_as_one_and_not_as_an_option() {
        for (words, detail, field) in [
            (
                &["schedule", "create", "x", "--every", "-5s"][..],
                "'-5s' is no value of --every: it begins like an option.",
                "--every",
            ),
            (
                &["schedule", "preview", "-1", "*", "*", "*", "*"],
                "'-1' is no value: it begins like an option.",
                "-1",
            ),
        ] {
            let error = misread(words);
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let problem = negative(&error, &words).unwrap().problem;
            assert_eq!((&*problem.detail, problem.field.as_deref()), (detail, Some(field)));
            assert!(problem.hint.contains("in quotes"), "{}", problem.hint);
        }
        let words = ["schedule", "preview", "-1 * * * *"];
        let error = misread(&words);
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let problem = expression_of(&error, &words).unwrap().problem;
        assert_eq!(&*problem.detail, "Minute: -1 is neither a value nor a range.");
        assert!(problem.hint.contains("no number is negative"), "{}", problem.hint);
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
        let text = misread(&["job"]).to_string();
        assert_eq!(
            around(&text),
            (format!("{text}\n"), String::new()),
            "the help is shown whole"
        );
        let text = misread(&["job", "list", "-o", "xml"]).to_string();
        assert_eq!(around(&text), Default::default(), "what is wrong is said once: {text}");
        assert_eq!(told(&["job"]).0, "A subcommand is missing.");
    }
}
