//! Violations for which a peer would reject a chain.

use super::{Certificate, Criteria, Key, LEVEL_BITS, holds};
use crate::credentials::Format;
use crate::date;
use crate::ffi;
use crate::keys;
use crate::name;
use crate::order::{Link, issued_by};
use openssl::pkey::{PKey, Private};
use openssl::x509::X509;
use serde::Serialize;
use shakedown_trace::Side;

/// Why a peer rejects a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Expired,
    NotYetValid,
    /// The certificates are not in the order of issue, leaf first.
    WrongOrder,
    /// A certificate is not on the path from the leaf.
    Unrelated,
    /// The issuer's certificate is neither in the chain nor trusted.
    IssuerMissing,
    /// The issuer's key did not make the signature.
    BadSignature,
    /// The private key is not that of the leaf.
    KeyMismatch,
    /// A certificate that may not issue certificates has issued another.
    IssuerIsNoCa,
    /// More certificates below an issuer than it allows.
    PathTooLong,
    /// No DNS name or address among the subject alternative names.
    NoAlternativeName,
    WrongName,
    /// The certificate may not be used on this side.
    WrongPurpose,
    /// The key is too short for the security level.
    WeakKey,
    /// The signature's digest is too weak for the security level.
    WeakDigest,
    UnknownCriticalExtension,
}

/// One violation for which a peer would reject the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    pub reason: Reason,
    /// Index of the certificate in the file; `None` if it concerns the whole chain.
    pub place: Option<usize>,
    /// The details, and what would be accepted, in one line.
    pub detail: String,
}

pub(super) struct Chain<'a> {
    pub certificates: &'a [X509],
    pub described: &'a [Certificate],
    pub right_order: &'a [usize],
    pub key: Option<&'a PKey<Private>>,
    pub anchors: &'a [X509],
    /// The key of the trusted root that issued a certificate of the path, if known.
    pub anchor_key: Option<Key>,
    pub format: Format,
}

/// All violations, those of the order first.
pub(super) fn violations(chain: &Chain<'_>, criteria: &Criteria) -> Vec<Violation> {
    let mut list = Vec::new();
    // The certificates of an archive have no order.
    let has_order = chain.format != Format::Pkcs12;
    path(chain.certificates, chain.right_order, chain.anchors, has_order, &mut list);
    for (height, &place) in chain.right_order.iter().enumerate() {
        let certificate = &chain.certificates[place];
        let mut add = |reason, detail| list.push(Violation { reason, place: Some(place), detail });
        dates(certificate, criteria.now_unix_s, &mut add);
        strength(&chain.described[place], criteria, &mut add);
        for extension in &chain.described[place].extensions {
            if extension.critical && !extension.is_understood {
                add(
                    Reason::UnknownCriticalExtension,
                    format!("the critical extension {} is unknown", extension.name),
                );
            }
        }
        if height > 0 {
            issuing(certificate, &mut add);
        }
        // Number of certificates below it on the path, without the leaf.
        let between = height.saturating_sub(1);
        let most = certificate.pathlen().and_then(|most| usize::try_from(most).ok());
        if let Some(most) = most.filter(|most| between > *most) {
            add(
                Reason::PathTooLong,
                format!("allows {most} CA(s) between itself and the leaf; there are {between}"),
            );
        }
    }
    if let Some(key) = &chain.anchor_key {
        let mut add = |reason, detail| list.push(Violation { reason, place: None, detail });
        key_strength(key, "the trusted root's ", criteria, &mut add);
    }
    leaf(chain, criteria, &mut list);
    list
}

/// Violations of the order of a file's certificates, if it has one, and of the end of the path.
pub fn path<C: Link>(
    certificates: &[C],
    right_order: &[usize],
    anchors: &[C],
    has_order: bool,
    list: &mut Vec<Violation>,
) {
    let name = |place: &usize| format!("'{}'", certificates[*place].subject());
    let on_path = |place: &usize| right_order.contains(place);
    if has_order && !(0..certificates.len()).filter(on_path).eq(right_order.iter().copied()) {
        let right: Vec<String> = right_order.iter().map(name).collect();
        let detail = format!("the right order, leaf first: {}", right.join(", "));
        list.push(Violation { reason: Reason::WrongOrder, place: None, detail });
    }
    for place in (0..certificates.len()).filter(|place| !on_path(place)) {
        let detail = format!("{} is not on the path from the leaf {}", name(&place), name(&right_order[0]));
        list.push(Violation { reason: Reason::Unrelated, place: Some(place), detail });
    }
    let trusted = |place: &usize| anchors.iter().any(|anchor| issued_by(&certificates[*place], anchor));
    if right_order.iter().any(trusted) {
        return;
    }
    let Some(&place) = right_order.last() else { return };
    let last = &certificates[place];
    let (reason, detail) = match certificates.iter().chain(anchors).find(|other| last.names(other)) {
        Some(issuer) if !last.is_signed_by(issuer) => {
            let issuer = issuer.subject();
            (Reason::BadSignature, format!("the signature does not verify under the key of '{issuer}'"))
        }
        // The peer's trusted roots are unknown: one may be the issuer of the last certificate.
        _ if anchors.is_empty() => return,
        _ => {
            let detail = format!("issued by '{}', which is neither in the chain nor trusted", last.issuer());
            (Reason::IssuerMissing, detail)
        }
    };
    list.push(Violation { reason, place: Some(place), detail });
}

