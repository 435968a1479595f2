//! A TLS endpoint of either side, whose records are carried in messages.

use crate::frame::Frames;
use crate::keys::Channel;
use crate::message::Message;
use shakedown_trace::endpoint::Time;
use shakedown_trace::{CloseReason, Endpoint, Event, Negotiated};

/// The endpoint and its results so far.
pub struct Tunnel<E> {
    pub endpoint: E,
    /// Messages received inside TLS.
    pub inner: Frames,
    pub negotiated: Option<Box<Negotiated>>,
    pub channel: Option<Channel>,
    pub closed: Option<CloseReason>,
    /// Handshake steps: flights sent, and one more if the peer's flight ended the handshake.
    pub steps: u32,
    /// TLS bytes of the handshake, sent and received.
    pub bytes: [u64; 2],
}

impl<E: Endpoint> Tunnel<E> {
    pub fn new(endpoint: E) -> Self {
        Self {
            endpoint,
            inner: Frames::default(),
            negotiated: None,
            channel: None,
            closed: None,
            steps: 0,
            bytes: [0; 2],
        }
    }

    /// Processes TLS bytes; the endpoint's output is appended to `out`.
    pub fn handle(&mut self, now: Time, bytes: &[u8], out: &mut Vec<u8>) {
        if self.negotiated.is_none() {
            self.bytes[1] += bytes.len() as u64;
        }
        self.endpoint.handle_input(now, bytes);
        self.work(now, out);
    }

    pub fn send(&mut self, now: Time, message: &Message, out: &mut Vec<u8>) -> bool {
        let written = self.endpoint.write(now, &message.to_bytes()).is_ok();
        self.work(now, out);
        written
    }

    /// Collects the endpoint's output and events.
    pub fn work(&mut self, now: Time, out: &mut Vec<u8>) {
        let before = self.negotiated.is_some();
        let mut flight = Vec::new();
        while self.endpoint.poll_transmit(now, &mut flight) {}
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Established(negotiated) => {
                    self.channel = Channel::derive(&self.endpoint).ok();
                    self.negotiated = Some(negotiated);
                }
                Event::Data(data) => self.inner.push(&data),
                // Reported only over datagrams.
                Event::Rejected(_) => {}
                Event::Closed(reason) => {
                    self.closed = Some(reason);
                    // The alert.
                    while self.endpoint.poll_transmit(now, &mut flight) {}
                }
            }
        }
        if !before {
            self.bytes[0] += flight.len() as u64;
            self.steps += u32::from(!flight.is_empty() || self.negotiated.is_some());
        }
        if !flight.is_empty() {
            Message::Tls(flight).put(out);
        }
    }

    /// Reason for the end of the connection, in one line.
    pub fn failure(&self) -> String {
        match &self.closed {
            Some(CloseReason::Failed(failure)) => failure.to_string(),
            Some(CloseReason::Peer) => "the other end closed the connection".into(),
            Some(CloseReason::Local | CloseReason::Truncated) | None => "the connection ended".into(),
        }
    }
}
