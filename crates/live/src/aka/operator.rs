//! An operator's root, the authority below it, and the certificates that they issue.

use super::AkaError;
use openssl::pkey::{PKey, Private};
use openssl::x509::X509;
use shakedown_aka::names::Network;
use shakedown_pki::issue::{self, Issued, Overrides, Place};
use shakedown_pki::{Profile, keys};
use shakedown_trace::suite::KeyType;

pub struct Operator {
    network: Network,
    profile: Profile,
    leaf_key: KeyType,
    root: X509,
    root_key: PKey<Private>,
    authority: X509,
    authority_key: PKey<Private>,
}

fn read(der: &[u8]) -> Result<X509, AkaError> {
    X509::from_der(der).map_err(|stack| AkaError::OpenSsl { what: "read a certificate", stack })
}

fn der(certificate: &X509) -> Result<Vec<u8>, AkaError> {
    certificate.to_der().map_err(|stack| AkaError::OpenSsl { what: "write a certificate", stack })
}

impl Operator {
    /// An operator with new keys; `kinds` are the key types of leaves, authority and root.
    pub fn new(network: &Network, kinds: [KeyType; 3], profile: &Profile) -> Result<Self, AkaError> {
        let named = |profile: &Profile, place, name: String| {
            profile.with(place, &Overrides { common_name: Some(name), ..Overrides::default() })
        };
        let profile = named(profile, Place::Root, format!("Root of network {network}"))?;
        let profile = named(&profile, Place::Intermediate, format!("Authority of network {network}"))?;
        let root = issue::one(&profile, Place::Root, kinds[2], None)?;
        let (root, root_key) = (read(&root.certificate)?, keys::from_pkcs8(&root.key)?);
        let authority_key = keys::generate(kinds[1])?;
        let authority = read(&issue::authority(&profile, &authority_key, (&root, &root_key))?)?;
        Ok(Self {
            network: network.clone(),
            profile,
            leaf_key: kinds[0],
            root,
            root_key,
            authority,
            authority_key,
        })
    }

    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The root that its subscribers and nodes trust, DER.
    pub fn root(&self) -> Result<Vec<u8>, AkaError> {
        der(&self.root)
    }

    /// Its authority's certificate from its own root, DER.
    pub fn authority(&self) -> Result<Vec<u8>, AkaError> {
        der(&self.authority)
    }

    /// A cross-certificate that this operator's root issues for another operator's authority, DER.
    pub fn certify(&self, other: &Self) -> Result<Vec<u8>, AkaError> {
        if other.network == self.network {
            return self.authority();
        }
        Ok(issue::authority(&other.profile, &other.authority_key, (&self.root, &self.root_key))?)
    }

    pub fn node(&self, name: &str) -> Result<Issued, AkaError> {
        self.issue(Place::Server, name)
    }

    /// A certificate for a subscriber. The name is a pseudonym: up to TLS 1.2 certificates are sent in the clear.
    pub fn subscriber(&self, pseudonym: &str) -> Result<Issued, AkaError> {
        self.issue(Place::Client, pseudonym)
    }

    fn issue(&self, place: Place, name: &str) -> Result<Issued, AkaError> {
        let named = Overrides { common_name: Some(name.to_owned()), ..Overrides::default() };
        let profile = self.profile.with(place, &named)?;
        let issuer = Some((&self.authority, &self.authority_key));
        Ok(issue::one(&profile, place, self.leaf_key, issuer)?)
    }
}
