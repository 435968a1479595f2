//! Keys that both ends derive from the handshake, and the messages that they protect after it.
//!
//! 64 bytes are exported (RFC 5705, RFC 8446 section 7.5): one AES-128-GCM key for each sender in each plane. The nonce
//! is the number of the message, which is not sent because the stream keeps the order.

use crate::message::{MAX_DATA_BYTES, Plane};
use aes_gcm::aead::Aead;
use aes_gcm::{Aes128Gcm, KeyInit, Nonce};
use shakedown_trace::{Endpoint, ExportError, Side};

/// Label of the export; no context.
pub const LABEL: &str = "EXPORTER-AKA-SSL-keys";
const KEY_BYTES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message that the derived keys do not decrypt")]
pub struct Unprotected;

/// One end of the communication that derived keys protect.
pub struct Channel {
    side: Side,
    ciphers: [Aes128Gcm; 4],
    counts: [u64; 4],
}

fn place(sender: Side, plane: Plane) -> usize {
    2 * usize::from(sender == Side::Server) + usize::from(plane == Plane::User)
}

fn nonce(count: u64) -> Nonce<aes_gcm::aead::consts::U12> {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&count.to_be_bytes());
    nonce.into()
}

impl Channel {
    pub fn derive(endpoint: &impl Endpoint) -> Result<Self, ExportError> {
        let mut keys = [0; 4 * KEY_BYTES];
        endpoint.export_keying_material(&mut keys, LABEL, None)?;
        Ok(Self::new(endpoint.side(), &keys))
    }

    /// One end with exported keys.
    pub fn new(side: Side, keys: &[u8; 4 * KEY_BYTES]) -> Self {
        let cipher = |place: usize| {
            let mut key = [0; KEY_BYTES];
            key.copy_from_slice(&keys[KEY_BYTES * place..][..KEY_BYTES]);
            Aes128Gcm::new(&key.into())
        };
        Self { side, ciphers: [cipher(0), cipher(1), cipher(2), cipher(3)], counts: [0; 4] }
    }

    /// Encrypts a message of this end.
    ///
    /// # Errors
    /// [`Unprotected`] for more than [`MAX_DATA_BYTES`], which exceed a message, and after 2⁶⁴ messages; the state is
    /// then unchanged.
    pub fn seal(&mut self, plane: Plane, data: &[u8]) -> Result<Vec<u8>, Unprotected> {
        if data.len() > MAX_DATA_BYTES {
            return Err(Unprotected);
        }
        let place = place(self.side, plane);
        let sealed = self.ciphers[place].encrypt(&nonce(self.counts[place]), data);
        self.counts[place] = self.counts[place].checked_add(1).ok_or(Unprotected)?;
        sealed.map_err(|_| Unprotected)
    }

    /// Decrypts the next message of the other end.
    ///
    /// # Errors
    /// [`Unprotected`]; the state is then unchanged.
    pub fn open(&mut self, plane: Plane, sealed: &[u8]) -> Result<Vec<u8>, Unprotected> {
        let place = place(self.side.peer(), plane);
        let next = self.counts[place].checked_add(1).ok_or(Unprotected)?;
        let data = self.ciphers[place].decrypt(&nonce(self.counts[place]), sealed);
        let data = data.map_err(|_| Unprotected)?;
        self.counts[place] = next;
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pair() -> (Channel, Channel) {
        let keys: [u8; 64] = std::array::from_fn(|place| u8::try_from(place).unwrap());
        (Channel::new(Side::Client, &keys), Channel::new(Side::Server, &keys))
    }

    #[test]
    fn messages_decrypt_once_in_order_and_in_their_plane() {
        let (mut mobile, mut sgsn) = pair();
        let first = mobile.seal(Plane::User, b"one").unwrap();
        let second = mobile.seal(Plane::User, b"two").unwrap();
        assert_eq!(first.len(), 3 + crate::message::TAG_BYTES);
        assert_eq!(sgsn.open(Plane::User, &second), Err(Unprotected), "out of order");
        assert_eq!(sgsn.open(Plane::Signalling, &first), Err(Unprotected), "the other plane");
        assert_eq!(mobile.open(Plane::User, &first), Err(Unprotected), "reflected");
        assert_eq!(sgsn.open(Plane::User, &first).unwrap(), b"one");
        assert_eq!(sgsn.open(Plane::User, &first), Err(Unprotected), "replayed");
        assert_eq!(sgsn.open(Plane::User, &second).unwrap(), b"two");
    }

    #[test]
    fn oversized_data_is_not_encrypted_and_not_counted() {
        let (mut mobile, mut sgsn) = pair();
        assert_eq!(mobile.seal(Plane::User, &vec![0; MAX_DATA_BYTES + 1]), Err(Unprotected));
        let most = mobile.seal(Plane::User, &vec![7; MAX_DATA_BYTES]).unwrap();
        assert_eq!(most.len(), usize::from(u16::MAX));
        assert_eq!(sgsn.open(Plane::User, &most).unwrap().len(), MAX_DATA_BYTES);
    }
}
