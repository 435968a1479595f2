//! SHA-1 and MD5, and what WTLS builds of them. A MAC key is hashed in once and the state copied,
//! which nearly halves the work of the PRF.

use super::ffi;
use crate::certificate::SignatureHash;
use crate::crypto::Digest;
use crate::numbers::HashAlgorithm;
use openssl::sha::{self, Sha1};
use std::mem::MaybeUninit;

/// Block size of both hashes.
const BLOCK: usize = 64;

/// A hash in progress.
#[derive(Clone)]
enum State {
    Sha1(Sha1),
    Md5(ffi::Md5Context),
}

impl State {
    fn new(hash: HashAlgorithm) -> Self {
        match hash {
            HashAlgorithm::Sha1 => Self::Sha1(Sha1::new()),
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
        match self {
            Self::Sha1(state) => state.update(data),
            Self::Md5(context) => {
                // SAFETY: the context was initialised and the pointer is good for `data.len()` bytes.
                unsafe { ffi::MD5_Update(context, data.as_ptr().cast(), data.len()) };
            }
        }
    }

    fn finish(self) -> Digest {
        match self {
            Self::Sha1(state) => Digest::new(&state.finish()),
            Self::Md5(mut context) => {
                let mut digest = [0; 16];
                // SAFETY: the context was initialised and the digest has room for 16 bytes.
                unsafe { ffi::MD5_Final(digest.as_mut_ptr(), &mut context) };
                Digest::new(&digest)
            }
        }
    }
}

/// HMAC (RFC 2104) with its key hashed in.
struct Hmac {
    inner: State,
    outer: State,
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
        let mut inner = State::new(hash);
        inner.update(&block.map(|byte| byte ^ 0x36));
        let mut outer = State::new(hash);
        outer.update(&block.map(|byte| byte ^ 0x5C));
        Self { inner, outer }
    }

    fn compute<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mut inner = self.inner.clone();
        for part in parts {
            inner.update(part);
        }
        let mut outer = self.outer.clone();
        outer.update(&inner.finish());
        outer.finish()
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
