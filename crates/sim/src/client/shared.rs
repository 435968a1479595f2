//! Shared state of all clients, and reusable memory of former clients.

use super::{InFlight, Transport};
use crate::access::{Cells, Uncrossed};
use crate::checked::Class;
use crate::tcp::{Jiffies, Packet, Tcp, TcpConfig};
use shakedown_link::{Bearer, Direction, Path};
use std::collections::VecDeque;

/// Totals that a run counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub packets: u64,
    pub bytes: [u64; 2],
    pub dropped: [u64; 4],
    pub uncrossed: Uncrossed,
    /// Packets that a server without room for another connection or handshake ignored.
    pub ignored: u64,
    pub resent: u64,
}

/// The shared state of all clients.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    pub seed: u64,
    pub tcp: &'a TcpConfig,
    pub server_clock: Jiffies,
    pub classes: &'a [Class],
    pub cells: Cells<InFlight>,
    pub traffic: Traffic,
    pub spare: Spare,
    /// Packets that a TCP has just sent.
    pub out: Vec<Packet>,
    /// Packets that are delivered without a link.
    pub instant: VecDeque<(Direction, InFlight)>,
    /// Deliveries without a network.
    pub handed: Vec<Handed>,
}

/// Bytes that one side sends to the other without a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handed {
    pub slot: u32,
    pub generation: u32,
    pub bytes: u32,
    pub direction: Direction,
}

/// Memory of former clients, to be reused: a steady load allocates nothing, and uses the memory that was used last.
#[derive(Debug, Default)]
#[allow(clippy::vec_box)] // boxes are moved; moving their contents would cost as much as this saves
pub(crate) struct Spare {
    connections: Vec<Box<[Tcp; 2]>>,
    /// By class: paths of different bearers are different.
    paths: Vec<Vec<Box<Path<InFlight>>>>,
}

impl Spare {
    /// Both ends of a connection that is over, or ends that were not used before.
    pub(super) fn connection(&mut self, unused: impl Fn() -> Tcp) -> Box<[Tcp; 2]> {
        self.connections.pop().unwrap_or_else(|| Box::new([unused(), unused()]))
    }

    /// A path for a client of a class.
    pub fn path(&mut self, class: u16, bearer: &Bearer, seed: u64, number: u64) -> Box<Path<InFlight>> {
        match self.paths.get_mut(usize::from(class)).and_then(Vec::pop) {
            Some(mut path) => {
                bearer.renew(&mut path, seed, number);
                path
            }
            None => Box::new(bearer.path(seed, number)),
        }
    }

    /// Keeps the path of a former client.
    pub fn keep_path(&mut self, class: u16, path: Box<Path<InFlight>>) {
        let class = usize::from(class);
        if class >= self.paths.len() {
            self.paths.resize_with(class + 1, Vec::new);
        }
        self.paths[class].push(path);
    }

    /// Keeps the TCP ends of a finished attempt.
    pub fn keep(&mut self, transport: Transport) {
        if let Transport::Stream(ends) = transport {
            self.connections.push(ends);
        }
    }
}
