//! Hashes, ciphers, MACs and key derivation functions.

use super::contexts;
use super::names::{self, Construction};
use super::slots::{self, Algorithm, Full, Slots, forgetting, instances, trampoline};
use super::stopwatch::{self, Entry};
use crate::ffi::OSSL_PARAM;
use libc::{c_int, c_void, size_t};
use shakedown_trace::operation::intern;
use shakedown_trace::{Operation, Primitive};

/// Limit of bytes that a hash or MAC usually only copies: the header of a message or record, the hash of a transcript.
/// They seldom complete a block, so the time is that of a copy.
pub const MAX_KEPT_BYTES: usize = 32;

/// Hashes.
pub mod digest {
    use super::*;

    type Slot = slots::Slot<3, Primitive>;
    static SLOTS: Slots<3, 64, Primitive> = Slots::new();

    /// Initialisation and copying of a hash take less time than reading the clock; they are part of the message's time.
    pub fn wrap(algorithm: &mut Algorithm<'_>) -> Result<(), Full> {
        SLOTS.wrap(
            Primitive::new(Operation::Digest, names::digest(algorithm.name), ""),
            algorithm,
            [(3, instances!(update; 64)), (4, instances!(finish; 64)), (5, instances!(complete; 64))],
        )
    }

    trampoline!(update, 0, (context: *mut c_void, data: *const u8, length: size_t) -> c_int, |slot, work| {
        let primitive = move |_: &c_int| Some(slot.primitive());
        if length <= MAX_KEPT_BYTES {
            stopwatch::count_bytes(length, primitive, work)
        } else {
            stopwatch::time(length, Entry::Partial, primitive, work)
        }
    });
    trampoline!(
        finish,
        1,
        (context: *mut c_void, out: *mut u8, length: *mut size_t, size: size_t) -> c_int,
        |slot, work| stopwatch::time(0, Entry::Complete, move |_| Some(slot.primitive()), work)
    );
    trampoline!(
        complete,
        2,
        (
            provider: *mut c_void,
            data: *const u8,
            length: size_t,
            out: *mut u8,
            out_length: *mut size_t,
            size: size_t,
        ) -> c_int,
        |slot, work| stopwatch::time(length, Entry::Complete, move |_| Some(slot.primitive()), work)
    );
}

/// Bulk ciphers.
pub mod cipher {
    use super::*;

    type Slot = slots::Slot<4, Primitive>;
    static SLOTS: Slots<4, 64, Primitive> = Slots::new();

    /// The end of a record takes less time than reading the clock, as do its nonce and its header: it compares or
    /// copies a tag. This time is part of the message's.
    pub fn wrap(algorithm: &mut Algorithm<'_>) -> Result<(), Full> {
        // Modes that TLS records do not use get no slot.
        let used = ["-CBC", "-GCM", "-CCM", "RC4", "Poly1305", "NULL"];
        if !used.iter().any(|part| algorithm.name.contains(part)) {
            return Ok(());
        }
        SLOTS.wrap(
            Primitive::new(Operation::Cipher, intern(&algorithm.name.to_ascii_lowercase()), ""),
            algorithm,
            [
                (2, instances!(encrypt_init; 64)),
                (3, instances!(decrypt_init; 64)),
                (4, instances!(update; 64)),
                (6, instances!(complete; 64)),
            ],
        )
    }

    macro_rules! init {
        ($name:ident, $place:literal) => {
            trampoline!(
                $name,
                $place,
                (
                    context: *mut c_void,
                    key: *const u8,
                    key_length: size_t,
                    iv: *const u8,
                    iv_length: size_t,
                    params: *const OSSL_PARAM,
                ) -> c_int,
                // A null key only sets a record's nonce, in less time than reading the clock. A key must be expanded.
                |slot, work| if key.is_null() {
                    work()
                } else {
                    stopwatch::time(0, Entry::Partial, move |_| Some(slot.primitive()), work)
                }
            );
        };
    }
    init!(encrypt_init, 0);
    init!(decrypt_init, 1);

    trampoline!(
        update,
        2,
        (
            context: *mut c_void,
            out: *mut u8,
            out_length: *mut size_t,
            out_size: size_t,
            data: *const u8,
            length: size_t,
        ) -> c_int,
        // Additional data has no output: a record's header, which takes less time than reading the clock.
        |slot, work| if out.is_null() {
            work()
        } else {
            stopwatch::time(length, Entry::Complete, move |_| Some(slot.primitive()), work)
        }
    );
    trampoline!(
        complete,
        3,
        (
            context: *mut c_void,
            out: *mut u8,
            out_length: *mut size_t,
            out_size: size_t,
            data: *const u8,
            length: size_t,
        ) -> c_int,
        |slot, work| stopwatch::time(length, Entry::Complete, move |_| Some(slot.primitive()), work)
    );
}

