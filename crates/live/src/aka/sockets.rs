//! TCP connections of nodes: one thread each, admitted by a table, ended by a timeout or with the node.

use super::AkaError;
use super::admission::{Admission, Limits, Origin, Refusals, Standing, Table};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which a wait for a node's response checks the time.
pub const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The same for connections that a node accepted. A thread wakes immediately when its connection is closed.
const ACCEPTED_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Timeout of a write, and of another node's response.
pub const MAX_ANSWER: Duration = Duration::from_secs(5);
/// Maximum number of threads per place in a table, and per place of an address, because the threads of displaced
/// connections end with a delay.
const THREADS_PER_PLACE: usize = 2;
/// Maximum number of connections that are accepted between two calls of `step`.
const BATCH: usize = 64;

type Connections = Mutex<Table<Arc<Connection>>>;

struct Connection {
    stream: TcpStream,
    over: AtomicBool,
}

impl Connection {
    fn new(stream: TcpStream) -> Arc<Self> {
        Arc::new(Self { stream, over: AtomicBool::new(false) })
    }

    /// Ends its thread: immediately if it reads or writes, at the next check if it waits for another node.
    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Number of running threads, of all addresses and by address.
#[derive(Default)]
struct Threads {
    all: usize,
    of: HashMap<Origin, usize>,
}

impl Threads {
    fn may_begin(&self, origin: Origin, limits: Limits) -> bool {
        let most = |places: usize| THREADS_PER_PLACE.saturating_mul(places);
        let own = self.of.get(&origin).copied().unwrap_or(0);
        self.all < most(limits.connections) && own < most(limits.connections_per_address)
    }

    fn begin(&mut self, origin: Origin) {
        self.all += 1;
        *self.of.entry(origin).or_default() += 1;
    }

    fn end(&mut self, origin: Origin) {
        self.all -= 1;
        if let Some(own) = self.of.get_mut(&origin) {
            *own -= 1;
            if *own == 0 {
                self.of.remove(&origin);
            }
        }
    }
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A listening socket and the connections that it has accepted.
pub struct Port {
    listener: TcpListener,
    limits: Limits,
    table: Connections,
    threads: Mutex<Threads>,
}

/// The thread and the place in the table that a connection holds until its thread ends, even by a panic.
struct Place<'a> {
    port: &'a Port,
    number: u64,
    origin: Origin,
}

impl<'a> Place<'a> {
    fn take(port: &'a Port, number: u64, origin: Origin) -> Self {
        locked(&port.threads).begin(origin);
        Self { port, number, origin }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        locked(&self.port.table).leave(self.number);
        locked(&self.port.threads).end(self.origin);
    }
}

/// A connection that has been admitted. It reads and writes like a socket, and reports when this node closed it.
pub struct Link<'a> {
    connection: Arc<Connection>,
    number: u64,
    table: &'a Connections,
    /// Timeout of the first message.
    pub timeout: Duration,
}

pub type Serve<'a> = &'a (dyn Fn(&Link<'_>) + Sync);

impl Port {
    pub fn open(address: SocketAddr, limits: Limits) -> Result<Self, AkaError> {
        let failed = |source| AkaError::Listen { address: address.to_string(), source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let table = Mutex::new(Table::new(limits));
        Ok(Self { listener, limits, table, threads: Mutex::default() })
    }

    pub fn address(&self, asked: SocketAddr) -> SocketAddr {
        self.listener.local_addr().unwrap_or(asked)
    }

    pub fn refusals(&self) -> Refusals {
        locked(&self.table).refusals()
    }

    /// Accepts the connections that wait; false if there were none.
    fn accept<'scope, 'env>(
        &'env self,
        scope: &'scope std::thread::Scope<'scope, 'env>,
        serve: Serve<'env>,
    ) -> bool {
        for place in 0..BATCH {
            let (stream, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
                        self.relieve();
                    }
                    return place > 0;
                }
            };
            let origin = Origin::of(from.ip());
            if !locked(&self.threads).may_begin(origin, self.limits) {
                locked(&self.table).count_turned_away();
                continue;
            }
            let connection = Connection::new(stream);
            let admission = locked(&self.table).admit(origin, Arc::clone(&connection));
            let Admission::Admitted { number, displaced } = admission else { continue };
            if let Some(displaced) = displaced {
                displaced.end();
            }
            let place = Place::take(self, number, origin);
            let work = move || {
                // Moves the whole `Place`, so that it is dropped here; otherwise the closure would only copy fields.
                let place = place;
                let timeout = self.limits.first_message;
                let link = Link { connection, number: place.number, table: &place.port.table, timeout };
                if ready(link.stream(), ACCEPTED_POLL_INTERVAL) {
                    // A panic in one connection must not affect others: the panic is printed, and the node continues.
                    let _ = catch_unwind(AssertUnwindSafe(|| serve(&link)));
                }
            };
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                locked(&self.table).count_turned_away();
            }
        }
        true
    }

    /// Closes an unauthenticated connection if descriptors are exhausted. Its descriptor is released when its thread
    /// has ended, so the next one is closed only after that.
    fn relieve(&self) {
        let mut table = locked(&self.table);
        if locked(&self.threads).all <= table.len()
            && let Some(gone) = table.relieve()
        {
            gone.end();
        }
    }

    fn close(&self) {
        for connection in locked(&self.table).connections() {
            connection.end();
        }
    }
}

