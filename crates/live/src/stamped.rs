//! Input with its queue wait: the time from its arrival at this machine to its reading.

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrLike, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time limit for Linux to start to record arrival times; it takes milliseconds, and longer on a busy machine.
const MAX_START: Duration = Duration::from_secs(30);
const PROBE_EVERY: Duration = Duration::from_millis(1);

pub struct Stamped {
    pub bytes: usize,
    /// The sender of a datagram.
    pub peer: Option<SocketAddr>,
    /// From its arrival to the call that reads it; of several chunks of a stream, that of the last one. `None` if it
    /// arrived before [`enable`] returned.
    pub waited: Option<Duration>,
}

/// Enables arrival times for a socket and for those that it accepts, and returns when the system records them.
///
/// Linux records no times until the first socket requests them, and then starts in a work queue, some time after
/// `setsockopt` has returned. Input that arrives before has no time (streams), or the time at which it is read
/// (datagrams). Afterwards, `socket` and each socket accepted from it keep the recording enabled.
///
/// # Errors
/// Errors of the system; [`io::ErrorKind::TimedOut`] if it accepts the option but records no times.
pub fn enable(socket: &impl AsFd) -> io::Result<()> {
    setsockopt(socket, sockopt::ReceiveTimestampns, &true)?;
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sender.connect(receiver.local_addr()?)?;
    receiver.connect(sender.local_addr()?)?;
    receiver.set_nonblocking(true)?;
    setsockopt(&receiver, sockopt::ReceiveTimestampns, &true)?;
    let until = Instant::now() + MAX_START;
    while Instant::now() < until {
        sender.send(&[0])?;
        match receive(&receiver, &mut [0]) {
            // A time before the read is an arrival time; without one, Linux substitutes a later time.
            Ok(Stamped { waited: Some(waited), .. }) if !waited.is_zero() => return Ok(()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        sleep(PROBE_EVERY);
    }
    let limit_s = MAX_START.as_secs();
    let text = format!(
        "the system does not record arrival times (SO_TIMESTAMPNS), {limit_s} s after it was asked to"
    );
    Err(io::Error::new(io::ErrorKind::TimedOut, text))
}

/// Receives a datagram.
pub fn receive(socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<Stamped> {
    let (bytes, address, waited) = read::<SockaddrStorage>(socket, buffer)?;
    let peer = address.and_then(|address| {
        let four = address.as_sockaddr_in().map(|four| SocketAddr::V4((*four).into()));
        four.or_else(|| address.as_sockaddr_in6().map(|six| SocketAddr::V6((*six).into())))
    });
    Ok(Stamped { bytes, peer, waited })
}

pub fn receive_chunk(socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<Stamped> {
    // Linux writes no address for a stream, so none is requested: its buffer would be uninitialised.
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
    // Before the read, which belongs to the service time.
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
    use std::net::{TcpListener, TcpStream};

    const NAP: Duration = Duration::from_millis(30);

    /// Checks the wait of input that arrives between the calls of `send` and `is_there` and is read after a nap.
    fn receive_after_a_nap(
        send: impl FnOnce(),
        is_there: impl FnOnce(),
        receive: impl FnOnce() -> Stamped,
    ) -> Stamped {
        let before = SystemTime::now();
        send();
        is_there();
        let there = SystemTime::now();
        sleep(NAP);
        let asked = SystemTime::now();
        let received = receive();
        let waited = received.waited.unwrap();
        assert!(asked.duration_since(there).unwrap() <= waited, "{waited:?}");
        assert!(waited <= before.elapsed().unwrap(), "{waited:?}");
        received
    }

    #[test]
    fn time_in_the_socket_buffer_counts_as_wait() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        enable(&socket).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let received = receive_after_a_nap(
            || assert_eq!(sender.send_to(b"hello", socket.local_addr().unwrap()).unwrap(), 5),
            || assert_eq!(socket.peek(&mut [0; 64]).unwrap(), 5),
            || receive(&socket, &mut [0; 64]).unwrap(),
        );
        assert_eq!((received.bytes, received.peer), (5, Some(sender.local_addr().unwrap())));
    }

    #[test]
    fn accepted_sockets_inherit_timestamping() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        enable(&listener).unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        let received = receive_after_a_nap(
            || sender.write_all(b"hello").unwrap(),
            || assert_eq!(socket.peek(&mut [0; 1]).unwrap(), 1),
            || receive_chunk(&socket, &mut [0; 64]).unwrap(),
        );
        assert_eq!((received.bytes, received.peer), (5, None));
    }

    #[test]
    fn first_received_data_has_a_timestamp() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connected = || {
            let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (sender, listener.accept().unwrap().0)
        };
        for round in 0..30 {
            // Waits until the system has stopped recording times, as it does when no socket requests them.
            for _ in 0..30 {
                let (mut sender, socket) = connected();
                sender.write_all(b"hello").unwrap();
                socket.peek(&mut [0; 1]).unwrap();
                setsockopt(&socket, sockopt::ReceiveTimestampns, &true).unwrap();
                let kept = receive_chunk(&socket, &mut [0; 64]).unwrap().waited.is_some();
                drop(socket);
                sleep(PROBE_EVERY);
                if !kept {
                    break;
                }
            }
            let (mut sender, socket) = connected();
            enable(&socket).unwrap();
            sender.write_all(b"hello").unwrap();
            assert!(receive_chunk(&socket, &mut [0; 64]).unwrap().waited.is_some(), "round {round}");
        }
    }
}
