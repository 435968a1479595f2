//! The names of algorithms and keys: from OpenSSL's names to a primitive's operation, algorithm and parameters.

use crate::ffi;
use libc::{c_char, c_int, c_uint, c_void};
use shakedown_trace::operation::intern;
use shakedown_trace::suite::{Curve, KeyFamily};
use shakedown_trace::{Operation, Primitive};
use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The kind of a key, as far as the algorithm's name determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Rsa,
    Dsa,
    Dh,
    Ec,
    /// The algorithm's name determines the parameters.
    Fixed(&'static str),
}

/// The parameters of an algorithm whose name determines them.
pub fn fixed(name: &str) -> Option<&'static str> {
    // OpenSSL's names differ only in dashes and case.
    const FIXED: [&str; 12] = [
        "x25519",
        "x448",
        "ed25519",
        "ed448",
        "mldsa44",
        "mldsa65",
        "mldsa87",
        "mlkem512",
        "mlkem768",
        "mlkem1024",
        "x25519mlkem768",
        "secp256r1mlkem768",
    ];
    let plain = plain(name);
    FIXED.into_iter().find(|known| *known == plain)
}

/// Lower case, without dashes.
fn plain(name: &str) -> String {
    name.chars().filter(|character| *character != '-').flat_map(char::to_lowercase).collect()
}

type GetParams = unsafe extern "C" fn(*mut c_void, *mut ffi::OSSL_PARAM) -> c_int;

/// The originals' functions that return a key's parameters: RSA, DSA, DH, EC.
static GET_PARAMS: [AtomicPtr<c_void>; 4] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 4];

fn place(family: Family) -> Option<usize> {
    match family {
        Family::Rsa => Some(0),
        Family::Dsa => Some(1),
        Family::Dh => Some(2),
        Family::Ec => Some(3),
        Family::Fixed(_) => None,
    }
}

/// Stores the function that returns the parameters of a family's keys. DH and DHX share one, as do RSA and RSA-PSS.
pub fn learn(family: Family, get_params: *const c_void) {
    if let Some(place) = place(family) {
        GET_PARAMS[place].store(get_params.cast_mut(), Ordering::Relaxed);
    }
}

/// The primitive of an operation with a key, or `None` if it cannot be determined.
///
/// This function is called during a handshake, and a query of an EC key's parameters takes a microsecond. Therefore the
/// first key of each kind is queried, and its primitive is stored under the number of the kind.
///
/// # Safety
/// `key` must be null or a key of the original provider, of that family.
pub unsafe fn primitive(
    names: KeyFamily,
    family: Family,
    operation: Operation,
    key: *mut c_void,
) -> Option<&'static Primitive> {
    /// Many more places than there are kinds of keys and operations.
    static KNOWN: [OnceLock<(u64, &'static Primitive)>; 256] = [const { OnceLock::new() }; 256];
    // SAFETY: the caller guarantees a valid key.
    let uncached = || unsafe { uncached(names, family, operation, key) };
    // SAFETY: as above.
    let Some(kind) = (unsafe { kind(family, key) }) else {
        return uncached();
    };
    let number = kind << 8 | operation as u64;
    // Knuth's multiplicative hashing: 2^64 divided by the golden ratio.
    let first = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize;
    for place in KNOWN[first..].iter().take(8) {
        match place.get() {
            Some((known, primitive)) if *known == number => return Some(primitive),
            Some(_) => {}
            None => {
                let primitive = uncached()?;
                // Another thread may have set it first.
                let _ = place.set((number, primitive));
                return Some(primitive);
            }
        }
    }
    uncached()
}

/// A number that identifies the kind of a key, from properties that are quick to read. `None` if these are not
/// sufficient: for a group without a number, or a key without parameters.
///
/// # Safety
/// As for [`primitive`].
unsafe fn kind(family: Family, key: *mut c_void) -> Option<u64> {
    // OpenSSL's number of a curve or group, or the bits of a modulus or prime; all are below the address of a name.
    let numbered =
        |kind: u64, number: c_int| u64::try_from(number).ok().filter(|n| *n > 0).map(|n| kind << 32 | n);
    if let Family::Fixed(name) = family {
        return Some(name.as_ptr() as u64);
    }
    if key.is_null() {
        return None;
    }
    // SAFETY: as the caller guarantees, a key of that family, which the default provider stores as libcrypto's own type
    // (`providers/implementations/keymgmt`): an RSA, DSA, DH or EC_KEY. A missing group or modulus is null, and is not
    // dereferenced.
    unsafe {
        match family {
            Family::Fixed(_) => None,
            Family::Rsa if ffi::RSA_get0_n(key).is_null() => None,
            Family::Rsa => {
                let exponent = ffi::RSA_get0_e(key);
                let is_3 = !exponent.is_null() && ffi::BN_is_word(exponent, 3) == 1;
                numbered(if is_3 { 1 } else { 2 }, ffi::RSA_bits(key))
            }
            Family::Dsa => numbered(3, ffi::DSA_bits(key)),
            Family::Dh => numbered(4, ffi::DH_get_nid(key)).or_else(|| numbered(5, ffi::DH_bits(key))),
            Family::Ec => {
                let group = openssl_sys::EC_KEY_get0_group(key.cast());
                if group.is_null() { None } else { numbered(6, openssl_sys::EC_GROUP_get_curve_name(group)) }
            }
        }
    }
}

/// The primitive from the parameters that the key management returns.
///
/// # Safety
/// As for [`primitive`].
#[cold]
#[inline(never)]
unsafe fn uncached(
    names: KeyFamily,
    family: Family,
    operation: Operation,
    key: *mut c_void,
) -> Option<&'static Primitive> {
    // SAFETY: as the caller guarantees.
    let parameters = unsafe { parameters(family, key) }?;
    Some(names.primitive(operation, parameters).interned())
}

