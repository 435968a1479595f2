//! The shared model of Shakedown: the types that more than one package uses.
//!
//! - [`suite`]: what is negotiated, with a parser and one canonical spelling;
//! - [`identity`]: suite, stacks, carrier and credentials, under which results are measured and stored;
//! - [`message`], [`operation`], [`flight`]: the parts of a handshake; [`alert`]: names of alerts;
//! - [`endpoint`]: the sans-IO interface of every protocol stack; [`wrapper`]: endpoints that wrap others;
//! - [`recorder`]: the events that stacks write during a call; [`recording`]: the event log of an endpoint;
//! - [`half_trace`]: the result of one log; [`trace`](mod@trace): two of them joined;
//! - [`instructions`]: a counter of instructions, under valgrind;
//! - [`driver`]: the loop that runs two endpoints against each other in memory.
//!
//! This crate depends on no stack and opens no socket. Only its private module `clock` reads a clock.

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
