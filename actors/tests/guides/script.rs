//! Reads a guide: its fenced blocks in order, files to write and commands to run.
//!
//! Owns: the notation, which the head of `main.rs` explains. Must never: run anything.
//! Next: `run` does what the blocks say.

/// One step of a guide.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// A file to write: name and content.
    File { name: String, content: String },
    /// A command to run.
    Command(Shown),
}

/// A command and what the guide shows of its output.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// Line in the guide, for messages.
    pub line: usize,
    /// What is typed after `$ `.
    pub typed: String,
    /// Lines below it.
    pub output: Vec<String>,
    /// Runs until the guide ends (`&` at the end of the line).
    pub background: bool,
    /// Is repeated until the output is as shown (block marked `until`).
    pub until: bool,
}

/// Blocks opened by ```` ```file:NAME ```` and ```` ```console ````; others are for the reader only.
pub fn parse(guide: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = guide.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| *line != "```").collect();
        if let Some(name) = info.strip_prefix("file:") {
            let content = block.iter().map(|(_, line)| format!("{line}\n")).collect();
            steps.push(Step::File {
                name: name.to_owned(),
                content,
            });
        } else if info.starts_with("console") {
            steps.extend(commands(&block, info.ends_with("until")).into_iter().map(Step::Command));
        }
    }
    steps
}

fn commands(block: &[(usize, &str)], until: bool) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for (index, line) in block {
        if let Some(typed) = line.strip_prefix("$ ") {
            let background = typed.ends_with(" &");
            let typed = typed.trim_end_matches(" &").to_owned();
            shown.push(Shown {
                line: index + 1,
                typed,
                output: Vec::new(),
                background,
                until,
            });
        } else if let Some(last) = shown.last_mut() {
            last.output.push((*line).to_owned());
        }
    }
    shown
}

/// True if the output is as shown: `…` stands for anything in a line, a line `…` for any lines.
pub fn matches(shown: &[String], output: &[&str]) -> bool {
    match shown.split_first() {
        None => output.is_empty(),
        Some((first, rest)) if first == "…" => (0..=output.len()).any(|skip| matches(rest, &output[skip..])),
        Some((first, rest)) => output
            .split_first()
            .is_some_and(|(line, more)| line_matches(first, line) && matches(rest, more)),
    }
}

/// Spaces in a row count as one, so that widths of columns may differ.
fn line_matches(shown: &str, line: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (shown, line) = (plain(shown), plain(line));
    let parts: Vec<&str> = shown.split('…').map(str::trim).collect();
    let Some((first, rest)) = parts.split_first() else {
        return false;
    };
    let Some(mut left) = line.strip_prefix(first) else {
        return false;
    };
    for (index, part) in rest.iter().enumerate() {
        let last = index + 1 == rest.len();
        if last {
            return left.ends_with(part);
        }
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.is_empty()
}

#[test]
fn blocks_become_steps() {
    let guide = "text\n```file:a.txt\none\ntwo\n```\n```json\n{}\n```\n```console until\n$ a b &\n$ c\nout …\n```\n";
    let steps = parse(guide);
    assert_eq!(steps.len(), 3);
    assert_eq!(
        steps[0],
        Step::File {
            name: "a.txt".into(),
            content: "one\ntwo\n".into()
        }
    );
    let Step::Command(last) = &steps[2] else {
        panic!("{steps:?}")
    };
    assert_eq!((last.line, last.typed.as_str(), last.until), (11, "c", true));
    assert_eq!(last.output, ["out …"]);
}

#[test]
fn output_is_compared_with_what_is_shown() {
    let shown = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
    assert!(matches(&shown(&["a  b"]), &["a b"]));
    assert!(matches(&shown(&["fired … late … ms"]), &["fired 3 times, late 4 ms"]));
    assert!(matches(&shown(&["…", "end"]), &["a", "b", "end"]));
    assert!(!matches(&shown(&["…", "end"]), &["a", "b"]));
    assert!(!matches(&shown(&["fired …"]), &["missed x"]));
    assert!(!matches(&shown(&[]), &["more"]));
}
