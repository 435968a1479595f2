//! Signatures, and the MACs that libssl uses through the interface of signatures.

use super::contexts;
use super::names::{self, Construction, Family};
use super::slots::{self, Algorithm, Full, Slots, forgetting, instances, trampoline};
use super::stopwatch::{self, Entry};
use super::symmetric::MAX_KEPT_BYTES;
use crate::ffi::OSSL_PARAM;
use crate::random;
use libc::{c_char, c_int, c_void, size_t};
use shakedown_trace::operation::intern;
use shakedown_trace::suite::KeyFamily;
use shakedown_trace::{Operation, Primitive};
use std::ffi::CStr;

#[derive(Debug)]
enum Scheme {
    Signature(KeyFamily, Family),
    /// HMAC: the initialisation names the hash.
    Hmac,
    /// A MAC whose name determines the primitive.
    Mac(Primitive),
}

type Slot = slots::Slot<17, Scheme>;
static SLOTS: Slots<17, 64, Scheme> = Slots::new();
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
const FREECTX: usize = 16;

pub fn wrap(algorithm: &mut Algorithm<'_>) -> Result<(), Full> {
    let scheme = match algorithm.name {
        "HMAC" => Scheme::Hmac,
        name @ ("CMAC" | "SIPHASH" | "POLY1305") => {
            Scheme::Mac(Primitive::new(Operation::Mac, intern(&name.to_ascii_lowercase()), ""))
        }
        name if name.starts_with("RSA") => Scheme::Signature(KeyFamily::Rsa, Family::Rsa),
        name if name.starts_with("ECDSA") => Scheme::Signature(KeyFamily::Ec, Family::Ec),
        name if name.starts_with("DSA") => Scheme::Signature(KeyFamily::Dsa, Family::Dsa),
        name if name.starts_with("ED25519") => {
            Scheme::Signature(KeyFamily::Edwards, Family::Fixed("ed25519"))
        }
        name => match names::fixed(name) {
            Some(name) if name.starts_with("mldsa") => {
                Scheme::Signature(KeyFamily::MlDsa, Family::Fixed(name))
            }
            // SM2, Ed448 and SLH-DSA, which no suite uses.
            _ => return Ok(()),
        },
    };
    SLOTS.wrap(
        scheme,
        algorithm,
        [
            (2, instances!(sign_init; 64)),
            (3, instances!(sign; 64)),
            (4, instances!(verify_init; 64)),
            (5, instances!(verify; 64)),
            (8, instances!(digest_sign_init; 64)),
            (9, instances!(digest_sign_update; 64)),
            (10, instances!(digest_sign_final; 64)),
            (11, instances!(digest_sign; 64)),
            (12, instances!(digest_verify_init; 64)),
            (13, instances!(digest_verify_update; 64)),
            (14, instances!(digest_verify_final; 64)),
            (15, instances!(digest_verify; 64)),
            (17, instances!(dupctx; 64)),
            (27, instances!(sign_message_init; 64)),
            (30, instances!(verify_message_init; 64)),
            (6, instances!(verify_recover_init; 64)),
            (16, instances!(freectx; 64)),
        ],
    )
}

/// Notes the primitive for which a context is initialised. A null key means that the context keeps its key.
fn begin(
    slot: &'static Slot,
    context: *mut c_void,
    key: *mut c_void,
    operation: Operation,
    digest: *const c_char,
) {
    let primitive = match slot.description() {
        Some(Scheme::Signature(names, family)) if !key.is_null() => {
            // SAFETY: the slot's functions take keys of the slot's family.
            unsafe { names::primitive(*names, *family, operation, key) }
        }
        Some(Scheme::Signature(..)) => {
            contexts::recall(context).map(|known| Primitive { operation, ..*known }.interned())
        }
        Some(Scheme::Hmac) if !digest.is_null() => {
            // SAFETY: the core passes a C string.
            let digest = unsafe { CStr::from_ptr(digest) }.to_bytes();
            Some(names::over_digest(Construction::Hmac, digest))
        }
        Some(Scheme::Hmac) => contexts::recall(context),
        Some(Scheme::Mac(primitive)) => Some(primitive),
        None => None,
    };
    contexts::remember(context, primitive);
}

fn is_mac(slot: &'static Slot) -> bool {
    !matches!(slot.description(), Some(Scheme::Signature(..)))
}

macro_rules! plain_init {
    ($name:ident, $place:ident, $operation:expr) => {
        trampoline!(
            $name,
            $place,
            (context: *mut c_void, key: *mut c_void, params: *const OSSL_PARAM) -> c_int,
            |slot, work| {
                begin(slot, context, key, $operation, std::ptr::null());
                stopwatch::accumulate(context, work)
            }
        );
    };
}

