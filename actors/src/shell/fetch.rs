//! Reads for a shell: rows by name and pages of ranges, decoded, bad rows told apart.
//!
//! Owns: the asynchronous half of a fetch; the actor corrects what comes back by its overlay. Must
//! never: decide, or fail a shell over one bad row (PROTOCOL F9). Next: `load.rs`, `overlay.rs`.

use fencepost_core::ids::JobId;
use fencepost_core::job::Job;
use fencepost_core::limits::{SCAN_BYTES_MAX, SCAN_ROWS_MAX};
use fencepost_core::row::{Row, RowKey};
use fencepost_storage::codec::decode_row;
use fencepost_storage::keys::{KeyRange, key_bytes};
use fencepost_storage::store::{Bytes, Store, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The store as shells share it.
pub type SharedStore = Arc<dyn Store>;

/// A row that could not be read.
#[derive(Clone, Debug)]
pub struct BadRow {
    /// Its raw key.
    pub key: Bytes,
    /// Why, for people.
    pub reason: String,
}

/// Rows of a range in key order.
#[derive(Debug, Default)]
pub struct PageRead {
    /// Raw key and row.
    pub rows: Vec<(Vec<u8>, Row)>,
    /// First key after the page, when the range went on.
    pub next: Option<Vec<u8>>,
    /// Rows that could not be read.
    pub bad: Vec<BadRow>,
}

/// Reads rows by name, all of them, in as many reads as the store's own bounds ask for; a bad row reads as
/// absent and is reported.
pub async fn read_rows(
    store: &SharedStore,
    keys: &[RowKey],
) -> Result<(BTreeMap<RowKey, Option<Row>>, Vec<BadRow>), StoreError> {
    let mut all = RowsRead::default();
    while let Some(rest) = keys.get(all.count..).filter(|rest| !rest.is_empty()) {
        let read = read_rows_within(store, rest, usize::MAX).await?;
        all.rows.extend(read.rows);
        all.bad.extend(read.bad);
        all.count += read.count;
    }
    Ok((all.rows, all.bad))
}

/// Rows by name, as far as a bound allowed.
#[derive(Debug, Default)]
pub struct RowsRead {
    /// The rows reached; `None` is absent.
    pub rows: BTreeMap<RowKey, Option<Row>>,
    /// Rows that could not be read.
    pub bad: Vec<BadRow>,
    /// How many of the keys were reached.
    pub count: usize,
}

/// As `read_rows`, for the first of the keys: at least one, until the rows have this many bytes.
pub async fn read_rows_within(store: &SharedStore, keys: &[RowKey], bytes: usize) -> Result<RowsRead, StoreError> {
    if keys.is_empty() {
        return Ok(Default::default());
    }
    let raw: Vec<Vec<u8>> = keys.iter().map(key_bytes).collect();
    let values = store.get_within(raw.clone(), bytes).await?;
    let count = values.len();
    let mut rows = BTreeMap::new();
    let mut bad = Vec::new();
    for ((key, raw), value) in keys.iter().zip(raw).zip(values) {
        let row = value.and_then(|value| decode(&raw, &value, &mut bad));
        rows.insert(key.clone(), row);
    }
    Ok(RowsRead { rows, bad, count })
}

/// Reads at most `limit` rows of a range, and no more once they have `SCAN_BYTES_MAX` bytes.
pub async fn read_page(store: &SharedStore, range: KeyRange, limit: usize) -> Result<PageRead, StoreError> {
    let mut found = store.scan(range.scan_page(limit + 1, SCAN_BYTES_MAX)).await?;
    let mut page = PageRead::default();
    let bytes: usize = found.iter().map(|(key, value)| key.len() + value.len()).sum();
    if found.len() > limit || (found.len() > 1 && bytes >= SCAN_BYTES_MAX) {
        page.next = found.pop().map(|(key, _)| key.to_vec());
    }
    for (key, value) in found {
        if let Some(row) = decode(&key, &value, &mut page.bad) {
            page.rows.push((key.to_vec(), row));
        }
    }
    Ok(page)
}

/// The last row of a range, if it can be read.
pub async fn read_last(store: &SharedStore, range: KeyRange) -> Result<Option<Row>, StoreError> {
    let mut scan = range.scan(1);
    scan.backwards = true;
    let found = store.scan(scan).await?.pop();
    Ok(found.and_then(|(key, value)| decode(&key, &value, &mut Vec::new())))
}

/// Reads a whole range, page by page.
pub async fn read_all(store: &SharedStore, range: KeyRange, bad: &mut Vec<BadRow>) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    let mut rest = range;
    loop {
        let page = read_page(store, rest.clone(), SCAN_ROWS_MAX).await?;
        rows.extend(page.rows.into_iter().map(|(_, row)| row));
        bad.extend(page.bad);
        match page.next {
            Some(next) => rest = rest.starting_at(&next),
            None => return Ok(rows),
        }
    }
}

/// Reads jobs by id; missing ones are left out.
pub async fn read_jobs(
    store: &SharedStore,
    ids: impl IntoIterator<Item = JobId>,
    bad: &mut Vec<BadRow>,
) -> Result<BTreeMap<JobId, Job>, StoreError> {
    let keys: Vec<RowKey> = ids.into_iter().map(RowKey::Job).collect();
    let mut jobs = BTreeMap::new();
    for part in keys.chunks(SCAN_ROWS_MAX) {
        let (rows, unread) = read_rows(store, part).await?;
        bad.extend(unread);
        jobs.extend(rows.into_values().flatten().filter_map(job_in).map(|job| (job.id, job)));
    }
    Ok(jobs)
}

/// Reads the first of these jobs: at least one, until they have `SCAN_BYTES_MAX` bytes. Also how many of the
/// ids that were; missing jobs are left out.
pub async fn read_jobs_within(
    store: &SharedStore,
    ids: &[JobId],
    bad: &mut Vec<BadRow>,
) -> Result<(BTreeMap<JobId, Job>, usize), StoreError> {
    let keys: Vec<RowKey> = ids.iter().copied().map(RowKey::Job).collect();
    let read = read_rows_within(store, &keys, SCAN_BYTES_MAX).await?;
    bad.extend(read.bad);
    let jobs = read.rows.into_values().flatten().filter_map(job_in);
    Ok((jobs.map(|job| (job.id, job)).collect(), read.count))
}

/// The job in a row, if it is one.
pub fn job_in(row: Row) -> Option<Job> {
    row.into_job().map(|job| *job)
}

fn decode(key: &[u8], value: &[u8], bad: &mut Vec<BadRow>) -> Option<Row> {
    match decode_row(key, value) {
        Ok(row) => Some(row),
        Err(error) => {
            bad.push(BadRow {
                key: Arc::from(key),
                reason: error.to_string(),
            });
            None
        }
    }
}
