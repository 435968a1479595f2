//! A TLS endpoint whose flights are carried in EAP-TLS messages, for either side.

use super::{FragmentError, MAX_FLIGHT_BYTES, Message, Outgoing, Reassembly, Received};
use crate::keys::{Msk, export_msk};
use shakedown_trace::endpoint::Time;
use shakedown_trace::{CloseReason, Endpoint, Event, ExportError, Negotiated};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error(transparent)]
    Message(#[from] super::MessageError),
    #[error(transparent)]
    Fragment(#[from] FragmentError),
    #[error("data instead of the acknowledgement of a fragment")]
    NotAcknowledged,
    #[error("an acknowledgement without a fragment")]
    NothingToAcknowledge,
    #[error("an unexpected start, or a start from a peer")]
    Start,
    #[error("the first request of EAP-TLS is not a start")]
    NoStart,
    #[error("{bytes} bytes of application data; accepted: one byte, 0x00, from a server of TLS 1.3")]
    ApplicationData { bytes: usize },
    #[error("a flight of {bytes} bytes to send; peers accept up to {MAX_FLIGHT_BYTES}")]
    FlightTooLong { bytes: usize },
    #[error(transparent)]
    Export(#[from] ExportError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// More fragments of this side's flight must be sent.
    Continue,
    Acknowledge,
    /// The other side acknowledged the end of this side's flight.
    Acknowledged,
    /// A flight has been processed; the endpoint's output, if any, must be sent.
    Handled,
}

pub struct Tunnel<E> {
    endpoint: E,
    incoming: Reassembly,
    outgoing: Outgoing,
    negotiated: Option<Box<Negotiated>>,
    msk: Option<Msk>,
    closed: Option<CloseReason>,
    data: Vec<u8>,
    fragments: u32,
}

impl<E: Endpoint> Tunnel<E> {
    pub fn new(endpoint: E, fragment_bytes: usize) -> Self {
        Self {
            endpoint,
            incoming: Reassembly::default(),
            outgoing: Outgoing::new(fragment_bytes),
            negotiated: None,
            msk: None,
            closed: None,
            data: Vec::new(),
            fragments: 0,
        }
    }

    pub fn endpoint(&self) -> &E {
        &self.endpoint
    }

    pub fn into_endpoint(self) -> E {
        self.endpoint
    }

    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.as_deref()
    }

    /// The derived key, after the handshake.
    pub fn msk(&self) -> Option<&Msk> {
        self.msk.as_ref()
    }

    pub fn closed(&self) -> Option<&CloseReason> {
        self.closed.as_ref()
    }

    /// Received application data.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The number of sent and received messages with TLS bytes.
    pub fn fragments(&self) -> u32 {
        self.fragments
    }

    pub fn limit(&mut self, fragment_bytes: usize) {
        self.outgoing.limit(fragment_bytes);
    }

    /// True if this side's whole flight has been sent.
    pub fn is_sent(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Processes a message of the other side.
    ///
    /// # Errors
    /// [`Violation`]; the conversation cannot continue after it.
    pub fn handle(&mut self, now: Time, message: &Message<'_>) -> Result<Reaction, Violation> {
        if message.start {
            return Err(Violation::Start);
        }
        self.fragments += u32::from(!message.data.is_empty());
        if !self.outgoing.is_empty() {
            return if message.is_acknowledgement() {
                Ok(Reaction::Continue)
            } else {
                Err(Violation::NotAcknowledged)
            };
        }
        match self.incoming.push(message)? {
            Received::Acknowledgement => Ok(Reaction::Acknowledged),
            Received::Fragment => Ok(Reaction::Acknowledge),
            Received::Flight(flight) => {
                self.endpoint.handle_input(now, &flight);
                self.work(now)?;
                Ok(Reaction::Handled)
            }
        }
    }

    /// Collects the endpoint's output and events.
    pub fn work(&mut self, now: Time) -> Result<(), Violation> {
        while self.endpoint.poll_transmit(now, self.outgoing.flight()) {}
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Established(negotiated) => {
                    self.msk = Some(export_msk(&self.endpoint, negotiated.protocol)?);
                    self.negotiated = Some(negotiated);
                }
                Event::Data(data) => self.data.extend(data),
                // Only endpoints over datagrams emit it.
                Event::Rejected(_) => {}
                Event::Closed(reason) => self.closed = Some(reason),
            }
        }
        let bytes = self.outgoing.flight().len();
        if bytes > MAX_FLIGHT_BYTES { Err(Violation::FlightTooLong { bytes }) } else { Ok(()) }
    }

    /// Encrypts application data; it is sent with the current flight.
    pub fn write(&mut self, now: Time, data: &[u8]) -> Result<bool, Violation> {
        let written = self.endpoint.write(now, data).is_ok();
        self.work(now)?;
        Ok(written)
    }

    /// The next message to send: a fragment, or an acknowledgement if there is no output.
    pub fn next_message(&mut self) -> Message<'_> {
        self.fragments += u32::from(!self.outgoing.is_empty());
        self.outgoing.next_message()
    }
}
