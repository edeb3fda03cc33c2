//! What is wrong with a scenario file: where, what, and what to write instead.
//!
//! Owns: how mistakes are shown. Must never: stop at the first. Next: `reader.rs`.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// One mistake.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// Bytes of the text.
    pub span: Range<usize>,
    /// In one sentence.
    pub what: String,
    /// At the place itself.
    pub label: String,
    /// What to do.
    pub hint: Option<String>,
}

/// Every mistake of a file, in its order, as a person reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    /// How many.
    pub count: usize,
    shown: String,
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Mistakes {
    /// Of a file that cannot be read as text at all.
    pub fn unreadable(name: &str, why: &str) -> Mistakes {
        Mistakes {
            count: 1,
            shown: format!("error: {why}\n --> {name}"),
        }
    }

    pub(super) fn new(name: &str, text: &str, mut all: Vec<Mistake>) -> Mistakes {
        all.sort_by_key(|mistake| (mistake.span.start, mistake.span.end));
        let shown = all.iter().map(|mistake| show(name, text, mistake));
        Mistakes {
            count: all.len(),
            shown: shown.collect::<Vec<_>>().join("\n\n"),
        }
    }
}

fn show(name: &str, text: &str, mistake: &Mistake) -> String {
    let annotation = AnnotationKind::Primary
        .span(within(text, &mistake.span))
        .label(mistake.label.as_str());
    let snippet = Snippet::source(text).path(name).annotation(annotation);
    let mut report: Vec<Group<'_>> = vec![Level::ERROR.primary_title(mistake.what.as_str()).element(snippet)];
    if let Some(hint) = &mistake.hint {
        report.push(Group::with_title(Level::HELP.secondary_title(hint.as_str())));
    }
    Renderer::plain().render(&report)
}

/// On one line, on whole letters, and not empty where anything stands there.
fn within(text: &str, span: &Range<usize>) -> Range<usize> {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let rest = text.get(start..).unwrap_or_default();
    let line = rest.find('\n').map_or(text.len(), |at| start + at);
    let mut end = span.end.clamp(start, line.max(start));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    match (end == start, rest.chars().next()) {
        (true, Some(first)) if first != '\n' => start..start + first.len_utf8(),
        _ => start..end.max(start),
    }
}
