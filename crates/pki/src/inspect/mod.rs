//! Describes certificates and chains: their content, their sizes, and why a peer would reject them.

mod parts;
mod violation;

pub use parts::{Extension, Part};
pub use violation::{Reason, Violation, dates, issuing, path};

use crate::credentials::{CredentialFile, Format, ReadError};
use crate::date;
use crate::date::unix_s;
use crate::ffi;
use crate::keys;
use crate::name;
use crate::order;
use openssl::nid::Nid;
use openssl::pkey::{HasPublic, PKey, PKeyRef, Private, Public};
use openssl::x509::{X509, X509Ref};
use serde::Serialize;
use shakedown_trace::Side;
use shakedown_trace::suite::{KeyType, Protocol, chain_name};
use std::path::{Path, PathBuf};

/// What a peer validates a chain against.
#[derive(Clone, Debug)]
pub struct Criteria {
    /// The time at which certificates are validated, in seconds since 1970.
    pub now_unix_s: i64,
    /// OpenSSL's security level, 0 to 5 (0, 80, 112, 128, 192, 256 bits); peers today have 1 or 2.
    pub security_level: u8,
    /// The host that the peer expects, if it checks the name.
    pub host: Option<String>,
    pub side: Side,
}

/// Security bits of the levels (`SSL_CTX_set_security_level`).
pub const LEVEL_BITS: [u32; 6] = [0, 80, 112, 128, 192, 256];

