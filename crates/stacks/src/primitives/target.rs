//! The targets of timing: keys, groups and algorithms, and the primitives of each.

use shakedown_trace::operation::intern;
use shakedown_trace::suite::{Curve, Group, KeyType, Protocol};
use shakedown_trace::{Operation, Primitive};

/// One target. All its primitives are timed together, as in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A certificate key; for a key on a curve, also an ephemeral agreement.
    Key(KeyType),
    /// Diffie–Hellman modulo a prime, x25519 or x448.
    Agreement(Group),
    /// Key encapsulation, alone or in a hybrid.
    Encapsulation(Group),
    /// A hash, as in a transcript.
    Digest(&'static str),
    /// HMAC with that hash, as in a record.
    Hmac(&'static str),
    Cipher(&'static str),
    /// The PRF of RFC 5246 section 5 and its predecessors, with that hash.
    TlsPrf(&'static str),
    /// TLS 1.3's expansion of secrets, with that hash.
    Hkdf(&'static str),
    /// A primitive that only the WTLS engine has, with its own calls.
    Wtls(Wtls),
}

/// Primitives that only WTLS has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wtls {
    /// A curve that TLS does not have.
    Curve(Curve),
    /// The specification's Diffie-Hellman group of N bits, with 160-bit exponents.
    Agreement(u16),
    /// Records with a cipher that TLS does not have, by the name in the triples.
    Cipher(&'static str),
    Prf(&'static str),
}

const DIGESTS: [&str; 6] = ["md5", "sha1", "md5-sha1", "sha256", "sha384", "sha512"];
const HMACS: [&str; 4] = ["md5", "sha1", "sha256", "sha384"];
const CIPHERS: [&str; 16] = [
    "aes-128-gcm",
    "aes-256-gcm",
    "chacha20-poly1305",
    "aes-128-ccm",
    "aes-256-ccm",
    "aria-128-gcm",
    "aria-256-gcm",
    "aes-128-cbc",
    "aes-256-cbc",
    "camellia-128-cbc",
    "camellia-256-cbc",
    "des-ede3-cbc",
    "idea-cbc",
    "seed-cbc",
    "rc4",
    "rc4-hmac-md5",
];
const WTLS_GROUPS: [u16; 2] = [512, 768];
const WTLS_CIPHERS: [&str; 3] = ["rc5-32/16-cbc", "rc5-32/12-cbc", "des-cbc"];
const WTLS_PRFS: [&str; 2] = ["sha1", "md5"];
const TLS_PRFS: [&str; 3] = ["md5-sha1", "sha256", "sha384"];
const HKDFS: [&str; 2] = ["sha256", "sha384"];

impl Target {
    /// All targets of suites, public keys first.
    pub fn all() -> Vec<Self> {
        let sizes = KeyType::RSA_BITS.into_iter();
        let rsa = sizes.flat_map(|bits| [false, true].map(|exponent_3| KeyType::Rsa { bits, exponent_3 }));
        let keys = rsa
            .chain(KeyType::DSA_BITS.map(KeyType::Dsa))
            .chain(Curve::all().filter(|curve| curve.tls_group().is_some()).map(KeyType::Ec))
            .chain([KeyType::Ed25519])
            .chain(KeyType::ML_DSA.map(KeyType::MlDsa));
        let groups = Group::NAMED.into_iter().filter_map(|(group, _)| match group {
            // Only WTLS has a group of that size, which differs from this one.
            Group::Dh(bits) => shakedown_pki::dh::group(bits).map(|_| Self::Agreement(group)),
            Group::Ffdhe(_) | Group::X25519 | Group::X448 => Some(Self::Agreement(group)),
            Group::MlKem(_) | Group::X25519MlKem768 | Group::Secp256r1MlKem768 => {
                Some(Self::Encapsulation(group))
            }
            Group::Curve(_) => None,
        });
        let wtls_curves =
            Curve::all().filter(|curve| curve.wtls_name().is_some() && curve.tls_group().is_none());
        let wtls = wtls_curves
            .map(Wtls::Curve)
            .chain(WTLS_GROUPS.map(Wtls::Agreement))
            .chain(WTLS_CIPHERS.map(Wtls::Cipher))
            .chain(WTLS_PRFS.map(Wtls::Prf));
        keys.map(Self::Key)
            .chain(groups)
            .chain(DIGESTS.map(Self::Digest))
            .chain(HMACS.map(Self::Hmac))
            .chain(CIPHERS.map(Self::Cipher))
            .chain(TLS_PRFS.map(Self::TlsPrf))
            .chain(HKDFS.map(Self::Hkdf))
            .chain(wtls.map(Self::Wtls))
            .collect()
    }

    /// The triples that its workload records.
    pub fn primitives(self) -> Vec<Primitive> {
        use Operation::{Cipher, Derive, Digest, Import, Keygen, Mac, Prf};
        let one = |operation, algorithm| vec![Primitive::new(operation, algorithm, "")];
        match self {
            Self::Key(key) => {
                let operations = key.family().operations().iter();
                operations.map(|operation| key.primitive(*operation)).collect()
            }
            Self::Agreement(group) => in_group(group, Protocol::Tls12, &[Keygen, Derive, Import]),
            Self::Encapsulation(group) => in_group(group, Protocol::Tls12, group.family().operations()),
            Self::Digest(hash) => one(Digest, hash),
            Self::Hmac(hash) => one(Mac, intern(&format!("hmac-{hash}"))),
            Self::Cipher(cipher) | Self::Wtls(Wtls::Cipher(cipher)) => one(Cipher, cipher),
            Self::TlsPrf(hash) => one(Prf, intern(&format!("tls1-prf-{hash}"))),
            Self::Hkdf(hash) => one(Prf, intern(&format!("hkdf-{hash}"))),
            Self::Wtls(Wtls::Curve(curve)) => Self::Key(KeyType::Ec(curve)).primitives(),
            Self::Wtls(Wtls::Agreement(bits)) => {
                in_group(Group::Dh(bits), Protocol::Wtls, &[Keygen, Derive, Import])
            }
            Self::Wtls(Wtls::Prf(hash)) => one(Prf, intern(&format!("wtls-prf-{hash}"))),
        }
    }
}

fn in_group(group: Group, protocol: Protocol, operations: &[Operation]) -> Vec<Primitive> {
    operations.iter().map(|operation| group.primitive(*operation, protocol)).collect()
}
