//! What the SchedulerShard says no with: stable codes and next steps.
//!
//! Owns: the wording. Must never: decide.

use crate::limits::SCHEDULES_PER_SHARD_BYTES_MAX;
use crate::refusal::{Refusal, RefusalKind};

pub(super) fn not_found(name: &str) -> Refusal {
    let detail = format!("there is no schedule '{name}'");
    Refusal::new(
        RefusalKind::NotFound,
        "schedule_not_found",
        detail,
        "list the schedules to see their names",
    )
    .at("name")
}

pub(super) fn exists(name: &str) -> Refusal {
    let detail = format!("a schedule '{name}' exists already");
    Refusal::new(
        RefusalKind::Conflict,
        "schedule_exists",
        detail,
        "edit it, or choose another name",
    )
    .at("name")
}

/// An edit of a version that is not the one that is there.
pub(super) fn version_differs(seen: u64, current: u64) -> Refusal {
    stale(format!("the definition is at version {current}, not {seen}"))
}

/// An edit of a definition whose schedule has been deleted.
pub(super) fn life_differs() -> Refusal {
    stale("the schedule that was read has been deleted; this one was made since".into())
}

fn stale(detail: String) -> Refusal {
    let hint = "read the schedule again and repeat the edit on what it is now";
    Refusal::new(RefusalKind::Precondition, "version_differs", detail, hint).at("if_match")
}

pub(super) fn too_many_drops(limit: usize) -> Refusal {
    let detail = format!("{limit} fires of the schedule were dropped already and have not come yet");
    let hint = "wait until one of their instants has passed, choose retime or keep, or pause the schedule";
    Refusal::new(RefusalKind::Limited, "drops_limit", detail, hint).at("pending")
}

pub(super) fn too_many(limit: usize) -> Refusal {
    let detail = format!("this shard holds {limit} schedules already");
    Refusal::new(
        RefusalKind::Limited,
        "schedules_limit",
        detail,
        "delete schedules that are no longer needed",
    )
}

/// Memory is bounded whatever the payloads are (P7).
pub(super) fn need_memory(held: usize, more: usize) -> Result<(), Refusal> {
    if held + more <= SCHEDULES_PER_SHARD_BYTES_MAX {
        return Ok(());
    }
    let limit = SCHEDULES_PER_SHARD_BYTES_MAX >> 20;
    let detail = format!("the definitions of this shard's schedules would take more than {limit} MiB");
    let hint = "delete schedules that are no longer needed, or send less: a payload can name where its data lies, and fewer expressions or exclusions take less";
    Err(Refusal::new(RefusalKind::Limited, "schedules_bytes_limit", detail, hint).at("job.payload"))
}

pub(super) fn unsettled(doubt: bool) -> Refusal {
    let (code, detail) = match doubt {
        true => (
            "clock_in_doubt",
            "the store's clock is in doubt and an occurrence is due",
        ),
        false => ("catching_up", "occurrences that are due are still being decided"),
    };
    Refusal::new(RefusalKind::Unavailable, code, detail, "try again in a moment")
}

pub(super) fn in_trial() -> Refusal {
    let detail = "schedules are evaluated one by one after owners that ended young";
    Refusal::new(
        RefusalKind::Unavailable,
        "schedules_in_trial",
        detail,
        "try again in a moment",
    )
}

pub(super) fn never_fires() -> Refusal {
    let detail = "the schedule has no occurrence after now";
    let hint = "check years, bounds and exclusions; a one-shot in the past is allowed";
    Refusal::new(RefusalKind::Invalid, "schedule_never_fires", detail, hint).at("schedule.rule")
}

pub(super) fn once_decided() -> Refusal {
    let detail =
        "the instant lies in the past, and the schedule is paused or its occurrences there have their fates already";
    let hint = "run the schedule now instead, name a later instant, or resume it first";
    Refusal::new(RefusalKind::Invalid, "once_decided", detail, hint).at("schedule.rule.at")
}

pub(super) fn quarantined(reason: &str) -> Refusal {
    let detail = format!("the schedule is in quarantine: {reason}");
    let hint = "edit the schedule to replace its definition, resume it to try it again, or delete it";
    Refusal::new(RefusalKind::Conflict, "schedule_quarantined", detail, hint)
}

pub(super) fn backfill(code: &'static str, field: &'static str, detail: impl Into<String>, hint: &str) -> Refusal {
    Refusal::new(RefusalKind::Invalid, code, detail, hint).at(field)
}

pub(super) fn backfill_stale() -> Refusal {
    let detail = "the range changed while it was being read";
    Refusal::new(RefusalKind::Conflict, "backfill_range_changed", detail, "try again")
}

/// Jobs say it in the same words, and a request's key is no other thing.
pub(super) fn key_reused() -> Refusal {
    let detail = "this idempotency key was used for another request about this schedule";
    let hint = "Send the same request again, or use a new key.";
    Refusal::new(RefusalKind::KeyReused, "idempotency_key_reused", detail, hint).at("idempotency_key")
}

pub(super) fn other_shard() -> Refusal {
    let detail = "the schedule belongs to another shard";
    Refusal::new(
        RefusalKind::Unavailable,
        "wrong_shard",
        detail,
        "send the request again",
    )
}
