//! Guides that are tests: what they show is typed into a shell, and the answer must be as shown.
//!
//! Owns: the list of such guides. Must never: know more than the reader of the guide. In a guide,
//! ```` ```file:NAME ```` writes a file, ```` ```console ```` types each line after `$ ` (in the background
//! when it ends in `&`) and compares the lines below it, where `…` stands for anything; a block marked
//! `console until` is repeated until it answers as shown. Next: `script` reads, `run` does.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod run;
mod script;

use std::net::TcpListener;

/// An address that nobody listens on at the moment.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn a_crontab_is_imported_and_watched_as_the_guide_shows() {
    let address = free_address();
    run::run_guide(
        "import-crontab.md",
        &[
            ("FENCEPOST_LISTEN", address.clone()),
            ("FENCEPOST_SERVER", format!("http://{address}")),
        ],
    );
}

/// Ports that nobody listens on at the moment, all different.
fn free_ports(count: usize) -> Vec<String> {
    let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
    let held: Vec<_> = std::iter::repeat_with(bind).take(count).collect();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port().to_string();
    held.iter().map(port).collect()
}

#[test]
fn a_cell_of_three_nodes_outlives_one_of_them_as_the_guide_shows() {
    let shown = ["4490", "4481", "4482", "4483", "4484"];
    let free: Vec<_> = shown.into_iter().zip(free_ports(shown.len())).collect();
    run::run_guide_on("three-nodes.md", &[], &free);
}

#[test]
fn certificates_are_made_and_used_as_the_guide_says() {
    run::run_guide("certificates.md", &[]);
}

#[test]
fn settings_are_checked_and_shown_as_the_guide_says() {
    run::run_guide("config.md", &[]);
}
