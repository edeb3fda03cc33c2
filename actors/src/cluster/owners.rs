//! Who owns which shard, as this node has read it last.
//!
//! Owns: the table that the gateway and the worker ask for the way to an owner. It may be old; an owner that is
//! none says so. Must never: decide. Next: `member.rs` and `onlooker.rs` (who fill it in).

use fencepost_core::coordinator::board::{BoardView, Hold};
use fencepost_core::coordinator::io::Assigned;
use fencepost_core::ids::ShardId;
use fencepost_core::level::Level;
use fencepost_core::name::Name;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Where a shard is owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// By this node.
    Here,
    /// By another one, which is reached there.
    There(Arc<str>),
    /// By nobody that can be reached.
    Nobody,
}

/// Told of shards that are owned elsewhere now, or reached elsewhere.
pub type OnMoved = Box<dyn Fn(ShardId) + Send + Sync>;

/// The table of a node.
pub struct Owners {
    node: Name,
    table: Mutex<Table>,
    on_moved: OnceLock<OnMoved>,
}

#[derive(Debug, Default)]
struct Table {
    rows: Vec<Option<Assigned>>,
    /// Which start of the board spoke last.
    board: Option<u64>,
    addresses: BTreeMap<Name, Arc<str>>,
    /// Of every node on a board that is not young.
    levels: Option<Vec<(Name, Level)>>,
}

impl Owners {
    /// Knows nothing yet.
    pub fn new(node: Name) -> Owners {
        Owners {
            node,
            table: Mutex::default(),
            on_moved: OnceLock::new(),
        }
    }

    /// Who is told of moves from now on; the first one stays.
    pub fn follow(&self, on_moved: OnMoved) {
        let _ = self.on_moved.set(on_moved);
    }

    /// Who owns a shard.
    pub fn owner(&self, shard: ShardId) -> Owner {
        self.lock().owner(&self.node, usize::from(shard.0))
    }

    /// What this node owns, as far as is known.
    pub fn owned_by(&self, node: &Name) -> Vec<ShardId> {
        let table = self.lock();
        let rows = (0_u16..).zip(&table.rows);
        let theirs = rows.filter(|(_, row)| row.as_ref().is_some_and(|row| row.node == *node));
        theirs.map(|(number, _)| ShardId(number)).collect()
    }

    /// Whether every shard has an owner, and those of this node are among `open`.
    pub fn is_settled(&self, is_open: impl Fn(usize) -> bool) -> bool {
        let table = self.lock();
        let mut rows = table.rows.iter().enumerate();
        let is_fine = |(number, row): (usize, &Option<Assigned>)| {
            row.as_ref().is_some_and(|row| row.node != self.node || is_open(number))
        };
        !table.rows.is_empty() && rows.all(is_fine)
    }

    /// The level that every node on the board knows; `None` while a node may be missing there.
    pub fn levels(&self) -> Option<Vec<(Name, Level)>> {
        self.lock().levels.clone()
    }

    /// Rows as read. One that cannot be read any more is as it was: rows do not go.
    pub fn learn_rows(&self, rows: &[Option<Assigned>]) {
        self.learn(|table| {
            table.rows.resize(rows.len(), None);
            for (known, row) in table.rows.iter_mut().zip(rows) {
                if row.is_some() {
                    known.clone_from(row);
                }
            }
        });
    }

    /// Where nodes are reached.
    pub fn learn_view(&self, view: &BoardView) {
        self.learn(|table| table.learn_addresses(view));
    }

    /// Where nodes are reached, and what each says that it holds: for a node that does not read rows.
    pub fn learn_board(&self, view: &BoardView) {
        self.learn(|table| {
            table.learn_addresses(view);
            table.learn_holds(view);
        });
    }

