//! An emulated bearer in real time: any command runs behind a modem that this process emulates.
//!
//! ```text
//!   COMMAND ── kernel's TCP ── TUN ──╮                      ╭── TUN ── kernel's TCP ── sockets ──> relay ──> 127.0.0.1
//!     namespace of the client        ╰── links: up, down ──╯      namespace of the gateway
//! ```
//!
//! Each end is a child process in its own network namespace, whose only route is a TUN device ([`End`]). This process
//! holds both TUN descriptors and carries packets between them through the links of `shakedown_link` (`Emulator`),
//! which delay, serialise, queue, drop, duplicate and encrypt them. The kernel terminates every connection over the
//! bearer at both ends. The gateway's traffic is relayed to servers on this host's loopback (`Relay`), or a command
//! there serves it.
//!
//! No root is needed. Nothing is configured outside the two namespaces, which disappear with their last process.

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