impl Link<'_> {
    pub fn stream(&self) -> &TcpStream {
        &self.connection.stream
    }

    /// True if this node closed the connection: displaced by another, or at the end. A thread that waits for something
    /// other than this connection polls this.
    pub fn is_over(&self) -> bool {
        self.connection.over.load(Ordering::Relaxed)
    }

    /// Raises the standing of the peer.
    pub fn raise(&self, standing: Standing) {
        locked(self.table).raise(self.number, standing);
    }

    /// Counts the connection as one whose first message did not arrive in time.
    pub fn give_up(&self) {
        locked(self.table).count_silent();
    }
}

/// Accepts connections until `step` stops it, and serves each on a thread. All connections and threads end before it
/// returns.
pub fn accept_all<'a>(ports: &[(&'a Port, Serve<'a>)], step: &mut dyn FnMut() -> ControlFlow<()>) {
    std::thread::scope(|scope| {
        while step().is_continue() {
            let mut idle = true;
            for (port, serve) in ports {
                idle &= !port.accept(scope, *serve);
            }
            if idle {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        for (port, _) in ports {
            port.close();
        }
    });
}

/// Reads input until the socket's timeout; `None` at the end of the stream.
pub fn read(mut stream: &TcpStream, buffer: &mut [u8]) -> Option<usize> {
    match stream.read(buffer) {
        Ok(0) => None,
        Ok(length) => Some(length),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
            ) =>
        {
            Some(0)
        }
        Err(_) => None,
    }
}

/// Sets the read timeout to `wait` and the write timeout to [`MAX_ANSWER`], and disables Nagle's algorithm.
pub fn ready(stream: &TcpStream, wait: Duration) -> bool {
    stream.set_nonblocking(false).is_ok()
        && stream.set_nodelay(true).is_ok()
        && stream.set_read_timeout(Some(wait)).is_ok()
        && stream.set_write_timeout(Some(MAX_ANSWER)).is_ok()
}

