//! SHA-1, MD5, HMAC and the PRF. The hash state after an HMAC key is computed once and copied, which nearly halves the
//! work of the PRF.

use super::ffi;
use crate::crypto::Digest;
use crate::crypto::SignatureHash;
use crate::numbers::HashAlgorithm;
use openssl::sha;
use openssl_sys::{SHA_CTX, SHA1_Final, SHA1_Init, SHA1_Update};
use std::mem::MaybeUninit;

/// Block size of both hashes.
const BLOCK: usize = 64;

#[derive(Clone)]
enum State {
    Sha1(SHA_CTX),
    Md5(ffi::Md5Context),
}

impl State {
    fn new(hash: HashAlgorithm) -> Self {
        match hash {
            HashAlgorithm::Sha1 => {
                let mut context = MaybeUninit::uninit();
                // SAFETY: SHA1_Init writes every field of the context.
                Self::Sha1(unsafe {
                    SHA1_Init(context.as_mut_ptr());
                    context.assume_init()
                })
            }
            HashAlgorithm::Md5 => {
                let mut context = MaybeUninit::uninit();
                // SAFETY: MD5_Init writes every field of the context, whose layout is MD5_CTX's.
                Self::Md5(unsafe {
                    ffi::MD5_Init(context.as_mut_ptr());
                    context.assume_init()
                })
            }
        }
    }

    fn update(&mut self, data: &[u8]) {
        // SAFETY: the context was initialised, and the pointer is valid for `data.len()` bytes.
        unsafe {
            match self {
                Self::Sha1(context) => SHA1_Update(context, data.as_ptr().cast(), data.len()),
                Self::Md5(context) => ffi::MD5_Update(context, data.as_ptr().cast(), data.len()),
            };
        }
    }

    /// Compresses a block. All input before it must have consisted of whole blocks.
    fn compress(&mut self, block: &[u8; BLOCK]) {
        // SAFETY: the context was initialised, and the block has the bytes that are read.
        unsafe {
            match self {
                Self::Sha1(context) => ffi::SHA1_Transform(context, block.as_ptr()),
                Self::Md5(context) => ffi::MD5_Transform(context, block.as_ptr()),
            }
        }
    }

    /// The chaining value after the compressed blocks.
    fn words(&self) -> Digest {
        match self {
            Self::Sha1(SHA_CTX { h0, h1, h2, h3, h4, .. }) => {
                Digest::new([*h0, *h1, *h2, *h3, *h4].map(u32::to_be_bytes).as_flattened())
            }
            Self::Md5(context) => Digest::new(context.state.map(u32::to_le_bytes).as_flattened()),
        }
    }

    fn finish(self) -> Digest {
        match self {
            Self::Sha1(mut context) => {
                let mut digest = [0; 20];
                // SAFETY: the context was initialised, and the digest has space for 20 bytes.
                unsafe { SHA1_Final(digest.as_mut_ptr(), &mut context) };
                Digest::new(&digest)
            }
            Self::Md5(mut context) => {
                let mut digest = [0; 16];
                // SAFETY: the context was initialised, and the digest has space for 16 bytes.
                unsafe { ffi::MD5_Final(digest.as_mut_ptr(), &mut context) };
                Digest::new(&digest)
            }
        }
    }
}

/// The state of a hash after exactly one block: a key of HMAC.
///
/// The input of HMAC in a handshake has few blocks. This type assembles them, and OpenSSL only compresses them, because
/// OpenSSL's buffering of partial blocks takes longer. Input of any length is processed in this way: the time of a MAC
/// must depend only on the number of blocks.
struct BehindBlock(State);

impl BehindBlock {
    fn new(hash: HashAlgorithm, block: &[u8; BLOCK]) -> Self {
        let mut state = State::new(hash);
        state.compress(block);
        Self(state)
    }

