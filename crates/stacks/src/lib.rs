//! Protocol stacks behind [`Endpoint`](shakedown_trace::Endpoint), and the measurements that use them.
//!
//! A [`Stack`] creates [`Connector`]s and [`Acceptor`]s for a suite, and these create endpoints. The [`Registry`]
//! contains all stacks; a client of any stack can connect to a server of any other ([`prepare`]). [`measure`],
//! [`memory`], [`transfer`] and [`capture`] run endpoints against each other and depend on no particular stack.
//!
//! # Adding a stack
//!
//! 1. A folder `src/NAME/` with a type that implements [`Stack`]:
//!    - [`id`](Stack::id): its name, as in `--client-stack`, and its version;
//!    - [`supports`](Stack::supports): for each suite and side, `Ok` or the reason why not. It must be an error if the
//!      stack would negotiate anything else than the suite;
//!    - [`client`](Stack::client) and [`server`](Stack::server) convert a [`Setup`] into the state that the stack's
//!      connections share. Private key and chain are in [`Setup::identities`]: a side presents its own
//!      ([`Identities::of`]) and trusts the peer's root, at [`Setup::now_unix_s`];
//!    - [`Connector::connect`] and [`Acceptor::accept`] create endpoints that have not started: a client builds its
//!      first flight when it is first polled for output. A session to resume is opaque
//!      ([`Session`](shakedown_trace::Session)); the client's [`session`](shakedown_trace::Endpoint::session) has it.
//!
//!    Its endpoints report [`Negotiated`](shakedown_trace::Negotiated), which measurements compare with the suite.
//! 2. This file: `mod NAME;`, and one entry in `stacks`, after the preferred stacks.
//! 3. `Cargo.toml`: its library.
//!
//! If [`Setup::instrumented`] is true, the stack reports messages, with their bytes on the wire, and primitives to the
//! [`recorder`](shakedown_trace::recorder), whose functions write to the log of the endpoint that is being called. The
//! tests in `tests/stacks` run for all stacks of the registry.

pub mod capture;
pub mod carried;
pub mod catalogue;
pub mod machine;
pub mod measure;
pub mod memory;
pub mod openssl;
pub mod options;
pub mod other_libssl;
mod peers;
pub mod primitives;
pub mod processor;
mod registry;
pub mod rustls;
mod seeded;
mod settings;
mod stack;
pub mod transfer;
pub mod wtls;

pub use peers::{Pair, Peers, prepare};
pub use registry::{Entry, Registry};
pub use settings::{Notices, Settings};
pub use stack::{
    Acceptor, Connector, Exposure, Identities, KeyLog, ListenLimits, Listener, SessionCache, Setup,
    SetupError, Stack, Unsupported,
};

use std::sync::Arc;

/// Every stack of this program, the preferred ones first, with the options of single stacks.
fn stacks(wtls: wtls::Options) -> Vec<Arc<dyn Stack>> {
    vec![Arc::new(openssl::Openssl), Arc::new(rustls::Rustls), Arc::new(wtls::Wtls::new(wtls))]
}
