//! Reads the fields of one JSON object: types, ranges, unknown keys, always by the field's full name.
//!
//! Owns: the words of field errors. Must never: know what a field means. `null` means "not given".
//! Next: `dto/` (the only users).

use super::json::{Json, printable};
use super::text;
use fencepost_core::name::Name;
use fencepost_core::refusal::{Refusal, RefusalKind};
use fencepost_core::time::{Span, StoreTime};
use std::ops::RangeInclusive;

/// A refusal of a request's own content.
pub fn invalid(code: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Invalid, code, detail, hint)
}

/// The fields of one object that were not taken yet.
#[derive(Debug)]
pub struct Fields {
    path: String,
    items: Vec<(String, Json)>,
    asked: Vec<&'static str>,
}

impl Fields {
    /// The fields of `json`, which lies at `path` (empty for the body itself).
    ///
    /// # Errors
    /// It is no object.
    pub fn of(json: Json, path: impl Into<String>) -> Result<Fields, Refusal> {
        let path = path.into();
        match json {
            Json::Object(items) => Ok(Fields {
                path,
                items,
                asked: Vec::with_capacity(24),
            }),
            other => {
                let refusal = invalid(
                    "field_type",
                    format!("An object is expected here, not {}.", other.kind()),
                    "Send an object; see /openapi.json.",
                );
                Err(if path.is_empty() { refusal } else { refusal.at(path) })
            }
        }
    }

    /// The same, once all names are known ones: a mistyped name is told as one, and not as a field that is missing.
    ///
    /// # Errors
    /// A field that nobody will ask for.
    pub fn only(self, known: &[&'static str]) -> Result<Fields, Refusal> {
        match self.items.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((unknown, _)) => Err(self.unknown(unknown, known)),
            None => Ok(self),
        }
    }

