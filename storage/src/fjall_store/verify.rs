//! Whether a folder still holds everything that was acknowledged.
//!
//! Owns: the checks around the engine's start. Before: every keyspace's files are there, the journals
//! hold sequences without a gap up to the high-water mark, with its chain. After: every keyspace
//! ends at the same sequence and chain, and no sequence lies between what its tables hold and what
//! the journals hold. Must never: open the engine on a folder that failed the first part.
//! Next: `journal.rs`, `mark.rs`.

use super::error::StartError;
use super::folder::{Folder, is_there};
use super::identity::id_of;
use super::journal::Journals;
use super::mark::{Mark, Ring};
use super::space::{SPACES, Space, Spaces};
use crate::keys::chain_key;
use fjall::{AbstractTree, Readable};
use std::fs;

/// Before the engine is opened; nothing is changed but a torn tail nobody was told of.
pub(super) fn before(folder: &Folder, acknowledged: &Mark) -> Result<Journals, StartError> {
    let database = folder.database();
    let damaged = |what: String| StartError::Damaged {
        what,
        acknowledged: acknowledged.sequence,
        found: 0,
    };
    if !is_there(&database.join("version"))? {
        return Err(damaged("file db/version is missing".into()));
    }
    if !is_there(&database.join("keyspaces/0/current"))? {
        return Err(damaged("the list of keyspaces (db/keyspaces/0) is missing".into()));
    }
    for space in SPACES {
        let id = id_of(space);
        if !is_there(&database.join(format!("keyspaces/{id}/current")))? {
            let name = space.name();
            return Err(damaged(format!("keyspace {name} (db/keyspaces/{id}) is missing")));
        }
    }
    let journals = Journals::read(&database, acknowledged)?;
    match journals.last {
        Some(last) if last.sequence < acknowledged.sequence => {
            let what = format!("journal {} ends too early", journals.newest());
            return Err(journals.damage(what, acknowledged));
        }
        _ => {}
    }
    if journals
        .at_acknowledged
        .is_some_and(|chain| chain != acknowledged.chain)
    {
        let what = "the journal and file HIGHWATER tell different histories".to_owned();
        return Err(journals.damage(what, acknowledged));
    }
    journals.cut_torn_tail()?;
    Ok(journals)
}

/// After the engine replayed its journals: the mark up to which every keyspace holds everything; what lies
/// between it and the ring's top is in the ring. Damage found here is noted in the folder, because the
/// engine may since have covered it up.
pub(super) fn after(folder: &Folder, spaces: &Spaces, journals: &Journals, ring: &Ring) -> Result<Mark, StartError> {
    let checked = check_spaces(spaces, journals, ring);
    if let Err(StartError::Damaged { what, .. }) = &checked {
        note(folder, what, &ring.top)?;
    }
    checked
}

fn check_spaces(spaces: &Spaces, journals: &Journals, ring: &Ring) -> Result<Mark, StartError> {
    let damage = |what: String| journals.damage(what, &ring.base);
    let mut marks = Vec::new();
    for space in SPACES {
        let name = space.name();
        let mark = latest(spaces, space)?.ok_or_else(|| match journals.first {
            None => damage(format!(
                "a journal is missing: keyspace {name} holds nothing without it"
            )),
            Some(_) => damage(format!("keyspace {name} is empty")),
        })?;
        let tables = in_tables(spaces, space)?;
        let first = journals.first.map(|mark| mark.sequence);
        if first.is_some_and(|first| first > tables + 1) {
            return Err(damage(format!(
                "a journal is missing: keyspace {name} holds up to {tables}, the oldest journal begins at {}",
                first.unwrap_or(0)
            )));
        }
        marks.push((name, mark));
    }
    let by_sequence = |(_, mark): &&(&str, Mark)| mark.sequence;
    let lowest = marks
        .iter()
        .min_by_key(by_sequence)
        .map(|(_, mark)| *mark)
        .unwrap_or_default();
    let highest = marks
        .iter()
        .max_by_key(by_sequence)
        .map(|(_, mark)| *mark)
        .unwrap_or_default();
    if lowest.sequence < ring.base.sequence && lowest == highest {
        return Err(damage("a journal is missing".into()));
    }
    for (name, mark) in &marks {
        let known = ring.at(mark.sequence);
        let in_ring = known.is_some_and(|known| known == *mark);
        if *mark != highest && (!in_ring || highest.sequence > ring.top.sequence) {
            return Err(damage(format!(
                "keyspace {name} ends at sequence {} while others end at {}",
                mark.sequence, highest.sequence
            )));
        }
        if known.is_some() && !in_ring {
            return Err(damage("the journal and file HIGHWATER tell different histories".into()));
        }
    }
    Ok(lowest)
}

fn latest(spaces: &Spaces, space: Space) -> Result<Option<Mark>, StartError> {
    let keyspace = spaces.get(space);
    // As readers see it.
    let value = spaces
        .snapshot()
        .get(keyspace, chain_key(space.number()))
        .map_err(StartError::engine(keyspace.path()))?;
    Ok(value.and_then(|value| Mark::of_value(&value)))
}

/// The last sequence that the keyspace's tables hold, without the journals.
fn in_tables(spaces: &Spaces, space: Space) -> Result<u64, StartError> {
    let keyspace = spaces.get(space);
    let Some(flushed) = keyspace.tree.get_highest_persisted_seqno() else {
        return Ok(0);
    };
    let value = keyspace
        .tree
        .get(chain_key(space.number()), flushed + 1)
        .map_err(|error| StartError::engine(keyspace.path())(error.into()))?;
    Ok(value
        .and_then(|value| Mark::of_value(&value))
        .map_or(0, |mark| mark.sequence))
}

fn note(folder: &Folder, what: &str, acknowledged: &Mark) -> Result<(), StartError> {
    let text = format!("{what}\nacknowledged {}\n", acknowledged.sequence);
    folder.replace(&folder.damaged(), text.as_bytes())
}

/// Damage that an earlier start found.
pub(super) fn noted(folder: &Folder) -> Result<(), StartError> {
    let path = folder.damaged();
    if !is_there(&path)? {
        return Ok(());
    }
    let text = fs::read_to_string(&path).map_err(StartError::io(&path))?;
    let what = text.lines().next().unwrap_or("?");
    let acknowledged = text
        .lines()
        .find_map(|line| line.strip_prefix("acknowledged ")?.parse().ok());
    Err(StartError::Damaged {
        what: format!(
            "{what}; an earlier start found this and wrote it into the file DAMAGED, to be deleted only when the whole \
             folder is put back from a copy"
        ),
        acknowledged: acknowledged.unwrap_or(0),
        found: 0,
    })
}
