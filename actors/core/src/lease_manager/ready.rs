//! The ready range: a bounded directory of classes (queue, tenant), a window for each (F30, F34).
//!
//! Owns: which ready jobs are in memory, whose turn it is, and the classes' marks. Must never: hold
//! more than `READY_WINDOW_BYTES`, or decide what becomes of a job. A job may be here while its row
//! still lies in the wait range: that saves moving a row that is granted soon. Next: `places.rs`.

use super::lines::Lines;
use super::mark::Mark;
use super::places::Lies;
use super::window::{Beyond, Costly, Window};
use crate::ids::{JobId, ShardId};
use crate::job::Job;
use crate::limits::{READY_LOADS_MAX, READY_WINDOW_BYTES, READY_WINDOW_JOBS, SCAN_ROWS_MAX};
use crate::name::Name;
use crate::row::ReadyRow;
use crate::time::StoreTime;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Queue and tenant.
pub(super) type ClassName = (Name, Name);

/// Priority, order, id: a ready row's key within its class.
pub(super) type ReadyKey = (u8, StoreTime, JobId);

/// A class's number while it is in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ClassId(u32);

/// A ready job in memory.
#[derive(Clone, Debug, Hash)]
pub(super) struct ReadyEntry {
    /// As stored.
    pub(super) job: Arc<Job>,
    /// Where its place row lies.
    pub(super) lies: Lies,
    /// Of `cost_of`.
    pub(super) cost: usize,
}

/// A class with its window.
#[derive(Clone, Debug, Hash)]
pub(super) struct Class {
    /// Queue and tenant.
    pub(super) name: ClassName,
    /// First jobs of its range.
    pub(super) window: Window<ReadyKey, ReadyEntry>,
    /// Where its range begins.
    pub(super) mark: Mark<ReadyKey>,
    /// Whether it stands in its queue's line.
    in_line: bool,
}

/// All classes of a shard.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct ReadyRange {
    classes: BTreeMap<ClassId, Class>,
    by_name: BTreeMap<ClassName, ClassId>,
    /// Queue and tenant, with how many of the queue's lines are classes here: they count as one.
    queues: BTreeMap<ClassName, usize>,
    /// Per queue, the classes that wait for their turn; no empty lines.
    lines: BTreeMap<Name, VecDeque<ClassId>>,
    /// The queue that was served last.
    turn: Option<Name>,
    /// The same for remote jobs: claims must not move the turn of what nodes run.
    remote_turn: Option<Name>,
    next_id: u32,
    /// Pages under way.
    loads: usize,
    cost: usize,
}

/// What a class has for the one whose turn it is.
#[derive(Clone, Debug, Hash)]
pub(super) enum Turn {
    /// Its first job, taken out of the window; its row is still there.
    Job(ClassId, ReadyKey, ReadyEntry),
    /// Nothing in memory, but rows beyond: load a page.
    Load(ClassId),
    /// Nothing now.
    Nothing,
}

impl Costly for ReadyEntry {
    fn cost(&self) -> usize {
        self.cost
    }
}

/// The key of a ready row within its class.
pub(super) fn key_of(row: &ReadyRow) -> ReadyKey {
    (row.priority, row.order, row.id)
}

/// The queue of a class, whichever of its lines this is.
fn queue_of((line, tenant): &ClassName) -> ClassName {
    (line.queue(), tenant.clone())
}

/// The row of a key.
pub(super) fn row_of(shard: ShardId, class: &ClassName, key: ReadyKey) -> ReadyRow {
    ReadyRow {
        shard,
        queue: class.0.clone(),
        tenant: class.1.clone(),
        priority: key.0,
        order: key.1,
        id: key.2,
    }
}

impl Class {
    /// No row of it exists. It may still stand in line: what it stood there for was cancelled, or is over.
    fn is_idle(&self) -> bool {
        self.window.is_empty() && self.window.beyond() == Beyond::Complete
    }
}

