//! Digests and lengths of signatures.

use crate::error::{Doing, PkiError};
use crate::keys::family;
use openssl::bn::{BigNum, BigNumRef};
use openssl::hash::MessageDigest;
use openssl::pkey::{PKeyRef, Private};
use serde::{Deserialize, Serialize};
use shakedown_trace::suite::KeyFamily;

shakedown_trace::spelled! {
    /// A digest that certificates are signed with.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Digest {
        Md5 = "md5",
        Sha1 = "sha1",
        Sha224 = "sha224",
        Sha256 = "sha256",
        Sha384 = "sha384",
        Sha512 = "sha512",
    }
}

impl Digest {
    /// OpenSSL's object.
    pub(crate) fn message_digest(self) -> MessageDigest {
        match self {
            Self::Md5 => MessageDigest::md5(),
            Self::Sha1 => MessageDigest::sha1(),
            Self::Sha224 => MessageDigest::sha224(),
            Self::Sha256 => MessageDigest::sha256(),
            Self::Sha384 => MessageDigest::sha384(),
            Self::Sha512 => MessageDigest::sha512(),
        }
    }

    /// True if an RSA signature of `modulus_bytes` has room for the digest with PKCS #1 v1.5 padding.
    pub(crate) fn fits_rsa(self, modulus_bytes: u32) -> bool {
        // DigestInfo wraps 18 (MD5), 15 (SHA-1) or 19 bytes around the digest; padding takes 11 (RFC 8017, 9.2).
        let wrapping = match self {
            Self::Md5 => 18,
            Self::Sha1 => 15,
            _ => 19,
        };
        let digest = u32::try_from(self.message_digest().size()).unwrap_or(u32::MAX);
        digest.saturating_add(wrapping + 11) <= modulus_bytes
    }
}

/// The likeliest length in bytes of a DER signature by this key, if the length varies randomly (ECDSA, DSA).
///
/// Certificates are signed again until they have this length, so that the bytes of a handshake depend only on its
/// description, not on the generated keys.
pub(crate) fn likeliest_bytes(key: &PKeyRef<Private>) -> Result<Option<usize>, PkiError> {
    let order = match family(key) {
        Some(KeyFamily::Ec) => {
            let key = key.ec_key().doing("read an EC key")?;
            let mut order = BigNum::new().doing("make a number")?;
            let mut context = openssl::bn::BigNumContext::new().doing("make a number context")?;
            key.group().order(&mut order, &mut context).doing("read the order of a curve")?;
            order
        }
        Some(KeyFamily::Dsa) => {
            let key = key.dsa().doing("read a DSA key")?;
            key.q().to_owned().doing("copy a number")?
        }
        _ => return Ok(None),
    };
    Ok(Some(likeliest_sequence(&order)))
}

/// The likeliest length of a DER SEQUENCE of two INTEGERs that are drawn below `order`.
fn likeliest_sequence(order: &BigNumRef) -> usize {
    // A positive INTEGER begins with a zero bit, and has a header of two bytes.
    let longest = order.num_bits() / 8 + 1;
    let order = order.to_vec().iter().fold(0.0, |value, &byte| value * 256.0 + f64::from(byte));
    // Probability that a number is one byte shorter; two bytes are too rare to matter.
    let short = 2_f64.powi(8 * (longest - 1) - 1) / order;
    // None, one or both are one byte shorter: (1 - s)^2, 2 s (1 - s), s^2.
    let shorter = i32::from(short > 1.0 / 3.0) + i32::from(short > 2.0 / 3.0);
    let content = 2 * (2 + longest) - shorter;
    usize::try_from(content + if content < 128 { 2 } else { 3 }).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::keys;
    use shakedown_trace::suite::KeyType;

    #[test]
    fn likeliest_length_is_the_most_frequent_signature_length() {
        for name in ["p256", "p384", "p521", "sect163k1", "sect233k1", "secp160r1", "dsa1024"] {
            let key = keys::generate(KeyType::from_name(name).unwrap()).unwrap();
            let mut counts = std::collections::BTreeMap::<usize, u32>::new();
            for message in 0_u32..600 {
                let mut signer = openssl::sign::Signer::new(MessageDigest::sha256(), &key).unwrap();
                let signature = signer.sign_oneshot_to_vec(&message.to_be_bytes()).unwrap();
                *counts.entry(signature.len()).or_default() += 1;
            }
            let likeliest = likeliest_bytes(&key).unwrap().unwrap();
            let most = counts.values().max().unwrap();
            // Of two equally likely lengths, either may be more frequent here.
            assert!(counts[&likeliest] * 10 >= most * 7, "{name}: {likeliest} in {counts:?}");
        }
    }

    #[test]
    fn rsa_512_fits_sha_256_and_nothing_longer() {
        assert!(Digest::Sha256.fits_rsa(64));
        assert!(!Digest::Sha384.fits_rsa(64));
        assert!(Digest::Sha512.fits_rsa(96));
    }
}
