//! Two simultaneous attaches, interrupted anywhere, while the clock is set.

use crate::attaches::{Seen, answer, deployment};
use proptest::prelude::*;
use shakedown_aka::mobile::{Mobile, MobileEvent};
use shakedown_aka::sessions::{Decision, Policy};
use shakedown_aka::sgsn::Attach;
use shakedown_live::aka::{Deployment, SgsnEnvironment};
use shakedown_trace::Endpoint;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// An attach in progress.
struct Flight {
    place: usize,
    node: usize,
    mobile: Mobile<Box<dyn Endpoint>>,
    attach: Attach<SgsnEnvironment>,
    seen: Seen,
    counted: bool,
}

impl Flight {
    fn new(deployment: &Deployment, place: usize, node: usize) -> Self {
        let (mobile, attach) = (deployment.mobile(place).unwrap(), Attach::default());
        Self { place, node, mobile, attach, seen: Seen::default(), counted: false }
    }

    /// Passes the mobile's output to the SGSN and the SGSN's output back, and answers one query. False if there was
    /// none of these.
    fn step(&mut self, deployment: &mut Deployment, now: Duration) -> bool {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        self.mobile.poll_transmit(now, &mut up);
        self.seen.up.extend(&up);
        let query = self.attach.poll_query();
        if let Some((network, query)) = &query {
            let answer = answer(deployment, &self.attach, network, query);
            self.attach.handle_answer(&mut deployment.nodes[self.node], now, answer);
        }
        self.attach.handle_input(&mut deployment.nodes[self.node], now, &up);
        self.attach.poll_transmit(&mut down);
        self.seen.down.extend(&down);
        self.mobile.handle_input(now, &down);
        self.seen.mobile.extend(std::iter::from_fn(|| self.mobile.poll_event()));
        self.seen.sgsn.extend(std::iter::from_fn(|| self.attach.poll_event()));
        query.is_some() || !up.is_empty() || !down.is_empty()
    }

    /// Ends the attach. True if the mobile attached; it then keeps its identity and session.
    fn land(&mut self, deployment: &mut Deployment) -> bool {
        self.attach.handle_close(&mut deployment.nodes[self.node]);
        let given = self.seen.mobile.iter().find_map(|event| match event {
            MobileEvent::Attached(temporary) => Some(temporary.clone()),
            _ => None,
        });
        let Some(given) = given else { return false };
        let resumed = self.mobile.negotiated().unwrap().resumed;
        let session = self.mobile.endpoint().session().filter(|_| !resumed);
        deployment.keep(self.place, given, session);
        true
    }
}

/// An action during two attaches.
#[derive(Clone, Debug)]
enum Turn {
    Step(usize),
    /// Interrupts an attach and begins another, of a mobile at an SGSN.
    Begin {
        flight: usize,
        place: usize,
        node: usize,
    },
    /// Sets the clock to a number of seconds after a fixed time.
    Clock(u64),
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        24 => (0..2_usize).prop_map(Turn::Step),
        4 => (0..2_usize, 0..2_usize, 0..2_usize)
            .prop_map(|(flight, place, node)| Turn::Begin { flight, place, node }),
        3 => (0..100_u64).prop_map(Turn::Clock),
    ]
}

/// Sessions as seen on the wire, and the SGSNs' decisions on offered sessions.
#[derive(Default)]
struct Known {
    /// Number of resumptions and time of the last use, by session ID.
    sessions: HashMap<Vec<u8>, (u32, Duration)>,
    /// Sessions that their SGSN refused because they were last used in the future.
    refused: HashSet<Vec<u8>>,
    resumed: u64,
}

impl Known {
    /// Checks an attach after each of its steps.
    fn look(&mut self, flight: &mut Flight, now: Duration, policy: Policy) -> Result<(), TestCaseError> {
        let offered = flight.attach.offered();
        if let Some(offered) = offered.filter(|one| one.decision == Decision::ClockSetBack && !one.is_guest) {
            self.refused.insert(offered.id.clone());
        }
        if flight.counted || !flight.attach.is_attached() {
            return Ok(());
        }
        flight.counted = true;
        let (offered, answered) = flight.seen.session_ids();
        prop_assert!(!answered.is_empty());
        if offered != answered {
            prop_assert!(self.sessions.insert(answered, (0, now)).is_none(), "a new session has an old ID");
            return Ok(());
        }
        self.resumed += 1;
        prop_assert!(!self.refused.contains(&answered), "its age was not known, and now it is young");
        let Some((count, last)) = self.sessions.get_mut(&answered) else {
            return Err(TestCaseError::fail("a session that was never established was resumed"));
        };
        *count += 1;
        prop_assert!(*count <= policy.max_resumptions, "resumed {count} times");
        prop_assert!(*last <= now && now - *last < policy.max_age, "resumed at {now:?}, last at {last:?}");
        *last = now;
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    /// No session is resumed beyond a threshold, even by two simultaneous attaches of one mobile or of two, each
    /// interrupted anywhere, while the clock is set forward and back between messages.
    #[test]
    fn simultaneous_attaches_resume_no_session_beyond_a_threshold(
        max_resumptions in 0..4_u32,
        max_age in 1..100_u64,
        turns in prop::collection::vec(turn(), 40..200),
    ) {
        let policy = Policy { max_resumptions, max_age: Duration::from_secs(max_age) };
        let mut deployment = deployment(2, policy);
        let base = Duration::from_secs(1_000_000);
        let mut now = base;
        let mut known = Known::default();
        let mut flights = [Flight::new(&deployment, 0, 0), Flight::new(&deployment, 1, 0)];
        for turn in turns {
            match turn {
                Turn::Clock(seconds) => now = base + Duration::from_secs(seconds),
                Turn::Step(flight) => {
                    let flight = &mut flights[flight];
                    let goes_on = flight.step(&mut deployment, now);
                    known.look(flight, now, policy)?;
                    if !goes_on {
                        flight.land(&mut deployment);
                        *flight = Flight::new(&deployment, flight.place, flight.node);
                    }
                }
                Turn::Begin { flight, place, node } => {
                    flights[flight].land(&mut deployment);
                    flights[flight] = Flight::new(&deployment, place, node);
                }
            }
        }
        // Whatever state remains, a mobile that attaches alone succeeds within three attempts.
        for place in 0..2 {
            let attached = (0..3).any(|_| {
                let mut flight = Flight::new(&deployment, place, 1);
                while flight.step(&mut deployment, now) {}
                flight.land(&mut deployment)
            });
            prop_assert!(attached, "mobile {place} is locked out");
        }
        let resumed: u64 = deployment.nodes.iter().map(|node| node.tally().resumed).sum();
        prop_assert!(resumed <= known.resumed + 2, "{resumed}, and {} seen", known.resumed);
    }
}
