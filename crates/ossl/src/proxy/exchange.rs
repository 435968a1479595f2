//! Key agreement, key encapsulation, and secrets under a public key.

use super::names::{self, Family};
use super::slots::{Full, Slots, instances};
use super::stopwatch::{self, Entry};
use crate::ffi::{OSSL_DISPATCH, OSSL_PARAM};
use libc::{c_int, c_void, size_t};
use shakedown_trace::suite::KeyFamily;
use shakedown_trace::{Operation, recorder};

/// What an algorithm works with.
#[derive(Debug)]
struct Scheme {
    names: KeyFamily,
    family: Family,
}

/// Notes the primitive that a context is initialised for.
fn begin(context: *mut c_void, scheme: Option<&Scheme>, operation: Operation, key: *mut c_void) {
    if !recorder::is_recording() {
        return;
    }
    let primitive = scheme.and_then(|scheme| {
        // SAFETY: the scheme's functions take keys of the scheme's family.
        let parameters = unsafe { names::parameters(scheme.family, key) }?;
        Some(scheme.names.primitive(operation, parameters))
    });
    stopwatch::remember(context as usize, primitive);
}

/// Diffie–Hellman in all its groups.
pub mod agreement {
    use super::{
        Entry, Family, Full, KeyFamily, OSSL_DISPATCH, OSSL_PARAM, Operation, Scheme, Slots, begin, c_int,
        c_void, instances, names, size_t, stopwatch,
    };

    static SLOTS: Slots<2, Scheme> = Slots::new();

    pub fn wrap(name: &str, functions: &mut [OSSL_DISPATCH]) -> Result<(), Full> {
        let scheme = match name {
            "DH" => Scheme { names: KeyFamily::Dh, family: Family::Dh },
            "ECDH" => Scheme { names: KeyFamily::Ec, family: Family::Ec },
            other => match names::fixed(other) {
                Some(name) => Scheme { names: KeyFamily::Ec, family: Family::Fixed(name) },
                // Key derivation functions in the guise of an exchange.
                None => return Ok(()),
            },
        };
        SLOTS.wrap(scheme, functions, [(2, instances!(init)), (3, instances!(derive))])
    }

    unsafe extern "C" fn init<const SLOT: usize>(
        context: *mut c_void,
        key: *mut c_void,
        params: *const OSSL_PARAM,
    ) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void, *mut c_void, *const OSSL_PARAM) -> c_int;
        begin(context, SLOTS.description(SLOT), Operation::Derive, key);
        // SAFETY: the place's type; the arguments are handed on.
        unsafe { SLOTS.original::<Function>(SLOT, 0)(context, key, params) }
    }

    unsafe extern "C" fn derive<const SLOT: usize>(
        context: *mut c_void,
        secret: *mut u8,
        length: *mut size_t,
        size: size_t,
    ) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void, *mut u8, *mut size_t, size_t) -> c_int;
        // SAFETY: the place's type; the arguments are handed on.
        let work = || unsafe { SLOTS.original::<Function>(SLOT, 1)(context, secret, length, size) };
        if secret.is_null() {
            return work();
        }
        stopwatch::time(0, Entry::Whole, |_| stopwatch::recall(context as usize), work)
    }
}

/// Key encapsulation.
pub mod kem {
    use super::{
        Entry, Family, Full, KeyFamily, OSSL_DISPATCH, OSSL_PARAM, Operation, Scheme, Slots, begin, c_int,
        c_void, instances, names, size_t, stopwatch,
    };

    static SLOTS: Slots<4, Scheme> = Slots::new();

    pub fn wrap(name: &str, functions: &mut [OSSL_DISPATCH]) -> Result<(), Full> {
        let scheme = match names::fixed(name) {
            Some(name) if name.starts_with("mlkem") => {
                Scheme { names: KeyFamily::MlKem, family: Family::Fixed(name) }
            }
            Some(name) if name.ends_with("mlkem768") => {
                Scheme { names: KeyFamily::Hybrid, family: Family::Fixed(name) }
            }
            // RFC 9180's and RSA's, which TLS does not use.
            _ => return Ok(()),
        };
        SLOTS.wrap(
            scheme,
            functions,
            [
                (2, instances!(encapsulate_init)),
                (3, instances!(encapsulate)),
                (4, instances!(decapsulate_init)),
                (5, instances!(decapsulate)),
            ],
        )
    }

    type Init = unsafe extern "C" fn(*mut c_void, *mut c_void, *const OSSL_PARAM) -> c_int;

    unsafe extern "C" fn encapsulate_init<const SLOT: usize>(
        context: *mut c_void,
        key: *mut c_void,
        params: *const OSSL_PARAM,
    ) -> c_int {
        begin(context, SLOTS.description(SLOT), Operation::Encapsulate, key);
        // SAFETY: the place's type; the arguments are handed on.
        unsafe { SLOTS.original::<Init>(SLOT, 0)(context, key, params) }
    }

