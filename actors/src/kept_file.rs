//! Files that are made once and read by every later start: tokens, keys, certificates.
//!
//! Owns: that a file of such a name is whole. A process that is killed at any point leaves none of that name, or all of
//! it; never an empty one, which the next start would refuse. Must never: write over a file unasked. Next:
//! `api/token.rs`, `cli/certs.rs`.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::{Builder, NamedTempFile};

/// End of the name that a file has until it is whole.
const UNFINISHED: &str = ".new";

/// Makes it.
///
/// # Errors
/// `AlreadyExists` if there is one of that name, which is left as it is; or it cannot be written.
pub fn make(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    if let Err(known) = refuse_known(path) {
        // Whoever made it may have been killed before its name was durable. A folder that cannot be synced (read-only,
        // say) was not written to just now, either.
        let _ = sync(folder_of(path));
        return Err(known);
    }
    let beside = filled(path, bytes, mode)?;
    if let Err(failed) = beside.persist_noclobber(path) {
        // Another start was first, and may have cleared this one's away.
        refuse_known(path)?;
        return Err(failed.error);
    }
    sync(folder_of(path))?;
    clear_unfinished(path);
    Ok(())
}

/// Puts it in the place of the one of that name, if there is one, at one instant: a process may be reading that.
///
/// # Errors
/// It cannot be written; the one before is still there.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    filled(path, bytes, mode)?
        .persist(path)
        .map_err(|failed| failed.error)?;
    sync(folder_of(path))
}

fn refuse_known(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Start of the names of what is not whole yet.
fn unfinished(path: &Path) -> String {
    format!(".{}.", path.file_name().unwrap_or_default().display())
}

/// All of it, durable, under a name that nobody else has.
fn filled(path: &Path, bytes: &[u8], mode: u32) -> io::Result<NamedTempFile> {
    let prefix = unfinished(path);
    let mut beside = Builder::new()
        .prefix(&prefix)
        .suffix(UNFINISHED)
        .tempfile_in(folder_of(path))?;
    beside.as_file().set_permissions(Permissions::from_mode(mode))?;
    die_making(path);
    beside.write_all(bytes)?;
    beside.as_file().sync_all()?;
    Ok(beside)
}

/// What starts that were killed have left. A start that is at it now finds that this one was first.
fn clear_unfinished(path: &Path) {
    let prefix = unfinished(path);
    for entry in fs::read_dir(folder_of(path)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&prefix) && name.ends_with(UNFINISHED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(feature = "test-switches")]
fn die_making(path: &Path) {
    let name = path.file_name().unwrap_or_default().display();
    crate::process::switches::die_at(&format!("making-{name}"));
}

#[cfg(not(feature = "test-switches"))]
fn die_making(_: &Path) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_start_left_is_cleared_away_and_what_is_there_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let (path, left) = (folder.path().join("key.pem"), folder.path().join(".key.pem.x1.new"));
        for before in ["", "half of somethi", "longer than what is written now"] {
            fs::write(&left, before).unwrap();
            make(&path, b"whole", 0o600).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"whole");
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            assert!(!left.exists());
            assert_eq!(
                make(&path, b"other", 0o600).unwrap_err().kind(),
                ErrorKind::AlreadyExists
            );
            assert_eq!(fs::read(&path).unwrap(), b"whole");
            fs::remove_file(&path).unwrap();
        }
        replace(&path, b"first", 0o644).unwrap();
        replace(&path, b"second", 0o644).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    /// Whoever reads it meanwhile has one of them, whole.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "several commands at once")]
    fn of_many_that_replace_it_at_once_each_leaves_a_whole_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("key.pem");
        replace(path, "9".repeat(4_096).as_bytes(), 0o600).unwrap();
        std::thread::scope(|scope| {
            for number in 0..4 {
                let text = number.to_string().repeat(4_096);
                scope.spawn(move || (0..20).for_each(|_| replace(path, text.as_bytes(), 0o600).unwrap()));
            }
            for _ in 0..200 {
                let read = fs::read(path).unwrap();
                assert!(read.len() == 4_096 && read.iter().all(|byte| *byte == read[0]));
            }
        });
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "several starts at once")]
    fn of_many_that_make_it_at_once_one_does_and_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("token");
        let texts: Vec<String> = (0..8).map(|number| number.to_string().repeat(4_096)).collect();
        let made: Vec<&String> = std::thread::scope(|scope| {
            let makers: Vec<_> = texts
                .iter()
                .map(|text| scope.spawn(move || make(path, text.as_bytes(), 0o600).is_ok().then_some(text)))
                .collect();
            makers.into_iter().filter_map(|maker| maker.join().unwrap()).collect()
        });
        assert_eq!(made.len(), 1, "one made it");
        assert_eq!(fs::read_to_string(path).unwrap(), *made[0]);
    }
}
