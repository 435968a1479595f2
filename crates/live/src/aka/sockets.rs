//! TCP connections of nodes: a thread each, admitted by a table, ended by its time or by the node's.

use super::AkaError;
use super::admission::{Admission, Limits, Origin, Refusals, Standing, Table};
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a wait for a node's answer is broken to look at the time.
pub const BREATH: Duration = Duration::from_millis(20);
/// The same of a node's own connections. One that is closed wakes its thread at once.
const PULSE: Duration = Duration::from_millis(200);
/// How long a write may take, and another node to answer.
pub const MAX_ANSWER: Duration = Duration::from_secs(5);
/// Threads for each place in a table: those of displaced connections may take some time to end.
const THREADS_PER_PLACE: usize = 2;
/// Connections that are accepted between two looks at whether to stop.
const BATCH: usize = 64;

type Connections = Mutex<Table<Arc<TcpStream>>>;

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A listening socket and the connections that it has accepted.
pub struct Port {
    listener: TcpListener,
    limits: Limits,
    table: Connections,
    threads: AtomicUsize,
}

/// A connection that has been admitted. It reads and writes as a socket does, and says when it was closed from here.
pub struct Link<'a> {
    stream: Arc<TcpStream>,
    number: u64,
    table: &'a Connections,
    /// For the first message.
    pub patience: Duration,
}

/// Serves a connection until it ends.
pub type Serve<'a> = &'a (dyn Fn(&Link<'_>) + Sync);

impl Port {
    /// Listens.
    ///
    /// # Errors
    /// [`AkaError::Listen`].
    pub fn open(address: SocketAddr, limits: Limits) -> Result<Self, AkaError> {
        let failed = |source| AkaError::Listen { address: address.to_string(), source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let table = Mutex::new(Table::new(limits));
        Ok(Self { listener, limits, table, threads: AtomicUsize::new(0) })
    }

    /// Where.
    pub fn address(&self, asked: SocketAddr) -> SocketAddr {
        self.listener.local_addr().unwrap_or(asked)
    }

    /// What became of connections that were not served.
    pub fn refusals(&self) -> Refusals {
        locked(&self.table).refusals()
    }

    /// Accepts what has come; false where nothing had.
    fn accept<'scope, 'env>(
        &'env self,
        scope: &'scope std::thread::Scope<'scope, 'env>,
        serve: Serve<'env>,
    ) -> bool {
        for place in 0..BATCH {
            let (stream, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Without descriptors nobody else can come: one that has proved nothing goes.
                    if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
                        && let Some(gone) = locked(&self.table).relieve()
                    {
                        let _ = gone.shutdown(Shutdown::Both);
                    }
                    return place > 0;
                }
            };
            if self.threads.load(Ordering::Relaxed)
                >= THREADS_PER_PLACE.saturating_mul(self.limits.connections)
            {
                locked(&self.table).count_turned_away();
                continue;
            }
            let stream = Arc::new(stream);
            let admission = locked(&self.table).admit(Origin::of(from.ip()), Arc::clone(&stream));
            let Admission::Admitted { number, displaced } = admission else { continue };
            if let Some(displaced) = displaced {
                // Its thread reads the end of the stream, and leaves.
                let _ = displaced.shutdown(Shutdown::Both);
            }
            self.threads.fetch_add(1, Ordering::Relaxed);
            let work = move || {
                let patience = self.limits.first_message;
                let link = Link { stream, number, table: &self.table, patience };
                if ready(&link.stream, PULSE) {
                    serve(&link);
                }
                locked(&self.table).leave(number);
                self.threads.fetch_sub(1, Ordering::Relaxed);
            };
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                self.threads.fetch_sub(1, Ordering::Relaxed);
                let mut table = locked(&self.table);
                table.leave(number);
                table.count_turned_away();
            }
        }
        true
    }

    /// Ends all connections.
    fn close(&self) {
        for stream in locked(&self.table).connections() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Link<'_> {
    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The other end has shown more than before.
    pub fn raise(&self, standing: Standing) {
        locked(self.table).raise(self.number, standing);
    }

    /// Nothing has come in time.
    pub fn give_up(&self) {
        locked(self.table).count_silent();
    }
}

/// Accepts connections until `step` stops it, and serves each on a thread. Threads end with their connections, which
/// end with it.
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

/// Reads what comes before the socket's time is over; `None` at the end of the stream.
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

/// Makes a socket wait no longer than `wait` at a time, and send what it is given at once.
pub fn ready(stream: &TcpStream, wait: Duration) -> bool {
    stream.set_nonblocking(false).is_ok()
        && stream.set_nodelay(true).is_ok()
        && stream.set_read_timeout(Some(wait)).is_ok()
        && stream.set_write_timeout(Some(MAX_ANSWER)).is_ok()
}
