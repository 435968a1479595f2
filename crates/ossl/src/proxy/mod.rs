//! The proxy provider: OpenSSL's algorithms, republished with timing.
//!
//! The default and legacy providers are each loaded once in a separate context. Their algorithm tables are copied, with
//! the property `provider=shakedown`, and relevant functions are replaced by trampolines. The core receives the
//! original's provider context, so that the copies use the state of the original. Algorithms that another algorithm
//! uses internally are fetched from the original's context, and are therefore not timed separately.

mod contexts;
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
use crate::library::{Library, LibraryError, Shared, Unfinished};
use libc::{c_char, c_int, c_void};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The built-in providers: one for each original, and one for random numbers. No others are loaded, so that a fetch
/// without a property query finds theirs.
const PROVIDERS: [(&CStr, ffi::ProviderInit); 3] =
    [(c"shakedown-default", init::<0>), (c"shakedown-legacy", init::<1>), (random::NAME, random::init)];

impl Library {
    /// The context in which all algorithms are the proxy's, so that their use is recorded.
    pub fn timed() -> Result<Self, LibraryError> {
        static TIMED: Shared = Shared::new();
        TIMED.get(|| {
            prepare()?;
            let mut library = Unfinished::new(true)?;
            for (name, init) in PROVIDERS {
                library.add(name, init)?;
                library.load(name)?;
            }
            Ok(library)
        })
    }
}

/// An original provider and its republished tables.
struct Republished {
    provider: *mut ffi::OSSL_PROVIDER,
    tables: HashMap<c_int, Table>,
}

/// The copies of one table of algorithms, with all data to which they point and that the original does not own.
#[derive(Default)]
struct Table {
    algorithms: Vec<OSSL_ALGORITHM>,
    functions: Vec<Vec<OSSL_DISPATCH>>,
    properties: Vec<CString>,
}

// SAFETY: the provider is internally synchronised and never unloaded; the tables are not modified any more, and point
// to data that they own and to static data.
unsafe impl Send for Republished {}
// SAFETY: as above.
unsafe impl Sync for Republished {}

static REPUBLISHED: [OnceLock<Republished>; 2] = [OnceLock::new(), OnceLock::new()];

/// The republished operations: all that TLS and X.509 use, except RAND.
const OPERATIONS: [c_int; 13] = [
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
];

/// Loads the originals and creates the tables, once per process. Concurrent threads wait for the first. If it fails,
/// its results are freed, and the next call tries again.
fn prepare() -> Result<(), LibraryError> {
    static PREPARING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = PREPARING.lock().unwrap_or_else(PoisonError::into_inner);
    for (slot, name) in REPUBLISHED.iter().zip([c"default", c"legacy"]) {
        if slot.get().is_none() {
            let mut library = Unfinished::new(false)?;
            let provider = library.load(name)?;
            // The legacy provider needs random numbers from its context (for a CBC record of SSL 3.0), and has no
            // generator.
            library.load(c"default")?;
            let republished = republish(provider)?;
            library.finish();
            let _ = slot.set(republished);
        }
    }
    Ok(())
}

fn republish(provider: *mut ffi::OSSL_PROVIDER) -> Result<Republished, LibraryError> {
    let mut tables = HashMap::new();
    for operation in OPERATIONS {
        let mut no_cache: c_int = 0;
        // SAFETY: the provider is live; the table that it returns is static.
        let table = unsafe { ffi::OSSL_PROVIDER_query_operation(provider, operation, &raw mut no_cache) };
        if table.is_null() {
            continue;
        }
        let mut copies = Table::default();
        let mut entry = table;
        // SAFETY: the table ends with an entry whose names are null.
        while unsafe { !(*entry).algorithm_names.is_null() } {
            // SAFETY: not the last entry, so it is complete.
            copies.add(operation, unsafe { *entry })?;
            // SAFETY: the table ends with the null entry.
            entry = unsafe { entry.add(1) };
        }
        copies.algorithms.push(OSSL_ALGORITHM {
            algorithm_names: std::ptr::null(),
            property_definition: std::ptr::null(),
            implementation: std::ptr::null(),
            algorithm_description: std::ptr::null(),
        });
        tables.insert(operation, copies);
    }
    Ok(Republished { provider, tables })
}

