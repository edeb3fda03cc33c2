//! The index of the timelines of a set: each run that failed, with what failed and where its page lies.
//!
//! Owns: that page, which asks nothing of a network. Next: `timeline/mod.rs`, `summary.rs`.

use super::bundle;
use super::summary::{Outcome, Set};
use std::path::{Path, PathBuf};

/// The index's file.
const NAME: &str = "index.html";

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n\
<meta http-equiv=\"content-security-policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
<title>Fencepost simulation</title>\n\
<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}\
td,th{text-align:left;padding:.2rem 1rem .2rem 0;vertical-align:top}\
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8bf}}</style>\n";

/// The page.
pub fn page(set: &Set) -> String {
    let failed: Vec<&Outcome> = set
        .outcomes
        .iter()
        .filter(|outcome| !outcome.record.is_content())
        .collect();
    let mut page = HEAD.to_owned();
    page += &format!(
        "<h1>{} runs, {} failed</h1>\n<p>commit {}</p>\n",
        set.outcomes.len(),
        failed.len(),
        escaped(&set.commit)
    );
    for below in &set.below {
        page += &format!("<p>not covered: {}</p>\n", escaped(below));
    }
    if failed.is_empty() {
        return page;
    }
    page += "<table><tr><th>run</th><th>checker</th><th>what is wrong</th><th>scenario</th></tr>\n";
    for outcome in failed {
        let record = &outcome.record;
        let first = record.violations.first().cloned().unwrap_or_default();
        let file = escaped(&format!("{}.html", bundle::name(record)));
        page += &format!(
            "<tr><td><a href=\"{file}\">seed {}</a></td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            record.seed,
            escaped(&first.checker),
            escaped(first.what.lines().next().unwrap_or_default()),
            escaped(record.scenario_path().unwrap_or("drawn from the seed"))
        );
    }
    page += "</table>\n";
    page
}

/// Writes it beside the timelines; its place.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn write_into(folder: &Path, set: &Set) -> Result<PathBuf, String> {
    let path = folder.join(NAME);
    let told = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(told)?;
    std::fs::write(&path, page(set)).map_err(told)?;
    Ok(path)
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::sample;
    use super::*;

    #[test]
    fn each_failure_links_to_its_timeline_and_nothing_else_does() {
        let page = page(&sample());
        assert!(
            page.contains("2 runs, 1 failed") && page.contains("not covered: sick 0 of 23"),
            "{page}"
        );
        let link = "<a href=\"seed-7.html\">seed 7</a></td><td>no_double_effect</td><td>c0-3 was applied 2 times &lt;&amp;&gt;";
        assert!(page.contains(link), "{page}");
        assert_eq!(page.matches("<a ").count(), 1);
    }
}
