//! An emulated bearer on a wall clock: any command behind a modem that this process plays.
//!
//! ```text
//!   COMMAND ── kernel's TCP ── TUN ──╮                      ╭── TUN ── kernel's TCP ── sockets ──> relay ──> 127.0.0.1
//!     namespace of the client        ╰── links: up, down ──╯      namespace of the gateway
//! ```
//!
//! Each end is a child in a network namespace of its own whose only way out is a TUN device ([`End`]). We hold both
//! descriptors and carry packets between them through the links of `shakedown_link` (`Emulator`): delayed, serialised,
//! queued, lost, doubled, encrypted. Both ends of every connection over the bearer are the kernel's. What reaches the
//! gateway is handed to servers on this host's loopback (`Relay`), or to a command that runs there.
//!
//! This needs no root, nothing is configured outside the two namespaces, and these vanish with the last
//! process in them.

mod check;
mod emulator;
mod end;
mod error;
mod packet;
mod pcap;
mod probe;
mod relay;
mod run;
mod signals;
mod sys;

pub use check::{CheckPlan, Checked, Figure, check};
pub use emulator::{Counts, Lateness, Report};
pub use end::{End, Side, Step};
pub use error::BearerRunError;
pub use packet::LinkPlan;
pub use run::{Outcome, RunPlan, run};
