//! Handshakes in memory through another libssl than the built-in one, for example that of an installed server.
//!
//! The library is loaded at run time, and only its public interface is used. A BIO pair connects both sides, and each
//! call of a side is timed. Nothing else runs between the calls: calls from an interpreter would evict the library's
//! code and data from the caches, and the library would appear slower than it is.

use crate::measure::Summary;
use std::ffi::{CStr, CString, NulError, c_char, c_int, c_long, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

const WANT_READ: c_int = 2;
const FILETYPE_PEM: c_int = 1;
const VERIFY_PEER: c_int = 1;
/// Both directions, because otherwise the library would send alerts when a connection is freed.
const SHUTDOWN: c_int = 3;
/// Commands of `SSL_CTX_ctrl` (ssl.h).
const SET_MIN_PROTO_VERSION: c_int = 123;
const SET_MAX_PROTO_VERSION: c_int = 124;
const SET_GROUPS_LIST: c_int = 92;
const SET_SESSION_CACHE_MODE: c_int = 44;
const TLS12: c_long = 0x0303;
const TLS13: c_long = 0x0304;

const BUFFER_BYTES: usize = 65_536;
/// Limit of rounds of calls of both sides; a handshake needs far fewer.
const MAX_ROUNDS: usize = 20;
const WARM_UP: usize = 5;
const KEYGENS: usize = 300;

#[derive(Debug, thiserror::Error)]
pub enum OtherLibsslError {
    #[error("{path}: {reason}; accepted: OpenSSL's libssl, 1.1.1 or later")]
    Load { path: PathBuf, reason: String },
    #[error("{0} failed in another libssl")]
    Call(&'static str),
    #[error("the handshake failed in another libssl")]
    Handshake,
    #[error("the handshake did not end in another libssl")]
    Unfinished,
    #[error("the session was not resumed in another libssl")]
    NotResumed,
    #[error(transparent)]
    Text(#[from] NulError),
}

type Result<T> = std::result::Result<T, OtherLibsslError>;

/// A handshake: the negotiated parameters, the files, and whether a session is resumed.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Plan {
    /// TLS 1.3; otherwise TLS 1.2.
    pub tls13: bool,
    /// OpenSSL's names of groups and cipher.
    pub groups: String,
    pub cipher: String,
    pub certificate: String,
    pub key: String,
    pub root: String,
    pub tickets: usize,
    pub resumed: bool,
}

/// Declares the functions with their types once, and loads them by name.
macro_rules! functions {
    ($($name:ident: $kind:ty,)*) => {
        #[allow(non_snake_case)]
        #[derive(Clone, Copy, Debug)]
        struct Functions { $($name: $kind,)* }

        impl Functions {
            fn load(library: *mut c_void) -> std::result::Result<Self, &'static str> {
                Ok(Self { $($name: {
                    let found = symbol(library, concat!(stringify!($name), "\0"));
                    if found.is_null() {
                        return Err(concat!("no function ", stringify!($name)));
                    }
                    // SAFETY: the function has this type in all versions of OpenSSL since 1.1.1.
                    unsafe { std::mem::transmute::<*mut c_void, $kind>(found) }
                },)* })
            }
        }
    };
}

functions! {
    TLS_client_method: unsafe extern "C" fn() -> *const c_void,
    TLS_server_method: unsafe extern "C" fn() -> *const c_void,
    SSL_CTX_new: unsafe extern "C" fn(*const c_void) -> *mut c_void,
    SSL_CTX_free: unsafe extern "C" fn(*mut c_void),
    SSL_CTX_ctrl: unsafe extern "C" fn(*mut c_void, c_int, c_long, *mut c_void) -> c_long,
    SSL_CTX_set_ciphersuites: unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int,
    SSL_CTX_set_cipher_list: unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int,
    SSL_CTX_use_certificate_chain_file: unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int,
    SSL_CTX_use_PrivateKey_file: unsafe extern "C" fn(*mut c_void, *const c_char, c_int) -> c_int,
    SSL_CTX_set_num_tickets: unsafe extern "C" fn(*mut c_void, usize) -> c_int,
    SSL_CTX_load_verify_locations: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> c_int,
    SSL_CTX_set_verify: unsafe extern "C" fn(*mut c_void, c_int, *const c_void),
    SSL_new: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    SSL_free: unsafe extern "C" fn(*mut c_void),
    SSL_set_bio: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void),
    SSL_set_connect_state: unsafe extern "C" fn(*mut c_void),
    SSL_set_accept_state: unsafe extern "C" fn(*mut c_void),
    SSL_do_handshake: unsafe extern "C" fn(*mut c_void) -> c_int,
    SSL_read: unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int,
    SSL_get_error: unsafe extern "C" fn(*const c_void, c_int) -> c_int,
    SSL_set_session: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
    SSL_get1_session: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    SSL_session_reused: unsafe extern "C" fn(*const c_void) -> c_int,
    SSL_SESSION_free: unsafe extern "C" fn(*mut c_void),
    SSL_set_shutdown: unsafe extern "C" fn(*mut c_void, c_int),
    BIO_new_bio_pair: unsafe extern "C" fn(*mut *mut c_void, usize, *mut *mut c_void, usize) -> c_int,
}

