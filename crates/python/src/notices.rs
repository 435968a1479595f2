//! Notices for the user without an error: stored keys and certificates that were damaged and have been regenerated.

use pyo3::prelude::*;
use shakedown_stacks::Notices;
use std::sync::{Mutex, PoisonError};

static UNREAD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Stores the notices of one task until [`take_notices`] is called.
pub fn keep(notices: &Notices) {
    let mut new = notices.lock().unwrap_or_else(PoisonError::into_inner);
    UNREAD.lock().unwrap_or_else(PoisonError::into_inner).append(&mut new);
}

/// The notices since the last call, one line each.
#[pyfunction]
pub fn take_notices() -> Vec<String> {
    std::mem::take(&mut *UNREAD.lock().unwrap_or_else(PoisonError::into_inner))
}
