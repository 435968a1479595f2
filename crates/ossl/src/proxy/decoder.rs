//! Import of public keys from certificates.
//!
//! libcrypto reads the key of a certificate with a decoder for `SubjectPublicKeyInfo`, which creates the key from
//! bytes. This call is therefore recorded as the import.

use super::keymgmt;
use super::names;
use super::slots::{self, Algorithm, Full, Slots, instances, trampoline};
use super::stopwatch::{self, Entry};
use libc::{c_int, c_void};

type Slot = slots::Slot<1, ()>;
static SLOTS: Slots<1, 16, ()> = Slots::new();

pub fn wrap(algorithm: &mut Algorithm<'_>) -> Result<(), Full> {
    if !algorithm.properties.contains("structure=SubjectPublicKeyInfo")
        || !algorithm.properties.contains("input=der")
    {
        return Ok(());
    }
    let is_timed = matches!(algorithm.name, "RSA" | "RSA-PSS" | "DSA" | "DH" | "DHX" | "EC")
        || names::fixed(algorithm.name)
            .is_some_and(|name| name.starts_with("ed") || name.starts_with("mldsa"));
    if is_timed { SLOTS.wrap((), algorithm, [(11, instances!(decode; 16))]) } else { Ok(()) }
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
        // Several decoders may be tried. The one that reads the key loads it before it returns.
        keymgmt::take_loaded();
        stopwatch::time(0, Entry::Complete, |_| keymgmt::take_loaded(), work)
    }
);
