//! Stands between this test's process and the kernel's sync calls.
//!
//! Owns: the symbols `fsync` and `fdatasync`, which the linker prefers to the C library's, so that
//! the standard library and the engine call them here. A sync in a watched folder reads what the file
//! holds and notes it as durable; after the cut it fails. Elsewhere the kernel syncs as ever. One watch
//! at a time: a lock is held from `watch` to `take`. The only unsafe code of this test.
#![allow(unsafe_code)]

use crate::shadow::Shadow;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

static WATCH: Mutex<Option<Watch>> = Mutex::new(None);
static FREE: Condvar = Condvar::new();

struct Watch {
    shadow: Shadow,
    root: PathBuf,
    /// Syncs until the power goes out.
    left: u64,
}

fn lock() -> MutexGuard<'static, Option<Watch>> {
    WATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to watch a folder (which may not be there yet): what it holds now counts as durable.
pub fn watch(root: &Path) {
    let shadow = Shadow::of(root);
    let mut watch = lock();
    while watch.is_some() {
        watch = FREE.wait(watch).unwrap_or_else(PoisonError::into_inner);
    }
    *watch = Some(Watch {
        shadow,
        root: root.to_path_buf(),
        left: u64::MAX,
    });
}

/// The power goes out during the sync after this many.
pub fn cut_after(syncs: u64) {
    if let Some(watch) = lock().as_mut() {
        watch.left = syncs;
    }
}

/// Cuts the power now.
pub fn cut() {
    cut_after(0);
}

/// Whether the power is out.
pub fn is_cut() -> bool {
    lock().as_ref().is_some_and(|watch| watch.left == 0)
}

/// Ends the watch.
pub fn take() -> Shadow {
    let watch = lock().take().expect("a watch is taken once");
    FREE.notify_all();
    watch.shadow
}

/// Syncs, with notes; -1 with `EIO` when the power is out.
fn synced(fd: RawFd, sync: impl Fn(BorrowedFd<'_>) -> rustix::io::Result<()>) -> i32 {
    // SAFETY: the caller of fsync owns the descriptor for the length of the call.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let answer = |done: rustix::io::Result<()>| match done {
        Ok(()) => 0,
        Err(_) => fail(),
    };
    let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{fd}")) else {
        return answer(sync(file));
    };
    let mut watch = lock();
    let Some(watch) = watch.as_mut().filter(|watch| path.starts_with(&watch.root)) else {
        drop(watch);
        return answer(sync(file));
    };
    if watch.left == 0 {
        return fail();
    }
    if watch.left != u64::MAX {
        watch.left -= 1;
    }
    watch.shadow.track(file);
    let seen = watch.shadow.look(fd, &path);
    if watch.left == 0 {
        // The power fails in this very sync: nothing of it counts as durable.
        return fail();
    }
    // The kernel is not asked: what the disk holds is what is noted here.
    watch.shadow.note(seen);
    0
}

fn fail() -> i32 {
    // SAFETY: errno is this thread's own.
    unsafe { *libc_errno() = 5 };
    -1
}

unsafe extern "C" {
    #[link_name = "__errno_location"]
    fn libc_errno() -> *mut i32;
}

/// The C library's `fsync`.
#[unsafe(no_mangle)]
pub extern "C" fn fsync(fd: RawFd) -> i32 {
    synced(fd, |file| rustix::fs::fsync(file))
}

/// The C library's `fdatasync`.
#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(fd: RawFd) -> i32 {
    synced(fd, |file| rustix::fs::fdatasync(file))
}
