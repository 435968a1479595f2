//! Which certificate issued which, for X.509 and WTLS.

use crate::UserError;
use crate::date::unix_s;
use crate::ffi;
use crate::limits::MAX_CHAIN;
use crate::name;
use crate::{PkiError, date};
use openssl::x509::X509;
use std::path::Path;

/// The properties of a certificate that determine its place in a chain.
pub trait Link {
    /// True if it names `issuer` as its issuer.
    fn names(&self, issuer: &Self) -> bool;

    /// True if its signature verifies under the issuer's key.
    fn is_signed_by(&self, issuer: &Self) -> bool;

    /// A short name of the subject.
    fn subject(&self) -> String;

    fn issuer(&self) -> String;

    /// First and last second of its validity; `None` if they cannot be read.
    fn validity_s(&self) -> Option<(i64, i64)>;

    /// Why it may not issue certificates; `None` if it may.
    fn is_no_issuer(&self) -> Option<&'static str>;
}

impl Link for X509 {
    fn names(&self, issuer: &Self) -> bool {
        let same_name = self.issuer_name().try_cmp(issuer.subject_name());
        if !same_name.is_ok_and(|order| order.is_eq()) {
            return false;
        }
        // Among certificates with the same name, the key identifier selects one.
        match (self.authority_key_id(), issuer.subject_key_id()) {
            (Some(wanted), Some(found)) => wanted.as_slice() == found.as_slice(),
            _ => true,
        }
    }

    fn is_signed_by(&self, issuer: &Self) -> bool {
        issuer.public_key().is_ok_and(|key| self.verify(&key).unwrap_or(false))
    }

    fn subject(&self) -> String {
        name::short(self)
    }

    fn issuer(&self) -> String {
        name::text(self.issuer_name())
    }

    fn validity_s(&self) -> Option<(i64, i64)> {
        unix_s(self.not_before()).ok().zip(unix_s(self.not_after()).ok())
    }

    fn is_no_issuer(&self) -> Option<&'static str> {
        if !ffi::is_ca(self) {
            Some("its basic constraints do not say that it is a CA")
        } else if !ffi::may_sign_certificates(self) {
            Some("its key usage does not allow signing certificates")
        } else {
            None
        }
    }
}

/// True if `certificate` names `issuer` and its signature verifies under the issuer's key.
pub fn issued_by<C: Link>(certificate: &C, issuer: &C) -> bool {
    certificate.names(issuer) && certificate.is_signed_by(issuer)
}

/// True if a certificate is signed by its own key.
pub fn is_self_signed<C: Link>(certificate: &C) -> bool {
    issued_by(certificate, certificate)
}

/// The path from the certificate at `leaf` towards the root, of at most [`MAX_CHAIN`] certificates, as indices.
pub fn path_from<C: Link>(certificates: &[C], leaf: usize) -> Vec<usize> {
    let mut path = vec![leaf];
    let mut last = leaf;
    while path.len() < MAX_CHAIN && !is_self_signed(&certificates[last]) {
        let next = (0..certificates.len())
            .find(|place| !path.contains(place) && issued_by(&certificates[last], &certificates[*place]));
        let Some(next) = next else { break };
        path.push(next);
        last = next;
    }
    path
}

/// Index of the leaf: the first certificate that issued none of the others.
pub fn leaf_of<C: Link>(certificates: &[C]) -> usize {
    let issued_none = |place: &usize| {
        let mut others = certificates.iter().enumerate().filter(|(other, _)| other != place);
        !others.any(|(_, other)| other.names(&certificates[*place]))
    };
    (0..certificates.len()).find(issued_none).unwrap_or(0)
}

/// Indices of a file's certificates from the leaf upwards, provided that all of them are on this path and, if the
/// file has an order, in this order.
pub fn in_order<C: Link>(
    certificates: &[C],
    leaf: usize,
    has_order: bool,
    file: &Path,
) -> Result<Vec<usize>, UserError> {
    let places = path_from(certificates, leaf);
    let last = &certificates[places[places.len() - 1]];
    let subject = |place: usize| certificates[place].subject();
    if places.len() < certificates.len() {
        let mut unrelated = (0..certificates.len()).filter(|place| !places.contains(place));
        let claims =
            |place: &usize| last.names(&certificates[*place]) && !last.is_signed_by(&certificates[*place]);
        let path = file.to_path_buf();
        return Err(match unrelated.clone().find(claims) {
            Some(place) => UserError::BadSignature { path, subject: last.subject(), issuer: subject(place) },
            None => UserError::BrokenChain {
                path,
                subject: last.subject(),
                issuer: last.issuer(),
                unrelated: unrelated.by_ref().map(subject).collect(),
            },
        });
    }
    if has_order && !places.iter().copied().eq(0..certificates.len()) {
        return Err(UserError::WrongOrder {
            path: file.into(),
            found: (0..certificates.len()).map(subject).collect(),
            right: places.iter().copied().map(subject).collect(),
        });
    }
    Ok(places)
}

/// The root of a path, and the index of the certificate that it issued: the first certificate that any of the anchors
/// issued. Without anchors, the root is the last certificate, which must be self-signed.
pub fn find_root<'a, C: Link>(
    path: &'a [C],
    anchors: Option<(&'a [C], &Path)>,
    file: &Path,
) -> Result<(&'a C, usize), UserError> {
    let last = &path[path.len() - 1];
    let (subject, issuer) = (last.subject(), last.issuer());
    let Some((anchors, ca_path)) = anchors else {
        if is_self_signed(last) {
            return Ok((last, path.len() - 1));
        }
        return Err(UserError::NoRoot { path: file.into(), subject, issuer });
    };
    let issued = path.iter().enumerate().find_map(|(place, certificate)| {
        Some((anchors.iter().find(|anchor| issued_by(certificate, anchor))?, place))
    });
    let (ca_path, chain_path) = (ca_path.into(), file.into());
    issued.ok_or(UserError::ForeignRoot { ca_path, chain_path, subject, issuer })
}

/// Rejects a user-supplied certificate outside its validity.
pub fn check_dates<C: Link>(certificate: &C, now_unix_s: i64, file: &Path) -> Result<(), UserError> {
    let path = file.to_path_buf();
    let Some((from_s, to_s)) = certificate.validity_s() else {
        return Err(UserError::Read(crate::credentials::ReadError::Unreadable { path }));
    };
    let (subject, at) = (certificate.subject(), date::print(now_unix_s));
    if now_unix_s > to_s {
        return Err(UserError::Expired { path, subject, not_after: date::print(to_s), at });
    }
    if now_unix_s < from_s {
        return Err(UserError::NotYetValid { path, subject, not_before: date::print(from_s), at });
    }
    Ok(())
}

/// Rejects a chain of the store outside the validity of any of its certificates; `kind` is their name in errors.
pub fn check_validity<C: Link>(chain: &[C], kind: &str, now_unix_s: i64) -> Result<(), PkiError> {
    for certificate in chain {
        let Some((from_s, to_s)) = certificate.validity_s() else { continue };
        if !(from_s..=to_s).contains(&now_unix_s) {
            return Err(PkiError::OutsideValidity {
                what: format!("the {kind} of '{}'", certificate.subject()),
                not_before: date::print(from_s),
                not_after: date::print(to_s),
                at: date::print(now_unix_s),
            });
        }
    }
    Ok(())
}
