//! Sampled handshakes: the server's half trace, as a line of JSON.

use super::tally::{Tally, lock};
use crate::trace_line::{self, About, microseconds};
use shakedown_trace::endpoint::Transport;
use shakedown_trace::{HalfTrace, Negotiated, Recording, Side, StackId};
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// The sampler of a handshake over a stream, and the client's address, which the system forgets when the client resets
/// the connection.
pub type Sampled = (Arc<Sampler>, SocketAddr);

/// Selects the handshakes that are sampled, and writes them.
#[derive(Debug)]
pub struct Sampler {
    every: u64,
    next: AtomicU64,
    file: Option<Mutex<File>>,
    suites: Vec<String>,
    stack: StackId,
}

impl Sampler {
    /// A sampler of one handshake in `every`, including the first. Lines are appended to the file; the caller checks
    /// its name and that it does not exist yet.
    pub fn new(every: u64, path: Option<&Path>, suites: Vec<String>, stack: StackId) -> io::Result<Self> {
        let open = |path| File::options().create(true).append(true).open(path).map(Mutex::new);
        let file = path.map(open).transpose()?;
        Ok(Self { every: every.max(1), next: AtomicU64::new(0), file, suites, stack })
    }

    pub fn samples_next(&self) -> bool {
        self.next.fetch_add(1, Relaxed).is_multiple_of(self.every)
    }

    /// A recording for the next handshake over datagrams, if it is sampled.
    pub fn recording(&self) -> Option<HandshakeRecording> {
        self.samples_next().then(|| HandshakeRecording(Recording::new(Default::default())))
    }

    pub fn keep(&self, recording: &Recording, negotiated: &Negotiated, peer: SocketAddr, tally: &Tally) {
        let Ok(half) = HalfTrace::of(Side::Server, recording) else {
            return tally.traces_lost.add(1);
        };
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
            client_address: Some(peer),
            ended: SystemTime::now(),
            connect: None,
        };
        let mut line = trace_line::of(&half, negotiated, &about).to_string();
        line.push('\n');
        match lock(file).write_all(line.as_bytes()) {
            Ok(()) => tally.traces.add(1),
            Err(_) => tally.traces_lost.add(1),
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // After the server has stopped, the lines are on disk even if the power fails. An error can no longer be
            // reported.
            let _ = lock(file).sync_all();
        }
    }
}

/// The event log of one handshake of a listener, whose calls serve many peers.
pub struct HandshakeRecording(Recording);

impl HandshakeRecording {
    pub fn recording(&self) -> &Recording {
        &self.0
    }

    /// Records a datagram from the peer, and the work on it.
    pub fn received(&mut self, bytes: usize, work: impl FnOnce()) {
        self.0.unit_received(bytes);
        self.0.during(work);
    }

    pub fn sent(&mut self, datagram: &[u8]) {
        self.0.unit_sent(Transport::Datagram, datagram);
    }
}
