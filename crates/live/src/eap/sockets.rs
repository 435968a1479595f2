//! UDP sockets to one server: a request's identifier has 8 bits, so each socket has few of them in the air.

use super::EapError;
use crate::socket::any_towards;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

/// Requests in the air on one socket; half of all identifiers, so that one rests before it comes again.
const MAX_WAITING: usize = 128;

/// Bytes that the kernel is asked to keep for a socket.
pub const BUFFER_BYTES: usize = 4 << 20;

/// Where a request went: a socket and an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    socket: usize,
    pub identifier: u8,
}

struct Socket {
    udp: UdpSocket,
    /// Who waits for the answer to each identifier.
    owners: [Option<usize>; 256],
    waiting: usize,
    next: u8,
}

/// As many sockets as there have to be.
pub struct Sockets {
    server: SocketAddr,
    sockets: Vec<Socket>,
    /// The kernel reported that no socket listens there.
    pub refused: bool,
}

impl Sockets {
    pub fn new(server: SocketAddr) -> Self {
        Self { server, sockets: Vec::new(), refused: false }
    }

    pub fn take(&mut self, owner: usize) -> Result<Place, EapError> {
        let socket = match self.sockets.iter().position(|socket| socket.waiting < MAX_WAITING) {
            Some(socket) => socket,
            None => {
                let failed = |source| EapError::Socket { address: self.server, source };
                self.sockets.push(Socket::open(self.server).map_err(failed)?);
                self.sockets.len() - 1
            }
        };
        let identifier = self.sockets[socket].take(owner);
        Ok(Place { socket, identifier })
    }

    /// The answer has come, or is no longer waited for.
    pub fn release(&mut self, place: Place) {
        let socket = &mut self.sockets[place.socket];
        if socket.owners[usize::from(place.identifier)].take().is_some() {
            socket.waiting -= 1;
        }
    }

    /// Sends a datagram. What the network loses is sent again later, and so is what the kernel refuses.
    pub fn send(&mut self, place: Place, packet: &[u8]) {
        let sent = self.sockets[place.socket].udp.send(packet);
        self.refused |= sent.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    }

    /// Waits until something arrives, at most for `limit`; a signal ends it early.
    pub fn wait(&self, limit: Duration) {
        let mut polled: Vec<_> =
            self.sockets.iter().map(|socket| PollFd::new(socket.udp.as_fd(), PollFlags::POLLIN)).collect();
        // An error means that the wait was cut short; the caller looks at everything again anyway.
        let _ = ppoll(&mut polled, Some(TimeSpec::from_duration(limit)), None);
    }

    /// Takes the next datagram that has arrived on any socket from `first` on, and says whose answer it may be.
    pub fn receive(&mut self, first: &mut usize, buffer: &mut [u8]) -> Option<(usize, Place, usize)> {
        while *first < self.sockets.len() {
            let socket = &self.sockets[*first];
            match socket.udp.recv(buffer) {
                Ok(length) => {
                    let Some(&identifier) = buffer.get(1).filter(|_| length > 1) else { continue };
                    // An unexpected datagram is an old answer, or forged.
                    if let Some(owner) = socket.owners[usize::from(identifier)] {
                        return Some((owner, Place { socket: *first, identifier }, length));
                    }
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => self.refused = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => *first += 1,
            }
        }
        None
    }
}

impl Socket {
    fn open(server: SocketAddr) -> std::io::Result<Self> {
        let udp = UdpSocket::bind(any_towards(server))?;
        udp.connect(server)?;
        udp.set_nonblocking(true)?;
        // A smaller buffer than asked for only loses more under load.
        let _ = socket2::SockRef::from(&udp).set_recv_buffer_size(BUFFER_BYTES);
        Ok(Self { udp, owners: [None; 256], waiting: 0, next: 0 })
    }

    fn take(&mut self, owner: usize) -> u8 {
        // At most half of them are taken.
        while self.owners[usize::from(self.next)].is_some() {
            self.next = self.next.wrapping_add(1);
        }
        let identifier = self.next;
        self.next = self.next.wrapping_add(1);
        self.owners[usize::from(identifier)] = Some(owner);
        self.waiting += 1;
        identifier
    }
}
