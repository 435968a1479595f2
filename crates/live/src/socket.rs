//! Binds sockets, once or once per worker, with options that the system does not set by default; the descriptor limit.

use mio::net::{TcpListener, UdpSocket};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Maximum number of connections that wait to be accepted; the system may reduce it.
const BACKLOG: i32 = 4_096;

/// Size of a datagram socket's buffers, for bursts of first flights.
const DATAGRAM_BUFFER_BYTES: usize = 4 << 20;

/// `count` listening sockets at one address, which share its connections.
///
/// # Errors
/// Errors of the system; [`io::ErrorKind::AddrInUse`] if another program listens there.
pub fn bind_tcp(address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    let sockets = bind(address, count, Type::STREAM, Protocol::TCP)?;
    sockets
        .into_iter()
        .map(|socket| {
            // Accepted sockets inherit this option.
            socket.set_tcp_nodelay(true)?;
            socket.listen(BACKLOG)?;
            Ok(TcpListener::from_std(socket.into()))
        })
        .collect()
}

/// `count` sockets at one address; all datagrams of a peer arrive at the same one.
pub fn bind_udp(address: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    let sockets = bind(address, count, Type::DGRAM, Protocol::UDP)?;
    sockets
        .into_iter()
        .map(|socket| {
            // The system may allow less; then only more datagrams of bursts are lost.
            let _ = socket.set_recv_buffer_size(DATAGRAM_BUFFER_BYTES);
            let _ = socket.set_send_buffer_size(DATAGRAM_BUFFER_BYTES);
            Ok(UdpSocket::from_std(socket.into()))
        })
        .collect()
}

fn bind(address: SocketAddr, count: usize, kind: Type, protocol: Protocol) -> io::Result<Vec<Socket>> {
    let open = |address: SocketAddr, shared: bool| {
        let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
        if kind == Type::STREAM {
            // An earlier server's connections in TIME_WAIT do not block the address.
            socket.set_reuse_address(true)?;
        }
        socket.set_reuse_port(shared)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        io::Result::Ok(socket)
    };
    // With SO_REUSEPORT, another server of the same user could share the address, so the first socket is bound without
    // it, which fails if the address is in use.
    let alone = open(address, false)?;
    if count <= 1 {
        return Ok(vec![alone]);
    }
    let Some(address) = alone.local_addr()?.as_socket() else {
        return Err(io::ErrorKind::AddrNotAvailable.into());
    };
    drop(alone);
    (0..count).map(|_| open(address, true)).collect()
}

/// The unspecified address of a peer's address family, for binding a socket that connects to the peer.
pub fn any_towards(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// Number of bytes read or written; `None` if the socket would block.
pub fn unless_blocked(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Raises this process's descriptor limit to `wanted`, or as far as the system allows, and returns the limit. `None` if
/// the limit is unknown.
pub fn descriptor_limit(wanted: u64) -> Option<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let raised = wanted.min(hard).max(soft);
    Some(if setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_ok() { raised } else { soft })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ANY: &str = "127.0.0.1:0";

    #[test]
    fn workers_share_an_address() {
        let sockets = bind_tcp(ANY.parse().unwrap(), 3).unwrap();
        let addresses: Vec<_> = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
        assert!(addresses.iter().all(|address| *address == addresses[0]), "{addresses:?}");
    }

    #[test]
    fn address_in_use_is_refused_for_any_number_of_workers() {
        let taken = bind_tcp(ANY.parse().unwrap(), 2).unwrap();
        let address = taken[0].local_addr().unwrap();
        for count in [1, 2] {
            let error = bind_tcp(address, count).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        }
        let taken = bind_udp(ANY.parse().unwrap(), 1).unwrap();
        let error = bind_udp(taken[0].local_addr().unwrap(), 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
