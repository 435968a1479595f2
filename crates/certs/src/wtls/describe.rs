//! Describes WTLS chains: their content, their sizes, and why a peer would reject them.

use super::chain::{Linked, linked};
use super::issue::common_name;
use super::key::{in_words, is_certified, key_type, private_key};
use super::read_certificates;
use crate::CertsError;
use openssl::bn::BigNum;
use openssl::pkey::PKey;
use openssl::rsa::Rsa;
use shakedown_pki::credentials::{CredentialFile, Format, read_bytes};
use shakedown_pki::inspect::{
    self, Certificate as Described, Criteria, Description, Key, Part, Reason, Signature, Violation, keys_name,
};
use shakedown_pki::order::{Link, is_self_signed, leaf_of, path_from};
use shakedown_pki::{date, hex, keys};
use shakedown_trace::suite::Protocol;
use shakedown_wtls::certificate::{Certificate, CertifiedKey};
use shakedown_wtls::codec::Codec;
use shakedown_wtls::provider::openssl::{OpenSsl, PrivateKey};
use std::path::Path;

/// Strength of SHA-1 in signatures, in bits, according to OpenSSL.
const SHA1_SECURITY_BITS: u32 = 63;

/// Describes WTLS certificates. WTLS has no security levels, so the level of the criteria is ignored.
pub fn describe(
    certificates: &[Certificate],
    key_path: Option<&Path>,
    ca_path: Option<&Path>,
    password: Option<&str>,
    criteria: &Criteria,
) -> Result<Description, CertsError> {
    let provider = OpenSsl::new()?;
    let key = key_path.map(|path| read_key(&provider, path, password)).transpose()?;
    let anchors = ca_path.map(read_anchors).transpose()?.unwrap_or_default();
    let key = key.as_ref();
    let holder = key.and_then(|(key, _)| {
        certificates
            .iter()
            .position(|certificate| is_certified(&provider, key, &certificate.fields().public_key))
    });
    let (chain, anchors) = (linked(&provider, certificates), linked(&provider, &anchors));
    let right_order = path_from(&chain, holder.unwrap_or_else(|| leaf_of(&chain)));
    let described: Vec<_> = chain.iter().map(describe_one).collect();
    let last = right_order[right_order.len() - 1];
    let sent =
        |place: &&usize| **place == right_order[0] || **place != last || !described[last].is_self_signed;
    let mut violations = violations(&chain, &right_order, &anchors, criteria);
    if let (Some((_, given)), None) = (key, holder) {
        let wanted = &described[right_order[0]].key.name;
        let detail = format!("the private key ({given}) is not that of the leaf ({wanted})");
        violations.push(Violation { reason: Reason::KeyMismatch, place: Some(right_order[0]), detail });
    }
    let kind = |one: &Linked<'_>| key_type(&one.certificate.fields().public_key);
    Ok(Description {
        format: Format::Wtls,
        bytes_sent: right_order.iter().filter(sent).map(|place| described[*place].bytes).sum(),
        keys_name: keys_name(&chain, &right_order, &anchors, kind, Protocol::Wtls),
        key: None,
        security_level: 0,
        right_order,
        certificates: described,
        violations,
    })
}

/// A key and its readable name.
fn read_key(
    provider: &OpenSsl,
    path: &Path,
    password: Option<&str>,
) -> Result<(PrivateKey, String), CertsError> {
    let key = CredentialFile::load_key(path, password)?;
    Ok((private_key(provider, &keys::to_pkcs8(&key)?)?, keys::describe(&key)))
}

pub(super) fn read_anchors(path: &Path) -> Result<Vec<Certificate>, CertsError> {
    if let Some(found) = read_certificates(&read_bytes(path)?, path)? {
        return Ok(found);
    }
    let other = CredentialFile::load(path, None).is_ok_and(|file| !file.certificates.is_empty());
    Err(match other {
        true => CertsError::WrongKind { path: path.into(), wanted: "WTLS" },
        false => CertsError::NoCertificate { path: path.into() },
    })
}

