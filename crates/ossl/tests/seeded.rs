//! Handshakes that follow a seed.

mod common;

use common::{Contexts, Key, Suite, Transcript, identity};
use shakedown_ossl::Library;
use shakedown_ossl::random::{self, Seeded};

const SUITES: [Suite; 9] = [
    Suite::Psk13,
    Suite::Tls13(Key::P256),
    Suite::Tls13(Key::Rsa(2048)),
    Suite::Tls13(Key::MlDsa65),
    Suite::Hybrid,
    Suite::Rsa12(1024),
    Suite::Ecdhe12(Key::Rsa(1024)),
    Suite::Ecdhe12(Key::P256),
    Suite::Dhe12(Key::Dsa),
];

/// A handshake in which each endpoint has a separate source.
fn handshake(contexts: &Contexts, seed: u64) -> Transcript {
    let mut sources = [0, 1].map(|number| Seeded::new(seed, number).expect("a source"));
    let [mut client, mut server] = contexts.pair();
    let mut transcript = Transcript::default();
    loop {
        let sent = sources[0].during(|| client.step(transcript.for_client()));
        let answer = sources[1].during(|| server.step(&sent));
        if !transcript.add(&sent, &answer) {
            break;
        }
    }
    assert!(client.is_established() && server.is_established());
    transcript
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for suite in SUITES {
        let contexts = Contexts::new(Library::timed().expect("a library"), suite);
        // A private RSA key draws its blinding at its first use and at every 32nd.
        let first = handshake(&contexts, 1);
        for _ in 0..40 {
            assert!(handshake(&contexts, 1) == first, "{suite:?}");
        }
        let other = handshake(&contexts, 2);
        let random = |transcript: &Transcript| transcript.client_to_server[11..43].to_vec();
        assert_ne!(random(&other), random(&first), "{suite:?}");
        assert_ne!(other.server_to_client, first.server_to_client, "{suite:?}");
    }
}

/// The bytes are the same in the bare and the timed library: the measurement draws no random numbers. With RSA this is
/// true up to the first private operation.
#[test]
fn bare_and_timed_library_give_the_same_seeded_bytes() {
    for suite in SUITES {
        let identity = identity(suite);
        // New keys each time, so that their history is the same.
        let [timed, bare, again] = [Library::timed(), Library::bare(), Library::bare()]
            .map(|library| handshake(&Contexts::with(library.expect("a library"), suite, &identity), 7));
        assert!(bare == again, "{suite:?}");
        let length = if suite.has_rsa() { 43 } else { timed.client_to_server.len() };
        assert!(timed.client_to_server[..length] == bare.client_to_server[..length], "{suite:?}");
        if !suite.has_rsa() {
            assert!(timed == bare, "{suite:?}");
        }
    }
}

#[test]
fn without_a_seeded_source_handshakes_differ() {
    let contexts = Contexts::new(Library::timed().expect("a library"), Suite::Psk13);
    assert!(contexts.handshake() != contexts.handshake());
    // The same while another thread has a source, and afterwards.
    let mut source = Seeded::new(1, 0).expect("a source");
    source.during(|| {
        std::thread::scope(|scope| {
            let unlike = scope.spawn(|| !random::is_seeded() && contexts.handshake() != contexts.handshake());
            assert!(unlike.join().expect("no panic"));
        });
    });
    drop(source);
    assert!(contexts.handshake() != contexts.handshake());
}

#[test]
fn seeded_source_is_active_only_during_its_call() {
    let take = || {
        let mut bytes = [0; 32];
        random::fill(&mut bytes).expect("bytes");
        bytes
    };
    let mut source = Seeded::new(5, 5).expect("a source");
    let mut inner = Seeded::new(5, 6).expect("a source");
    let mut again = Seeded::new(5, 5).expect("a source");
    assert!(!random::is_seeded());
    let (first, nested, second) = source.during(|| {
        let first = take();
        (first, inner.during(take), take())
    });
    assert!(!random::is_seeded());
    // A source continues where it ended, and a nested one does not affect it.
    let third = source.during(take);
    assert_eq!([first, second, third], [(); 3].map(|()| again.during(take)));
    assert!(nested != first && take() != third);
    // A panic restores the thread's source.
    let caught =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| source.during(|| panic!("planted"))));
    assert!(caught.is_err() && !random::is_seeded());
    assert_eq!(source.during(take), again.during(take));
}

/// The stream is ChaCha20 (RFC 8439) as in OpenSSL's cipher, with 16 zero bytes as counter and nonce.
#[test]
fn seeded_stream_matches_chacha20() {
    let (seed, number): (u64, u64) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&number.to_le_bytes());
    let cipher = openssl::symm::Cipher::chacha20();
    let expected = openssl::symm::encrypt(cipher, &key, Some(&[0; 16]), &[0; 200]).expect("a key stream");
    let mut found = [0; 200];
    let mut source = Seeded::new(seed, number).expect("a source");
    source.during(|| random::fill(&mut found)).expect("bytes");
    assert_eq!(found.as_slice(), expected);
}
