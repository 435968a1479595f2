//! Public keys out of certificates.
//!
//! libcrypto reads the key of a certificate through a decoder for `SubjectPublicKeyInfo`; that is where the
//! bytes become a key, so that is the import.

use super::keymgmt;
use super::names;
use super::slots::{Algorithm, Full, Slots, instances, trampoline};
use super::stopwatch::{self, Entry};
use libc::{c_int, c_void};
use shakedown_trace::Operation;
use shakedown_trace::suite::KeyFamily;

/// Family of the keys that an algorithm reads.
static SLOTS: Slots<1, 16, KeyFamily> = Slots::new();

pub fn wrap(algorithm: &mut Algorithm<'_>) -> Result<(), Full> {
    if !algorithm.properties.contains("structure=SubjectPublicKeyInfo")
        || !algorithm.properties.contains("input=der")
    {
        return Ok(());
    }
    let family = match algorithm.name {
        "RSA" | "RSA-PSS" => KeyFamily::Rsa,
        "DSA" => KeyFamily::Dsa,
        "DH" | "DHX" => KeyFamily::Dh,
        "EC" => KeyFamily::Ec,
        other => match names::fixed(other) {
            Some(name) if name.starts_with("ed") => KeyFamily::Edwards,
            Some(name) if name.starts_with("mldsa") => KeyFamily::MlDsa,
            _ => return Ok(()),
        },
    };
    SLOTS.wrap(family, algorithm, [(11, instances!(decode; 16))])
}

trampoline!(
    decode,
    0,
    (
        context: *mut c_void,
        input: *mut c_void,
        selection: c_int,
        data_callback: *const c_void,
        data_argument: *mut c_void,
        passphrase_callback: *const c_void,
        passphrase_argument: *mut c_void,
    ) -> c_int,
    |slot, work| {
        // Several decoders may be tried; the one that reads the key has it loaded before it returns.
        keymgmt::take_loaded();
        let primitive = |_: &c_int| {
            let parameters = keymgmt::take_loaded()?;
            Some(SLOTS.description(slot)?.primitive(Operation::Import, parameters).interned())
        };
        stopwatch::time(0, Entry::Complete, primitive, work)
    }
);
