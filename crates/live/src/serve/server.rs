//! A running server: its workers, its shutdown and its summary.

use super::config::{Config, MAX_DATAGRAM_PAYLOAD_BYTES, ServeError};
use super::datagrams::DatagramWorker;
use super::exporter::Exporter;
use super::parts::{Parts, ShutdownSignal};
use super::summary::Summary;
use super::tally::{QueueTrace, Tally, lock};
use super::traces::Sampler;
use super::worker::Worker;
use crate::socket;
use mio::Waker;
use shakedown_certs::supplied::AnyIdentity;
use shakedown_stacks::{Acceptor, Exposure, Identities, ListenLimits, Settings, SetupError};
use shakedown_trace::endpoint::Transport;
use shakedown_trace::{Side, StackId, Suite};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Descriptors that are reserved for standard streams, listening sockets, polls and files.
const DESCRIPTORS_KEPT: u64 = 64;

pub struct Server {
    address: SocketAddr,
    stack: StackId,
    roots: Vec<Vec<u8>>,
    epoch: Instant,
    config: Arc<Config>,
    shutdown: Arc<ShutdownSignal>,
    wakers: Vec<Waker>,
    workers: Vec<JoinHandle<io::Result<()>>>,
    tallies: Arc<[Arc<Tally>]>,
    exporter: Option<Exporter>,
    failed: Option<String>,
}

/// Creates a server's endpoints.
struct Stacked {
    acceptor: Arc<dyn Acceptor>,
    stack: StackId,
    /// Roots that clients must trust, as DER.
    roots: Vec<Vec<u8>>,
}

impl Server {
    /// Binds its addresses and begins to serve.
    ///
    /// # Errors
    /// [`ServeError`]; no socket listens then.
    pub fn start(config: Config, settings: &Settings) -> Result<Self, ServeError> {
        let transport = transport(&config.suites)?;
        let Stacked { acceptor, stack, roots } = stacked(&config, settings)?;
        let workers = config.workers.max(1);
        let epoch = Instant::now();
        let tallies: Arc<[Arc<Tally>]> =
            (0..workers).map(|_| Arc::new(Tally::keeping(config.max_queue_traces))).collect();
        let config = Arc::new(config);
        let mut server = Self {
            address: config.listen,
            stack,
            roots,
            epoch,
            shutdown: Arc::default(),
            wakers: Vec::new(),
            workers: Vec::new(),
            tallies: Arc::clone(&tallies),
            exporter: None,
            failed: None,
            config: Arc::clone(&config),
        };
        let each = |limit: usize| limit.div_ceil(workers).max(1);
        let listening = |error| ServeError::Listen { address: config.listen, error };
        let system = |error| ServeError::System { what: "a worker", error };
        match transport {
            Transport::Stream => {
                let listeners = socket::bind_tcp(config.listen, workers).map_err(listening)?;
                server.address = listeners[0].local_addr().map_err(listening)?;
                server.export()?;
                let sampler = server.sampler()?;
                let max_connections = each(connections_within_limits(config.max_connections));
                for (listener, tally) in listeners.into_iter().zip(tallies.iter()) {
                    let parts = server.parts(sampler.clone(), tally, each(config.max_handshakes));
                    let made = Worker::new(parts, Arc::clone(&acceptor), max_connections, listener);
                    let (worker, waker) = made.map_err(system)?;
                    server.spawn(waker, move || worker.run())?;
                }
            }
            Transport::Datagram => {
                if config.payload_bytes > MAX_DATAGRAM_PAYLOAD_BYTES {
                    return Err(ServeError::Payload { bytes: config.payload_bytes });
                }
                let sockets = socket::bind_udp(config.listen, workers).map_err(listening)?;
                server.address = sockets[0].local_addr().map_err(listening)?;
                server.export()?;
                let sampler = server.sampler()?;
                let limits = ListenLimits {
                    handshakes: each(config.max_handshakes),
                    connections: each(config.max_connections),
                    idle: config.idle_timeout,
                };
                for (socket, tally) in sockets.into_iter().zip(tallies.iter()) {
                    let parts = server.parts(sampler.clone(), tally, limits.handshakes);
                    let listener = acceptor
                        .listen(limits)
                        .ok_or_else(|| system(io::Error::other("the stack has no listener for datagrams")))?;
                    let (worker, waker) = DatagramWorker::new(parts, listener, socket).map_err(system)?;
                    server.spawn(waker, move || worker.run())?;
                }
            }
        }
        Ok(server)
    }

    fn parts(&self, sampler: Option<Arc<Sampler>>, tally: &Arc<Tally>, max_handshakes: usize) -> Parts {
        Parts {
            epoch: self.epoch,
            config: Arc::clone(&self.config),
            sampler,
            tally: Arc::clone(tally),
            shutdown: Arc::clone(&self.shutdown),
            max_handshakes,
        }
    }

    fn export(&mut self) -> Result<(), ServeError> {
        if let Some(address) = self.config.metrics {
            let exporter = Exporter::start(address, Arc::clone(&self.tallies), self.epoch)
                .map_err(|error| ServeError::Listen { address, error })?;
            self.exporter = Some(exporter);
        }
        Ok(())
    }

