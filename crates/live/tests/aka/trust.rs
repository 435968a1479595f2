//! Which networks and mobiles are trusted, and which rejections are encrypted.

use crate::attaches::{attach, deployment, suite, untouched};
use shakedown_aka::message::Cause;
use shakedown_aka::mobile::{AttachFailure, MobileEvent};
use shakedown_aka::names::{Imsi, Network};
use shakedown_aka::sessions::Policy;
use shakedown_live::aka::{Card, Operator, suite_of};
use shakedown_pki::Profile;
use shakedown_trace::suite::KeyType;
use std::time::Duration;

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
fn networks_without_a_roaming_agreement_are_refused() {
    let mut deployment = deployment(1, Policy::default());
    let now = Duration::from_secs(1);
    let stranger = operator("31099");
    let home = deployment.cards[0].home.clone();
    let root = deployment.cards[0].root.clone();

    // The mobile names its home network, which the SGSN does not know.
    let place =
        deployment.add(foreign(&stranger, &stranger, stranger.network(), stranger.root().unwrap())).unwrap();
    let seen = attach(&mut deployment, place, 0, now, untouched);
    assert_eq!(seen.cause(), Some(Cause::UnknownHome), "no HSS is known for it");
    let line = format!("{:?}", seen.sgsn);
    assert!(line.contains("no HSS of network 31099 is known here"), "{line}");
    assert!(!seen.attached());

    // Its HSS answers with a cross-certificate that this network issued itself.
    let mut hss = shakedown_aka::hss::Hss::new();
    let abroad = Network::new("20801").unwrap();
    hss.certify(abroad.clone(), stranger.certify(&deployment.operators()[1]).unwrap());
    deployment.homes.insert(stranger.network().clone(), hss);
    let seen = attach(&mut deployment, place, 0, now, untouched);
    assert_eq!(seen.failure(), Some(&AttachFailure::Rejected(Cause::NoRoamingAgreement)));
    let line = format!("{:?}", seen.sgsn);
    assert!(line.contains("network 31099 is not a partner"), "{line}");

    // It claims to be a partner; the authority of its subscribers is not certified by any authority that the SGSN
    // trusts.
    let place = deployment.add(foreign(&stranger, &stranger, &home, root.clone())).unwrap();
    let seen = attach(&mut deployment, place, 0, now, untouched);
    assert_eq!(seen.cause(), Some(Cause::Handshake), "{seen:?}");
    let line = format!("{:?}", seen.sgsn);
    assert!(line.contains("certificate"), "{line}");

    // The partner's HSS returns a cross-certificate that another network issued.
    let wrong = stranger.certify(&deployment.operators()[1]).unwrap();
    deployment.homes.get_mut(&home).unwrap().certify(abroad, wrong);
    let seen = attach(&mut deployment, 0, 1, now, untouched);
    assert_eq!(seen.failure(), Some(&AttachFailure::Rejected(Cause::NoRoamingAgreement)));
    let line = format!("{:?}", seen.sgsn);
    assert!(line.contains("was not issued by network 20201"), "{line}");
}

#[test]
fn mobile_refuses_networks_not_certified_by_its_home() {
    let mut deployment = deployment(1, Policy::default());
    let stranger = operator("31099");
    let card = Card { root: stranger.root().unwrap(), ..deployment.cards[0].clone() };
    let imsi = card.imsi.clone();
    let place = deployment.add(card).unwrap();
    let seen = attach(&mut deployment, place, 0, Duration::from_secs(1), untouched);
    assert!(matches!(seen.failure(), Some(AttachFailure::Handshake(_))), "{seen:?}");
    assert!(!seen.queries.iter().any(|query| format!("{query:?}").contains(imsi.as_str())), "told who it is");
}

#[test]
fn barred_mismatched_or_unknown_mobile_is_rejected_under_protection() {
    let mut deployment = deployment(2, Policy::default());
    let now = Duration::from_secs(1);
    let home = deployment.cards[0].home.clone();
    let imsi = deployment.cards[0].imsi.clone();
    deployment.homes.get_mut(&home).unwrap().bar(&imsi, true);
    let seen = attach(&mut deployment, 0, 0, now, untouched);
    assert_eq!(seen.failure(), Some(&AttachFailure::Rejected(Cause::Barred)));
    // A reject in the clear would be a message of kind 5.
    assert!(!kinds(&seen.down).contains(&5), "{:?}", kinds(&seen.down));
    // A subscriber with another's IMSI.
    let card = Card { imsi: imsi.clone(), ..deployment.cards[1].clone() };
    let place = deployment.add(card).unwrap();
    let seen = attach(&mut deployment, place, 0, now, untouched);
    assert_eq!(seen.failure(), Some(&AttachFailure::Rejected(Cause::UnknownSubscriber)));
    let card = Card { imsi: Imsi::new("202010000099999").unwrap(), ..deployment.cards[1].clone() };
    let place = deployment.add(card).unwrap();
    let seen = attach(&mut deployment, place, 0, now, untouched);
    assert_eq!(seen.failure(), Some(&AttachFailure::Rejected(Cause::UnknownSubscriber)));
    deployment.homes.get_mut(&home).unwrap().bar(&imsi, false);
    assert!(attach(&mut deployment, 0, 0, now, untouched).attached());
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
fn altered_attach_request_is_detected() {
    let mut deployment = deployment(1, Policy::default());
    let now = Duration::from_secs(1);
    assert!(attach(&mut deployment, 0, 0, now, untouched).attached());
    // Alters the last byte of the temporary identity in the second request.
    let seen = attach(&mut deployment, 0, 0, now, |up| {
        let end = 3 + usize::from(u16::from_be_bytes([up[1], up[2]]));
        up[end - 1] ^= 1;
    });
    assert!(!seen.attached(), "{seen:?}");
    assert_eq!(seen.cause(), Some(Cause::Protocol));
    // Both sides notice it: the mobile does not report that it has attached.
    assert_eq!(seen.failure(), Some(&AttachFailure::Rejected(Cause::Protocol)), "{seen:?}");
    assert!(!seen.mobile.iter().any(|event| matches!(event, MobileEvent::Attached(_))), "{seen:?}");
}

#[test]
fn unsuitable_suites_are_refused_and_others_become_mutual() {
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
