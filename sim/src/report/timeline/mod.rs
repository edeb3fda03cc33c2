//! The timeline: a run as one page that needs nothing but itself.
//!
//! Owns: the page (`page.html`, `style.css`, `draw.js`) with the data of `data.rs` in it. Must never: ask anything of a
//! network; the page's own policy forbids it. Next: `data.rs` (what is shown), `states.rs` (how machines fared).

mod data;
mod states;

pub use data::{Timeline, of};

use super::bundle;
use super::record::Record;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const DRAW: &str = include_str!("draw.js");

/// Where the data lies in a page, for whoever reads it back.
pub const DATA_BEGINS: &str = "<script type=\"application/json\" id=\"data\">";
/// Where it ends.
pub const DATA_ENDS: &str = "</script>";

/// The page of a run.
pub fn page(record: &Record) -> String {
    let data = serde_json::to_string(&of(record)).unwrap_or_default();
    // Nothing in a string may end the element that it lies in.
    let data = data.replace('<', "\\u003c");
    let filled = [
        ("{{title}}", title(record)),
        ("{{style}}", STYLE.to_owned()),
        ("{{draw}}", DRAW.to_owned()),
    ];
    let page = filled
        .iter()
        .fold(PAGE.to_owned(), |page, (place, text)| page.replace(place, text));
    page.replace("{{data}}", &data)
}

fn title(record: &Record) -> String {
    let verdict = record
        .checkers()
        .first()
        .map_or("passed".to_owned(), |checker| (*checker).to_owned());
    format!("seed {} · {verdict} · Fencepost simulation", record.seed)
}

/// Writes the page of a run into a folder; the file's place.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn write_into(folder: &Path, record: &Record) -> Result<PathBuf, String> {
    let path = folder.join(format!("{}.html", bundle::name(record)));
    let told = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(told)?;
    std::fs::write(&path, page(record)).map_err(told)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_asks_nothing_of_the_network_and_its_data_cannot_end_it() {
        let record = Record {
            options: "</script><script>alert(1)</script> {{style}}".to_owned(),
            ..Record::default()
        };
        let page = page(&record);
        assert!(page.contains("default-src 'none'"));
        for word in ["http://", "https://", "url(", "@import", "src="] {
            let found = page
                .replace("http://www.w3.org/2000/svg", "")
                .replace("url(#head)", "")
                .contains(word);
            assert!(!found, "{word}");
        }
        let (_, rest) = page.split_once(DATA_BEGINS).unwrap();
        let (data, _) = rest.split_once(DATA_ENDS).unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["options"], serde_json::json!(record.options));
    }
}
