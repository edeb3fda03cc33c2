//! Reads a scenario file by the tables of `keys.rs`: every mistake, each at its place.
//!
//! Owns: kinds of values, unknown keys, what is missing. Must never: know what a key means. Next: `whole.rs`.

use super::Scenario;
use super::keys::{EXPECT, FAULT, FAULTS, Key, Kind, SECTIONS, TOPOLOGY, WORKLOADS, Want, places};
use super::measure::Measure;
use super::mistake::{Mistake, Mistakes};
use super::nearest::nearest;
use super::values::{article, count, example, judgeable, length, named, payload};
use crate::own;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value as it was read.
#[derive(Clone, Debug)]
pub enum Value {
    /// A text.
    Text(String),
    /// From one to the other.
    Count(u64, u64),
    /// A length of time.
    Length(Measure),
    /// True or false.
    Switch(bool),
    /// Known words.
    Words(Vec<&'static str>),
    /// Texts in a list.
    Texts(Vec<(String, Range<usize>)>),
    /// A section.
    Section(Fields),
}

/// What a section says.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// The word of its `kind`.
    pub kind: &'static str,
    /// Where it stands.
    pub span: Range<usize>,
    values: BTreeMap<&'static str, (Value, Range<usize>)>,
}

impl Fields {
    /// Where a key's value stands; the section, where it is not there.
    pub fn span_of(&self, key: &str) -> Range<usize> {
        self.values.get(key).map_or(self.span.clone(), |(_, span)| span.clone())
    }

    /// Whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// What it says, without how often: names its streams.
    pub fn signature(&self) -> String {
        let values = self.values.iter().filter(|(key, _)| **key != "times");
        let said = values.map(|(key, (value, _))| match value {
            Value::Texts(texts) => {
                let texts: Vec<&str> = texts.iter().map(|(text, _)| text.as_str()).collect();
                format!("{key} {texts:?}")
            }
            Value::Section(fields) => format!("{key} {}", fields.signature()),
            value => format!("{key} {value:?}"),
        });
        format!("{} {}", self.kind, said.collect::<Vec<_>>().join(" "))
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key).map(|(value, _)| value)
    }

    /// From one number to the other.
    pub fn count(&self, key: &str) -> Option<(u64, u64)> {
        match self.value(key) {
            Some(Value::Count(low, high)) => Some((*low, *high)),
            _ => None,
        }
    }

    /// A length of time.
    pub fn length(&self, key: &str) -> Option<Measure> {
        match self.value(key) {
            Some(Value::Length(measure)) => Some(*measure),
            _ => None,
        }
    }

    /// True or false.
    pub fn switch(&self, key: &str) -> Option<bool> {
        match self.value(key) {
            Some(Value::Switch(is_on)) => Some(*is_on),
            _ => None,
        }
    }

    /// Words; none when the key is not there.
    pub fn words(&self, key: &str) -> &[&'static str] {
        match self.value(key) {
            Some(Value::Words(words)) => words,
            _ => &[],
        }
    }

    /// Texts with their places.
    pub fn texts(&self, key: &str) -> &[(String, Range<usize>)] {
        match self.value(key) {
            Some(Value::Texts(texts)) => texts,
            _ => &[],
        }
    }

    /// A section within.
    pub fn section(&self, key: &str) -> Option<&Fields> {
        match self.value(key) {
            Some(Value::Section(fields)) => Some(fields),
            _ => None,
        }
    }
}

/// Collects mistakes.
#[derive(Default)]
pub struct Reader {
    found: Vec<Mistake>,
    is_unsure: bool,
}

impl Reader {
    /// Nothing was wrong so far.
    pub fn is_content(&self) -> bool {
        self.found.is_empty()
    }

    /// Machines or workloads may be others than were read: nothing can be said of how things fit together.
    pub fn is_unsure(&self) -> bool {
        self.is_unsure
    }

    /// All that was wrong.
    pub fn mistakes(self, name: &str, text: &str) -> Mistakes {
        Mistakes::new(name, text, self.found)
    }

    /// Something is wrong.
    pub fn wrong(&mut self, span: Range<usize>, what: impl Into<String>, label: impl Into<String>) {
        self.wrong_with(span, what, label, None);
    }

    /// Something is wrong, and a hint helps.
    pub fn wrong_with(
        &mut self,
        span: Range<usize>,
        what: impl Into<String>,
        label: impl Into<String>,
        hint: Option<String>,
    ) {
        self.found.push(Mistake {
            span,
            what: what.into(),
            label: label.into(),
            hint,
        });
    }

