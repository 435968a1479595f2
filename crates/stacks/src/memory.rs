//! The memory of a connection, counted in separate repetitions.
//!
//! All allocations for a side, from the creation of its endpoint to its release, are counted with their requested
//! sizes, OpenSSL's and Rust's. For the stack `openssl` this includes the two memory BIOs, which take the place of a
//! socket. Contexts, certificates and caches for later connections are counted separately. Nothing is timed or
//! instrumented in these repetitions.

use crate::measure::error::MeasureError;
use crate::peers::{Peers, prepare};
use crate::settings::Settings;
use serde::Serialize;
use shakedown_ossl::memory::{Account, Held, clear_errors, count, held, on};
use shakedown_trace::driver::Loopback;
use shakedown_trace::{Endpoint, Suite, Wrapper};

/// The memory of one connection and of its contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    pub client_peak_bytes: usize,
    pub client_held_bytes: usize,
    pub server_peak_bytes: usize,
    pub server_held_bytes: usize,
    pub context_bytes: ContextBytes,
    /// Bytes that remain after the release of both endpoints; a value other than 0 is a leak.
    pub released_bytes: usize,
}

/// The memory of contexts with their certificates and trusted roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ContextBytes {
    pub client: usize,
    pub server: usize,
}

/// Handshakes that fill the library's caches before allocations are counted.
const WARM_UP: usize = 2;

/// Counts one connection of a suite; `None` if this process cannot count OpenSSL's or Rust's allocations.
pub fn measure(suite: &Suite, settings: &Settings) -> Result<Option<Memory>, MeasureError> {
    if !shakedown_ossl::memory::install() || !rust_is_counted() {
        return Ok(None);
    }
    let settings = Settings { instrumented: false, ..settings.clone() };
    let mut loopback = Loopback::new();
    let warm = prepare(suite, &settings)?;
    for _ in 0..WARM_UP {
        let mut pair = warm.pair()?;
        run(suite, &mut loopback, pair.client.as_mut(), pair.server.as_mut())?;
    }
    count(|| {
        let peers = prepare(suite, &settings)?;
        // The first connection fills caches of the contexts: blinding of the private key, parsed extensions. They
        // belong to the contexts, not to a connection.
        drop(connect(&peers, &mut loopback, Account::ClientContext, Account::ServerContext)?);
        let context_bytes = ContextBytes {
            client: held(Account::ClientContext).bytes,
            server: held(Account::ServerContext).bytes,
        };
        let (client, server) = connect(&peers, &mut loopback, Account::Client, Account::Server)?;
        let (of_client, of_server): (Held, Held) = (held(Account::Client), held(Account::Server));
        drop(client);
        drop(server);
        Ok(Some(Memory {
            client_peak_bytes: of_client.peak_bytes,
            client_held_bytes: of_client.bytes,
            server_peak_bytes: of_server.peak_bytes,
            server_held_bytes: of_server.bytes,
            context_bytes,
            released_bytes: held(Account::Client).bytes + held(Account::Server).bytes,
        }))
    })
}

/// Whether this program's global allocator is the counting one, which each program chooses itself.
fn rust_is_counted() -> bool {
    count(|| {
        on(Account::Client, || {
            let block = std::hint::black_box(Box::new([0_u8; 64]));
            let counted = held(Account::Client).bytes > 0;
            drop(block);
            counted
        })
    })
}

/// Creates both endpoints on their accounts and runs them against each other.
fn connect(
    peers: &Peers,
    loopback: &mut Loopback,
    client: Account,
    server: Account,
) -> Result<(Counted, Counted), MeasureError> {
    let mut client = Counted { account: client, inner: on(client, || peers.client())? };
    let mut server = Counted { account: server, inner: on(server, || peers.server())? };
    run(&peers.id.suite, loopback, &mut client, &mut server)?;
    clear_errors();
    Ok((client, server))
}

fn run(
    suite: &Suite,
    loopback: &mut Loopback,
    client: &mut dyn Endpoint,
    server: &mut dyn Endpoint,
) -> Result<(), MeasureError> {
    let outcome = loopback.handshake(client, server, &mut ());
    outcome.map(drop).map_err(|error| MeasureError::Handshake { suite: suite.to_string(), error })
}

/// An endpoint whose calls are all counted on its account.
struct Counted {
    account: Account,
    inner: Box<dyn Endpoint>,
}

impl Wrapper for Counted {
    type Inner = dyn Endpoint;

    fn inner(&self) -> &(dyn Endpoint + 'static) {
        self.inner.as_ref()
    }

    fn inner_mut(&mut self) -> &mut (dyn Endpoint + 'static) {
        self.inner.as_mut()
    }

    fn around<T>(&mut self, call: impl FnOnce(&mut Self::Inner) -> T) -> T {
        on(self.account, || call(self.inner.as_mut()))
    }
}
