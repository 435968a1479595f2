//! One connection's socket.

use crate::socket::{any_towards, unless_blocked};
use mio::event::Source;
use mio::net::{TcpStream, UdpSocket};
use mio::{Interest, Registry, Token};
use shakedown_trace::endpoint::Transport;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::SocketAddr;

/// A non-blocking socket of either transport.
pub enum Socket {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

impl Socket {
    pub fn connect(transport: Transport, address: SocketAddr) -> Result<Self> {
        match transport {
            Transport::Stream => TcpStream::connect(address).map(Self::Tcp),
            Transport::Datagram => {
                let socket = UdpSocket::bind(any_towards(address))?;
                socket.connect(address)?;
                Ok(Self::Udp(socket))
            }
        }
    }

    /// Registers for readiness to read and, for TCP, to write.
    pub fn register(&mut self, registry: &Registry, token: Token) -> Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        match self {
            Self::Tcp(socket) => socket.register(registry, token, both),
            Self::Udp(socket) => socket.register(registry, token, Interest::READABLE),
        }
    }

    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(socket) => socket.local_addr().ok(),
            Self::Udp(socket) => socket.local_addr().ok(),
        }
    }

    /// Whether the connection is established; always true for datagrams.
    pub fn is_connected(&mut self) -> Result<bool> {
        match self {
            // Writes nothing; the result shows whether writing is possible.
            Self::Tcp(socket) => is_ready(socket.write(&[]).map(drop)),
            Self::Udp(_) => Ok(true),
        }
    }

    /// Sends as much as the socket accepts; `None` if it would block.
    pub fn send(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        unless_blocked(match self {
            Self::Tcp(socket) => socket.write(bytes),
            Self::Udp(socket) => socket.send(bytes),
        })
    }

    /// Receives a chunk or a datagram; `None` if the socket would block.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>> {
        unless_blocked(match self {
            Self::Tcp(socket) => socket.read(buffer),
            Self::Udp(socket) => socket.recv(buffer),
        })
    }
}

fn is_ready(result: Result<()>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
