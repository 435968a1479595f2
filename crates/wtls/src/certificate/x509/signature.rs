//! The signature on an X.509 certificate (RFC 8017, section 9.2; RFC 3279, section 2.2; RFC 5758).

use super::X509Error;
use crate::crypto::{CryptoError, Key, KeyKind, Provider, SignatureHash};
use crate::numbers::SignatureAlgorithm;
use x509_cert::der::asn1::{BitString, ObjectIdentifier, UintRef};
use x509_cert::der::{self, Decode, Reader, SliceReader};
use x509_cert::spki::AlgorithmIdentifierOwned;

/// The bytes before the hash in an RSA signature: the start of a DigestInfo in DER (RFC 8017, section 9.2, note 1).
fn digest_info(hash: SignatureHash) -> &'static [u8] {
    match hash {
        SignatureHash::Sha1 => {
            &[0x30, 0x21, 0x30, 0x09, 0x06, 0x05, 0x2B, 0x0E, 0x03, 0x02, 0x1A, 0x05, 0x00, 0x04, 0x14]
        }
        SignatureHash::Sha256 => &[
            0x30, 0x31, 0x30, 0x0D, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05,
            0x00, 0x04, 0x20,
        ],
        SignatureHash::Sha384 => &[
            0x30, 0x41, 0x30, 0x0D, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02, 0x05,
            0x00, 0x04, 0x30,
        ],
        SignatureHash::Sha512 => &[
            0x30, 0x51, 0x30, 0x0D, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03, 0x05,
            0x00, 0x04, 0x40,
        ],
    }
}

const ALGORITHMS: [(ObjectIdentifier, SignatureAlgorithm, SignatureHash); 8] = {
    use SignatureAlgorithm::{EcdsaSha as Ecdsa, RsaSha as Rsa};
    use SignatureHash as Hash;
    const fn oid(text: &str) -> ObjectIdentifier {
        ObjectIdentifier::new_unwrap(text)
    }
    [
        (oid("1.2.840.113549.1.1.5"), Rsa, Hash::Sha1),
        (oid("1.2.840.113549.1.1.11"), Rsa, Hash::Sha256),
        (oid("1.2.840.113549.1.1.12"), Rsa, Hash::Sha384),
        (oid("1.2.840.113549.1.1.13"), Rsa, Hash::Sha512),
        (oid("1.2.840.10045.4.1"), Ecdsa, Hash::Sha1),
        (oid("1.2.840.10045.4.3.2"), Ecdsa, Hash::Sha256),
        (oid("1.2.840.10045.4.3.3"), Ecdsa, Hash::Sha384),
        (oid("1.2.840.10045.4.3.4"), Ecdsa, Hash::Sha512),
    ]
};

/// The common names of well-known unsupported algorithms.
fn in_words(algorithm: ObjectIdentifier) -> String {
    let oid = algorithm.to_string();
    let name = match oid.as_str() {
        "1.2.840.113549.1.1.4" => "RSA with MD5",
        "1.2.840.113549.1.1.10" => "RSA-PSS",
        "1.2.840.10040.4.3" | "2.16.840.1.101.3.4.3.2" => "DSA",
        "1.3.101.112" => "Ed25519",
        "2.16.840.1.101.3.4.3.17" | "2.16.840.1.101.3.4.3.18" | "2.16.840.1.101.3.4.3.19" => "ML-DSA",
        other => other,
    };
    name.to_owned()
}

/// A signature of a known kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Signature {
    pub algorithm: SignatureAlgorithm,
    hash: SignatureHash,
    bytes: Vec<u8>,
}

impl Signature {
    /// `algorithms`: the identifiers inside and outside the signed part, which must be equal.
    pub fn read(
        algorithms: (&AlgorithmIdentifierOwned, &AlgorithmIdentifierOwned),
        bytes: &BitString,
        subject: &str,
    ) -> Result<Self, X509Error> {
        let malformed = |what: &str| X509Error::Malformed(what.to_owned());
        if algorithms.0 != algorithms.1 {
            return Err(malformed("two different signature algorithms"));
        }
        let oid = algorithms.0.oid;
        let (_, algorithm, hash) = ALGORITHMS.into_iter().find(|row| row.0 == oid).ok_or_else(|| {
            X509Error::SignatureAlgorithm { subject: subject.to_owned(), algorithm: in_words(oid) }
        })?;
        let bytes =
            bytes.as_bytes().ok_or_else(|| malformed("the signature does not consist of whole bytes"))?;
        Ok(Self { algorithm, hash, bytes: bytes.to_vec() })
    }

    pub fn verify<P: Provider>(
        &self,
        provider: &P,
        key: &P::PublicKey,
        signed: &[u8],
    ) -> Result<(), CryptoError> {
        let hash = provider.signature_digest(self.hash, signed);
        match (self.algorithm, key.kind()) {
            (SignatureAlgorithm::EcdsaSha, KeyKind::Ec(curve)) => {
                let halves = halves(&self.bytes, curve.order_bytes()).ok_or(CryptoError::BadSignature)?;
                provider.ecdsa_verify(key, &hash, &halves)
            }
            (SignatureAlgorithm::RsaSha, KeyKind::Rsa { .. }) => {
                provider.rsa_verify(key, &[digest_info(self.hash), &hash].concat(), &self.bytes)
            }
            _ => Err(CryptoError::WrongKeyKind),
        }
    }
}

/// The two numbers of an ECDSA signature, padded to the length of the order as in WTLS. `None` if the signature does
/// not consist of two such numbers.
fn halves(signature: &[u8], order_bytes: usize) -> Option<Vec<u8>> {
    let mut reader = SliceReader::new(signature).ok()?;
    let numbers = reader.sequence(|reader| {
        Ok::<_, der::Error>([UintRef::decode(reader)?.as_bytes(), UintRef::decode(reader)?.as_bytes()])
    });
    let mut joined = Vec::with_capacity(2 * order_bytes);
    for number in numbers.ok()? {
        joined.resize(joined.len() + order_bytes.checked_sub(number.len())?, 0);
        joined.extend_from_slice(number);
    }
    reader.finish().ok()?;
    Some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_numbers_are_padded_with_zeros() {
        let signature = [0x30, 0x07, 0x02, 0x01, 0x05, 0x02, 0x02, 0x00, 0x80];
        assert_eq!(halves(&signature, 2), Some(vec![0, 5, 0, 0x80]));
        assert_eq!(halves(&signature, 1), Some(vec![5, 0x80]));
        assert_eq!(halves(&signature[..8], 2), None);
        assert_eq!(halves(&[0x30, 0x07, 0x02, 0x02, 0x05, 0x01, 0x02, 0x01, 0x01], 1), None);
    }
}
