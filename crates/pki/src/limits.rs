//! Limits on user-supplied files, and how errors quote their content.

use crate::error::PkiError;
use crate::input;
use crate::name::printable;
use std::path::Path;

/// Size of a file of certificates and keys.
pub const MAX_FILE_BYTES: u64 = 16 << 20;
pub const MAX_PROFILE_BYTES: u64 = 1 << 20;
/// Certificates, keys and other blocks of a file; more than in the root lists of operating systems.
pub const MAX_BLOCKS: usize = 1000;
/// Certificates of a chain, including the root; OpenSSL's default.
pub const MAX_CHAIN: usize = 100;
/// Characters of user-supplied text that an error quotes.
const MAX_QUOTED: usize = 120;

pub(crate) fn read_profile(path: &Path) -> Result<String, PkiError> {
    let fail = |source| PkiError::File { path: path.into(), action: "reading", source };
    let bytes = input::read(path, MAX_PROFILE_BYTES).map_err(fail)?;
    let bytes =
        bytes.ok_or_else(|| PkiError::TooLarge { path: path.into(), max_kib: MAX_PROFILE_BYTES >> 10 })?;
    String::from_utf8(bytes)
        .map_err(|error| fail(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))
}

/// User-supplied text as quoted in an error: on one line, with a limited length.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => printable(&text[..end]) + "…",
        None => printable(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_one_line_of_limited_length() {
        assert_eq!(quoted("a\nb\u{1b}[31m — ü"), "a\\nb\\u{1b}[31m — ü");
        let long = quoted(&"9".repeat(5000));
        assert_eq!(long.chars().count(), MAX_QUOTED + 1);
        assert!(long.ends_with("9…"));
    }
}
