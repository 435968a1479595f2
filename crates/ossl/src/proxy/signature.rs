//! Signatures, and the MACs that come by the same door.

use super::names::{self, Construction, Family};
use super::slots::{Full, Slots, instances};
use super::stopwatch::{self, Entry};
use crate::ffi::{OSSL_DISPATCH, OSSL_PARAM};
use libc::{c_char, c_int, c_void, size_t};
use shakedown_trace::operation::intern;
use shakedown_trace::suite::KeyFamily;
use shakedown_trace::{Operation, Primitive, recorder};
use std::ffi::CStr;

#[derive(Debug)]
enum Scheme {
    /// A signature by keys of a family.
    Signature(KeyFamily, Family),
    /// HMAC: the hash is named at initialisation.
    Hmac,
    /// A MAC that needs no more than its name.
    Mac(&'static str),
}

static SLOTS: Slots<16, Scheme> = Slots::new();
const SIGN_INIT: usize = 0;
const SIGN: usize = 1;
const VERIFY_INIT: usize = 2;
const VERIFY: usize = 3;
const DIGEST_SIGN_INIT: usize = 4;
const DIGEST_SIGN_UPDATE: usize = 5;
const DIGEST_SIGN_FINAL: usize = 6;
const DIGEST_SIGN: usize = 7;
const DIGEST_VERIFY_INIT: usize = 8;
const DIGEST_VERIFY_UPDATE: usize = 9;
const DIGEST_VERIFY_FINAL: usize = 10;
const DIGEST_VERIFY: usize = 11;
const DUPCTX: usize = 12;
const SIGN_MESSAGE_INIT: usize = 13;
const VERIFY_MESSAGE_INIT: usize = 14;
const VERIFY_RECOVER_INIT: usize = 15;

pub fn wrap(name: &str, functions: &mut [OSSL_DISPATCH]) -> Result<(), Full> {
    let scheme = match name {
        "HMAC" => Scheme::Hmac,
        "CMAC" | "SIPHASH" | "POLY1305" => Scheme::Mac(intern(&name.to_ascii_lowercase())),
        _ if name.starts_with("RSA") => Scheme::Signature(KeyFamily::Rsa, Family::Rsa),
        _ if name.starts_with("ECDSA") => Scheme::Signature(KeyFamily::Ec, Family::Ec),
        _ if name.starts_with("DSA") => Scheme::Signature(KeyFamily::Dsa, Family::Dsa),
        _ if name.starts_with("ED25519") => Scheme::Signature(KeyFamily::Edwards, Family::Fixed("ed25519")),
        _ => match names::fixed(name) {
            Some(name) if name.starts_with("mldsa") => {
                Scheme::Signature(KeyFamily::MlDsa, Family::Fixed(name))
            }
            // SM2, Ed448 and SLH-DSA: no suite has them.
            _ => return Ok(()),
        },
    };
    SLOTS.wrap(
        scheme,
        functions,
        [
            (2, instances!(sign_init)),
            (3, instances!(sign)),
            (4, instances!(verify_init)),
            (5, instances!(verify)),
            (8, instances!(digest_sign_init)),
            (9, instances!(digest_sign_update)),
            (10, instances!(digest_sign_final)),
            (11, instances!(digest_sign)),
            (12, instances!(digest_verify_init)),
            (13, instances!(digest_verify_update)),
            (14, instances!(digest_verify_final)),
            (15, instances!(digest_verify)),
            (17, instances!(dupctx)),
            (27, instances!(sign_message_init)),
            (30, instances!(verify_message_init)),
            (6, instances!(verify_recover_init)),
        ],
    )
}

/// Notes what a context is initialised for. A null key repeats the initialisation with the key it has.
fn begin<const SLOT: usize>(
    context: *mut c_void,
    key: *mut c_void,
    operation: Operation,
    digest: *const c_char,
) {
    if !recorder::is_recording() {
        return;
    }
    let primitive = match SLOTS.description(SLOT) {
        Some(Scheme::Signature(names, family)) if !key.is_null() => {
            // SAFETY: the slot's functions take keys of the slot's family.
            let parameters = unsafe { names::parameters(*family, key) };
            parameters.map(|parameters| names.primitive(operation, parameters))
        }
        Some(Scheme::Signature(..)) => {
            stopwatch::recall(context as usize).map(|known| Primitive { operation, ..known })
        }
        Some(Scheme::Hmac) if !digest.is_null() => {
            // SAFETY: the core passes a C string.
            let digest = unsafe { CStr::from_ptr(digest) };
            Some(Primitive::new(Operation::Mac, names::over_digest(Construction::Hmac, digest), ""))
        }
        Some(Scheme::Hmac) => stopwatch::recall(context as usize),
        Some(Scheme::Mac(name)) => Some(Primitive::new(Operation::Mac, name, "")),
        None => None,
    };
    stopwatch::remember(context as usize, primitive);
}

fn is_mac<const SLOT: usize>() -> bool {
    !matches!(SLOTS.description(SLOT), Some(Scheme::Signature(..)))
}

type Init = unsafe extern "C" fn(*mut c_void, *mut c_void, *const OSSL_PARAM) -> c_int;
type DigestInit = unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_void, *const OSSL_PARAM) -> c_int;
type Update = unsafe extern "C" fn(*mut c_void, *const u8, size_t) -> c_int;