/// The parameters of a primitive: the kind of the key.
///
/// # Safety
/// As for [`primitive`].
unsafe fn parameters(family: Family, key: *mut c_void) -> Option<&'static str> {
    if let Family::Fixed(name) = family {
        return Some(name);
    }
    let place = place(family)?;
    let function = GET_PARAMS[place].load(Ordering::Relaxed);
    if function.is_null() || key.is_null() {
        return None;
    }
    // SAFETY: only the get_params functions of key managements are stored there, and those of one family accept keys
    // of each other (see `learn`).
    let get_params: GetParams = unsafe { std::mem::transmute(function) };
    let mut bits: c_int = 0;
    let mut exponent: u64 = 0;
    let mut group = [0_u8; 64];
    let mut requested = [
        integer(c"bits", (&raw mut bits).cast(), size_of::<c_int>(), ffi::OSSL_PARAM_INTEGER),
        match family {
            Family::Rsa => integer(c"e", (&raw mut exponent).cast(), 8, ffi::OSSL_PARAM_UNSIGNED_INTEGER),
            Family::Dsa => end(),
            _ => integer(c"group", group.as_mut_ptr().cast(), group.len(), ffi::OSSL_PARAM_UTF8_STRING),
        },
        end(),
    ];
    // SAFETY: the caller guarantees a valid key; each parameter points to a local variable of the given size, and the
    // list ends with a null key.
    unsafe { get_params(key, requested.as_mut_ptr()) };
    let group =
        CStr::from_bytes_until_nul(&group).ok().and_then(|name| name.to_str().ok()).unwrap_or_default();
    match family {
        Family::Rsa => Some(intern(&format!("rsa{bits}{}", if exponent == 3 { "e3" } else { "" }))),
        Family::Dsa => Some(intern(&format!("dsa{bits}"))),
        Family::Dh if group.is_empty() => Some(intern(&format!("dh{bits}"))),
        Family::Dh => Some(intern(group)),
        Family::Ec => Some(Curve::from_openssl(group).map_or_else(|| intern(group), Curve::name)),
        Family::Fixed(name) => Some(name),
    }
}

fn integer(key: &'static CStr, data: *mut c_void, size: usize, kind: c_uint) -> ffi::OSSL_PARAM {
    ffi::OSSL_PARAM { key: key.as_ptr(), data_type: kind as _, data, data_size: size, return_size: 0 }
}

