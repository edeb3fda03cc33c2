//! The bearer token: made at first start, kept in a file that only its owner reads.
//!
//! Owns: the file and the comparison. The server keeps a digest only; comparing takes the same time whatever
//! differs. Must never: print a token or write it anywhere else. Next: `guard.rs` (checks it), `cli/`
//! (reads the file).

use crate::problem::Problem;
use fencepost_core::ids::digest;
use subtle::ConstantTimeEq;

/// What the server keeps of a token.
#[derive(Clone)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// The digest of a token.
    pub fn of(token: &str) -> TokenDigest {
        TokenDigest(digest("api token", &[token.as_bytes()]))
    }

    /// Whether `token` is the one.
    pub fn fits(&self, token: &str) -> bool {
        let given = TokenDigest::of(token);
        bool::from(given.0.ct_eq(&self.0))
    }

    /// Checks the value of an `Authorization` header.
    ///
    /// # Errors
    /// 401 when it is missing, of another scheme, or wrong.
    pub fn check(&self, header: Option<&[u8]>) -> Result<(), Problem> {
        let hint = "Send \"Authorization: Bearer …\" with the token from the file \"token\" in the data folder.";
        let Some(header) = header else {
            let detail = "This call needs a token.";
            return Err(Problem::http(401, "token_missing", detail, hint));
        };
        let token = std::str::from_utf8(header).ok().and_then(|text| {
            let (scheme, token) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        match token {
            Some(token) if self.fits(token) => Ok(()),
            _ => Err(Problem::http(
                401,
                "token_wrong",
                "The token is not the one of this server.",
                hint,
            )),
        }
    }
}

impl std::fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenDigest")
    }
}

