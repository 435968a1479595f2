//! Protection of records: MAC, padding, encryption (§9.2.3), and the reverse.
//!
//! A peer cannot learn why a record was rejected: MAC and padding are checked in one pass, whose work
//! depends only on the record's length. See [`RecordDecryptor::decrypt`].

use crate::crypto::{Digest, Provider};
use crate::key_schedule::{RecordKeys, TrafficSecret};
use crate::numbers::{BLOCK_BYTES, BulkCipher, ContentType, HashAlgorithm};
use crate::record::{Record, RecordType, write_header};
use crate::replay::ReplayWindow;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq, ConstantTimeGreater};

/// Why a protected record was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The sequence number was received before, or is too old. This is not necessarily an attack.
    #[error("the record is a duplicate or too old")]
    Replayed,
    /// No record of this suite can have this length. (The length is not secret.)
    #[error("the record's length is impossible")]
    BadLength,
    /// Padding or MAC is wrong. The error does not state which one.
    #[error("the record does not authenticate")]
    BadRecord,
    /// The padding is wrong. Reported only if `Settings::distinguish_record_errors` is set.
    #[error("the record's padding is wrong")]
    BadPadding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all 65536 sequence numbers of the connection are used up")]
pub struct SequenceExhausted;

/// Protects the records that one side sends.
#[derive(Clone)]
pub struct RecordEncryptor {
    secret: TrafficSecret,
    keys: RecordKeys,
    next: u32,
}

impl RecordEncryptor {
    /// A write state at sequence number 0.
    pub fn new<P: Provider>(provider: &P, secret: TrafficSecret) -> Self {
        let keys = secret.record_keys(provider, 0);
        Self { secret, keys, next: 0 }
    }

    /// How many records can still be sent.
    pub fn numbers_left(&self) -> u32 {
        0x1_0000 - self.next
    }

    /// Returns the next number for an unencrypted record. No other record gets this number.
    pub fn take_number(&mut self) -> Result<u16, SequenceExhausted> {
        let sequence = u16::try_from(self.next).map_err(|_| SequenceExhausted)?;
        self.next += 1;
        Ok(sequence)
    }

    /// Appends a protected record to a datagram. Only the last record of a datagram may lack a length field.
    pub fn encrypt<P: Provider>(
        &mut self,
        provider: &P,
        datagram: &mut Vec<u8>,
        content: ContentType,
        fragment: &[u8],
        with_length: bool,
    ) -> Result<(), SequenceExhausted> {
        let sequence = self.take_number()?;
        if self.secret.refresh.interval_start(sequence) != self.keys.interval_start {
            self.keys = self.secret.record_keys(provider, sequence);
        }
        let suite = self.secret.suite;
        let record_type = RecordType::new(content, true, true, with_length);
        let content_bytes = fragment.len() + suite.mac.mac_bytes();
        let padding = match suite.bulk {
            BulkCipher::Null => 0,
            _ => BLOCK_BYTES - content_bytes % BLOCK_BYTES,
        };
        let length = (content_bytes + padding) as u16;
        write_header(datagram, record_type, sequence, length);
        let start = datagram.len();
        datagram.extend_from_slice(fragment);
        let mac = record_mac(provider, &self.secret, &self.keys, sequence, record_type, fragment);
        datagram.extend_from_slice(&mac[..suite.mac.mac_bytes()]);
        if padding > 0 {
            let iv = self.keys.record_iv(sequence);
            datagram.resize(start + content_bytes + padding, (padding - 1) as u8);
            provider.cbc_encrypt(suite.bulk, self.keys.key(), &iv, &mut datagram[start..]);
        }
        Ok(())
    }
}

fn record_mac<P: Provider>(
    provider: &P,
    secret: &TrafficSecret,
    keys: &RecordKeys,
    sequence: u16,
    record_type: RecordType,
    fragment: &[u8],
) -> Digest {
    if secret.suite.mac.mac_bytes() == 0 {
        return Digest::new(&[]);
    }
    let [high, low] = sequence.to_be_bytes();
    let [length_high, length_low] = (fragment.len() as u16).to_be_bytes();
    let header = [high, low, record_type.0, length_high, length_low];
    provider.hmac(secret.suite.hash(), keys.mac_secret(), &[&header, fragment])
}