plain_init!(sign_init, SIGN_INIT, Operation::Sign);
plain_init!(verify_init, VERIFY_INIT, Operation::Verify);
plain_init!(sign_message_init, SIGN_MESSAGE_INIT, Operation::Sign);
plain_init!(verify_message_init, VERIFY_MESSAGE_INIT, Operation::Verify);
plain_init!(verify_recover_init, VERIFY_RECOVER_INIT, Operation::Verify);

/// Work on a context before it is finished. A MAC's is recorded immediately, a signature's when it completes.
fn advance<T>(slot: &'static Slot, context: *mut c_void, bytes: usize, work: impl FnOnce() -> T) -> T {
    let primitive = move |_: &T| contexts::recall(context);
    match (is_mac(slot), bytes) {
        (true, 1..=MAX_KEPT_BYTES) => stopwatch::count_bytes(bytes, primitive, work),
        (true, _) => stopwatch::time(bytes, Entry::Partial, primitive, work),
        (false, _) => stopwatch::accumulate(context, work),
    }
}

macro_rules! digest_init {
    ($name:ident, $place:ident, $operation:expr) => {
        trampoline!(
            $name,
            $place,
            (
                context: *mut c_void,
                digest: *const c_char,
                key: *mut c_void,
                params: *const OSSL_PARAM,
            ) -> c_int,
            |slot, work| {
                begin(slot, context, key, $operation, digest);
                advance(slot, context, 0, work)
            }
        );
    };
}

digest_init!(digest_sign_init, DIGEST_SIGN_INIT, Operation::Sign);
digest_init!(digest_verify_init, DIGEST_VERIFY_INIT, Operation::Verify);

macro_rules! update {
    ($name:ident, $place:ident) => {
        trampoline!(
            $name,
            $place,
            (context: *mut c_void, data: *const u8, length: size_t) -> c_int,
            |slot, work| advance(slot, context, length, work)
        );
    };
}

update!(digest_sign_update, DIGEST_SIGN_UPDATE);
update!(digest_verify_update, DIGEST_VERIFY_UPDATE);

/// Completes a MAC or a signature.
fn finish(slot: &'static Slot, context: *mut c_void, bytes: size_t, work: impl FnOnce() -> c_int) -> c_int {
    if is_mac(slot) {
        return stopwatch::time(bytes, Entry::Complete, move |_| contexts::recall(context), work);
    }
    let work = || stopwatch::complete(context, work);
    match slot.description() {
        // Whether it draws random numbers for its blinding depends on the key's history.
        Some(Scheme::Signature(_, Family::Rsa)) => random::apart(work),
        _ => work(),
    }
}

/// A call that signs. Without a buffer for the signature it only queries a size.
macro_rules! signing {
    ($name:ident, $place:ident, ($($argument:ident: $type:ty),*), $bytes:expr) => {
        trampoline!(
            $name,
            $place,
            (
                context: *mut c_void,
                signature: *mut u8,
                length: *mut size_t,
                size: size_t
                $(, $argument: $type)*
            ) -> c_int,
            |slot, work| if signature.is_null() { work() } else { finish(slot, context, $bytes, work) }
        );
    };
}

signing!(sign, SIGN, (data: *const u8, data_length: size_t), data_length);
signing!(digest_sign, DIGEST_SIGN, (data: *const u8, data_length: size_t), data_length);
signing!(digest_sign_final, DIGEST_SIGN_FINAL, (), 0);

macro_rules! verifying {
    ($name:ident, $place:ident, ($($argument:ident: $type:ty),*), $bytes:expr) => {
        trampoline!(
            $name,
            $place,
            (context: *mut c_void, signature: *const u8, length: size_t $(, $argument: $type)*) -> c_int,
            |slot, work| finish(slot, context, $bytes, work)
        );
    };
}

verifying!(verify, VERIFY, (data: *const u8, data_length: size_t), data_length);
verifying!(digest_verify, DIGEST_VERIFY, (data: *const u8, data_length: size_t), data_length);
verifying!(digest_verify_final, DIGEST_VERIFY_FINAL, (), 0);

// libssl completes the operation on a copy, so that the running hash can continue.
trampoline!(dupctx, DUPCTX, (context: *mut c_void) -> *mut c_void, |slot, work| {
    let copy = advance(slot, context, 0, work);
    contexts::duplicate(context, copy);
    copy
});
forgetting!(freectx, FREECTX);
