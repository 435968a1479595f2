//! User-supplied certificates and keys, prepared for a suite.

use crate::credentials::{CredentialFile, Format, ReadError};
use crate::date;
use crate::keys;
use crate::limits::MAX_CHAIN;
use crate::name;
use crate::order::{self, Link, check_dates, find_root, in_order, is_self_signed};
use crate::store::Identity;
use openssl::pkey::{PKey, Private};
use openssl::x509::X509;
use shakedown_trace::suite::KeyType;
use std::path::{Path, PathBuf};

/// A user-supplied identity, and the types of its keys in suite names.
#[derive(Debug)]
pub struct UserIdentity {
    /// Chain, root, key and name.
    pub identity: Identity,
    /// Leaf first, trusted root last.
    pub keys: Vec<KeyType>,
    /// Number of certificates that are sent but not needed by the peer's path (for example cross-signed roots).
    pub unneeded: usize,
}

/// Why user-supplied certificates cannot be used. Each message states the problem, its place, and what is accepted.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    #[error(transparent)]
    Read(#[from] ReadError),

    #[error("{}: a chain of {given} certificates; accepted: at most {MAX_CHAIN}", path.display())]
    TooLong { path: PathBuf, given: usize },

    #[error(transparent)]
    Time(#[from] date::TimeError),

    #[error("{}: the key ({key}) is not that of any certificate in {}; the leaf '{leaf}' has another ({leaf_key})",
        key_path.display(), chain_path.display())]
    KeyMismatch { key_path: PathBuf, chain_path: PathBuf, key: String, leaf: String, leaf_key: String },

    #[error("{}: the certificates are in the wrong order: {}; the right one, leaf first: {}",
        path.display(), found.join(" | "), right.join(" | "))]
    WrongOrder { path: PathBuf, found: Vec<String>, right: Vec<String> },

    #[error("{}: '{subject}' was issued by '{issuer}', whose certificate is missing, and has nothing to do with {}",
        path.display(), unrelated.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", "))]
    BrokenChain { path: PathBuf, subject: String, issuer: String, unrelated: Vec<String> },

    #[error("{}: the signature of '{subject}' does not verify under the key of its issuer '{issuer}'", path.display())]
    BadSignature { path: PathBuf, subject: String, issuer: String },

    #[error("{}: '{subject}' expired at {not_after}; it is {at} now", path.display())]
    Expired { path: PathBuf, subject: String, not_after: String, at: String },

    #[error("{}: '{subject}' is not valid before {not_before}; it is {at} now", path.display())]
    NotYetValid { path: PathBuf, subject: String, not_before: String, at: String },

    #[error("{}: the chain ends with '{subject}', issued by '{issuer}'; give the issuer's certificate with --ca",
        path.display())]
    NoRoot { path: PathBuf, subject: String, issuer: String },

    #[error("{}: issued none of the certificates in {}; the last, '{subject}', is issued by '{issuer}'",
        ca_path.display(), chain_path.display())]
    ForeignRoot { ca_path: PathBuf, chain_path: PathBuf, subject: String, issuer: String },

    #[error("{}: holds {given} self-signed certificates; accepted: one, the root to trust", path.display())]
    Roots { path: PathBuf, given: usize },

    #[error("{}: '{subject}' has a key that no suite has ({key}); accepted: {}", path.display(), accepted_keys())]
    UnusableKey { path: PathBuf, subject: String, key: String },

    #[error("{}: '{subject}' has no name that a peer could check; accepted: a DNS name or a common name",
        path.display())]
    NoName { path: PathBuf, subject: String },
}

fn accepted_keys() -> &'static str {
    "RSA of 512, 768, 1024, 1536, 2048, 3072 or 4096 bits with e = 3 or 65537, DSA of 512, 1024 or 2048 bits, \
     ECDSA on a named curve, Ed25519, ML-DSA"
}

