//! Fencepost's pure decisions.
