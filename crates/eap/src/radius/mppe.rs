//! The attributes that carry the two halves of the MSK to the access point (RFC 2548 section 2.4).

use super::{AUTHENTICATOR_BYTES, Authenticator, BuildError, Builder, Packet, Secret, attribute};
use crate::keys::Msk;

const MICROSOFT: [u8; 4] = 311_u32.to_be_bytes();
const SEND_KEY: u8 = 16;
const RECV_KEY: u8 = 17;
const SALT_BYTES: usize = 2;
const KEY_BYTES: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MppeError {
    #[error("the answer has no {0}")]
    Missing(&'static str),
    #[error("the {0} does not decrypt to a key of {KEY_BYTES} bytes")]
    Malformed(&'static str),
}

/// Adds an MSK to a response: its first half is MS-MPPE-Recv-Key, its second MS-MPPE-Send-Key (RFC 5216 section 2.3).
/// `salts` are random; this function makes them different.
pub fn add_msk(
    builder: &mut Builder,
    msk: &Msk,
    secret: &Secret,
    request: &Authenticator,
    salts: [u8; SALT_BYTES],
) -> Result<(), BuildError> {
    // The first bit is set, and all salts of a packet are different.
    let first = [salts[0] | 0x80, salts[1]];
    let second = [first[0], first[1] ^ 1];
    let (recv, send) = msk.split_at(KEY_BYTES);
    for (kind, key, salt) in [(RECV_KEY, recv, first), (SEND_KEY, send, second)] {
        let hidden = encrypt(secret, request, salt, key);
        let mut value = MICROSOFT.to_vec();
        value.extend([kind, u8::try_from(hidden.len() + 2).unwrap_or(u8::MAX)]);
        value.extend(hidden);
        builder.add(attribute::VENDOR_SPECIFIC, &value)?;
    }
    Ok(())
}

/// Decrypts the MSK of a response whose authenticators have been verified.
pub fn take_msk(packet: &Packet<'_>, secret: &Secret, request: &Authenticator) -> Result<Msk, MppeError> {
    let mut msk: Msk = [0; 2 * KEY_BYTES];
    let keys = [(RECV_KEY, "MS-MPPE-Recv-Key"), (SEND_KEY, "MS-MPPE-Send-Key")];
    for ((kind, name), half) in keys.into_iter().zip(msk.chunks_exact_mut(KEY_BYTES)) {
        let hidden = vendor_value(packet, kind).ok_or(MppeError::Missing(name))?;
        let clear = decrypt(secret, request, hidden).filter(|clear| clear.len() == KEY_BYTES);
        half.copy_from_slice(&clear.ok_or(MppeError::Malformed(name))?);
    }
    Ok(msk)
}

fn vendor_value<'a>(packet: &Packet<'a>, kind: u8) -> Option<&'a [u8]> {
    packet.all(attribute::VENDOR_SPECIFIC).filter_map(|value| value.strip_prefix(&MICROSOFT)).find_map(
        |mut rest| {
            while let [found, length, ..] = *rest {
                let value = rest.get(2..usize::from(length))?;
                if found == kind {
                    return Some(value);
                }
                rest = rest.get(usize::from(length).max(2)..)?;
            }
            None
        },
    )
}

/// The salt, then the encrypted blocks: the key after its length, padded with zeros.
fn encrypt(secret: &Secret, request: &Authenticator, salt: [u8; SALT_BYTES], key: &[u8]) -> Vec<u8> {
    let mut clear = vec![u8::try_from(key.len()).unwrap_or(u8::MAX)];
    clear.extend(key);
    clear.resize(clear.len().next_multiple_of(AUTHENTICATOR_BYTES), 0);
    let mut hidden = salt.to_vec();
    for block in clear.chunks(AUTHENTICATOR_BYTES) {
        let stream = stream(secret, request, salt, &hidden[SALT_BYTES..]);
        hidden.extend(block.iter().zip(stream).map(|(byte, other)| byte ^ other));
    }
    hidden
}

fn decrypt(secret: &Secret, request: &Authenticator, hidden: &[u8]) -> Option<Vec<u8>> {
    let (salt, hidden) = hidden.split_first_chunk::<SALT_BYTES>()?;
    if hidden.is_empty() || hidden.len() % AUTHENTICATOR_BYTES != 0 {
        return None;
    }
    let mut clear = Vec::with_capacity(hidden.len());
    for (place, block) in hidden.chunks(AUTHENTICATOR_BYTES).enumerate() {
        let stream = stream(secret, request, *salt, &hidden[..place * AUTHENTICATOR_BYTES]);
        clear.extend(block.iter().zip(stream).map(|(byte, other)| byte ^ other));
    }
    let length = usize::from(*clear.first()?);
    clear.get(1..=length).map(<[u8]>::to_vec)
}

/// The key stream of the block after `before`.
fn stream(
    secret: &Secret,
    request: &Authenticator,
    salt: [u8; SALT_BYTES],
    before: &[u8],
) -> [u8; AUTHENTICATOR_BYTES] {
    match before.last_chunk::<AUTHENTICATOR_BYTES>() {
        None => secret.digest(&[request, &salt]),
        Some(last) => secret.digest(&[last]),
    }
}
