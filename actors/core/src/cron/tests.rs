#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
//! The grammar and the search.

use super::*;
