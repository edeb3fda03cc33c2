//! What the disk would hold if the power failed now: synced contents under synced names.
//!
//! Owns: the contents of files as of their last sync (by open file, so that a rename or an unlink
//! changes nothing), the names in each folder as of that folder's last sync, and the rebuilding of a
//! folder from them. Must never: count a byte as durable that was written after the sync began.
//! Next: `interposer.rs`.

use crate::load::Draw;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

const PAGE: usize = 4_096;
/// What a disk writes as a whole.
const SECTOR: usize = 512;

/// Pages that are not all zero, and the length.
#[derive(Clone, Default)]
pub struct Content {
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
    length: u64,
}

/// A file: held open, so that its number is not given to another.
struct Tracked {
    file: File,
    durable: Content,
    /// Pages that a refused sync left clean: syncs pass them over until they are written again.
    clean: BTreeSet<u64>,
}

type Inode = u64;

/// Names of one folder; `None` for a folder within.
type Names = BTreeMap<OsString, Option<Inode>>;

/// The durable state of a folder tree.
pub struct Shadow {
    root: PathBuf,
    files: BTreeMap<Inode, Tracked>,
    folders: BTreeMap<PathBuf, Names>,
}

/// How a folder is rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuild {
    /// Only what was synced.
    SyncedOnly,
    /// Of what was not synced, single sectors, lengths and names may have reached the disk too.
    Torn,
}

/// What a sync call saw before it synced.
pub enum Seen {
    File(Inode, Content),
    Folder(PathBuf, Vec<(OsString, Option<Inode>)>),
}

/// A file outside the promise: its bytes are a reserve, never read.
fn is_of_no_matter(name: &Path) -> bool {
    name.file_name().is_some_and(|name| name == "RESERVE")
}

impl Content {
    fn read(file: &File) -> Content {
        let length = file.metadata().unwrap().len();
        let mut content = Content {
            pages: BTreeMap::new(),
            length,
        };
        let mut at = 0;
        // Holes are skipped: journals are 64 MiB of them.
        while let Ok(begin) = rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
            let end = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(begin)).unwrap_or(length);
            let first = begin / PAGE as u64;
            for number in first..end.div_ceil(PAGE as u64) {
                content.read_page(file, number);
            }
            at = end;
            if at >= length {
                break;
            }
        }
        content
    }

    fn read_page(&mut self, file: &File, number: u64) {
        let mut page = Box::new([0; PAGE]);
        let mut filled = 0;
        while filled < PAGE {
            let at = number * PAGE as u64 + filled as u64;
            match file.read_at(&mut page[filled..], at).unwrap() {
                0 => break,
                count => filled += count,
            }
        }
        if page.iter().any(|byte| *byte != 0) {
            self.pages.insert(number, page);
        }
    }

    fn write(&self, path: &Path) {
        let file = File::create(path).unwrap();
        for (number, page) in &self.pages {
            let at = number * PAGE as u64;
            let left = self.length.saturating_sub(at).min(PAGE as u64);
            file.write_all_at(&page[..usize::try_from(left).unwrap()], at).unwrap();
        }
        file.set_len(self.length).unwrap();
    }

    /// Some sectors of `now` over `self`, as a disk may have written them of its own accord.
    fn torn(&self, now: &Content, draw: &mut Draw) -> Content {
        let mut torn = self.clone();
        if draw.below(4) > 0 {
            torn.length = now.length;
        }
        // Either whole pages are missing, or of so many sectors one.
        let (by_sector, one_of) = (
            draw.below(4) > 0,
            [2, 8, 64, 64][usize::try_from(draw.below(4)).unwrap()],
        );
        let zeros = Box::new([0; PAGE]);
        let numbers: Vec<u64> = self.pages.keys().chain(now.pages.keys()).copied().collect();
        for number in numbers {
            let fresh = now.pages.get(&number).unwrap_or(&zeros);
            let page = torn.pages.entry(number).or_insert_with(|| zeros.clone());
            if page == fresh {
                continue;
            }
            let whole = draw.below(2) == 0;
            for (old, new) in page.chunks_mut(SECTOR).zip(fresh.chunks(SECTOR)) {
                let is_written = if by_sector { draw.below(one_of) > 0 } else { whole };
                if is_written {
                    old.copy_from_slice(new);
                }
            }
        }
        torn
    }
}

impl Tracked {
    fn new(file: File, durable: Content) -> Tracked {
        Tracked {
            file,
            durable,
            clean: BTreeSet::new(),
        }
    }

    fn synced(&mut self, mut content: Content) {
        for page in &self.clean {
            match self.durable.pages.get(page) {
                Some(old) => content.pages.insert(*page, old.clone()),
                None => content.pages.remove(page),
            };
        }
        self.durable = content;
    }

    fn refuse(&mut self, content: &Content) {
        let differs = |page: &&u64| self.durable.pages.get(page) != content.pages.get(page);
        let pages = content.pages.keys().chain(self.durable.pages.keys());
        let clean: Vec<u64> = pages.filter(differs).copied().collect();
        self.clean.extend(clean);
    }
}

impl Shadow {
    /// Everything that is there counts as durable.
    pub fn of(root: &Path) -> Shadow {
        let mut shadow = Shadow {
            root: root.to_path_buf(),
            files: BTreeMap::new(),
            folders: BTreeMap::new(),
        };
        if root.is_dir() {
            shadow.take_in(root);
        }
        shadow
    }

