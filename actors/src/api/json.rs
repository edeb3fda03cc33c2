//! Strict JSON: one parse into a small tree, with duplicate keys, depth and encoding judged.
//!
//! Owns: what counts as readable. A value under the key `payload` is a job's own: it is checked and kept
//! byte for byte, never interpreted (so `\u0000` and lone surrogates in it come back as they were sent).
//! Must never: accept a key twice, or recurse deeper than the limit. Next: `fields.rs`.

use fencepost_core::limits::{JSON_DEPTH_MAX, OBJECT_KEYS_MAX};
use fencepost_core::refusal::{Refusal, RefusalKind, shown};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::fmt;

/// Key whose value is kept as sent.
const RAW_KEY: &str = "payload";

/// A value as parsed.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Whole(i128),
    /// Any other number.
    Fraction(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object, in the order it was sent; no key twice.
    Object(Vec<(String, Json)>),
    /// The value of a `payload` key, byte for byte.
    Raw(Box<str>),
}

/// Reads a whole body.
///
/// # Errors
/// A refusal with code `json_…` that names the place.
pub fn parse(bytes: &[u8]) -> Result<Json, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let detail = format!(
            "The body is not UTF-8: byte {} cannot be read.",
            error.valid_up_to() + 1
        );
        refuse("json_not_utf8", detail, "Send JSON encoded as UTF-8.")
    })?;
    if text.trim_matches([' ', '\t', '\r', '\n']).is_empty() {
        return Err(refuse(
            "json_empty",
            "The body is empty.",
            "Send a JSON object; see /openapi.json.",
        ));
    }
    let fault = RefCell::new(None);
    let seed = Seed {
        fault: &fault,
        place: &Place::Root,
        depth: 0,
    };
    let mut source = serde_json::Deserializer::from_str(text);
    let parsed = seed
        .deserialize(&mut source)
        .and_then(|json| source.end().map(|()| json));
    parsed.map_err(|error| fault.take().unwrap_or_else(|| malformed(&error)))
}

fn malformed(error: &serde_json::Error) -> Refusal {
    let reason = error.to_string();
    let reason = reason
        .split(" at line ")
        .next()
        .unwrap_or("it cannot be read")
        .to_owned();
    let detail = format!(
        "The body is not JSON: {reason} (line {}, column {}).",
        error.line(),
        error.column()
    );
    refuse("json_malformed", detail, "Check the JSON at that place.")
}

fn refuse(code: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Invalid, code, detail, hint)
}

/// The way to a value, made into text only when something is wrong.
enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Key(Place::Root, key) => f.write_str(&printable(key)),
            Place::Key(parent, key) => write!(f, "{parent}.{}", printable(key)),
            Place::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// A key as shown to people: bounded, control characters as escapes.
pub fn printable(key: &str) -> String {
    shown(key, 64)
}

struct Seed<'a> {
    fault: &'a RefCell<Option<Refusal>>,
    place: &'a Place<'a>,
    depth: usize,
}

impl Seed<'_> {
    fn fail<E: serde::de::Error>(&self, refusal: Refusal) -> E {
        let place = self.place.to_string();
        let refusal = if place.is_empty() { refusal } else { refusal.at(place) };
        self.fault.replace(Some(refusal));
        E::custom("refused")
    }

    fn deeper<E: serde::de::Error>(&self) -> Result<usize, E> {
        if self.depth >= JSON_DEPTH_MAX {
            return Err(self.fail(too_deep()));
        }
        Ok(self.depth + 1)
    }
}

