//! A small file system of its own: a tmpfs in a mount namespace, which needs no rights where the kernel allows
//! user namespaces, and root's where it does not.
//!
//! Owns: the namespace, held by a process that ends with the test, and the ballast that fills it. Servers enter
//! it; the test looks in from outside. Must never: hide that it could not be made. Next: `full_disk.rs`.

use crate::server::Place;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub const MIB: u64 = 1 << 20;
/// Leaves room for the reserve, and for more than the least that creation needs.
pub const SIZE_MIB: u64 = 192;

/// How the namespace is made and entered.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    name: &'static str,
    unshare: &'static [&'static str],
    nsenter: &'static [&'static str],
}

/// In the order that they are tried: many machines forbid the first to those who are not root, many the second to all
/// others.
pub const WAYS: [Way; 2] = [
    Way {
        name: "in a user namespace",
        unshare: &["--user", "--map-root-user", "--mount"],
        nsenter: &["--preserve-credentials", "--user", "--mount"],
    },
    Way {
        name: "as root",
        unshare: &["--mount", "--propagation", "private"],
        nsenter: &["--mount"],
    },
];

pub struct SmallDisk {
    holder: Child,
    outside: PathBuf,
}

impl SmallDisk {
    /// A place on a disk of its own, or why there cannot be one here.
    pub fn make() -> Result<(Place, SmallDisk), String> {
        let mut why = Vec::new();
        for way in WAYS {
            match SmallDisk::make_so(way) {
                Ok(made) => return Ok(made),
                Err(reason) => why.push(reason),
            }
        }
        Err(why.join("; "))
    }

    /// The same, in this way or not at all.
    pub fn make_so(way: Way) -> Result<(Place, SmallDisk), String> {
        let place = Place::new(&[]);
        let at = place.path().join("disk");
        std::fs::create_dir(&at).unwrap();
        let disk = SmallDisk::mount(way, &at)?;
        let pid = disk.holder.id().to_string();
        let enter = [&["nsenter"][..], way.nsenter, &["--target", pid.as_str(), "--"]].concat();
        let (inside, outside) = (at.join("data"), disk.outside.join("data"));
        Ok((place.started_by(&enter).with_data(inside, outside), disk))
    }

    fn mount(way: Way, at: &Path) -> Result<SmallDisk, String> {
        let script = format!("mount -t tmpfs -o size={SIZE_MIB}m,mode=0700 none \"$0\" && echo mounted && exec cat");
        let mut holder = Command::new("unshare")
            .args(way.unshare)
            .args(["sh", "-c", &script])
            .arg(at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("unshare: {error}"))?;
        let mut line = String::new();
        let _ = BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line);
        let outside = PathBuf::from(format!("/proc/{}/root{}", holder.id(), at.display()));
        if line == "mounted\n" && std::fs::read_dir(&outside).is_ok() {
            return Ok(SmallDisk { holder, outside });
        }
        let mut why = String::new();
        drop(holder.stdin.take());
        let _ = holder.stderr.take().unwrap().read_to_string(&mut why);
        let _ = holder.wait();
        Err(format!("no tmpfs {}: {}", way.name, why.trim().replace('\n', ", ")))
    }

    /// Bytes that are left.
    pub fn free(&self) -> u64 {
        let facts = rustix::fs::statvfs(&self.outside).unwrap();
        facts.f_bavail * facts.f_frsize
    }

    /// Takes room until this much is left.
    pub fn fill(&self, leave: u64) {
        let ballast = File::options().append(true).create(true).open(self.ballast()).unwrap();
        let (held, more) = (ballast.metadata().unwrap().len(), self.free().saturating_sub(leave));
        if more > 0 {
            rustix::fs::fallocate(&ballast, rustix::fs::FallocateFlags::empty(), held, more).unwrap();
        }
    }

    /// Gives all of it back.
    pub fn empty(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.outside.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Room in which nothing new is made, and what is there can end.
pub const FULL: u64 = MIB;
