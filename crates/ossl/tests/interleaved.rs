//! Thousands of concurrent contexts: none of their operations is lost.

mod common;

use common::record::{Tally, recorded};
use common::{Connection, Contexts, Key, Suite, Transcript};
use shakedown_ossl::{Library, ffi};
use shakedown_trace::Operation;

/// Number of concurrent handshakes. Each side has contexts of the record MAC and of the cipher in each direction, and
/// more during the key exchange.
const HANDSHAKES: usize = 1000;

fn add(tally: &mut Tally, other: &Tally) {
    for (primitive, found) in other {
        let entry = tally.entry(*primitive).or_default();
        entry.0 += found.0;
        entry.1 += found.1;
    }
}

/// Runs the handshakes of all connections, one step of each in turn; then sends data in both directions, in turn.
fn run(connections: &mut [([Connection; 2], Transcript)]) -> Tally {
    let mut tally = Tally::new();
    let mut going = true;
    while going {
        going = false;
        for ([client, server], transcript) in connections.iter_mut() {
            let (went, log) = recorded(|| transcript.step(client, server));
            log.add_to(&mut tally);
            going |= went;
        }
    }
    let mut sent: Vec<Vec<u8>> = Vec::new();
    for ([client, server], _) in connections.iter_mut() {
        assert!(client.is_established() && server.is_established());
        let (data, log) = recorded(|| client.write(b"a line of data"));
        log.add_to(&mut tally);
        sent.push(data);
    }
    for (([client, server], _), data) in connections.iter_mut().zip(sent) {
        let (read, log) = recorded(|| {
            let read = server.read(&data);
            client.read(&server.write(&read))
        });
        log.add_to(&mut tally);
        assert_eq!(read, b"a line of data");
    }
    tally
}

#[test]
fn interleaved_connections_record_the_same_as_single_ones() {
    let library = Library::timed().expect("a library");
    // RSA signatures are of one length, so bytes can be compared.
    let contexts = Contexts::new(library, Suite::Ecdhe12(Key::Rsa(1024)));
    let pairs = |count| (0..count).map(|_| (contexts.pair(), Transcript::default())).collect::<Vec<_>>();
    // Work that is done once per context must not count.
    run(&mut pairs(2));
    let alone = run(&mut pairs(1));
    let mut expected = Tally::new();
    (0..HANDSHAKES).for_each(|_| add(&mut expected, &alone));
    assert!(alone.keys().any(|primitive| primitive.operation == Operation::Mac), "{alone:?}");
    assert_eq!(run(&mut pairs(HANDSHAKES)), expected);
}

/// Connections move between threads between two calls.
#[test]
fn connections_that_change_threads_lose_no_records() {
    let library = Library::timed().expect("a library");
    let contexts = Contexts::new(library, Suite::Ecdhe12(Key::Rsa(1024)));
    run(&mut [(contexts.pair(), Transcript::default())]);
    let expected = run(&mut [(contexts.pair(), Transcript::default())]);
    let mut connections = (contexts.pair(), Transcript::default());
    let mut found = Tally::new();
    let mut going = true;
    while going {
        let (tally, next) = std::thread::scope(|scope| {
            let ([client, server], transcript) = &mut connections;
            scope
                .spawn(move || {
                    let (going, log) = recorded(|| transcript.step(client, server));
                    (log.tally(), going)
                })
                .join()
                .expect("no panic")
        });
        add(&mut found, &tally);
        going = next;
    }
    let [client, server] = &mut connections.0;
    for step in 0..2 {
        let tally = std::thread::scope(|scope| {
            let (client, server) = (&mut *client, &mut *server);
            let work = move || {
                let log = if step == 0 {
                    let (data, log) = recorded(|| client.write(b"a line of data"));
                    assert_eq!(recorded(|| ()).1.0.len(), 0);
                    (log, data)
                } else {
                    let (data, log) = recorded(|| server.write(b"a line of data"));
                    (log, data)
                };
                (log.0.tally(), log.1)
            };
            scope.spawn(work).join().expect("no panic")
        });
        let (written, data) = tally;
        add(&mut found, &written);
        let read = if step == 0 { recorded(|| server.read(&data)) } else { recorded(|| client.read(&data)) };
        add(&mut found, &read.1.tally());
        assert_eq!(read.0, b"a line of data");
    }
    assert_eq!(found, expected);
}

/// 2,000 key agreements are initialised before the first is completed.
#[test]
fn two_thousand_open_contexts_are_all_recorded() {
    const CONTEXTS: u64 = 2000;
    let library = Library::timed().expect("a library");
    let keys = [generate(library, c"X25519"), generate(library, c"X25519")];
    let begun: Vec<_> = (0..CONTEXTS)
        .map(|_| {
            // SAFETY: the library context and the keys are live; results are checked.
            unsafe {
                let context = ffi::EVP_PKEY_CTX_new_from_pkey(library.as_ptr(), keys[0], std::ptr::null());
                assert_eq!(openssl_sys::EVP_PKEY_derive_init(context), 1);
                assert_eq!(openssl_sys::EVP_PKEY_derive_set_peer(context, keys[1]), 1);
                context
            }
        })
        .collect();
    let ((), log) = recorded(|| {
        for context in &begun {
            let mut secret = [0; 32];
            let mut length = secret.len();
            // SAFETY: the context is live, and the buffer has the given length.
            let derived =
                unsafe { openssl_sys::EVP_PKEY_derive(*context, secret.as_mut_ptr(), &raw mut length) };
            assert_eq!((derived, length), (1, secret.len()));
        }
    });
    for context in begun {
        // SAFETY: freed once.
        unsafe { openssl_sys::EVP_PKEY_CTX_free(context) };
    }
    let tally = log.tally();
    let derived: Vec<_> =
        tally.iter().map(|(what, found)| (what.operation, what.parameters, found.0)).collect();
    assert_eq!(derived, [(Operation::Derive, "x25519", CONTEXTS)]);
    for key in keys {
        // SAFETY: freed once.
        unsafe { openssl_sys::EVP_PKEY_free(key) };
    }
}

fn generate(library: Library, algorithm: &std::ffi::CStr) -> *mut openssl_sys::EVP_PKEY {
    let mut key = std::ptr::null_mut();
    // SAFETY: the library context is live; results are checked; the context is freed once.
    unsafe {
        let context = ffi::EVP_PKEY_CTX_new_from_name(library.as_ptr(), algorithm.as_ptr(), std::ptr::null());
        assert_eq!(openssl_sys::EVP_PKEY_keygen_init(context), 1);
        assert_eq!(openssl_sys::EVP_PKEY_keygen(context, &raw mut key), 1);
        openssl_sys::EVP_PKEY_CTX_free(context);
    }
    key
}
