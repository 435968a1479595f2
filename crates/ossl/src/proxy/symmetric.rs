//! Hashes, ciphers, MACs and key derivation functions.

use super::names::{self, Construction};
use super::slots::{Full, Slots, instances};
use super::stopwatch::{self, Entry};
use crate::ffi::{OSSL_DISPATCH, OSSL_PARAM};
use libc::{c_int, c_void, size_t};
use shakedown_trace::operation::intern;
use shakedown_trace::{Operation, Primitive, recorder};

/// Hashes.
pub mod digest {
    use super::{
        Entry, Full, OSSL_DISPATCH, Operation, Primitive, Slots, c_int, c_void, instances, names, size_t,
        stopwatch,
    };

    static SLOTS: Slots<3, Primitive> = Slots::new();

    /// Initialising and copying a hash takes less time than reading a clock; that stays with the message.
    pub fn wrap(name: &str, functions: &mut [OSSL_DISPATCH]) -> Result<(), Full> {
        SLOTS.wrap(
            Primitive::new(Operation::Digest, names::digest(name), ""),
            functions,
            [(3, instances!(update)), (4, instances!(finish)), (5, instances!(whole))],
        )
    }

    unsafe extern "C" fn update<const SLOT: usize>(
        context: *mut c_void,
        data: *const u8,
        length: size_t,
    ) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void, *const u8, size_t) -> c_int;
        stopwatch::time(
            length,
            Entry::Towards,
            |_| Some(SLOTS.primitive(SLOT)),
            || {
                // SAFETY: the place's type; the arguments are handed on.
                unsafe { SLOTS.original::<Function>(SLOT, 0)(context, data, length) }
            },
        )
    }

    unsafe extern "C" fn finish<const SLOT: usize>(
        context: *mut c_void,
        out: *mut u8,
        length: *mut size_t,
        size: size_t,
    ) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void, *mut u8, *mut size_t, size_t) -> c_int;
        stopwatch::time(
            0,
            Entry::Whole,
            |_| Some(SLOTS.primitive(SLOT)),
            || {
                // SAFETY: the place's type; the arguments are handed on.
                unsafe { SLOTS.original::<Function>(SLOT, 1)(context, out, length, size) }
            },
        )
    }

    unsafe extern "C" fn whole<const SLOT: usize>(
        provider: *mut c_void,
        data: *const u8,
        length: size_t,
        out: *mut u8,
        out_length: *mut size_t,
        size: size_t,
    ) -> c_int {
        type Function =
            unsafe extern "C" fn(*mut c_void, *const u8, size_t, *mut u8, *mut size_t, size_t) -> c_int;
        stopwatch::time(
            length,
            Entry::Whole,
            |_| Some(SLOTS.primitive(SLOT)),
            || {
                // SAFETY: the place's type; the arguments are handed on.
                unsafe { SLOTS.original::<Function>(SLOT, 2)(provider, data, length, out, out_length, size) }
            },
        )
    }
}

/// Bulk ciphers.
pub mod cipher {
    use super::{
        Entry, Full, OSSL_DISPATCH, OSSL_PARAM, Operation, Primitive, Slots, c_int, c_void, instances,
        intern, size_t, stopwatch,
    };

    static SLOTS: Slots<5, Primitive> = Slots::new();

    pub fn wrap(name: &str, functions: &mut [OSSL_DISPATCH]) -> Result<(), Full> {
        // Modes that no TLS record has would use slots up for nothing.
        let used = ["-CBC", "-GCM", "-CCM", "RC4", "Poly1305", "NULL"];
        if !used.iter().any(|part| name.contains(part)) {
            return Ok(());
        }
        SLOTS.wrap(
            Primitive::new(Operation::Cipher, intern(&name.to_ascii_lowercase()), ""),
            functions,
            [
                (2, instances!(encrypt_init)),
                (3, instances!(decrypt_init)),
                (4, instances!(update)),
                (5, instances!(finish)),
                (6, instances!(whole)),
            ],
        )
    }

    type Init =
        unsafe extern "C" fn(*mut c_void, *const u8, size_t, *const u8, size_t, *const OSSL_PARAM) -> c_int;
    type Update = unsafe extern "C" fn(*mut c_void, *mut u8, *mut size_t, size_t, *const u8, size_t) -> c_int;