macro_rules! plain_init {
    ($name:ident, $place:ident, $operation:expr) => {
        unsafe extern "C" fn $name<const SLOT: usize>(
            context: *mut c_void,
            key: *mut c_void,
            params: *const OSSL_PARAM,
        ) -> c_int {
            begin::<SLOT>(context, key, $operation, std::ptr::null());
            stopwatch::accumulate(context as usize, || {
                // SAFETY: the place's type; the arguments are handed on.
                unsafe { SLOTS.original::<Init>(SLOT, $place)(context, key, params) }
            })
        }
    };
}

plain_init!(sign_init, SIGN_INIT, Operation::Sign);
plain_init!(verify_init, VERIFY_INIT, Operation::Verify);
plain_init!(sign_message_init, SIGN_MESSAGE_INIT, Operation::Sign);
plain_init!(verify_message_init, VERIFY_MESSAGE_INIT, Operation::Verify);
plain_init!(verify_recover_init, VERIFY_RECOVER_INIT, Operation::Verify);

macro_rules! digest_init {
    ($name:ident, $place:ident, $operation:expr) => {
        unsafe extern "C" fn $name<const SLOT: usize>(
            context: *mut c_void,
            digest: *const c_char,
            key: *mut c_void,
            params: *const OSSL_PARAM,
        ) -> c_int {
            begin::<SLOT>(context, key, $operation, digest);
            // SAFETY: the place's type; the arguments are handed on.
            let work = || unsafe { SLOTS.original::<DigestInit>(SLOT, $place)(context, digest, key, params) };
            if is_mac::<SLOT>() {
                return stopwatch::time(0, Entry::Towards, |_| stopwatch::recall(context as usize), work);
            }
            stopwatch::accumulate(context as usize, work)
        }
    };
}

digest_init!(digest_sign_init, DIGEST_SIGN_INIT, Operation::Sign);
digest_init!(digest_verify_init, DIGEST_VERIFY_INIT, Operation::Verify);

macro_rules! update {
    ($name:ident, $place:ident) => {
        unsafe extern "C" fn $name<const SLOT: usize>(
            context: *mut c_void,
            data: *const u8,
            length: size_t,
        ) -> c_int {
            // SAFETY: the place's type; the arguments are handed on.
            let work = || unsafe { SLOTS.original::<Update>(SLOT, $place)(context, data, length) };
            if is_mac::<SLOT>() {
                return stopwatch::time(
                    length,
                    Entry::Towards,
                    |_| stopwatch::recall(context as usize),
                    work,
                );
            }
            stopwatch::accumulate(context as usize, work)
        }
    };
}

update!(digest_sign_update, DIGEST_SIGN_UPDATE);
update!(digest_verify_update, DIGEST_VERIFY_UPDATE);

/// Ends a MAC or a signature.
fn finish<const SLOT: usize>(context: *mut c_void, bytes: size_t, work: impl FnOnce() -> c_int) -> c_int {
    if is_mac::<SLOT>() {
        return stopwatch::time(bytes, Entry::Whole, |_| stopwatch::recall(context as usize), work);
    }
    stopwatch::complete(context as usize, work)
}

