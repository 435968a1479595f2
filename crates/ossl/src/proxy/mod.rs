//! The proxy provider: OpenSSL's own algorithms, republished with a stopwatch.
//!
//! The default and legacy providers are loaded once in contexts of their own. Their algorithm tables are
//! copied, with the property `provider=shakedown`, and functions that matter are replaced by trampolines; the
//! provider context handed to the core is the original's, so that the copies work on the original's state.
//! What an algorithm calls internally it fetches from the original's context and is not timed twice.

mod decoder;
mod exchange;
mod keymgmt;
mod names;
mod random;
mod signature;
mod slots;
mod stopwatch;
mod symmetric;

use crate::ffi::{self, OSSL_ALGORITHM, OSSL_DISPATCH};
use crate::{Library, LibraryError};
use libc::{c_char, c_int, c_void};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// Property query that finds the proxy's algorithms first and the rest elsewhere.
pub const PREFER: &CStr = c"?provider=shakedown";

/// The built-in providers: one for each original, and random numbers.
pub const PROVIDERS: [(&CStr, ffi::ProviderInit); 3] =
    [(c"shakedown-default", init::<0>), (c"shakedown-legacy", init::<1>), (random::NAME, random::init)];

/// An original provider and its tables as we republish them.
struct Republished {
    provider: *mut ffi::OSSL_PROVIDER,
    tables: HashMap<c_int, &'static [OSSL_ALGORITHM]>,
}

// SAFETY: the provider is internally synchronised and never unloaded; the tables are never written again.
unsafe impl Send for Republished {}
// SAFETY: as above.
unsafe impl Sync for Republished {}

static REPUBLISHED: [OnceLock<Republished>; 2] = [OnceLock::new(), OnceLock::new()];

/// Operations that are republished: all that TLS and X.509 use, but RAND.
const OPERATIONS: [c_int; 14] = [
    ffi::OSSL_OP_DIGEST,
    ffi::OSSL_OP_CIPHER,
    ffi::OSSL_OP_MAC,
    ffi::OSSL_OP_KDF,
    ffi::OSSL_OP_KEYMGMT,
    ffi::OSSL_OP_KEYEXCH,
    ffi::OSSL_OP_SIGNATURE,
    ffi::OSSL_OP_ASYM_CIPHER,
    ffi::OSSL_OP_KEM,
    15, // SKEYMGMT
    20, // ENCODER
    ffi::OSSL_OP_DECODER,
    22, // STORE
    6,  // none today; kept so that a gap in the numbering is no surprise
];

/// Loads the originals and builds the tables, once per process.
pub fn prepare() -> Result<(), LibraryError> {
    for (slot, name) in REPUBLISHED.iter().zip([c"default", c"legacy"]) {
        if slot.get().is_none() {
            let republished = republish(Library::with_provider(name)?)?;
            // A thread that came second throws its copy away; the tables are the same.
            let _ = slot.set(republished);
        }
    }
    Ok(())
}

fn republish(provider: *mut ffi::OSSL_PROVIDER) -> Result<Republished, LibraryError> {
    let mut tables = HashMap::new();
    for operation in OPERATIONS {
        let mut no_cache: c_int = 0;
        // SAFETY: the provider is live; the table it answers with is static.
        let table = unsafe { ffi::OSSL_PROVIDER_query_operation(provider, operation, &raw mut no_cache) };
        if table.is_null() {
            continue;
        }
        let mut copies = Vec::new();
        let mut entry = table;
        // SAFETY: the table ends with an entry whose names are null.
        while unsafe { !(*entry).algorithm_names.is_null() } {
            // SAFETY: not the end, so a whole entry.
            copies.push(copy(operation, unsafe { *entry })?);
            // SAFETY: the table goes on until the null entry.
            entry = unsafe { entry.add(1) };
        }
        copies.push(OSSL_ALGORITHM {
            algorithm_names: std::ptr::null(),
            property_definition: std::ptr::null(),
            implementation: std::ptr::null(),
            algorithm_description: std::ptr::null(),
        });
        tables.insert(operation, &*copies.leak());
    }
    Ok(Republished { provider, tables })
}

