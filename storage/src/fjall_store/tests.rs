//! The embedded store: starting, refusing, breaking, filling up, backup and restore.

use super::*;
use crate::conformance::tests::Ticking;

fn options() -> Options {
    Options::new(NewStore { store: 1, cell: 2 }, Arc::new(Ticking::default()))
}

pub(crate) fn started(folder: &Path) -> FjallStore {
    FjallStore::start(folder, options()).unwrap()
}
