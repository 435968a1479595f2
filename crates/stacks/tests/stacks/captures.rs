//! Captures and key logs.

use super::common::{self, settings, suite};
use shakedown_stacks::capture::{CapturingError, write_capture};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

fn write(folder: &Path, key_log: &str) -> Result<(), CapturingError> {
    let suites = [(suite("tls1.3/x25519/p256/server"), 1)];
    let (capture, key_log) = (folder.join("x.pcap"), folder.join(key_log));
    write_capture(&suites, &settings(), &capture, Some(&key_log), &mut |_| ControlFlow::Continue(()))
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

/// Without its key log no capture remains, so that a retry does not find its name taken.
#[test]
fn a_key_log_that_cannot_be_created_leaves_no_capture() {
    let _shared = common::shared();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captures");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    let error = write(&folder, "missing/x.keys").unwrap_err();
    assert!(matches!(error, CapturingError::KeyLog { .. }), "{error}");
    assert!(names(&folder).is_empty());
    write(&folder, "x.keys").unwrap();
    assert_eq!(names(&folder), [folder.join("x.keys"), folder.join("x.pcap")]);
    // A name that exists is refused, and its content stays.
    let keys = std::fs::read(folder.join("x.keys")).unwrap();
    std::fs::remove_file(folder.join("x.pcap")).unwrap();
    write(&folder, "x.keys").unwrap_err();
    assert_eq!(names(&folder), [folder.join("x.keys")]);
    assert_eq!(std::fs::read(folder.join("x.keys")).unwrap(), keys);
}