    /// The full name of a field.
    pub fn name_of(&self, field: &str) -> String {
        if self.path.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.path)
        }
    }

    /// Names asked for so far: what this object may hold.
    pub fn asked(&self) -> &[&'static str] {
        &self.asked
    }

    /// Whether the field was sent and not taken yet.
    pub fn has(&self, field: &str) -> bool {
        self.items
            .iter()
            .any(|(name, value)| name == field && *value != Json::Null)
    }

    /// Takes a field; `null` counts as not given.
    pub fn take(&mut self, field: &'static str) -> Option<Json> {
        self.asked.push(field);
        let at = self.items.iter().position(|(name, _)| name == field)?;
        match self.items.swap_remove(at).1 {
            Json::Null => None,
            value => Some(value),
        }
    }

    fn wrong(&self, field: &str, expected: &str, value: &Json) -> Refusal {
        invalid(
            "field_type",
            format!("{expected} is expected here, not {}.", value.kind()),
            "See /openapi.json for the type of each field.",
        )
        .at(self.name_of(field))
    }

    /// A refusal of this field.
    pub fn refuse(
        &self,
        field: &str,
        code: &'static str,
        detail: impl Into<String>,
        hint: impl Into<String>,
    ) -> Refusal {
        invalid(code, detail, hint).at(self.name_of(field))
    }

    /// A refusal because the field must be given.
    pub fn missing(&self, field: &str, hint: &str) -> Refusal {
        self.refuse(field, "field_missing", "This field must be given.", hint)
    }

    /// A text.
    ///
    /// # Errors
    /// Another type.
    pub fn text(&mut self, field: &'static str) -> Result<Option<String>, Refusal> {
        match self.take(field) {
            None => Ok(None),
            Some(Json::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(field, "A text", &other)),
        }
    }

    /// A text of at most `max` bytes without control characters, not empty.
    ///
    /// # Errors
    /// Another type, empty, too long, or a control character.
    pub fn line(&mut self, field: &'static str, max: usize) -> Result<Option<String>, Refusal> {
        let Some(text) = self.text(field)? else {
            return Ok(None);
        };
        if text.is_empty() || text.len() > max {
            let detail = format!("This field has 1 to {max} bytes, not {}.", text.len());
            return Err(self.refuse(field, "field_length", detail, length_hint(&text)));
        }
        if let Some(at) = text.chars().position(char::is_control) {
            let detail = format!("Character {} of this field is a control character.", at + 1);
            return Err(self.refuse(field, "field_control_character", detail, "Leave it out."));
        }
        Ok(Some(text))
    }

    /// A name of our alphabet.
    ///
    /// # Errors
    /// Another type, or no name.
    pub fn name(&mut self, field: &'static str) -> Result<Option<Name>, Refusal> {
        let Some(text) = self.text(field)? else {
            return Ok(None);
        };
        Name::new(&text).map(Some).map_err(|error| {
            self.refuse(
                field,
                "name_invalid",
                sentence(&error.to_string()),
                "Use letters, digits, '.', '_' and '-'; begin with a letter or digit.",
            )
        })
    }

    /// A whole number within `range`.
    ///
    /// # Errors
    /// Another type, or out of range.
    pub fn whole(&mut self, field: &'static str, range: RangeInclusive<u64>) -> Result<Option<u64>, Refusal> {
        let (low, high) = (*range.start(), *range.end());
        match self.take(field) {
            None => Ok(None),
            Some(Json::Whole(value)) => match u64::try_from(value) {
                Ok(value) if range.contains(&value) => Ok(Some(value)),
                _ => Err(self.refuse(
                    field,
                    "field_range",
                    format!("This field runs from {low} to {high}, not {value}."),
                    format!("Give a whole number from {low} to {high}."),
                )),
            },
            Some(Json::Fraction(_)) => Err(self.refuse(
                field,
                "field_range",
                format!("This field is a whole number from {low} to {high}."),
                format!("Give a whole number from {low} to {high}."),
            )),
            Some(other) => Err(self.wrong(field, "A whole number", &other)),
        }
    }

    /// `true` or `false`; `false` when not given.
    ///
    /// # Errors
    /// Another type.
    pub fn flag(&mut self, field: &'static str) -> Result<bool, Refusal> {
        match self.take(field) {
            None => Ok(false),
            Some(Json::Bool(value)) => Ok(value),
            Some(other) => Err(self.wrong(field, "true or false", &other)),
        }
    }

    /// A list of at most `max` items; empty when not given.
    ///
    /// # Errors
    /// Another type, or too many.
    pub fn list(&mut self, field: &'static str, max: usize) -> Result<Vec<Json>, Refusal> {
        match self.take(field) {
            None => Ok(Vec::new()),
            Some(Json::List(items)) if items.len() <= max => Ok(items),
            Some(Json::List(items)) => Err(self.refuse(
                field,
                "field_count",
                format!("This list has at most {max} items, not {}.", items.len()),
                "Send fewer.",
            )),
            Some(other) => Err(self.wrong(field, "A list", &other)),
        }
    }

    /// A list of texts.
    ///
    /// # Errors
    /// Another type, or too many.
    pub fn texts(&mut self, field: &'static str, max: usize) -> Result<Vec<String>, Refusal> {
        let items = self.list(field, max)?;
        let text = |(at, item)| match item {
            Json::Text(text) => Ok(text),
            other => Err(self.wrong(&format!("{field}[{at}]"), "A text", &other)),
        };
        items.into_iter().enumerate().map(text).collect()
    }

    /// A map of texts, in the order of the keys; empty when not given.
    ///
    /// # Errors
    /// Another type.
    pub fn text_map(&mut self, field: &'static str) -> Result<Vec<(String, String)>, Refusal> {
        let items = match self.take(field) {
            None => return Ok(Vec::new()),
            Some(Json::Object(items)) => items,
            Some(other) => return Err(self.wrong(field, "An object of texts", &other)),
        };
        let pair = |(key, value): (String, Json)| match value {
            Json::Text(text) => Ok((key, text)),
            other => Err(self.wrong(&format!("{field}.{}", printable(&key)), "A text", &other)),
        };
        let mut pairs = items.into_iter().map(pair).collect::<Result<Vec<_>, _>>()?;
        pairs.sort();
        Ok(pairs)
    }

    /// An object's fields.
    ///
    /// # Errors
    /// Another type.
    pub fn object(&mut self, field: &'static str) -> Result<Option<Fields>, Refusal> {
        let path = self.name_of(field);
        self.take(field).map(|json| Fields::of(json, path)).transpose()
    }

    /// A length of time, such as `30s`, at most `max`.
    ///
    /// # Errors
    /// Another type, no length of time, or too long.
    pub fn span(&mut self, field: &'static str, max: Span) -> Result<Option<Span>, Refusal> {
        let Some(value) = self.text(field)? else {
            return Ok(None);
        };
        let span = text::parse_span(&value).map_err(|refusal| refusal.at(self.name_of(field)))?;
        if span > max {
            let detail = format!("This length of time is at most {}.", text::span(max));
            return Err(self.refuse(field, "duration_too_long", detail, "Give a shorter one."));
        }
        Ok(Some(span))
    }

    /// An instant in RFC 3339, up to the year 9999.
    ///
    /// # Errors
    /// Another type, or no instant.
    pub fn instant(&mut self, field: &'static str) -> Result<Option<StoreTime>, Refusal> {
        let Some(value) = self.text(field)? else {
            return Ok(None);
        };
        let instant = text::parse_instant(&value).map_err(|refusal| refusal.at(self.name_of(field)))?;
        Ok(Some(instant))
    }

    /// One of a few words.
    ///
    /// # Errors
    /// Another type, or another word.
    pub fn word<T: Copy>(&mut self, field: &'static str, words: &[(&str, T)]) -> Result<Option<T>, Refusal> {
        let Some(value) = self.text(field)? else {
            return Ok(None);
        };
        if let Some((_, found)) = words.iter().find(|(word, _)| *word == value) {
            return Ok(Some(*found));
        }
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let detail = format!("\"{}\" is not known here.", printable(&value));
        Err(self.refuse(
            field,
            "field_word",
            detail,
            format!("Use one of: {}.", known.join(", ")),
        ))
    }

    /// Ends the reading: what was not asked for is refused.
    ///
    /// # Errors
    /// A field that nobody asked for.
    pub fn end(self) -> Result<(), Refusal> {
        let Some((unknown, _)) = self.items.first() else {
            return Ok(());
        };
        Err(self.unknown(unknown, &self.asked))
    }

    fn unknown(&self, unknown: &str, known: &[&str]) -> Refusal {
        let near = known.iter().find(|known| alike(known, unknown));
        let hint = match near {
            Some(known) => format!("Did you mean \"{known}\"?"),
            None => format!("Known here: {}.", known.join(", ")),
        };
        self.refuse(&printable(unknown), "field_unknown", "This field is not known.", hint)
    }
}

