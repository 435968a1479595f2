//! A server for any suite that the registry has: TLS over TCP, WTLS over UDP.
//!
//! One process, one thread a worker, one poll a thread; endpoints are the very ones that are measured in memory. What a
//! peer can make the server hold is bounded: handshakes in progress by number and time, connections by number and
//! silence, output by what the peer takes, input by what is understood at once.

mod config;
mod connection;
mod datagrams;
mod exchange;
mod exporter;
mod parts;
mod scrapers;
mod server;
mod summary;
mod tally;
mod timers;
mod traces;
mod worker;

pub(crate) use config::listening_reason;
pub use config::{Config, PayloadWhen, ServeError};
pub use server::Server;
pub use summary::{Handshakes, Queue, Summary, Times};
pub use tally::QueueTrace;
