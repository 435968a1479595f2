//! Helpers for the tests of this folder.
#![allow(dead_code, clippy::unwrap_used)] // each test uses some

use openssl::x509::X509;
use shakedown_pki::issue::{self, Issued};
use shakedown_pki::keys;
use shakedown_pki::{Profile, inspect::Criteria};
use shakedown_trace::Side;
use shakedown_trace::suite::KeyType;
use std::path::{Path, PathBuf};
use std::process::Command;

/// 2026-01-01.
pub const NOW: i64 = 1_767_225_600;

pub fn kinds(names: &str) -> Vec<KeyType> {
    names.split('@').map(|name| KeyType::from_name(name).unwrap()).collect()
}

pub fn chain(profile: &Profile, side: Side, names: &str) -> Vec<Issued> {
    issue::new_chain(profile, side, &kinds(names)).unwrap()
}

pub fn pem(der: &[u8]) -> Vec<u8> {
    X509::from_der(der).unwrap().to_pem().unwrap()
}

pub fn pems<'a>(certificates: impl IntoIterator<Item = &'a Issued>) -> Vec<u8> {
    certificates.into_iter().flat_map(|issued| pem(&issued.certificate)).collect()
}

pub fn key_pem(issued: &Issued) -> Vec<u8> {
    keys::from_pkcs8(&issued.key).unwrap().private_key_to_pem_pkcs8().unwrap()
}

pub fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

pub fn criteria(side: Side) -> Criteria {
    Criteria { now_unix_s: NOW, security_level: 1, host: None, side }
}

/// Runs the system's `openssl`; returns whether it succeeded, and its output.
pub fn openssl(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new("openssl").args(arguments).current_dir(folder).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}