/// `EVP_PKEY_Q_keygen`: only for the kind "EC" there is a last argument, the curve's name.
type QuickKeygen = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char, ...) -> *mut c_void;
type FreeKey = unsafe extern "C" fn(*mut c_void);

/// A function of a library or of one of its dependencies; null if there is none. `name` ends with a zero byte.
fn symbol(library: *mut c_void, name: &'static str) -> *mut c_void {
    // SAFETY: the handle is that of a loaded library, and the name ends with a zero byte.
    unsafe { libc::dlsym(library, name.as_ptr().cast()) }
}

/// A loaded libssl, which stays loaded for the life of the program.
#[derive(Clone, Copy, Debug)]
pub struct OtherLibssl {
    functions: Functions,
    keys: Option<(QuickKeygen, FreeKey)>,
}

impl OtherLibssl {
    /// Loads a library.
    ///
    /// # Errors
    /// [`OtherLibsslError::Load`] if it is not a libssl.
    pub fn open(path: &Path) -> Result<Self> {
        let refused = |reason: String| OtherLibsslError::Load { path: path.to_path_buf(), reason };
        let name = CString::new(path.as_os_str().as_encoded_bytes())?;
        // SAFETY: the name ends with a zero byte. RTLD_LOCAL: its symbols do not replace the built-in library's.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            // SAFETY: after a failure the message is a string, which is copied before the next call.
            let reason = unsafe { CStr::from_ptr(libc::dlerror()) };
            return Err(refused(reason.to_string_lossy().into_owned()));
        }
        let functions = Functions::load(library).map_err(|reason| refused(reason.to_owned()))?;
        let (make, free) = (symbol(library, "EVP_PKEY_Q_keygen\0"), symbol(library, "EVP_PKEY_free\0"));
        let keys = (!make.is_null() && !free.is_null()).then(|| {
            // SAFETY: both have these types in all versions of OpenSSL that have the first.
            unsafe {
                (
                    std::mem::transmute::<*mut c_void, QuickKeygen>(make),
                    std::mem::transmute::<*mut c_void, FreeKey>(free),
                )
            }
        });
        Ok(Self { functions, keys })
    }

    /// The median time in microseconds for generating a key: `kind` is "EC" with a curve, or X25519 or X448. `None` if
    /// the library is older than OpenSSL 3.0 or does not know the curve.
    ///
    /// # Errors
    /// [`OtherLibsslError::Text`] for a name with a zero byte.
    pub fn keygen(&self, kind: &str, curve: Option<&str>) -> Result<Option<f64>> {
        let Some((make, free)) = self.keys else { return Ok(None) };
        let kind = CString::new(kind)?;
        let curve = curve.map(CString::new).transpose()?;
        let curve = curve.as_ref().map_or(null(), |name| name.as_ptr());
        let mut times_us = Vec::with_capacity(KEYGENS);
        for _ in 0..KEYGENS {
            let begun = Instant::now();
            // SAFETY: the names end with a zero byte; kinds other than "EC" do not read the last argument.
            let key = unsafe { make(null_mut(), null(), kind.as_ptr(), curve) };
            times_us.push(microseconds(begun.elapsed()));
            if key.is_null() {
                return Ok(None);
            }
            // SAFETY: this function owns the key.
            unsafe { free(key) };
        }
        Ok(Some(Summary::of(&times_us).median))
    }

    /// Performs `count` handshakes; returns the median times of the client's and the server's calls in microseconds.
    ///
    /// # Errors
    /// If a handshake fails, or does not resume although the plan requires it.
    pub fn handshakes(&self, plan: &Plan, count: usize) -> Result<(f64, f64)> {
        let client = Context::new(&self.functions, plan, false)?;
        let server = Context::new(&self.functions, plan, true)?;
        let session = plan.resumed.then(|| Pair::new(&client, &server)?.first_session()).transpose()?;
        let (mut clients_us, mut servers_us) = (Vec::new(), Vec::new());
        for number in 0..count + WARM_UP {
            let pair = Pair::new(&client, &server)?;
            let (client_us, server_us) = pair.shake(session.as_ref())?;
            if number >= WARM_UP {
                clients_us.push(client_us);
                servers_us.push(server_us);
            }
        }
        Ok((Summary::of(&clients_us).median, Summary::of(&servers_us).median))
    }
}

