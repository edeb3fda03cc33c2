//! Which node `doctor` looks at: what flags, variables and the file of settings say of it.
//!
//! Owns: the layers (a flag wins over a variable, a variable over the file), and which part of a cell the node is. Must
//! never: look at the node itself, or stop at a mistake in the file: all that can be read counts. Next: `doctor.rs`.

use super::client::DATA_DEFAULT;
use super::doctor::{Finding, fail, ok};
use super::failure::Failure;
use super::output::counted;
use super::settings::FileArgs;
use crate::api::token::TOKEN_FILE;
use crate::config::Setting;
use crate::config::file::{Said, Source};
use crate::config::table::{API_LISTEN, DATA, MESH_CA, MESH_CERT, MESH_KEY, MESH_LISTEN, MESH_STORE_AT, ROLES};
use crate::mesh::tls::TlsFiles;
use crate::process::roles::SECRET_FILE;
use clap::Args;
use std::path::{Path, PathBuf};

/// The node.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// Folder of the store and the token; the file's, or ./fencepost-data, by default.
    #[arg(long, value_name = "FOLDER", env = DATA.env, hide_env_values = true)]
    data: Option<PathBuf>,
    /// What the node does, as serve is told it; the file's by default. A node without an API is judged without one.
    #[arg(long, value_name = "ROLES", env = ROLES.env, hide_env_values = true, value_parser = read_roles)]
    roles: Option<String>,
    /// Where a node with the store alone listens for others; the file's by default.
    #[arg(long, value_name = "ADDRESS", env = MESH_LISTEN.env, hide_env_values = true)]
    mesh_listen: Option<String>,
    /// Where a node without the store role finds it; the file's by default.
    #[arg(long, value_name = "HOST:PORT", env = MESH_STORE_AT.env, hide_env_values = true)]
    store_at: Option<String>,
    /// Certificate of the cell's CA; with the other two, or the file's, this node's certificate is checked.
    #[arg(long, value_name = "FILE", env = MESH_CA.env, hide_env_values = true)]
    mesh_ca: Option<PathBuf>,
    /// Certificate of this node.
    #[arg(long, value_name = "FILE", env = MESH_CERT.env, hide_env_values = true)]
    mesh_cert: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE", env = MESH_KEY.env, hide_env_values = true)]
    mesh_key: Option<PathBuf>,
    #[command(flatten)]
    file: FileArgs,
}

/// Which part of a cell a node is, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It has an API, and its token in a folder.
    WithApi,
    /// The store alone.
    Store,
    /// It only works: no folder, no API.
    Worker,
}

/// What is known of it beforehand.
pub(super) struct Told {
    pub(super) data: PathBuf,
    pub(super) part: Part,
    /// Where its API listens, if it was told.
    pub(super) api: Option<String>,
    pub(super) mesh_listen: Option<String>,
    pub(super) store_at: Option<String>,
    pub(super) certificate: Option<TlsFiles>,
    /// What the file of settings is worth.
    pub(super) settings: Option<Finding>,
}

impl NodeArgs {
    /// Reads the file and lays the rest over it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn told(&self) -> Result<Told, Failure> {
        let (said, settings) = match &self.file.config {
            Some(path) => read(path)?,
            None => (Said::default(), None),
        };
        let text = |setting: &Setting| said.values.get(setting.path).map(|(value, _)| value.to_string());
        let path = |given: &Option<PathBuf>, setting| given.clone().or_else(|| text(setting).map(PathBuf::from));
        let data = path(&self.data, &DATA).unwrap_or_else(|| PathBuf::from(DATA_DEFAULT));
        let files = (
            path(&self.mesh_ca, &MESH_CA),
            path(&self.mesh_cert, &MESH_CERT),
            path(&self.mesh_key, &MESH_KEY),
        );
        let certificate = match files {
            (Some(ca), Some(cert), Some(key)) => Some(TlsFiles { ca, cert, key }),
            _ => None,
        };
        let roles = self.roles.clone().or_else(|| text(&ROLES));
        Ok(Told {
            part: part_of(roles.as_deref(), &data),
            data,
            api: std::env::var(API_LISTEN.env).ok().or_else(|| text(&API_LISTEN)),
            mesh_listen: self.mesh_listen.clone().or_else(|| text(&MESH_LISTEN)),
            store_at: self.store_at.clone().or_else(|| text(&MESH_STORE_AT)),
            certificate,
            settings,
        })
    }
}

fn read_roles(text: &str) -> Result<String, String> {
    let read = ROLES.kind.parse(text).map(|roles| roles.to_string());
    read.map_err(|wrong| wrong.detail.trim_end_matches('.').to_owned())
}

fn read(path: &Path) -> Result<(Said, Option<Finding>), Failure> {
    let said = Source::read(path)
        .map_err(|error| Failure::settings(path, &error))?
        .parse();
    let finding = match said.mistakes.len() {
        0 => ok("settings", path.display().to_string()),
        count => fail(
            "settings",
            format!("{} in {}", counted(count as u64, "mistake"), path.display()),
            "see them with 'fencepost config check'",
        ),
    };
    Ok((said, Some(finding)))
}

/// By its roles; where nobody says, a folder with a secret for nodes and no token is that of a store alone.
fn part_of(roles: Option<&str>, data: &Path) -> Part {
    match roles.map(str::trim) {
        Some("store") => Part::Store,
        Some("worker") => Part::Worker,
        None if data.join(SECRET_FILE).exists() && !data.join(TOKEN_FILE).exists() => Part::Store,
        Some(_) | None => Part::WithApi,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_alone_is_known_by_its_roles_or_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let part = |roles: Option<&str>| part_of(roles, folder.path());
        assert_eq!([part(None), part(Some("all"))], [Part::WithApi; 2]);
        assert_eq!([part(Some("store")), part(Some("worker"))], [Part::Store, Part::Worker]);
        std::fs::write(folder.path().join(SECRET_FILE), "").unwrap();
        assert_eq!([part(None), part(Some("gateway"))], [Part::Store, Part::WithApi]);
        std::fs::write(folder.path().join(TOKEN_FILE), "").unwrap();
        assert_eq!(part(None), Part::WithApi, "a node that keeps a copy of the secret");
    }
}