/// Decrypts and authenticates the records of the other side.
pub struct RecordDecryptor {
    secret: TrafficSecret,
    current: RecordKeys,
    /// Keys of another interval, for records that arrive out of order near a key refresh.
    other: Option<RecordKeys>,
    window: ReplayWindow,
    /// The number of the next record without an explicit number.
    next_implicit: u32,
    distinguish_padding: bool,
}

impl RecordDecryptor {
    /// A read state at sequence number 0.
    pub fn new<P: Provider>(provider: &P, secret: TrafficSecret) -> Self {
        let current = secret.record_keys(provider, 0);
        let window = ReplayWindow::default();
        Self { secret, current, other: None, window, next_implicit: 0, distinguish_padding: false }
    }

    /// Reports wrong padding and a wrong MAC as different errors, as in the specification. An attacker who sees
    /// which alert was sent can decrypt records.
    pub fn distinguishing_padding(mut self, distinguish: bool) -> Self {
        self.distinguish_padding = distinguish;
        self
    }

    /// Whether a record with this number would be rejected as a duplicate or as too old.
    pub fn is_replay(&self, sequence: u16) -> bool {
        !self.window.may_accept(sequence)
    }

    /// Reads a record: decrypts it into `plaintext`, checks padding and MAC, then marks its number
    /// as seen. On any error the plaintext is left empty.
    ///
    /// The work, including the number of hash compressions, depends on the length of the record
    /// alone, not on its padding: wrong padding is treated as no padding, and the MAC is
    /// computed nevertheless. With long padding less content is hashed; the same amount of work is then done
    /// without use of the result.
    pub fn decrypt<P: Provider>(
        &mut self,
        provider: &P,
        record: &Record<'_>,
        plaintext: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        plaintext.clear();
        let sequence = match record.sequence {
            Some(sequence) => sequence,
            None => u16::try_from(self.next_implicit).map_err(|_| RecordError::Replayed)?,
        };
        if !self.window.may_accept(sequence) {
            return Err(RecordError::Replayed);
        }
        let suite = self.secret.suite;
        let mac_bytes = suite.mac.mac_bytes();
        let is_block = suite.bulk != BulkCipher::Null;
        let length = record.fragment.len();
        let least = mac_bytes + usize::from(is_block);
        if length < least || (is_block && !length.is_multiple_of(BLOCK_BYTES)) {
            return Err(RecordError::BadLength);
        }

        plaintext.extend_from_slice(record.fragment);
        self.select_keys(provider, sequence);
        let keys = &self.current;
        let mut good = Choice::from(1);
        let mut content_bytes = length - mac_bytes;
        if is_block {
            let iv = keys.record_iv(sequence);
            provider.cbc_decrypt(suite.bulk, keys.key(), &iv, plaintext);
            let padding = check_padding(plaintext, mac_bytes);
            good &= padding.good;
            content_bytes = length - mac_bytes - 1 - usize::from(padding.bytes);
        }
        let received = copy_mac(plaintext, content_bytes, mac_bytes);
        let fragment = &plaintext[..content_bytes];
        let record_type = record.record_type;
        let mac = record_mac(provider, &self.secret, keys, sequence, record_type, fragment);
        if is_block && mac_bytes > 0 {
            let hash = suite.hash();
            equalise(provider, hash, content_bytes, length - mac_bytes - 1);
        }
        let authentic = mac[..mac_bytes].ct_eq(&received[..mac_bytes]);
        if !bool::from(good & authentic) {
            plaintext.clear();
            let padding_was_it = self.distinguish_padding && !bool::from(good);
            return Err(if padding_was_it { RecordError::BadPadding } else { RecordError::BadRecord });
        }
        plaintext.truncate(content_bytes);
        self.window.mark(sequence);
        self.next_implicit = u32::from(sequence) + 1;
        Ok(())
    }

    /// Sets the current keys to those of the interval of a number. The previous keys are kept, so that records
    /// near a key refresh may arrive out of order.
    fn select_keys<P: Provider>(&mut self, provider: &P, sequence: u16) {
        let start = self.secret.refresh.interval_start(sequence);
        if self.current.interval_start != start {
            let found = match self.other.take() {
                Some(other) if other.interval_start == start => other,
                _ => self.secret.record_keys(provider, sequence),
            };
            self.other = Some(core::mem::replace(&mut self.current, found));
        }
    }
}

