//! Which certificate was issued by which.

use crate::limits::MAX_CHAIN;
use openssl::x509::{X509, X509Ref};

/// True where `certificate` names `issuer` and its signature verifies under the issuer's key.
pub(crate) fn issued_by(certificate: &X509Ref, issuer: &X509Ref) -> bool {
    names_match(certificate, issuer) && signature_holds(certificate, issuer)
}

/// True where `certificate` names `issuer` as its issuer.
pub(crate) fn names_match(certificate: &X509Ref, issuer: &X509Ref) -> bool {
    let same_name = certificate.issuer_name().try_cmp(issuer.subject_name());
    if !same_name.is_ok_and(|order| order.is_eq()) {
        return false;
    }
    // Of certificates of one name the key identifier tells which is meant.
    match (certificate.authority_key_id(), issuer.subject_key_id()) {
        (Some(wanted), Some(found)) => wanted.as_slice() == found.as_slice(),
        _ => true,
    }
}

/// True where the signature of `certificate` verifies under the issuer's key.
pub(crate) fn signature_holds(certificate: &X509Ref, issuer: &X509Ref) -> bool {
    issuer.public_key().is_ok_and(|key| certificate.verify(&key).unwrap_or(false))
}

/// True where a certificate is signed by its own key.
pub(crate) fn is_self_signed(certificate: &X509Ref) -> bool {
    issued_by(certificate, certificate)
}

/// The path from the certificate at `leaf` upwards as far as it goes, but no longer than [`MAX_CHAIN`], as places in `certificates`.
pub(crate) fn path_from(certificates: &[X509], leaf: usize) -> Vec<usize> {
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

/// The place of the leaf: the certificate that issued none of the others; the first of several.
pub(crate) fn leaf_of(certificates: &[X509]) -> usize {
    let issued_none = |place: &usize| {
        let others = certificates.iter().enumerate().filter(|(other, _)| other != place);
        !others.into_iter().any(|(_, other)| names_match(other, &certificates[*place]))
    };
    (0..certificates.len()).find(issued_none).unwrap_or(0)
}
