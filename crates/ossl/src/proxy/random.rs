//! Random numbers for a timed context.
//!
//! Generators are chained within a library context, so the proxy can't republish those of another one. If the default
//! provider were loaded for them, the context would contain a second copy of every algorithm, and libcrypto would try
//! twice as many decoders for each public key, which costs several microseconds. Therefore this provider is a default
//! provider of the same context, with all algorithms hidden except its generators.

use crate::ffi::{self, OSSL_ALGORITHM, OSSL_DISPATCH};
use libc::{c_int, c_void};
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

pub const NAME: &CStr = c"shakedown-random";

/// The default provider's query function.
static QUERY: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// `OSSL_provider_init`.
pub unsafe extern "C" fn init(
    handle: *const ffi::OSSL_CORE_HANDLE,
    core: *const OSSL_DISPATCH,
    out: *mut *const OSSL_DISPATCH,
    provider_context: *mut *mut c_void,
) -> c_int {
    let mut table: *const OSSL_DISPATCH = std::ptr::null();
    // SAFETY: the arguments are the core's, passed on; the returned table is static and ends with number 0.
    unsafe {
        if ffi::ossl_default_provider_init(handle, core, &raw mut table, provider_context) != 1 {
            return 0;
        }
        let mut functions = Vec::new();
        while (*table).function_id != 0 {
            let mut entry = *table;
            if entry.function_id == ffi::OSSL_FUNC_PROVIDER_QUERY_OPERATION {
                QUERY.store(entry.function.cast_mut(), Ordering::Relaxed);
                entry.function = query_operation as *const c_void;
            }
            // The proxy announces groups and signature schemes.
            if entry.function_id != ffi::OSSL_FUNC_PROVIDER_GET_CAPABILITIES {
                functions.push(entry);
            }
            table = table.add(1);
        }
        functions.push(OSSL_DISPATCH { function_id: 0, function: std::ptr::null() });
        // There are few contexts, and they exist until the program ends.
        *out = functions.leak().as_ptr();
    }
    1
}

unsafe extern "C" fn query_operation(
    provider_context: *mut c_void,
    operation: c_int,
    no_cache: *mut c_int,
) -> *const OSSL_ALGORITHM {
    type Query = unsafe extern "C" fn(*mut c_void, c_int, *mut c_int) -> *const OSSL_ALGORITHM;
    let original = QUERY.load(Ordering::Relaxed);
    if operation != ffi::OSSL_OP_RAND || original.is_null() {
        // SAFETY: the core passes a valid pointer for the result.
        unsafe { *no_cache = 0 };
        return std::ptr::null();
    }
    // SAFETY: only the default provider's query function is stored there; the arguments are passed on.
    unsafe { std::mem::transmute::<*mut c_void, Query>(original)(provider_context, operation, no_cache) }
}
