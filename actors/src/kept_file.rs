//! Files that are made once and read by every later start: tokens, keys, certificates.
//!
//! Owns: that a file of such a name is whole. A process that is killed at any point leaves none of that name, or all of
//! it; never an empty one, which the next start would refuse. Must never: write over a file unasked. Next:
//! `api/token.rs`, `cli/certs.rs`.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Makes it.
///
/// # Errors
/// `AlreadyExists` if there is one of that name, which is left as it is; or it cannot be written.
pub fn make(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    refuse_known(path)?;
    let beside = beside(path);
    let mut file = open(&beside, mode)?;
    // Two starts at once: the other one has made it by the time that this is ours. A file system without locks has
    // no store either.
    file.lock()?;
    if let Err(known) = refuse_known(path) {
        let _ = fs::remove_file(&beside);
        return Err(known);
    }
    finish(&mut file, &beside, path, bytes)
}

/// Puts it in the place of the one of that name, if there is one, at one instant: a process may be reading that.
///
/// # Errors
/// It cannot be written; the one before is still there.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let beside = beside(path);
    let mut file = open(&beside, mode)?;
    finish(&mut file, &beside, path, bytes)
}

fn finish(file: &mut File, beside: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let done = fill(file, path, bytes).and_then(|()| name(beside, path));
    if done.is_err() {
        let _ = fs::remove_file(beside);
    }
    done
}

fn refuse_known(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// What a process that was killed left under this name is written over.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(".new");
    path.with_file_name(name)
}

fn open(beside: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(mode);
    // Nothing is written through a name that leads elsewhere.
    options.custom_flags(i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0));
    let file = options.open(beside)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

fn fill(file: &mut File, path: &Path, bytes: &[u8]) -> io::Result<()> {
    die_making(path);
    file.set_len(0)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn name(beside: &Path, path: &Path) -> io::Result<()> {
    fs::rename(beside, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
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
    fn what_a_killed_start_left_is_written_over_and_what_is_there_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (path, left) = (folder.path().join("key.pem"), folder.path().join("key.pem.new"));
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
        assert!(!left.exists());
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
