//! CCMP (IEEE 802.11-2012, section 11.4.3): AES-128 in CCM mode, an 8-byte MIC, a 48-bit packet number.

use super::{CipherError, FrameCipher};
use openssl::cipher::Cipher;
use openssl::cipher_ctx::CipherCtx;

/// The fields of an 802.11 header (three addresses, no QoS) that CCMP authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacHeader(pub [u8; 24]);

impl MacHeader {
    /// A data frame from a station to its access point.
    pub fn data(receiver: [u8; 6], sender: [u8; 6], destination: [u8; 6]) -> Self {
        let mut header = [0; 24];
        header[..2].copy_from_slice(&[0x08, 0x41]);
        header[4..10].copy_from_slice(&receiver);
        header[10..16].copy_from_slice(&sender);
        header[16..22].copy_from_slice(&destination);
        Self(header)
    }

    /// Additional authenticated data: the header, with the fields that may change in transit masked (11.4.3.3.3).
    fn authenticated(&self) -> [u8; 22] {
        let mut data = [0; 22];
        data[0] = self.0[0] & 0x8f;
        data[1] = self.0[1] & 0xc7 | 0x40;
        data[2..20].copy_from_slice(&self.0[4..22]);
        data[20] = self.0[22] & 0x0f;
        data
    }

    /// Priority 0, sender, packet number (11.4.3.3.4).
    fn nonce(&self, number: u64) -> [u8; 13] {
        let mut nonce = [0; 13];
        nonce[1..7].copy_from_slice(&self.0[10..16]);
        nonce[7..].copy_from_slice(&number.to_be_bytes()[2..]);
        nonce
    }
}

pub struct Ccmp {
    context: CipherCtx,
    aes: Cipher,
    key: [u8; 16],
    key_id: u8,
    header: MacHeader,
    sent: u64,
    received: u64,
    output: Vec<u8>,
}

const HEADER_BYTES: usize = 8;
const MIC_BYTES: usize = 8;
const MAX_NUMBER: u64 = (1 << 48) - 1;

impl Ccmp {
    /// An end with a temporal key. The first frame sent has the packet number after `sent`.
    pub fn new(key: [u8; 16], key_id: u8, header: MacHeader, sent: u64) -> Result<Self, CipherError> {
        let (context, aes) = (CipherCtx::new()?, Cipher::fetch(None, "AES-128-CCM", None)?);
        Ok(Self { context, aes, key, key_id: key_id & 3, header, sent, received: 0, output: Vec::new() })
    }
}

impl FrameCipher for Ccmp {
    fn seal(&mut self, frame: &mut Vec<u8>) -> Result<(), CipherError> {
        if self.sent >= MAX_NUMBER {
            return Err(CipherError::Exhausted);
        }
        self.sent += 1;
        let [_, _, pn5, pn4, pn3, pn2, pn1, pn0] = self.sent.to_be_bytes();
        let output = &mut self.output;
        output.clear();
        output.extend([pn0, pn1, 0, 0x20 | self.key_id << 6, pn2, pn3, pn4, pn5]);
        output.resize(HEADER_BYTES + frame.len() + MIC_BYTES, 0);
        let (encrypted, mic) = output[HEADER_BYTES..].split_at_mut(frame.len());
        let context = &mut self.context;
        context.encrypt_init(Some(&self.aes), None, None)?;
        context.set_iv_length(13)?;
        context.set_tag_length(MIC_BYTES)?;
        context.encrypt_init(None, Some(&self.key), Some(&self.header.nonce(self.sent)))?;
        context.set_data_len(frame.len())?;
        context.cipher_update(&self.header.authenticated(), None)?;
        context.cipher_update(frame, Some(encrypted))?;
        context.tag(mic)?;
        std::mem::swap(frame, output);
        Ok(())
    }

