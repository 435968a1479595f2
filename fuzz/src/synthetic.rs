//! Synthetic cryptography: right formats and sizes, no security.

use shakedown_wtls::crypto::SignatureHash;
use shakedown_wtls::crypto::*;
use shakedown_wtls::{BulkCipher, HashAlgorithm, PointForm};
use zeroize::Zeroizing;

/// The cryptographic provider.
pub struct Synthetic;

/// A public or private key, of which only the kind matters.
#[derive(Clone)]
pub struct SyntheticKey(pub KeyKind);

impl Key for SyntheticKey {
    fn kind(&self) -> KeyKind {
        self.0
    }
}

fn bytes(kind: KeyKind) -> usize {
    kind.size_bits().div_ceil(8) as usize
}

/// A hash that usually differs for different inputs (FNV-1a).
fn fold(parts: &[&[u8]]) -> [u8; 20] {
    let mut state = 0xCBF2_9CE4_8422_2325_u64;
    for byte in parts.iter().flat_map(|part| part.iter()) {
        state = (state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
    }
    let mut out = [0; 20];
    out[..8].copy_from_slice(&state.to_be_bytes());
    out
}

impl Provider for Synthetic {
    type PublicKey = SyntheticKey;
    type PrivateKey = SyntheticKey;

    fn import(&self, key: PublicKeyRef<'_>) -> Result<SyntheticKey, CryptoError> {
        let kind = match key {
            PublicKeyRef::Rsa { modulus, .. } if (64..=512).contains(&modulus.len()) => {
                KeyKind::Rsa { bits: 8 * modulus.len() as u32 }
            }
            PublicKeyRef::Ec { curve, point } => match point.first() {
                Some(2 | 3) if point.len() == 1 + curve.field_bytes() => KeyKind::Ec(curve),
                Some(4) if point.len() == 1 + 2 * curve.field_bytes() => KeyKind::Ec(curve),
                _ => return Err(CryptoError::InvalidKey),
            },
            PublicKeyRef::Dh { group, value } if value.len() <= group.prime.len() => Group::Dh(group).kind(),
            _ => return Err(CryptoError::InvalidKey),
        };
        Ok(SyntheticKey(kind))
    }

    fn rsa_encrypt(
        &self,
        key: &SyntheticKey,
        message: &[u8],
        _random: &mut dyn Random,
    ) -> Result<Vec<u8>, CryptoError> {
        let mut block = vec![0; bytes(key.0)];
        let start = block.len().checked_sub(message.len()).ok_or(CryptoError::WrongKeyKind)?;
        block[start..].copy_from_slice(message);
        Ok(block)
    }

    fn rsa_decrypt(
        &self,
        key: &SyntheticKey,
        ciphertext: &[u8],
        version: u8,
        fallback: &[u8; RSA_SECRET_BYTES],
    ) -> Result<Zeroizing<[u8; RSA_SECRET_BYTES]>, CryptoError> {
        if ciphertext.len() != bytes(key.0) {
            return Err(CryptoError::BadCiphertext);
        }
        let mut secret = [0; RSA_SECRET_BYTES];
        secret.copy_from_slice(&ciphertext[ciphertext.len() - RSA_SECRET_BYTES..]);
        Ok(Zeroizing::new(if secret[0] == version { secret } else { *fallback }))
    }

    fn rsa_sign(&self, key: &SyntheticKey, _hash: &[u8]) -> Result<Vec<u8>, CryptoError> {
        Ok(vec![0; bytes(key.0)])
    }

    fn rsa_verify(&self, key: &SyntheticKey, _hash: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        if signature.len() == bytes(key.0) { Ok(()) } else { Err(CryptoError::BadSignature) }
    }

    fn ecdsa_sign(
        &self,
        key: &SyntheticKey,
        _hash: &[u8],
        _random: &mut dyn Random,
    ) -> Result<Vec<u8>, CryptoError> {
        match key.0 {
            KeyKind::Ec(curve) => Ok(vec![0; 2 * curve.order_bytes()]),
            _ => Err(CryptoError::WrongKeyKind),
        }
    }

    fn ecdsa_verify(&self, key: &SyntheticKey, _hash: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        match key.0 {
            KeyKind::Ec(curve) if signature.len() == 2 * curve.order_bytes() => Ok(()),
            _ => Err(CryptoError::BadSignature),
        }
    }

    fn generate(&self, group: Group<'_>, _random: &mut dyn Random) -> Result<SyntheticKey, CryptoError> {
        Ok(SyntheticKey(group.kind()))
    }

    fn public_value(&self, key: &SyntheticKey, form: PointForm) -> Result<Vec<u8>, CryptoError> {
        Ok(match (key.0, form) {
            (KeyKind::Ec(curve), PointForm::Compressed) => vec![2; 1 + curve.field_bytes()],
            (KeyKind::Ec(curve), PointForm::Uncompressed) => vec![4; 1 + 2 * curve.field_bytes()],
            (kind, _) => vec![2; bytes(kind)],
        })
    }

    fn derive(&self, key: &SyntheticKey, peer: &SyntheticKey) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
        match key.0 == peer.0 {
            true => Ok(Zeroizing::new(vec![7; bytes(key.0)])),
            false => Err(CryptoError::WrongKeyKind),
        }
    }

    fn digest(&self, hash: HashAlgorithm, parts: &[&[u8]]) -> Digest {
        Digest::new(&fold(parts)[..hash.output_bytes()])
    }

    fn signature_digest(&self, _: SignatureHash, signed: &[u8]) -> Vec<u8> {
        fold(&[signed]).to_vec()
    }

    fn hmac(&self, hash: HashAlgorithm, _key: &[u8], _parts: &[&[u8]]) -> Digest {
        Digest::new(&[0; 20][..hash.output_bytes()])
    }

    fn prf(&self, _: HashAlgorithm, _secret: &[u8], label: &str, seed: &[&[u8]], out: &mut [u8]) {
        // Finished depends on the messages, so that the sides agree only if they saw the same messages.
        let value = if label.ends_with("finished") { fold(seed) } else { [0; 20] };
        for (byte, value) in out.iter_mut().zip(value.iter().cycle()) {
            *byte = *value;
        }
    }

    fn cbc_encrypt(&self, _: BulkCipher, _key: &[u8], _iv: &[u8; 8], _data: &mut [u8]) {}

    fn cbc_decrypt(&self, _: BulkCipher, _key: &[u8], _iv: &[u8; 8], _data: &mut [u8]) {}
}