    /// The hash of the block and of `parts`.
    fn digest<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mut state = self.0.clone();
        let mut block = [0; BLOCK];
        let mut bytes = BLOCK;
        for mut part in parts {
            while !part.is_empty() {
                let filled = bytes % BLOCK;
                let (now, later) = part.split_at(part.len().min(BLOCK - filled));
                block[filled..filled + now.len()].copy_from_slice(now);
                bytes += now.len();
                part = later;
                if bytes.is_multiple_of(BLOCK) {
                    state.compress(&block);
                }
            }
        }
        let filled = bytes % BLOCK;
        block[filled] = 0x80;
        block[filled + 1..].fill(0);
        if filled >= BLOCK - 8 {
            state.compress(&block);
            block.fill(0);
        }
        let bits = 8 * bytes as u64;
        block[BLOCK - 8..].copy_from_slice(&match state {
            State::Sha1(_) => bits.to_be_bytes(),
            State::Md5(_) => bits.to_le_bytes(),
        });
        state.compress(&block);
        state.words()
    }
}

/// HMAC (RFC 2104), with the states after its key.
struct Hmac {
    inner: BehindBlock,
    outer: BehindBlock,
}

impl Hmac {
    fn new(hash: HashAlgorithm, key: &[u8]) -> Self {
        let mut block = [0; BLOCK];
        if key.len() > BLOCK {
            let short = digest(hash, &[key]);
            block[..short.len()].copy_from_slice(&short);
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        // In place: an array's `map` is not vectorised.
        block.iter_mut().for_each(|byte| *byte ^= 0x36);
        let inner = BehindBlock::new(hash, &block);
        block.iter_mut().for_each(|byte| *byte ^= 0x36 ^ 0x5C);
        let outer = BehindBlock::new(hash, &block);
        Self { inner, outer }
    }

    fn compute<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let inner = self.inner.digest(parts);
        self.outer.digest([&*inner])
    }
}

pub fn digest(hash: HashAlgorithm, parts: &[&[u8]]) -> Digest {
    let mut state = State::new(hash);
    for part in parts {
        state.update(part);
    }
    state.finish()
}

pub fn signature_digest(hash: SignatureHash, signed: &[u8]) -> Vec<u8> {
    match hash {
        SignatureHash::Sha1 => sha::sha1(signed).to_vec(),
        SignatureHash::Sha256 => sha::sha256(signed).to_vec(),
        SignatureHash::Sha384 => sha::sha384(signed).to_vec(),
        SignatureHash::Sha512 => sha::sha512(signed).to_vec(),
    }
}

pub fn hmac(hash: HashAlgorithm, key: &[u8], parts: &[&[u8]]) -> Digest {
    Hmac::new(hash, key).compute(parts.iter().copied())
}

pub fn prf(hash: HashAlgorithm, secret: &[u8], label: &str, seed: &[&[u8]], out: &mut [u8]) {
    let hmac = Hmac::new(hash, secret);
    let seed = || std::iter::once(label.as_bytes()).chain(seed.iter().copied());
    let mut a = hmac.compute(seed());
    let mut chunks = out.chunks_mut(hash.output_bytes()).peekable();
    while let Some(chunk) = chunks.next() {
        let block = hmac.compute(std::iter::once(&*a).chain(seed()));
        chunk.copy_from_slice(&block[..chunk.len()]);
        if chunks.peek().is_some() {
            a = hmac.compute([&*a]);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use openssl::hash::MessageDigest;
    use openssl::pkey::PKey;
    use openssl::sign::Signer;

    /// For every length up to several blocks, in one part and in three.
    #[test]
    fn hmac_matches_openssl() {
        let data: Vec<u8> = (0..400).map(|place| (place * 7 % 251) as u8).collect();
        for (hash, theirs) in
            [(HashAlgorithm::Sha1, MessageDigest::sha1()), (HashAlgorithm::Md5, MessageDigest::md5())]
        {
            for key in [&data[..1], &data[..20], &data[..64], &data[..65], &data[..200]] {
                let key_of_theirs = PKey::hmac(key).unwrap();
                for length in 0..data.len() {
                    let data = &data[..length];
                    let wanted =
                        Signer::new(theirs, &key_of_theirs).unwrap().sign_oneshot_to_vec(data).unwrap();
                    let (one, other) = data.split_at(length / 3);
                    assert_eq!(*hmac(hash, key, &[data]), *wanted, "{hash:?}, {length}");
                    assert_eq!(*hmac(hash, key, &[one, &[], other]), *wanted, "{hash:?}, {length}");
                }
            }
        }
    }
}
