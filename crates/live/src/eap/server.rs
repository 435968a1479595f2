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
    /// Secret shared with every access point.
    pub secret: Secret,
    /// TLS bytes in a fragment; access points may request fewer.
    pub fragment_bytes: usize,
    pub limits: Limits,
}

/// Maximum wait between two calls of `step`.
const MAX_STEP_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of datagrams that are handled between two calls of `step`.
const BATCH: usize = 64;

/// Time in which authentications in progress may end after a stop request.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);

struct AcceptorEnvironment {
    acceptor: Arc<dyn Acceptor>,
}

impl Environment for AcceptorEnvironment {
    type Endpoint = Box<dyn Endpoint>;

    fn endpoint(&mut self) -> Option<Self::Endpoint> {
        self.acceptor.accept().ok()
    }

    fn random(&mut self, bytes: &mut [u8]) {
        if openssl::rand::rand_bytes(bytes).is_err() {
            // Without random numbers, State would be predictable, so the process must not continue.
            std::process::abort();
        }
    }
}

/// Serves until `step` stops it. Then no authentication begins, and those in progress may end within `SHUTDOWN_GRACE`.
/// `listening` gets the address, and `step` the number of accepted authentications.
pub fn serve(
    options: &ServerOptions,
    acceptor: Arc<dyn Acceptor>,
    listening: &mut dyn FnMut(SocketAddr) -> ControlFlow<()>,
    step: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Tally, EapError> {
    let failed = |source| EapError::Listen { address: options.listen, source };
    let socket = UdpSocket::bind(options.listen).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    // With a smaller buffer than requested, only more datagrams are lost under load.
    let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(BUFFER_BYTES);
    let environment = AcceptorEnvironment { acceptor };
    let mut service =
        Service::new(environment, options.secret.clone(), options.fragment_bytes, options.limits);
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
            until = Some(now + SHUTDOWN_GRACE);
        }
        if until.is_some_and(|until| service.sessions() == 0 || now >= until) {
            return Ok(service.tally().clone());
        }
        service.handle_timeout(now);
        let next = service
            .poll_timeout()
            .map_or(MAX_STEP_INTERVAL, |at| at.saturating_sub(now).min(MAX_STEP_INTERVAL));
        let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        // If a signal interrupts the wait, `step` handles it.
        let _ = ppoll(&mut polled, Some(TimeSpec::from_duration(next)), None);
        for _ in 0..BATCH {
            // An ICMP error of a client's closed port, or an empty socket, ends the batch.
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { break };
            if let Some(reply) = service.handle(start.elapsed(), from, &buffer[..length]) {
                // If the kernel does not accept a reply, the client repeats its request.
                let _ = socket.send_to(&reply, from);
            }
        }
    }
}