    fn learn(&self, learn: impl FnOnce(&mut Table)) {
        let moved: Vec<ShardId> = {
            let mut table = self.lock();
            let before = table.owners(&self.node);
            learn(&mut table);
            let after = table.owners(&self.node);
            let is_news = |(number, owner): &(u16, Owner)| {
                *owner != Owner::Nobody && before.get(usize::from(*number)) != Some(owner)
            };
            let moved = (0_u16..).zip(after).filter(is_news);
            moved.map(|(number, _)| ShardId(number)).collect()
        };
        if let Some(on_moved) = self.on_moved.get() {
            moved.into_iter().for_each(on_moved);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn owner(&self, node: &Name, number: usize) -> Owner {
        match self.rows.get(number).and_then(Option::as_ref) {
            Some(row) if row.node == *node => Owner::Here,
            Some(row) => self
                .addresses
                .get(&row.node)
                .map_or(Owner::Nobody, |address| Owner::There(address.clone())),
            None => Owner::Nobody,
        }
    }

    fn owners(&self, node: &Name) -> Vec<Owner> {
        (0..self.rows.len()).map(|number| self.owner(node, number)).collect()
    }

    /// Who is not on a young board may be on his way there.
    fn learn_addresses(&mut self, view: &BoardView) {
        let levels = view
            .sessions
            .iter()
            .map(|session| (session.node.clone(), session.level));
        self.levels = (!view.is_young).then(|| levels.collect());
        if !view.is_young {
            self.addresses.clear();
        }
        let reachable = view.sessions.iter().filter(|session| !session.address.is_empty());
        self.addresses
            .extend(reachable.map(|session| (session.node.clone(), session.address.clone())));
    }

    /// The newest version that is held or claimed counts; what nobody speaks for stays as it was. Versions count
    /// among those of one start of the board: with another one the store may be a restored one, whose versions go
    /// on from the backup (F11).
    fn learn_holds(&mut self, view: &BoardView) {
        if self
            .board
            .replace(view.board)
            .is_some_and(|before| before != view.board)
        {
            for row in self.rows.iter_mut().flatten() {
                row.version = 0;
            }
        }
        for session in &view.sessions {
            let count = session.shards.len();
            if self.rows.len() < count {
                self.rows.resize(count, None);
            }
            for (row, said) in self.rows.iter_mut().zip(&session.shards) {
                let is_newer = row.as_ref().is_none_or(|row| row.version <= said.version);
                if said.hold != Hold::Idle && is_newer {
                    *row = Some(Assigned {
                        node: session.node.clone(),
                        version: said.version,
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use fencepost_core::coordinator::board::{Session, ShardReport};
    use fencepost_core::time::Span;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn session(node: &str, shards: &[(u64, Hold)]) -> Session {
        let report = |(version, hold): &(u64, Hold)| ShardReport {
            version: *version,
            hold: *hold,
            progress: 0,
        };
        Session {
            node: name(node),
            boot: 1,
            beat: 1,
            takes: true,
            coordinates: None,
            decided: 0,
            shards: shards.iter().map(report).collect(),
            address: format!("at-{node}").into(),
            level: fencepost_core::level::NEWEST,
        }
    }

    fn view(is_young: bool, sessions: Vec<Session>) -> BoardView {
        BoardView {
            board: 1,
            number: 1,
            is_young,
            length: Span::from_secs(1),
            sessions,
        }
    }

    #[test]
    fn who_holds_the_newest_version_is_the_owner_and_moves_are_told() {
        let owners = Owners::new(name("w"));
        let moved: Arc<Mutex<Vec<u16>>> = Arc::default();
        let told = moved.clone();
        owners.follow(Box::new(move |shard| told.lock().unwrap().push(shard.0)));
        let (a, b) = (
            [(1, Hold::Held), (2, Hold::Leaving)],
            [(0, Hold::Idle), (3, Hold::Claiming)],
        );
        owners.learn_board(&view(false, vec![session("a", &a), session("b", &b)]));
        assert_eq!(owners.owner(ShardId(0)), Owner::There("at-a".into()));
        assert_eq!(owners.owner(ShardId(1)), Owner::There("at-b".into()));
        assert_eq!(std::mem::take(&mut *moved.lock().unwrap()), [0, 1]);
        owners.learn_board(&view(false, vec![session("a", &a), session("b", &b)]));
        assert!(moved.lock().unwrap().is_empty(), "nothing is new");
        // A late word of an older version changes nothing.
        owners.learn_board(&view(false, vec![session("a", &[(1, Hold::Held), (2, Hold::Held)])]));
        assert_eq!(
            owners.owner(ShardId(1)),
            Owner::Nobody,
            "b is gone, and nobody else has it"
        );
        assert_eq!(owners.owned_by(&name("a")), [ShardId(0)]);
    }

    #[test]
    fn f11_owners_of_a_restored_cell_are_believed_although_their_versions_are_older() {
        let owners = Owners::new(name("w"));
        owners.learn_board(&view(false, vec![session("a", &[(9, Hold::Held), (9, Hold::Held)])]));
        let after = |sessions| BoardView {
            board: 2,
            ..view(true, sessions)
        };
        owners.learn_board(&after(Vec::new()));
        assert_eq!(owners.owner(ShardId(1)), Owner::There("at-a".into()), "nobody else yet");
        let restored = session("b", &[(5, Hold::Held), (5, Hold::Claiming)]);
        owners.learn_board(&after(vec![restored.clone()]));
        assert_eq!(owners.owned_by(&name("b")), [ShardId(0), ShardId(1)]);
        // Of one board the newest version counts, as ever.
        owners.learn_board(&after(vec![restored, session("a", &[(4, Hold::Held)])]));
        assert_eq!(owners.owner(ShardId(0)), Owner::There("at-b".into()));
    }

    #[test]
    fn f32_a_young_board_makes_no_owner_unknown() {
        let owners = Owners::new(name("w"));
        owners.learn_board(&view(false, vec![session("a", &[(1, Hold::Held)])]));
        owners.learn_board(&view(true, Vec::new()));
        assert_eq!(owners.owner(ShardId(0)), Owner::There("at-a".into()));
        owners.learn_board(&view(false, Vec::new()));
        assert_eq!(owners.owner(ShardId(0)), Owner::Nobody);
    }
}
