//! Random numbers from a seed, for the duration of a call on one thread.
//!
//! A handshake that must be repeatable byte for byte draws its random numbers from [`Seeded`] sources, one for each
//! endpoint. A source is an argument, not a global mode: only code within [`Seeded::during`] on that thread draws from
//! it. All other code, including concurrent threads, uses OpenSSL's generators. A server on a network must not use it.
//!
//! The random numbers of libcrypto and libssl follow the seed, in every library context: randoms of hellos, session
//! IDs, ticket keys (if the TLS context is created within the call), ticket age offsets, nonces and initialisation
//! vectors, generated keys, nonces of DSA, ECDSA and ML-DSA, salts of PSS, padding of RSA, blinding. The times that
//! libssl writes into sessions and tickets, and the age of a ticket in a resumption, in seconds, do not follow the
//! seed.
//!
//! A private RSA key keeps its blinding between calls and sometimes draws a new one, so the amount of random numbers
//! that it draws depends on its history. In the timed library such an operation has a separate stream (see [`apart`]),
//! so the random numbers after it are the same in any case. In the bare library, a handshake with RSA can only be
//! repeated if the key has the same history.

use crate::ffi;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use libc::{c_int, c_uchar};
use openssl::error::ErrorStack;
use std::cell::RefCell;
use std::sync::{Mutex, OnceLock, PoisonError};

thread_local! {
    /// This thread's source of random numbers; `None` for OpenSSL's.
    static CURRENT: RefCell<Option<Box<Stream>>> = const { RefCell::new(None) };
}

/// ChaCha20's key stream: the same on every platform.
struct Stream {
    generator: ChaCha20Rng,
    /// Number of streams that were derived from this one; `None` for a derived stream.
    set_apart: Option<u64>,
}

/// A source of random numbers that follows a seed. Each call continues where the last one ended.
pub struct Seeded {
    /// `None` only while [`Seeded::during`] has moved it to the thread.
    stream: Option<Box<Stream>>,
    _method: Method,
}

impl Seeded {
    /// A source. Sources with the same `seed` and different numbers are independent: give each endpoint a separate one,
    /// for example with twice the number of the connection, plus one for the server.
    pub fn new(seed: u64, number: u64) -> Result<Self, ErrorStack> {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&number.to_le_bytes());
        let stream = Stream { generator: ChaCha20Rng::from_seed(key), set_apart: Some(0) };
        Ok(Self { stream: Some(Box::new(stream)), _method: Method::install()? })
    }

    /// Runs `work` with this as the thread's source. Then restores the previous source.
    pub fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let _lent = Lent::new(&mut self.stream);
        work()
    }
}

/// While it exists, the stream is the thread's source, and the previous source is stored in its place.
struct Lent<'a>(&'a mut Option<Box<Stream>>);

impl<'a> Lent<'a> {
    fn new(stream: &'a mut Option<Box<Stream>>) -> Self {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, stream));
        Self(stream)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, self.0));
    }
}

/// True inside [`Seeded::during`].
#[inline]
pub fn is_seeded() -> bool {
    // A thread that is ending has no source.
    CURRENT.try_with(|current| current.borrow().is_some()).unwrap_or(false)
}

/// Fills `bytes` from the thread's source, or from OpenSSL's generator for secrets without one: for stacks that draw
/// random numbers themselves.
pub fn fill(bytes: &mut [u8]) -> Result<(), ErrorStack> {
    if draw(bytes) { Ok(()) } else { openssl::rand::rand_priv_bytes(bytes) }
}

/// Runs `work`, which draws a varying amount of random numbers, on a separate stream, so that the random numbers after
/// it are the same in any case. Without a source, only runs `work`.
#[inline]
pub fn apart<T>(work: impl FnOnce() -> T) -> T {
    let Some(child) =
        CURRENT.with_borrow_mut(|current| current.as_mut().and_then(|stream| stream.set_apart()))
    else {
        return work();
    };
    let mut child = Some(child);
    let _lent = Lent::new(&mut child);
    work()
}

impl Stream {
    fn set_apart(&mut self) -> Option<Box<Self>> {
        let number = self.set_apart.as_mut()?;
        // Stream 0 is the source itself.
        *number += 1;
        let mut generator = ChaCha20Rng::from_seed(self.generator.get_seed());
        generator.set_stream(*number);
        Some(Box::new(Self { generator, set_apart: None }))
    }
}

/// False without a source.
fn draw(bytes: &mut [u8]) -> bool {
    CURRENT.with_borrow_mut(|current| match current {
        Some(stream) => {
            stream.generator.fill_bytes(bytes);
            true
        }
        None => false,
    })
}

/// While at least one exists, OpenSSL takes random numbers from this module.
struct Method;

/// Number of existing values of [`Method`].
static INSTALLED: Mutex<usize> = Mutex::new(0);

impl Method {
    fn install() -> Result<Self, ErrorStack> {
        // This may be the first use of OpenSSL.
        crate::memory::install();
        openssl::init();
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if *installed == 0 {
            // SAFETY: the table is static, and its functions keep the contract of a RAND_METHOD.
            if unsafe { ffi::RAND_set_rand_method(ours()) } != 1 {
                return Err(ErrorStack::get());
            }
        }
        *installed += 1;
        Ok(Self)
    }
}

impl Drop for Method {
    fn drop(&mut self) {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        *installed -= 1;
        if *installed == 0 {
            // SAFETY: OpenSSL's own table is static.
            unsafe { ffi::RAND_set_rand_method(ffi::RAND_OpenSSL()) };
        }
    }
}

/// OpenSSL's method, with another function for random bytes.
fn ours() -> &'static ffi::RAND_METHOD {
    static OURS: OnceLock<ffi::RAND_METHOD> = OnceLock::new();
    OURS.get_or_init(|| {
        // SAFETY: OpenSSL's table is static.
        let theirs = unsafe { *ffi::RAND_OpenSSL() };
        ffi::RAND_METHOD { bytes: Some(bytes), pseudorand: Some(bytes), ..theirs }
    })
}

/// OpenSSL passes neither the context nor the purpose. A thread without a source gets bytes of the default context's
/// generator for secrets, which suit any purpose.
unsafe extern "C" fn bytes(out: *mut c_uchar, length: c_int) -> c_int {
    let Ok(size) = usize::try_from(length) else { return 0 };
    if size == 0 {
        return 1;
    }
    if is_seeded() {
        // SAFETY: the caller passes a buffer of `length` bytes, which may be uninitialised; they are written before
        // they are read.
        let place = unsafe {
            std::ptr::write_bytes(out, 0, size);
            std::slice::from_raw_parts_mut(out, size)
        };
        return c_int::from(draw(place));
    }
    // SAFETY: the default context's generator lives as long as the thread; the buffer is the caller's.
    unsafe {
        let generator = ffi::RAND_get0_private(std::ptr::null_mut());
        if generator.is_null() {
            return 0;
        }
        ffi::EVP_RAND_generate(generator, out, size, 0, 0, std::ptr::null(), 0)
    }
}
