//! Reads certificates and keys in the usual formats: PEM, DER, PKCS #12.

use crate::input;
use crate::limits::{MAX_BLOCKS, MAX_FILE_BYTES};
use openssl::error::ErrorStack;
use openssl::pkcs12::Pkcs12;
use openssl::pkey::{PKey, Private};
use openssl::x509::X509;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Base 64 between dashed lines.
    Pem,
    /// The binary encoding, as on the wire.
    Der,
    /// Keys and certificates together, under a password.
    Pkcs12,
    /// The binary encoding of WTLS, as on the wire.
    Wtls,
}

/// The content of a file of certificates and keys.
pub struct CredentialFile {
    pub format: Format,
    /// Certificates in the file's order.
    pub certificates: Vec<X509>,
    /// The first private key.
    pub key: Option<PKey<Private>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{}: {}", path.display(), crate::error::words(.source))]
    File { path: PathBuf, source: std::io::Error },

    #[error("{}: larger than {} MiB; accepted: certificates and keys", path.display(), MAX_FILE_BYTES >> 20)]
    TooLarge { path: PathBuf },

    #[error("{}: holds more than {MAX_BLOCKS} certificates or other blocks; accepted: at most that many", path.display())]
    TooMany { path: PathBuf },

    #[error("{}: unreadable as certificates or keys; accepted: PEM, DER, PKCS #12", path.display())]
    Unreadable { path: PathBuf },

    #[error("{}: holds no certificate; accepted: PEM, DER, PKCS #12", path.display())]
    NoCertificate { path: PathBuf },

    #[error("{}: holds no private key; accepted: PEM, DER, PKCS #12", path.display())]
    NoKey { path: PathBuf },

    #[error("{}: certificate {place} (line {line}) is unreadable: {reason}", path.display())]
    BadCertificate { path: PathBuf, place: usize, line: usize, reason: String },

    #[error("{}: the private key (line {line}) is unreadable: {reason}", path.display())]
    BadKey { path: PathBuf, line: usize, reason: String },

    #[error("{}: is protected by a password, and none was given", path.display())]
    PasswordNeeded { path: PathBuf },

    #[error("{}: the password is wrong", path.display())]
    WrongPassword { path: PathBuf },
}

impl CredentialFile {
    /// Reads a file.
    pub fn load(path: &Path, password: Option<&str>) -> Result<Self, ReadError> {
        Self::read(&read_bytes(path)?, path, password)
    }

    /// The certificates of a file, at least one.
    pub fn load_certificates(path: &Path, password: Option<&str>) -> Result<Vec<X509>, ReadError> {
        let certificates = Self::load(path, password)?.certificates;
        if certificates.is_empty() {
            return Err(ReadError::NoCertificate { path: path.into() });
        }
        Ok(certificates)
    }

    /// The first private key of a file.
    pub fn load_key(path: &Path, password: Option<&str>) -> Result<PKey<Private>, ReadError> {
        Self::load(path, password)?.key.ok_or_else(|| ReadError::NoKey { path: path.into() })
    }

    /// Reads the content of a file; `path` is its name in errors.
    pub fn read(bytes: &[u8], path: &Path, password: Option<&str>) -> Result<Self, ReadError> {
        if let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| text.contains("-----BEGIN ")) {
            return read_pem(text, path, password);
        }
        if let Some(certificates) = read_der_certificates(bytes, path)? {
            return Ok(Self { format: Format::Der, certificates, key: None });
        }
        if let Ok(archive) = Pkcs12::from_der(bytes) {
            return read_pkcs12(&archive, path, password);
        }
        if let Ok(key) = PKey::private_key_from_der(bytes) {
            return Ok(Self { format: Format::Der, certificates: Vec::new(), key: Some(key) });
        }
        read_protected_key(bytes, path, password)
    }
}

/// The bytes of a file of certificates or keys, within the size limit.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let bytes =
        input::read(path, MAX_FILE_BYTES).map_err(|source| ReadError::File { path: path.into(), source })?;
    bytes.ok_or_else(|| ReadError::TooLarge { path: path.into() })
}

/// Consecutive certificates up to the last byte; `None` for anything else.
fn read_der_certificates(bytes: &[u8], path: &Path) -> Result<Option<Vec<X509>>, ReadError> {
    let mut certificates = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        // OpenSSL reads one certificate and ignores the rest; its length is that of its encoding.
        let Some((certificate, left)) = X509::from_der(rest).ok().and_then(|certificate| {
            let taken = certificate.to_der().ok()?.len();
            Some((certificate, rest.get(taken..)?))
        }) else {
            return Ok(None);
        };
        if certificates.len() == MAX_BLOCKS {
            return Err(ReadError::TooMany { path: path.into() });
        }
        certificates.push(certificate);
        rest = left;
    }
    Ok((!certificates.is_empty()).then_some(certificates))
}