fn end() -> ffi::OSSL_PARAM {
    ffi::OSSL_PARAM {
        key: std::ptr::null(),
        data_type: 0,
        data: std::ptr::null_mut(),
        data_size: 0,
        return_size: 0,
    }
}

/// Hashes of handshakes.
const HASHES: [&str; 7] = ["sha256", "sha384", "sha512", "sha224", "sha1", "md5-sha1", "md5"];

/// The constructions over each hash.
static OVER_HASHES: [[Primitive; 7]; 3] = [
    over_hashes(
        Operation::Mac,
        [
            "hmac-sha256",
            "hmac-sha384",
            "hmac-sha512",
            "hmac-sha224",
            "hmac-sha1",
            "hmac-md5-sha1",
            "hmac-md5",
        ],
    ),
    over_hashes(
        Operation::Prf,
        [
            "hkdf-sha256",
            "hkdf-sha384",
            "hkdf-sha512",
            "hkdf-sha224",
            "hkdf-sha1",
            "hkdf-md5-sha1",
            "hkdf-md5",
        ],
    ),
    over_hashes(
        Operation::Prf,
        [
            "tls1-prf-sha256",
            "tls1-prf-sha384",
            "tls1-prf-sha512",
            "tls1-prf-sha224",
            "tls1-prf-sha1",
            "tls1-prf-md5-sha1",
            "tls1-prf-md5",
        ],
    ),
];

const fn over_hashes(operation: Operation, names: [&'static str; 7]) -> [Primitive; 7] {
    let mut primitives = [Primitive::new(operation, "", ""); 7];
    let mut place = 0;
    while place < names.len() {
        primitives[place].algorithm = names[place];
        place += 1;
    }
    primitives
}

/// The index of a hash in [`HASHES`], from any name that OpenSSL and its users have for it. A handshake looks up about
/// fifty names, nearly all of which are four names of eight characters: these are compared as numbers, and others are
/// handled in a separate function.
#[inline]
fn hash(name: &[u8]) -> Option<usize> {
    const SHA256: u64 = u64::from_ne_bytes(*b"SHA2-256");
    const SHA384: u64 = u64::from_ne_bytes(*b"SHA2-384");
    const SHA512: u64 = u64::from_ne_bytes(*b"SHA2-512");
    const MD5_SHA1: u64 = u64::from_ne_bytes(*b"MD5-SHA1");
    match <[u8; 8]>::try_from(name).map(u64::from_ne_bytes) {
        Ok(SHA256) => Some(0),
        Ok(SHA384) => Some(1),
        Ok(SHA512) => Some(2),
        Ok(MD5_SHA1) => Some(5),
        _ => hash_of_any_name(name),
    }
}

#[cold]
#[inline(never)]
fn hash_of_any_name(name: &[u8]) -> Option<usize> {
    let name = without_null(name).to_ascii_lowercase();
    let name = std::str::from_utf8(&name).ok()?;
    let name = match name.strip_prefix("sha2-") {
        Some(bits) => &format!("sha{bits}"),
        None if name == "sha-1" => "sha1",
        None => name,
    };
    HASHES.iter().position(|known| *known == name)
}

/// The bytes before the first null.
fn without_null(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

pub fn digest(name: &str) -> &'static str {
    hash(name.as_bytes()).map_or_else(|| intern(&name.to_ascii_lowercase()), |place| HASHES[place])
}

/// A construction over a hash, such as `hmac-sha256`.
#[inline]
pub fn over_digest(construction: Construction, digest: &[u8]) -> &'static Primitive {
    match hash(digest) {
        Some(place) => &OVER_HASHES[construction as usize][place],
        None => over_other_digest(construction, digest),
    }
}

#[cold]
#[inline(never)]
fn over_other_digest(construction: Construction, digest: &[u8]) -> &'static Primitive {
    let digest = String::from_utf8_lossy(without_null(digest)).to_ascii_lowercase();
    let name = intern(&format!("{}-{digest}", construction.as_str()));
    Primitive { algorithm: name, ..OVER_HASHES[construction as usize][0] }.interned()
}

