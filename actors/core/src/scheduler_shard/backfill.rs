//! Making up a past range that a person names.
//!
//! Owns: what of the range may be made up, the preview, and the cut of decided spans into backlogs: an
//! occurrence made up gets the fate of its new job, so that it cannot be made up twice. Must never:
//! fire again what fired, unless the request calls it a re-run. Next: `backlog.rs`.

use super::SchedulerShard;
use super::backlog::Cut;
use super::io::ScheduleReply;
use super::live::Live;
use super::refusals;
use super::requests::{DIGEST_PURPOSE, Made, Request};
use super::step::Step;
use super::tape;
use super::version::{Discriminator, Version};
use crate::fate::{DEFINITION_UNKNOWN, FateKind, FateSpan, Lateness};
use crate::ids::{Incarnation, JobId, Slot, digest, hash64};
use crate::limits::{BACKFILL_COUNT_MAX, BACKFILL_SPANS_MAX, CATCH_UP_RATE_DEFAULT, PAGE_ITEMS_MAX};
use crate::machine::ReplyTo;
use crate::name::Name;
use crate::refusal::Refusal;
use crate::row::RowKey;
use crate::schedule::{BackfillMark, EditKind, RequestAnswer, RequestRow};
use crate::time::StoreTime;
use std::sync::Arc;

/// A backfill as asked for.
pub(super) struct Backfill {
    pub(super) from: StoreTime,
    pub(super) to: StoreTime,
    pub(super) cap: u32,
    pub(super) rerun: bool,
    pub(super) number: u64,
    pub(super) seen: Option<Box<RequestRow>>,
    pub(super) dry_run: bool,
    pub(super) life: Option<Incarnation>,
    pub(super) fates: Vec<FateSpan>,
}

impl Backfill {
    /// Of what was asked for, before defaults: a cap that is not narrower than the default is none.
    fn digest(&self) -> [u8; 32] {
        let cap = (self.cap < BACKFILL_COUNT_MAX).then(|| self.cap.to_be_bytes());
        let (from, to) = (self.from.0.to_be_bytes(), self.to.0.to_be_bytes());
        let cap = cap.as_ref().map_or(&[][..], |cap| &cap[..]);
        digest(DIGEST_PURPOSE, &[b"backfill", &from, &to, cap, &[u8::from(self.rerun)]])
    }
}

/// A stretch that will be made up.
struct Stretch {
    from: StoreTime,
    to: StoreTime,
    /// Its last occurrence.
    last: StoreTime,
    count: u64,
    /// The span it is cut from, and whether that is the cursor's open one.
    span: FateSpan,
    is_open: bool,
}

#[derive(Default)]
struct Choice {
    stretches: Vec<Stretch>,
    instants: Vec<StoreTime>,
    count: u64,
    already_fired: u64,
    over_cap: u64,
}

impl Choice {
    fn answer(self) -> RequestAnswer {
        RequestAnswer::Backfill {
            count: self.count,
            instants: self.instants,
            already_fired: self.already_fired,
            over_cap: self.over_cap,
        }
    }
}

impl SchedulerShard {
    pub(super) fn on_backfill(&mut self, step: &mut Step<'_>, reply: ReplyTo, name: &(Name, Name), asked: Backfill) {
        let request = Request {
            number: asked.number,
            digest: asked.digest(),
            // A look makes nothing: it is no request under its key.
            seen: asked.seen.clone().filter(|_| !asked.dry_run),
            kept: self.request_kept(),
        };
        let checked = match &request.seen {
            Some(_) => Ok(()),
            None => check_range(&asked, step.now.store),
        };
        let answer = checked
            .and_then(|()| self.find(name))
            .and_then(|place| match self.incarnation_of(name) == asked.life {
                true => Ok(place),
                // Deleted and made again while they were read: the spans are of another life.
                false => Err(refusals::backfill_stale()),
            })
            .and_then(|place| self.touch(step, place, |live, step| live.backfill(step, &asked, &request)));
        step.reply(reply, answer);
    }
}