unsafe extern "C" fn sign<const SLOT: usize>(
    context: *mut c_void,
    signature: *mut u8,
    length: *mut size_t,
    size: size_t,
    data: *const u8,
    data_length: size_t,
) -> c_int {
    type Function =
        unsafe extern "C" fn(*mut c_void, *mut u8, *mut size_t, size_t, *const u8, size_t) -> c_int;
    // SAFETY: the place's type; the arguments are handed on.
    let work = || unsafe {
        SLOTS.original::<Function>(SLOT, SIGN)(context, signature, length, size, data, data_length)
    };
    if signature.is_null() { work() } else { finish::<SLOT>(context, data_length, work) }
}

unsafe extern "C" fn verify<const SLOT: usize>(
    context: *mut c_void,
    signature: *const u8,
    length: size_t,
    data: *const u8,
    data_length: size_t,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_void, *const u8, size_t, *const u8, size_t) -> c_int;
    // SAFETY: the place's type; the arguments are handed on.
    let work =
        || unsafe { SLOTS.original::<Function>(SLOT, VERIFY)(context, signature, length, data, data_length) };
    finish::<SLOT>(context, data_length, work)
}

unsafe extern "C" fn digest_sign_final<const SLOT: usize>(
    context: *mut c_void,
    signature: *mut u8,
    length: *mut size_t,
    size: size_t,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_void, *mut u8, *mut size_t, size_t) -> c_int;
    // SAFETY: the place's type; the arguments are handed on.
    let work =
        || unsafe { SLOTS.original::<Function>(SLOT, DIGEST_SIGN_FINAL)(context, signature, length, size) };
    if signature.is_null() { work() } else { finish::<SLOT>(context, 0, work) }
}

unsafe extern "C" fn digest_sign<const SLOT: usize>(
    context: *mut c_void,
    signature: *mut u8,
    length: *mut size_t,
    size: size_t,
    data: *const u8,
    data_length: size_t,
) -> c_int {
    type Function =
        unsafe extern "C" fn(*mut c_void, *mut u8, *mut size_t, size_t, *const u8, size_t) -> c_int;
    // SAFETY: the place's type; the arguments are handed on.
    let work = || unsafe {
        SLOTS.original::<Function>(SLOT, DIGEST_SIGN)(context, signature, length, size, data, data_length)
    };
    if signature.is_null() { work() } else { finish::<SLOT>(context, data_length, work) }
}

unsafe extern "C" fn digest_verify_final<const SLOT: usize>(
    context: *mut c_void,
    signature: *const u8,
    length: size_t,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_void, *const u8, size_t) -> c_int;
    // SAFETY: the place's type; the arguments are handed on.
    let work =
        || unsafe { SLOTS.original::<Function>(SLOT, DIGEST_VERIFY_FINAL)(context, signature, length) };
    finish::<SLOT>(context, 0, work)
}

unsafe extern "C" fn digest_verify<const SLOT: usize>(
    context: *mut c_void,
    signature: *const u8,
    length: size_t,
    data: *const u8,
    data_length: size_t,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_void, *const u8, size_t, *const u8, size_t) -> c_int;
    // SAFETY: the place's type; the arguments are handed on.
    let work = || unsafe {
        SLOTS.original::<Function>(SLOT, DIGEST_VERIFY)(context, signature, length, data, data_length)
    };
    finish::<SLOT>(context, data_length, work)
}

/// libssl finishes on a copy, so that the running hash can go on.
unsafe extern "C" fn dupctx<const SLOT: usize>(context: *mut c_void) -> *mut c_void {
    type Function = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
    // SAFETY: the place's type; the argument is handed on.
    let work = || unsafe { SLOTS.original::<Function>(SLOT, DUPCTX)(context) };
    let copy = if is_mac::<SLOT>() {
        stopwatch::time(0, Entry::Towards, |_| stopwatch::recall(context as usize), work)
    } else {
        stopwatch::accumulate(context as usize, work)
    };
    stopwatch::duplicate(context as usize, copy as usize);
    copy
}
