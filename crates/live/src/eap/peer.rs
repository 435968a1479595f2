//! Peers behind one access point: many authentications in flight on one thread.

use super::EapError;
use super::sockets::{Place, Sockets};
use super::spread::{Counts, Times};
use serde::Serialize;
use shakedown_eap::client::{Authentication, Exchanged, Next};
use shakedown_eap::peer::Peer;
use shakedown_eap::radius::{MAX_PACKET_BYTES, Secret};
use shakedown_sim::histogram::Histogram;
use shakedown_stacks::{Connector, SetupError};
use shakedown_trace::{Endpoint, Session};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub struct PeerOptions {
    pub server: SocketAddr,
    /// Secret that the server shares with this access point.
    pub secret: Secret,
    pub identity: String,
    pub fragment_bytes: usize,
    pub count: usize,
    /// Starts per second, evenly spaced, independent of their results; `None`: as many as `max_in_flight` allows.
    pub rate_per_s: Option<f64>,
    /// Maximum number of authentications in flight.
    pub max_in_flight: usize,
    /// A full authentication comes first and is not counted; the others resume.
    pub resume: bool,
    /// Maximum time without an answer to a request.
    pub timeout: Duration,
}

/// Results. Round trips, fragments and bytes are medians over the completed authentications.
#[derive(Clone, Debug, Serialize)]
pub struct Authenticated {
    /// Both sides derived the same keys.
    pub completed: usize,
    pub failed: BTreeMap<String, usize>,
    /// Completed authentications that resumed a session.
    pub resumed: usize,
    /// Completed authentications per second, from the first start to the last end.
    pub rate_per_s: Option<f64>,
    /// Access-Requests that were answered.
    pub round_trips: Option<u64>,
    /// EAP-TLS packets with TLS bytes, both directions.
    pub fragments: Option<u64>,
    /// EAP packets, both directions.
    pub eap_bytes: Option<u64>,
    /// RADIUS packets, both directions, without retransmissions.
    pub radius_bytes: Option<u64>,
    /// `None` if none completed.
    pub authentication_s: Option<Times>,
    /// Digest of the MSK, if there was exactly one authentication.
    pub msk_sha256: Option<String>,
    /// Message of the first failure.
    pub first_failure: Option<String>,
}

struct Flight {
    authentication: Authentication<Box<dyn Endpoint>>,
    place: Place,
    due: Duration,
    counts: bool,
}

struct Run<'a> {
    options: &'a PeerOptions,
    connector: &'a dyn Connector,
    secret: Arc<Secret>,
    sockets: Sockets,
    start: Instant,
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    session: Option<Session>,
    tally: Tally,
}

/// Interval of timer checks.
const TIMER_EVERY: Duration = Duration::from_millis(20);
/// Shorter waits are spent polling.
const SPIN: Duration = Duration::from_micros(100);

