//! Sampled handshakes: what the server's side of one was made of, as a line of JSON.

use super::tally::{Tally, lock};
use crate::trace_line::{self, About, microseconds};
use shakedown_trace::endpoint::Transport;
use shakedown_trace::{Endpoint, HalfTrace, Negotiated, Recorded, Recording, Side, StackId};
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// Which handshakes are sampled, and where they go.
#[derive(Debug)]
pub struct Sampler {
    every: u64,
    next: AtomicU64,
    file: Option<Mutex<File>>,
    suites: Vec<String>,
    stack: StackId,
}

impl Sampler {
    /// A sampler of one handshake in `every`, the first one included.
    ///
    /// # Errors
    /// What the system says of the file.
    pub fn new(every: u64, path: Option<&Path>, suites: Vec<String>, stack: StackId) -> io::Result<Self> {
        let file = path.map(File::create).transpose()?.map(Mutex::new);
        Ok(Self { every: every.max(1), next: AtomicU64::new(0), file, suites, stack })
    }

    /// Whether the next handshake is sampled.
    pub fn samples_next(&self) -> bool {
        self.next.fetch_add(1, Relaxed).is_multiple_of(self.every)
    }

    /// A recording for the next handshake over datagrams, where that is sampled.
    pub fn recording(&self) -> Option<HandshakeRecording> {
        self.samples_next().then(|| HandshakeRecording(Recording::new(Default::default())))
    }

    /// Keeps what a recording says.
    pub fn keep_recording(
        &self,
        recording: &HandshakeRecording,
        negotiated: &Negotiated,
        peer: SocketAddr,
        tally: &Tally,
    ) {
        match HalfTrace::of(Side::Server, &recording.0) {
            Ok(half) => self.keep(&half, negotiated, Some(peer), tally),
            Err(_) => tally.traces_lost.add(1),
        }
    }

    /// Keeps what a handshake was made of.
    pub fn keep(&self, half: &HalfTrace, negotiated: &Negotiated, peer: Option<SocketAddr>, tally: &Tally) {
        {
            let mut messages = lock(&tally.messages);
            for message in &half.messages {
                let time = messages.entry((message.name.as_str(), message.from.as_str())).or_default();
                time.count += 1;
                time.sum_s += microseconds(message.spent) * 1e-6;
            }
        }
        let Some(file) = &self.file else { return };
        let about = About {
            suites: &self.suites,
            stack: &self.stack,
            client_address: peer,
            ended: SystemTime::now(),
            connect: None,
        };
        let mut line = trace_line::of(half, negotiated, &about).to_string();
        line.push('\n');
        match lock(file).write_all(line.as_bytes()) {
            Ok(()) => tally.traces.add(1),
            Err(_) => tally.traces_lost.add(1),
        }
    }
}

/// The event log of one handshake within a listener, which serves many peers by the same calls.
pub struct HandshakeRecording(Recording);

impl HandshakeRecording {
    /// A datagram of the peer's, and the work on it.
    pub fn received(&mut self, bytes: usize, work: impl FnOnce()) {
        self.0.unit_received(bytes);
        self.0.during(work);
    }

    /// A datagram for the peer.
    pub fn sent(&mut self, datagram: &[u8]) {
        self.0.unit_sent(Transport::Datagram, datagram);
    }
}

/// An endpoint that may be recorded until its handshake is over.
pub enum Sampled {
    /// It is not.
    Plain(Box<dyn Endpoint>),
    /// It is.
    Recorded(Box<Recorded<Box<dyn Endpoint>>>, Arc<Sampler>),
    /// On its way from one to the other.
    Nothing,
}

impl Sampled {
    /// An endpoint, recorded where the sampler says so.
    pub fn new(endpoint: Box<dyn Endpoint>, sampler: Option<&Arc<Sampler>>) -> Self {
        match sampler.filter(|sampler| sampler.samples_next()) {
            Some(sampler) => {
                let recorded = Recorded::new(endpoint, Recording::new(Default::default()));
                Self::Recorded(Box::new(recorded), Arc::clone(sampler))
            }
            None => Self::Plain(endpoint),
        }
    }

    /// True until its handshake is over, if it is sampled.
    pub fn is_recorded(&self) -> bool {
        matches!(self, Self::Recorded(..))
    }

    /// Its handshake is over, and all of it has been sent.
    pub fn finish(&mut self, negotiated: &Negotiated, peer: Option<SocketAddr>, tally: &Tally) {
        if !self.is_recorded() {
            return;
        }
        if let Self::Recorded(recorded, sampler) = std::mem::replace(self, Self::Nothing) {
            match recorded.half_trace() {
                Ok(half) => sampler.keep(&half, negotiated, peer, tally),
                Err(_) => tally.traces_lost.add(1),
            }
            *self = Self::Plain(recorded.into_parts().0);
        }
    }
}

impl Deref for Sampled {
    type Target = dyn Endpoint;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Plain(endpoint) => &**endpoint,
            Self::Recorded(recorded, _) => &**recorded,
            Self::Nothing => unreachable!("`finish` leaves a plain endpoint"),
        }
    }
}

impl DerefMut for Sampled {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Plain(endpoint) => &mut **endpoint,
            Self::Recorded(recorded, _) => &mut **recorded,
            Self::Nothing => unreachable!("`finish` leaves a plain endpoint"),
        }
    }
}
