//! Library contexts: their creation, once per process, and the bare one.

use crate::ffi;
use openssl::error::ErrorStack;
use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Debug, thiserror::Error)]
pub enum LibraryError {
    #[error("OpenSSL could not make a library context: {0}")]
    Context(ErrorStack),
    #[error("OpenSSL could not load its provider '{name}': {stack}")]
    Provider { name: &'static str, stack: ErrorStack },
    #[error(
        "OpenSSL offers more than {max} algorithms of operation {operation}; the timing provider has no room"
    )]
    TooManyAlgorithms { operation: i32, max: usize },
}

/// An OpenSSL library context with all algorithms of the default and legacy providers.
///
/// A process has one of each kind. It is created at its first use and kept until the program ends, because keys,
/// certificates and connections refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library {
    context: *mut ffi::OSSL_LIB_CTX,
    timed: bool,
}

// SAFETY: OSSL_LIB_CTX is internally synchronised, and the context of a `Library` is never freed.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// A context that exists once per process. The first thread creates it while the others wait. If this fails, the partly
/// created context is freed, and the next thread tries again.
pub(crate) struct Shared(Mutex<Option<Library>>);

impl Shared {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(crate) fn get(
        &self,
        make: impl FnOnce() -> Result<Unfinished, LibraryError>,
    ) -> Result<Library, LibraryError> {
        // A panic during the creation has left `None`.
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = *made {
            return Ok(library);
        }
        let library = make()?.finish();
        *made = Some(library);
        Ok(library)
    }
}

impl Library {
    /// The context with the unmodified default and legacy providers. Nothing is timed.
    pub fn bare() -> Result<Self, LibraryError> {
        static BARE: Shared = Shared::new();
        BARE.get(|| {
            let mut library = Unfinished::new(false)?;
            library.load(c"default")?;
            library.load(c"legacy")?;
            Ok(library)
        })
    }

    /// The context itself, for FFI. It is valid until the program ends.
    pub fn as_ptr(&self) -> *mut ffi::OSSL_LIB_CTX {
        self.context
    }
}

/// A context under construction, which is freed if it is not finished.
pub(crate) struct Unfinished {
    library: Library,
    providers: Vec<*mut ffi::OSSL_PROVIDER>,
}

impl Unfinished {
    pub(crate) fn new(timed: bool) -> Result<Self, LibraryError> {
        // Has no effect if OpenSSL was used before; then only the memory figures are missing.
        crate::memory::install();
        openssl::init();
        // SAFETY: no arguments; a null result is checked.
        let context = unsafe { openssl_sys::OSSL_LIB_CTX_new() };
        if context.is_null() {
            return Err(LibraryError::Context(ErrorStack::get()));
        }
        Ok(Self { library: Library { context, timed }, providers: Vec::new() })
    }

    /// Registers a built-in provider under a name.
    pub(crate) fn add(&mut self, name: &'static CStr, init: ffi::ProviderInit) -> Result<(), LibraryError> {
        // SAFETY: the context is live, the name a C string, and the function an OSSL_provider_init_fn.
        let added = unsafe { ffi::OSSL_PROVIDER_add_builtin(self.library.context, name.as_ptr(), init) };
        if added == 1 { Ok(()) } else { Err(provider_error(name)) }
    }

    pub(crate) fn load(&mut self, name: &'static CStr) -> Result<*mut ffi::OSSL_PROVIDER, LibraryError> {
        // SAFETY: the context is live and the name a C string.
        let provider = unsafe { openssl_sys::OSSL_PROVIDER_load(self.library.context, name.as_ptr()) };
        if provider.is_null() {
            return Err(provider_error(name));
        }
        self.providers.push(provider);
        Ok(provider)
    }

    /// Keeps the context until the program ends.
    pub(crate) fn finish(self) -> Library {
        let mut kept = std::mem::ManuallyDrop::new(self);
        kept.providers = Vec::new();
        kept.library
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        for provider in self.providers.drain(..).rev() {
            // SAFETY: loaded into this context, and not in use: no `Library` has this context.
            unsafe { openssl_sys::OSSL_PROVIDER_unload(provider) };
        }
        // SAFETY: as above; freed once.
        unsafe { openssl_sys::OSSL_LIB_CTX_free(self.library.context) };
    }
}

fn provider_error(name: &'static CStr) -> LibraryError {
    LibraryError::Provider { name: name.to_str().unwrap_or("?"), stack: ErrorStack::get() }
}

/// OpenSSL's version, as in `3.5.5`.
pub fn version() -> &'static str {
    openssl::version::version().split_whitespace().nth(1).unwrap_or("unknown")
}
