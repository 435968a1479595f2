//! One end: an endpoint, the clock that it is told, and the processor that runs it.

use crate::costs::{Charge, Costs};
use shakedown_link::Ns;
use shakedown_trace::endpoint::Transport;
use shakedown_trace::{CloseReason, Counter, Endpoint, Event, MessageName, Recording};

/// Calls of one endpoint, far beyond what any handshake needs.
pub(crate) const MAX_CALLS: u32 = 100_000;

pub(crate) struct Party {
    endpoint: Box<dyn Endpoint>,
    recording: Recording,
    costs: Costs,
    /// A client's first flight has been asked for.
    begun: bool,
    /// Its processor is at work.
    pub busy: bool,
    /// What the present work has made; it is sent when the work is done.
    made: Vec<Vec<u8>>,
    /// Processor time so far. An endpoint is told a time once a call, when the call begins, and a call here takes no
    /// time; so that what it does then is timed from the end of the computation, its clock stands still meanwhile.
    pub cpu: Ns,
    /// Its handshake is over as soon as its present work is.
    is_established: bool,
    pub established: Option<Ns>,
    pub closed: Option<CloseReason>,
    pub calls: u32,
}

impl Party {
    pub fn new(endpoint: Box<dyn Endpoint>, costs: Costs) -> Self {
        Self {
            endpoint,
            recording: Recording::new(Counter::NANOSECONDS),
            costs,
            begun: false,
            busy: false,
            made: Vec::new(),
            cpu: Ns::ZERO,
            is_established: false,
            established: None,
            closed: None,
            calls: 0,
        }
    }

    /// What its own clock shows.
    fn own(&self, now: Ns) -> Ns {
        now.since(self.cpu)
    }

    /// True where it has not been asked for its first flight.
    pub fn is_fresh(&self) -> bool {
        !self.begun
    }

    pub fn transport(&self) -> Transport {
        self.endpoint.transport()
    }

    /// True where it takes input and runs timers.
    pub fn is_alive(&self) -> bool {
        self.closed.is_none()
    }

    /// Puts its processor to work on units that have arrived; without any, on its first flight.
    pub fn work(&mut self, now: Ns, units: &[impl AsRef<[u8]>]) -> Charge {
        self.begun = true;
        self.busy = true;
        for unit in units {
            if self.is_alive() {
                self.calls += 1;
                let own = self.own(now);
                self.recording.during(|| self.endpoint.handle_input(own.into(), unit.as_ref()));
                self.collect();
            }
        }
        self.drain(now)
    }

    /// When its timer runs out.
    pub fn deadline(&self) -> Option<Ns> {
        if !self.is_alive() || self.busy {
            return None;
        }
        self.endpoint.poll_timeout().map(|own| Ns::from(own) + self.cpu)
    }

    /// Its timer has run out. What that costs is not charged: nothing new is made.
    pub fn expire(&mut self, now: Ns) {
        self.calls += 1;
        let own = self.own(now);
        self.recording.during(|| self.endpoint.handle_timeout(own.into()));
        self.collect();
        self.drain(now);
    }

    /// Takes what it has to send, and charges what it has done.
    fn drain(&mut self, now: Ns) -> Charge {
        let own = self.own(now);
        loop {
            let mut unit = Vec::new();
            self.calls += 1;
            let poll = || self.endpoint.poll_transmit(own.into(), &mut unit);
            if self.calls > MAX_CALLS || !self.recording.during(poll) {
                break;
            }
            self.made.push(unit);
            if self.endpoint.transport() == Transport::Stream {
                break;
            }
        }
        self.collect();
        let charge = self.costs.charge(self.recording.events());
        self.recording.clear();
        self.cpu += charge.takes;
        charge
    }

    fn collect(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Established(_) => self.is_established = true,
                Event::Data(_) => {}
                // The right datagram may still arrive, as over sockets.
                Event::Rejected(_) => {}
                Event::Closed(reason) => self.closed = Some(reason),
            }
        }
    }

    /// The work is done: what it has made goes out.
    pub fn finish(&mut self, now: Ns) -> Vec<Vec<u8>> {
        self.busy = false;
        if self.is_established && self.established.is_none() {
            self.established = Some(now);
        }
        std::mem::take(&mut self.made)
    }

    /// The first message with a price that it never saw, once it is established.
    pub fn missing(&self) -> Option<&str> {
        self.established.and_then(|_| self.costs.missing())
    }

    pub fn without_cost(&self) -> Option<MessageName> {
        self.costs.without_cost()
    }
}
