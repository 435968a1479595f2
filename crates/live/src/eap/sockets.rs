//! UDP sockets to one server. A request's identifier has 8 bits, which limits the requests in flight of each socket.

use super::EapError;
use crate::socket::any_towards;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

/// Maximum number of requests in flight of a socket: half of all identifiers, so that none is reused immediately.
const MAX_WAITING: usize = 128;

/// Requested size of a socket's receive buffer.
pub const BUFFER_BYTES: usize = 4 << 20;

/// Socket and identifier of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    socket: usize,
    pub identifier: u8,
}

struct Socket {
    udp: UdpSocket,
    /// The authentication that waits for the response with each identifier.
    owners: [Option<usize>; 256],
    waiting: usize,
    next: u8,
}

/// Sockets, opened as they are needed.
pub struct Sockets {
    server: SocketAddr,
    sockets: Vec<Socket>,
    /// The kernel reported that no socket listens at the server's address.
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

    /// Releases the identifier of a request that was answered or given up.
    pub fn release(&mut self, place: Place) {
        let socket = &mut self.sockets[place.socket];
        if socket.owners[usize::from(place.identifier)].take().is_some() {
            socket.waiting -= 1;
        }
    }

    /// Sends a datagram. If the network or the kernel drops it, it is retransmitted later.
    pub fn send(&mut self, place: Place, packet: &[u8]) {
        let sent = self.sockets[place.socket].udp.send(packet);
        self.refused |= sent.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    }

    /// Waits until something arrives, at most for `limit`; a signal ends it early.
    pub fn wait(&self, limit: Duration) {
        let mut polled: Vec<_> =
            self.sockets.iter().map(|socket| PollFd::new(socket.udp.as_fd(), PollFlags::POLLIN)).collect();
        // After an error the wait was shorter; the caller checks everything again anyway.
        let _ = ppoll(&mut polled, Some(TimeSpec::from_duration(limit)), None);
    }

    /// Receives the next datagram from the sockets from `first` on; returns its possible owner, its place and its
    /// length.
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
        // With a smaller buffer than requested, only more datagrams are lost under load.
        let _ = socket2::SockRef::from(&udp).set_recv_buffer_size(BUFFER_BYTES);
        Ok(Self { udp, owners: [None; 256], waiting: 0, next: 0 })
    }

    fn take(&mut self, owner: usize) -> u8 {
        // At most half of the identifiers are in use.
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
