//! The first use of OpenSSL in a process, by concurrent threads.

mod common;

use common::record::{Tally, recorded};
use common::{Contexts, Key, Suite};
use shakedown_ossl::Library;
use std::process::Command;
use std::sync::Barrier;

const THREADS: usize = 8;
const PROCESSES: usize = 12;
/// An environment variable of the processes that this test starts.
const CHILD: &str = "SHAKEDOWN_FIRST_USE";

/// Each child process is a first use.
#[test]
fn racing_threads_share_one_library_of_each_kind() {
    if std::env::var_os(CHILD).is_some() {
        race();
        return;
    }
    let program = std::env::current_exe().expect("this program's path");
    for process in 0..PROCESSES {
        let done = Command::new(&program)
            .args(["racing_threads_share_one_library_of_each_kind", "--exact", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .expect("a process");
        assert!(
            done.status.success(),
            "process {process}: {}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        );
    }
}

fn race() {
    let barrier = Barrier::new(THREADS);
    let found: Vec<(Library, Library, Tally)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    // The threads race for both kinds.
                    let (timed, bare) = if thread % 2 == 0 {
                        let timed = Library::timed().expect("a timed library");
                        (timed, Library::bare().expect("a bare library"))
                    } else {
                        let bare = Library::bare().expect("a bare library");
                        (Library::timed().expect("a timed library"), bare)
                    };
                    let contexts = Contexts::new(timed, Suite::Tls13(Key::P256));
                    // The keys of certificates are decoded only once.
                    contexts.handshake();
                    (timed, bare, recorded(|| contexts.handshake()).1.tally())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let first = &found[0];
    assert_ne!(first.0, first.1);
    assert!(first.2.len() > 8, "{:?}", first.2);
    for other in &found {
        assert_eq!((other.0, other.1), (first.0, first.1));
        // The number of bytes differs, because ECDSA signatures in DER have different lengths.
        let counts = |tally: &Tally| tally.iter().map(|(what, found)| (*what, found.0)).collect::<Vec<_>>();
        assert_eq!(counts(&other.2), counts(&first.2));
    }
}
