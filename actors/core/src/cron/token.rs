//! Takes an expression apart: characters, macros, fields.
//!
//! Owns: what a field is and where in the text it stands.
//! Must never: give meaning to the inside of a field; that is `item`.

use super::{CronError, CronErrorKind, CronField};
use crate::limits::EXPRESSION_BYTES_MAX;

/// One field, upper case, and its first byte in the text as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub text: String,
    pub at: usize,
}

/// The seven fields; second and year are filled in where the text has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tokens {
    pub fields: [Token; 7],
    /// How many of them the text, or its macro, has.
    pub given: usize,
}

const MACROS: &[(&str, &str)] = &[
    ("@YEARLY", "0 0 1 1 *"),
    ("@ANNUALLY", "0 0 1 1 *"),
    ("@MONTHLY", "0 0 1 * *"),
    ("@WEEKLY", "0 0 * * 0"),
    ("@DAILY", "0 0 * * *"),
    ("@MIDNIGHT", "0 0 * * *"),
    ("@HOURLY", "0 * * * *"),
];

/// Splits a whole expression.
pub(super) fn split(text: &str) -> Result<Tokens, CronError> {
    check_characters(text)?;
    let body = text.trim_matches([' ', '\t']);
    if !body.starts_with('@') {
        return seven(words(text), text.len());
    }
    let at = text.len() - text.trim_start_matches([' ', '\t']).len();
    let wanted = body.to_ascii_uppercase();
    let Some((_, fields)) = MACROS.iter().find(|(name, _)| *name == wanted) else {
        return Err(unknown_macro(body, at));
    };
    let tokens = words(fields).into_iter().map(|token| Token { at, ..token }).collect();
    seven(tokens, text.len())
}

/// As it was written; an interval, which other programs write as a macro, is not a matter of cron here.
fn unknown_macro(body: &str, position: usize) -> CronError {
    let word = body.split([' ', '\t']).next().unwrap_or(body);
    let hint = match word.eq_ignore_ascii_case("@every") {
        true => "a fixed interval is no cron expression: give it as \"every\" (--every 5m) in its place",
        false => "known are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly",
    };
    CronError {
        kind: CronErrorKind::Macro,
        field: CronField::Expression,
        position,
        message: format!("expression: unknown macro {word}"),
        hint: hint.to_owned(),
    }
}

fn check_characters(text: &str) -> Result<(), CronError> {
    if text.len() > EXPRESSION_BYTES_MAX {
        return Err(CronError {
            kind: CronErrorKind::TooLong,
            field: CronField::Expression,
            position: EXPRESSION_BYTES_MAX,
            message: format!(
                "expression: {} bytes; at most {EXPRESSION_BYTES_MAX} are accepted",
                text.len()
            ),
            hint: "shorten lists to ranges and steps, or use several expressions".to_owned(),
        });
    }
    let odd = text
        .char_indices()
        .find(|(_, c)| !(' '..='~').contains(c) && *c != '\t');
    match odd {
        None => Ok(()),
        Some((position, odd)) => Err(CronError {
            kind: CronErrorKind::Character,
            field: CronField::Expression,
            position,
            message: format!(
                "expression: character U+{:04X} is outside printable ASCII",
                u32::from(odd)
            ),
            hint: "use plain digits, letters and signs, separated by blanks or tabs".to_owned(),
        }),
    }
}

fn words(text: &str) -> Vec<Token> {
    let mut words = Vec::new();
    let mut at = 0;
    for word in text.split([' ', '\t']) {
        if !word.is_empty() {
            words.push(Token {
                text: word.to_ascii_uppercase(),
                at,
            });
        }
        at += word.len() + 1;
    }
    words
}

const FIELDS_IN_ORDER: &str = "minute hour day-of-month month day-of-week; with 6 fields the second comes first, with 7 \
                               the year comes last";

fn seven(mut words: Vec<Token>, end: usize) -> Result<Tokens, CronError> {
    let given = words.len();
    if given == 5 {
        words.insert(
            0,
            Token {
                text: "0".to_owned(),
                at: 0,
            },
        );
    }
    if given == 5 || given == 6 {
        words.push(Token {
            text: "*".to_owned(),
            at: end,
        });
    }
    match <[Token; 7]>::try_from(words) {
        Ok(fields) => Ok(Tokens { fields, given }),
        Err(_) => Err(CronError {
            kind: CronErrorKind::FieldCount,
            field: CronField::Expression,
            position: 0,
            message: match given {
                1 => "expression: 1 field; 5, 6 or 7 expected".to_owned(),
                _ => format!("expression: {given} fields; 5, 6 or 7 expected"),
            },
            // One word alone is what a shell leaves of an expression that nobody quoted.
            hint: match given {
                1 => format!("{FIELDS_IN_ORDER}; all of them are one argument, in quotes"),
                _ => FIELDS_IN_ORDER.to_owned(),
            },
        }),
    }
}
