//! wtls
