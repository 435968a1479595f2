//! Sockets, bound once or once a worker, with what the defaults of the system leave out; and how many there may be.

use mio::net::{TcpListener, UdpSocket};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Connections that wait to be accepted; the system cuts it down to its own limit.
const BACKLOG: i32 = 4_096;

/// Bytes of a datagram socket's buffers: bursts of first flights wait there.
const DATAGRAM_BUFFER_BYTES: usize = 4 << 20;

/// As many listening sockets at one address as asked for, each with a share of the connections.
///
/// # Errors
/// What the system says; [`io::ErrorKind::AddrInUse`] where another program listens there.
pub fn bind_tcp(address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    let sockets = bind(address, count, Type::STREAM, Protocol::TCP)?;
    sockets
        .into_iter()
        .map(|socket| {
            // Accepted sockets inherit it.
            socket.set_tcp_nodelay(true)?;
            socket.listen(BACKLOG)?;
            Ok(TcpListener::from_std(socket.into()))
        })
        .collect()
}

/// As many sockets at one address as asked for; all datagrams of a peer reach the same one.
pub fn bind_udp(address: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    let sockets = bind(address, count, Type::DGRAM, Protocol::UDP)?;
    sockets
        .into_iter()
        .map(|socket| {
            // The system may allow less; then bursts lose more, and nothing else changes.
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
            // Connections of an earlier server that are still being forgotten do not hold the address.
            socket.set_reuse_address(true)?;
        }
        socket.set_reuse_port(shared)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        io::Result::Ok(socket)
    };
    // Sockets that share an address would also share it with another server of the same user: the first is bound
    // alone, which fails where anybody is there.
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

/// Any address of this machine from which a peer can be reached.
pub fn any_towards(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// Bytes that a socket took or gave; `None`: none for now.
pub fn unless_blocked(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Raises this process's limit of descriptors to as many as are wanted, or as the system allows; the limit then. `None`:
/// the system does not tell.
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
    fn an_address_in_use_is_refused_however_many_workers_want_it() {
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