struct Context<'a> {
    functions: &'a Functions,
    context: *mut c_void,
}

impl<'a> Context<'a> {
    fn new(functions: &'a Functions, plan: &Plan, is_server: bool) -> Result<Self> {
        let method = if is_server { functions.TLS_server_method } else { functions.TLS_client_method };
        // SAFETY: the method is a constant of the library.
        let context = unsafe { (functions.SSL_CTX_new)(method()) };
        if context.is_null() {
            return Err(OtherLibsslError::Call("SSL_CTX_new"));
        }
        let made = Self { functions, context };
        let version = if plan.tls13 { TLS13 } else { TLS12 };
        made.control(SET_MIN_PROTO_VERSION, version, None)?;
        made.control(SET_MAX_PROTO_VERSION, version, None)?;
        made.control(SET_GROUPS_LIST, 0, Some(&CString::new(plan.groups.as_str())?))?;
        let cipher = CString::new(plan.cipher.as_str())?;
        let set =
            if plan.tls13 { functions.SSL_CTX_set_ciphersuites } else { functions.SSL_CTX_set_cipher_list };
        // SAFETY: here and below, the context is valid, and strings end with a zero byte and are copied.
        let done = unsafe { set(context, cipher.as_ptr()) };
        succeeded(done, "SSL_CTX_set_cipher_list")?;
        if is_server {
            let (chain, key) = (CString::new(plan.certificate.as_str())?, CString::new(plan.key.as_str())?);
            // SAFETY: as above.
            let done = unsafe { (functions.SSL_CTX_use_certificate_chain_file)(context, chain.as_ptr()) };
            succeeded(done, "SSL_CTX_use_certificate_chain_file")?;
            // SAFETY: as above.
            let done =
                unsafe { (functions.SSL_CTX_use_PrivateKey_file)(context, key.as_ptr(), FILETYPE_PEM) };
            succeeded(done, "SSL_CTX_use_PrivateKey_file")?;
            // SAFETY: as above.
            let done = unsafe { (functions.SSL_CTX_set_num_tickets)(context, plan.tickets) };
            succeeded(done, "SSL_CTX_set_num_tickets")?;
        } else {
            let root = CString::new(plan.root.as_str())?;
            // SAFETY: as above.
            let done = unsafe { (functions.SSL_CTX_load_verify_locations)(context, root.as_ptr(), null()) };
            succeeded(done, "SSL_CTX_load_verify_locations")?;
            // SAFETY: as above. The first call returns the previous mode; without a callback the library decides.
            unsafe {
                (functions.SSL_CTX_ctrl)(context, SET_SESSION_CACHE_MODE, 0, null_mut());
                (functions.SSL_CTX_set_verify)(context, VERIFY_PEER, null());
            }
        }
        Ok(made)
    }

    fn control(&self, command: c_int, number: c_long, text: Option<&CStr>) -> Result<()> {
        let text = text.map_or(null_mut(), |text| text.as_ptr().cast_mut().cast());
        // SAFETY: these commands read a number, or a string that ends with a zero byte.
        let done = unsafe { (self.functions.SSL_CTX_ctrl)(self.context, command, number, text) };
        succeeded(c_int::from(done != 0), "SSL_CTX_ctrl")
    }

    fn connection(&self) -> Result<*mut c_void> {
        // SAFETY: the context is valid.
        let connection = unsafe { (self.functions.SSL_new)(self.context) };
        if connection.is_null() { Err(OtherLibsslError::Call("SSL_new")) } else { Ok(connection) }
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: this object owns the context.
        unsafe { (self.functions.SSL_CTX_free)(self.context) };
    }
}