/// Opens a connection, and calls `step` during the wait. `Err(None)` if `step` stops it.
pub fn connect(
    address: SocketAddr,
    timeout: Duration,
    step: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<TcpStream, Option<std::io::Error>> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(Some(error)),
    }
    let until = Instant::now() + timeout;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
        // If a signal interrupts the wait, `step` handles it.
        let found =
            ppoll(&mut polled, Some(TimeSpec::from_duration(left.min(POLL_INTERVAL))), None).unwrap_or(0);
        if found > 0 {
            return match socket.take_error()? {
                None => Ok(socket.into()),
                Some(error) => Err(Some(error)),
            };
        }
        if step().is_break() {
            return Err(None);
        }
        if left.is_zero() {
            return Err(Some(ErrorKind::TimedOut.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::sync::atomic::AtomicUsize;

    /// A thread that panics releases its place and its count; other connections continue.
    #[test]
    fn panicking_thread_releases_its_place() {
        let limits = Limits { connections: 2, connections_per_address: 2, ..Limits::default() };
        let port = Port::open("127.0.0.1:0".parse().unwrap(), limits).unwrap();
        let address = port.address("127.0.0.1:0".parse().unwrap());
        let over = AtomicBool::new(false);
        let least_held = AtomicUsize::new(usize::MAX);
        let serve = |link: &Link<'_>| {
            let mut byte = [0];
            while read(link.stream(), &mut byte) == Some(0) {}
            least_held.fetch_min(locked(&port.table).len(), Ordering::Relaxed);
            assert_ne!(byte, [1], "as it was told to");
            let _ = link.stream().write_all(&byte);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                accept_all(&[(&port, &serve)], &mut || match over.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                });
            });
            let say = |byte: u8| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(&[byte]).unwrap();
                let mut answer = [0];
                let length = stream.read(&mut answer).unwrap_or(0);
                answer[..length].to_vec()
            };
            for _ in 0..10 {
                assert!(say(1).is_empty());
            }
            assert_eq!(say(2), vec![2]);
            over.store(true, Ordering::Relaxed);
        });
        assert!(
            (1..=2).contains(&least_held.load(Ordering::Relaxed)),
            "a place is held while its thread runs"
        );
        assert_eq!(port.refusals(), Refusals::default());
        assert_eq!((locked(&port.threads).all, locked(&port.table).len()), (0, 0));
    }

    #[test]
    fn without_descriptors_one_connection_is_evicted_at_a_time() {
        let limits = Limits { connections: 4, connections_per_address: 4, ..Limits::default() };
        let port = Port::open("127.0.0.1:0".parse().unwrap(), limits).unwrap();
        let address = port.address("127.0.0.1:0".parse().unwrap());
        let mut others = Vec::new();
        let mut places = Vec::new();
        for _ in 0..3 {
            others.push(TcpStream::connect(address).unwrap());
            let (stream, from) = loop {
                if let Ok(accepted) = port.listener.accept() {
                    break accepted;
                }
            };
            let admission = locked(&port.table).admit(Origin::of(from.ip()), Connection::new(stream));
            let Admission::Admitted { number, .. } = admission else { panic!("turned away") };
            places.push(Place::take(&port, number, Origin::of(from.ip())));
        }
        port.relieve();
        port.relieve();
        assert_eq!(port.refusals().displaced, 1, "its thread has not ended yet");
        drop(places.remove(0));
        port.relieve();
        assert_eq!(port.refusals().displaced, 2);
    }

    /// The threads of one address wait for something else and never check whether they were displaced: only that
    /// address runs out of threads.
    #[test]
    fn threads_of_one_address_do_not_block_another() {
        let limits = Limits { connections: 8, connections_per_address: 2, ..Limits::default() };
        let port = Port::open("127.0.0.1:0".parse().unwrap(), limits).unwrap();
        let to = port.address("127.0.0.1:0".parse().unwrap());
        let (over, held) = (AtomicBool::new(false), AtomicUsize::new(0));
        let serve = |link: &Link<'_>| {
            if link.stream().peer_addr().is_ok_and(|from| from.ip().to_string() == "127.0.0.1") {
                let _ = link.stream().write_all(&[1]);
                return;
            }
            held.fetch_add(1, Ordering::Relaxed);
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            // Only the connections in the last two places were not closed.
            held.fetch_sub(usize::from(link.is_over()), Ordering::Relaxed);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                accept_all(&[(&port, &serve)], &mut || match over.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                });
            });
            let mut flood = Vec::new();
            for _ in 0..30 {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
                socket.bind(&"127.0.0.2:0".parse::<SocketAddr>().unwrap().into()).unwrap();
                socket.connect(&to.into()).unwrap();
                flood.push(socket);
            }
            let mut mobile = TcpStream::connect(to).unwrap();
            let mut answer = [0];
            assert_eq!(mobile.read(&mut answer).unwrap_or(0), 1, "the other address is served");
            assert_eq!(port.refusals().turned_away, 26, "four threads for two places");
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(port.refusals().displaced, 2);
        assert!(locked(&port.threads).of.is_empty());
        assert!(held.load(Ordering::Relaxed) <= 2, "displaced connections are closed");
    }

    #[test]
    fn waiting_for_a_connection_can_be_stopped() {
        // A listener that does not accept: when its backlog is full, the next connection waits.
        let listener = socket2::Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let timeout = Duration::from_secs(600);
        let mut open = Vec::new();
        let mut looks = 0;
        let stopped = loop {
            let found = connect(address, timeout, &mut || {
                looks += 1;
                if looks > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            match found {
                Ok(stream) => open.push(stream),
                Err(error) => break error,
            }
            assert!(open.len() < 100, "everybody gets in");
        };
        assert!(stopped.is_none(), "{stopped:?}");
        drop(listener);
        let refused = connect(address, timeout, &mut || ControlFlow::Continue(())).unwrap_err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    }
}