fn too_deep() -> Refusal {
    refuse(
        "json_too_deep",
        format!("The JSON is nested deeper than {JSON_DEPTH_MAX} levels."),
        "Flatten it, or send the value as payload_base64.",
    )
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Json;

    fn deserialize<D: serde::Deserializer<'de>>(self, source: D) -> Result<Json, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Whole(i128::from(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Whole(i128::from(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Fraction(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Json, A::Error> {
        let depth = self.deeper()?;
        let mut items = Vec::new();
        loop {
            let place = Place::Index(self.place, items.len());
            let seed = Seed {
                fault: self.fault,
                place: &place,
                depth,
            };
            match source.next_element_seed(seed)? {
                Some(item) => items.push(item),
                None => return Ok(Json::List(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Json, A::Error> {
        let depth = self.deeper()?;
        let mut items: Vec<(String, Json)> = Vec::new();
        while let Some(key) = source.next_key::<String>()? {
            let place = Place::Key(self.place, &key);
            let seed = Seed {
                fault: self.fault,
                place: &place,
                depth,
            };
            if items.iter().any(|(earlier, _)| *earlier == key) {
                return Err(seed.fail(refuse(
                    "json_duplicate_key",
                    "The same key comes twice in one object.",
                    "Send each key once.",
                )));
            }
            if items.len() >= OBJECT_KEYS_MAX {
                return Err(seed.fail(refuse(
                    "json_too_many_keys",
                    format!("An object here has at most {OBJECT_KEYS_MAX} keys."),
                    "Leave out what the server does not know; see /openapi.json.",
                )));
            }
            let value = match key.as_str() {
                RAW_KEY => raw(&mut source, &seed)?,
                _ => source.next_value_seed(seed)?,
            };
            items.push((key, value));
        }
        Ok(Json::Object(items))
    }
}

fn raw<'de, A: MapAccess<'de>>(source: &mut A, seed: &Seed<'_>) -> Result<Json, A::Error> {
    let value: Box<RawValue> = source.next_value()?;
    if depth_of(value.get()) + seed.depth > JSON_DEPTH_MAX {
        return Err(seed.fail(too_deep()));
    }
    let boxed: Box<str> = value.into();
    Ok(Json::Raw(boxed))
}

/// Deepest nesting of a valid JSON text.
fn depth_of(text: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0usize, 0usize, false, false);
    for byte in text.bytes() {
        match (quoted, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => quoted = !quoted,
            (false, b'[' | b'{') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

impl Json {
    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "true or false",
            Json::Whole(_) => "a whole number",
            Json::Fraction(_) => "a number with a fraction",
            Json::Text(_) => "a text",
            Json::List(_) => "a list",
            Json::Object(_) => "an object",
            Json::Raw(_) => "a payload",
        }
    }

    /// Feeds the value into a digest, independent of blanks and of the order of keys. Top-level keys in
    /// `skip` are left out.
    pub fn feed(&self, skip: &[&str], sink: &mut Vec<u8>) {
        match self {
            Json::Null => sink.push(b'n'),
            Json::Bool(value) => sink.extend([b'b', u8::from(*value)]),
            Json::Whole(value) => feed_bytes(b'i', value.to_string().as_bytes(), sink),
            Json::Fraction(value) => feed_bytes(b'f', &value.to_bits().to_be_bytes(), sink),
            Json::Text(value) => feed_bytes(b't', value.as_bytes(), sink),
            Json::Raw(value) => feed_bytes(b'r', value.as_bytes(), sink),
            Json::List(items) => {
                feed_bytes(b'l', &(items.len() as u64).to_be_bytes(), sink);
                items.iter().for_each(|item| item.feed(&[], sink));
            }
            Json::Object(items) => {
                let mut sorted: Vec<_> = items.iter().filter(|(key, _)| !skip.contains(&key.as_str())).collect();
                sorted.sort_by(|a, b| a.0.cmp(&b.0));
                feed_bytes(b'o', &(sorted.len() as u64).to_be_bytes(), sink);
                for (key, value) in sorted {
                    feed_bytes(b'k', key.as_bytes(), sink);
                    value.feed(&[], sink);
                }
            }
        }
    }
}

fn feed_bytes(tag: u8, bytes: &[u8], sink: &mut Vec<u8>) {
    sink.push(tag);
    sink.extend((bytes.len() as u64).to_be_bytes());
    sink.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> (&'static str, Option<String>) {
        parse(text.as_bytes())
            .err()
            .map(|refusal| (refusal.code, refusal.field))
            .unwrap_or(("accepted", None))
    }

    #[test]
    fn a_key_that_comes_twice_is_refused_by_its_path() {
        assert_eq!(
            code(r#"{"jobs":[{"a":{"b":1,"b":2}}]}"#),
            ("json_duplicate_key", Some("jobs[0].a.b".into()))
        );
        assert_eq!(code(r#"{"payload":{"a":1,"a":2}}"#), ("accepted", None));
    }

    #[test]
    fn depth_is_bounded_also_inside_a_payload() {
        let nest = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(code(&nest(JSON_DEPTH_MAX)).0, "accepted");
        assert_eq!(code(&nest(JSON_DEPTH_MAX + 1)).0, "json_too_deep");
        assert_eq!(
            code(&format!("{{\"payload\":{}}}", nest(JSON_DEPTH_MAX - 1))).0,
            "accepted"
        );
        assert_eq!(
            code(&format!("{{\"payload\":{}}}", nest(JSON_DEPTH_MAX))),
            ("json_too_deep", Some("payload".into()))
        );
        assert_eq!(code(&nest(1_000_000)).0, "json_too_deep");
        assert_eq!(code(&format!("{{\"payload\":{}}}", nest(1_000_000))).0, "json_too_deep");
    }

    #[test]
    fn payloads_keep_every_byte_and_other_texts_must_be_readable() {
        for text in [
            r#""\u0000""#,
            r#""\ud800""#,
            r#"{ "\udfff" : [1.0e400, "😀", "\u202e"] }"#,
            "1.000",
        ] {
            let body = format!("{{\"payload\": {text} }}");
            let Ok(Json::Object(items)) = parse(body.as_bytes()) else {
                panic!("{text}");
            };
            assert_eq!(items, [("payload".to_owned(), Json::Raw(text.into()))]);
        }
        assert_eq!(code(r#"{"queue":"\ud800"}"#).0, "json_malformed");
        assert_eq!(code(r#"{"priority":1e999}"#).0, "json_malformed");
        assert_eq!(parse(b"{\"a\":\"\xff\"}").err().map(|r| r.code), Some("json_not_utf8"));
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        for text in [
            "{",
            "nul",
            "{\"a\":1} x",
            "{'a':1}",
            "{\"a\":01}",
            "[1,]",
            "\u{feff}{}",
            "NaN",
        ] {
            assert_eq!(code(text).0, "json_malformed", "{text}");
        }
        let refusal = parse(b"{\n \"a\": tru }").unwrap_err();
        assert!(refusal.detail.contains("line 2, column"), "{}", refusal.detail);
        assert_eq!(code(" \n").0, "json_empty");
    }

    #[test]
    fn the_digest_ignores_blanks_and_key_order_and_nothing_else() {
        let feed = |text: &str| {
            let mut sink = Vec::new();
            parse(text.as_bytes()).unwrap().feed(&["idempotency_key"], &mut sink);
            sink
        };
        assert_eq!(
            feed(r#"{"a":1,"b":[true],"idempotency_key":"x"}"#),
            feed(r#"{ "b": [ true ], "a": 1 }"#)
        );
        assert_ne!(feed(r#"{"a":1}"#), feed(r#"{"a":"1"}"#));
        assert_ne!(feed(r#"{"payload":1}"#), feed(r#"{"payload":1.0}"#));
        assert_ne!(feed(r#"{"a":{"idempotency_key":1}}"#), feed(r#"{"a":{}}"#));
    }
}
