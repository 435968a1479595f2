//! The stack `openssl`: unmodified libssl, in memory, with callbacks that report to the recorder.

mod boundaries;
mod context;
mod endpoint;
mod foreign;
mod hello;
mod lifetime;
mod multi_suite;
mod names;
mod psk;
mod security;
mod stack;
mod supported;

pub use foreign::{ForeignClient, read_roots};
pub use stack::Openssl;

const NAME: &str = "openssl";