/// Runs authentications. `step` is called often with the number of ended ones, and may stop the run.
///
/// # Errors
/// [`EapError`] if nothing can be run; failed authentications are in the result.
pub fn authenticate(
    options: &PeerOptions,
    connector: &dyn Connector,
    step: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Authenticated, EapError> {
    let mut run = Run {
        options,
        connector,
        secret: Arc::new(options.secret.clone()),
        sockets: Sockets::new(options.server),
        start: Instant::now(),
        flights: Vec::new(),
        free: Vec::new(),
        session: None,
        tally: Tally::default(),
    };
    if options.resume {
        run.begin(Duration::ZERO, false)?;
        run.all(0, step)?;
        if run.session.is_none() && run.tally.failed.is_empty() {
            run.tally.fail("no_session", "the server issued no session to resume".into());
        }
        run.start = Instant::now();
    }
    if !options.resume || run.session.is_some() {
        run.all(options.count, step)?;
    }
    Ok(run.tally.finish(options.count))
}

impl Run<'_> {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn in_flight(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    /// Starts `count` authentications, each when it is due, and continues until all have ended.
    fn all(&mut self, count: usize, step: &mut dyn FnMut(usize) -> ControlFlow<()>) -> Result<(), EapError> {
        let mut started = 0;
        let period = self.options.rate_per_s.map(|rate| Duration::from_secs_f64(1.0 / rate));
        let mut timers = Duration::ZERO;
        while started < count || self.in_flight() > 0 {
            if step(self.tally.over()).is_break() {
                return Err(EapError::Interrupted);
            }
            let now = self.now();
            let mut next = now + TIMER_EVERY;
            while started < count && self.in_flight() < self.options.max_in_flight {
                let due = match period {
                    Some(period) => period.mul_f64(started as f64),
                    None => now,
                };
                if due > now {
                    next = next.min(due);
                    break;
                }
                self.begin(due, true)?;
                started += 1;
            }
            self.wait_until(next);
            self.receive()?;
            let now = self.now();
            if now >= timers {
                timers = now + TIMER_EVERY;
                self.timers(now);
            }
        }
        Ok(())
    }

    fn wait_until(&self, due: Duration) {
        let left = due.saturating_sub(self.now());
        self.sockets.wait(if left < SPIN { Duration::ZERO } else { left });
    }

    fn begin(&mut self, due: Duration, counts: bool) -> Result<(), EapError> {
        let session = self.session.as_ref().filter(|_| counts && self.options.resume);
        let endpoint = match self.connector.connect(session) {
            // The full authentication that follows is not counted as resumed.
            Err(SetupError::SpentSession) => self.connector.connect(None)?,
            other => other?,
        };
        let peer = Peer::new(endpoint, self.options.identity.as_bytes(), self.options.fragment_bytes);
        let authentication = Authentication::new(peer, Arc::clone(&self.secret), self.options.timeout);
        let owner = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() - 1
        });
        let place = self.sockets.take(owner)?;
        self.flights[owner] = Some(Flight { authentication, place, due, counts });
        self.transmit(owner)
    }

    fn transmit(&mut self, owner: usize) -> Result<(), EapError> {
        let now = self.now();
        let mut authenticator = [0; 16];
        openssl::rand::rand_bytes(&mut authenticator)?;
        let Some(flight) = &mut self.flights[owner] else { return Ok(()) };
        match flight.authentication.transmit(now, flight.place.identifier, authenticator) {
            Ok(packet) => self.sockets.send(flight.place, packet),
            Err(failure) => {
                let (cause, line) = (failure.cause(), failure.to_string());
                self.end(owner, Some((cause, line)));
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), EapError> {
        let mut buffer = [0; MAX_PACKET_BYTES + 1];
        let mut first = 0;
        while let Some((owner, place, length)) = self.sockets.receive(&mut first, &mut buffer) {
            let now = self.now();
            let Some(flight) = &mut self.flights[owner] else { continue };
            let Ok(next) = flight.authentication.handle(now, &buffer[..length]) else { continue };
            match next {
                Next::Transmit => {
                    self.sockets.release(place);
                    let place = self.sockets.take(owner)?;
                    if let Some(flight) = &mut self.flights[owner] {
                        flight.place = place;
                    }
                    self.transmit(owner)?;
                }
                Next::Success => self.end(owner, None),
                Next::Failure(failure) => self.end(owner, Some((failure.cause(), failure.to_string()))),
            }
        }
        Ok(())
    }

    fn timers(&mut self, now: Duration) {
        for owner in 0..self.flights.len() {
            let Some(flight) = &mut self.flights[owner] else { continue };
            match flight.authentication.handle_timeout(now) {
                Ok(None) => {}
                Ok(Some(packet)) => self.sockets.send(flight.place, packet),
                Err(failure) => {
                    let mut line = failure.to_string();
                    if self.sockets.refused {
                        line.push_str("; the kernel reports that no process listens there");
                    }
                    self.end(owner, Some((failure.cause(), line)));
                }
            }
        }
    }

    fn end(&mut self, owner: usize, failure: Option<(String, String)>) {
        let now = self.now();
        let Some(flight) = self.flights[owner].take() else { return };
        self.sockets.release(flight.place);
        self.free.push(owner);
        if let Some((cause, line)) = failure {
            return self.tally.fail(&cause, line);
        }
        let peer = flight.authentication.peer();
        if self.options.resume
            && let Some(session) = peer.tunnel().endpoint().session()
        {
            self.session = Some(session);
        }
        if flight.counts {
            let resumed = peer.tunnel().negotiated().is_some_and(|negotiated| negotiated.resumed);
            self.tally.first_due = Some(self.tally.first_due.map_or(flight.due, |due| due.min(flight.due)));
            self.tally.complete(&flight, resumed, now);
        }
    }
}

#[derive(Default)]
struct Tally {
    completed: usize,
    resumed: usize,
    failed: BTreeMap<String, usize>,
    first_failure: Option<String>,
    took: Histogram,
    round_trips: Counts,
    fragments: Counts,
    eap_bytes: Counts,
    radius_bytes: Counts,
    first_due: Option<Duration>,
    last_end: Duration,
    msk_sha256: Option<String>,
}

impl Tally {
    fn over(&self) -> usize {
        self.completed + self.failed.values().sum::<usize>()
    }

    fn fail(&mut self, cause: &str, line: String) {
        *self.failed.entry(cause.to_owned()).or_default() += 1;
        self.first_failure.get_or_insert(line);
    }

    fn complete(&mut self, flight: &Flight, resumed: bool, now: Duration) {
        let took = now.saturating_sub(flight.due);
        let Exchanged { round_trips, eap_bytes, radius_bytes } = flight.authentication.exchanged();
        self.completed += 1;
        self.resumed += usize::from(resumed);
        self.took.record_time(took);
        self.last_end = now;
        self.round_trips.record(round_trips.into());
        self.fragments.record(flight.authentication.peer().tunnel().fragments().into());
        self.eap_bytes.record(eap_bytes);
        self.radius_bytes.record(radius_bytes);
        if let Some(msk) = flight.authentication.msk() {
            self.msk_sha256 =
                Some(openssl::sha::sha256(msk).iter().map(|byte| format!("{byte:02x}")).collect());
        }
    }

    fn finish(self, count: usize) -> Authenticated {
        let length = self.last_end.saturating_sub(self.first_due.unwrap_or_default()).as_secs_f64();
        Authenticated {
            completed: self.completed,
            resumed: self.resumed,
            rate_per_s: (self.completed > 0 && length > 0.0).then(|| self.completed as f64 / length),
            round_trips: self.round_trips.median(),
            fragments: self.fragments.median(),
            eap_bytes: self.eap_bytes.median(),
            radius_bytes: self.radius_bytes.median(),
            authentication_s: Times::of(&self.took),
            msk_sha256: self.msk_sha256.filter(|_| count == 1),
            failed: self.failed,
            first_failure: self.first_failure,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::eap::{Files, ServerOptions, serve};
    use shakedown_eap::service::Limits;
    use shakedown_stacks::Settings;
    use shakedown_trace::{Side, Suite};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::time::{SystemTime, UNIX_EPOCH};

    /// A stack whose sessions resume only once and have been used.
    struct Spent(Arc<dyn Connector>);

    impl Connector for Spent {
        fn connect(&self, session: Option<&Session>) -> Result<Box<dyn Endpoint>, SetupError> {
            if session.is_some() { Err(SetupError::SpentSession) } else { self.0.connect(None) }
        }
    }

    #[test]
    fn peer_without_remaining_tickets_authenticates_fully() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let settings = Settings { now_unix_s: i64::try_from(now).unwrap(), ..Settings::default() };
        let files = Files::default();
        let suite: Suite = "tls1.3/x25519/p256/mutual".parse().unwrap();
        let server = files.suite(&suite, Side::Server, true).unwrap();
        let acceptor = files.acceptor(&server, &settings, None).unwrap();
        let client = files.suite(&suite, Side::Client, true).unwrap();
        let connector = Spent(files.connector(&client, &settings).unwrap());
        let secret = Secret::new("rehearsal");
        let serving = ServerOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            secret: secret.clone(),
            fragment_bytes: 1000,
            limits: Limits::default(),
        };
        let over = AtomicBool::new(false);
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut listening = |at| {
                    tell.send(at).unwrap();
                    ControlFlow::Continue(())
                };
                serve(&serving, acceptor, &mut listening, &mut |_| match over.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                })
                .unwrap();
            });
            let options = PeerOptions {
                server: told.recv().unwrap(),
                secret,
                identity: "anonymous@shakedown.test".into(),
                fragment_bytes: 1000,
                count: 3,
                rate_per_s: None,
                max_in_flight: 1,
                resume: true,
                timeout: Duration::from_secs(60),
            };
            let found = authenticate(&options, &connector, &mut |_| ControlFlow::Continue(())).unwrap();
            over.store(true, Ordering::Relaxed);
            assert_eq!((found.completed, found.resumed), (3, 0), "{found:?}");
            assert!(found.failed.is_empty());
        });
    }
}
