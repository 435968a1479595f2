//! One end: an endpoint, its clock, and its processor.

use crate::costs::{Charge, Costs};
use shakedown_link::Ns;
use shakedown_trace::endpoint::Transport;
use shakedown_trace::{CloseReason, Counter, Endpoint, Event, MessageName, Recording};

/// Limit of calls of one endpoint, far more than any handshake needs.
pub(crate) const MAX_CALLS: u32 = 100_000;

pub(crate) struct Party {
    endpoint: Box<dyn Endpoint>,
    recording: Recording,
    costs: Costs,
    /// The client's first flight has been requested.
    begun: bool,
    /// Its processor is computing.
    pub busy: bool,
    /// The output of the current computation, which is sent at its end.
    made: Vec<Vec<u8>>,
    /// Processor time so far. A call of an endpoint takes no virtual time, and its computation starts at the time of
    /// the call. The endpoint's clock therefore stops during a computation, so that its timers start at the end of it.
    pub cpu: Ns,
    /// The handshake will be complete at the end of the current computation.
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

    /// The time on its own clock.
    fn own(&self, now: Ns) -> Ns {
        now.since(self.cpu)
    }

    /// True if its first flight has not been requested.
    pub fn is_fresh(&self) -> bool {
        !self.begun
    }

    pub fn transport(&self) -> Transport {
        self.endpoint.transport()
    }

    /// True if it processes input and timers.
    pub fn is_alive(&self) -> bool {
        self.closed.is_none()
    }

    /// Starts a computation: on units that have arrived, or without any, on the first flight.
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

    /// When its timer expires.
    pub fn deadline(&self) -> Option<Ns> {
        if !self.is_alive() || self.busy {
            return None;
        }
        self.endpoint.poll_timeout().map(|own| Ns::from(own) + self.cpu)
    }

    /// Its timer has expired. No cost is charged, because a retransmission contains no new message.
    pub fn expire(&mut self, now: Ns) {
        self.calls += 1;
        let own = self.own(now);
        self.recording.during(|| self.endpoint.handle_timeout(own.into()));
        self.collect();
        self.drain(now);
    }

    /// Collects its output, and charges its work.
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
                // The correct datagram may still arrive, as over sockets.
                Event::Rejected(_) => {}
                Event::Closed(reason) => self.closed = Some(reason),
            }
        }
    }

    /// Ends the computation, and returns its output.
    pub fn finish(&mut self, now: Ns) -> Vec<Vec<u8>> {
        self.busy = false;
        if self.is_established && self.established.is_none() {
            self.established = Some(now);
        }
        std::mem::take(&mut self.made)
    }

    /// The first message with a cost that did not occur, once the handshake is complete.
    pub fn missing(&self) -> Option<&str> {
        self.established.and_then(|_| self.costs.missing())
    }

    pub fn without_cost(&self) -> Option<MessageName> {
        self.costs.without_cost()
    }
}