impl Table {
    /// Adds an algorithm with the proxy's property, and with trampolines for relevant functions.
    fn add(&mut self, operation: c_int, original: OSSL_ALGORITHM) -> Result<(), LibraryError> {
        #[cfg(test)]
        tests::fail_here()?;
        // SAFETY: names and properties of an entry are C strings (properties may be null).
        let names = unsafe { CStr::from_ptr(original.algorithm_names) }.to_string_lossy();
        let properties = if original.property_definition.is_null() {
            String::new()
        } else {
            // SAFETY: checked not to be null.
            unsafe { CStr::from_ptr(original.property_definition) }.to_string_lossy().into_owned()
        };
        // SAFETY: the original's own table.
        let mut functions = unsafe { dispatch_table(original.implementation) };
        let mut algorithm = slots::Algorithm {
            name: names.split(':').next().unwrap_or_default(),
            properties: &properties,
            original: original.implementation,
            functions: &mut functions,
        };
        let room = match operation {
            ffi::OSSL_OP_DIGEST => symmetric::digest::wrap(&mut algorithm),
            ffi::OSSL_OP_CIPHER => symmetric::cipher::wrap(&mut algorithm),
            ffi::OSSL_OP_MAC => symmetric::mac::wrap(&mut algorithm),
            ffi::OSSL_OP_KDF => symmetric::kdf::wrap(&mut algorithm),
            ffi::OSSL_OP_KEYMGMT => keymgmt::wrap(&mut algorithm),
            ffi::OSSL_OP_KEYEXCH => exchange::agreement::wrap(&mut algorithm),
            ffi::OSSL_OP_KEM => exchange::kem::wrap(&mut algorithm),
            ffi::OSSL_OP_ASYM_CIPHER => exchange::transport::wrap(&mut algorithm),
            ffi::OSSL_OP_SIGNATURE => signature::wrap(&mut algorithm),
            ffi::OSSL_OP_DECODER => decoder::wrap(&mut algorithm),
            _ => Ok(()),
        };
        room.map_err(|slots::Full { max }| LibraryError::TooManyAlgorithms { operation, max })?;
        let ours = properties
            .replace("provider=default", "provider=shakedown")
            .replace("provider=legacy", "provider=shakedown");
        let ours = CString::new(ours).unwrap_or_default();
        self.algorithms.push(OSSL_ALGORITHM {
            // Static text of the original provider.
            algorithm_names: original.algorithm_names,
            property_definition: ours.as_ptr(),
            implementation: functions.as_ptr(),
            algorithm_description: original.algorithm_description,
        });
        self.properties.push(ours);
        self.functions.push(functions);
        Ok(())
    }
}

/// A copy of a table of functions, including its end.
///
/// # Safety
/// The table must end with function number 0.
unsafe fn dispatch_table(table: *const OSSL_DISPATCH) -> Vec<OSSL_DISPATCH> {
    let mut functions = Vec::new();
    let mut entry = table;
    loop {
        // SAFETY: as the caller guarantees, this is an entry, possibly the one that ends the table.
        let function = unsafe { *entry };
        functions.push(function);
        if function.function_id == 0 {
            return functions;
        }
        // SAFETY: not the end, so another entry follows.
        entry = unsafe { entry.add(1) };
    }
}