fn check_range(asked: &Backfill, now: StoreTime) -> Result<(), Refusal> {
    if asked.from >= asked.to {
        let detail = "the range is empty or runs backwards";
        return Err(refusals::backfill("backfill_range", "to", detail, "name a later end"));
    }
    if asked.to > now {
        let detail = "the range reaches beyond now";
        return Err(refusals::backfill(
            "backfill_future",
            "to",
            detail,
            "only the past can be made up",
        ));
    }
    if asked.cap == 0 || asked.cap > BACKFILL_COUNT_MAX {
        let detail = format!("one request makes 1 to {BACKFILL_COUNT_MAX} jobs");
        return Err(refusals::backfill(
            "backfill_cap",
            "cap",
            detail,
            "name a cap in that range",
        ));
    }
    Ok(())
}

impl Live {
    fn backfill(&mut self, step: &mut Step<'_>, asked: &Backfill, request: &Request) -> Result<ScheduleReply, Refusal> {
        if let Some(answer) = request.answered(self.cursor.incarnation) {
            return answer;
        }
        if let Some(reason) = &self.quarantined {
            return Err(refusals::quarantined(reason));
        }
        if !asked.dry_run && self.was_carried_out_before(request) {
            // The version before kept no answer.
            return Ok(Choice::default().answer().into());
        }
        step.need_room()?;
        let choice = self.choose(asked)?;
        if choice.stretches.len() > BACKFILL_SPANS_MAX {
            let detail = format!("the range falls into more than {BACKFILL_SPANS_MAX} separate stretches");
            return Err(refusals::backfill(
                "backfill_scattered",
                "from",
                detail,
                "ask for a shorter range",
            ));
        }
        let made = match asked.dry_run {
            true => None,
            false => Some(self.make_up(step, asked, &choice)),
        };
        let answer = choice.answer();
        if let Some(made) = made.filter(|made| made.backlogs.1 > 0 || request.kept.is_some()) {
            self.remember(step, request, answer.clone(), made);
        }
        Ok(answer.into())
    }

    fn make_up(&mut self, step: &mut Step<'_>, asked: &Backfill, choice: &Choice) -> Made {
        let first = self.cursor.backlog_next;
        if choice.count > 0 {
            let version = self.cursor.definition;
            self.record(step, EditKind::Backfilled, (version, version), None);
        }
        let stretches = choice.stretches.iter();
        let jobs = stretches
            .filter_map(|stretch| self.carry_out(step, stretch, asked))
            .collect();
        Made {
            backlogs: (first, self.cursor.backlog_next - first),
            jobs,
        }
    }

    /// Which stretches of the range are made up, the oldest first, up to the cap.
    fn choose(&self, asked: &Backfill) -> Result<Choice, Refusal> {
        let mut spans: Vec<(FateSpan, bool)> = asked.fates.iter().map(|span| (span.clone(), false)).collect();
        spans.extend(self.cursor.open.iter().map(|span| (span.clone(), true)));
        spans.retain(|(span, _)| span.to > asked.from && span.from < asked.to);
        spans.sort_by_key(|(span, _)| span.to);
        self.check_fresh(&spans)?;
        let mut choice = Choice::default();
        for (span, is_open) in spans {
            self.choose_of(asked, span, is_open, &mut choice);
        }
        Ok(choice)
    }

    /// Spans as fetched must be those that still stand: apart from each other and from backlogs.
    fn check_fresh(&self, spans: &[(FateSpan, bool)]) -> Result<(), Refusal> {
        let pending = || self.backlogs.values().filter(|backlog| !backlog.is_rerun());
        let is_pending = |span: &FateSpan| pending().any(|b| span.from < b.row.to && span.to > b.row.from);
        let overlaps = |pair: &[(FateSpan, bool)]| matches!(pair, [first, second] if first.0.to > second.0.from);
        let is_ahead = spans.iter().any(|(span, _)| span.to > self.cursor.nominal);
        match is_ahead || spans.iter().any(|(span, _)| is_pending(span)) || spans.windows(2).any(overlaps) {
            true => Err(refusals::backfill_stale()),
            false => Ok(()),
        }
    }

