//! The block ciphers in CBC mode.

use super::ffi;
use crate::numbers::{BLOCK_BYTES, BulkCipher};
use libc::{c_int, c_long};
use std::mem::MaybeUninit;

/// Encrypts or decrypts whole blocks in place. A key of another length than the cipher's, or a partial block, is a bug
/// of this crate; the data is then not changed. `direction` is [`ffi::ENCRYPT`] or [`ffi::DECRYPT`].
pub fn cbc(cipher: BulkCipher, key: &[u8], iv: &[u8; 8], data: &mut [u8], direction: c_int) {
    let whole = data.len().is_multiple_of(BLOCK_BYTES) && key.len() == cipher.key_bytes();
    debug_assert!(whole, "{cipher} with {} key bytes, {} data bytes", key.len(), data.len());
    let Ok(length) = c_long::try_from(data.len()) else { return };
    if !whole || length == 0 {
        return;
    }
    let input = data.as_ptr();
    let output = data.as_mut_ptr();
    let mut iv = *iv;
    match cipher {
        BulkCipher::Null => {}
        BulkCipher::Rc5Cbc40 | BulkCipher::Rc5Cbc56 | BulkCipher::Rc5Cbc | BulkCipher::Rc5Cbc64 => {
            let rounds = cipher.rc5_rounds().unwrap_or(12).into();
            let mut schedule = MaybeUninit::uninit();
            // SAFETY: the key has the declared 16 bytes (`whole`). set_key fails only for keys of more than 255
            // bytes, and then the schedule is not used. Otherwise it writes the number of rounds, 12 or 16, and
            // the 2 * (rounds + 1) words that this number of rounds reads; the array has 34, enough for 16.
            // `length` bytes at `data` are readable and writable and consist of whole blocks, and encryption in
            // place is allowed; the IV has 8 bytes. No pointer is kept after the call.
            unsafe {
                if ffi::RC5_32_set_key(schedule.as_mut_ptr(), 16, key.as_ptr(), rounds) != 1 {
                    debug_assert!(false, "the key schedule of {cipher}");
                    return;
                }
                let schedule = schedule.as_mut_ptr();
                ffi::RC5_32_cbc_encrypt(input, output, length, schedule, iv.as_mut_ptr(), direction);
            }
        }
        BulkCipher::IdeaCbc40 | BulkCipher::IdeaCbc56 | BulkCipher::IdeaCbc | BulkCipher::IdeaCbc64 => {
            let mut encrypt = MaybeUninit::<ffi::IdeaKey>::uninit();
            let mut decrypt = MaybeUninit::<ffi::IdeaKey>::uninit();
            // SAFETY: the key has the 16 bytes that are read (`whole`). Both functions that fill a schedule cannot
            // fail, and each schedule is filled before its use. Data and IV as above.
            unsafe {
                ffi::IDEA_set_encrypt_key(key.as_ptr(), encrypt.as_mut_ptr());
                let schedule = if direction == ffi::ENCRYPT {
                    encrypt.as_mut_ptr()
                } else {
                    ffi::IDEA_set_decrypt_key(encrypt.as_mut_ptr(), decrypt.as_mut_ptr());
                    decrypt.as_mut_ptr()
                };
                ffi::IDEA_cbc_encrypt(input, output, length, schedule, iv.as_mut_ptr(), direction);
            }
        }
        BulkCipher::DesCbc40 | BulkCipher::DesCbc => {
            let mut schedule = MaybeUninit::<ffi::DesKey>::uninit();
            // SAFETY: the key has the 8 bytes that are read (`whole`). The function that fills the schedule cannot
            // fail. Data and IV as above.
            unsafe {
                ffi::DES_set_key_unchecked(key.as_ptr(), schedule.as_mut_ptr());
                let schedule = schedule.as_mut_ptr();
                ffi::DES_ncbc_encrypt(input, output, length, schedule, iv.as_mut_ptr(), direction);
            }
        }
        BulkCipher::TripleDesCbcEde => {
            let mut schedules = [const { MaybeUninit::<ffi::DesKey>::uninit() }; 3];
            let [first, second, third] = &mut schedules;
            // SAFETY: the key has 24 bytes (`whole`), 8 for each schedule. The function that fills the schedules
            // cannot fail. Data and IV as above.
            unsafe {
                ffi::DES_set_key_unchecked(key.as_ptr(), first.as_mut_ptr());
                ffi::DES_set_key_unchecked(key.as_ptr().add(8), second.as_mut_ptr());
                ffi::DES_set_key_unchecked(key.as_ptr().add(16), third.as_mut_ptr());
                ffi::DES_ede3_cbc_encrypt(
                    input,
                    output,
                    length,
                    first.as_mut_ptr(),
                    second.as_mut_ptr(),
                    third.as_mut_ptr(),
                    iv.as_mut_ptr(),
                    direction,
                );
            }
        }
    }
}
