//! The shared words of Shakedown.
//!
//! Everything that more than one package talks about is named here, and nothing else is:
//!
//! - [`suite`]: what is negotiated, with a parser and one canonical spelling;
//! - [`identity`]: suite, stacks, carrier and credentials, under which anything is measured and kept;
//! - [`message`], [`operation`], [`flight`]: what a handshake is made of; [`alert`]: names of alerts;
//! - [`endpoint`]: the sans-IO face of every protocol stack; [`wrapper`]: endpoints around others;
//! - [`recorder`]: what stacks write while an endpoint works; [`recording`]: the log it goes to, one for each endpoint;
//! - [`half_trace`], [`trace`](mod@trace): what one log says, and what two say together;
//! - [`instructions`]: a counter that does not drift, where valgrind runs the program;
//! - [`driver`]: the one loop that runs two endpoints against each other in memory, over a link.
//!
//! This crate knows no stack, opens no socket, and reads a clock in one place only ([`recorder::ticks`]).

pub mod alert;
mod clock;
pub mod driver;
pub mod endpoint;
pub mod flight;
pub mod half_trace;
pub mod identity;
pub mod instructions;
pub mod message;
pub mod operation;
pub mod recorder;
pub mod recording;
mod spelling;
pub mod suite;
pub mod trace;
pub mod wrapper;

pub use endpoint::{
    CloseReason, Endpoint, Event, ExportError, Failure, Negotiated, Session, Side, WriteError,
};
pub use half_trace::{AccountingError, HalfMessage, HalfTrace, OperationRecord};
pub use identity::{Carrier, Credentials, HandshakeId, StackId};
pub use message::MessageName;
pub use operation::{Class, Operation, Primitive};
pub use recording::{Counter, Recorded, Recording};
pub use suite::Suite;
pub use trace::{MessageRecord, Trace};
pub use wrapper::Wrapper;