impl UserIdentity {
    /// Reads a chain (leaf first), its key (`None`: in the chain's file), and the root that peers trust (`None`: at the
    /// end of the chain's file); all must be valid at `now_unix_s`.
    pub fn load(
        chain_path: &Path,
        key_path: Option<&Path>,
        ca_path: Option<&Path>,
        password: Option<&str>,
        now_unix_s: i64,
    ) -> Result<Self, UserError> {
        let now_unix_s = date::checked(now_unix_s)?;
        let (path, key) = load_path(chain_path, key_path, password)?;
        let anchors = ca_path.map(|path| CredentialFile::load_certificates(path, password)).transpose()?;
        let (root, place) = find_root(&path, anchors.as_deref().zip(ca_path), chain_path)?;
        // A self-signed certificate of the chain that is trusted itself is not sent, unless it is the leaf.
        let needed = if is_self_signed(&path[place]) { place.max(1) } else { place + 1 };
        for certificate in path.iter().chain([root]) {
            check_dates(certificate, now_unix_s, chain_path)?;
        }
        let key_type = |certificate: &X509| {
            let public = certificate.public_key().ok();
            public.as_ref().and_then(|key| keys::key_type(key)).ok_or_else(|| UserError::UnusableKey {
                path: chain_path.into(),
                subject: certificate.subject(),
                key: public.map_or("unreadable".into(), |key| keys::describe(&key)),
            })
        };
        let keys = path[..needed].iter().chain([root]).map(key_type).collect::<Result<Vec<_>, _>>()?;
        let subject = name::host(&path[0]).ok_or_else(|| UserError::NoName {
            path: chain_path.into(),
            subject: name::text(path[0].subject_name()),
        })?;
        let root = der(root, chain_path)?;
        let identity = Identity { root, subject, ..presented(&path, &key, chain_path)? };
        let unneeded = identity.chain.len() - needed;
        Ok(Self { identity, keys, unneeded })
    }
}

impl Identity {
    /// The identity for a peer whose trusted root is unknown: a chain (leaf first) and its key (`None`: in the chain's
    /// file). Validity is not checked, which the peer does; `root` and `subject` are empty.
    pub fn presented(
        chain_path: &Path,
        key_path: Option<&Path>,
        password: Option<&str>,
    ) -> Result<Self, UserError> {
        let (path, key) = load_path(chain_path, key_path, password)?;
        presented(&path, &key, chain_path)
    }

    /// The identity of a peer of which only the trusted root is known: the only self-signed certificate of a file.
    pub fn trusted(path: &Path, password: Option<&str>) -> Result<Self, UserError> {
        let certificates = CredentialFile::load_certificates(path, password)?;
        let roots: Vec<_> = certificates.iter().filter(|one| is_self_signed(*one)).collect();
        let [root] = roots[..] else {
            return Err(UserError::Roots { path: path.into(), given: roots.len() });
        };
        let root = der(root, path)?;
        Ok(Self { chain: Vec::new(), root, key: Vec::new(), subject: String::new() })
    }
}

/// A file's chain from the leaf upwards, and the leaf's key.
fn load_path(
    chain_path: &Path,
    key_path: Option<&Path>,
    password: Option<&str>,
) -> Result<(Vec<X509>, PKey<Private>), UserError> {
    let chain = CredentialFile::load(chain_path, password)?;
    match chain.certificates.len() {
        0 => return Err(ReadError::NoCertificate { path: chain_path.into() }.into()),
        given if given > MAX_CHAIN => return Err(UserError::TooLong { path: chain_path.into(), given }),
        _ => {}
    }
    let key = match key_path {
        Some(path) => CredentialFile::load_key(path, password)?,
        None => chain.key.ok_or_else(|| ReadError::NoKey { path: chain_path.into() })?,
    };
    let leaf = find_leaf(&chain.certificates, &key, chain_path, key_path.unwrap_or(chain_path))?;
    // The certificates of an archive have no order.
    let path = in_order(&chain.certificates, leaf, chain.format != Format::Pkcs12, chain_path)?;
    Ok((path.into_iter().map(|place| chain.certificates[place].clone()).collect(), key))
}

/// The sent part of a chain (without roots) and its key; root and name are empty.
fn presented(path: &[X509], key: &PKey<Private>, file: &Path) -> Result<Identity, UserError> {
    let sent = path.iter().enumerate().filter(|(place, one)| *place == 0 || !is_self_signed(*one));
    let chain = sent.map(|(_, certificate)| der(certificate, file)).collect::<Result<_, _>>()?;
    let key = keys::to_pkcs8(key).map_err(|_| ReadError::Unreadable { path: file.into() })?;
    Ok(Identity { chain, root: Vec::new(), key, subject: String::new() })
}

fn der(certificate: &X509, file: &Path) -> Result<Vec<u8>, ReadError> {
    certificate.to_der().map_err(|_| ReadError::Unreadable { path: file.into() })
}

/// Index of the certificate for the key.
fn find_leaf(
    certificates: &[X509],
    key: &PKey<Private>,
    chain_path: &Path,
    key_path: &Path,
) -> Result<usize, UserError> {
    let holds = |certificate: &X509| certificate.public_key().is_ok_and(|public| public.public_eq(key));
    certificates.iter().position(holds).ok_or_else(|| {
        let leaf = &certificates[order::leaf_of(certificates)];
        UserError::KeyMismatch {
            key_path: key_path.into(),
            chain_path: chain_path.into(),
            key: keys::describe(key),
            leaf: leaf.subject(),
            leaf_key: leaf.public_key().map_or("unreadable".into(), |key| keys::describe(&key)),
        }
    })
}
