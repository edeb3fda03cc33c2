//! Stands between this test's process and the kernel's sync calls.
//!
//! Owns: the symbols `fsync` and `fdatasync`, which the linker prefers to the C library's, so that
//! the standard library and the engine call them here. A sync in a watched folder reads what the file
//! holds and notes it as durable; after the cut it fails. Elsewhere the kernel syncs as ever. For disks that
//! refuse a sync and work again, also `write` and `pwrite64`: a page that a sync failed on is durable only
//! once it was written again. One watch at a time: a lock is held from `watch` to `take`. The only unsafe
//! code of this test.
#![allow(unsafe_code)]

use crate::shadow::Shadow;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

static WATCH: Mutex<Option<Watch>> = Mutex::new(None);
static FREE: Condvar = Condvar::new();
/// Whether writes matter: the disk has refused a sync.
static REFUSES: AtomicBool = AtomicBool::new(false);

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

/// From the sync after this many on the disk refuses every one, with the power on.
pub fn refuse_after(syncs: u64) {
    REFUSES.store(true, Ordering::SeqCst);
    cut_after(syncs);
}

/// The disk takes syncs again. What it refused is in the cache, and clean.
pub fn relent() {
    cut_after(u64::MAX);
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
    REFUSES.store(false, Ordering::SeqCst);
    FREE.notify_all();
    watch.shadow
}

/// Syncs, with notes; -1 with `EIO` when the power is out.
fn synced(fd: RawFd, sync: impl Fn(BorrowedFd<'_>) -> rustix::io::Result<()>) -> i32 {
    // SAFETY: the caller of fsync owns the descriptor for the length of the call.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let answer = |done: rustix::io::Result<()>| match done {
        Ok(()) => 0,
        Err(error) => fail(error.raw_os_error()),
    };
    let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{fd}")) else {
        return answer(sync(file));
    };
    let mut watch = lock();
    let Some(watch) = watch.as_mut().filter(|watch| path.starts_with(&watch.root)) else {
        drop(watch);
        return answer(sync(file));
    };
    let refuses = REFUSES.load(Ordering::SeqCst);
    if watch.left == 0 && !refuses {
        return fail(EIO);
    }
    if watch.left != u64::MAX {
        watch.left = watch.left.saturating_sub(1);
    }
    watch.shadow.track(file);
    let seen = watch.shadow.look(fd, &path);
    if watch.left == 0 {
        // The power fails in this very sync, or the disk refuses it: nothing of it counts as durable.
        if refuses {
            watch.shadow.refuse(&seen);
        }
        return fail(EIO);
    }
    watch.shadow.note(seen);
    // The kernel is not asked: what the disk holds is what is noted here.
    0
}

const EIO: i32 = 5;

fn fail(code: i32) -> i32 {
    // SAFETY: errno is this thread's own.
    unsafe { *libc_errno() = code };
    -1
}

/// Notes that these bytes of a watched file are written, now that a refused sync makes that matter.
fn written(fd: RawFd, at: impl Fn(BorrowedFd<'_>) -> Option<u64>, length: usize) {
    if !REFUSES.load(Ordering::SeqCst) {
        return;
    }
    // SAFETY: the caller of write owns the descriptor for the length of the call.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{fd}")) else {
        return;
    };
    let mut watch = lock();
    if let Some(watch) = watch.as_mut().filter(|watch| path.starts_with(&watch.root))
        && let Some(at) = at(file)
    {
        watch.shadow.written(file, at, length as u64);
    }
}

fn counted(done: rustix::io::Result<usize>) -> isize {
    match done {
        Ok(count) => isize::try_from(count).unwrap_or(isize::MAX),
        Err(error) => fail(error.raw_os_error()) as isize,
    }
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

/// Nothing may be asked for with a null pointer.
///
/// # Safety
/// As of `write(2)`.
unsafe fn readable<'a>(bytes: *const u8, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(bytes, length) }
}

/// The C library's `write`.
///
/// # Safety
/// As of `write(2)`: `bytes` is readable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: RawFd, bytes: *const u8, length: usize) -> isize {
    // SAFETY: the caller's promise.
    let (file, bytes) = unsafe { (BorrowedFd::borrow_raw(fd), readable(bytes, length)) };
    let done = rustix::io::write(file, bytes);
    if let Ok(count) = done {
        let begin = |file: BorrowedFd<'_>| rustix::fs::tell(file).ok()?.checked_sub(count as u64);
        written(fd, begin, count);
    }
    counted(done)
}

/// The C library's `pwrite64`.
///
/// # Safety
/// As of `pwrite(2)`: `bytes` is readable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(fd: RawFd, bytes: *const u8, length: usize, at: i64) -> isize {
    // SAFETY: the caller's promise.
    let (file, bytes) = unsafe { (BorrowedFd::borrow_raw(fd), readable(bytes, length)) };
    let Ok(at) = u64::try_from(at) else {
        return fail(22) as isize;
    };
    let done = rustix::io::pwrite(file, bytes, at);
    if let Ok(count) = done {
        written(fd, |_| Some(at), count);
    }
    counted(done)
}