impl ReadyRange {
    /// The class of this name, made if it is new; `beyond` says what is known of a new one's range.
    pub(super) fn class_id(&mut self, name: &ClassName, beyond: Beyond<ReadyKey>) -> ClassId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = ClassId(self.next_id);
        self.next_id += 1;
        self.by_name.insert(name.clone(), id);
        *self.queues.entry(queue_of(name)).or_default() += 1;
        self.classes.insert(
            id,
            Class {
                name: name.clone(),
                window: Window::new(beyond),
                mark: Mark::new(None),
                in_line: false,
            },
        );
        self.line_up(id);
        id
    }

    /// The class of this name, if it is in the directory.
    pub(super) fn find(&self, name: &ClassName) -> Option<ClassId> {
        self.by_name.get(name).copied()
    }

    /// A class by its number.
    pub(super) fn class(&self, id: ClassId) -> &Class {
        self.classes
            .get(&id)
            .expect("a class number is used only while the class is in the directory")
    }

    /// A class by its number, to touch its mark.
    pub(super) fn class_mut(&mut self, id: ClassId) -> &mut Class {
        self.classes
            .get_mut(&id)
            .expect("a class number is used only while the class is in the directory")
    }

    /// Puts a job into its class's window if it lies below the horizon.
    pub(super) fn insert(&mut self, id: ClassId, key: ReadyKey, entry: ReadyEntry) -> bool {
        let class = self.class_mut(id);
        let before = class.window.cost();
        let entered = class.window.insert(key, entry);
        let after = class.window.cost();
        self.cost = self.cost + after - before;
        self.line_up(id);
        entered
    }

    /// Takes a job out whose row is being deleted.
    pub(super) fn remove(&mut self, id: ClassId, key: &ReadyKey) -> Option<ReadyEntry> {
        let removed = self.class_mut(id).window.remove(key);
        if let Some(entry) = &removed {
            self.cost -= entry.cost;
        }
        removed
    }

    /// A ready job gets its row now; false if it is here no more, or has a row.
    pub(super) fn place(&mut self, id: ClassId, key: &ReadyKey) -> bool {
        let class = self.classes.get_mut(&id);
        let entry = class.and_then(|class| class.window.get_mut(key));
        let Some(entry) = entry.filter(|entry| entry.lies == Lies::Nowhere) else {
            return false;
        };
        entry.lies = Lies::Ready;
        true
    }

    /// The class whose window costs most gives up half of it, when all together cost too much:
    /// halving keeps the search for it rare. The first job of one that was asked for just now is spared while there are
    /// others, or what nobody asks for would keep it out for ever. Answers what was pushed out.
    pub(super) fn evict(&mut self, spared: Option<ClassId>) -> Vec<(ClassId, ReadyKey, ReadyEntry)> {
        let mut evicted = Vec::new();
        while self.cost > READY_WINDOW_BYTES {
            let heaviest = self
                .classes
                .iter()
                .max_by_key(|(id, class)| match spared == Some(**id) && class.window.len() == 1 {
                    true => 1,
                    false => class.window.cost(),
                })
                .map(|(id, _)| *id);
            let Some(id) = heaviest else { break };
            let class = self.class_mut(id);
            let keep = class.window.cost() / 2;
            let before = class.window.cost();
            let fewest = usize::from(spared == Some(id) && class.window.len() > 1);
            while class.window.cost() > keep && class.window.len() > fewest {
                let Some((key, entry)) = class.window.evict_last() else {
                    break;
                };
                evicted.push((id, key, entry));
            }
            let freed = before - class.window.cost();
            self.cost -= freed;
        }
        evicted
    }

    /// The next line in turn after the last one served, among those asked for.
    pub(super) fn next_line(&mut self, asked: &Lines) -> Option<Name> {
        let turn = match asked.are_remote() {
            true => &mut self.remote_turn,
            false => &mut self.turn,
        };
        let next = asked.next_after(turn.as_ref(), &self.lines);
        if let Some(name) = &next {
            *turn = Some(name.clone());
        }
        next
    }

    /// The first class in a queue's line takes its turn and goes to the end.
    pub(super) fn take_turn(&mut self, queue: &Name) -> Turn {
        let Some(line) = self.lines.get_mut(queue) else {
            return Turn::Nothing;
        };
        let id = line.pop_front();
        if line.is_empty() {
            self.lines.remove(queue);
        }
        let Some(id) = id else { return Turn::Nothing };
        let class = self.class_mut(id);
        class.in_line = false;
        match class.window.pop_first() {
            Some((key, entry)) => {
                self.cost -= entry.cost;
                self.line_up(id);
                Turn::Job(id, key, entry)
            }
            None if class.window.wants_load(0) => {
                self.line_up(id);
                Turn::Load(id)
            }
            None => Turn::Nothing,
        }
    }

    /// A class stands in line while it has a job in memory, or could load some.
    pub(super) fn line_up(&mut self, id: ClassId) {
        let Some(class) = self.classes.get_mut(&id) else { return };
        if class.in_line || (class.window.is_empty() && !class.window.wants_load(0)) {
            return;
        }
        class.in_line = true;
        self.lines.entry(class.name.0.clone()).or_default().push_back(id);
    }

    /// Whether any line has something in it, remote ones included.
    pub(super) fn has_any(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Whether any of these lines has something in it.
    pub(super) fn has_more(&self, asked: &Lines) -> bool {
        asked.are_among(&self.lines)
    }

    /// The rows of the next page, if this class has so few jobs left that it should be fetched.
    pub(super) fn page_wanted(&self, id: ClassId) -> Option<usize> {
        let share = READY_WINDOW_JOBS / self.classes.len().max(1);
        if self.loads >= READY_LOADS_MAX {
            return None;
        }
        let low = if self.cost <= READY_WINDOW_BYTES / 2 {
            share / 4
        } else {
            0
        };
        self.class(id)
            .window
            .wants_load(low)
            .then(|| (share / 2).clamp(4, SCAN_ROWS_MAX))
    }

    /// Notes that a page of this class is being fetched, from here.
    pub(super) fn begin_load(&mut self, id: ClassId) -> Option<ReadyKey> {
        self.loads += 1;
        self.class_mut(id).window.begin_load()
    }

    /// A page came in; see `Window::join`.
    pub(super) fn join(&mut self, id: ClassId, beyond: Beyond<ReadyKey>) -> bool {
        let window = &mut self.class_mut(id).window;
        let loading = window.is_loading();
        let joins = window.join(beyond);
        self.loads -= usize::from(loading);
        joins
    }

    /// Whether a page is under way.
    pub(super) fn is_loading(&self) -> bool {
        self.loads > 0
    }

    /// Queues in the directory, those of each tenant counted.
    pub(super) fn queue_count(&self) -> usize {
        self.queues.len()
    }

    /// Whether a queue, or the one of a line, has a class in the directory.
    pub(super) fn has_queue(&self, line: &Name, tenant: &Name) -> bool {
        self.queues.contains_key(&(line.queue(), tenant.clone()))
    }

    /// Drops classes of which no row exists; answers their names and whether a mark was stored.
    pub(super) fn drop_idle(&mut self) -> Vec<(ClassName, bool)> {
        let idle = self.classes.iter().filter(|(_, class)| class.is_idle());
        let ids: Vec<ClassId> = idle.map(|(id, _)| *id).collect();
        let gone = ids.iter().filter_map(|id| self.classes.remove(id));
        let names: Vec<_> = gone.map(|class| (class.name, class.mark.stored().is_some())).collect();
        let classes = &self.classes;
        self.lines.retain(|_, waiting| {
            waiting.retain(|id| classes.contains_key(id));
            !waiting.is_empty()
        });
        for (name, _) in &names {
            self.by_name.remove(name);
            let queue = queue_of(name);
            let left = self.queues.get(&queue).map_or(0, |lines| lines.saturating_sub(1));
            match left {
                0 => drop(self.queues.remove(&queue)),
                _ => drop(self.queues.insert(queue, left)),
            }
        }
        names
    }

    /// All classes.
    pub(super) fn classes(&self) -> impl Iterator<Item = &Class> {
        self.classes.values()
    }

    /// Whether a queue could be dropped, with all its lines, to make room for another.
    pub(super) fn has_idle(&self) -> bool {
        let mut idle: BTreeMap<ClassName, usize> = BTreeMap::new();
        for class in self.classes.values().filter(|class| class.is_idle()) {
            *idle.entry(queue_of(&class.name)).or_default() += 1;
        }
        idle.iter().any(|(queue, lines)| self.queues.get(queue) == Some(lines))
    }

    /// Panics on a contradiction.
    pub(super) fn check(&self) {
        let mut cost = 0;
        for (id, class) in &self.classes {
            class.window.check();
            cost += class.window.cost();
            assert_eq!(self.by_name.get(&class.name), Some(id), "a class is found by its name");
            let stands = self.lines.get(&class.name.0).is_some_and(|line| line.contains(id));
            assert_eq!(class.in_line, stands, "a class knows whether it stands in line");
            let should = !class.window.is_empty() || class.window.wants_load(0);
            assert!(!should || class.in_line, "a class with work stands in line");
        }
        let mut queues: BTreeMap<ClassName, usize> = BTreeMap::new();
        for name in self.by_name.keys() {
            *queues.entry(queue_of(name)).or_default() += 1;
        }
        assert_eq!(queues, self.queues, "each queue is counted once, with its lines");
        assert_eq!(cost, self.cost, "the range's cost is the sum of its classes");
        let loads = self.classes.values().filter(|class| class.window.is_loading()).count();
        assert_eq!(loads, self.loads, "pages under way are counted");
        assert!(cost <= READY_WINDOW_BYTES, "ready windows are bounded");
        assert!(self.lines.values().all(|line| !line.is_empty()), "no line is empty");
    }
}
