//! Every attempt of a job stays on record: the newest in its row, older ones in rows of their own.

use crate::support::lease_harness::Leases;
use crate::support::make::{failed, item, job_id, spec, worker};
use fencepost_core::job::{AttemptRecord, JobState};
use fencepost_core::limits::{ATTEMPT_RECORDS_MAX, DEAD_LETTER_RETENTION_DAYS, SWEEP_PAUSE_MS, SWEEP_WRITES_MAX};
use fencepost_core::row::{AttemptsRow, Row, RowKey};
use fencepost_core::time::Span;

/// A job that failed this many times and is dead.
fn failed_times(times: u32) -> Leases {
    let (mut leases, w) = (Leases::new(), worker("a", 1));
    let mut spec = spec();
    spec.retry.attempt_count_max = times;
    spec.retry.backoff_first = Span::ZERO;
    spec.retry.backoff_cap = Span::ZERO;
    leases.create(item(1, spec)).unwrap();
    for _ in 0..times {
        let grant = leases.offer(&w, 1).remove(0);
        leases.report(&w, grant.job.id, grant.token, failed());
    }
    assert_eq!(leases.state(1), JobState::Dead);
    leases
}

fn pages(leases: &Leases) -> Vec<AttemptsRow> {
    leases.rows.all(|row| match row {
        Row::Attempts(row) => Some(AttemptsRow::clone(row)),
        _ => None,
    })
}

#[test]
fn every_attempt_is_recorded_once_and_in_order_however_many_there_are() {
    for times in [1, 16, 17, 24, 25, 41, 100] {
        let leases = failed_times(times);
        let (pages, newest) = (pages(&leases), leases.job(1).attempts);
        assert!(newest.len() <= ATTEMPT_RECORDS_MAX && newest.len() >= times.min(9) as usize);
        let older = pages.iter().flat_map(|row| row.records.iter());
        let all: Vec<u32> = older.chain(&newest).map(|record: &AttemptRecord| record.no).collect();
        assert_eq!(all, (1..=times).collect::<Vec<_>>(), "{times} attempts");
        for row in &pages {
            let fits = row
                .records
                .iter()
                .all(|record| AttemptsRow::page_of(record.no) == row.page);
            assert!(fits, "{row:?}");
        }
        leases.check();
    }
}

#[test]
fn f33_a_page_of_attempts_costs_one_write_for_eight_of_them() {
    let (few, many) = (failed_times(16), failed_times(96));
    let writes = |leases: &Leases| leases.rows.writes[&job_id(1)];
    let each = (writes(&few) - 2) / 16;
    assert_eq!(writes(&many), writes(&few) + 80 * each + 10);
}

#[test]
fn pages_of_attempts_go_with_their_job() {
    let mut leases = failed_times(100);
    assert_eq!(pages(&leases).len(), 11);
    leases.now.store = leases.now.store + Span::from_secs(DEAD_LETTER_RETENTION_DAYS * 86_400 + 1);
    leases.pass(Span::from_millis(SWEEP_PAUSE_MS + 1));
    assert_eq!((leases.rows.jobs().len(), pages(&leases).len()), (0, 0));
}

#[test]
fn many_pages_go_over_several_walks() {
    let mut leases = failed_times(20);
    let first = leases.job(1);
    for number in 1..=40 {
        let mut job = first.clone();
        job.id = job_id(number);
        for record in &mut job.attempts {
            record.no += 984;
        }
        for page in 0..AttemptsRow::count_of(&job) {
            let row = AttemptsRow {
                id: job.id,
                page,
                records: job.attempts.clone(),
            };
            leases
                .rows
                .rows
                .insert(RowKey::Attempts(job.id, page), Row::Attempts(Box::new(row)));
        }
        leases.rows.rows.insert(RowKey::Job(job.id), Row::Job(Box::new(job)));
    }
    leases.now.store = leases.now.store + Span::from_secs(DEAD_LETTER_RETENTION_DAYS * 86_400 + 1);
    let mut walks = 0;
    while !leases.rows.jobs().is_empty() {
        let before = leases.rows.rows.len();
        leases.pass(Span::from_millis(SWEEP_PAUSE_MS + 1));
        let gone = before - leases.rows.rows.len();
        assert!(gone > 0 && gone <= SWEEP_WRITES_MAX + 200, "{gone} rows in a walk");
        walks += 1;
    }
    assert!(walks > 1 && pages(&leases).is_empty(), "{walks} walks");
}
