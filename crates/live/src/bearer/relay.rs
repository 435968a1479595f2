//! Relays traffic that arrives at the gateway to servers on this host's loopback.
//!
//! A client's first packet names a port. If a server on this host listens on that port, the gateway's child creates a
//! socket for it in its namespace before the packet arrives. Otherwise the gateway's kernel refuses the connection
//! after a round trip, as a host would. The connection over the bearer therefore ends in the gateway's kernel, and a
//! second connection leads from there to the server.

use super::end::{GATEWAY, SocketKind, ask_socket};
use super::sys;
use crate::socket::unless_blocked;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum number of open connections; further ones are accepted when one has ended.
const MAX_CONNECTIONS: usize = 1024;
/// Bytes held for each direction of a connection.
const BUFFER_BYTES: usize = 16 * 1024;
/// Maximum number of peers of a UDP port; a new peer then replaces the one that was silent longest.
const MAX_PEERS: usize = 256;
/// A peer is removed after this time of silence.
const PEER_IDLE: Duration = Duration::from_secs(120);

/// Handle of a relay, which runs in its own thread.
pub(super) struct Relay {
    sockets: Sender<(SocketKind, SocketAddr, OwnedFd)>,
    wake: UnixDatagram,
    control: OwnedFd,
    known: HashSet<(SocketKind, u16)>,
}

/// Ends the relay when it is dropped.
pub(super) struct Running {
    thread: Option<JoinHandle<()>>,
    wake: UnixDatagram,
}

impl Relay {
    /// Starts the thread. `control` is the control socket of the gateway's child.
    pub(super) fn start(control: OwnedFd) -> io::Result<(Self, Running)> {
        let (sockets, received) = channel();
        let (wake, woken) = UnixDatagram::pair()?;
        woken.set_nonblocking(true)?;
        let end = wake.try_clone()?;
        let thread = std::thread::Builder::new().name("bearer relay".to_owned()).spawn(move || {
            Work { received, woken, ports: Vec::new(), connections: Vec::new() }.run();
        })?;
        let relay = Self { sockets, wake, control, known: HashSet::new() };
        Ok((relay, Running { thread: Some(thread), wake: end }))
    }