/// `OSSL_provider_init`: the proxy's functions, and the original's provider context.
unsafe extern "C" fn init<const ORIGINAL: usize>(
    _: *const ffi::OSSL_CORE_HANDLE,
    _: *const OSSL_DISPATCH,
    out: *mut *const OSSL_DISPATCH,
    provider_context: *mut *mut c_void,
) -> c_int {
    struct Functions([OSSL_DISPATCH; 3]);
    // SAFETY: function pointers to static functions, never written.
    unsafe impl Sync for Functions {}
    impl Functions {
        const fn of<const ORIGINAL: usize>() -> Self {
            Self([
                OSSL_DISPATCH {
                    function_id: ffi::OSSL_FUNC_PROVIDER_QUERY_OPERATION,
                    function: query_operation::<ORIGINAL> as *const c_void,
                },
                OSSL_DISPATCH {
                    function_id: ffi::OSSL_FUNC_PROVIDER_GET_CAPABILITIES,
                    function: get_capabilities::<ORIGINAL> as *const c_void,
                },
                OSSL_DISPATCH { function_id: 0, function: std::ptr::null() },
            ])
        }
    }
    static TABLES: [Functions; 2] = [Functions::of::<0>(), Functions::of::<1>()];
    let Some(republished) = REPUBLISHED[ORIGINAL].get() else { return 0 };
    // SAFETY: the core passes valid pointers for the results; the provider is live.
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
    // SAFETY: the core passes a valid pointer for the result.
    unsafe { *no_cache = 0 };
    let table = REPUBLISHED[ORIGINAL].get().and_then(|republished| republished.tables.get(&operation));
    table.map_or(std::ptr::null(), |table| table.algorithms.as_ptr())
}

/// TLS groups and signature schemes; without them, ML-DSA would not be available.
unsafe extern "C" fn get_capabilities<const ORIGINAL: usize>(
    _: *mut c_void,
    capability: *const c_char,
    callback: ffi::ParamsCallback,
    argument: *mut c_void,
) -> c_int {
    let Some(republished) = REPUBLISHED[ORIGINAL].get() else { return 0 };
    // SAFETY: the arguments are the core's, passed on unchanged.
    unsafe { ffi::OSSL_PROVIDER_get_capabilities(republished.provider, capability, callback, argument) }
}

/// For tests that need an OpenSSL that was not used before, or no other threads: runs the test of this name again in a
/// separate process, and asserts that it passes there. Returns true in that process.
#[cfg(test)]
pub fn in_a_process_of_its_own(test: &str) -> bool {
    const ALONE: &str = "SHAKEDOWN_TEST_ALONE";
    if std::env::var_os(ALONE).is_some_and(|alone| alone == test) {
        return true;
    }
    let program = std::env::current_exe().expect("this program's path");
    let done = std::process::Command::new(program)
        .args([test, "--exact", "--nocapture"])
        .env(ALONE, test)
        .output()
        .expect("a process");
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        done.status.success() && printed.contains("1 passed"),
        "{printed}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Number of algorithms to copy until one copy fails.
    static UNTIL_FAILURE: AtomicUsize = AtomicUsize::new(usize::MAX);

    pub fn fail_here() -> Result<(), LibraryError> {
        let left = UNTIL_FAILURE.load(Ordering::Relaxed);
        UNTIL_FAILURE.store(left.wrapping_sub(usize::from(left != usize::MAX)), Ordering::Relaxed);
        if left == 0 { Err(LibraryError::TooManyAlgorithms { operation: 0, max: 0 }) } else { Ok(()) }
    }

    /// A failure at any algorithm uses up no slots: there are more attempts than slots.
    #[test]
    fn failed_first_use_is_retried() {
        if !in_a_process_of_its_own("proxy::tests::failed_first_use_is_retried") {
            return;
        }
        let mut failed = 0;
        for algorithms in (0..400).step_by(2) {
            UNTIL_FAILURE.store(algorithms, Ordering::Relaxed);
            match Library::timed() {
                Err(LibraryError::TooManyAlgorithms { operation: 0, .. }) => failed += 1,
                other => panic!("expected the failure that was planted at {algorithms}, got {other:?}"),
            }
        }
        // More often than there are slots of any kind.
        assert!(failed > 100);
        UNTIL_FAILURE.store(usize::MAX, Ordering::Relaxed);
        let library = Library::timed().expect("a library");
        assert_eq!(library, Library::timed().expect("a library"));
    }
}
