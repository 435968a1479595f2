//! Sessions: resumed as often as allowed, at one SGSN only, and only by their own mobile.

use crate::attaches::{Seen, answer, attach, attach_among, deployment, replay, untouched};
use proptest::prelude::*;
use shakedown_aka::core::{Answer, Query, Unanswered};
use shakedown_aka::message::{Cause, Message};
use shakedown_aka::mobile::AttachFailure;
use shakedown_aka::sessions::Policy;
use shakedown_aka::sgsn::{Attach, AttachEvent};
use shakedown_live::aka::Deployment;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Actions of mobiles and attackers.
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
    /// An attacker replays what a mobile sent last.
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
    /// later than allowed, no mobile fails to attach, and no permanent identity is sent unencrypted.
    #[test]
    fn no_session_is_resumed_beyond_a_threshold(
        max_resumptions in 0..4_u32,
        max_age in 1..60_u64,
        steps in prop::collection::vec(step(), 1..25),
    ) {
        let policy = Policy { max_resumptions, max_age: Duration::from_secs(max_age) };
        let mut deployment = deployment(2, policy);
        let mut now = Duration::from_secs(1_000_000);
        let mut sessions: HashMap<Vec<u8>, (u32, Duration)> = HashMap::new();
        let mut overheard = [Vec::new(), Vec::new()];
        for step in steps {
            match step {
                Step::Replay { place, node } => replay(&mut deployment, &overheard[place], node, now),
                Step::Wait { seconds } => now += Duration::from_secs(seconds),
                Step::Forget { place, temporary, session } => {
                    let kept = &mut deployment.kept[place];
                    kept.0 = kept.0.take().filter(|_| !temporary);
                    kept.1 = kept.1.take().filter(|_| !session);
                }
                Step::Attach { place, node } => {
                    let seen = attach(&mut deployment, place, node, now, untouched);
                    prop_assert!(seen.attached(), "{seen:?}");
                    overheard[place].clone_from(&seen.up);
                    let (offered, answered) = seen.session_ids();
                    prop_assert!(!answered.is_empty());
                    if offered == answered {
                        let Some((count, last)) = sessions.get_mut(&answered) else {
                            return Err(TestCaseError::fail("a session that was never established was resumed"));
                        };
                        *count += 1;
                        prop_assert!(*count <= max_resumptions, "resumed {count} times");
                        prop_assert!(now - *last < Duration::from_secs(max_age), "resumed after {:?}", now - *last);
                        *last = now;
                    } else {
                        prop_assert!(!sessions.contains_key(&answered), "a new session has an old ID");
                        sessions.insert(answered, (0, now));
                    }
                    for card in &deployment.cards {
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
fn session_is_resumed_up_to_the_limit_and_then_replaced() {
    let mut deployment = deployment(1, Policy { max_resumptions: 2, max_age: Duration::from_secs(100) });
    let resumed: Vec<bool> = (0..7)
        .map(|number| {
            let seen = attach(&mut deployment, 0, 0, Duration::from_secs(10 * number), untouched);
            assert!(seen.attached(), "{seen:?}");
            let (offered, answered) = seen.session_ids();
            offered == answered
        })
        .collect();
    assert_eq!(resumed, [false, true, true, false, true, true, false]);
    let tally = deployment.nodes[0].tally();
    assert_eq!((tally.full, tally.resumed), (3, 4));
    assert_eq!(tally.not_resumed, BTreeMap::from([("too_often", 2)]));
    let just = attach(&mut deployment, 0, 0, Duration::from_secs(159), untouched);
    assert_eq!(just.session_ids().0, just.session_ids().1, "the last time is 99 s ago");
    let late = attach(&mut deployment, 0, 0, Duration::from_secs(259), untouched);
    assert_ne!(late.session_ids().0, late.session_ids().1, "the last time is 100 s ago");
    assert_eq!(deployment.nodes[0].tally().not_resumed.get("too_old"), Some(&1));
}

#[test]
fn session_moves_with_its_mobile_and_is_removed_at_the_old_sgsn() {
    let mut deployment = deployment(1, Policy { max_resumptions: 2, max_age: Duration::from_secs(100) });
    let now = Duration::from_secs(1);
    assert!(attach(&mut deployment, 0, 0, now, untouched).attached());
    let moved = attach(&mut deployment, 0, 1, now, untouched);
    assert!(moved.attached(), "{moved:?}");
    assert_eq!(moved.session_ids().0, moved.session_ids().1, "resumed at the other SGSN");
    assert!(matches!(moved.queries[0], Query::Context { .. }));
    assert!(
        moved.queries.iter().any(|query| matches!(query, Query::Location { certificate: None, .. })),
        "the home network learns where its subscriber is: {:?}",
        moved.queries
    );
    let imsi = deployment.cards[0].imsi.clone();
    let hss = deployment.homes.values().next().unwrap();
    assert_eq!(hss.subscribed(&imsi).unwrap().location.as_ref().unwrap().1.as_str(), "sgsn-2");
    // Without its temporary identity the mobile does not name the SGSN that has its session.
    deployment.kept[0].0 = None;
    let back = attach(&mut deployment, 0, 0, now, untouched);
    assert!(back.attached());
    assert_ne!(back.session_ids().0, back.session_ids().1, "the first SGSN has kept nothing");
}

/// A mobile's first output, as an attacker overhears it.
fn first_words(deployment: &Deployment, place: usize, now: Duration) -> Vec<u8> {
    let mut up = Vec::new();
    deployment.mobile(place).unwrap().poll_transmit(now, &mut up);
    up
}

#[test]
fn eavesdropped_identity_and_session_id_give_no_session() {
    let mut deployment = deployment(2, Policy { max_resumptions: 4, max_age: Duration::from_secs(100) });
    let now = Duration::from_secs(1);
    let resumed = |seen: &Seen| {
        assert!(seen.attached(), "{seen:?}");
        seen.session_ids().0 == seen.session_ids().1
    };
    assert!(!resumed(&attach(&mut deployment, 0, 0, now, untouched)));
    let overheard = first_words(&deployment, 0, now);
    let strangers = |deployment: &mut Deployment| {
        for node in [1, 0, 1, 0, 1, 0, 1, 0, 1] {
            replay(deployment, &overheard, node, now);
        }
    };
    strangers(&mut deployment);
    assert!(resumed(&attach(&mut deployment, 0, 0, now, untouched)), "at its own SGSN");
    strangers(&mut deployment);
    assert!(resumed(&attach(&mut deployment, 0, 1, now, untouched)), "and at another");
    let tally = deployment.nodes[0].tally();
    assert_eq!((tally.resumed, tally.handed_over), (1, 1), "handed over once, to its own mobile");

    // A subscriber with another's temporary identity.
    let temporary = deployment.kept[0].0.clone();
    assert!(!resumed(&attach(&mut deployment, 1, 0, now, untouched)));
    deployment.keep(1, temporary.unwrap(), None);
    deployment.kept[1].1 = None;
    let seen = attach(&mut deployment, 1, 0, now, untouched);
    assert!(matches!(seen.queries[0], Query::Context { .. }));
    assert!(!seen.queries.iter().any(|query| matches!(query, Query::Claim { .. })), "{:?}", seen.queries);
    assert!(seen.attached());
    assert!(resumed(&attach(&mut deployment, 0, 1, now, untouched)), "his own is where it was");
}

#[test]
fn session_exists_at_one_sgsn_only_despite_failed_transfers() {
    let mut deployment = deployment(1, Policy { max_resumptions: 3, max_age: Duration::from_secs(100) });
    let now = Duration::from_secs(1);
    assert!(attach(&mut deployment, 0, 0, now, untouched).attached());
    // The old SGSN is queried and does not release the session, so the session is not resumed at the new one.
    let seen = attach_among(&mut deployment, 0, 1, now, untouched, &mut |query| {
        matches!(query, Query::Claim { .. }).then_some(Err(Unanswered::Silent))
    });
    assert_eq!(seen.cause(), Some(Cause::NetworkFailure), "{seen:?}");
    // The old SGSN refuses all queries, but the mobile attaches.
    let mut kept = first_words(&deployment, 0, now);
    let seen = attach_among(&mut deployment, 0, 1, now, untouched, &mut |query| {
        query.is_for_sgsn().then_some(Ok(Answer::Refused(Cause::Protocol)))
    });
    assert!(seen.attached(), "{seen:?}");
    assert_ne!(seen.session_ids().0, seen.session_ids().1, "by a full handshake");
    // The old SGSN still has the session, but an attacker who has only overheard it cannot use it.
    replay(&mut deployment, &kept, 0, now);
    kept.clear();
    assert_eq!(deployment.nodes[0].tally().handed_over, 0);
}

#[test]
fn barred_mobile_is_rejected_despite_its_transferred_session() {
    let mut deployment = deployment(1, Policy::default());
    let now = Duration::from_secs(1);
    assert!(attach(&mut deployment, 0, 0, now, untouched).attached());
    let home = deployment.cards[0].home.clone();
    let imsi = deployment.cards[0].imsi.clone();
    deployment.homes.get_mut(&home).unwrap().bar(&imsi, true);
    for _ in 0..3 {
        let seen = attach(&mut deployment, 0, 1, now, untouched);
        assert_eq!(seen.failure(), Some(&AttachFailure::Rejected(Cause::Barred)), "{seen:?}");
    }
}

#[test]
fn session_refused_by_tls_becomes_a_full_attach_with_a_session() {
    let mut deployment = deployment(1, Policy::default());
    let now = Duration::from_secs(1);
    let first = attach(&mut deployment, 0, 0, now, untouched);
    let (_, id) = first.session_ids();
    {
        let mut sessions = deployment.nodes[0].sessions();
        let mut record = sessions.store().session(&id).unwrap().unwrap();
        // TLS cannot decode this session.
        record.secret.truncate(10);
        sessions.store().keep_session(&id, &record).unwrap();
    }
    let second = attach(&mut deployment, 0, 0, now, untouched);
    assert!(second.attached(), "{second:?}");
    assert!(matches!(second.sgsn[..], [AttachEvent::Attached { resumed: false, .. }]), "{:?}", second.sgsn);
    let third = attach(&mut deployment, 0, 0, now, untouched);
    assert_eq!(third.session_ids().0, second.session_ids().1);
    assert_eq!(third.session_ids().0, third.session_ids().1, "what the full handshake made is resumed");
    let tally = deployment.nodes[0].tally();
    assert_eq!((tally.full, tally.resumed), (2, 1));
    assert_eq!(tally.not_resumed, BTreeMap::from([("declined", 1)]));
}

#[test]
fn clock_set_back_does_not_rejuvenate_sessions() {
    let mut deployment = deployment(1, Policy { max_resumptions: 9, max_age: Duration::from_secs(100) });
    let at_s = Duration::from_secs;
    let resumes = |deployment: &mut Deployment, second: u64| {
        let seen = attach(deployment, 0, 0, at_s(second), untouched);
        assert!(seen.attached(), "{seen:?}");
        seen.session_ids().0 == seen.session_ids().1
    };
    assert!(!resumes(&mut deployment, 5000));
    assert!(resumes(&mut deployment, 5050));
    assert!(!resumes(&mut deployment, 1000), "made in the future");
    assert_eq!(deployment.nodes[0].tally().not_resumed, BTreeMap::from([("clock_set_back", 1)]));
    assert!(resumes(&mut deployment, 1001), "and what is made now ages from now on");
    assert!(!resumes(&mut deployment, 1101));
    // Refused while the clock was behind, in an attach that failed, and offered again when the clock has caught up.
    let overheard = first_words(&deployment, 0, at_s(1101));
    replay(&mut deployment, &overheard, 0, at_s(500));
    assert!(!resumes(&mut deployment, 1102), "its age is unknown");
}

#[test]
fn claim_with_a_foreign_temporary_identity_gets_no_session() {
    let mut deployment = deployment(2, Policy::default());
    let now = Duration::from_secs(1);
    assert!(attach(&mut deployment, 0, 0, now, untouched).attached());
    let ptmsi = deployment.kept[0].0.clone().unwrap().ptmsi;
    let claim = |deployment: &mut Deployment, place: usize| {
        let imsi = deployment.cards[place].imsi.clone();
        deployment.nodes[0].answer(&Query::Claim { ptmsi, imsi }).unwrap()
    };
    assert_eq!(claim(&mut deployment, 1), Answer::UnknownContext);
    assert_eq!(deployment.nodes[0].tally().handed_over, 0);
    let own = claim(&mut deployment, 0);
    assert!(matches!(&own, Answer::Context { imsi, .. } if *imsi == deployment.cards[0].imsi), "{own:?}");
    assert_eq!(claim(&mut deployment, 0), Answer::UnknownContext, "it is gone");
}

#[test]
fn connection_closed_after_the_attach_is_not_a_rejection() {
    let mut deployment = deployment(1, Policy::default());
    let now = Duration::from_secs(1);
    let mut mobile = deployment.mobile(0).unwrap();
    let mut attach = Attach::default();
    for _ in 0..8 {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        mobile.poll_transmit(now, &mut up);
        attach.handle_input(&mut deployment.nodes[0], now, &up);
        while let Some((network, query)) = attach.poll_query() {
            let answer = answer(&mut deployment, &attach, &network, &query);
            attach.handle_answer(&mut deployment.nodes[0], now, answer);
        }
        attach.poll_transmit(&mut down);
        mobile.handle_input(now, &down);
    }
    assert!(attach.is_attached());
    let mut alert = Vec::new();
    // A record that cannot be decrypted ends the connection, as an alert does.
    Message::Tls([&[21, 3, 3, 0, 32][..], &[9; 32]].concat()).put(&mut alert);
    attach.handle_input(&mut deployment.nodes[0], now, &alert);
    assert!(attach.is_over());
    let events: Vec<_> = std::iter::from_fn(|| attach.poll_event()).collect();
    assert!(matches!(events[..], [AttachEvent::Attached { .. }]), "{events:?}");
    assert_eq!(deployment.nodes[0].tally().rejected, BTreeMap::new());
}
