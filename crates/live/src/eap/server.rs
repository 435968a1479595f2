//! A RADIUS server on a UDP socket, on one thread.

use super::EapError;
use super::sockets::BUFFER_BYTES;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use shakedown_eap::radius::{MAX_PACKET_BYTES, Secret};
use shakedown_eap::service::{Environment, Limits, Service, Tally};
use shakedown_stacks::Acceptor;
use shakedown_trace::Endpoint;
use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub listen: SocketAddr,
    /// What is shared with every access point.
    pub secret: Secret,
    /// TLS bytes in a fragment; access points may ask for less.
    pub fragment_bytes: usize,
    pub limits: Limits,
}

/// The longest wait between two looks at whether to stop.
const BREATH: Duration = Duration::from_millis(50);
/// Datagrams that are answered between two such looks.
const BATCH: usize = 64;

/// How long authentications that have begun may take to end when the server is to stop.
const FAREWELL: Duration = Duration::from_secs(3);

struct Lab {
    acceptor: Arc<dyn Acceptor>,
}

impl Environment for Lab {
    type Endpoint = Box<dyn Endpoint>;

    fn endpoint(&mut self) -> Option<Self::Endpoint> {
        self.acceptor.accept().ok()
    }

    fn random(&mut self, bytes: &mut [u8]) {
        if openssl::rand::rand_bytes(bytes).is_err() {
            // A State that can be guessed is no State; this process has lost its randomness.
            std::process::abort();
        }
    }
}

/// Serves until `step` stops it; then ends what has begun, for some seconds at most, and begins nothing more.
/// `listening` is told the address; `step` is told how many authentications are over.
pub fn serve(
    options: &ServerOptions,
    acceptor: Arc<dyn Acceptor>,
    listening: &mut dyn FnMut(SocketAddr) -> ControlFlow<()>,
    step: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Tally, EapError> {
    let failed = |source| EapError::Listen { address: options.listen, source };
    let socket = UdpSocket::bind(options.listen).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    // A smaller buffer than asked for only loses more under load.
    let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(BUFFER_BYTES);
    let lab = Lab { acceptor };
    let mut service = Service::new(lab, options.secret.clone(), options.fragment_bytes, options.limits);
    let start = Instant::now();
    let mut buffer = [0; MAX_PACKET_BYTES + 1];
    if listening(socket.local_addr().map_err(failed)?).is_break() {
        return Ok(service.tally().clone());
    }
    let mut until = None;
    loop {
        let now = start.elapsed();
        let accepted = usize::try_from(service.tally().accepted).unwrap_or(usize::MAX);
        if until.is_none() && step(accepted).is_break() {
            service.close();
            until = Some(now + FAREWELL);
        }
        if until.is_some_and(|until| service.sessions() == 0 || now >= until) {
            return Ok(service.tally().clone());
        }
        service.handle_timeout(now);
        let next = service.poll_timeout().map_or(BREATH, |at| at.saturating_sub(now).min(BREATH));
        let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        // Cut short by a signal: `step` will know what to do about it.
        let _ = ppoll(&mut polled, Some(TimeSpec::from_duration(next)), None);
        for _ in 0..BATCH {
            // What a client's closed port leaves behind is no reason to stop; an empty socket ends the batch.
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { break };
            if let Some(reply) = service.handle(start.elapsed(), from, &buffer[..length]) {
                // What the kernel does not take, the client asks for again.
                let _ = socket.send_to(&reply, from);
            }
        }
    }
}