/// The description of a file of certificates.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    pub format: Format,
    /// In the file's order.
    pub certificates: Vec<Certificate>,
    /// Indices in the right order, leaf first, without certificates that are not on the path from the leaf.
    pub right_order: Vec<usize>,
    /// The private key in the file or in a separate one.
    pub key: Option<Key>,
    /// The keys part of a suite name, if the chain has one.
    pub keys_name: Option<String>,
    /// Bytes of the certificates that are sent: all but a self-signed one at the end.
    pub bytes_sent: usize,
    /// The highest of OpenSSL's security levels that accepts all keys and signatures of the chain.
    pub security_level: u8,
    pub violations: Vec<Violation>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Certificate {
    pub kind: &'static str,
    /// Version, from 1.
    pub version: i32,
    pub subject: String,
    pub issuer: String,
    /// Hexadecimal.
    pub serial: String,
    /// UTC.
    pub not_before: String,
    /// UTC.
    pub not_after: String,
    /// `dns:…`, `ip:…`, `uri:…`, `email:…`.
    pub alternative_names: Vec<String>,
    pub is_ca: bool,
    pub is_self_signed: bool,
    pub key: Key,
    pub signature: Signature,
    /// In the certificate's order.
    pub extensions: Vec<Extension>,
    pub bytes: usize,
    /// Sizes of the parts, which sum to `bytes`; empty if the certificate is not DER.
    pub parts: Vec<Part>,
    /// SHA-256 of the certificate, hexadecimal.
    pub fingerprint: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Key {
    /// Its name in suite names, or else its kind and size.
    pub name: String,
    pub has_suite_name: bool,
    /// Length in bits, as its kind counts.
    pub bits: u32,
    pub bytes: usize,
    /// Strength in bits (NIST SP 800-57).
    pub security_bits: u32,
}

#[derive(Clone, Debug, Serialize)]
pub struct Signature {
    pub algorithm: String,
    /// The digest, if the algorithm has no fixed one.
    pub digest: Option<String>,
    /// Bytes without tag and length.
    pub bytes: usize,
    pub security_bits: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    #[error(transparent)]
    Read(#[from] ReadError),

    #[error(transparent)]
    Time(#[from] date::TimeError),

    #[error("{}: certificate {place} is unreadable: {what}", path.display())]
    Unreadable { path: PathBuf, place: usize, what: &'static str },
}

/// Describes the certificates of a file. `key_path` is the file of the private key, `ca_path` that of the roots that
/// the peer trusts; without it, the peer is assumed to trust the issuer of the last certificate.
///
/// # Errors
/// [`InspectError`] if a file cannot be read; errors in readable certificates are among the violations.
pub fn describe(
    path: &Path,
    key_path: Option<&Path>,
    ca_path: Option<&Path>,
    password: Option<&str>,
    criteria: &Criteria,
) -> Result<Description, InspectError> {
    date::checked(criteria.now_unix_s)?;
    let chain = CredentialFile::load(path, password)?;
    if chain.certificates.is_empty() {
        return Err(ReadError::NoCertificate { path: path.into() }.into());
    }
    let key = key_path.map(|path| CredentialFile::load_key(path, password)).transpose()?.or(chain.key);
    let anchors = ca_path.map(|path| CredentialFile::load_certificates(path, password)).transpose()?;
    let anchors = anchors.unwrap_or_default();
    describe_chain(&chain.certificates, key.as_ref(), &anchors, chain.format, criteria)
        .map_err(|(place, what)| InspectError::Unreadable { path: path.into(), place: place + 1, what })
}

/// Index of a certificate that cannot be described, and the cause.
type Unreadable = (usize, &'static str);

fn describe_chain(
    certificates: &[X509],
    key: Option<&PKey<Private>>,
    anchors: &[X509],
    format: Format,
    criteria: &Criteria,
) -> Result<Description, Unreadable> {
    let mut described = Vec::with_capacity(certificates.len());
    for (place, certificate) in certificates.iter().enumerate() {
        described.push(describe_one(certificate).map_err(|what| (place, what))?);
    }
    let holder = key.and_then(|key| certificates.iter().position(|certificate| holds(certificate, key)));
    let right_order = order::path_from(certificates, holder.unwrap_or_else(|| order::leaf_of(certificates)));
    let rooting =
        |place: &usize| anchors.iter().find(|anchor| order::issued_by(&certificates[*place], anchor));
    let anchor = right_order.iter().find_map(rooting).and_then(|anchor| anchor.public_key().ok());
    let anchor_key = anchor.map(|key| describe_key(&key));
    let security_level = violation::highest_level(&described, &right_order, anchor_key.as_ref());
    let chain = violation::Chain {
        anchor_key,
        certificates,
        described: &described,
        right_order: &right_order,
        key,
        anchors,
        format,
    };
    let violations = violation::violations(&chain, criteria);
    let kind = |certificate: &X509| keys::key_type(&*certificate.public_key().ok()?);
    let last = right_order.last().copied().unwrap_or(0);
    let sent =
        |place: &&usize| **place == right_order[0] || **place != last || !described[last].is_self_signed;
    Ok(Description {
        format,
        bytes_sent: right_order.iter().filter(sent).map(|place| described[*place].bytes).sum(),
        keys_name: keys_name(certificates, &right_order, anchors, kind, Protocol::Tls12),
        key: key.map(|key| describe_key(key)),
        security_level,
        right_order,
        certificates: described,
        violations,
    })
}

fn holds(certificate: &X509Ref, key: &PKeyRef<Private>) -> bool {
    certificate.public_key().is_ok_and(|public| public.public_eq(key))
}

/// The keys part of a suite name of `protocol`: the types (`kind`) of the path's keys, then that of the root's key.
pub fn keys_name<C: order::Link>(
    certificates: &[C],
    path: &[usize],
    anchors: &[C],
    kind: impl Fn(&C) -> Option<KeyType>,
    protocol: Protocol,
) -> Option<String> {
    let mut kinds = Vec::new();
    for place in path {
        let certificate = &certificates[*place];
        kinds.push(kind(certificate)?);
        if let Some(anchor) = anchors.iter().find(|anchor| order::issued_by(certificate, anchor)) {
            if !order::is_self_signed(certificate) || kinds.len() == 1 {
                kinds.push(kind(anchor)?);
            }
            return Some(chain_name(&kinds, protocol));
        }
    }
    let last = &certificates[*path.last()?];
    if !anchors.is_empty() || !order::is_self_signed(last) {
        return None;
    }
    if kinds.len() == 1 {
        kinds.push(kinds[0]);
    }
    Some(chain_name(&kinds, protocol))
}

fn describe_key<T: HasPublic>(key: &PKeyRef<T>) -> Key {
    Key {
        name: keys::describe(key),
        has_suite_name: keys::key_type(key).is_some(),
        bits: key.bits(),
        bytes: key.public_key_to_der().map_or(0, |der| der.len()),
        security_bits: key.security_bits(),
    }
}

fn describe_one(certificate: &X509) -> Result<Certificate, &'static str> {
    let der = certificate.to_der().map_err(|_| "it cannot be encoded")?;
    let key: PKey<Public> = certificate.public_key().map_err(|_| "its public key is not understood")?;
    let time = |time| unix_s(time).map(date::print).map_err(|_| "its validity is not understood");
    let (parts, extensions) = parts::parts(&der).unwrap_or_default();
    Ok(Certificate {
        kind: "X.509",
        version: certificate.version() + 1,
        subject: name::text(certificate.subject_name()),
        issuer: name::text(certificate.issuer_name()),
        serial: serial(certificate).ok_or("its serial number is not understood")?,
        not_before: time(certificate.not_before())?,
        not_after: time(certificate.not_after())?,
        alternative_names: alternative_names(certificate),
        is_ca: ffi::is_ca(certificate),
        is_self_signed: order::is_self_signed(certificate),
        key: describe_key(&key),
        signature: describe_signature(certificate),
        extensions,
        bytes: der.len(),
        parts,
        fingerprint: crate::cache::hex(&openssl::sha::sha256(&der)),
    })
}

fn serial(certificate: &X509) -> Option<String> {
    let number = certificate.serial_number().to_bn().ok()?;
    let text = number.to_hex_str().ok()?.to_string();
    Some(text.to_lowercase())
}

fn describe_signature(certificate: &X509) -> Signature {
    let object = certificate.signature_algorithm().object();
    let info = ffi::signature_info(certificate);
    let digest = info.as_ref().filter(|info| info.digest != Nid::UNDEF);
    Signature {
        // Algorithms without a name in OpenSSL's tables are given by their object identifier.
        algorithm: object.nid().long_name().map_or_else(|_| object.to_string(), str::to_owned),
        digest: digest.and_then(|info| info.digest.long_name().ok().map(str::to_owned)),
        bytes: certificate.signature().as_slice().len(),
        security_bits: info.map_or(0, |info| info.security_bits),
    }
}

fn alternative_names(certificate: &X509Ref) -> Vec<String> {
    let mut list = Vec::new();
    for entry in certificate.subject_alt_names().iter().flatten() {
        let text = if let Some(dns) = entry.dnsname() {
            format!("dns:{dns}")
        } else if let Some(address) = entry.ipaddress() {
            match *address {
                [a, b, c, d] => format!("ip:{}", std::net::Ipv4Addr::new(a, b, c, d)),
                _ => match <[u8; 16]>::try_from(address) {
                    Ok(address) => format!("ip:{}", std::net::Ipv6Addr::from(address)),
                    Err(_) => "ip:?".into(),
                },
            }
        } else if let Some(uri) = entry.uri() {
            format!("uri:{uri}")
        } else if let Some(email) = entry.email() {
            format!("email:{email}")
        } else {
            "other".into()
        };
        list.push(name::printable(&text));
    }
    list
}