/// Violations of a certificate's dates.
pub fn dates<C: Link>(certificate: &C, now_unix_s: i64, add: &mut impl FnMut(Reason, String)) {
    let Some((from_s, to_s)) = certificate.validity_s() else { return };
    if now_unix_s > to_s {
        add(Reason::Expired, format!("expired at {}", date::print(to_s)));
    } else if now_unix_s < from_s {
        add(Reason::NotYetValid, format!("not valid before {}", date::print(from_s)));
    }
}

/// Violations by a certificate that has issued another.
pub fn issuing<C: Link>(certificate: &C, add: &mut impl FnMut(Reason, String)) {
    if let Some(why) = certificate.is_no_issuer() {
        add(Reason::IssuerIsNoCa, format!("has issued another, and {why}"));
    }
}

/// The security level, and the bits that it requires.
fn wanted_bits(criteria: &Criteria) -> (usize, u32) {
    let level = usize::from(criteria.security_level).min(LEVEL_BITS.len() - 1);
    (level, LEVEL_BITS[level])
}

fn key_strength(key: &Key, whose: &str, criteria: &Criteria, add: &mut impl FnMut(Reason, String)) {
    let (level, wanted) = wanted_bits(criteria);
    if key.security_bits < wanted {
        let (name, bits) = (&key.name, key.security_bits);
        add(
            Reason::WeakKey,
            format!("{whose}{name} has a strength of {bits} bits; security level {level} requires {wanted}"),
        );
    }
}

fn strength(certificate: &Certificate, criteria: &Criteria, add: &mut impl FnMut(Reason, String)) {
    key_strength(&certificate.key, "", criteria, add);
    let (level, wanted) = wanted_bits(criteria);
    let signature = &certificate.signature;
    // The signature of a root is not checked.
    if !certificate.is_self_signed && signature.security_bits < wanted {
        let (name, bits) = (&signature.algorithm, signature.security_bits);
        add(
            Reason::WeakDigest,
            format!("{name} has a strength of {bits} bits; security level {level} requires {wanted}"),
        );
    }
}

fn leaf(chain: &Chain<'_>, criteria: &Criteria, list: &mut Vec<Violation>) {
    let Some(&place) = chain.right_order.first() else { return };
    let certificate = &chain.certificates[place];
    let described = &chain.described[place];
    let mut add = |reason, detail| list.push(Violation { reason, place: Some(place), detail });
    if let Some(key) = chain.key.filter(|key| !holds(certificate, key)) {
        let (given, wanted) = (keys::describe(key), &described.key.name);
        add(Reason::KeyMismatch, format!("the private key ({given}) is not that of the leaf ({wanted})"));
    }
    let has_name =
        described.alternative_names.iter().any(|name| name.starts_with("dns:") || name.starts_with("ip:"));
    if criteria.side == Side::Server && !has_name {
        add(Reason::NoAlternativeName, "no DNS name or address among its subject alternative names".into());
    }
    if let Some(host) = criteria.host.as_ref().filter(|host| !ffi::is_for_host(certificate, host)) {
        let names = match described.alternative_names.len() {
            0 => name::short(certificate),
            1..=5 => described.alternative_names.join(", "),
            more => format!("{} and {} more", described.alternative_names[..5].join(", "), more - 5),
        };
        add(Reason::WrongName, format!("is not for '{}' but for {names}", name::printable(host)));
    }
    if !ffi::is_for_side(certificate, criteria.side) {
        let side = criteria.side.as_str();
        add(Reason::WrongPurpose, format!("its key usages do not allow a {side} to present it"));
    }
}

/// The highest security level that accepts all keys and signatures of a path, including its root's key.
pub(super) fn highest_level(described: &[Certificate], path: &[usize], anchor_key: Option<&Key>) -> u8 {
    let weakest = path.iter().map(|place| {
        let certificate = &described[*place];
        let signature =
            if certificate.is_self_signed { u32::MAX } else { certificate.signature.security_bits };
        certificate.key.security_bits.min(signature)
    });
    let weakest = weakest.chain(anchor_key.map(|key| key.security_bits)).min().unwrap_or(0);
    let level = LEVEL_BITS.iter().rposition(|bits| weakest >= *bits).unwrap_or(0);
    u8::try_from(level).unwrap_or(0)
}