    /// Relays a port of the gateway from now on, if a server on this host's loopback listens on it.
    pub(super) fn open(&mut self, kind: SocketKind, port: u16) {
        if self.known.contains(&(kind, port)) {
            return;
        }
        let Some(server) = server(kind, port) else { return };
        // Without a socket, the gateway's kernel refuses the connection.
        if let Ok(socket) = ask_socket(&self.control, kind, GATEWAY, port) {
            self.known.insert((kind, port));
            if self.sockets.send((kind, server, socket)).is_ok() {
                let _ = self.wake.send(&[0]);
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.wake.send(&[1]);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Address of the server on this host's loopback that listens on a port, from the kernel's socket tables.
fn server(kind: SocketKind, port: u16) -> Option<SocketAddr> {
    let (tables, state) = match kind {
        SocketKind::Tcp => (["/proc/net/tcp", "/proc/net/tcp6"], "0A"),
        SocketKind::Udp => (["/proc/net/udp", "/proc/net/udp6"], "07"),
    };
    let four = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let six = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    let mut found = None;
    for table in tables {
        let Ok(text) = std::fs::read_to_string(table) else { continue };
        for line in text.lines().skip(1) {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (Some(local), Some(_), Some(found_state)) = (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let Some((address, hexadecimal)) = local.split_once(':') else { continue };
            if found_state != state || u16::from_str_radix(hexadecimal, 16) != Ok(port) {
                continue;
            }
            match address {
                // 127.0.0.1 in either byte order, 0.0.0.0, and ::, which accepts IPv4 too.
                "0100007F" | "7F000001" | "00000000" | "00000000000000000000000000000000" => {
                    return Some(four);
                }
                "00000000000000000000000001000000" | "00000000000000000000000000000001" => found = Some(six),
                _ => {}
            }
        }
    }
    found
}

enum Port {
    Tcp { listener: TcpListener, server: SocketAddr },
    Udp { socket: UdpSocket, server: SocketAddr, peers: HashMap<SocketAddr, Peer> },
}

struct Peer {
    socket: UdpSocket,
    last: Instant,
}

/// One direction of a connection, with the bytes that were read and not yet written.
#[derive(Default)]
struct Pipe {
    buffer: Vec<u8>,
    from: usize,
    is_ended: bool,
    is_shut: bool,
}

impl Pipe {
    fn is_empty(&self) -> bool {
        self.from == self.buffer.len()
    }

    /// Transfers bytes until a read or a write would block.
    fn carry(&mut self, mut source: &TcpStream, mut sink: &TcpStream) -> io::Result<()> {
        loop {
            if self.is_empty() && !self.is_ended {
                self.from = 0;
                self.buffer.resize(BUFFER_BYTES, 0);
                let got = unless_blocked(source.read(&mut self.buffer));
                self.buffer.truncate(got.as_ref().ok().copied().flatten().unwrap_or(0));
                match got? {
                    Some(0) => self.is_ended = true,
                    Some(_) => {}
                    None => return Ok(()),
                }
            }
            if self.is_empty() {
                if !self.is_shut {
                    self.is_shut = true;
                    // The sink may be closed already.
                    let _ = sink.shutdown(Shutdown::Write);
                }
                return Ok(());
            }
            match unless_blocked(sink.write(&self.buffer[self.from..]))? {
                Some(put) => self.from += put,
                None => return Ok(()),
            }
        }
    }

    /// Events to wait for: (at the source, at the sink).
    fn awaits(&self) -> (libc::c_short, libc::c_short) {
        match (self.is_empty(), self.is_ended) {
            (false, _) => (0, libc::POLLOUT),
            (true, false) => (libc::POLLIN, 0),
            (true, true) => (0, 0),
        }
    }
}

struct Connection {
    near: TcpStream,
    far: TcpStream,
    up: Pipe,
    down: Pipe,
}

impl Connection {
    fn open(near: TcpStream, server: SocketAddr) -> io::Result<Self> {
        near.set_nonblocking(true)?;
        near.set_nodelay(true)?;
        let far = socket2::Socket::new(socket2::Domain::for_address(server), socket2::Type::STREAM, None)?;
        far.set_nonblocking(true)?;
        far.set_tcp_nodelay(true)?;
        match far.connect(&server.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
                reset(&near);
                return Err(error);
            }
            _ => {}
        }
        Ok(Self { near, far: far.into(), up: Pipe::default(), down: Pipe::default() })
    }

    /// Transfers bytes in both directions; false when both are shut down, or after an error.
    fn carry(&mut self) -> bool {
        let carried =
            self.up.carry(&self.near, &self.far).and_then(|()| self.down.carry(&self.far, &self.near));
        if carried.is_err() {
            reset(&self.near);
            reset(&self.far);
            return false;
        }
        !(self.up.is_shut && self.down.is_shut)
    }
}

/// Makes closing the stream send a reset.
fn reset(stream: &TcpStream) {
    let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

struct Work {
    received: Receiver<(SocketKind, SocketAddr, OwnedFd)>,
    woken: UnixDatagram,
    ports: Vec<Port>,
    connections: Vec<Connection>,
}

impl Work {
    fn run(&mut self) {
        let mut datagram = vec![0; 65_536];
        loop {
            let mut entries = self.entries();
            if sys::poll(&mut entries, Some(1_000_000_000)).is_err() {
                return;
            }
            let mut word = [0];
            while let Ok(got) = self.woken.recv(&mut word) {
                if got == 1 && word[0] == 1 {
                    return;
                }
            }
            self.take_sockets();
            let accepts = self.connections.len() < MAX_CONNECTIONS;
            for port in &mut self.ports {
                match port {
                    Port::Tcp { listener, server } if accepts => {
                        while let Ok((near, _)) = listener.accept() {
                            if let Ok(connection) = Connection::open(near, *server) {
                                self.connections.push(connection);
                            }
                        }
                    }
                    Port::Tcp { .. } => {}
                    Port::Udp { socket, server, peers } => datagrams(socket, *server, peers, &mut datagram),
                }
            }
            self.connections.retain_mut(Connection::carry);
        }
    }

    fn entries(&self) -> Vec<libc::pollfd> {
        let mut entries = vec![sys::readable(self.woken.as_raw_fd())];
        let accepts = self.connections.len() < MAX_CONNECTIONS;
        for port in &self.ports {
            match port {
                Port::Tcp { listener, .. } if accepts => entries.push(sys::readable(listener.as_raw_fd())),
                Port::Tcp { .. } => {}
                Port::Udp { socket, peers, .. } => {
                    entries.push(sys::readable(socket.as_raw_fd()));
                    entries.extend(peers.values().map(|peer| sys::readable(peer.socket.as_raw_fd())));
                }
            }
        }
        for connection in &self.connections {
            let (up, down) = (connection.up.awaits(), connection.down.awaits());
            for (stream, events) in [(&connection.near, up.0 | down.1), (&connection.far, up.1 | down.0)] {
                // A descriptor without events would only report errors, in every poll.
                if events != 0 {
                    entries.push(libc::pollfd { fd: stream.as_raw_fd(), events, revents: 0 });
                }
            }
        }
        entries
    }

    fn take_sockets(&mut self) {
        while let Ok((kind, server, socket)) = self.received.try_recv() {
            self.ports.push(match kind {
                SocketKind::Tcp => Port::Tcp { listener: socket.into(), server },
                SocketKind::Udp => Port::Udp { socket: socket.into(), server, peers: HashMap::new() },
            });
        }
    }
}

/// Relays the datagrams of a port in both directions. Those that cannot be sent are dropped.
fn datagrams(
    socket: &UdpSocket,
    server: SocketAddr,
    peers: &mut HashMap<SocketAddr, Peer>,
    buffer: &mut [u8],
) {
    let now = Instant::now();
    while let Ok((got, from)) = socket.recv_from(buffer) {
        if !peers.contains_key(&from) {
            let Ok(connected) = peer_socket(server) else { continue };
            let oldest = peers.iter().min_by_key(|(_, peer)| peer.last).map(|(address, _)| *address);
            if let (true, Some(oldest)) = (peers.len() >= MAX_PEERS, oldest) {
                peers.remove(&oldest);
            }
            peers.insert(from, Peer { socket: connected, last: now });
        }
        if let Some(peer) = peers.get_mut(&from) {
            peer.last = now;
            let _ = peer.socket.send(&buffer[..got]);
        }
    }
    for (address, peer) in peers.iter_mut() {
        while let Ok(got) = peer.socket.recv(buffer) {
            peer.last = now;
            let _ = socket.send_to(&buffer[..got], address);
        }
    }
    peers.retain(|_, peer| now.duration_since(peer.last) < PEER_IDLE);
}

fn peer_socket(server: SocketAddr) -> io::Result<UdpSocket> {
    let any = if server.is_ipv4() {
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
    } else {
        (Ipv6Addr::LOCALHOST, 0).into()
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
