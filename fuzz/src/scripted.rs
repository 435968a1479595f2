//! Endpoints without cryptography, whose behaviour is a script.

use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::suite::Protocol;
use shakedown_trace::{Endpoint, Event, ExportError, Negotiated, Side, WriteError};
use std::collections::VecDeque;

/// The behaviour of an endpoint.
pub trait Script: Send {
    /// Processes received bytes.
    fn input(&mut self, end: &mut End, bytes: &[u8]);
}

/// The state of an endpoint that does not depend on its script.
pub struct End {
    /// Side of the connection.
    pub side: Side,
    /// Bytes to be sent.
    pub output: Vec<u8>,
    /// Events to be polled.
    pub events: VecDeque<Event>,
}

impl End {
    /// Reports that the handshake is over.
    pub fn establish(&mut self, protocol: Protocol, resumed: bool) {
        self.events.push_back(Event::Established(Box::new(Negotiated {
            protocol,
            key_exchange: None,
            cipher: None,
            cipher_suite: "none",
            group: None,
            resumed,
            optimized: false,
        })));
    }
}

/// An endpoint that follows a script.
pub struct Scripted<S> {
    end: End,
    /// The script.
    pub script: S,
}

impl<S: Script> Scripted<S> {
    /// An endpoint that begins by sending `output`.
    pub fn new(side: Side, output: Vec<u8>, script: S) -> Self {
        Self { end: End { side, output, events: VecDeque::new() }, script }
    }
}

impl<S: Script> Endpoint for Scripted<S> {
    fn side(&self) -> Side {
        self.end.side
    }

    fn transport(&self) -> Transport {
        Transport::Stream
    }

    fn handle_input(&mut self, _: Time, bytes: &[u8]) {
        self.script.input(&mut self.end, bytes);
    }

    fn handle_close(&mut self, _: Time) {}

    fn write(&mut self, _: Time, data: &[u8]) -> Result<(), WriteError> {
        self.end.output.extend(data);
        Ok(())
    }

    fn close(&mut self, _: Time) {}

    fn poll_transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> bool {
        let any = !self.end.output.is_empty();
        buffer.append(&mut self.end.output);
        any
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.end.events.pop_front()
    }

    fn state(&self) -> String {
        "scripted".into()
    }

    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        vec![b"leaf".to_vec()]
    }

    fn export_keying_material(&self, _: &mut [u8], _: &str, _: Option<&[u8]>) -> Result<(), ExportError> {
        Ok(())
    }
}