/// A construction over a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Construction {
    /// RFC 2104.
    Hmac,
    /// RFC 5869, and TLS 1.3's labels for it.
    Hkdf,
    /// RFC 5246, section 5, and its predecessors.
    TlsPrf,
}

impl Construction {
    fn as_str(self) -> &'static str {
        match self {
            Self::Hmac => "hmac",
            Self::Hkdf => "hkdf",
            Self::TlsPrf => "tls1-prf",
        }
    }
}

/// The value of the parameter `digest` in a list; `None` if it is missing. The value may contain a null, after which
/// nothing belongs to it.
///
/// # Safety
/// `params` must be null or a list that ends, like OpenSSL's, with a null key. It and the data to which it points must
/// not change for `'a`.
pub unsafe fn digest_param<'a>(params: *const ffi::OSSL_PARAM) -> Option<&'a [u8]> {
    let mut param = params;
    // SAFETY: null, or part of a list, as the caller guarantees; `param` never moves past the entry with the null key.
    while let Some(entry) = unsafe { param.as_ref() }
        && !entry.key.is_null()
    {
        // SAFETY: a key that is not null is a C string.
        if unsafe { is_digest(entry.key) } {
            if entry.data_type != ffi::OSSL_PARAM_UTF8_STRING || entry.data.is_null() {
                return None;
            }
            // SAFETY: the data of a text is readable for its size, which may or may not include a final null.
            return Some(unsafe { std::slice::from_raw_parts(entry.data.cast::<u8>(), entry.data_size) });
        }
        // SAFETY: this was not the last entry, so another follows.
        param = unsafe { param.add(1) };
    }
    None
}

/// True if a key is `digest`. Most keys differ in their first bytes, so a call to compare them would cost more.
///
/// # Safety
/// `text` must be a C string.
#[inline]
unsafe fn is_digest(text: *const c_char) -> bool {
    let wanted = c"digest".to_bytes_with_nul();
    // SAFETY: `text` is a C string, and `all` stops at the first difference, at the latest where it ends.
    wanted.iter().enumerate().all(|(place, byte)| unsafe { *text.add(place).cast::<u8>() } == *byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructions_on_a_hash_are_named_after_it() {
        for construction in [Construction::Hmac, Construction::Hkdf, Construction::TlsPrf] {
            for hash in HASHES {
                let name = over_digest(construction, hash.as_bytes()).algorithm;
                assert_eq!(name, format!("{}-{hash}", construction.as_str()));
            }
        }
    }

    #[test]
    fn names_without_parameters_are_recognised() {
        assert_eq!(fixed("ML-DSA-65"), Some("mldsa65"));
        assert_eq!(fixed("X25519MLKEM768"), Some("x25519mlkem768"));
        assert_eq!(fixed("SecP256r1MLKEM768"), Some("secp256r1mlkem768"));
        assert_eq!(fixed("RSA"), None);
        assert_eq!(digest("SHA2-256"), "sha256");
        assert_eq!(digest("SHA3-256"), "sha3-256");
        let prf = |name| Primitive::new(Operation::Prf, name, "");
        assert_eq!(*over_digest(Construction::Hkdf, b"sha384"), prf("hkdf-sha384"));
        assert_eq!(*over_digest(Construction::TlsPrf, b"MD5-SHA1"), prf("tls1-prf-md5-sha1"));
        // Bytes after a null are not part of a name.
        assert_eq!(*over_digest(Construction::Hkdf, b"SHA2-256\0"), prf("hkdf-sha256"));
        assert_eq!(*over_digest(Construction::Hkdf, b"SHA2-384\0SHA1"), prf("hkdf-sha384"));
        assert_eq!(*over_digest(Construction::Hkdf, b"unnamed\0"), prf("hkdf-unnamed"));
        let mac = Primitive::new(Operation::Mac, "hmac-ripemd-160", "");
        assert_eq!(*over_digest(Construction::Hmac, b"RIPEMD-160"), mac);
    }
}