struct Padding {
    good: Choice,
    /// The value of the last byte if the padding is valid, else 0.
    bytes: u8,
}

/// Checks padding without a branch that depends on it. Valid padding: all padding bytes equal the last byte,
/// and there is space for the MAC before the padding.
fn check_padding(plaintext: &[u8], mac_bytes: usize) -> Padding {
    let Some((&claimed, before)) = plaintext.split_last() else {
        return Padding { good: Choice::from(0), bytes: 0 };
    };
    let room = (before.len() - mac_bytes).min(255) as u8;
    let mut good = !claimed.ct_gt(&room);
    for (index, byte) in before.iter().rev().take(room.into()).enumerate() {
        let is_padding = claimed.ct_gt(&(index as u8));
        good &= !is_padding | byte.ct_eq(&claimed);
    }
    Padding { good, bytes: u8::conditional_select(&0, &claimed, good) }
}

/// Copies the MAC after the content. Every byte that can be part of the MAC is read.
///
/// The bytes are written to an array of the MAC's length. The place of a byte in the array depends only on its position
/// modulo this length, not on where the MAC begins. Then the array is rotated to the beginning of the MAC, in steps of
/// powers of two. The memory accesses do not depend on `content_bytes`.
fn copy_mac(plaintext: &[u8], content_bytes: usize, mac_bytes: usize) -> [u8; 20] {
    let mut mac = [0; 20];
    if mac_bytes == 0 {
        return mac;
    }
    let first = plaintext.len().saturating_sub(mac_bytes + 256);
    let (begin, end) = (content_bytes as u32, (content_bytes + mac_bytes) as u32);
    let mut place = 0;
    let mut turn = 0;
    for (index, byte) in plaintext.iter().enumerate().skip(first) {
        let index = index as u32;
        let in_mac = mask_below(index, end) & !mask_below(index, begin);
        let is_first = in_mac & mask_below(index, begin + 1);
        mac[place] |= byte & in_mac;
        turn |= place as u8 & is_first;
        place += 1;
        if place == mac_bytes {
            place = 0;
        }
    }
    for power in 0..5 {
        let mask = core::hint::black_box((turn >> power & 1).wrapping_neg());
        let before = mac;
        for (place, byte) in mac[..mac_bytes].iter_mut().enumerate() {
            *byte ^= mask & (*byte ^ before[(place + (1 << power)) % mac_bytes]);
        }
    }
    mac
}

/// All ones if `one` is below `other`, else all zeros. Both must be below 2^31.
#[inline(always)]
fn mask_below(one: u32, other: u32) -> u8 {
    // Hides the value from the compiler, so that it does not generate a branch.
    core::hint::black_box(((one.wrapping_sub(other) >> 31) as u8).wrapping_neg())
}

/// Hashes the number of blocks that HMAC would hash in addition if the content had its maximum length.
fn equalise<P: Provider>(provider: &P, hash: HashAlgorithm, content: usize, longest: usize) {
    // The inner hash processes a key block, five bytes of header, the content, and at least nine bytes of hash padding.
    let blocks = |content: usize| (64 + 5 + content + 9).div_ceil(64);
    // A hash of 64n - 9 bytes takes n compressions. For zero compressions no hash is computed.
    if let Some(missing) = (blocks(longest) - blocks(content)).checked_sub(1) {
        const ZEROS: [u8; 320] = [0; 320];
        let digest = provider.digest(hash, &[&ZEROS[..64 * (missing + 1) - 9]]);
        core::hint::black_box(digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_is_found_at_any_position() {
        for length in [20, 40, 48, 300, 600] {
            let plaintext: Vec<u8> = (0..length).map(|place| (place * 37 % 251) as u8).collect();
            for mac_bytes in [0, 5, 10, 16, 20] {
                // Padding has at most 256 bytes.
                let first = plaintext.len().saturating_sub(mac_bytes + 256);
                for content_bytes in first..=plaintext.len() - mac_bytes {
                    let mac = copy_mac(&plaintext, content_bytes, mac_bytes);
                    assert_eq!(mac[..mac_bytes], plaintext[content_bytes..content_bytes + mac_bytes]);
                }
            }
        }
    }
}
