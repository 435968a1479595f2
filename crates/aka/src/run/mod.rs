//! Virtual time.
