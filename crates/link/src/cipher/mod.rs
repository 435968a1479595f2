//! Encryption of frames: WEP and CCMP.

#[cfg(feature = "openssl")]
mod ccmp;
#[cfg(feature = "openssl")]
mod wep;

#[cfg(feature = "openssl")]
pub use ccmp::{Ccmp, MacHeader};
#[cfg(feature = "openssl")]
pub use wep::Wep;

/// Bytes that WEP adds to a frame: IV and key number (4), ICV (4) (IEEE 802.11-1999, 8.2.5).
pub const WEP_OVERHEAD_BYTES: u32 = 8;

/// Bytes that CCMP adds to a frame: header (8), MIC (8) (IEEE 802.11-2012, 11.4.3.2).
pub const CCMP_OVERHEAD_BYTES: u32 = 16;

/// Encrypts or decrypts frames; one end of a link.
pub trait FrameCipher: Send {
    /// Replaces a frame body by its encrypted form, including the headers and check values of the encryption.
    fn seal(&mut self, frame: &mut Vec<u8>) -> Result<(), CipherError>;

    /// Replaces an encrypted frame body by the plain one.
    ///
    /// # Errors
    /// [`CipherError`] if it was damaged, forged or replayed; the content of `frame` is then unspecified.
    fn open(&mut self, frame: &mut Vec<u8>) -> Result<(), CipherError>;
}

#[derive(Debug, thiserror::Error)]
pub enum CipherError {
    #[error("the frame has {0} bytes, fewer than its encryption adds")]
    Short(usize),
    #[error("the check value is wrong")]
    Forged,
    #[error("packet number {number} does not follow {last}")]
    Replayed { number: u64, last: u64 },
    #[error("the packet numbers of this key are used up")]
    Exhausted,
    #[cfg(feature = "openssl")]
    #[error("OpenSSL: {0}")]
    OpenSsl(#[from] openssl::error::ErrorStack),
}