fn read_pem(text: &str, path: &Path, password: Option<&str>) -> Result<CredentialFile, ReadError> {
    let mut certificates = Vec::new();
    let mut key = None;
    for (count, block) in pem_blocks(text).enumerate() {
        if count == MAX_BLOCKS {
            return Err(ReadError::TooMany { path: path.into() });
        }
        match block.label {
            "CERTIFICATE" | "X509 CERTIFICATE" | "TRUSTED CERTIFICATE" => {
                certificates.push(X509::from_pem(block.text.as_bytes()).map_err(|error| {
                    ReadError::BadCertificate {
                        path: path.into(),
                        place: certificates.len() + 1,
                        line: block.line,
                        reason: reason(&error),
                    }
                })?);
            }
            label if label.ends_with("PRIVATE KEY") && key.is_none() => {
                key = Some(read_pem_key(&block, path, password)?);
            }
            _ => {}
        }
    }
    if certificates.is_empty() && key.is_none() {
        return Err(ReadError::Unreadable { path: path.into() });
    }
    Ok(CredentialFile { format: Format::Pem, certificates, key })
}

/// One block of a PEM text, its dashed lines included.
struct Block<'a> {
    label: &'a str,
    line: usize,
    text: &'a str,
}

/// The blocks of a PEM text; one without an end extends to the beginning of the next, or to the end of the text.
fn pem_blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    const BEGIN: &str = "-----BEGIN ";
    let mut starts = text.match_indices(BEGIN).map(|found| found.0).peekable();
    let (mut line, mut counted) = (1, 0);
    std::iter::from_fn(move || {
        let start = starts.next()?;
        let rest = &text[start..starts.peek().copied().unwrap_or(text.len())];
        // Line numbers continue from the previous block.
        line += text[counted..start].matches('\n').count();
        counted = start;
        let label = rest[BEGIN.len()..].split("-----").next().unwrap_or("");
        let end = format!("-----END {label}-----");
        let length = rest.find(&end).map_or(rest.len(), |at| at + end.len());
        Some(Block { label, line, text: &rest[..length] })
    })
}

/// Copies the password to OpenSSL's buffer and returns its length. Without a password, OpenSSL gets an empty one, and
/// the caller checks the result.
fn give(password: Option<&str>, buffer: &mut [u8]) -> usize {
    let bytes = password.unwrap_or_default().as_bytes();
    let length = bytes.len().min(buffer.len());
    buffer[..length].copy_from_slice(&bytes[..length]);
    length
}

fn read_pem_key(block: &Block<'_>, path: &Path, password: Option<&str>) -> Result<PKey<Private>, ReadError> {
    let mut asked = false;
    let result = PKey::private_key_from_pem_callback(block.text.as_bytes(), |buffer| {
        asked = true;
        Ok(give(password, buffer))
    });
    let path = path.to_path_buf();
    result.map_err(|error| match (asked, password) {
        (true, None) => ReadError::PasswordNeeded { path },
        (true, Some(_)) => ReadError::WrongPassword { path },
        _ => ReadError::BadKey { path, line: block.line, reason: reason(&error) },
    })
}

/// Reads encrypted PKCS #8 in DER, the last format that is tried.
fn read_protected_key(
    bytes: &[u8],
    path: &Path,
    password: Option<&str>,
) -> Result<CredentialFile, ReadError> {
    let mut asked = false;
    let result = PKey::private_key_from_pkcs8_callback(bytes, |buffer| {
        asked = true;
        Ok(give(password, buffer))
    });
    let path = path.to_path_buf();
    match (result, asked, password) {
        (Ok(key), ..) => Ok(CredentialFile { format: Format::Der, certificates: Vec::new(), key: Some(key) }),
        (Err(_), true, None) => Err(ReadError::PasswordNeeded { path }),
        (Err(_), true, Some(_)) => Err(ReadError::WrongPassword { path }),
        (Err(_), false, _) => Err(ReadError::Unreadable { path }),
    }
}

fn read_pkcs12(archive: &Pkcs12, path: &Path, password: Option<&str>) -> Result<CredentialFile, ReadError> {
    let wrong = || match password {
        Some(_) => ReadError::WrongPassword { path: path.into() },
        None => ReadError::PasswordNeeded { path: path.into() },
    };
    let given = password.unwrap_or_default();
    if given.contains('\0') {
        return Err(wrong());
    }
    let parsed = archive.parse2(given).or_else(|first| {
        // Older archives are encrypted with RC2, which is in OpenSSL's legacy provider.
        match openssl::provider::Provider::try_load(None, "legacy", true) {
            Ok(_provider) => archive.parse2(given),
            Err(_) => Err(first),
        }
    });
    let parsed = parsed.map_err(|error| {
        let unsupported =
            error.errors().iter().any(|error| error.reason().is_some_and(|reason| reason == "unsupported"));
        if unsupported { ReadError::Unreadable { path: path.into() } } else { wrong() }
    })?;
    let mut certificates: Vec<X509> = parsed.cert.into_iter().collect();
    certificates.extend(parsed.ca.into_iter().flatten());
    if certificates.is_empty() && parsed.pkey.is_none() {
        return Err(ReadError::Unreadable { path: path.into() });
    }
    Ok(CredentialFile { format: Format::Pkcs12, certificates, key: parsed.pkey })
}

/// The first reason that OpenSSL gives, in its words.
fn reason(error: &ErrorStack) -> String {
    let reason = error.errors().iter().find_map(|error| error.reason());
    reason.unwrap_or("not understood").to_owned()
}
