//! Library contexts, bare and timed.

use crate::ffi;
use crate::proxy;
use openssl::error::ErrorStack;
use std::ffi::CStr;

/// Why a library context could not be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages say it
pub enum LibraryError {
    #[error("OpenSSL could not make a library context: {0}")]
    Context(ErrorStack),
    #[error("OpenSSL could not load its provider '{name}': {stack}")]
    Provider { name: &'static str, stack: ErrorStack },
    #[error(
        "OpenSSL offers more than {most} algorithms of operation {operation}; the timing provider has no room"
    )]
    TooManyAlgorithms { operation: i32, most: usize },
}

/// An OpenSSL library context with everything switched on.
///
/// Contexts are few, made once and kept for the life of the program: keys, certificates and connections
/// made in one point back into it.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    context: *mut ffi::OSSL_LIB_CTX,
    timed: bool,
}

// SAFETY: OSSL_LIB_CTX is internally synchronised and is never freed (see `Library`).
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// A context with the default and legacy providers as they are: nothing is timed.
    ///
    /// # Errors
    /// [`LibraryError`] where OpenSSL refuses.
    pub fn bare() -> Result<Self, LibraryError> {
        let library = Self::empty(false)?;
        library.load(c"default")?;
        library.load(c"legacy")?;
        Ok(library)
    }

    /// A context in which every algorithm is the proxy's, so that its use is written to the recorder.
    ///
    /// # Errors
    /// [`LibraryError`] where OpenSSL refuses.
    pub fn timed() -> Result<Self, LibraryError> {
        proxy::prepare()?;
        let library = Self::empty(true)?;
        for (name, init) in proxy::PROVIDERS {
            // SAFETY: the context is live, the name is a C string, the function has the type of OSSL_provider_init_fn.
            if unsafe { ffi::OSSL_PROVIDER_add_builtin(library.context, name.as_ptr(), init) } != 1 {
                return Err(provider_error(name));
            }
            library.load(name)?;
        }
        // SAFETY: the context is live and the query a C string.
        if unsafe { ffi::EVP_set_default_properties(library.context, proxy::PREFER.as_ptr()) } != 1 {
            return Err(LibraryError::Context(ErrorStack::get()));
        }
        Ok(library)
    }

    fn empty(timed: bool) -> Result<Self, LibraryError> {
        // Too late where something used OpenSSL before; then only the memory figures are missing.
        crate::memory::install();
        openssl::init();
        // SAFETY: no arguments; a null result is checked.
        let context = unsafe { openssl_sys::OSSL_LIB_CTX_new() };
        if context.is_null() {
            return Err(LibraryError::Context(ErrorStack::get()));
        }
        Ok(Self { context, timed })
    }

    fn load(&self, name: &'static CStr) -> Result<*mut ffi::OSSL_PROVIDER, LibraryError> {
        // SAFETY: the context is live and the name a C string. The provider is never unloaded.
        let provider = unsafe { openssl_sys::OSSL_PROVIDER_load(self.context, name.as_ptr()) };
        if provider.is_null() { Err(provider_error(name)) } else { Ok(provider) }
    }

    /// A bare context and its provider of that name: what the proxy republishes.
    pub(crate) fn with_provider(name: &'static CStr) -> Result<*mut ffi::OSSL_PROVIDER, LibraryError> {
        let library = Self::empty(false)?;
        let provider = library.load(name)?;
        // The legacy provider takes random numbers from its context (a CBC record of SSL 3.0 needs some), and has none.
        library.load(c"default")?;
        Ok(provider)
    }

    /// The context itself, for FFI. Valid for the life of the program.
    #[must_use]
    pub fn as_ptr(&self) -> *mut ffi::OSSL_LIB_CTX {
        self.context
    }

    /// True where use of algorithms is written to the recorder.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.timed
    }
}

fn provider_error(name: &'static CStr) -> LibraryError {
    LibraryError::Provider { name: name.to_str().unwrap_or("?"), stack: ErrorStack::get() }
}

/// OpenSSL's version, as in `3.6.3`.
#[must_use]
pub fn version() -> &'static str {
    openssl::version::version().split_whitespace().nth(1).unwrap_or("unknown")
}
