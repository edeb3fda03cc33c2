//! Ctrl-C while a store is copied: it ends at the next file, and what it leaves opens nowhere.
//!
//! Owns: the process and its exit code. Next: `fencepost_storage::fjall_store::backup`, whose own tests stop
//! it before each file and page.

use crate::pace::{until, until_true};
use crate::server::Place;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Command, Stdio};

/// Files beside the store's own, so that its copy takes a while.
const MORE: usize = 4_000;

fn backup(place: &Place, to: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    command.args(["store", "backup"]).args([&place.data(), to]);
    command.stderr(Stdio::piped()).stdout(Stdio::piped());
    command
}

#[test]
fn ctrl_c_ends_a_backup_at_the_next_file_with_130_and_the_next_one_begins_anew() {
    let mut place = Place::new(&[]);
    assert_eq!(place.start().stop(), Some(0));
    let (more, to) = (place.data().join("db/more"), place.path().join("copy"));
    std::fs::create_dir(&more).unwrap();
    (0..MORE).for_each(|n| std::fs::write(more.join(n.to_string()), "x").unwrap());
    let mut copying = backup(&place, &to).spawn().unwrap();
    until_true("the copy has begun", || to.join("db").exists());
    let pid = Pid::from_raw(i32::try_from(copying.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    until("the end of the backup", || copying.try_wait().unwrap());
    let ended = copying.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("Run the same command again"), "{said}");
    let copied = std::fs::read_dir(to.join("db/more")).map_or(0, Iterator::count);
    assert!(copied < MORE, "it did not go on to its end");
    std::fs::remove_dir_all(&more).unwrap();
    let again = backup(&place, &to).output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{again:?}");
}
