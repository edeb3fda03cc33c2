//! A schedule as read from its rows, for those who do not own it.
//!
//! Owns: the same answer that the owner would give. Must never: decide. Next: `live.rs`.

use super::io::ScheduleView;
use super::live::Live;
use super::version::Version;
use crate::schedule::{CursorRow, ScheduleDefinition};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The view of a schedule whose current definition and cursor were read.
pub fn view_of(definition: ScheduleDefinition, cursor: CursorRow) -> ScheduleView {
    let (version, quarantined) = match Version::compile(definition.clone()) {
        Ok(version) => (version, None),
        Err(refusal) => (
            Version::broken(definition.clone()),
            Some(Arc::from(refusal.to_string())),
        ),
    };
    let mut live = Live {
        versions: BTreeMap::from([(cursor.definition, Arc::new(version))]),
        cursor,
        plan: None,
        backlogs: BTreeMap::new(),
        quarantined: quarantined.clone(),
        dirty: false,
    };
    live.replan(live.cursor.nominal);
    let next = live.plan.map(|planned| (planned.nominal, planned.due));
    ScheduleView {
        definition,
        cursor: live.cursor,
        next,
        quarantined,
    }
}
