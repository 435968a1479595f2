//! Keys: generation, and reading a peer's public key.

use super::names::{self, Family};
use super::slots::{Full, Slots, instances};
use super::stopwatch::{self, Entry};
use crate::ffi::{self, OSSL_DISPATCH};
use libc::{c_int, c_void, size_t};
use shakedown_trace::suite::KeyFamily;
use shakedown_trace::{Operation, Primitive, recorder};
use std::cell::{Cell, RefCell};

#[derive(Debug)]
struct Keys {
    family: Family,
    /// Family under which what is done with such keys is named.
    names: KeyFamily,
}

static SLOTS: Slots<8, Keys> = Slots::new();
const GEN_INIT: usize = 0;
const GEN: usize = 1;
const IMPORT: usize = 2;
const SET_PARAMS: usize = 3;
const VALIDATE: usize = 4;
const GEN_CLEANUP: usize = 5;
const GEN_SET_TEMPLATE: usize = 6;
const LOAD: usize = 7;

pub fn wrap(name: &str, functions: &mut [OSSL_DISPATCH]) -> Result<(), Full> {
    let (family, names) = match name {
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
            // Keys of MACs and the like: importing one is nothing.
            None => return Ok(()),
        },
    };
    let get_params = functions.iter().find(|entry| entry.function_id == 11);
    if let Some(get_params) = get_params {
        names::learn(family, get_params.function);
    }
    SLOTS.wrap(
        Keys { family, names },
        functions,
        [
            (2, instances!(gen_init)),
            (6, instances!(generate)),
            (40, instances!(import_key)),
            (13, instances!(set_params)),
            (22, instances!(validate)),
            (7, instances!(gen_cleanup)),
            (3, instances!(gen_set_template)),
            (8, instances!(load)),
        ],
    )
}

fn named<const SLOT: usize>(operation: Operation, key: *mut c_void) -> Option<Primitive> {
    let keys = SLOTS.description(SLOT)?;
    // SAFETY: the slot's functions work on keys of the slot's family.
    let parameters = unsafe { names::parameters(keys.family, key) }?;
    Some(keys.names.primitive(operation, parameters))
}

thread_local! {
    /// Parameters of the key that a decoder handed over last.
    static LOADED: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// Generation contexts that make a key pair, not just parameters; few live at a time.
    static PAIRS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn gen_init<const SLOT: usize>(
    provider: *mut c_void,
    selection: c_int,
    params: *const ffi::OSSL_PARAM,
) -> *mut c_void {
    type Function = unsafe extern "C" fn(*mut c_void, c_int, *const ffi::OSSL_PARAM) -> *mut c_void;
    // SAFETY: the place's type; the arguments are handed on.
    let context = unsafe { SLOTS.original::<Function>(SLOT, GEN_INIT)(provider, selection, params) };
    if selection & ffi::OSSL_KEYMGMT_SELECT_KEYPAIR != 0 {
        PAIRS.with_borrow_mut(|pairs| pairs.push(context as usize));
    }
    context
}

unsafe extern "C" fn gen_cleanup<const SLOT: usize>(context: *mut c_void) {
    type Function = unsafe extern "C" fn(*mut c_void);
    PAIRS.with_borrow_mut(|pairs| pairs.retain(|pair| *pair != context as usize));
    // SAFETY: the place's type; the argument is handed on.
    unsafe { SLOTS.original::<Function>(SLOT, GEN_CLEANUP)(context) }
}

unsafe extern "C" fn gen_set_template<const SLOT: usize>(
    context: *mut c_void,
    template: *mut c_void,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;
    // SAFETY: the place's type; the arguments are handed on.
    unsafe { SLOTS.original::<Function>(SLOT, GEN_SET_TEMPLATE)(context, template) }
}

unsafe extern "C" fn generate<const SLOT: usize>(
    context: *mut c_void,
    callback: *const c_void,
    argument: *mut c_void,
) -> *mut c_void {
    type Function = unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void) -> *mut c_void;
    // SAFETY: the place's type; the arguments are handed on.
    let work = || unsafe { SLOTS.original::<Function>(SLOT, GEN)(context, callback, argument) };
    if !PAIRS.with_borrow(|pairs| pairs.contains(&(context as usize))) {
        return work();
    }
    stopwatch::time(0, Entry::Whole, |key| named::<SLOT>(Operation::Keygen, *key), work)
}

unsafe extern "C" fn import_key<const SLOT: usize>(
    key: *mut c_void,
    selection: c_int,
    params: *const ffi::OSSL_PARAM,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_void, c_int, *const ffi::OSSL_PARAM) -> c_int;
    // SAFETY: the place's type; the arguments are handed on.
    let work = || unsafe { SLOTS.original::<Function>(SLOT, IMPORT)(key, selection, params) };
    if selection & ffi::OSSL_KEYMGMT_SELECT_PUBLIC_KEY == 0 {
        return work();
    }
    stopwatch::time(0, Entry::Whole, |_| named::<SLOT>(Operation::Import, key), work)
}

/// A TLS key share reaches its key as the parameter `encoded-pub-key`.
unsafe extern "C" fn set_params<const SLOT: usize>(
    key: *mut c_void,
    params: *const ffi::OSSL_PARAM,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut c_void, *const ffi::OSSL_PARAM) -> c_int;
    // SAFETY: the place's type; the arguments are handed on.
    let work = || unsafe { SLOTS.original::<Function>(SLOT, SET_PARAMS)(key, params) };
    // SAFETY: the core hands over a list that ends as it should.
    let encoded = !params.is_null()
        && unsafe {
            !(*params).key.is_null() && std::ffi::CStr::from_ptr((*params).key) == c"encoded-pub-key"
        };
    if !encoded {
        return work();
    }
    stopwatch::time(0, Entry::Whole, |_| named::<SLOT>(Operation::Import, key), work)
}

/// Checking a peer's public key belongs to reading it (SP 800-56A): libssl does so before each derivation.
unsafe extern "C" fn validate<const SLOT: usize>(key: *const c_void, selection: c_int, kind: c_int) -> c_int {
    type Function = unsafe extern "C" fn(*const c_void, c_int, c_int) -> c_int;
    // SAFETY: the place's type; the arguments are handed on.
    let work = || unsafe { SLOTS.original::<Function>(SLOT, VALIDATE)(key, selection, kind) };
    stopwatch::time(0, Entry::Towards, |_| named::<SLOT>(Operation::Import, key.cast_mut()), work)
}

/// The parameters of the key that was loaded since the last call, if any.
pub fn take_loaded() -> Option<&'static str> {
    LOADED.take()
}

/// A decoder hands its key over by reference; here it first becomes one that can be asked what it is.
unsafe extern "C" fn load<const SLOT: usize>(reference: *const c_void, size: size_t) -> *mut c_void {
    type Function = unsafe extern "C" fn(*const c_void, size_t) -> *mut c_void;
    // SAFETY: the place's type; the arguments are handed on.
    let key = unsafe { SLOTS.original::<Function>(SLOT, LOAD)(reference, size) };
    if recorder::is_recording() {
        LOADED.set(named::<SLOT>(Operation::Import, key).map(|primitive| primitive.parameters));
    }
    key
}
