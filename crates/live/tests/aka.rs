//! Attaches by SSL-based AKA with real handshakes: what the network allows, what it refuses, and what is on the wire.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use shakedown_aka::core::{Answer, Query, Unanswered};
use shakedown_aka::message::{Cause, Message};
use shakedown_aka::mobile::{AttachFailure, Mobile, MobileEvent};
use shakedown_aka::names::{Imsi, Network};
use shakedown_aka::sessions::{Decision, Policy, Store};
use shakedown_aka::sgsn::{Attach, AttachEvent};
use shakedown_live::aka::{Card, Operator, Plan, World, simulate, suite_of};
use shakedown_pki::Profile;
use shakedown_trace::suite::KeyType;
use shakedown_trace::{Endpoint, Suite};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::time::Duration;

const SUITE: &str = "tls1.2/ecdhe_ecdsa+p256/p256/mutual";

fn suite() -> Suite {
    SUITE.parse().unwrap()
}

/// What was on the wire, by sender, and what became of it.
#[derive(Debug, Default)]
struct Seen {
    up: Vec<u8>,
    down: Vec<u8>,
    mobile: Vec<MobileEvent>,
    sgsn: Vec<AttachEvent>,
    queries: Vec<Query>,
}

impl Seen {
    fn attached(&self) -> bool {
        self.mobile.iter().any(|event| matches!(event, MobileEvent::Attached(_)))
            && self.sgsn.iter().any(|event| matches!(event, AttachEvent::Attached { .. }))
    }

    fn failure(&self) -> Option<&AttachFailure> {
        self.mobile.iter().find_map(|event| match event {
            MobileEvent::Failed(failure) => Some(failure),
            _ => None,
        })
    }

    fn cause(&self) -> Option<Cause> {
        self.sgsn.iter().find_map(|event| match event {
            AttachEvent::Rejected { cause, .. } => Some(*cause),
            _ => None,
        })
    }

    /// Session IDs of ClientHello and ServerHello, read from the bytes: a session is resumed where they are the same
    /// and not empty (RFC 5246, 7.4.1.3).
    fn session_ids(&self) -> (Vec<u8>, Vec<u8>) {
        (session_id(&self.up, 1), session_id(&self.down, 2))
    }
}

/// The session ID of the first hello of a type: an attach's messages, TLS records in those of kind 2, handshake headers.
fn session_id(stream: &[u8], kind: u8) -> Vec<u8> {
    let mut rest = stream;
    while let [message, high, low, tail @ ..] = rest {
        let (body, next) = tail.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        if *message == 2 && body[0] == 22 && body[5] == kind {
            // Record header 5, handshake header 4, version 2, random 32.
            let id = &body[5 + 4 + 2 + 32..];
            return id[1..1 + usize::from(id[0])].to_vec();
        }
        rest = next;
    }
    Vec::new()
}

/// What another node answers.
type Answered = Result<Answer, Unanswered>;

/// What the node of a world says that is asked.
fn answer(
    world: &mut World,
    attach: &Attach<Box<dyn Endpoint>>,
    network: &Network,
    query: &Query,
) -> Answered {
    let found = if query.is_for_sgsn() {
        let old = &attach.temporary().unwrap().node;
        world.nodes.iter_mut().find(|node| node.name() == old).map(|node| node.answer(query).unwrap())
    } else {
        world.homes.get_mut(network).map(|hss| hss.answer(query))
    };
    found.ok_or(Unanswered::Unknown)
}

/// An attach without a network in between; `meddle` may alter what the mobile sends first.
fn attach(world: &mut World, place: usize, node: usize, now: Duration, meddle: fn(&mut Vec<u8>)) -> Seen {
    attach_among(world, place, node, now, meddle, &mut |_| None)
}

/// The same; `instead` may answer in the place of a node.
fn attach_among(
    world: &mut World,
    place: usize,
    node: usize,
    now: Duration,
    meddle: fn(&mut Vec<u8>),
    instead: &mut dyn FnMut(&Query) -> Option<Answered>,
) -> Seen {
    let mut mobile = world.mobile(place).unwrap();
    let mut attach = Attach::default();
    let mut seen = Seen::default();
    for round in 0..40 {
        let mut up = Vec::new();
        mobile.poll_transmit(now, &mut up);
        if round == 0 {
            meddle(&mut up);
        }
        seen.up.extend(&up);
        // In pieces, as a stream may bring it.
        for piece in up.chunks(700) {
            attach.handle_input(&mut world.nodes[node], now, piece);
        }
        while let Some((network, query)) = attach.poll_query() {
            let answer = instead(&query).unwrap_or_else(|| answer(world, &attach, &network, &query));
            // Over the wire between nodes.
            let bytes = query.to_bytes();
            assert_eq!(Query::read(bytes[0], &bytes[3..]).unwrap(), query);
            seen.queries.push(query);
            if let Ok(answer) = &answer {
                let bytes = answer.to_bytes();
                assert_eq!(Answer::read(bytes[0], &bytes[3..]).unwrap(), *answer);
            }
            attach.handle_answer(&mut world.nodes[node], now, answer);
        }
        let mut down = Vec::new();
        attach.poll_transmit(&mut down);
        seen.down.extend(&down);
        if up.is_empty() && down.is_empty() {
            break;
        }
        mobile.handle_input(now, &down);
        while let Some(event) = mobile.poll_event() {
            seen.mobile.push(event);
        }
        while let Some(event) = attach.poll_event() {
            seen.sgsn.push(event);
        }
    }
    if seen.attached() {
        let resumed = mobile.negotiated().unwrap().resumed;
        let session = mobile.endpoint().session().filter(|_| !resumed);
        let given = seen.mobile.iter().find_map(|event| match event {
            MobileEvent::Attached(temporary) => Some(temporary.clone()),
            _ => None,
        });
        world.keep(place, given.unwrap(), session);
    }
    seen
}