/// One algorithm under our property, with trampolines where they matter.
fn copy(operation: c_int, original: OSSL_ALGORITHM) -> Result<OSSL_ALGORITHM, LibraryError> {
    // SAFETY: names and properties of an entry are C strings (properties may be null).
    let names = unsafe { CStr::from_ptr(original.algorithm_names) }.to_string_lossy();
    let name = names.split(':').next().unwrap_or_default();
    let properties = if original.property_definition.is_null() {
        String::new()
    } else {
        // SAFETY: checked not to be null.
        unsafe { CStr::from_ptr(original.property_definition) }.to_string_lossy().into_owned()
    };
    let mut functions = Vec::new();
    let mut function = original.implementation;
    // SAFETY: a dispatch table ends with function number 0.
    while unsafe { (*function).function_id } != 0 {
        // SAFETY: not the end, so a whole entry; the table goes on until number 0.
        unsafe {
            functions.push(*function);
            function = function.add(1);
        }
    }
    functions.push(OSSL_DISPATCH { function_id: 0, function: std::ptr::null() });
    let room = match operation {
        ffi::OSSL_OP_DIGEST => symmetric::digest::wrap(name, &mut functions),
        ffi::OSSL_OP_CIPHER => symmetric::cipher::wrap(name, &mut functions),
        ffi::OSSL_OP_MAC => symmetric::mac::wrap(name, &mut functions),
        ffi::OSSL_OP_KDF => symmetric::kdf::wrap(name, &mut functions),
        ffi::OSSL_OP_KEYMGMT => keymgmt::wrap(name, &mut functions),
        ffi::OSSL_OP_KEYEXCH => exchange::agreement::wrap(name, &mut functions),
        ffi::OSSL_OP_KEM => exchange::kem::wrap(name, &mut functions),
        ffi::OSSL_OP_ASYM_CIPHER => exchange::transport::wrap(name, &mut functions),
        ffi::OSSL_OP_SIGNATURE => signature::wrap(name, &mut functions),
        ffi::OSSL_OP_DECODER => decoder::wrap(name, &properties, &mut functions),
        _ => Ok(()),
    };
    room.map_err(|slots::Full| LibraryError::TooManyAlgorithms { operation, most: slots::SLOTS })?;
    let ours = properties
        .replace("provider=default", "provider=shakedown")
        .replace("provider=legacy", "provider=shakedown");
    Ok(OSSL_ALGORITHM {
        // Static text of the original provider.
        algorithm_names: original.algorithm_names,
        property_definition: leak(&ours),
        implementation: functions.leak().as_ptr(),
        algorithm_description: original.algorithm_description,
    })
}

/// A C string for the life of the program; the tables are built once.
fn leak(text: &str) -> *const c_char {
    CString::new(text).unwrap_or_default().into_raw()
}

/// `OSSL_provider_init`: our functions, and the original's provider context.
unsafe extern "C" fn init<const ORIGINAL: usize>(
    _: *const ffi::OSSL_CORE_HANDLE,
    _: *const OSSL_DISPATCH,
    out: *mut *const OSSL_DISPATCH,
    provider_context: *mut *mut c_void,
) -> c_int {
    struct Table([OSSL_DISPATCH; 3]);
    // SAFETY: function pointers to static functions, never written.
    unsafe impl Sync for Table {}
    static TABLES: [Table; 2] = [
        Table([
            OSSL_DISPATCH {
                function_id: ffi::OSSL_FUNC_PROVIDER_QUERY_OPERATION,
                function: query_operation::<0> as *const c_void,
            },
            OSSL_DISPATCH {
                function_id: ffi::OSSL_FUNC_PROVIDER_GET_CAPABILITIES,
                function: get_capabilities::<0> as *const c_void,
            },
            OSSL_DISPATCH { function_id: 0, function: std::ptr::null() },
        ]),
        Table([
            OSSL_DISPATCH {
                function_id: ffi::OSSL_FUNC_PROVIDER_QUERY_OPERATION,
                function: query_operation::<1> as *const c_void,
            },
            OSSL_DISPATCH {
                function_id: ffi::OSSL_FUNC_PROVIDER_GET_CAPABILITIES,
                function: get_capabilities::<1> as *const c_void,
            },
            OSSL_DISPATCH { function_id: 0, function: std::ptr::null() },
        ]),
    ];
    let Some(republished) = REPUBLISHED[ORIGINAL].get() else { return 0 };
    // SAFETY: the core passes valid places for the answer; the provider is live.
    unsafe {
        *out = TABLES[ORIGINAL].0.as_ptr();
        *provider_context = ffi::OSSL_PROVIDER_get0_provider_ctx(republished.provider);
    }
    1
}

unsafe extern "C" fn query_operation<const ORIGINAL: usize>(
    _: *mut c_void,
    operation: c_int,
    no_cache: *mut c_int,
) -> *const OSSL_ALGORITHM {
    // SAFETY: the core passes a valid place for the answer.
    unsafe { *no_cache = 0 };
    let table = REPUBLISHED[ORIGINAL].get().and_then(|republished| republished.tables.get(&operation));
    table.map_or(std::ptr::null(), |table| table.as_ptr())
}

/// TLS groups and signature schemes; without them ML-DSA would not be offered.
unsafe extern "C" fn get_capabilities<const ORIGINAL: usize>(
    _: *mut c_void,
    capability: *const c_char,
    callback: ffi::ParamsCallback,
    argument: *mut c_void,
) -> c_int {
    let Some(republished) = REPUBLISHED[ORIGINAL].get() else { return 0 };
    // SAFETY: the arguments are the core's own, handed on unchanged.
    unsafe { ffi::OSSL_PROVIDER_get_capabilities(republished.provider, capability, callback, argument) }
}