    fn choose_of(&self, asked: &Backfill, span: FateSpan, is_open: bool, choice: &mut Choice) {
        let Some(version) = self.version_of(&span) else {
            return;
        };
        let (from, end) = (span.from.max(asked.from), span.to.min(asked.to));
        if span.kind == FateKind::Excluded || version.is_broken() {
            return;
        }
        if span.may_have_fired() && !asked.rerun {
            choice.already_fired += version.timetable.count(from, end).unwrap_or(0);
            return;
        }
        let (mut at, mut count) = (from, 0);
        while let Some(next) = version.timetable.next_after(at).filter(|next| *next <= end) {
            if choice.count >= u64::from(asked.cap) {
                choice.over_cap += version.timetable.count(at, end).unwrap_or(0);
                break;
            }
            (at, count, choice.count) = (next, count + 1, choice.count + 1);
            if choice.instants.len() < PAGE_ITEMS_MAX {
                choice.instants.push(next);
            }
        }
        if count > 0 {
            // No crumbs without an occurrence on either side.
            let table = &version.timetable;
            let is_first = table.next_after(span.from) == table.next_after(from);
            let is_last = table.next_after(at).is_none_or(|next| next > span.to);
            choice.stretches.push(Stretch {
                from: if is_first { span.from } else { from },
                to: if is_last { span.to } else { at },
                last: at,
                count,
                span,
                is_open,
            });
        }
    }

    /// Answers the last job that it will make.
    fn carry_out(&mut self, step: &mut Step<'_>, stretch: &Stretch, asked: &Backfill) -> Option<JobId> {
        let version = Arc::clone(self.version_of(&stretch.span)?);
        let is_rerun = stretch.span.may_have_fired();
        if !is_rerun {
            self.cut_out(step, stretch);
        }
        let rerun = is_rerun.then(|| self.rerun_number(asked.number));
        let cut = Cut {
            definition: version.definition.version,
            from: stretch.from,
            to: stretch.to,
            rate: CATCH_UP_RATE_DEFAULT,
            backfill: Some(BackfillMark {
                request: rerun.unwrap_or(0),
                cap: asked.cap,
            }),
        };
        self.add_backlog(step, cut);
        let discriminator = rerun.map_or(Discriminator::Occurrence, Discriminator::Rerun);
        Some(version.job_id(stretch.last, discriminator))
    }

    /// Whose occurrences a span is about; the current version's, where nobody knows.
    fn version_of(&self, span: &FateSpan) -> Option<&Arc<Version>> {
        self.versions.get(match span.definition {
            DEFINITION_UNKNOWN => &self.cursor.definition,
            _ => &span.definition,
        })
    }

    /// Never the same for two backlogs of one life, also when a request number comes again after it was
    /// forgotten: ids of jobs are made of it, and the same id twice would contradict the store.
    fn rerun_number(&self, request: u64) -> u64 {
        let parts = [request.to_be_bytes(), u64::from(self.cursor.backlog_next).to_be_bytes()];
        hash64("rerun", &[&parts[0], &parts[1]]).max(1)
    }

    /// Takes a stretch out of the span that decided it; what is left on both sides stays decided.
    fn cut_out(&mut self, step: &mut Step<'_>, stretch: &Stretch) {
        let span = &stretch.span;
        let owner = (&self.cursor.tenant, &self.cursor.name, self.cursor.incarnation);
        if !stretch.is_open {
            let slot = Slot::of_schedule(owner.0, owner.1);
            step.out.delete(RowKey::Fate(
                slot,
                owner.0.clone(),
                owner.1.clone(),
                owner.2,
                span.to,
                span.from,
            ));
        }
        if let Some(before) = self.part(span, span.from, stretch.from) {
            step.out.put(tape::row(owner, before));
        }
        let after = self.part(span, stretch.to, span.to);
        match stretch.is_open {
            false => step.out.writes.extend(after.map(|after| crate::machine::Write::Put {
                row: tape::row(owner, after),
                expect: crate::machine::Expect::Any,
            })),
            true => self.cursor.open = after,
        }
        self.cursor.counts.subtract(span.kind, stretch.count);
        self.dirty = true;
    }

    fn part(&self, span: &FateSpan, from: StoreTime, to: StoreTime) -> Option<FateSpan> {
        let version = self.versions.get(&span.definition)?;
        (from < to).then(|| FateSpan {
            from,
            to,
            count: version.timetable.count(from, to),
            lateness: Lateness::default(),
            ..span.clone()
        })
    }
}