struct Session<'a> {
    functions: &'a Functions,
    session: *mut c_void,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: this object owns the session.
        unsafe { (self.functions.SSL_SESSION_free)(self.session) };
    }
}

struct Pair<'a> {
    functions: &'a Functions,
    client: *mut c_void,
    server: *mut c_void,
}

impl<'a> Pair<'a> {
    fn new(client: &Context<'a>, server: &Context<'a>) -> Result<Self> {
        let functions = client.functions;
        let client = client.connection()?;
        // If the rest of this function fails, the pair is freed; freeing a null connection has no effect.
        let mut pair = Self { functions, client, server: null_mut() };
        pair.server = server.connection()?;
        let (mut one, mut other) = (null_mut(), null_mut());
        // SAFETY: the function writes both pointers.
        let done = unsafe { (functions.BIO_new_bio_pair)(&mut one, BUFFER_BYTES, &mut other, BUFFER_BYTES) };
        succeeded(done, "BIO_new_bio_pair")?;
        // SAFETY: each connection takes its own BIO, for reading and writing.
        unsafe {
            (functions.SSL_set_bio)(pair.client, one, one);
            (functions.SSL_set_bio)(pair.server, other, other);
            (functions.SSL_set_connect_state)(pair.client);
            (functions.SSL_set_accept_state)(pair.server);
        }
        Ok(pair)
    }

    /// Performs the handshake, and returns the time of the client's and of the server's calls in microseconds.
    fn shake(&self, session: Option<&Session<'_>>) -> Result<(f64, f64)> {
        if let Some(one) = session {
            // SAFETY: both are valid.
            let set = unsafe { (self.functions.SSL_set_session)(self.client, one.session) };
            succeeded(set, "SSL_set_session")?;
        }
        let mut took = [Duration::ZERO; 2];
        let mut done = [false; 2];
        for _ in 0..MAX_ROUNDS {
            for (at, connection) in [self.client, self.server].into_iter().enumerate() {
                if done[at] {
                    continue;
                }
                let begun = Instant::now();
                // SAFETY: the connection is valid.
                let result = unsafe { (self.functions.SSL_do_handshake)(connection) };
                took[at] += begun.elapsed();
                done[at] = result == 1;
                // SAFETY: as above.
                let is_waiting =
                    || unsafe { (self.functions.SSL_get_error)(connection, result) } == WANT_READ;
                if !done[at] && !is_waiting() {
                    return Err(OtherLibsslError::Handshake);
                }
            }
            if done == [true; 2] {
                // SAFETY: as above.
                let reused = unsafe { (self.functions.SSL_session_reused)(self.server) } != 0;
                if session.is_some() && !reused {
                    return Err(OtherLibsslError::NotResumed);
                }
                return Ok((microseconds(took[0]), microseconds(took[1])));
            }
        }
        Err(OtherLibsslError::Unfinished)
    }

    /// Performs a full handshake, and returns its session.
    fn first_session(self) -> Result<Session<'a>> {
        self.shake(None)?;
        let mut byte = 0_u8;
        // SAFETY: the connection is valid and the buffer has one byte. No data arrives, but a client of TLS 1.3
        // processes the tickets that follow the handshake in a read.
        unsafe { (self.functions.SSL_read)(self.client, (&raw mut byte).cast(), 1) };
        // SAFETY: the connection is valid, and the function returns a new reference to the session.
        let session = unsafe { (self.functions.SSL_get1_session)(self.client) };
        if session.is_null() {
            return Err(OtherLibsslError::Call("SSL_get1_session"));
        }
        Ok(Session { functions: self.functions, session })
    }
}

impl Drop for Pair<'_> {
    fn drop(&mut self) {
        for connection in [self.client, self.server] {
            if !connection.is_null() {
                // SAFETY: this object owns the connections, which own their BIOs.
                unsafe {
                    (self.functions.SSL_set_shutdown)(connection, SHUTDOWN);
                    (self.functions.SSL_free)(connection);
                }
            }
        }
    }
}

fn succeeded(result: c_int, call: &'static str) -> Result<()> {
    if result == 1 { Ok(()) } else { Err(OtherLibsslError::Call(call)) }
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
