//! The first use of OpenSSL in a process, by many threads at once.

mod common;

use common::record::{Tally, recorded};
use common::{Contexts, Key, Suite};
use shakedown_ossl::Library;
use std::process::Command;
use std::sync::Barrier;

const THREADS: usize = 8;
const PROCESSES: usize = 12;
/// In the environment of a process that this test has started.
const CHILD: &str = "SHAKEDOWN_FIRST_USE";

/// Each child process is really the first use.
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
                    // Both kinds are raced for.
                    let (timed, bare) = if thread % 2 == 0 {
                        let timed = Library::timed().expect("a timed library");
                        (timed, Library::bare().expect("a bare library"))
                    } else {
                        let bare = Library::bare().expect("a bare library");
                        (Library::timed().expect("a timed library"), bare)
                    };
                    let contexts = Contexts::new(timed, Suite::Tls13(Key::P256));
                    // Certificates' keys are decoded once.
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
        // The transcript's length differs by a few bytes: signatures of ECDSA are DER.
        let counts = |tally: &Tally| tally.iter().map(|(what, found)| (*what, found.0)).collect::<Vec<_>>();
        assert_eq!(counts(&other.2), counts(&first.2));
    }
}
