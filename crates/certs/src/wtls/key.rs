//! Converts keys of WTLS certificates between OpenSSL and the engine.

use crate::CertsError;
use shakedown_pki::keys;
use shakedown_trace::suite::{Curve as CurveName, KeyFamily, KeyType};
use shakedown_wtls::certificate::{CertifiedKey, CertifiedPoint};
use shakedown_wtls::codec::{bits, significant};
use shakedown_wtls::crypto::{CryptoError, Key, KeyKind, Provider, Random};
use shakedown_wtls::provider::openssl::{OpenSsl, PrivateKey};
use shakedown_wtls::{Curve, EncodedRsaKey, ParameterSpecifier, PointForm};

/// Converts a PKCS #8 DER key to a key of the engine.
pub fn private_key(provider: &OpenSsl, pkcs8: &[u8]) -> Result<PrivateKey, CertsError> {
    let key = keys::from_pkcs8(pkcs8)?;
    let foreign = || CertsError::NoWtlsKey { key: keys::describe(&key) };
    let failed = |error: openssl::error::ErrorStack| CertsError::Crypto(CryptoError::from(error));
    match keys::family(&key) {
        Some(KeyFamily::Rsa) => {
            let der = key.rsa().and_then(|rsa| rsa.private_key_to_der()).map_err(failed)?;
            Ok(provider.rsa_key_from_der(&der)?)
        }
        Some(KeyFamily::Ec) => {
            let curve = keys::key_type(&key).and_then(curve_of).ok_or_else(foreign)?;
            let scalar = key.ec_key().map_err(failed)?.private_key().to_vec();
            Ok(provider.ec_key(curve, &scalar)?)
        }
        _ => Err(foreign()),
    }
}

/// What an EC key is certified for: leaves for key agreement, issuers for signatures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Leaf,
    Issuer,
}

/// The public key as in a certificate; points are compressed, which the specification prefers.
pub(super) fn certified(
    provider: &OpenSsl,
    key: &PrivateKey,
    what_for: Use,
    private_curves: bool,
) -> Result<CertifiedKey, CertsError> {
    if let KeyKind::Ec(curve) = key.kind() {
        let point = CertifiedPoint {
            parameters: ParameterSpecifier::of_curve(curve, private_curves),
            point: provider.public_value(key, PointForm::Compressed)?,
        };
        return Ok(match what_for {
            Use::Leaf => CertifiedKey::Ecdh(point),
            Use::Issuer => CertifiedKey::Ecdsa(point),
        });
    }
    let (exponent, modulus) = provider.rsa_public(key)?;
    let encoded =
        EncodedRsaKey::new(&exponent, &modulus).map_err(|error| CertsError::Certificate(error.into()))?;
    Ok(CertifiedKey::Rsa(encoded))
}

/// True if a certificate is for this key.
pub(super) fn is_certified(provider: &OpenSsl, key: &PrivateKey, certified: &CertifiedKey) -> bool {
    match certified {
        CertifiedKey::Rsa(encoded) => {
            let Ok((exponent, modulus)) = provider.rsa_public(key) else { return false };
            encoded.parts().is_ok_and(|(e, n)| {
                significant(e) == significant(&exponent) && significant(n) == significant(&modulus)
            })
        }
        CertifiedKey::Ecdh(point) | CertifiedKey::Ecdsa(point) => {
            let KeyKind::Ec(curve) = key.kind() else { return false };
            let forms = [PointForm::Compressed, PointForm::Uncompressed];
            point.parameters.curve(true).is_ok_and(|found| found == curve)
                && forms
                    .into_iter()
                    .any(|form| provider.public_value(key, form).is_ok_and(|own| own == point.point))
        }
    }
}

/// The type of a certified key in suite names; `None` for sizes and exponents that no suite name has.
pub(super) fn key_type(certified: &CertifiedKey) -> Option<KeyType> {
    match certified {
        CertifiedKey::Rsa(encoded) => {
            let (exponent, modulus) = encoded.parts().ok()?;
            let exponent_3 = match significant(exponent) {
                [3] => true,
                [1, 0, 1] => false,
                _ => return None,
            };
            let bits = u16::try_from(bits(modulus)).ok().filter(|bits| KeyType::RSA_BITS.contains(bits))?;
            Some(KeyType::Rsa { bits, exponent_3 })
        }
        CertifiedKey::Ecdh(point) | CertifiedKey::Ecdsa(point) => {
            let curve = point.parameters.curve(true).ok()?;
            CurveName::from_name(curve.short_name()).map(KeyType::Ec)
        }
    }
}

/// The engine's curve of a key type.
pub(super) fn curve_of(key: KeyType) -> Option<Curve> {
    match key {
        KeyType::Ec(curve) => Curve::from_name(curve.wtls_name()?),
        _ => None,
    }
}

pub(super) fn in_words(certified: &CertifiedKey) -> String {
    match (key_type(certified), certified) {
        (Some(key), _) => key.name(shakedown_trace::suite::Protocol::Wtls).to_owned(),
        (None, CertifiedKey::Rsa(encoded)) => match encoded.parts() {
            Ok((_, modulus)) => {
                format!("RSA of {} bits or with an odd exponent", 8 * significant(modulus).len())
            }
            Err(error) => error.to_string(),
        },
        (None, CertifiedKey::Ecdh(point) | CertifiedKey::Ecdsa(point)) => {
            match point.parameters.curve(true) {
                Ok(curve) => curve.short_name().to_owned(),
                Err(error) => error.to_string(),
            }
        }
    }
}

pub(super) fn randomness() -> impl Random {
    |out: &mut [u8]| {
        // A signature with zeros instead of random bytes would reveal the key.
        if let Err(error) = openssl::rand::rand_bytes(out) {
            panic!("the operating system gives no randomness: {error}");
        }
    }
}