    unsafe extern "C" fn decapsulate_init<const SLOT: usize>(
        context: *mut c_void,
        key: *mut c_void,
        params: *const OSSL_PARAM,
    ) -> c_int {
        begin(context, SLOTS.description(SLOT), Operation::Decapsulate, key);
        // SAFETY: the place's type; the arguments are handed on.
        unsafe { SLOTS.original::<Init>(SLOT, 2)(context, key, params) }
    }

    unsafe extern "C" fn encapsulate<const SLOT: usize>(
        context: *mut c_void,
        out: *mut u8,
        out_length: *mut size_t,
        secret: *mut u8,
        secret_length: *mut size_t,
    ) -> c_int {
        type Function =
            unsafe extern "C" fn(*mut c_void, *mut u8, *mut size_t, *mut u8, *mut size_t) -> c_int;
        // SAFETY: the place's type; the arguments are handed on.
        let work = || unsafe {
            SLOTS.original::<Function>(SLOT, 1)(context, out, out_length, secret, secret_length)
        };
        if out.is_null() {
            return work();
        }
        stopwatch::time(0, Entry::Whole, |_| stopwatch::recall(context as usize), work)
    }

    unsafe extern "C" fn decapsulate<const SLOT: usize>(
        context: *mut c_void,
        out: *mut u8,
        out_length: *mut size_t,
        input: *const u8,
        length: size_t,
    ) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void, *mut u8, *mut size_t, *const u8, size_t) -> c_int;
        // SAFETY: the place's type; the arguments are handed on.
        let work = || unsafe { SLOTS.original::<Function>(SLOT, 3)(context, out, out_length, input, length) };
        if out.is_null() {
            return work();
        }
        stopwatch::time(0, Entry::Whole, |_| stopwatch::recall(context as usize), work)
    }
}

/// A secret under RSA.
pub mod transport {
    use super::{
        Entry, Family, Full, KeyFamily, OSSL_DISPATCH, OSSL_PARAM, Operation, Scheme, Slots, begin, c_int,
        c_void, instances, size_t, stopwatch,
    };

    static SLOTS: Slots<4, Scheme> = Slots::new();

    pub fn wrap(name: &str, functions: &mut [OSSL_DISPATCH]) -> Result<(), Full> {
        if name != "RSA" {
            return Ok(());
        }
        SLOTS.wrap(
            Scheme { names: KeyFamily::Rsa, family: Family::Rsa },
            functions,
            [
                (2, instances!(encrypt_init)),
                (3, instances!(encrypt)),
                (4, instances!(decrypt_init)),
                (5, instances!(decrypt)),
            ],
        )
    }

    type Init = unsafe extern "C" fn(*mut c_void, *mut c_void, *const OSSL_PARAM) -> c_int;
    type Work = unsafe extern "C" fn(*mut c_void, *mut u8, *mut size_t, size_t, *const u8, size_t) -> c_int;

    unsafe extern "C" fn encrypt_init<const SLOT: usize>(
        context: *mut c_void,
        key: *mut c_void,
        params: *const OSSL_PARAM,
    ) -> c_int {
        begin(context, SLOTS.description(SLOT), Operation::Encrypt, key);
        // SAFETY: the place's type; the arguments are handed on.
        unsafe { SLOTS.original::<Init>(SLOT, 0)(context, key, params) }
    }

    unsafe extern "C" fn decrypt_init<const SLOT: usize>(
        context: *mut c_void,
        key: *mut c_void,
        params: *const OSSL_PARAM,
    ) -> c_int {
        begin(context, SLOTS.description(SLOT), Operation::Decrypt, key);
        // SAFETY: the place's type; the arguments are handed on.
        unsafe { SLOTS.original::<Init>(SLOT, 2)(context, key, params) }
    }

    unsafe extern "C" fn encrypt<const SLOT: usize>(
        context: *mut c_void,
        out: *mut u8,
        out_length: *mut size_t,
        out_size: size_t,
        input: *const u8,
        length: size_t,
    ) -> c_int {
        // SAFETY: the place's type; the arguments are handed on.
        let work =
            || unsafe { SLOTS.original::<Work>(SLOT, 1)(context, out, out_length, out_size, input, length) };
        if out.is_null() {
            return work();
        }
        stopwatch::time(0, Entry::Whole, |_| stopwatch::recall(context as usize), work)
    }

    unsafe extern "C" fn decrypt<const SLOT: usize>(
        context: *mut c_void,
        out: *mut u8,
        out_length: *mut size_t,
        out_size: size_t,
        input: *const u8,
        length: size_t,
    ) -> c_int {
        // SAFETY: the place's type; the arguments are handed on.
        let work =
            || unsafe { SLOTS.original::<Work>(SLOT, 3)(context, out, out_length, out_size, input, length) };
        if out.is_null() {
            return work();
        }
        stopwatch::time(0, Entry::Whole, |_| stopwatch::recall(context as usize), work)
    }
}
