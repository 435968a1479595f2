//! Key derivation of every version: RFC 6101 (SSL 3.0), RFC 2246 (TLS 1.0), RFC 5246 (TLS 1.2),
//! RFC 8446 section 7.1 (TLS 1.3).

use crate::tls::cipher_suite::Hash;
use openssl::error::ErrorStack;
use openssl::hash::{Hasher, MessageDigest};
use openssl::pkey::PKey;
use openssl::sign::Signer;

type Derived = Result<Vec<u8>, ErrorStack>;

fn digest(hash: Hash) -> MessageDigest {
    match hash {
        Hash::Md5 => MessageDigest::md5(),
        Hash::Sha1 => MessageDigest::sha1(),
        Hash::Sha256 => MessageDigest::sha256(),
        Hash::Sha384 => MessageDigest::sha384(),
    }
}

fn hmac(hash: Hash, key: &[u8], parts: &[&[u8]]) -> Derived {
    let key = PKey::hmac(key)?;
    let mut signer = Signer::new(digest(hash), &key)?;
    for part in parts {
        signer.update(part)?;
    }
    signer.sign_to_vec()
}

/// P_hash of RFC 5246 section 5.
fn expand(hash: Hash, secret: &[u8], seed: &[u8], length: usize) -> Derived {
    let mut output = Vec::with_capacity(length + hash.bytes());
    let mut chain = hmac(hash, secret, &[seed])?;
    while output.len() < length {
        output.extend(hmac(hash, secret, &[&chain, seed])?);
        chain = hmac(hash, secret, &[&chain])?;
    }
    output.truncate(length);
    Ok(output)
}

fn pseudorandom_1_0(secret: &[u8], seed: &[u8], length: usize) -> Derived {
    // The halves share the middle byte of a secret with odd length.
    let half = secret.len().div_ceil(2);
    let first = expand(Hash::Md5, &secret[..half], seed, length)?;
    let second = expand(Hash::Sha1, &secret[secret.len() - half..], seed, length)?;
    Ok(first.iter().zip(&second).map(|(one, other)| one ^ other).collect())
}

fn ssl3(master: &[u8], randoms: &[u8], length: usize) -> Derived {
    let mut output = Vec::with_capacity(length + 16);
    let hash = |kind, parts: &[&[u8]]| -> Derived {
        let mut hasher = Hasher::new(kind)?;
        for part in parts {
            hasher.update(part)?;
        }
        Ok(hasher.finish()?.to_vec())
    };
    for round in 1..=26 {
        if output.len() >= length {
            break;
        }
        // "A", "BB", "CCC" ...
        let label = vec![b'A' + round - 1; usize::from(round)];
        let inner = hash(MessageDigest::sha1(), &[&label, master, randoms])?;
        output.extend(hash(MessageDigest::md5(), &[master, &inner])?);
    }
    output.truncate(length);
    Ok(output)
}

/// The key block of SSL 3.0 to TLS 1.2; for DTLS, `version` is that of the TLS version on which it is based.
pub(super) fn key_block(
    version: u16,
    hash: Hash,
    master: &[u8],
    client_random: &[u8; 32],
    server_random: &[u8; 32],
    length: usize,
) -> Derived {
    let randoms = [&server_random[..], client_random].concat();
    let seed = [b"key expansion", &randoms[..]].concat();
    match version {
        0x0300 => ssl3(master, &randoms, length),
        0x0301 | 0x0302 => pseudorandom_1_0(master, &seed, length),
        _ => expand(hash, master, &seed, length),
    }
}

/// HKDF-Expand-Label of RFC 8446 with an empty context.
pub(super) fn expand_label(hash: Hash, secret: &[u8], label: &str, length: usize) -> Derived {
    let mut info = Vec::with_capacity(label.len() + 10);
    info.extend_from_slice(&(length as u16).to_be_bytes());
    info.push(6 + label.len() as u8);
    info.extend_from_slice(b"tls13 ");
    info.extend_from_slice(label.as_bytes());
    info.push(0);
    let mut output = Vec::with_capacity(length + hash.bytes());
    let mut previous = Vec::new();
    for counter in 1..=255u8 {
        if output.len() >= length {
            break;
        }
        previous = hmac(hash, secret, &[&previous, &info, &[counter]])?;
        output.extend_from_slice(&previous);
    }
    output.truncate(length);
    Ok(output)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    /// RFC 8448 section 3: the server's handshake traffic keys.
    #[test]
    fn expand_label_matches_rfc_8448() {
        let secret = bytes("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38");
        let key = expand_label(Hash::Sha256, &secret, "key", 16).unwrap();
        assert_eq!(key, bytes("3fce516009c21727d0f2e4e86ee403bc"));
        let iv = expand_label(Hash::Sha256, &secret, "iv", 12).unwrap();
        assert_eq!(iv, bytes("5d313eb2671276ee13000b30"));
    }

    #[test]
    fn key_blocks_have_the_requested_length() {
        for version in [0x0300, 0x0301, 0x0303] {
            for length in [0, 1, 40, 104, 136] {
                let block = key_block(version, Hash::Sha256, &[7; 48], &[1; 32], &[2; 32], length).unwrap();
                assert_eq!(block.len(), length);
                let longer =
                    key_block(version, Hash::Sha256, &[7; 48], &[1; 32], &[2; 32], length + 9).unwrap();
                assert_eq!(longer[..length], block);
            }
        }
    }
}
