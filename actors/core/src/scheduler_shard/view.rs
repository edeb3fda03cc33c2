//! A schedule as read from its rows, for those who do not own it.
//!
//! Owns: the same answer that the owner would give. Must never: decide. Next: `live.rs`.

use super::io::ScheduleView;
use super::live::Live;
use super::version::Version;
use crate::schedule::{CursorRow, ScheduleDefinition};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The view of a schedule whose current definition and cursor were read; one in quarantine, with the
/// reason that its row gives, is not evaluated.
pub fn view_of(definition: ScheduleDefinition, cursor: CursorRow, reason: Option<Arc<str>>) -> ScheduleView {
    let compiled = match reason {
        Some(reason) => Err(reason),
        None => Version::compile(definition.clone()).map_err(|refusal| Arc::from(refusal.to_string())),
    };
    let (version, quarantined) = match compiled {
        Ok(version) => (version, None),
        Err(reason) => (Version::broken(definition.clone()), Some(reason)),
    };
    let mut live = Live {
        versions: BTreeMap::from([(cursor.definition, Arc::new(version))]),
        cursor,
        plan: None,
        backlogs: BTreeMap::new(),
        quarantined: quarantined.clone(),
        poisons: Vec::new(),
        dirty: false,
        recorded_at: None,
    };
    live.replan(live.cursor.nominal);
    let next = live.next_fire().map(|planned| (planned.nominal, planned.due));
    ScheduleView {
        definition,
        cursor: live.cursor,
        next,
        quarantined,
    }
}