    macro_rules! init {
        ($name:ident, $place:literal) => {
            unsafe extern "C" fn $name<const SLOT: usize>(
                context: *mut c_void,
                key: *const u8,
                key_length: size_t,
                iv: *const u8,
                iv_length: size_t,
                params: *const OSSL_PARAM,
            ) -> c_int {
                // SAFETY: the place's type; the arguments are handed on.
                let work = || unsafe {
                    SLOTS.original::<Init>(SLOT, $place)(context, key, key_length, iv, iv_length, params)
                };
                // A record's nonce is copied in less time than a clock is read; a key has to be expanded.
                if key.is_null() {
                    return work();
                }
                stopwatch::time(0, Entry::Towards, |_| Some(SLOTS.primitive(SLOT)), work)
            }
        };
    }
    init!(encrypt_init, 0);
    init!(decrypt_init, 1);

    unsafe extern "C" fn update<const SLOT: usize>(
        context: *mut c_void,
        out: *mut u8,
        out_length: *mut size_t,
        out_size: size_t,
        data: *const u8,
        length: size_t,
    ) -> c_int {
        // SAFETY: the place's type; the arguments are handed on.
        let work =
            || unsafe { SLOTS.original::<Update>(SLOT, 2)(context, out, out_length, out_size, data, length) };
        // Additional data comes with no output: a record's header, less work than reading a clock.
        if out.is_null() {
            return work();
        }
        stopwatch::time(length, Entry::Whole, |_| Some(SLOTS.primitive(SLOT)), work)
    }

    unsafe extern "C" fn finish<const SLOT: usize>(
        context: *mut c_void,
        out: *mut u8,
        out_length: *mut size_t,
        out_size: size_t,
    ) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void, *mut u8, *mut size_t, size_t) -> c_int;
        stopwatch::time(
            0,
            Entry::Towards,
            |_| Some(SLOTS.primitive(SLOT)),
            || {
                // SAFETY: the place's type; the arguments are handed on.
                unsafe { SLOTS.original::<Function>(SLOT, 3)(context, out, out_length, out_size) }
            },
        )
    }

    unsafe extern "C" fn whole<const SLOT: usize>(
        context: *mut c_void,
        out: *mut u8,
        out_length: *mut size_t,
        out_size: size_t,
        data: *const u8,
        length: size_t,
    ) -> c_int {
        stopwatch::time(
            length,
            Entry::Whole,
            |_| Some(SLOTS.primitive(SLOT)),
            || {
                // SAFETY: the place's type; the arguments are handed on.
                unsafe { SLOTS.original::<Update>(SLOT, 4)(context, out, out_length, out_size, data, length) }
            },
        )
    }
}

/// Message authentication codes.
pub mod mac {
    use super::{
        Construction, Entry, Full, OSSL_DISPATCH, OSSL_PARAM, Operation, Primitive, Slots, c_int, c_void,
        instances, intern, names, recorder, size_t, stopwatch,
    };

    static SLOTS: Slots<5, Primitive> = Slots::new();

    pub fn wrap(name: &str, functions: &mut [OSSL_DISPATCH]) -> Result<(), Full> {
        SLOTS.wrap(
            Primitive::new(Operation::Mac, intern(&name.to_ascii_lowercase()), ""),
            functions,
            [
                (4, instances!(init)),
                (5, instances!(update)),
                (6, instances!(finish)),
                (2, instances!(dupctx)),
                (9, instances!(set_ctx_params)),
            ],
        )
    }

    /// HMAC learns its hash from parameters, here or at initialisation.
    fn learn<const SLOT: usize>(context: *mut c_void, params: *const OSSL_PARAM) {
        if !recorder::is_recording() || SLOTS.primitive(SLOT).algorithm != "hmac" {
            return;
        }
        // SAFETY: the core hands over a list that ends as it should.
        if let Some(digest) = unsafe { names::text_param(params, c"digest") } {
            let primitive =
                Primitive::new(Operation::Mac, names::over_digest(Construction::Hmac, digest), "");
            stopwatch::remember(context as usize, Some(primitive));
        }
    }

    fn primitive<const SLOT: usize>(context: *mut c_void) -> Option<Primitive> {
        Some(stopwatch::recall(context as usize).unwrap_or_else(|| SLOTS.primitive(SLOT)))
    }

