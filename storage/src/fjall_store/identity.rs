//! The identity file: which store this is, its format, its keyspaces.
//!
//! Owns: the format version check, made before anything in the folder is written. A few lines of
//! text with a checksum. Must never: change after creation, but for the format: it is the level of the cell's
//! rows, and is raised before the first row of a higher one is written. Next: `mark.rs`.

use super::error::StartError;
use super::folder::Folder;
use super::space::{SPACES, Space};
use fencepost_core::level;
use std::fs;
use std::io;

/// The newest format of a store's folder that this version knows, and the one it makes.
pub(super) fn format_known() -> u32 {
    u32::from(level::known().0)
}

const MAGIC: &str = "fencepost-store";

/// Which store this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Drawn when the store was made, anew by a restore.
    pub store: u128,
    /// Of the cell that the store was made for.
    pub cell: u128,
    /// Format of the folder.
    pub format: u32,
}

impl Identity {
    fn text(&self) -> String {
        let spaces: Vec<String> = SPACES
            .iter()
            .map(|space| format!("{}={}", space.name(), id_of(*space)))
            .collect();
        let body = format!(
            "{MAGIC} {}\nstore {:032x}\ncell {:032x}\nkeyspaces {}\n",
            self.format,
            self.store,
            self.cell,
            spaces.join(" ")
        );
        format!("{body}checksum {:08x}\n", crc32fast::hash(body.as_bytes()))
    }

    pub(super) fn write(&self, folder: &Folder) -> Result<(), StartError> {
        folder.replace(&folder.identity(), self.text().as_bytes())
    }

    /// `None` if there is none. A newer format is refused by its first line alone.
    pub(super) fn read(folder: &Folder) -> Result<Option<Identity>, StartError> {
        let path = folder.identity();
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StartError::io(&path)(error)),
        };
        let damaged = || StartError::Damaged {
            what: "file IDENTITY cannot be read".into(),
            acknowledged: 0,
            found: 0,
        };
        let format: u32 = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix(MAGIC)?.trim().parse().ok())
            .ok_or_else(damaged)?;
        if format > format_known() {
            return Err(StartError::Newer {
                folder: folder.path().to_path_buf(),
                found: format,
                known: format_known(),
            });
        }
        let identity = parse(&text, format).ok_or_else(damaged)?;
        if identity.text() == text {
            Ok(Some(identity))
        } else {
            Err(damaged())
        }
    }
}

fn parse(text: &str, format: u32) -> Option<Identity> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        u128::from_str_radix(line.trim(), 16).ok()
    };
    Some(Identity {
        store: field("store ")?,
        cell: field("cell ")?,
        format,
    })
}

/// The number of a keyspace's folder: the engine counts them from 1 in order of creation.
pub(super) fn id_of(space: Space) -> u64 {
    u64::from(space.number()) + 1
}