    /// Reads a whole file.
    pub fn document(&mut self, name: &str, text: &str) -> Scenario {
        let (document, errors) = DeTable::parse_recoverable(text);
        let mut broken = Vec::new();
        for error in &errors {
            self.syntax(text, error, &mut broken);
        }
        let before = self.found.len();
        let mut scenario = Scenario {
            name: name.to_owned(),
            story: String::new(),
            topology: Fields::default(),
            workloads: Vec::new(),
            faults: Vec::new(),
            expect: Fields::default(),
        };
        for (key, value) in document.get_ref() {
            self.top(&mut scenario, (key.get_ref(), key.span()), value);
        }
        self.missing(&scenario, document.get_ref(), text);
        self.is_unsure |= scenario.topology.section("nodes").is_none()
            || !document.get_ref().keys().any(|key| key.get_ref() == "workload");
        // What the parser made of a broken line is not what its author meant.
        let mut number = 0;
        self.found.retain(|mistake| {
            number += 1;
            number <= before || !broken.contains(&line_of(text, mistake.span.start))
        });
        scenario
    }

    fn syntax(&mut self, text: &str, error: &toml::de::Error, broken: &mut Vec<usize>) {
        let span = error.span().unwrap_or(0..0);
        let line = line_of(text, span.start);
        if broken.contains(&line) {
            return;
        }
        broken.push(line);
        self.is_unsure = true;
        let hint = "write key = value, texts in double quotes, sections as [topology] or [[fault]]";
        let what = match error.message().lines().next().unwrap_or_default() {
            message if message.starts_with("duplicate key") => "this key stands here a second time".to_owned(),
            message => format!("this is no TOML: {message}"),
        };
        self.wrong_with(span, what, "here", Some(hint.to_owned()));
    }

    fn top(&mut self, scenario: &mut Scenario, (key, at): (&str, Range<usize>), value: &Spanned<DeValue<'_>>) {
        match key {
            "story" => {
                if let Some(Value::Text(text)) = self.value(key, Want::Text, value) {
                    scenario.story = text;
                }
            }
            "topology" => scenario.topology = self.section(key, TOPOLOGY, at, value),
            "expect" => scenario.expect = self.section(key, EXPECT, at, value),
            "workload" => scenario.workloads = self.kinds(key, WORKLOADS, &[], value),
            "fault" => scenario.faults = self.kinds(key, FAULTS, FAULT, value),
            _ => {
                let known = SECTIONS.iter().copied().chain(["story"]);
                let hint = match (nearest(key, known), belongs_to(key)) {
                    (Some(near), _) => format!("did you mean `{near}`?"),
                    (None, Some(place)) => format!("it belongs to {place}"),
                    (None, None) => format!("a file has story, {}", SECTIONS.join(", ")),
                };
                self.wrong_with(at, format!("there is no `{key}` at the top"), "unknown", Some(hint));
            }
        }
    }

    fn missing(&mut self, scenario: &Scenario, document: &DeTable<'_>, text: &str) {
        let end = text.trim_end().len();
        let has = |key: &str| document.keys().any(|known| known.get_ref() == key);
        for (key, example) in [
            (
                "story",
                "story = \"A worker dies in the middle: its job runs again elsewhere.\"",
            ),
            ("topology", "[topology] with nodes = { scheduler = 1 }"),
            (
                "workload",
                "[[workload]] with kind = \"one-shot-jobs\", count = 20, over = \"30s\"",
            ),
        ] {
            if !has(key) {
                let what = format!("there is no `{key}`");
                self.wrong_with(end..end, what, "the file ends here", Some(format!("write {example}")));
            }
        }
        if has("story") && scenario.story.trim().is_empty() {
            let span = document.iter().find(|(key, _)| key.get_ref() == "story");
            let span = span.map_or(0..0, |(_, value)| value.span());
            let hint = "say in one sentence what befalls whom and what must hold".to_owned();
            self.wrong_with(span, "the story is empty", "here", Some(hint));
        }
    }

    fn section(&mut self, name: &str, keys: &'static [Key], at: Range<usize>, value: &Spanned<DeValue<'_>>) -> Fields {
        let DeValue::Table(table) = value.get_ref() else {
            let what = format!("`{name}` is a section, not {}", article(value.get_ref()));
            self.wrong_with(
                value.span(),
                what,
                "here",
                Some(format!("write [{name}], and its keys below")),
            );
            return Fields::default();
        };
        self.fields(&format!("[{name}]"), &[keys], at, table)
    }

