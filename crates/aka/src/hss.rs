//! A home network's HSS with its authentication centre: its subscribers, their certificates, and the networks that may
//! serve them.

use crate::core::{Answer, Query};
use crate::message::Cause;
use crate::names::{Imsi, Network, NodeName};
use sha2::{Digest, Sha256};
use std::collections::HashMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribed {
    /// SHA-256 of the leaf that was issued to the subscriber, DER.
    pub certificate_sha256: [u8; 32],
    /// No network may serve the subscriber.
    pub barred: bool,
    pub location: Option<(Network, NodeName)>,
}

#[derive(Clone, Debug, Default)]
pub struct Hss {
    subscribers: HashMap<Imsi, Subscribed>,
    certified: HashMap<Network, Vec<u8>>,
}

/// SHA-256.
pub fn fingerprint(certificate: &[u8]) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

impl Hss {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a subscriber with the issued leaf, DER.
    pub fn subscribe(&mut self, imsi: Imsi, certificate: &[u8]) {
        let one = Subscribed { certificate_sha256: fingerprint(certificate), barred: false, location: None };
        self.subscribers.insert(imsi, one);
    }

    pub fn bar(&mut self, imsi: &Imsi, barred: bool) {
        if let Some(one) = self.subscribers.get_mut(imsi) {
            one.barred = barred;
        }
    }

    /// Adds a roaming agreement: the cross-certificate that this network issued for a serving network's authority, DER.
    pub fn certify(&mut self, serving: Network, cross_certificate: Vec<u8>) {
        self.certified.insert(serving, cross_certificate);
    }

    pub fn subscribed(&self, imsi: &Imsi) -> Option<&Subscribed> {
        self.subscribers.get(imsi)
    }

    pub fn answer(&mut self, query: &Query) -> Answer {
        match query {
            Query::CrossCertificate { serving } => match self.certified.get(serving) {
                Some(certificate) => Answer::CrossCertificate(certificate.clone()),
                None => Answer::Refused(Cause::NoRoamingAgreement),
            },
            Query::Location { serving, node, imsi, certificate } => {
                if !self.certified.contains_key(serving) {
                    return Answer::Refused(Cause::NoRoamingAgreement);
                }
                let Some(one) = self.subscribers.get_mut(imsi) else {
                    return Answer::Refused(Cause::UnknownSubscriber);
                };
                let other = |leaf: &Vec<u8>| fingerprint(leaf) != one.certificate_sha256;
                if certificate.as_ref().is_some_and(other) {
                    return Answer::Refused(Cause::UnknownSubscriber);
                }
                if one.barred {
                    return Answer::Refused(Cause::Barred);
                }
                one.location = Some((serving.clone(), node.clone()));
                Answer::Located
            }
            Query::Context { .. } | Query::Claim { .. } => Answer::Refused(Cause::Protocol),
        }
    }
}
