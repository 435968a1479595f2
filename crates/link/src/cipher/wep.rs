//! Wired Equivalent Privacy (IEEE 802.11-1999, section 8.2): RC4 over the body and its CRC-32; the key is a public
//! 24-bit IV followed by the secret.

use super::{CipherError, FrameCipher};
use openssl::cipher::Cipher;
use openssl::cipher_ctx::CipherCtx;
use openssl::error::ErrorStack;
use openssl::lib_ctx::LibCtx;
use openssl::provider::Provider;
use std::sync::OnceLock;

pub struct Wep {
    context: CipherCtx,
    /// The RC4 key: IV and secret.
    key: Vec<u8>,
    key_id: u8,
    iv: u32,
}

const HEADER_BYTES: usize = 4;
const ICV_BYTES: usize = 4;
const IV_BYTES: usize = 3;

/// RC4 is in OpenSSL's legacy provider, which is loaded once, into a separate library context, so that no other code
/// can use it.
fn rc4() -> Result<Cipher, ErrorStack> {
    static LEGACY: OnceLock<Result<(LibCtx, Provider), ErrorStack>> = OnceLock::new();
    let load = || {
        let library = LibCtx::new()?;
        let provider = Provider::load(Some(&library), "legacy")?;
        Ok((library, provider))
    };
    match LEGACY.get_or_init(load) {
        Ok((library, _)) => Cipher::fetch(Some(library), "RC4", None),
        Err(error) => Err(error.clone()),
    }
}

impl Wep {
    /// An end with a secret of 5 or 13 bytes and a key number of 0 to 3. The first frame has the IV after `iv`.
    pub fn new(secret: &[u8], key_id: u8, iv: u32) -> Result<Self, CipherError> {
        let mut context = CipherCtx::new()?;
        let key = [&[0; IV_BYTES], secret].concat();
        let rc4 = rc4()?;
        context.encrypt_init(Some(&rc4), None, None)?;
        context.set_key_length(key.len())?;
        Ok(Self { context, key, key_id: key_id & 3, iv })
    }

    /// RC4 under the IV, in place.
    fn rc4(&mut self, iv: [u8; IV_BYTES], data: &mut [u8]) -> Result<(), ErrorStack> {
        self.key[..IV_BYTES].copy_from_slice(&iv);
        // Only the key is set: fetching the cipher and setting its key length again would cost more than most frames.
        self.context.encrypt_init(None, Some(&self.key), None)?;
        let length = data.len();
        self.context.cipher_update_inplace(data, length)?;
        Ok(())
    }
}

impl FrameCipher for Wep {
    fn seal(&mut self, frame: &mut Vec<u8>) -> Result<(), CipherError> {
        // The standard lets the IV wrap around, which is what broke WEP.
        self.iv = (self.iv + 1) & 0x00ff_ffff;
        let [_, a, b, c] = self.iv.to_be_bytes();
        frame.extend(crc32fast::hash(frame).to_le_bytes());
        self.rc4([a, b, c], frame)?;
        frame.splice(..0, [a, b, c, self.key_id << 6]);
        Ok(())
    }

    fn open(&mut self, frame: &mut Vec<u8>) -> Result<(), CipherError> {
        let &[a, b, c, _, ref encrypted @ ..] = frame.as_slice() else {
            return Err(CipherError::Short(frame.len()));
        };
        let Some(body_bytes) = encrypted.len().checked_sub(ICV_BYTES) else {
            return Err(CipherError::Short(frame.len()));
        };
        frame.drain(..HEADER_BYTES);
        self.rc4([a, b, c], frame)?;
        let check = frame.split_off(body_bytes);
        if crc32fast::hash(frame).to_le_bytes() == check[..] { Ok(()) } else { Err(CipherError::Forged) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The WEP example of IEEE 802.11-2012 (annex M.6.2), which hostap and FreeBSD also test.
    const PLAIN: [u8; 86] = [
        0xaa, 0xaa, 0x03, 0x00, 0x00, 0x00, 0x08, 0x00, 0x45, 0x00, 0x00, 0x4e, 0x66, 0x1a, 0x00, 0x00, 0x80,
        0x11, 0xbe, 0x64, 0x0a, 0x00, 0x01, 0x22, 0x0a, 0xff, 0xff, 0xff, 0x00, 0x89, 0x00, 0x89, 0x00, 0x3a,
        0x00, 0x00, 0x80, 0xa6, 0x01, 0x10, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x45, 0x43,
        0x45, 0x4a, 0x45, 0x48, 0x45, 0x43, 0x46, 0x43, 0x45, 0x50, 0x46, 0x45, 0x45, 0x49, 0x45, 0x46, 0x46,
        0x43, 0x43, 0x41, 0x43, 0x41, 0x43, 0x41, 0x43, 0x41, 0x43, 0x41, 0x41, 0x41, 0x00, 0x00, 0x20, 0x00,
        0x01,
    ];
    const ENCRYPTED: [u8; 94] = [
        0xfb, 0x02, 0x9e, 0x80, 0xf6, 0x9c, 0x58, 0x06, 0xbd, 0x6c, 0xe8, 0x46, 0x26, 0xbc, 0xbe, 0xfb, 0x94,
        0x74, 0x65, 0x0a, 0xad, 0x1f, 0x79, 0x09, 0xb0, 0xf6, 0x4d, 0x5f, 0x58, 0xa5, 0x03, 0xa2, 0x58, 0xb7,
        0xed, 0x22, 0xeb, 0x0e, 0xa6, 0x49, 0x30, 0xd3, 0xa0, 0x56, 0xa5, 0x57, 0x42, 0xfc, 0xce, 0x14, 0x1d,
        0x48, 0x5f, 0x8a, 0xa8, 0x36, 0xde, 0xa1, 0x8d, 0xf4, 0x2c, 0x53, 0x80, 0x80, 0x5a, 0xd0, 0xc6, 0x1a,
        0x5d, 0x6f, 0x58, 0xf4, 0x10, 0x40, 0xb2, 0x4b, 0x7d, 0x1a, 0x69, 0x38, 0x56, 0xed, 0x0d, 0x43, 0x98,
        0xe7, 0xae, 0xe3, 0xbf, 0x0e, 0x2a, 0x2c, 0xa8, 0xf7,
    ];

    fn end() -> Wep {
        Wep::new(b"01234", 2, 0x00fb_029d).expect("OpenSSL is built with RC4")
    }

    #[test]
    fn frames_match_the_example_of_the_standard() {
        let mut frame = PLAIN.to_vec();
        end().seal(&mut frame).expect("any frame can be encrypted");
        assert_eq!(frame, ENCRYPTED);
        end().open(&mut frame).expect("what was encrypted decrypts");
        assert_eq!(frame, PLAIN);
    }

    #[test]
    fn every_frame_has_its_own_iv_and_damage_is_detected() {
        let (mut sender, mut receiver) = (end(), end());
        let mut frames = [PLAIN.to_vec(), PLAIN.to_vec()];
        for frame in &mut frames {
            sender.seal(frame).expect("any frame can be encrypted");
        }
        assert_ne!(frames[0], frames[1]);
        frames[1][40] ^= 1;
        receiver.open(&mut frames[0]).expect("what was encrypted decrypts");
        assert!(matches!(receiver.open(&mut frames[1]), Err(CipherError::Forged)));
        for length in 0..8 {
            assert!(matches!(receiver.open(&mut vec![0; length]), Err(CipherError::Short(_))));
        }
    }
}
