//! Random numbers that follow a seed, for the length of a call on one thread.
//!
//! A handshake that is to be repeated byte for byte takes its random numbers from a [`Seeded`] source, one of each
//! endpoint. It is an argument, not a mode: nothing draws from it but what runs inside [`Seeded::during`] on that
//! thread. Everything else, other threads meanwhile included, keeps OpenSSL's generators. A server that faces a network
//! must have none.
//!
//! What libcrypto and libssl draw inside follows the seed, in every library context: randoms of hellos, session IDs,
//! ticket keys (where the TLS context is made inside), ticket ages, nonces and initialisation vectors, generated keys,
//! nonces of DSA, ECDSA and ML-DSA, salts of PSS, padding of RSA, blinding. What does not: the time that libssl writes
//! into sessions and tickets, and their age in a resumption, in seconds.
//!
//! A private RSA key keeps its blinding between calls and draws for a new one now and then, so what it draws depends on
//! its history. In the timed library such an operation has a stream of its own (see [`apart`]), and what comes after it
//! is the same whether it drew or not. In the bare library a handshake by RSA is repeated where the key's history is.

use crate::ffi;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use libc::{c_int, c_uchar};
use openssl::error::ErrorStack;
use std::cell::RefCell;
use std::sync::{Mutex, OnceLock, PoisonError};

thread_local! {
    /// Where this thread's random numbers come from, if not from OpenSSL.
    static CURRENT: RefCell<Option<Box<Stream>>> = const { RefCell::new(None) };
}

/// ChaCha20's key stream: the same on every platform.
struct Stream {
    generator: ChaCha20Rng,
    /// How many streams have been set apart from this one; `None` where this is such a one.
    set_apart: Option<u64>,
}

/// A source of random numbers that follows a seed. It goes on where the last call stopped.
pub struct Seeded {
    /// `None` only while [`Seeded::during`] has lent it to the thread.
    stream: Option<Box<Stream>>,
    _method: Method,
}

impl Seeded {
    /// A source. Sources of one `seed` with different numbers have nothing in common: give each endpoint its own, such as
    /// twice the number of the connection, and one more for the server.
    pub fn new(seed: u64, number: u64) -> Result<Self, ErrorStack> {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&number.to_le_bytes());
        let stream = Stream { generator: ChaCha20Rng::from_seed(key), set_apart: Some(0) };
        Ok(Self { stream: Some(Box::new(stream)), _method: Method::install()? })
    }

    /// Runs `work` with this as the thread's source. What was the source before is so again afterwards.
    pub fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let _lent = Lent::new(&mut self.stream);
        work()
    }
}

/// While it lives, a stream is the thread's, and what the thread had is in its place.
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
    // A thread that is ending has none.
    CURRENT.try_with(|current| current.borrow().is_some()).unwrap_or(false)
}

/// Fills `bytes` from the thread's source, or else from OpenSSL's generator for secrets: for stacks that draw random
/// numbers themselves.
pub fn fill(bytes: &mut [u8]) -> Result<(), ErrorStack> {
    if draw(bytes) { Ok(()) } else { openssl::rand::rand_priv_bytes(bytes) }
}

/// Runs `work`, which draws more or less by its history, on a stream of its own, so that what comes after it draws the
/// same in any case. Only runs it where no source is current.
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
        // The source itself is stream 0.
        *number += 1;
        let mut generator = ChaCha20Rng::from_seed(self.generator.get_seed());
        generator.set_stream(*number);
        Some(Box::new(Self { generator, set_apart: None }))
    }
}

/// False where no source is current.
fn draw(bytes: &mut [u8]) -> bool {
    CURRENT.with_borrow_mut(|current| match current {
        Some(stream) => {
            stream.generator.fill_bytes(bytes);
            true
        }
        None => false,
    })
}

/// OpenSSL asks us for random numbers as long as one of these lives.
struct Method;

/// How many live.
static INSTALLED: Mutex<usize> = Mutex::new(0);

impl Method {
    fn install() -> Result<Self, ErrorStack> {
        // OpenSSL's first use may be this.
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

/// OpenSSL's own method, but for where bytes come from.
fn ours() -> &'static ffi::RAND_METHOD {
    static OURS: OnceLock<ffi::RAND_METHOD> = OnceLock::new();
    OURS.get_or_init(|| {
        // SAFETY: OpenSSL's table is static.
        let theirs = unsafe { *ffi::RAND_OpenSSL() };
        ffi::RAND_METHOD { bytes: Some(bytes), pseudorand: Some(bytes), ..theirs }
    })
}

/// OpenSSL does not say which context asks, nor for what. A thread without a source is given bytes of the default
/// context's generator for secrets, which is good for anything.
unsafe extern "C" fn bytes(out: *mut c_uchar, length: c_int) -> c_int {
    let Ok(size) = usize::try_from(length) else { return 0 };
    if size == 0 {
        return 1;
    }
    if is_seeded() {
        // SAFETY: the caller asks for `length` bytes at a place of its own, which may be uninitialised; they are written
        // before they are read.
        let place = unsafe {
            std::ptr::write_bytes(out, 0, size);
            std::slice::from_raw_parts_mut(out, size)
        };
        return c_int::from(draw(place));
    }
    // SAFETY: the default context's generator lives as long as the thread; the place is the caller's.
    unsafe {
        let generator = ffi::RAND_get0_private(std::ptr::null_mut());
        if generator.is_null() {
            return 0;
        }
        ffi::EVP_RAND_generate(generator, out, size, 0, 0, std::ptr::null(), 0)
    }
}