    fn take_in(&mut self, folder: &Path) {
        let names = list(folder);
        for (name, inode) in &names {
            let path = folder.join(name);
            match inode {
                None => self.take_in(&path),
                Some(inode) => {
                    let file = File::open(&path).unwrap();
                    let durable = Content::read(&file);
                    self.files.insert(*inode, Tracked::new(file, durable));
                }
            }
        }
        self.folders.insert(folder.to_path_buf(), names.into_iter().collect());
    }

    /// Reads what a sync of this descriptor will make durable.
    pub fn look(&self, fd: RawFd, path: &Path) -> Seen {
        if path.is_dir() {
            return Seen::Folder(path.to_path_buf(), list(path));
        }
        // Opened anew: the engine's descriptor may be for writing alone.
        let file = File::open(format!("/proc/self/fd/{fd}")).unwrap();
        Seen::File(file.metadata().unwrap().ino(), Content::read(&file))
    }

    /// Notes it as durable.
    pub fn note(&mut self, seen: Seen) {
        match seen {
            Seen::File(inode, content) => {
                if let Some(tracked) = self.files.get_mut(&inode) {
                    tracked.synced(content);
                }
            }
            Seen::Folder(path, names) => self.note_names(path, names),
        }
    }

    /// A sync that saw this was refused: the cache counts as written all the same.
    pub fn refuse(&mut self, seen: &Seen) {
        if let Seen::File(inode, content) = seen
            && let Some(tracked) = self.files.get_mut(inode)
        {
            tracked.refuse(content);
        }
    }

    /// Bytes of a file were written: its pages there are for the next sync to write.
    pub fn written(&mut self, fd: BorrowedFd<'_>, at: u64, length: u64) {
        let Ok(facts) = rustix::fs::fstat(fd) else { return };
        if let Some(tracked) = self.files.get_mut(&facts.st_ino)
            && length > 0
        {
            let pages = at / PAGE as u64..=(at + length - 1) / PAGE as u64;
            tracked.clean.retain(|page| !pages.contains(page));
        }
    }

    /// Tracks an open file from its first sync on.
    pub fn track(&mut self, fd: BorrowedFd<'_>) {
        use std::os::fd::AsRawFd;
        let file = File::open(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap();
        if file.metadata().unwrap().is_dir() {
            return;
        }
        let inode = file.metadata().unwrap().ino();
        let fresh = || Tracked::new(file, Content::default());
        self.files.entry(inode).or_insert_with(fresh);
    }

    fn note_names(&mut self, folder: PathBuf, names: Vec<(OsString, Option<Inode>)>) {
        for (name, inode) in &names {
            let path = folder.join(name);
            match inode {
                // The name is durable, the content is not, until the file itself is synced.
                Some(inode) if !self.files.contains_key(inode) => {
                    if let Ok(file) = File::open(&path) {
                        let durable = Content::default();
                        self.files.insert(*inode, Tracked::new(file, durable));
                    }
                }
                Some(_) => {}
                None => {
                    self.folders.entry(path).or_default();
                }
            }
        }
        self.folders.insert(folder, names.into_iter().collect());
    }

    /// Makes a folder as the disk would show it.
    pub fn rebuild(&self, target: &Path, how: Rebuild, draw: &mut Draw) {
        fs::create_dir_all(target).unwrap();
        self.rebuild_folder(&self.root, target, how, draw);
    }

    fn rebuild_folder(&self, folder: &Path, target: &Path, how: Rebuild, draw: &mut Draw) {
        for (name, inode) in self.names(folder, how, draw) {
            let (from, to) = (folder.join(&name), target.join(&name));
            match inode {
                None => {
                    fs::create_dir_all(&to).unwrap();
                    self.rebuild_folder(&from, &to, how, draw);
                }
                Some(inode) => self.content(inode, &from, how, draw).write(&to),
            }
        }
    }

    /// Durable names; torn, each unsynced change of a name may have happened or not.
    fn names(&self, folder: &Path, how: Rebuild, draw: &mut Draw) -> Names {
        let mut names = self.folders.get(folder).cloned().unwrap_or_default();
        if how == Rebuild::SyncedOnly || !folder.is_dir() {
            return names;
        }
        let now: Names = list(folder).into_iter().collect();
        let changed: Vec<OsString> = names.keys().chain(now.keys()).cloned().collect();
        for name in changed {
            if names.get(&name) != now.get(&name) && draw.below(2) == 0 {
                match now.get(&name) {
                    Some(inode) => names.insert(name, *inode),
                    None => names.remove(&name),
                };
            }
        }
        names
    }

    fn content(&self, inode: Inode, path: &Path, how: Rebuild, draw: &mut Draw) -> Content {
        let Some(tracked) = self.files.get(&inode) else {
            // Never synced: its name may be there, its content is whatever reached the disk.
            let now = File::open(path).map(|file| Content::read(&file)).unwrap_or_default();
            return Content::default().torn(&now, draw);
        };
        match how {
            Rebuild::SyncedOnly => tracked.durable.clone(),
            Rebuild::Torn => tracked.durable.torn(&Content::read(&tracked.file), draw),
        }
    }
}

fn list(folder: &Path) -> Vec<(OsString, Option<Inode>)> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let facts = entry.metadata().ok()?;
            let inode = (!facts.is_dir()).then(|| facts.ino());
            Some((entry.file_name(), inode))
        })
        .filter(|(name, _)| !is_of_no_matter(Path::new(name)))
        .collect();
    names.sort();
    names
}