/// A token made of 256 bits of chance.
pub fn token_text(chance: [u128; 2]) -> String {
    use base64::Engine as _;
    let bytes: Vec<u8> = chance.iter().flat_map(|part| part.to_be_bytes()).collect();
    format!("fp_{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

/// The file in the data folder.
pub const TOKEN_FILE: &str = "token";

#[cfg(not(madsim))]
pub use file::{Kept, read_kept, read_or_make, read_or_make_token, read_token};

#[cfg(not(madsim))]
mod file {
    use super::{TOKEN_FILE, token_text};
    use crate::kept_file;
    use crate::problem::plain;
    use fencepost_core::limits::{SECRET_BYTES_MIN, TOKEN_FILE_BYTES_MAX};
    use fencepost_core::refusal::{Refusal, RefusalKind};
    use std::fs::{File, FileType};
    use std::io::{ErrorKind, Read};
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    use std::path::Path;

    /// What is kept in a file of its own that only its owner reads.
    #[derive(Debug)]
    pub struct Kept {
        what: &'static str,
        codes: [&'static str; 4],
        where_from: &'static str,
    }

    /// The API's token.
    const TOKEN: Kept = Kept {
        what: "token",
        codes: [
            "token_unreadable",
            "token_file_mode",
            "token_invalid",
            "token_unwritable",
        ],
        where_from: "Start the server once, or name the file with --token-file; put the token of 'dev --ephemeral' into \
                     FENCEPOST_TOKEN.",
    };

    impl Kept {
        /// What the nodes of a cell share.
        pub const MESH_SECRET: Kept = Kept {
            what: "mesh secret",
            codes: [
                "mesh_secret_unreadable",
                "mesh_secret_mode",
                "mesh_secret_invalid",
                "mesh_secret_unwritable",
            ],
            where_from: "Copy mesh-secret from the store's folder to it, or name that file with --mesh-secret.",
        };

        /// What grants of workers over HTTP are sealed with.
        pub const GRANT_KEY: Kept = Kept {
            what: "key of grants",
            codes: [
                "grant_key_unreadable",
                "grant_key_mode",
                "grant_key_invalid",
                "grant_key_unwritable",
            ],
            where_from: "Delete it: the server makes a new one when it starts, and then refuses reports of attempts that \
                         it handed out before.",
        };

        fn refuse(&self, code: usize, detail: String, hint: impl Into<String>) -> Refusal {
            let code = self.codes.get(code).copied().unwrap_or("token_unreadable");
            Refusal::new(RefusalKind::Forbidden, code, detail, hint)
        }
    }

    const UNREADABLE: usize = 0;
    const MODE: usize = 1;
    const INVALID: usize = 2;
    const UNWRITABLE: usize = 3;

    /// Reads the token in a file; a file that others may read is refused.
    ///
    /// # Errors
    /// It cannot be read, others may read it, or it holds no token.
    pub fn read_token(path: &Path) -> Result<String, Refusal> {
        read_kept(&TOKEN, path)
    }

    /// The same for what is kept likewise.
    ///
    /// # Errors
    /// As `read_token`.
    pub fn read_kept(kept: &Kept, path: &Path) -> Result<String, Refusal> {
        let (what, shown) = (kept.what, path.display());
        let failed = |error: std::io::Error| {
            let detail = format!("The {what} file {shown} cannot be read: {}.", plain(&error));
            kept.refuse(UNREADABLE, detail, kept.where_from)
        };
        // Before it is opened, for a device or a socket may do something when it is.
        let meta = std::fs::metadata(path).map_err(failed)?;
        if let Some(other) = what_else(meta.file_type()) {
            let detail = format!("{shown} is {other}, not the {what} file.");
            return Err(kept.refuse(UNREADABLE, detail, kept.where_from));
        }
        if meta.mode() & 0o077 != 0 {
            let detail = format!("The {what} file {shown} can be read by others.");
            return Err(kept.refuse(MODE, detail, format!("If it is that file, run: chmod 600 {shown}")));
        }
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(failed)?;
        file.take(TOKEN_FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        token_in(&bytes).map_err(|why| {
            let detail = format!("The {what} file {shown} holds no {what}: {why}.");
            let hint = format!(
                "Name another file; or, if it is the server's own, delete it: the server makes a new {what} when it \
                 starts."
            );
            kept.refuse(INVALID, detail, hint)
        })
    }

    /// What a file is that is none; a pipe may hold what another program gives out.
    fn what_else(kind: FileType) -> Option<&'static str> {
        match kind {
            kind if kind.is_file() || kind.is_fifo() => None,
            kind if kind.is_dir() => Some("a folder"),
            kind if kind.is_socket() => Some("a socket"),
            _ => Some("a device"),
        }
    }

    fn token_in(bytes: &[u8]) -> Result<String, &'static str> {
        let token = bytes.trim_ascii();
        match token {
            [] => Err("it is empty"),
            _ if bytes.len() as u64 > TOKEN_FILE_BYTES_MAX => Err("it is too large"),
            token if !token.iter().all(u8::is_ascii_graphic) => Err("it is not one line of letters, digits and signs"),
            token if token.len() < SECRET_BYTES_MIN => Err("it is too short"),
            token => Ok(String::from_utf8_lossy(token).into_owned()),
        }
    }

    /// Reads the token of a data folder, or makes it at the first start.
    ///
    /// # Errors
    /// As `read_token`, or the file cannot be made.
    pub fn read_or_make_token(folder: &Path, chance: [u128; 2]) -> Result<String, Refusal> {
        read_or_make(&TOKEN, &folder.join(TOKEN_FILE), chance)
    }

    /// The same for what is kept likewise, in this file.
    ///
    /// # Errors
    /// As `read_token`, or the file cannot be made.
    pub fn read_or_make(kept: &Kept, path: &Path, chance: [u128; 2]) -> Result<String, Refusal> {
        let (what, shown) = (kept.what, path.display());
        let token = token_text(chance);
        match kept_file::make(path, format!("{token}\n").as_bytes(), 0o600) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return read_kept(kept, path),
            Err(error) => {
                let detail = format!("The {what} file {shown} cannot be made: {}.", plain(&error));
                let hint = "Check the rights of the data folder and the disk, then start again.";
                return Err(kept.refuse(UNWRITABLE, detail, hint));
            }
        }
        Ok(token)
    }
}

#[cfg(all(test, not(madsim)))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let token = read_or_make_token(folder.path(), [1, 2]).unwrap();
        let path = folder.path().join(TOKEN_FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read_or_make_token(folder.path(), [3, 4]).unwrap(), token);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(read_token(&path).unwrap_err().code, "token_file_mode");
    }

    #[test]
    fn a_header_is_checked_by_scheme_and_token() {
        let digest = TokenDigest::of("fp_0123456789abcdef");
        assert!(digest.check(Some(b"Bearer fp_0123456789abcdef")).is_ok());
        assert!(digest.check(Some(b"bearer fp_0123456789abcdef")).is_ok());
        let code = |header: Option<&[u8]>| String::from(digest.check(header).unwrap_err().code);
        assert_eq!(code(None), "token_missing");
        for wrong in [
            "Bearer fp_0123456789abcdeg",
            "Basic fp_0123456789abcdef",
            "fp_0123456789abcdef",
            "Bearer",
            "\u{e9}",
        ] {
            assert_eq!(code(Some(wrong.as_bytes())), "token_wrong", "{wrong}");
        }
        assert_eq!(format!("{digest:?}"), "TokenDigest");
    }
}