/// What to do about a text that is empty or too long.
pub fn length_hint(text: &str) -> &'static str {
    match text.is_empty() {
        true => "Fill it, or leave it out.",
        false => "Shorten it.",
    }
}

/// A message of a lower part as a sentence. A first word that is no plain word, such as an id, stays as it is.
pub fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let word = message.split(' ').next().unwrap_or_default();
    let is_plain = word.chars().all(|c| c.is_alphabetic() || "-',:".contains(c));
    let first = letters.next().map(|c| match is_plain {
        true => c.to_uppercase().to_string(),
        false => c.to_string(),
    });
    let first = first.unwrap_or_default();
    let end = if message.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// Whether two words differ by at most two edits and share most of their letters.
fn alike(known: &str, given: &str) -> bool {
    let given = given.to_ascii_lowercase().replace('-', "_");
    if given.len() > 64 {
        return false;
    }
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (i, a) in given.bytes().enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (b, cell) in known.bytes().zip(row.iter_mut().skip(1)) {
            let cost = corner + usize::from(a != b);
            corner = *cell;
            left = cost.min(corner + 1).min(left + 1);
            *cell = left;
        }
    }
    let distance = row.last().copied().unwrap_or(usize::MAX);
    distance <= 2 && distance * 2 < known.len().max(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::json::parse;

    fn fields(text: &str) -> Fields {
        Fields::of(parse(text.as_bytes()).unwrap(), "job").unwrap()
    }

    #[test]
    fn an_unknown_field_is_refused_with_the_nearest_known_one() {
        let mut read = fields(r#"{"priorty":1}"#);
        assert_eq!(read.whole("priority", 0..=9).unwrap(), None);
        let refusal = read.end().unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("job.priorty"));
        assert_eq!(
            (refusal.code, refusal.hint.as_str()),
            ("field_unknown", "Did you mean \"priority\"?")
        );
        let mut read = fields(r#"{"zzz":1}"#);
        assert!(!read.flag("paused").unwrap());
        assert_eq!(read.end().unwrap_err().hint, "Known here: paused.");
    }

    #[test]
    fn numbers_out_of_range_are_refused_whatever_their_size() {
        for number in ["10", "-1", "18446744073709551616", "1.5", "1e300"] {
            let mut read = fields(&format!("{{\"priority\":{number}}}"));
            let refusal = read.whole("priority", 0..=9).unwrap_err();
            assert_eq!(
                (refusal.code, refusal.field.as_deref()),
                ("field_range", Some("job.priority"))
            );
        }
        let refusal = fields(r#"{"priority":"5"}"#).whole("priority", 0..=9).unwrap_err();
        assert_eq!(refusal.code, "field_type");
    }

    #[test]
    fn sentences_begin_with_a_capital_and_leave_ids_as_they_are() {
        assert_eq!(
            sentence("day-of-week: 9 is outside 0-7"),
            "Day-of-week: 9 is outside 0-7."
        );
        assert_eq!(sentence("job_0a is not dead."), "job_0a is not dead.");
        assert_eq!(sentence("4 fields"), "4 fields.");
    }

    #[test]
    fn names_lists_and_maps_say_which_part_is_wrong() {
        let refusal = fields(r#"{"queue":"a b"}"#).name("queue").unwrap_err();
        assert_eq!(
            (refusal.code, refusal.field.as_deref()),
            ("name_invalid", Some("job.queue"))
        );
        let refusal = fields(r#"{"argv":["a",1]}"#).texts("argv", 3).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("job.argv[1]"));
        let refusal = fields(r#"{"env":{"A":1}}"#).text_map("env").unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("job.env.A"));
        let refusal = fields(r#"{"key":"a\u0000b"}"#).line("key", 9).unwrap_err();
        assert_eq!(refusal.code, "field_control_character");
    }
}
