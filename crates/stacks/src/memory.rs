//! Bytes that a connection holds, in repetitions of their own.
//!
//! Everything allocated in a side's name from the creation of its endpoint to its release is counted at its
//! requested size, OpenSSL's allocations and Rust's alike. For the stack `openssl` this includes the two
//! memory BIOs, which stand where a socket would. Contexts, certificates and what is cached for later
//! connections are counted apart. Nothing is timed here, and nothing is instrumented.

use crate::measure::MeasureError;
use crate::rig::{Rig, Settings, Subject, prepare};
use serde::Serialize;
use shakedown_ossl::memory::{Account, Held, clear_errors, count, held, on};
use shakedown_trace::driver::Wire;
use shakedown_trace::endpoint::{Time, Transport};
use shakedown_trace::{Endpoint, Failure, Side, Suite};

/// What one connection, and what the context behind it, takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // the names say it
pub struct Memory {
    pub client_peak_bytes: usize,
    pub client_held_bytes: usize,
    pub server_peak_bytes: usize,
    pub server_held_bytes: usize,
    pub context_bytes: ContextBytes,
    /// What was still there after both endpoints were released; not 0 is a leak.
    pub released_bytes: usize,
}

/// Contexts with their certificates and trusted roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // the names say it
pub struct ContextBytes {
    pub client: usize,
    pub server: usize,
}

/// Handshakes that fill the caches of the library before anything is counted.
const WARM_UP: usize = 2;

/// Counts one connection of a suite; `None` where this process can't count OpenSSL's memory.
///
/// # Errors
/// [`MeasureError`] where the suite can't be run.
pub fn measure(suite: &Suite, settings: &Settings) -> Result<Option<Memory>, MeasureError> {
    if !shakedown_ossl::memory::install() {
        return Ok(None);
    }
    let settings = Settings { instrumented: false, ..settings.clone() };
    let mut wire = Wire::new();
    let mut warm = prepare(suite, &settings)?;
    for _ in 0..WARM_UP {
        let mut pair = warm.pair()?;
        run(suite, &mut wire, pair.client.as_mut(), pair.server.as_mut())?;
    }
    count(|| {
        let mut rig = prepare(suite, &settings)?;
        // The first connection leaves caches behind in the contexts: blinding of the private key, parsed
        // extensions. They are the contexts', not a connection's.
        drop(connect(suite, rig.as_mut(), &mut wire, Account::ClientContext, Account::ServerContext)?);
        let context_bytes = ContextBytes {
            client: held(Account::ClientContext).bytes,
            server: held(Account::ServerContext).bytes,
        };
        let (client, server) = connect(suite, rig.as_mut(), &mut wire, Account::Client, Account::Server)?;
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

/// Makes both endpoints on their accounts and runs them against each other.
fn connect(
    suite: &Suite,
    rig: &mut dyn Rig,
    wire: &mut Wire,
    client: Account,
    server: Account,
) -> Result<(Counted, Counted), MeasureError> {
    let mut client = Counted { account: client, inner: on(client, || rig.client())? };
    let mut server = Counted { account: server, inner: on(server, || rig.server())? };
    run(suite, wire, &mut client, &mut server)?;
    clear_errors();
    Ok((client, server))
}

fn run(
    suite: &Suite,
    wire: &mut Wire,
    client: &mut dyn Endpoint,
    server: &mut dyn Endpoint,
) -> Result<(), MeasureError> {
    let outcome = wire.handshake(client, server, &mut ());
    outcome.map(drop).map_err(|error| MeasureError::Handshake { suite: suite.to_string(), error })
}

/// An endpoint whose every call is on its account.
struct Counted {
    account: Account,
    inner: Box<dyn Subject>,
}

impl Endpoint for Counted {
    fn side(&self) -> Side {
        self.inner.side()
    }

    fn transport(&self) -> Transport {
        self.inner.transport()
    }

    fn start(&mut self, now: Time) -> Result<(), Failure> {
        on(self.account, || self.inner.start(now))
    }

    fn receive(&mut self, now: Time, bytes: &[u8]) -> Result<(), Failure> {
        on(self.account, || self.inner.receive(now, bytes))
    }

    fn transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool {
        on(self.account, || self.inner.transmit(now, buffer))
    }

    fn deadline(&self) -> Option<Time> {
        self.inner.deadline()
    }

    fn timeout(&mut self, now: Time) -> Result<(), Failure> {
        on(self.account, || self.inner.timeout(now))
    }

    fn is_established(&self) -> bool {
        self.inner.is_established()
    }

    fn is_resumed(&self) -> bool {
        self.inner.is_resumed()
    }

    fn state(&self) -> String {
        self.inner.state()
    }

    fn send(&mut self, now: Time, data: &[u8]) -> Result<(), Failure> {
        on(self.account, || self.inner.send(now, data))
    }

    fn take_received(&mut self, now: Time, buffer: &mut Vec<u8>) -> Result<bool, Failure> {
        on(self.account, || self.inner.take_received(now, buffer))
    }
}