fn describe_one(linked: &Linked<'_>) -> Described {
    let certificate = linked.certificate;
    let fields = certificate.fields();
    let bytes = certificate.as_bytes();
    Described {
        kind: "WTLS",
        version: 1,
        subject: fields.subject.to_string(),
        issuer: fields.issuer.to_string(),
        serial: String::new(),
        not_before: date::print(fields.valid_not_before_unix_s.into()),
        not_after: date::print(fields.valid_not_after_unix_s.into()),
        alternative_names: Vec::new(),
        is_ca: linked.is_no_issuer().is_none(),
        is_self_signed: is_self_signed(linked),
        key: describe_key(&fields.public_key),
        signature: Signature {
            algorithm: fields.signature_algorithm.to_string(),
            digest: Some("sha1".into()),
            bytes: certificate.signature().len(),
            security_bits: SHA1_SECURITY_BITS,
        },
        extensions: Vec::new(),
        bytes: bytes.len(),
        parts: parts(certificate),
        fingerprint: hex(&openssl::sha::sha256(bytes)),
    }
}

fn describe_key(key: &CertifiedKey) -> Key {
    let kind = key.kind(true).ok();
    let security_bits = match key {
        CertifiedKey::Rsa(encoded) => encoded.parts().ok().and_then(|(exponent, modulus)| {
            let number = |bytes| BigNum::from_slice(bytes).ok();
            let rsa = Rsa::from_public_components(number(modulus)?, number(exponent)?).ok()?;
            Some(PKey::from_rsa(rsa).ok()?.security_bits())
        }),
        // Half of the order's bits.
        CertifiedKey::Ecdh(_) | CertifiedKey::Ecdsa(_) => key.curve(true).map(|curve| curve.order_bits() / 2),
    };
    Key {
        name: in_words(key),
        has_suite_name: key_type(key).is_some(),
        bits: kind.map_or(0, |kind| kind.size_bits()),
        bytes: key.to_bytes().map_or(0, |bytes| bytes.len()),
        security_bits: security_bits.unwrap_or(0),
    }
}

/// The parts of a certificate, which sum to its length.
fn parts(certificate: &Certificate) -> Vec<Part> {
    let fields = certificate.fields();
    let length = |encoded: Result<Vec<u8>, _>| encoded.map_or(0, |bytes: Vec<u8>| bytes.len());
    let issuer = length(fields.issuer.to_bytes());
    let subject = length(fields.subject.to_bytes());
    let key = length(fields.public_key.to_bytes());
    let signature = certificate.as_bytes().len() - certificate.signed_part().len();
    let list = [
        ("version", 1),
        ("signature algorithm", 1),
        ("issuer", issuer),
        ("validity", 8),
        ("subject", subject),
        ("public key", key),
        ("signature", signature),
    ];
    list.into_iter().map(|(name, bytes)| Part { name: name.into(), bytes }).collect()
}

/// All violations, those of the order first.
fn violations(
    chain: &[Linked<'_>],
    right_order: &[usize],
    anchors: &[Linked<'_>],
    criteria: &Criteria,
) -> Vec<Violation> {
    let mut list = Vec::new();
    inspect::path(chain, right_order, anchors, true, &mut list);
    for (height, &place) in right_order.iter().enumerate() {
        let mut add = |reason, detail| list.push(Violation { reason, place: Some(place), detail });
        inspect::dates(&chain[place], criteria.now_unix_s, &mut add);
        if height > 0 {
            inspect::issuing(&chain[place], &mut add);
        }
    }
    let leaf = right_order[0];
    let found = common_name(chain[leaf].certificate);
    if let Some(host) = criteria.host.as_ref().filter(|host| found.as_ref() != Some(host)) {
        let found = found.unwrap_or_else(|| "an unnamed subject".into()).escape_debug().to_string();
        let detail = format!("is not for '{}' but for {found}", host.escape_debug());
        list.push(Violation { reason: Reason::WrongName, place: Some(leaf), detail });
    }
    list
}
