//! A server for any suite of the registry: TLS over TCP, WTLS over UDP.
//!
//! One process has one thread per worker and one poll per thread. The endpoints are the same as in measurements in
//! memory. The state that peers can cause is limited: handshakes in progress by number and duration, connections by
//! number and idle time, and for each connection the unsent output and the unparsed input.

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