    fn sampler(&self) -> Result<Option<Arc<Sampler>>, ServeError> {
        if !self.config.instrumented() {
            return Ok(None);
        }
        let suites = self.config.suites.iter().map(Suite::to_string).collect();
        let path = self.config.traces.as_deref();
        let sampler = Sampler::new(self.config.sample, path, suites, self.stack.clone());
        let failed = |error| ServeError::Traces {
            path: path.map(|path| path.display().to_string()).unwrap_or_default(),
            error,
        };
        Ok(Some(Arc::new(sampler.map_err(failed)?)))
    }

    fn spawn(
        &mut self,
        waker: Waker,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let name = format!("serve-{}", self.workers.len());
        let thread = std::thread::Builder::new().name(name).spawn(work);
        let thread = thread.map_err(|error| ServeError::System { what: "a worker", error })?;
        self.wakers.push(waker);
        self.workers.push(thread);
        Ok(())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.exporter.as_ref().map(Exporter::address)
    }

    /// Roots that clients must trust, as DER; empty if no suite has X.509 certificates.
    pub fn roots(&self) -> &[Vec<u8>] {
        &self.roots
    }

    pub fn stack(&self) -> &StackId {
        &self.stack
    }

    /// Stops accepting, closes idle connections, and lets the others continue until the drain timeout.
    pub fn stop(&self) {
        self.shut_down(ShutdownSignal::DRAIN);
    }

    /// Closes all connections immediately.
    pub fn cut(&self) {
        self.shut_down(ShutdownSignal::STOP);
    }

    fn shut_down(&self, request: u8) {
        self.shutdown.raise(request);
        for waker in &self.wakers {
            // A worker that has ended needs no waking.
            let _ = waker.wake();
        }
    }

    /// Waits for the end of all workers, at most for `timeout`. True if they have ended.
    ///
    /// # Errors
    /// [`ServeError::Worker`] if a worker failed; the others are stopped.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, ServeError> {
        const STEP: Duration = Duration::from_millis(10);
        let until = Instant::now() + timeout;
        loop {
            let mut place = 0;
            while place < self.workers.len() {
                if self.workers[place].is_finished() {
                    let ended = self.workers.swap_remove(place).join();
                    self.ended(ended);
                } else {
                    place += 1;
                }
            }
            if self.workers.is_empty() {
                return match self.failed.take() {
                    Some(reason) => Err(ServeError::Worker(reason)),
                    None => Ok(true),
                };
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(STEP));
        }
    }

    fn ended(&mut self, ended: std::thread::Result<io::Result<()>>) {
        let reason = match ended {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".into())
            }
        };
        self.failed.get_or_insert(reason);
        self.cut();
    }

    /// Returns the queue times recorded since the last call; those of one worker are in order.
    pub fn take_queue_traces(&self) -> Vec<QueueTrace> {
        self.tallies.iter().flat_map(|tally| std::mem::take(&mut *lock(&tally.queue_traces))).collect()
    }

    pub fn summary(&self) -> Summary {
        Summary::of(&self.config, &self.stack, self.address, self.epoch.elapsed(), &self.tallies)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.cut();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

fn transport(suites: &[Suite]) -> Result<Transport, ServeError> {
    let first = suites.first().ok_or(SetupError::NoSuite)?;
    let transport = first.transport();
    let Some(other) = suites.iter().find(|suite| suite.transport() != transport) else {
        return Ok(transport);
    };
    let (stream, datagram) = match transport {
        Transport::Stream => (first, other),
        Transport::Datagram => (other, first),
    };
    Err(ServeError::Transports { stream: stream.to_string(), datagram: datagram.to_string() })
}

fn stacked(config: &Config, settings: &Settings) -> Result<Stacked, ServeError> {
    let settings = Settings {
        exposure: Exposure::Network,
        instrumented: config.instrumented(),
        handshake_timeout: Some(config.handshake_timeout),
        ..settings.clone()
    };
    let registry = &settings.registry;
    let mut setups = Vec::new();
    for suite in &config.suites {
        let server = registry.choose(suite, Side::Server, settings.server_stack.as_deref())?;
        // Clients may use any stack; certificates generated for them must suit this one.
        let identities: Identities = settings.identities(suite, server.as_ref(), server.as_ref())?;
        setups.push(settings.setup(suite, identities));
    }
    let first = config.suites.first().ok_or(SetupError::NoSuite)?;
    let stack = registry.choose(first, Side::Server, settings.server_stack.as_deref())?;
    for suite in &config.suites {
        stack.supports(suite, Side::Server).map_err(|reason| SetupError::IncompatibleSuites {
            one: first.to_string(),
            other: suite.to_string(),
            reason,
        })?;
    }
    let mut roots: Vec<Vec<u8>> = Vec::new();
    for setup in &setups {
        if let Some(AnyIdentity::X509(identity)) = &setup.identities.server
            && !roots.contains(&identity.root)
        {
            roots.push(identity.root.clone());
        }
    }
    Ok(Stacked { acceptor: stack.server_of(&setups)?, stack: stack.id(), roots })
}

/// The wanted number of connections, or as many as the descriptor limit allows after it is raised.
fn connections_within_limits(wanted: usize) -> usize {
    let needed = (wanted as u64).saturating_add(DESCRIPTORS_KEPT);
    let Some(limit) = socket::descriptor_limit(needed) else { return wanted };
    // With a small limit, half of it is available for connections.
    let room = limit.saturating_sub(DESCRIPTORS_KEPT).max(limit / 2);
    wanted.min(usize::try_from(room).unwrap_or(usize::MAX))
}
