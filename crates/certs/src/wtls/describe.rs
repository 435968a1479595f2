//! What a WTLS chain is, what it costs, and what a peer would refuse about it.

use super::chain::{is_self_signed, issued_by, leaf_of, names_match, path_from, signature_holds};
use super::issue::common_name;
use super::key::{in_words, is_certified, key_type, private_key};
use super::read_certificates;
use crate::CertsError;
use openssl::bn::BigNum;
use openssl::pkey::PKey;
use openssl::rsa::Rsa;
use shakedown_pki::credentials::{CredentialFile, Format, read_bytes};
use shakedown_pki::inspect::{
    Certificate as Described, Criteria, Description, Key, Part, Reason, Signature, Violation,
};
use shakedown_pki::{date, hex, keys};
use shakedown_trace::suite::{KeyType, Protocol};
use shakedown_wtls::certificate::{Certificate, CertifiedKey, ServiceName};
use shakedown_wtls::codec::Codec;
use shakedown_wtls::provider::openssl::{OpenSsl, PrivateKey};
use std::path::Path;

/// Strength of SHA-1 in signatures, in bits, as OpenSSL counts.
const SHA1_SECURITY_BITS: u32 = 63;

/// Describes WTLS certificates. WTLS peers have no security levels, so that the criteria's level counts for nothing here.
///
/// # Errors
/// [`CertsError`] where the file of the key or of the roots can't be read.
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
    let right_order =
        path_from(&provider, certificates, holder.unwrap_or_else(|| leaf_of(&provider, certificates)));
    let described: Vec<_> =
        certificates.iter().map(|certificate| describe_one(&provider, certificate)).collect();
    let last = right_order[right_order.len() - 1];
    let sent =
        |place: &&usize| **place == right_order[0] || **place != last || !described[last].is_self_signed;
    let chain = Chain { provider: &provider, certificates, right_order: &right_order, anchors: &anchors };
    let mut violations = chain.violations(criteria);
    if let (Some((_, given)), None) = (key, holder) {
        let wanted = &described[right_order[0]].key.name;
        let detail = format!("the private key ({given}) is not that of the leaf ({wanted})");
        violations.push(Violation { reason: Reason::KeyMismatch, place: Some(right_order[0]), detail });
    }
    Ok(Description {
        format: Format::Wtls,
        bytes_sent: right_order.iter().filter(sent).map(|place| described[*place].bytes).sum(),
        keys_name: chain.keys_name(),
        key: None,
        security_level: 0,
        right_order,
        certificates: described,
        violations,
    })
}

/// A key with what people call it.
fn read_key(
    provider: &OpenSsl,
    path: &Path,
    password: Option<&str>,
) -> Result<(PrivateKey, String), CertsError> {
    let key = CredentialFile::load(path, password)?.key;
    let key = key.ok_or_else(|| shakedown_pki::UserError::NoKey { path: path.into() })?;
    Ok((private_key(provider, &keys::to_pkcs8(&key)?)?, keys::describe(&key)))
}

/// The roots of a file.
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