/// Message authentication codes.
pub mod mac {
    use super::*;

    enum Scheme {
        /// Parameters name the hash.
        Hmac,
        Named(Primitive),
    }

    type Slot = slots::Slot<6, Scheme>;
    static SLOTS: Slots<6, 16, Scheme> = Slots::new();

    pub fn wrap(algorithm: &mut Algorithm<'_>) -> Result<(), Full> {
        let scheme = match algorithm.name {
            "HMAC" => Scheme::Hmac,
            name => Scheme::Named(Primitive::new(Operation::Mac, intern(&name.to_ascii_lowercase()), "")),
        };
        SLOTS.wrap(
            scheme,
            algorithm,
            [
                (4, instances!(init; 16)),
                (5, instances!(update; 16)),
                (6, instances!(finish; 16)),
                (2, instances!(dupctx; 16)),
                (9, instances!(set_ctx_params; 16)),
                (3, instances!(freectx; 16)),
            ],
        )
    }

    /// Sets the hash of an HMAC context, if the parameters contain it.
    fn learn(slot: &'static Slot, context: *mut c_void, params: *const OSSL_PARAM) {
        if !matches!(slot.description(), Some(Scheme::Hmac)) {
            return;
        }
        // SAFETY: the core passes a terminated list.
        if let Some(digest) = unsafe { names::digest_param(params) } {
            contexts::remember(context, Some(names::over_digest(Construction::Hmac, digest)));
        }
    }

    /// HMAC with an unnamed hash.
    static UNNAMED: Primitive = Primitive::new(Operation::Mac, "hmac", "");

    fn primitive(slot: &'static Slot, context: *mut c_void) -> Option<&'static Primitive> {
        match slot.description()? {
            Scheme::Hmac => Some(contexts::recall(context).unwrap_or(&UNNAMED)),
            Scheme::Named(primitive) => Some(primitive),
        }
    }

    trampoline!(
        init,
        0,
        (context: *mut c_void, key: *const u8, length: size_t, params: *const OSSL_PARAM) -> c_int,
        |slot, work| {
            learn(slot, context, params);
            stopwatch::time(0, Entry::Partial, move |_| primitive(slot, context), work)
        }
    );
    trampoline!(
        set_ctx_params,
        4,
        (context: *mut c_void, params: *const OSSL_PARAM) -> c_int,
        |slot, work| {
            learn(slot, context, params);
            work()
        }
    );
    trampoline!(update, 1, (context: *mut c_void, data: *const u8, length: size_t) -> c_int, |slot, work| {
        if length <= MAX_KEPT_BYTES {
            stopwatch::count_bytes(length, move |_| primitive(slot, context), work)
        } else {
            stopwatch::time(length, Entry::Partial, move |_| primitive(slot, context), work)
        }
    });
    trampoline!(
        finish,
        2,
        (context: *mut c_void, out: *mut u8, length: *mut size_t, size: size_t) -> c_int,
        |slot, work| if out.is_null() {
            work()
        } else {
            stopwatch::time(0, Entry::Complete, move |_| primitive(slot, context), work)
        }
    );
    trampoline!(dupctx, 3, (context: *mut c_void) -> *mut c_void, |slot, work| {
        let copy = stopwatch::time(0, Entry::Partial, move |_| primitive(slot, context), work);
        contexts::duplicate(context, copy);
        copy
    });
    forgetting!(freectx, 5);
}

/// Key derivation functions. OpenSSL calls the operation `derive`; the trace calls it `prf`.
pub mod kdf {
    use super::*;

    type Slot = slots::Slot<1, Construction>;
    static SLOTS: Slots<1, 4, Construction> = Slots::new();

    pub fn wrap(algorithm: &mut Algorithm<'_>) -> Result<(), Full> {
        let construction = match algorithm.name {
            "HKDF" | "TLS13-KDF" => Construction::Hkdf,
            "TLS1-PRF" => Construction::TlsPrf,
            _ => return Ok(()),
        };
        SLOTS.wrap(construction, algorithm, [(5, instances!(derive; 4))])
    }

    trampoline!(
        derive,
        0,
        (context: *mut c_void, key: *mut u8, length: size_t, params: *const OSSL_PARAM) -> c_int,
        |slot, work| {
            let primitive = move |_: &c_int| {
                let construction = *slot.description()?;
                // SAFETY: the core passes a terminated list.
                let digest = unsafe { names::digest_param(params) }.unwrap_or(b"unnamed");
                Some(names::over_digest(construction, digest))
            };
            stopwatch::time(length, Entry::Complete, primitive, work)
        }
    );
}