    unsafe extern "C" fn init<const SLOT: usize>(
        context: *mut c_void,
        key: *const u8,
        length: size_t,
        params: *const OSSL_PARAM,
    ) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void, *const u8, size_t, *const OSSL_PARAM) -> c_int;
        learn::<SLOT>(context, params);
        stopwatch::time(
            0,
            Entry::Towards,
            |_| primitive::<SLOT>(context),
            || {
                // SAFETY: the place's type; the arguments are handed on.
                unsafe { SLOTS.original::<Function>(SLOT, 0)(context, key, length, params) }
            },
        )
    }

    unsafe extern "C" fn set_ctx_params<const SLOT: usize>(
        context: *mut c_void,
        params: *const OSSL_PARAM,
    ) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void, *const OSSL_PARAM) -> c_int;
        learn::<SLOT>(context, params);
        // SAFETY: the place's type; the arguments are handed on.
        unsafe { SLOTS.original::<Function>(SLOT, 4)(context, params) }
    }

    unsafe extern "C" fn update<const SLOT: usize>(
        context: *mut c_void,
        data: *const u8,
        length: size_t,
    ) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void, *const u8, size_t) -> c_int;
        stopwatch::time(
            length,
            Entry::Towards,
            |_| primitive::<SLOT>(context),
            || {
                // SAFETY: the place's type; the arguments are handed on.
                unsafe { SLOTS.original::<Function>(SLOT, 1)(context, data, length) }
            },
        )
    }

    unsafe extern "C" fn finish<const SLOT: usize>(
        context: *mut c_void,
        out: *mut u8,
        length: *mut size_t,
        size: size_t,
    ) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void, *mut u8, *mut size_t, size_t) -> c_int;
        // SAFETY: the place's type; the arguments are handed on.
        let work = || unsafe { SLOTS.original::<Function>(SLOT, 2)(context, out, length, size) };
        if out.is_null() {
            return work();
        }
        stopwatch::time(0, Entry::Whole, |_| primitive::<SLOT>(context), work)
    }

    unsafe extern "C" fn dupctx<const SLOT: usize>(context: *mut c_void) -> *mut c_void {
        type Function = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
        let copy = stopwatch::time(
            0,
            Entry::Towards,
            |_| primitive::<SLOT>(context),
            || {
                // SAFETY: the place's type; the argument is handed on.
                unsafe { SLOTS.original::<Function>(SLOT, 3)(context) }
            },
        );
        stopwatch::duplicate(context as usize, copy as usize);
        copy
    }
}

/// Key derivation functions: OpenSSL calls using one `derive`, the trace calls it `prf`.
pub mod kdf {
    use super::{
        Construction, Entry, Full, OSSL_DISPATCH, OSSL_PARAM, Operation, Primitive, Slots, c_int, c_void,
        instances, names, size_t, stopwatch,
    };

    static SLOTS: Slots<1, Construction> = Slots::new();

    pub fn wrap(name: &str, functions: &mut [OSSL_DISPATCH]) -> Result<(), Full> {
        let construction = match name {
            "HKDF" | "TLS13-KDF" => Construction::Hkdf,
            "TLS1-PRF" => Construction::TlsPrf,
            _ => return Ok(()),
        };
        SLOTS.wrap(construction, functions, [(5, instances!(derive))])
    }

    unsafe extern "C" fn derive<const SLOT: usize>(
        context: *mut c_void,
        key: *mut u8,
        length: size_t,
        params: *const OSSL_PARAM,
    ) -> c_int {
        type Function = unsafe extern "C" fn(*mut c_void, *mut u8, size_t, *const OSSL_PARAM) -> c_int;
        let primitive = |_: &c_int| {
            let construction = *SLOTS.description(SLOT)?;
            // SAFETY: the core hands over a list that ends as it should.
            let digest = unsafe { names::text_param(params, c"digest") }.unwrap_or(c"unnamed");
            Some(Primitive::new(Operation::Prf, names::over_digest(construction, digest), ""))
        };
        stopwatch::time(length, Entry::Whole, primitive, || {
            // SAFETY: the place's type; the arguments are handed on.
            unsafe { SLOTS.original::<Function>(SLOT, 0)(context, key, length, params) }
        })
    }
}
