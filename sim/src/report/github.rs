//! The failures of a set of runs as annotations of a GitHub workflow.
//!
//! Owns: that format, with its escapes. Next: `summary.rs`.

use super::summary::Set;

/// Failures that are annotated: GitHub shows ten of a step.
const SHOWN_MAX: usize = 9;

/// The lines to print.
pub fn lines(set: &Set) -> Vec<String> {
    let failed = set.outcomes.iter().filter(|outcome| !outcome.record.is_content());
    let mut lines: Vec<String> = failed
        .take(SHOWN_MAX)
        .map(|outcome| {
            let record = &outcome.record;
            let first = record.violations.first().cloned().unwrap_or_default();
            let mut text = vec![first.what, format!("repeat with: {}", record.story().command())];
            text.extend(outcome.bundle.iter().map(|place| format!("bundle: {place}")));
            let story = record
                .scenario_path()
                .map(|path| format!("{path} "))
                .unwrap_or_default();
            let title = format!("{story}seed {}: {}", record.seed, first.checker);
            format!("::error title={}::{}", property(&title), data(&text.join("\n")))
        })
        .collect();
    if !set.below.is_empty() {
        lines.push(format!("::error title=coverage::{}", data(&set.below.join(", "))));
    }
    lines
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::sample;
    use super::*;

    #[test]
    fn a_failure_is_one_line() {
        let lines = lines(&sample());
        assert_eq!(lines.len(), 2);
        let first = lines.first().unwrap();
        assert!(first.starts_with("::error title=seed 7%3A no_double_effect::c0-3 was applied 2 times"));
        assert!(
            first.ends_with("%0Arepeat with: cargo sim run --seed 7%0Abundle: seed-7.json"),
            "{first}"
        );
    }
}
