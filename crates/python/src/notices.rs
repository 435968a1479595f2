//! What a user should read although nothing failed: kept keys and certificates that were damaged and made again.

use pyo3::prelude::*;
use shakedown_stacks::Notices;
use std::sync::{Mutex, PoisonError};

static UNREAD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps the remarks of one task until somebody asks.
pub fn keep(notices: &Notices) {
    let mut new = notices.lock().unwrap_or_else(PoisonError::into_inner);
    UNREAD.lock().unwrap_or_else(PoisonError::into_inner).append(&mut new);
}

/// The remarks since the last call, one line each.
#[pyfunction]
pub fn take_notices() -> Vec<String> {
    std::mem::take(&mut *UNREAD.lock().unwrap_or_else(PoisonError::into_inner))
}
