//! The key in an X.509 certificate (RFC 3279, section 2.3; RFC 5480).

use super::super::{CertifiedKey, CertifiedPoint};
use super::X509Error;
use crate::curve::Curve;
use crate::parameters::{EncodedRsaKey, ParameterSpecifier};
use x509_cert::der::asn1::{ObjectIdentifier, UintRef};
use x509_cert::der::{self, Decode, Reader, SliceReader};
use x509_cert::spki::SubjectPublicKeyInfoOwned;

const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");

/// The curves by their object identifiers (SEC 2, X9.62, WAP-261 appendix A).
const CURVES: [(ObjectIdentifier, Curve); 15] = [
    (ObjectIdentifier::new_unwrap("2.23.43.1.4.1"), Curve::Wtls1),
    (ObjectIdentifier::new_unwrap("1.3.132.0.1"), Curve::Sect163k1),
    (ObjectIdentifier::new_unwrap("1.3.132.0.4"), Curve::Sect113r1),
    (ObjectIdentifier::new_unwrap("1.2.840.10045.3.0.1"), Curve::C2pnb163v1),
    (ObjectIdentifier::new_unwrap("1.3.132.0.6"), Curve::Wtls6),
    (ObjectIdentifier::new_unwrap("1.3.132.0.8"), Curve::Secp160r1),
    (ObjectIdentifier::new_unwrap("2.23.43.1.4.8"), Curve::Wtls8),
    (ObjectIdentifier::new_unwrap("2.23.43.1.4.9"), Curve::Wtls9),
    (ObjectIdentifier::new_unwrap("1.3.132.0.26"), Curve::Sect233k1),
    (ObjectIdentifier::new_unwrap("1.3.132.0.27"), Curve::Sect233r1),
    (ObjectIdentifier::new_unwrap("1.3.132.0.33"), Curve::Secp224r1),
    (ObjectIdentifier::new_unwrap("1.3.132.0.15"), Curve::Sect163r2),
    (ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7"), Curve::Prime256v1),
    (ObjectIdentifier::new_unwrap("1.3.132.0.16"), Curve::Sect283k1),
    (ObjectIdentifier::new_unwrap("1.3.132.0.17"), Curve::Sect283r1),
];

/// A key in a supported form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SubjectKey {
    /// Re-encoded as in a WTLS certificate. The pre-master secret ends with this encoding.
    Rsa(EncodedRsaKey),
    Ec(CertifiedPoint),
}

impl SubjectKey {
    pub fn read(info: &SubjectPublicKeyInfoOwned, subject: &str) -> Result<Self, X509Error> {
        let malformed = || X509Error::Malformed("the key does not consist of whole bytes".to_owned());
        let key = info.subject_public_key.as_bytes().ok_or_else(malformed)?;
        match info.algorithm.oid {
            RSA_ENCRYPTION => {
                let (modulus, exponent) = rsa_public_key(key)?;
                let encoded = EncodedRsaKey::new(exponent, modulus);
                encoded.map(Self::Rsa).map_err(|error| X509Error::Malformed(error.to_string()))
            }
            EC_PUBLIC_KEY => {
                let named = info.algorithm.parameters.as_ref();
                let oid = named.and_then(|any| any.decode_as::<ObjectIdentifier>().ok());
                let curve = CURVES.iter().find(|(known, _)| Some(*known) == oid).map(|row| row.1);
                let curve = curve.ok_or_else(|| X509Error::Curve {
                    subject: subject.to_owned(),
                    curve: oid.map_or_else(|| "spelt out".to_owned(), |oid| oid.to_string()),
                })?;
                let parameters = ParameterSpecifier::of_curve(curve, false);
                Ok(Self::Ec(CertifiedPoint { parameters, point: key.to_vec() }))
            }
            other => {
                let (subject, algorithm) = (subject.to_owned(), other.to_string());
                Err(X509Error::KeyAlgorithm { subject, algorithm })
            }
        }
    }

    pub fn certified(&self, is_leaf: bool) -> CertifiedKey {
        match (self, is_leaf) {
            (Self::Rsa(key), _) => CertifiedKey::Rsa(key.clone()),
            (Self::Ec(point), true) => CertifiedKey::Ecdh(point.clone()),
            (Self::Ec(point), false) => CertifiedKey::Ecdsa(point.clone()),
        }
    }
}

/// Modulus and exponent, without the zero that keeps a DER number positive.
fn rsa_public_key(bytes: &[u8]) -> der::Result<(&[u8], &[u8])> {
    let mut reader = SliceReader::new(bytes)?;
    let numbers = reader.sequence(|reader| {
        let (modulus, exponent) = (UintRef::decode(reader)?, UintRef::decode(reader)?);
        Ok::<_, der::Error>((modulus.as_bytes(), exponent.as_bytes()))
    })?;
    reader.finish()?;
    Ok(numbers)
}
