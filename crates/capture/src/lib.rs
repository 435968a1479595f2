//! Packets on disk: writing a handshake as a capture, and reading captures back to handshakes.
//!
//! # Writing
//!
//! ```no_run
//! use shakedown_capture::write::{Chunk, Conversation, Writer};
//! use shakedown_trace::{Side, endpoint::Transport};
//! use std::{path::Path, time::Duration};
//!
//! # fn main() -> Result<(), shakedown_capture::write::WriteError> {
//! let mut writer = Writer::create(Path::new("handshake.pcap"))?;
//! let hello = [0x16, 0x03, 0x01, 0x00, 0x00];
//! let chunks = [Chunk { from: Side::Client, time: Duration::ZERO, bytes: &hello }];
//! let (client, server) = writer.addresses(443);
//! writer.connection(&Conversation { transport: Transport::Stream, client, server, start: Duration::ZERO, chunks: &chunks })?;
//! writer.finish()?;
//! # Ok(()) }
//! ```
//!
//! # Reading
//!
//! ```no_run
//! use shakedown_capture::inspect::{Inspector, Limits};
//! use std::path::Path;
//!
//! # fn main() -> Result<(), shakedown_capture::CaptureError> {
//! let mut inspector = Inspector::open(Path::new("gateway.pcapng"), Some(Path::new("keys.log")), Limits::default())?;
//! for connection in inspector.by_ref() {
//!     println!("{} {:?} {} bytes", connection.client, connection.protocol, connection.bytes.total);
//! }
//! if let Some(error) = inspector.error() {
//!     eprintln!("{error}");
//! }
//! # Ok(()) }
//! ```

#![forbid(unsafe_code)]

mod dtls;
mod error;
pub mod file;
#[doc(hidden)]
pub mod fuzzing;
pub mod inspect;
mod limits;
mod message;
mod packet;
pub mod report;
mod suite;
mod tcp;
pub mod tls;
pub mod trace;
pub mod write;
mod wtls;

pub use error::CaptureError;