fn describe_one(provider: &OpenSsl, certificate: &Certificate) -> Described {
    let fields = certificate.fields();
    let bytes = certificate.as_bytes();
    let is_self_signed = is_self_signed(provider, certificate);
    Described {
        kind: "WTLS",
        version: 1,
        subject: fields.subject.to_string(),
        issuer: fields.issuer.to_string(),
        serial: String::new(),
        not_before: date::print(fields.valid_not_before_unix_s.into()),
        not_after: date::print(fields.valid_not_after_unix_s.into()),
        alternative_names: Vec::new(),
        is_ca: is_self_signed || is_authority(certificate),
        is_self_signed,
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

fn is_authority(certificate: &Certificate) -> bool {
    certificate.fields().subject.as_text().is_some_and(|name| ServiceName::parse(name).is_authority())
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

/// What is validated.
struct Chain<'a> {
    provider: &'a OpenSsl,
    certificates: &'a [Certificate],
    right_order: &'a [usize],
    anchors: &'a [Certificate],
}

impl Chain<'_> {
    fn name(&self, place: usize) -> String {
        self.certificates[place].fields().subject.to_string()
    }

    /// The keys part of a suite's name: the path's keys, ended by a root's.
    fn keys_name(&self) -> Option<String> {
        let kind = |certificate: &Certificate| key_type(&certificate.fields().public_key);
        let mut kinds = Vec::new();
        for place in self.right_order {
            let certificate = &self.certificates[*place];
            let is_root = is_self_signed(self.provider, certificate);
            let anchor = self.anchors.iter().find(|anchor| issued_by(self.provider, certificate, anchor));
            kinds.push(kind(certificate)?);
            if let Some(anchor) = anchor.filter(|_| !is_root) {
                kinds.push(kind(anchor)?);
            }
            if anchor.is_some() || (is_root && self.anchors.is_empty()) {
                return Some(chain_name(&kinds));
            }
        }
        None
    }

    fn violations(&self, criteria: &Criteria) -> Vec<Violation> {
        let mut list = Vec::new();
        self.order(&mut list);
        self.end(&mut list);
        for (height, &place) in self.right_order.iter().enumerate() {
            let certificate = &self.certificates[place];
            let fields = certificate.fields();
            let mut add = |reason, detail| list.push(Violation { reason, place: Some(place), detail });
            if criteria.now_unix_s > fields.valid_not_after_unix_s.into() {
                add(
                    Reason::Expired,
                    format!("expired at {}", date::print(fields.valid_not_after_unix_s.into())),
                );
            }
            if criteria.now_unix_s < fields.valid_not_before_unix_s.into() {
                let from = date::print(fields.valid_not_before_unix_s.into());
                add(Reason::NotYetValid, format!("not valid before {from}"));
            }
            if height > 0 && !is_self_signed(self.provider, certificate) && !is_authority(certificate) {
                add(
                    Reason::IssuerIsNoCa,
                    "has issued another, and its name does not say that it is a CA (T=ca)".into(),
                );
            }
        }
        let leaf = self.right_order[0];
        let found = common_name(&self.certificates[leaf]);
        if let Some(host) = criteria.host.as_ref().filter(|host| found.as_ref() != Some(host)) {
            let found = found.unwrap_or_else(|| "an unnamed subject".into()).escape_debug().to_string();
            let detail = format!("is not for '{}' but for {found}", host.escape_debug());
            list.push(Violation { reason: Reason::WrongName, place: Some(leaf), detail });
        }
        list
    }

    fn order(&self, list: &mut Vec<Violation>) {
        let on_path = |place: &usize| self.right_order.contains(place);
        let in_file: Vec<usize> = (0..self.certificates.len()).filter(on_path).collect();
        if in_file != self.right_order {
            let right: Vec<String> =
                self.right_order.iter().map(|place| format!("'{}'", self.name(*place))).collect();
            let detail = format!("the right order, leaf first: {}", right.join(", "));
            list.push(Violation { reason: Reason::WrongOrder, place: None, detail });
        }
        for place in (0..self.certificates.len()).filter(|place| !on_path(place)) {
            let (name, leaf) = (self.name(place), self.name(self.right_order[0]));
            let detail = format!("'{name}' is not on the path from the leaf '{leaf}'");
            list.push(Violation { reason: Reason::Unrelated, place: Some(place), detail });
        }
    }

    /// Whether the path ends where the peer trusts.
    fn end(&self, list: &mut Vec<Violation>) {
        let trusted = |place: &usize| {
            let certificate = &self.certificates[*place];
            self.anchors.iter().any(|anchor| issued_by(self.provider, certificate, anchor))
        };
        if self.right_order.iter().any(trusted) {
            return;
        }
        let place = self.right_order[self.right_order.len() - 1];
        let last = &self.certificates[place];
        let mut known = self.certificates.iter().chain(self.anchors);
        let mut add = |reason, detail| list.push(Violation { reason, place: Some(place), detail });
        match known.find(|other| names_match(self.provider, last, other)) {
            Some(issuer) if !signature_holds(self.provider, last, issuer) => {
                let issuer = issuer.fields().subject.to_string();
                add(
                    Reason::BadSignature,
                    format!("the signature does not verify under the key of '{issuer}'"),
                );
            }
            // What the peer trusts is unknown: it may be the issuer of the last.
            _ if self.anchors.is_empty() => {}
            _ => {
                let issuer = last.fields().issuer.to_string();
                add(
                    Reason::IssuerMissing,
                    format!("issued by '{issuer}', which is neither in the chain nor trusted"),
                );
            }
        }
    }
}

/// The keys part of a WTLS suite's name.
pub(super) fn chain_name(kinds: &[KeyType]) -> String {
    let lone = kinds.len() == 2 && kinds[0] == kinds[1];
    let named = if lone { &kinds[..1] } else { kinds };
    named.iter().map(|kind| kind.name(Protocol::Wtls)).collect::<Vec<_>>().join("@")
}