    fn open(&mut self, frame: &mut Vec<u8>) -> Result<(), CipherError> {
        if frame.len() < HEADER_BYTES + MIC_BYTES {
            return Err(CipherError::Short(frame.len()));
        }
        let number = u64::from_be_bytes([0, 0, frame[7], frame[6], frame[5], frame[4], frame[1], frame[0]]);
        let (encrypted, mic) = frame[HEADER_BYTES..].split_at(frame.len() - HEADER_BYTES - MIC_BYTES);
        let output = &mut self.output;
        output.clear();
        output.resize(encrypted.len(), 0);
        let context = &mut self.context;
        context.decrypt_init(Some(&self.aes), None, None)?;
        context.set_iv_length(13)?;
        context.set_tag(mic)?;
        context.decrypt_init(None, Some(&self.key), Some(&self.header.nonce(number)))?;
        context.set_data_len(encrypted.len())?;
        context.cipher_update(&self.header.authenticated(), None)?;
        if context.cipher_update(encrypted, Some(output)).is_err() {
            return Err(CipherError::Forged);
        }
        // Only a verified frame advances the counter (11.4.3.4.4).
        if number <= self.received {
            return Err(CipherError::Replayed { number, last: self.received });
        }
        self.received = number;
        std::mem::swap(frame, output);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The CCMP example of IEEE 802.11-2012 (annex M.6.4), which hostap and others also test.
    const KEY: [u8; 16] =
        [0xc9, 0x7c, 0x1f, 0x67, 0xce, 0x37, 0x11, 0x85, 0x51, 0x4a, 0x8a, 0x19, 0xf2, 0xbd, 0xd5, 0x2f];
    const NUMBER: u64 = 0xb503_9776_e70c;
    const HEADER: MacHeader = MacHeader([
        0x08, 0x48, 0xc3, 0x2c, 0x0f, 0xd2, 0xe1, 0x28, 0xa5, 0x7c, 0x50, 0x30, 0xf1, 0x84, 0x44, 0x08, 0xab,
        0xae, 0xa5, 0xb8, 0xfc, 0xba, 0x80, 0x33,
    ]);
    const PLAIN: [u8; 20] = [
        0xf8, 0xba, 0x1a, 0x55, 0xd0, 0x2f, 0x85, 0xae, 0x96, 0x7b, 0xb6, 0x2f, 0xb6, 0xcd, 0xa8, 0xeb, 0x7e,
        0x78, 0xa0, 0x50,
    ];
    const ENCRYPTED: [u8; 36] = [
        0x0c, 0xe7, 0x00, 0x20, 0x76, 0x97, 0x03, 0xb5, 0xf3, 0xd0, 0xa2, 0xfe, 0x9a, 0x3d, 0xbf, 0x23, 0x42,
        0xa6, 0x43, 0xe4, 0x32, 0x46, 0xe8, 0x0c, 0x3c, 0x04, 0xd0, 0x19, 0x78, 0x45, 0xce, 0x0b, 0x16, 0xf9,
        0x76, 0x23,
    ];

    fn end() -> Ccmp {
        Ccmp::new(KEY, 0, HEADER, NUMBER - 1).expect("OpenSSL has AES-CCM")
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
    fn damaged_and_replayed_frames_are_refused() {
        let (mut sender, mut receiver) = (end(), end());
        let mut frame = PLAIN.to_vec();
        sender.seal(&mut frame).expect("any frame can be encrypted");
        let copy = frame.clone();
        for position in [0, 8, 20, 35] {
            let mut damaged = copy.clone();
            damaged[position] ^= 1;
            assert!(matches!(receiver.open(&mut damaged), Err(CipherError::Forged)), "byte {position}");
        }
        receiver.open(&mut frame).expect("what was encrypted decrypts");
        assert!(matches!(receiver.open(&mut copy.clone()), Err(CipherError::Replayed { .. })));
        assert!(matches!(receiver.open(&mut vec![0; 15]), Err(CipherError::Short(15))));
    }
}
