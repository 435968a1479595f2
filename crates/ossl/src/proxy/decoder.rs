//! Public keys out of certificates.
//!
//! libcrypto reads the key of a certificate through a decoder for `SubjectPublicKeyInfo`; that is where the
//! bytes become a key, so that is the import.

use super::keymgmt;
use super::names;
use super::slots::{Full, Slots, instances};
use super::stopwatch::{self, Entry};
use crate::ffi::OSSL_DISPATCH;
use libc::{c_int, c_void};
use shakedown_trace::Operation;
use shakedown_trace::suite::KeyFamily;

/// Family of the keys that an algorithm reads.
static SLOTS: Slots<1, KeyFamily> = Slots::new();

pub fn wrap(name: &str, properties: &str, functions: &mut [OSSL_DISPATCH]) -> Result<(), Full> {
    if !properties.contains("structure=SubjectPublicKeyInfo") || !properties.contains("input=der") {
        return Ok(());
    }
    let family = match name {
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
    SLOTS.wrap(family, functions, [(11, instances!(decode))])
}

unsafe extern "C" fn decode<const SLOT: usize>(
    context: *mut c_void,
    input: *mut c_void,
    selection: c_int,
    data_callback: *const c_void,
    data_argument: *mut c_void,
    passphrase_callback: *const c_void,
    passphrase_argument: *mut c_void,
) -> c_int {
    type Function = unsafe extern "C" fn(
        *mut c_void,
        *mut c_void,
        c_int,
        *const c_void,
        *mut c_void,
        *const c_void,
        *mut c_void,
    ) -> c_int;
    // Several decoders may be tried; the one that reads the key has it loaded before it returns.
    keymgmt::take_loaded();
    let primitive = |_: &c_int| {
        let parameters = keymgmt::take_loaded()?;
        Some(SLOTS.description(SLOT)?.primitive(Operation::Import, parameters))
    };
    stopwatch::time(0, Entry::Whole, primitive, || {
        // SAFETY: the place's type; the arguments are handed on.
        unsafe {
            SLOTS.original::<Function>(SLOT, 0)(
                context,
                input,
                selection,
                data_callback,
                data_argument,
                passphrase_callback,
                passphrase_argument,
            )
        }
    })
}
