//! The report of a set of runs as JUnit XML: a case for each seed.
//!
//! Owns: what is a case, its name and its message, and the escapes of XML. Next: `summary.rs`.

use super::summary::{Outcome, Set};

/// The text of the file.
pub fn text(set: &Set) -> String {
    let mut cases: Vec<String> = set.outcomes.iter().map(case).collect();
    let mut failures = set.failed().len();
    if !set.below.is_empty() {
        failures += 1;
        cases.push(of_floors(&set.below));
    }
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"0\"", cases.len());
    let time = seconds(set.wall_ms());
    [
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>".to_owned(),
        format!("<testsuites name=\"fencepost-sim\" {counts} time=\"{time}\">"),
        format!("  <testsuite name=\"fencepost-sim\" {counts} skipped=\"0\" time=\"{time}\">"),
        format!(
            "    <properties><property name=\"commit\" value=\"{}\"/></properties>",
            escaped(&set.commit)
        ),
        cases.concat(),
        "  </testsuite>\n</testsuites>\n".to_owned(),
    ]
    .join("\n")
}

fn case(outcome: &Outcome) -> String {
    let record = &outcome.record;
    let head = format!(
        "    <testcase name=\"seed {}\" classname=\"{}\" time=\"{}\">\n",
        record.seed,
        escaped(record.scenario_path().unwrap_or("drawn from the seed")),
        seconds(record.wall_ms)
    );
    let failure = record.violations.first().map(|first| {
        let lines = record
            .violations
            .iter()
            .map(|found| format!("{}: {}", found.checker, found.what));
        let mut lines: Vec<String> = lines.collect();
        lines.push(format!("repeat with: {}", record.story().command()));
        lines.extend(outcome.bundle.iter().map(|place| format!("bundle: {place}")));
        let line = first.what.lines().next().unwrap_or_default();
        let message = format!("seed {}: {}: {line}", record.seed, first.checker);
        failure(&message, &first.checker, &lines.join("\n"))
    });
    let out = format!("      <system-out>{}</system-out>\n", escaped(&record.options));
    format!("{head}{}{out}    </testcase>\n", failure.unwrap_or_default())
}

fn of_floors(below: &[String]) -> String {
    let failure = failure("not enough felt or seen", "coverage", &below.join("\n"));
    format!(
        "    <testcase name=\"floors of coverage\" classname=\"the whole set\" time=\"0.000\">\n{failure}    </testcase>\n"
    )
}

fn failure(message: &str, kind: &str, text: &str) -> String {
    let (message, kind, text) = (escaped(message), escaped(kind), escaped(text));
    format!("      <failure message=\"{message}\" type=\"{kind}\">{text}</failure>\n")
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

/// As text and as the value of an attribute; what XML cannot hold at all becomes the sign for that.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::sample;
    use super::*;

    #[test]
    fn a_failing_seed_is_a_failed_case_with_its_command() {
        let text = text(&sample());
        for part in [
            r#"<testsuite name="fencepost-sim" tests="3" failures="2" errors="0" skipped="0" time="0.100">"#,
            r#"<property name="commit" value="abc"/>"#,
            r#"<testcase name="seed 6" classname="drawn from the seed" time="0.050">"#,
            "message=\"seed 7: no_double_effect: c0-3 was applied 2 times &lt;&amp;&gt; \u{fffd}\" type=\"no_double_effect\"",
            "repeat with: cargo sim run --seed 7",
            "bundle: seed-7.json",
            r#"type="coverage">sick 0 of 23</failure>"#,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
