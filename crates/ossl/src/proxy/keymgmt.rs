//! Keys: generation, and import of a peer's public key.

use super::contexts;
use super::names::{self, Family};
use super::slots::{self, Algorithm, Full, Slots, forgetting, instances, trampoline};
use super::stopwatch::{self, Entry};
use crate::ffi::{self, OSSL_PARAM};
use libc::{c_int, c_void, size_t};
use shakedown_trace::suite::KeyFamily;
use shakedown_trace::{Operation, Primitive};
use std::cell::Cell;
use std::ffi::CStr;

#[derive(Debug)]
struct Keys {
    family: Family,
    names: KeyFamily,
}

type Slot = slots::Slot<7, Keys>;
static SLOTS: Slots<7, 32, Keys> = Slots::new();
const GEN_INIT: usize = 0;
const GEN: usize = 1;
const IMPORT: usize = 2;
const SET_PARAMS: usize = 3;
const VALIDATE: usize = 4;
const GEN_CLEANUP: usize = 5;
const LOAD: usize = 6;

pub fn wrap(algorithm: &mut Algorithm<'_>) -> Result<(), Full> {
    let (family, names) = match algorithm.name {
        "RSA" | "RSA-PSS" => (Family::Rsa, KeyFamily::Rsa),
        "DSA" => (Family::Dsa, KeyFamily::Dsa),
        "DH" | "DHX" => (Family::Dh, KeyFamily::Dh),
        "EC" => (Family::Ec, KeyFamily::Ec),
        other => match names::fixed(other) {
            Some(name @ ("x25519" | "x448")) => (Family::Fixed(name), KeyFamily::Ec),
            Some(name @ ("ed25519" | "ed448")) => (Family::Fixed(name), KeyFamily::Edwards),
            Some(name) if name.starts_with("mldsa") => (Family::Fixed(name), KeyFamily::MlDsa),
            Some(name) if name.starts_with("mlkem") => (Family::Fixed(name), KeyFamily::MlKem),
            Some(name) => (Family::Fixed(name), KeyFamily::Hybrid),
            // Keys of MACs and similar, whose import takes no time.
            None => return Ok(()),
        },
    };
    let get_params = algorithm.functions.iter().find(|entry| entry.function_id == 11);
    if let Some(get_params) = get_params {
        names::learn(family, get_params.function);
    }
    SLOTS.wrap(
        Keys { family, names },
        algorithm,
        [
            (2, instances!(gen_init; 32)),
            (6, instances!(generate; 32)),
            (40, instances!(import_key; 32)),
            (13, instances!(set_params; 32)),
            (22, instances!(validate; 32)),
            (7, instances!(gen_cleanup; 32)),
            (8, instances!(load; 32)),
        ],
    )
}

fn named(slot: &'static Slot, operation: Operation, key: *mut c_void) -> Option<&'static Primitive> {
    let keys = slot.description()?;
    // SAFETY: the slot's functions work on keys of the slot's family.
    unsafe { names::primitive(keys.names, keys.family, operation, key) }
}

thread_local! {
    /// The import of the key that a decoder loaded last.
    static LOADED: Cell<Option<&'static Primitive>> = const { Cell::new(None) };
}

trampoline!(
    gen_init,
    GEN_INIT,
    (provider: *mut c_void, selection: c_int, params: *const OSSL_PARAM) -> *mut c_void,
    |slot, work| {
        let context = work();
        // Generation of a key pair, not only of parameters. The generated pair determines the primitive.
        if selection & ffi::OSSL_KEYMGMT_SELECT_KEYPAIR != 0 {
            contexts::remember(context, None);
        }
        context
    }
);
forgetting!(gen_cleanup, GEN_CLEANUP);
trampoline!(
    generate,
    GEN,
    (context: *mut c_void, callback: *const c_void, argument: *mut c_void) -> *mut c_void,
    |slot, work| if contexts::is_known(context) {
        let primitive = move |key: &*mut c_void| named(slot, Operation::Keygen, *key);
        stopwatch::time(0, Entry::Complete, primitive, work)
    } else {
        work()
    }
);
trampoline!(
    import_key,
    IMPORT,
    (key: *mut c_void, selection: c_int, params: *const OSSL_PARAM) -> c_int,
    |slot, work| if selection & ffi::OSSL_KEYMGMT_SELECT_PUBLIC_KEY == 0 {
        work()
    } else {
        stopwatch::time(0, Entry::Complete, move |_| named(slot, Operation::Import, key), work)
    }
);
// The key of a TLS key share is set by the parameter `encoded-pub-key`.
trampoline!(set_params, SET_PARAMS, (key: *mut c_void, params: *const OSSL_PARAM) -> c_int, |slot, work| {
    // SAFETY: the core passes a terminated list.
    let encoded = !params.is_null()
        && unsafe { !(*params).key.is_null() && CStr::from_ptr((*params).key) == c"encoded-pub-key" };
    if encoded {
        stopwatch::time(0, Entry::Complete, move |_| named(slot, Operation::Import, key), work)
    } else {
        work()
    }
});
// Validation of a peer's public key is part of its import (SP 800-56A): libssl validates before each derivation.
trampoline!(
    validate,
    VALIDATE,
    (key: *const c_void, selection: c_int, kind: c_int) -> c_int,
    |slot, work| {
        let primitive = move |_: &c_int| named(slot, Operation::Import, key.cast_mut());
        stopwatch::time(0, Entry::Partial, primitive, work)
    }
);

/// The import of the key that was loaded since the last call, if any.
pub fn take_loaded() -> Option<&'static Primitive> {
    LOADED.take()
}

// A decoder passes its key by reference. After this call, the kind of the key can be read.
trampoline!(load, LOAD, (reference: *const c_void, size: size_t) -> *mut c_void, |slot, work| {
    let key = work();
    if stopwatch::is_recording() {
        LOADED.set(named(slot, Operation::Import, key));
    }
    key
});
