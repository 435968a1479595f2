//! The shared words of Shakedown.
//!
//! Everything that more than one room of the house talks about is named here, and nothing else is:
//!
//! - [`suite`]: what is negotiated, with a parser and one canonical spelling;
//! - [`message`], [`operation`]: what a handshake is made of;
//! - [`recorder`]: a tape onto which stacks write marks while a handshake runs;
//! - [`ledger`]: turns a tape into a [`Trace`] whose books balance;
//! - [`endpoint`]: the sans-IO face of every protocol stack;
//! - [`driver`]: the one loop that runs two endpoints against each other in memory.
//!
//! This crate depends on no other crate of the workspace, opens no socket, and reads a clock in one
//! place only ([`recorder::ticks`]).

mod clock;
pub mod driver;
pub mod endpoint;
pub mod ledger;
pub mod message;
pub mod operation;
pub mod recorder;
pub mod suite;

pub use endpoint::{Endpoint, Failure, Side};
pub use ledger::{MessageRecord, OperationRecord, Trace};
pub use message::MessageName;
pub use operation::{Class, Operation, Primitive};
pub use suite::Suite;
