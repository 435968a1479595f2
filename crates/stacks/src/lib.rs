//! Protocol stacks behind [`Endpoint`](shakedown_trace::Endpoint), and what is measured on them.
//!
//! A [`Stack`] makes [`Connector`]s and [`Acceptor`]s for a suite, and these make endpoints; the [`Registry`] holds all
//! stacks, and any client meets any server ([`prepare`]). [`measure`], [`memory`], [`transfer`] and [`capture`] run
//! endpoints against each other and know no stack by name.
//!
//! # How a stack comes in
//!
//! 1. A folder of its own, `src/NAME/`, with a type that implements [`Stack`]:
//!    - [`id`](Stack::id): its name, as `--client-stack` takes it, and its version;
//!    - [`supports`](Stack::supports): for each suite and side, yes or the reason why not. It must be no wherever the
//!      stack would negotiate anything else than the suite says;
//!    - [`client`](Stack::client) and [`server`](Stack::server) turn a [`Setup`] into whatever the stack shares among
//!      connections. Private key and chain are in [`Setup::identities`]: a side takes its own
//!      ([`Identities::of`]) and trusts the peer's root, at [`Setup::now_unix_s`];
//!    - [`Connector::connect`] and [`Acceptor::accept`] make endpoints that have done nothing yet: a client builds its
//!      first flight when it is first polled for output. A session to resume is opaque
//!      ([`Session`](shakedown_trace::Session)); the client's [`session`](shakedown_trace::Endpoint::session) gives it.
//!
//!    What it negotiated goes into [`Negotiated`](shakedown_trace::Negotiated), which is compared with the suite
//!    wherever a handshake counts.
//! 2. This file: `mod NAME;`, and one entry among the `stacks`, behind those that are preferred.
//! 3. `Cargo.toml`: its library.
//!
//! Where [`Setup::instrumented`] is true the stack tells [`recorder`](shakedown_trace::recorder) of messages, with
//! their bytes on the wire, and of primitives; nothing else needs to be known of recordings, for the functions write to
//! the log of the endpoint that is being called. The tests in `tests/stacks` run over
//! whatever the registry holds.

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

/// Every stack of this program, the preferred ones first, with what each alone is told.
fn stacks(wtls: wtls::Options) -> Vec<Arc<dyn Stack>> {
    vec![Arc::new(openssl::Openssl), Arc::new(rustls::Rustls), Arc::new(wtls::Wtls::new(wtls))]
}
