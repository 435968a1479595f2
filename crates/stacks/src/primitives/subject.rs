//! What there is to time: keys, groups and algorithms, and the primitives that each one has.

use shakedown_trace::operation::intern;
use shakedown_trace::suite::{Curve, Group, KeyType};
use shakedown_trace::{Operation, Primitive};

/// One thing to exercise. All its primitives are timed together, as a handshake uses them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A certificate key; on a curve, with an ephemeral agreement beside it.
    Key(KeyType),
    /// Diffie–Hellman modulo a prime, x25519 or x448.
    Agreement(Group),
    /// Key encapsulation, alone or in a hybrid.
    Encapsulation(Group),
    /// A hash, as of a transcript.
    Digest(&'static str),
    /// HMAC over that hash, as of a record.
    Hmac(&'static str),
    /// Record protection.
    Cipher(&'static str),
    /// RFC 5246 section 5 and its forebears, over that hash.
    TlsPrf(&'static str),
    /// TLS 1.3's expansion of secrets, over that hash.
    Hkdf(&'static str),
    /// What only the WTLS engine does, with its own calls.
    Wtls(Wtls),
}

/// Primitives that only WTLS has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wtls {
    /// A curve; where TLS has it too, only the engine's way of reading a key on it is WTLS's own.
    Curve(Curve),
    /// The specification's Diffie-Hellman group of so many bits, with 160-bit exponents.
    Agreement(u32),
    /// Records under a cipher that TLS does not have, by the triples' name.
    Cipher(&'static str),
    /// The PRF over that hash.
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
const WTLS_GROUPS: [u32; 2] = [512, 768];
const WTLS_CIPHERS: [&str; 3] = ["rc5-32/16-cbc", "rc5-32/12-cbc", "des-cbc"];
const WTLS_PRFS: [&str; 2] = ["sha1", "md5"];
const TLS_PRFS: [&str; 3] = ["md5-sha1", "sha256", "sha384"];
const HKDFS: [&str; 2] = ["sha256", "sha384"];

impl Subject {
    /// Everything that suites can name, public keys first.
    pub fn all() -> Vec<Self> {
        let sizes = KeyType::RSA_BITS.into_iter();
        let rsa = sizes.flat_map(|bits| [false, true].map(|exponent_3| KeyType::Rsa { bits, exponent_3 }));
        let keys = rsa
            .chain(KeyType::DSA_BITS.map(KeyType::Dsa))
            .chain(Curve::all().filter(|curve| curve.tls_group().is_some()).map(KeyType::Ec))
            .chain([KeyType::Ed25519])
            .chain(KeyType::ML_DSA.map(KeyType::MlDsa));
        let groups = Group::NAMED.into_iter().filter_map(|(group, _)| match group {
            // Only WTLS has a group of that size, and it is another one.
            Group::Dh(bits) => shakedown_pki::dh::group(bits).map(|_| Self::Agreement(group)),
            Group::Ffdhe(_) | Group::X25519 | Group::X448 => Some(Self::Agreement(group)),
            Group::MlKem(_) | Group::X25519MlKem768 | Group::Secp256r1MlKem768 => {
                Some(Self::Encapsulation(group))
            }
            Group::Curve(_) => None,
        });
        let wtls_curves = Curve::all().filter(|curve| curve.wtls_name().is_some());
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

    /// The triples that exercising it yields.
    pub fn primitives(self) -> Vec<Primitive> {
        use Operation::{
            Cipher, Decapsulate, Decrypt, Derive, Digest, Encapsulate, Encrypt, Import, Keygen, Mac, Prf,
            Sign, Verify,
        };
        let of = |algorithm: &'static str, parameters: &'static str, operations: &[Operation]| {
            operations
                .iter()
                .map(|operation| Primitive::new(*operation, algorithm, parameters))
                .collect::<Vec<_>>()
        };
        match self {
            Self::Key(key) => {
                let name = key.standard_name();
                match key {
                    KeyType::Rsa { .. } => of("rsa", name, &[Sign, Verify, Encrypt, Decrypt, Import]),
                    KeyType::Dsa(_) => of("dsa", name, &[Sign, Verify, Import]),
                    KeyType::Ec(_) => {
                        let mut all = of("ecdsa", name, &[Sign, Verify, Import]);
                        all.extend(of("ecdh", name, &[Keygen, Derive, Import]));
                        all
                    }
                    KeyType::Ed25519 => of("eddsa", name, &[Sign, Verify, Import]),
                    KeyType::MlDsa(_) => of("mldsa", name, &[Sign, Verify, Import]),
                }
            }
            Self::Agreement(group) => {
                let algorithm = if matches!(group, Group::X25519 | Group::X448) { "ecdh" } else { "dh" };
                of(algorithm, name(group), &[Keygen, Derive, Import])
            }
            Self::Encapsulation(group) => {
                let algorithm = if matches!(group, Group::MlKem(_)) { "mlkem" } else { "hybrid" };
                of(algorithm, name(group), &[Keygen, Encapsulate, Decapsulate, Import])
            }
            Self::Digest(hash) => of(hash, "", &[Digest]),
            Self::Hmac(hash) => of(intern(&format!("hmac-{hash}")), "", &[Mac]),
            Self::Cipher(cipher) => of(cipher, "", &[Cipher]),
            Self::TlsPrf(hash) => of(intern(&format!("tls1-prf-{hash}")), "", &[Prf]),
            Self::Hkdf(hash) => of(intern(&format!("hkdf-{hash}")), "", &[Prf]),
            Self::Wtls(Wtls::Curve(curve)) => {
                let mut all = of("ec", curve.name(), &[Import]);
                if curve.tls_group().is_none() {
                    all.extend(of("ecdsa", curve.name(), &[Sign, Verify]));
                    all.extend(of("ecdh", curve.name(), &[Keygen, Derive]));
                }
                all
            }
            Self::Wtls(Wtls::Agreement(bits)) => {
                of("dh", intern(&format!("wtlsdh{bits}")), &[Keygen, Derive, Import])
            }
            Self::Wtls(Wtls::Cipher(name)) => of(name, "", &[Cipher]),
            Self::Wtls(Wtls::Prf(hash)) => of(intern(&format!("wtls-prf-{hash}")), "", &[Prf]),
        }
    }
}

/// What traces call a group that is not a curve.
pub fn name(group: Group) -> &'static str {
    Group::NAMED.iter().find(|row| row.0 == group).map_or("", |row| row.1)
}