fn untouched(_: &mut Vec<u8>) {}

/// Somebody says to a node what he has overheard, and whatever comes to his mind then.
fn replay(world: &mut World, overheard: &[u8], node: usize, now: Duration) {
    let mut attach = Attach::default();
    attach.handle_input(&mut world.nodes[node], now, overheard);
    while let Some((network, query)) = attach.poll_query() {
        let answer = answer(world, &attach, &network, &query);
        attach.handle_answer(&mut world.nodes[node], now, answer);
    }
    let mut rest = Vec::new();
    Message::Tls(vec![20, 3, 3, 0, 1, 1]).put(&mut rest);
    Message::Tls([&[22, 3, 3, 0, 64][..], &[7; 64]].concat()).put(&mut rest);
    attach.handle_input(&mut world.nodes[node], now, &rest);
    assert!(!attach.is_accepted());
    attach.handle_close(&mut world.nodes[node]);
}

fn world(mobiles: usize, policy: Policy) -> World {
    World::new(&suite(), mobiles, true, policy).unwrap()
}

/// What happens between networks and mobiles.
#[derive(Clone, Debug)]
enum Step {
    Attach {
        place: usize,
        node: usize,
    },
    Wait {
        seconds: u64,
    },
    Forget {
        place: usize,
        temporary: bool,
        session: bool,
    },
    /// A stranger says what a mobile said last.
    Replay {
        place: usize,
        node: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..2_usize, 0..2_usize).prop_map(|(place, node)| Step::Attach { place, node }),
        2 => (1..40_u64).prop_map(|seconds| Step::Wait { seconds }),
        2 => (0..2_usize, 0..2_usize).prop_map(|(place, node)| Step::Replay { place, node }),
        1 => (0..2_usize, any::<bool>(), any::<bool>())
            .prop_map(|(place, temporary, session)| Step::Forget { place, temporary, session }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Counted from the hellos on the wire, over both SGSNs: whatever mobiles do, no session is resumed more often or
    /// later than it may be, nobody fails to attach, and no identity is ever in the clear.
    #[test]
    fn no_session_is_resumed_beyond_a_threshold(
        max_resumptions in 0..4_u32,
        max_age in 1..60_u64,
        steps in prop::collection::vec(step(), 1..25),
    ) {
        let policy = Policy { max_resumptions, max_age: Duration::from_secs(max_age) };
        let mut world = world(2, policy);
        let mut now = Duration::from_secs(1_000_000);
        let mut sessions: HashMap<Vec<u8>, (u32, Duration)> = HashMap::new();
        let mut overheard = [Vec::new(), Vec::new()];
        for step in steps {
            match step {
                Step::Replay { place, node } => replay(&mut world, &overheard[place], node, now),
                Step::Wait { seconds } => now += Duration::from_secs(seconds),
                Step::Forget { place, temporary, session } => world.forget(place, temporary, session),
                Step::Attach { place, node } => {
                    let seen = attach(&mut world, place, node, now, untouched);
                    prop_assert!(seen.attached(), "{seen:?}");
                    overheard[place].clone_from(&seen.up);
                    let (offered, answered) = seen.session_ids();
                    prop_assert!(!answered.is_empty());
                    if offered == answered {
                        let Some((count, last)) = sessions.get_mut(&answered) else {
                            return Err(TestCaseError::fail("a session that nobody made was resumed"));
                        };
                        *count += 1;
                        prop_assert!(*count <= max_resumptions, "resumed {count} times");
                        prop_assert!(now - *last < Duration::from_secs(max_age), "resumed after {:?}", now - *last);
                        *last = now;
                    } else {
                        prop_assert!(!sessions.contains_key(&answered), "a new session has an old ID");
                        sessions.insert(answered, (0, now));
                    }
                    for card in &world.cards {
                        let imsi = card.imsi.as_str().as_bytes();
                        for wire in [&seen.up, &seen.down] {
                            prop_assert!(!wire.windows(imsi.len()).any(|window| window == imsi));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_session_is_resumed_as_often_as_it_may_be_and_then_made_anew() {
    let mut world = world(1, Policy { max_resumptions: 2, max_age: Duration::from_secs(100) });
    let resumed: Vec<bool> = (0..7)
        .map(|number| {
            let seen = attach(&mut world, 0, 0, Duration::from_secs(10 * number), untouched);
            assert!(seen.attached(), "{seen:?}");
            let (offered, answered) = seen.session_ids();
            offered == answered
        })
        .collect();
    assert_eq!(resumed, [false, true, true, false, true, true, false]);
    let tally = world.nodes[0].tally();
    assert_eq!((tally.full, tally.resumed), (3, 4));
    assert_eq!(tally.not_resumed, BTreeMap::from([("too_often", 2)]));
    let just = attach(&mut world, 0, 0, Duration::from_secs(159), untouched);
    assert_eq!(just.session_ids().0, just.session_ids().1, "the last time is 99 s ago");
    let late = attach(&mut world, 0, 0, Duration::from_secs(259), untouched);
    assert_ne!(late.session_ids().0, late.session_ids().1, "the last time is 100 s ago");
    assert_eq!(world.nodes[0].tally().not_resumed.get("too_old"), Some(&1));
}

#[test]
fn a_session_goes_with_its_mobile_to_the_next_sgsn_and_is_gone_at_the_last() {
    let mut world = world(1, Policy { max_resumptions: 2, max_age: Duration::from_secs(100) });
    let now = Duration::from_secs(1);
    assert!(attach(&mut world, 0, 0, now, untouched).attached());
    let moved = attach(&mut world, 0, 1, now, untouched);
    assert!(moved.attached(), "{moved:?}");
    assert_eq!(moved.session_ids().0, moved.session_ids().1, "resumed at the other SGSN");
    assert!(matches!(moved.queries[0], Query::Context { .. }));
    assert!(
        moved.queries.iter().any(|query| matches!(query, Query::Location { certificate: None, .. })),
        "the home network learns where its subscriber is: {:?}",
        moved.queries
    );
    let imsi = world.cards[0].imsi.clone();
    let hss = world.homes.values().next().unwrap();
    assert_eq!(hss.subscribed(&imsi).unwrap().location.as_ref().unwrap().1.as_str(), "sgsn-2");
    // Without its temporary identity the mobile leads nobody to where its session is now.
    world.forget(0, true, false);
    let back = attach(&mut world, 0, 0, now, untouched);
    assert!(back.attached());
    assert_ne!(back.session_ids().0, back.session_ids().1, "the first SGSN has kept nothing");
}

/// What a mobile says first, overheard.
fn first_words(world: &World, place: usize, now: Duration) -> Vec<u8> {
    let mut up = Vec::new();
    world.mobile(place).unwrap().poll_transmit(now, &mut up);
    up
}

#[test]
fn who_has_overheard_a_temporary_identity_and_a_session_id_takes_nothing_from_their_mobile() {
    let mut world = world(2, Policy { max_resumptions: 4, max_age: Duration::from_secs(100) });
    let now = Duration::from_secs(1);
    let resumed = |seen: &Seen| {
        assert!(seen.attached(), "{seen:?}");
        seen.session_ids().0 == seen.session_ids().1
    };
    assert!(!resumed(&attach(&mut world, 0, 0, now, untouched)));
    let overheard = first_words(&world, 0, now);
    let strangers = |world: &mut World| {
        for node in [1, 0, 1, 0, 1, 0, 1, 0, 1] {
            replay(world, &overheard, node, now);
        }
    };
    strangers(&mut world);
    assert!(resumed(&attach(&mut world, 0, 0, now, untouched)), "at its own SGSN");
    strangers(&mut world);
    assert!(resumed(&attach(&mut world, 0, 1, now, untouched)), "and at another");
    let tally = world.nodes[0].tally();
    assert_eq!((tally.resumed, tally.handed_over), (1, 1), "handed over once, to its own mobile");

    // A subscriber with another's temporary identity.
    let temporary = world.temporary(0);
    assert!(!resumed(&attach(&mut world, 1, 0, now, untouched)));
    world.keep(1, temporary.unwrap(), None);
    world.forget(1, false, true);
    let seen = attach(&mut world, 1, 0, now, untouched);
    assert!(matches!(seen.queries[0], Query::Context { .. }));
    assert!(!seen.queries.iter().any(|query| matches!(query, Query::Claim { .. })), "{:?}", seen.queries);
    assert!(seen.attached());
    assert!(resumed(&attach(&mut world, 0, 1, now, untouched)), "his own is where it was");
}

#[test]
fn a_session_is_in_one_place_only_whatever_becomes_of_the_way_there() {
    let mut world = world(1, Policy { max_resumptions: 3, max_age: Duration::from_secs(100) });
    let now = Duration::from_secs(1);
    assert!(attach(&mut world, 0, 0, now, untouched).attached());
    // The old SGSN is asked, and does not let it go: nobody attaches by a session that is still elsewhere.
    let seen = attach_among(&mut world, 0, 1, now, untouched, &mut |query| {
        matches!(query, Query::Claim { .. }).then_some(Err(Unanswered::Silent))
    });
    assert_eq!(seen.cause(), Some(Cause::NetworkFailure), "{seen:?}");
    // It refuses to say anything: the mobile attaches all the same.
    let mut kept = first_words(&world, 0, now);
    let seen = attach_among(&mut world, 0, 1, now, untouched, &mut |query| {
        query.is_for_sgsn().then_some(Ok(Answer::Refused(Cause::Protocol)))
    });
    assert!(seen.attached(), "{seen:?}");
    assert_ne!(seen.session_ids().0, seen.session_ids().1, "by a full handshake");
    // What the old one still has is of no use to who has only overheard it.
    replay(&mut world, &kept, 0, now);
    kept.clear();
    assert_eq!(world.nodes[0].tally().handed_over, 0);
}

#[test]
fn who_is_barred_is_not_let_in_by_the_session_that_came_with_him() {
    let mut world = world(1, Policy::default());
    let now = Duration::from_secs(1);
    assert!(attach(&mut world, 0, 0, now, untouched).attached());
    let home = world.cards[0].home.clone();
    let imsi = world.cards[0].imsi.clone();
    world.homes.get_mut(&home).unwrap().bar(&imsi, true);
    for _ in 0..3 {
        let seen = attach(&mut world, 0, 1, now, untouched);
        assert_eq!(seen.failure(), Some(&AttachFailure::Rejected(Cause::Barred)), "{seen:?}");
    }
}

#[test]
fn what_tls_did_not_resume_was_a_full_attach_and_leaves_a_session() {
    let mut world = world(1, Policy::default());
    let now = Duration::from_secs(1);
    let first = attach(&mut world, 0, 0, now, untouched);
    let (_, id) = first.session_ids();
    {
        let mut sessions = world.nodes[0].sessions();
        let mut record = sessions.store().session(&id).unwrap().unwrap();
        // TLS can make nothing of it.
        record.secret.truncate(10);
        sessions.store().keep_session(&id, &record).unwrap();
    }
    let second = attach(&mut world, 0, 0, now, untouched);
    assert!(second.attached(), "{second:?}");
    assert!(matches!(second.sgsn[..], [AttachEvent::Attached { resumed: false, .. }]), "{:?}", second.sgsn);
    let third = attach(&mut world, 0, 0, now, untouched);
    assert_eq!(third.session_ids().0, second.session_ids().1);
    assert_eq!(third.session_ids().0, third.session_ids().1, "what the full handshake made is resumed");
    let tally = world.nodes[0].tally();
    assert_eq!((tally.full, tally.resumed), (2, 1));
    assert_eq!(tally.not_resumed, BTreeMap::from([("declined", 1)]));
}

#[test]
fn a_clock_that_is_set_back_makes_no_session_younger() {
    let mut world = world(1, Policy { max_resumptions: 9, max_age: Duration::from_secs(100) });
    let at_s = Duration::from_secs;
    let resumes = |world: &mut World, second: u64| {
        let seen = attach(world, 0, 0, at_s(second), untouched);
        assert!(seen.attached(), "{seen:?}");
        seen.session_ids().0 == seen.session_ids().1
    };
    assert!(!resumes(&mut world, 5000));
    assert!(resumes(&mut world, 5050));
    assert!(!resumes(&mut world, 1000), "made in the future");
    assert_eq!(world.nodes[0].tally().not_resumed, BTreeMap::from([("clock_set_back", 1)]));
    assert!(resumes(&mut world, 1001), "and what is made now ages from now on");
    assert!(!resumes(&mut world, 1101));
    // Refused when the clock was behind, in an attach that came to nothing, and offered again when it has caught up.
    let overheard = first_words(&world, 0, at_s(1101));
    replay(&mut world, &overheard, 0, at_s(500));
    assert!(!resumes(&mut world, 1102), "nobody knows how old it is");
}

#[test]
fn a_claim_takes_nothing_under_a_temporary_identity_that_is_anothers() {
    let mut world = world(2, Policy::default());
    let now = Duration::from_secs(1);
    assert!(attach(&mut world, 0, 0, now, untouched).attached());
    let ptmsi = world.temporary(0).unwrap().ptmsi;
    let claim = |world: &mut World, place: usize| {
        let imsi = world.cards[place].imsi.clone();
        world.nodes[0].answer(&Query::Claim { ptmsi, imsi }).unwrap()
    };
    assert_eq!(claim(&mut world, 1), Answer::UnknownContext);
    assert_eq!(world.nodes[0].tally().handed_over, 0);
    let own = claim(&mut world, 0);
    assert!(matches!(&own, Answer::Context { imsi, .. } if *imsi == world.cards[0].imsi), "{own:?}");
    assert_eq!(claim(&mut world, 0), Answer::UnknownContext, "it is gone");
}

/// An attach under way.
struct Flight {
    place: usize,
    node: usize,
    mobile: Mobile<Box<dyn Endpoint>>,
    attach: Attach<Box<dyn Endpoint>>,
    seen: Seen,
    counted: bool,
}

impl Flight {
    fn new(world: &World, place: usize, node: usize) -> Self {
        let (mobile, attach) = (world.mobile(place).unwrap(), Attach::default());
        Self { place, node, mobile, attach, seen: Seen::default(), counted: false }
    }

    /// What the mobile has to say goes to the SGSN, and what that has to say comes back; one query is answered. False where
    /// nothing was said.
    fn step(&mut self, world: &mut World, now: Duration) -> bool {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        self.mobile.poll_transmit(now, &mut up);
        self.seen.up.extend(&up);
        let query = self.attach.poll_query();
        if let Some((network, query)) = &query {
            let answer = answer(world, &self.attach, network, query);
            self.attach.handle_answer(&mut world.nodes[self.node], now, answer);
        }
        self.attach.handle_input(&mut world.nodes[self.node], now, &up);
        self.attach.poll_transmit(&mut down);
        self.seen.down.extend(&down);
        self.mobile.handle_input(now, &down);
        self.seen.mobile.extend(std::iter::from_fn(|| self.mobile.poll_event()));
        self.seen.sgsn.extend(std::iter::from_fn(|| self.attach.poll_event()));
        query.is_some() || !up.is_empty() || !down.is_empty()
    }

    /// It is over: what the mobile keeps of it.
    fn land(&mut self, world: &mut World) -> bool {
        self.attach.handle_close(&mut world.nodes[self.node]);
        let given = self.seen.mobile.iter().find_map(|event| match event {
            MobileEvent::Attached(temporary) => Some(temporary.clone()),
            _ => None,
        });
        let Some(given) = given else { return false };
        let resumed = self.mobile.negotiated().unwrap().resumed;
        let session = self.mobile.endpoint().session().filter(|_| !resumed);
        world.keep(self.place, given, session);
        true
    }
}

/// What happens while two attaches are under way.
#[derive(Clone, Debug)]
enum Turn {
    /// One of them goes on.
    Step(usize),
    /// One of them ends as it is, and another begins: of a mobile, at an SGSN.
    Begin { flight: usize, place: usize, node: usize },
    /// The clock is set, to seconds after a time.
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

/// What is known of sessions from the wire, and from what SGSNs decided on offers.
#[derive(Default)]
struct Known {
    /// How often each was resumed, and when last.
    sessions: HashMap<Vec<u8>, (u32, Duration)>,
    /// Those that the SGSN which held them refused as of a time to come.
    refused: HashSet<Vec<u8>>,
    resumed: u64,
}

impl Known {
    /// Looks at an attach after each of its steps.
    fn look(&mut self, flight: &mut Flight, now: Duration, policy: Policy) -> Result<(), TestCaseError> {
        let offered = flight.attach.offered();
        if let Some(offered) = offered.filter(|one| one.decision == Decision::ClockSetBack && !one.is_guest) {
            self.refused.insert(offered.id.clone());
        }
        if flight.counted || !flight.attach.is_accepted() {
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
            return Err(TestCaseError::fail("a session that nobody made was resumed"));
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
    /// The same with two attaches under way at once, of one mobile or of two, each cut short anywhere, and a clock that is
    /// put forward and back between any two messages.
    #[test]
    fn nor_by_attaches_at_the_same_time_under_a_clock_that_is_set(
        max_resumptions in 0..4_u32,
        max_age in 1..100_u64,
        turns in prop::collection::vec(turn(), 40..200),
    ) {
        let policy = Policy { max_resumptions, max_age: Duration::from_secs(max_age) };
        let mut world = world(2, policy);
        let base = Duration::from_secs(1_000_000);
        let mut now = base;
        let mut known = Known::default();
        let mut flights = [Flight::new(&world, 0, 0), Flight::new(&world, 1, 0)];
        for turn in turns {
            match turn {
                Turn::Clock(seconds) => now = base + Duration::from_secs(seconds),
                Turn::Step(flight) => {
                    let flight = &mut flights[flight];
                    let goes_on = flight.step(&mut world, now);
                    known.look(flight, now, policy)?;
                    if !goes_on {
                        flight.land(&mut world);
                        *flight = Flight::new(&world, flight.place, flight.node);
                    }
                }
                Turn::Begin { flight, place, node } => {
                    flights[flight].land(&mut world);
                    flights[flight] = Flight::new(&world, place, node);
                }
            }
        }
        // Whatever was left behind: a mobile that is alone and tries again gets in.
        for place in 0..2 {
            let attached = (0..3).any(|_| {
                let mut flight = Flight::new(&world, place, 1);
                while flight.step(&mut world, now) {}
                flight.land(&mut world)
            });
            prop_assert!(attached, "mobile {place} is locked out");
        }
        let resumed: u64 = world.nodes.iter().map(|node| node.tally().resumed).sum();
        prop_assert!(resumed <= known.resumed + 2, "{resumed}, and {} seen", known.resumed);
    }
}

#[test]
fn a_connection_that_ends_after_the_attach_was_no_rejection() {
    let mut world = world(1, Policy::default());
    let now = Duration::from_secs(1);
    let mut mobile = world.mobile(0).unwrap();
    let mut attach = Attach::default();
    for _ in 0..8 {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        mobile.poll_transmit(now, &mut up);
        attach.handle_input(&mut world.nodes[0], now, &up);
        while let Some((network, query)) = attach.poll_query() {
            let answer = answer(&mut world, &attach, &network, &query);
            attach.handle_answer(&mut world.nodes[0], now, answer);
        }
        attach.poll_transmit(&mut down);
        mobile.handle_input(now, &down);
    }
    assert!(attach.is_attached());
    let mut alert = Vec::new();
    // A record that nobody can read ends the connection, as an alert does.
    Message::Tls([&[21, 3, 3, 0, 32][..], &[9; 32]].concat()).put(&mut alert);
    attach.handle_input(&mut world.nodes[0], now, &alert);
    assert!(attach.is_over());
    let events: Vec<_> = std::iter::from_fn(|| attach.poll_event()).collect();
    assert!(matches!(events[..], [AttachEvent::Attached { .. }]), "{events:?}");
    assert_eq!(world.nodes[0].tally().rejected, BTreeMap::new());
}

/// A card of another operator.
fn foreign(operator: &Operator, certifier: &Operator, claimed: &Network, root: Vec<u8>) -> Card {
    let leaf = operator.subscriber("stranger.example").unwrap();
    let serving = Network::new("20801").unwrap();
    Card {
        imsi: Imsi::new("202019999999999").unwrap(),
        home: claimed.clone(),
        root,
        leaf: leaf.certificate,
        key: leaf.key,
        authorities: [(serving, certifier.certify(operator).unwrap())].into(),
    }
}

fn operator(network: &str) -> Operator {
    let kinds = suite_of(&suite()).unwrap().keys;
    let kinds: [KeyType; 3] = [kinds[0], kinds[1], kinds[2]];
    Operator::new(&Network::new(network).unwrap(), kinds, &Profile::default()).unwrap()
}

#[test]
fn networks_without_an_agreement_are_refused_whatever_they_certify() {
    let mut world = world(1, Policy::default());
    let now = Duration::from_secs(1);
    let stranger = operator("31099");
    let home = world.cards[0].home.clone();
    let root = world.cards[0].root.clone();

    // It says who it is, and nobody knows it.
    let place =
        world.add(foreign(&stranger, &stranger, stranger.network(), stranger.root().unwrap())).unwrap();
    let seen = attach(&mut world, place, 0, now, untouched);
    assert_eq!(seen.cause(), Some(Cause::UnknownHome), "no HSS is known for it");
    let line = format!("{:?}", seen.sgsn);
    assert!(line.contains("no HSS of network 31099 is known here"), "{line}");
    assert!(!seen.attached());

    // Its HSS answers, with a cross-certificate of its own making.
    let mut hss = shakedown_aka::hss::Hss::new();
    let abroad = Network::new("20801").unwrap();
    hss.certify(abroad.clone(), stranger.certify(&world.operators()[1]).unwrap());
    world.homes.insert(stranger.network().clone(), hss);
    let seen = attach(&mut world, place, 0, now, untouched);
    assert_eq!(seen.failure(), Some(&AttachFailure::Rejected(Cause::NoRoamingAgreement)));
    let line = format!("{:?}", seen.sgsn);
    assert!(line.contains("network 31099 is no partner"), "{line}");

    // It says that it is a partner; its subscribers' authority is certified by nobody whom the SGSN trusts.
    let place = world.add(foreign(&stranger, &stranger, &home, root.clone())).unwrap();
    let seen = attach(&mut world, place, 0, now, untouched);
    assert_eq!(seen.cause(), Some(Cause::Handshake), "{seen:?}");
    let line = format!("{:?}", seen.sgsn);
    assert!(line.contains("certificate"), "{line}");

    // The partner's HSS hands out what another network certified.
    let wrong = stranger.certify(&world.operators()[1]).unwrap();
    world.homes.get_mut(&home).unwrap().certify(abroad, wrong);
    let seen = attach(&mut world, 0, 1, now, untouched);
    assert_eq!(seen.failure(), Some(&AttachFailure::Rejected(Cause::NoRoamingAgreement)));
    let line = format!("{:?}", seen.sgsn);
    assert!(line.contains("was not issued by network 20201"), "{line}");
}

#[test]
fn a_mobile_believes_no_network_that_its_own_has_not_certified() {
    let mut world = world(1, Policy::default());
    let stranger = operator("31099");
    let card = Card { root: stranger.root().unwrap(), ..world.cards[0].clone() };
    let imsi = card.imsi.clone();
    let place = world.add(card).unwrap();
    let seen = attach(&mut world, place, 0, Duration::from_secs(1), untouched);
    assert!(matches!(seen.failure(), Some(AttachFailure::Handshake(_))), "{seen:?}");
    assert!(!seen.queries.iter().any(|query| format!("{query:?}").contains(imsi.as_str())), "told who it is");
}

#[test]
fn who_is_barred_or_has_another_certificate_or_is_not_known_is_rejected_under_protection() {
    let mut world = world(2, Policy::default());
    let now = Duration::from_secs(1);
    let home = world.cards[0].home.clone();
    let imsi = world.cards[0].imsi.clone();
    world.homes.get_mut(&home).unwrap().bar(&imsi, true);
    let seen = attach(&mut world, 0, 0, now, untouched);
    assert_eq!(seen.failure(), Some(&AttachFailure::Rejected(Cause::Barred)));
    // A reject in the clear would be a message of kind 5.
    assert!(!kinds(&seen.down).contains(&5), "{:?}", kinds(&seen.down));
    // A subscriber in another's name.
    let card = Card { imsi: imsi.clone(), ..world.cards[1].clone() };
    let place = world.add(card).unwrap();
    let seen = attach(&mut world, place, 0, now, untouched);
    assert_eq!(seen.failure(), Some(&AttachFailure::Rejected(Cause::UnknownSubscriber)));
    let card = Card { imsi: Imsi::new("202010000099999").unwrap(), ..world.cards[1].clone() };
    let place = world.add(card).unwrap();
    let seen = attach(&mut world, place, 0, now, untouched);
    assert_eq!(seen.failure(), Some(&AttachFailure::Rejected(Cause::UnknownSubscriber)));
    world.homes.get_mut(&home).unwrap().bar(&imsi, false);
    assert!(attach(&mut world, 0, 0, now, untouched).attached());
}

/// Kinds of an attach's messages in one direction.
fn kinds(stream: &[u8]) -> Vec<u8> {
    let (mut rest, mut found) = (stream, Vec::new());
    while let [kind, high, low, tail @ ..] = rest {
        found.push(*kind);
        rest = &tail[usize::from(u16::from_be_bytes([*high, *low]))..];
    }
    found
}

#[test]
fn an_attach_request_that_was_altered_on_its_way_is_noticed() {
    let mut world = world(1, Policy::default());
    let now = Duration::from_secs(1);
    assert!(attach(&mut world, 0, 0, now, untouched).attached());
    // The temporary identity in the second request, in its last byte.
    let seen = attach(&mut world, 0, 0, now, |up| {
        let end = 3 + usize::from(u16::from_be_bytes([up[1], up[2]]));
        up[end - 1] ^= 1;
    });
    assert!(!seen.attached(), "{seen:?}");
    assert_eq!(seen.cause(), Some(Cause::Protocol));
}

#[test]
fn suites_that_cannot_carry_an_attach_are_refused_and_others_become_mutual_with_two_levels() {
    let good = |name: &str| suite_of(&name.parse().unwrap()).map(|suite| suite.to_string());
    assert_eq!(good("tls1.2/ecdhe_ecdsa/p256").unwrap(), "tls1.2/ecdhe_ecdsa+x25519/p256@p256@p256/mutual");
    for (bad, line) in [
        ("tls1.3/x25519/p256/mutual", "accepted: tls1.0, tls1.1, tls1.2"),
        ("ssl3/rsa/rsa1024/mutual", "accepted: tls1.0, tls1.1, tls1.2"),
        ("tls1.2/psk", "accepted: key exchanges with certificates"),
        ("tls1.2/ecdhe_ecdsa/p256/mutual/resumed", "accepted: a full handshake"),
        ("tls1.2/ecdhe_ecdsa/p256@p384/mutual", "accepted: LEAF, or LEAF@AUTHORITY@ROOT"),
    ] {
        let error = good(bad).unwrap_err().to_string();
        assert!(error.ends_with(line), "{error}");
    }
}

fn plan(extra: &str) -> Plan {
    let message = |from: &str, place: usize| {
        let (generate, process) = (0.001 * (1 << place) as f64, 0.0001 * (1 << place) as f64);
        format!(
            r#"{{"from":"{from}","name":"m","bytes":1,"flight":{place},"generate":{{"kind":"constant","s":{generate}}},
               "process":{{"kind":"constant","s":{process}}}}}"#
        )
    };
    let handshake = |senders: &[&str]| {
        let messages: Vec<_> = senders.iter().enumerate().map(|(place, from)| message(from, place)).collect();
        format!(r#"{{"name":"n","transport":"stream","messages":[{}]}}"#, messages.join(","))
    };
    let (full, resumed) =
        (handshake(&["client", "server", "client", "server"]), handshake(&["client", "server", "client"]));
    let text = format!(
        r#"{{"bearer":{{"up_bits_per_s":null,"down_bits_per_s":null,"traversal_s":0.5}},"full":{full},"resumed":{resumed},
            "attaches":3,"mobiles":1,"gap_s":0.0,"roaming":true,"moves":0.0,"background_per_s":0.0,"workers":1,
            "max_resumptions":10,"max_age_s":1000.0,"core_round_trip_s":0.04,"preparation":{{"kind":"constant","s":0.25}},
            "patience_s":60.0,"seed":7{extra}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

/// On a bearer that only delays: round trips, what the sides compute, what the core network takes. Nothing else.
#[test]
fn virtual_times_are_what_arithmetic_says() {
    let outcome = simulate(&suite(), &plan(""), &mut |_| ControlFlow::Continue(())).unwrap();
    let near = |found: Option<f64>, wanted: f64| {
        let found = found.unwrap();
        assert!((found - wanted).abs() < 1e-6, "{found}, not {wanted}");
    };
    let [first, second, _] = &outcome.attaches[..] else { panic!("{outcome:?}") };
    assert_eq!((first.resumed, second.resumed), (false, true), "{outcome:?}");
    // Client: 1 | 0.2 + 4 | 0.8 ms; server: 0.1 + 2 | 0.4 + 8.
    let (client, server) = (1e-3 * (1.0 + 4.2 + 0.8), 1e-3 * (2.1 + 8.4));
    near(first.nrt_s, 1.0);
    near(first.rpt_s, 1.25);
    // Before the handshake the SGSN asks for the cross-certificate.
    near(first.tht_s, 2.0 + client + server + 0.04);
    near(first.tst_s, 3.25 + client + server + 0.04);
    // From the ServerHello: two round trips, the mobile's two steps, the second of the server's, the home network.
    near(first.scrt_s, 2.0 + 1e-3 * (4.2 + 0.8 + 8.4) + 0.04);
    near(first.attach_s, 1.25 + 2.0 + client + server + 0.04 + 1.0 + 0.04);
    assert_eq!(first.queries, 2);
    // Resumed: client 1 | 0.2 + 4; server 0.1 + 2 | 0.4. Accepted when the mobile's Finished is there.
    near(second.nrt_s, 1.0);
    near(second.tht_s, 1.0 + 1e-3 * (1.0 + 4.2 + 2.1));
    near(second.scrt_s, 1.0 + 1e-3 * (4.2 + 0.4));
    near(second.attach_s, 1.25 + 2.0 + 1e-3 * (1.0 + 4.2 + 2.1 + 0.4));
    assert_eq!(second.queries, 0);
    assert_eq!(outcome.attaches[0].retransmissions, 0);
}

#[test]
fn the_same_plan_gives_the_same_outcome_and_another_seed_another() {
    let mut noisy = plan("");
    noisy.bearer.traversal_sd_s = 0.1;
    noisy.background_per_s = 50.0;
    noisy.gap_s = 5.0;
    noisy.moves = 0.4;
    noisy.mobiles = 2;
    noisy.attaches = 20;
    noisy.max_resumptions = 3;
    let run = |plan: &Plan| {
        let outcome = simulate(&suite(), plan, &mut |_| ControlFlow::Continue(())).unwrap();
        serde_json::to_string(&outcome).unwrap()
    };
    let text = run(&noisy);
    assert_eq!(text, run(&noisy));
    assert!(text.contains("\"handed_over\":") && !text.contains("\"handed_over\":0"), "{text}");
    let other = Plan { seed: 8, ..noisy };
    assert_ne!(text, run(&other));
}

/// An M/D/1 queue: others' requests of one length, and the mobile's that comes among them.
#[test]
fn others_requests_make_the_servers_work_wait() {
    let wait = |rate: f64| {
        let mut busy = plan("");
        busy.background_per_s = rate;
        busy.gap_s = 1.0;
        busy.attaches = 1500;
        busy.max_resumptions = 0;
        let outcome = simulate(&suite(), &busy, &mut |_| ControlFlow::Continue(())).unwrap();
        let times: Vec<f64> = outcome.attaches.iter().skip(1).map(|one| one.tht_s.unwrap()).collect();
        let idle = 2.0 + 1e-3 * (6.0 + 10.5);
        times.iter().sum::<f64>() / times.len() as f64 - idle
    };
    assert!(wait(0.0).abs() < 1e-6);
    // Pollaczek and Khinchin: each of the two pieces of work waits rho x / 2 / (1 - rho), with x = 10.5 ms.
    let (rate, x) = (60.0, 0.0105);
    let rho: f64 = rate * x;
    let expected = 2.0 * rho * x / 2.0 / (1.0 - rho);
    let found = wait(rate);
    assert!((found / expected - 1.0).abs() < 0.1, "waits {found} s, expected {expected} s");
}
