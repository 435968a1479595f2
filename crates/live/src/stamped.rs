//! Input with the time that has passed since the system took it from the network: how long it waited to be read.

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrLike, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Something that was received.
pub struct Stamped {
    /// How much.
    pub bytes: usize,
    /// Who sent it, where the socket has no peer of its own.
    pub peer: Option<SocketAddr>,
    /// From its arrival until it was asked for; of several chunks of a stream, the last one's. `None`: it came before the
    /// system was asked to keep times.
    pub waited: Option<Duration>,
}

/// Asks the system to keep the times of arrival for a socket, and for those that it accepts.
///
/// # Errors
/// What the system says.
pub fn enable(socket: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(socket, sockopt::ReceiveTimestampns, &true)?)
}

/// Receives a datagram.
///
/// # Errors
/// As of any read.
pub fn receive(socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<Stamped> {
    let (bytes, address, waited) = read::<SockaddrStorage>(socket, buffer)?;
    let peer = address.and_then(|address| {
        let four = address.as_sockaddr_in().map(|four| SocketAddr::V4((*four).into()));
        four.or_else(|| address.as_sockaddr_in6().map(|six| SocketAddr::V6((*six).into())))
    });
    Ok(Stamped { bytes, peer, waited })
}

/// Receives a chunk of a stream.
///
/// # Errors
/// As of any read.
pub fn receive_chunk(socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<Stamped> {
    // The system writes no address for a stream, so none is asked for: nobody could tell it from what was in memory.
    let (bytes, _, waited) = read::<()>(socket, buffer)?;
    Ok(Stamped { bytes, peer: None, waited })
}

fn read<A: SockaddrLike>(
    socket: &impl AsRawFd,
    buffer: &mut [u8],
) -> io::Result<(usize, Option<A>, Option<Duration>)> {
    let mut control = nix::cmsg_space!(TimeSpec);
    let mut parts = [IoSliceMut::new(buffer)];
    let fd = socket.as_raw_fd();
    // Reading is work already.
    let asked = SystemTime::now();
    let received = recvmsg::<A>(fd, &mut parts, Some(&mut control), MsgFlags::empty())
        .map_err(|error: Errno| io::Error::from(error))?;
    let waited = received.cmsgs().ok().and_then(|mut messages| {
        messages.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(arrived) => {
                Some(asked.duration_since(UNIX_EPOCH + Duration::from(arrived)).unwrap_or_default())
            }
            _ => None,
        })
    });
    Ok((received.bytes, received.address, waited))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::thread::sleep;

    const NAP: Duration = Duration::from_millis(30);

    #[test]
    fn what_lay_in_a_socket_waited() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        enable(&socket).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(b"hello", socket.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 64];
        // On a busy machine the kernel takes it in, and notes the time, only a while after it was sent.
        socket.peek(&mut buffer).unwrap();
        sleep(NAP);
        let received = receive(&socket, &mut buffer).unwrap();
        assert_eq!((received.bytes, received.peer), (5, Some(sender.local_addr().unwrap())));
        assert!(received.waited.unwrap() >= NAP);
    }

    #[test]
    fn accepted_sockets_keep_times_as_the_listening_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        enable(&listener).unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        sender.write_all(b"hello").unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.peek(&mut [0; 1]).unwrap();
        sleep(NAP);
        let received = receive_chunk(&socket, &mut [0; 64]).unwrap();
        assert_eq!((received.bytes, received.peer), (5, None));
        assert!(received.waited.unwrap() >= NAP);
    }
}