    /// Sections of several kinds.
    fn kinds(
        &mut self,
        name: &str,
        kinds: &'static [Kind],
        common: &'static [Key],
        value: &Spanned<DeValue<'_>>,
    ) -> Vec<Fields> {
        let DeValue::Array(entries) = value.get_ref() else {
            self.is_unsure = true;
            let what = format!("`{name}` is written in double brackets, once for each");
            self.wrong_with(value.span(), what, "here", Some(format!("write [[{name}]]")));
            return Vec::new();
        };
        let mut all = Vec::new();
        for entry in entries {
            match entry.get_ref() {
                DeValue::Table(table) => all.extend(self.one_kind(name, (kinds, common), entry.span(), table)),
                other => {
                    self.is_unsure = true;
                    let what = format!("a {name} is a section, not {}", article(other));
                    self.wrong_with(entry.span(), what, "here", Some(format!("write [[{name}]]")));
                }
            }
        }
        all
    }

    fn one_kind(
        &mut self,
        name: &str,
        (kinds, common): (&'static [Kind], &'static [Key]),
        at: Range<usize>,
        table: &DeTable<'_>,
    ) -> Option<Fields> {
        let names = || kinds.iter().map(|kind| kind.name);
        let list = || names().collect::<Vec<_>>().join(", ");
        let said = table.iter().find(|(key, _)| key.get_ref() == "kind");
        let word = said.map(|(_, value)| (value.get_ref(), value.span()));
        let kind = match &word {
            None => {
                let hint = Some(format!("write kind = \"…\" with one of {}", list()));
                self.wrong_with(at.clone(), format!("this {name} has no kind"), "here", hint);
                None
            }
            Some((DeValue::String(word), span)) => {
                let kind = kinds.iter().find(|kind| kind.name == &**word);
                if kind.is_none() {
                    let hint = match nearest(word, names()) {
                        Some(near) => format!("did you mean \"{near}\"?"),
                        None => format!("there are {}", list()),
                    };
                    let what = format!("there is no {name} of kind {word:?}");
                    self.wrong_with(span.clone(), what, "unknown", Some(hint));
                }
                kind
            }
            Some((other, span)) => {
                let what = format!("a kind is a word, not {}", article(other));
                self.wrong_with(span.clone(), what, "here", Some(format!("there are {}", list())));
                None
            }
        };
        let place = match kind {
            Some(kind) => format!("a {name} of kind {}", kind.name),
            None => format!("a {name}"),
        };
        // Of no known kind: what some kind knows is not held against it.
        let keys: Vec<&'static [Key]> = match kind {
            Some(kind) => vec![kind.keys, common],
            None => kinds.iter().map(|kind| kind.keys).chain([common]).collect(),
        };
        let mut fields = self.known_fields(&place, &keys, at.clone(), table);
        self.is_unsure |= kind.is_none();
        fields.kind = kind?.name;
        self.needed(&place, &keys, at, table);
        Some(fields)
    }

    fn fields(&mut self, place: &str, keys: &[&'static [Key]], at: Range<usize>, table: &DeTable<'_>) -> Fields {
        self.needed(place, keys, at.clone(), table);
        self.known_fields(place, keys, at, table)
    }

    fn needed(&mut self, place: &str, keys: &[&'static [Key]], at: Range<usize>, table: &DeTable<'_>) {
        let has = |name: &str| table.keys().any(|key| key.get_ref() == name);
        let known = keys.iter().flat_map(|keys| keys.iter());
        for key in known.filter(|key| key.is_needed && !has(key.name)) {
            let hint = Some(format!("write {} = {}", key.name, example(key.want)));
            self.wrong_with(at.clone(), format!("{place} needs `{}`", key.name), "here", hint);
        }
    }

    /// The keys that are known, without those that are missing.
    fn known_fields(&mut self, place: &str, keys: &[&'static [Key]], at: Range<usize>, table: &DeTable<'_>) -> Fields {
        let known = || keys.iter().flat_map(|keys| keys.iter());
        let mut fields = Fields {
            span: at.clone(),
            ..Fields::default()
        };
        for (key, value) in table {
            let name: &str = key.get_ref();
            if name == "kind" {
                continue;
            }
            match known().find(|known| known.name == name) {
                Some(known) => {
                    if let Some(read) = self.value(known.name, known.want, value) {
                        fields.values.insert(known.name, (read, value.span()));
                    }
                }
                None => {
                    let hint = match (nearest(name, known().map(|key| key.name)), belongs_to(name)) {
                        (Some(near), _) => format!("did you mean `{near}`?"),
                        (None, Some(other)) => format!("it belongs to {other}"),
                        (None, None) => {
                            let names: Vec<&str> = known().map(|key| key.name).collect();
                            format!("it has {}", names.join(", "))
                        }
                    };
                    self.wrong_with(
                        key.span(),
                        format!("there is no `{name}` in {place}"),
                        "unknown",
                        Some(hint),
                    );
                }
            }
        }
        fields
    }

    fn value(&mut self, key: &'_ str, want: Want, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        let span = value.span();
        let read = match (want, value.get_ref()) {
            (Want::Text, DeValue::String(text)) => Ok(Value::Text(text.to_string())),
            (Want::Switch, DeValue::Boolean(is_on)) => Ok(Value::Switch(*is_on)),
            (Want::Count { least, most }, DeValue::Integer(number)) => {
                let number = i128::from_str_radix(number.as_str(), number.radix()).unwrap_or(i128::MAX);
                count(&number.to_string(), (least, most))
            }
            (Want::Count { least, most }, DeValue::String(text)) => count(text, (least, most)),
            (Want::Length { most }, DeValue::String(text)) => length(text, 0, most),
            (Want::Offset { most }, DeValue::String(text)) => length(text, -most, most),
            (Want::OneOf(known) | Want::AllOf(known), DeValue::String(_) | DeValue::Array(_)) => {
                return self.words(key, known, value);
            }
            (Want::Crons, DeValue::String(_) | DeValue::Array(_)) => return self.crons(key, value),
            (Want::Handler, DeValue::String(_) | DeValue::Array(_)) => return self.handlers(key, value),
            (Want::Payloads, DeValue::String(_) | DeValue::Array(_)) => return self.payloads(key, value),
            (Want::Section(keys), DeValue::Table(table)) => {
                let before = self.found.len();
                let fields = self.fields(&format!("`{key}`"), &[keys], span, table);
                self.is_unsure |= self.found.len() > before;
                return Some(Value::Section(fields));
            }
            (_, other) => Err(format!("`{key}` wants {}, not {}", named(want), article(other))),
        };
        match read {
            Ok(read) => Some(read),
            Err(what) => {
                let hint = Some(format!("write {key} = {}", example(want)));
                self.wrong_with(span, what, "here", hint);
                None
            }
        }
    }

    fn words(&mut self, key: &str, known: &'static [&'static str], value: &Spanned<DeValue<'_>>) -> Option<Value> {
        let mut words = Vec::new();
        for (text, span) in self.texts(key, value)? {
            match known.iter().find(|word| **word == text) {
                Some(word) => words.push(*word),
                None => {
                    let hint = match nearest(&text, known.iter().copied()) {
                        Some(near) => format!("did you mean \"{near}\"?"),
                        None => format!("there are {}", known.join(", ")),
                    };
                    self.wrong_with(span, format!("`{key}` knows no {text:?}"), "unknown", Some(hint));
                }
            }
        }
        (!words.is_empty()).then_some(Value::Words(words))
    }

    fn handlers(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        match own::names() {
            [] => {
                let what = "this program has no handlers of its own";
                let hint = "run the program that has them; `fencepost-sim new` makes one".to_owned();
                self.wrong_with(value.span(), what, "here", Some(hint));
                None
            }
            names => self.words(key, names, value),
        }
    }

    fn payloads(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        let texts = self.texts(key, value)?;
        for (text, span) in &texts {
            if let Err(what) = payload(text, "w0-1-1") {
                let hint = format!("write {key} = {}", example(Want::Payloads));
                self.wrong_with(span.clone(), what, "here", Some(hint));
            }
        }
        Some(Value::Texts(texts))
    }

    /// Only what the checkers can walk by themselves: seconds, minutes and hours.
    fn crons(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        let texts = self.texts(key, value)?;
        for (text, span) in &texts {
            if let Err(what) = judgeable(text) {
                let hint = "write second, minute and hour, then * * *: \"0,30 */5 * * * *\"".to_owned();
                self.wrong_with(span.clone(), what, "here", Some(hint));
            }
        }
        Some(Value::Texts(texts))
    }

    fn texts(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<Vec<(String, Range<usize>)>> {
        let one = [value];
        let entries: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
            DeValue::Array(entries) => entries.iter().collect(),
            _ => one.to_vec(),
        };
        if entries.is_empty() {
            self.wrong_with(
                value.span(),
                format!("`{key}` is empty"),
                "here",
                Some("leave it out".to_owned()),
            );
            return None;
        }
        let mut texts = Vec::new();
        for entry in entries {
            match entry.get_ref() {
                DeValue::String(text) => texts.push((text.to_string(), entry.span())),
                other => self.wrong(
                    entry.span(),
                    format!("`{key}` wants texts, not {}", article(other)),
                    "here",
                ),
            }
        }
        Some(texts)
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

fn belongs_to(key: &str) -> Option<String> {
    let places = places();
    let place = places
        .iter()
        .find(|(_, keys)| keys.iter().any(|known| known.name == key));
    place.map(|(place, _)| place.clone())
}
