//! The WTLS engine's primitives, with the engine's calls, through the provider that records them.

use super::symmetric::MAX_BYTES;
use super::target::Wtls;
use super::workload::same;
use super::{Failure, Workload};
use crate::wtls::provider::Timed;
use shakedown_wtls::crypto::{CryptoError, Group, Provider, PublicKeyRef};
use shakedown_wtls::{BulkCipher, Curve, DhGroup, HashAlgorithm, PointForm};

/// Random numbers from OpenSSL's generator, as in the endpoints. It does not fail once it is seeded.
fn random(out: &mut [u8]) {
    let _ = openssl::rand::rand_bytes(out);
}

/// Creates the workload of a primitive that only WTLS has.
pub fn prepare(target: Wtls) -> Result<Workload, Failure> {
    let provider = Timed::new()?;
    Ok(match target {
        Wtls::Curve(curve) => {
            let curve = curve.wtls_name().and_then(Curve::from_name).ok_or(CryptoError::InvalidKey)?;
            let private = provider.generate(Group::Ec(curve), &mut random)?;
            Workload::PublicKey(Box::new(move || {
                curve_round(&provider, curve, &private).map_err(Failure::from)
            }))
        }
        Wtls::Agreement(bits) => {
            let group = if bits == 512 { DhGroup::group_1() } else { DhGroup::group_2() };
            Workload::PublicKey(Box::new(move || {
                let server = provider.generate(Group::Dh(&group), &mut random)?;
                let client = provider.generate(Group::Dh(&group), &mut random)?;
                let import = |key| {
                    let value = provider.public_value(key, PointForm::Uncompressed)?;
                    provider.import(PublicKeyRef::Dh { group: &group, value: &value })
                };
                let (seen_by_client, seen_by_server) = (import(&server)?, import(&client)?);
                same(&provider.derive(&client, &seen_by_client)?, &provider.derive(&server, &seen_by_server)?)
            }))
        }
        Wtls::Cipher(name) => {
            let cipher = match name {
                "rc5-32/16-cbc" => BulkCipher::Rc5Cbc,
                "rc5-32/12-cbc" => BulkCipher::Rc5Cbc56,
                _ => BulkCipher::DesCbc,
            };
            let key: Vec<u8> = (1..).take(cipher.key_bytes()).collect();
            let mut data = vec![0x5A; MAX_BYTES];
            Workload::Symmetric(Box::new(move |size| {
                provider.cbc_encrypt(cipher, &key, &[0x5A; 8], &mut data[..size.min(MAX_BYTES) / 8 * 8]);
                Ok(())
            }))
        }
        Wtls::Prf(hash) => {
            let hash = if hash == "md5" { HashAlgorithm::Md5 } else { HashAlgorithm::Sha1 };
            let mut out = vec![0; MAX_BYTES];
            Workload::Symmetric(Box::new(move |size| {
                provider.prf(
                    hash,
                    &[0x5A; 20],
                    "key expansion",
                    &[&[0x5A; 34]],
                    &mut out[..size.min(MAX_BYTES)],
                );
                Ok(())
            }))
        }
    })
}

type PrivateKey = <Timed as Provider>::PrivateKey;

/// A certificate's key signs and agrees; the peer decodes it and generates its own key. Points are compressed, as in
/// certificates and in all suites except the explicitly uncompressed ones.
fn curve_round(provider: &Timed, curve: Curve, certified: &PrivateKey) -> Result<(), CryptoError> {
    let import = |key| {
        let point = provider.public_value(key, PointForm::Compressed)?;
        provider.import(PublicKeyRef::Ec { curve, point: &point })
    };
    let hash = [0x5A; 20];
    let signature = provider.ecdsa_sign(certified, &hash, &mut random)?;
    provider.ecdsa_verify(&import(certified)?, &hash, &signature)?;
    let client = provider.generate(Group::Ec(curve), &mut random)?;
    let (seen_by_client, seen_by_server) = (import(certified)?, import(&client)?);
    let one = provider.derive(&client, &seen_by_client)?;
    if *one == *provider.derive(certified, &seen_by_server)? {
        Ok(())
    } else {
        Err(CryptoError::DegenerateSecret)
    }
}
