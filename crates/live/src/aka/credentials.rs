//! Certificates, trust and endpoints of SGSNs and mobiles, on this program's stacks.

use super::AkaError;
use openssl::x509::{X509, X509VerifyResult};
use shakedown_aka::names::{Imsi, Network};
use shakedown_aka::sessions::{Basis, Sessions};
use shakedown_aka::sgsn::{Environment, NotAdmitted};
use shakedown_certs::supplied::AnyIdentity;
use shakedown_pki::Identity;
use shakedown_pki::issue::Issued;
use shakedown_stacks::{Acceptor, Connector, Identities, SessionCache, Settings, SetupError};
use shakedown_trace::suite::{Authentication, KeyType, Mode, Protocol};
use shakedown_trace::{Endpoint, Side, Suite};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The suite that attaches use: mutual, and with chains of leaf, authority and root.
pub fn suite_of(suite: &Suite) -> Result<Suite, AkaError> {
    let refuse = |reason| Err(AkaError::Suite { suite: suite.to_string(), reason });
    if !matches!(suite.protocol, Protocol::Tls10 | Protocol::Tls11 | Protocol::Tls12) {
        return refuse(
            "attaches derive keys from TLS and resume sessions by their ID; accepted: tls1.0, tls1.1, tls1.2",
        );
    }
    if suite.authentication.is_none() {
        return refuse("both ends authenticate by certificates; accepted: key exchanges with certificates");
    }
    if suite.mode != Mode::Full {
        return refuse("the network decides which attaches resume; accepted: a full handshake");
    }
    let mut suite = suite.clone();
    suite.authentication = Some(Authentication::Mutual);
    suite.keys = match suite.keys[..] {
        [leaf, authority, root] => vec![leaf, authority, root],
        [leaf, root] if leaf == root => vec![leaf; 3],
        _ => {
            return refuse(
                "chains have two levels, so that networks can certify each other's authority; accepted: LEAF, or \
                 LEAF@AUTHORITY@ROOT",
            );
        }
    };
    Ok(suite)
}

/// Key types of leaf, authority and root in a suite of [`suite_of`].
pub(super) fn kinds(suite: &Suite) -> [KeyType; 3] {
    let at = |place: usize| suite.keys.get(place).or(suite.keys.last()).copied();
    let usual = KeyType::Rsa { bits: 2048, exponent_3: false };
    [0, 1, 2].map(|place| at(place).unwrap_or(usual))
}

/// The sessions of a node as the session cache of its TLS stack.
pub struct Cache(pub Arc<Mutex<Sessions>>);

impl SessionCache for Cache {
    /// Attaches use TLS up to 1.2, where only a full handshake creates a session, so its time is not needed.
    fn put(&self, id: &[u8], session: Vec<u8>, _: i64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(id, session);
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id)
    }
}

/// A subscriber's identity, certificates and key.
#[derive(Clone)]
pub struct Card {
    pub imsi: Imsi,
    pub home: Network,
    /// The home network's root, DER.
    pub root: Vec<u8>,
    pub leaf: Vec<u8>,
    /// Key of `leaf`, PKCS #8.
    pub key: Vec<u8>,
    /// Cross-certificates that serving networks' roots issued for the home network's authority, DER.
    pub authorities: BTreeMap<Network, Vec<u8>>,
}

impl Card {
    /// Creates the subscriber's endpoints in a serving network.
    pub fn connector(
        &self,
        suite: &Suite,
        serving: &Network,
        settings: &Settings,
    ) -> Result<Arc<dyn Connector>, AkaError> {
        let Some(authority) = self.authorities.get(serving) else {
            return Err(AkaError::Option {
                option: "serving network",
                given: serving.to_string(),
                accepted: format!(
                    "one with which the home network has a roaming agreement: {}",
                    self.authorities.keys().map(Network::as_str).collect::<Vec<_>>().join(", ")
                ),
            });
        };
        let own = Identity {
            chain: vec![self.leaf.clone(), authority.clone()],
            root: Vec::new(),
            key: self.key.clone(),
            subject: String::new(),
        };
        let peer = trusted(&self.root);
        let setup = settings.setup(suite, pair(peer, own));
        Ok(settings.registry.choose(suite, Side::Client, None)?.client(&setup)?)
    }
}

fn trusted(root: &[u8]) -> Identity {
    Identity { chain: Vec::new(), root: root.to_vec(), key: Vec::new(), subject: String::new() }
}

fn pair(server: Identity, client: Identity) -> Identities {
    Identities {
        server: Some(AnyIdentity::X509(server)),
        client: Some(AnyIdentity::X509(client)),
        temporary_key: None,
    }
}

/// An SGSN's certificates, and the acceptors that present them.
pub struct SgsnEnvironment {
    suite: Suite,
    settings: Settings,
    cache: Arc<dyn SessionCache>,
    leaf: Issued,
    authority: X509,
    root: Vec<u8>,
    partners: BTreeMap<Network, Vec<u8>>,
    acceptors: HashMap<Network, Arc<dyn Acceptor>>,
}

/// Certificates that an SGSN presents and trusts.
pub struct NodeCertificates {
    pub leaf: Issued,
    pub authority: Vec<u8>,
    pub root: Vec<u8>,
    /// Roots of networks with a roaming agreement, DER.
    pub partners: BTreeMap<Network, Vec<u8>>,
}

/// Digest of what an SGSN's sessions depend on: the suite, the network and the trusted roots. It is the same at every
/// SGSN of a network, so that sessions can move with their mobiles.
pub(super) fn basis(suite: &Suite, network: &Network, certificates: &NodeCertificates) -> Basis {
    let mut hash = openssl::sha::Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    add(suite.to_string().as_bytes());
    add(network.as_str().as_bytes());
    add(&certificates.root);
    for (partner, root) in &certificates.partners {
        add(partner.as_str().as_bytes());
        add(root);
    }
    hash.finish()
}

impl SgsnEnvironment {
    /// An SGSN of a network, which serves that network's own subscribers from the start.
    pub fn new(
        suite: &Suite,
        network: &Network,
        certificates: NodeCertificates,
        settings: &Settings,
        cache: Arc<dyn SessionCache>,
    ) -> Result<Self, AkaError> {
        let NodeCertificates { leaf, authority, root, partners } = certificates;
        let read = X509::from_der(&authority);
        let read = read.map_err(|stack| AkaError::OpenSsl { what: "read a certificate", stack })?;
        let mut environment = Self {
            suite: suite.clone(),
            settings: settings.clone(),
            cache,
            leaf,
            authority: read,
            root,
            partners,
            acceptors: HashMap::new(),
        };
        let acceptor = environment.acceptor(&authority)?;
        environment.acceptors.insert(network.clone(), acceptor);
        Ok(environment)
    }

    /// An acceptor that presents this certificate of the network's authority.
    fn acceptor(&self, authority: &[u8]) -> Result<Arc<dyn Acceptor>, SetupError> {
        let own = Identity {
            chain: vec![self.leaf.certificate.clone(), authority.to_vec()],
            root: Vec::new(),
            key: self.leaf.key.clone(),
            subject: String::new(),
        };
        let mut setup = self.settings.setup(&self.suite, pair(own, trusted(&self.root)));
        setup.session_cache = Some(Arc::clone(&self.cache));
        self.settings.registry.choose(&self.suite, Side::Server, None)?.server(&setup)
    }

    fn checked(&self, home: &Network, cross_certificate: &[u8]) -> Result<(), String> {
        let root = self.partners.get(home).ok_or(format!("network {home} is not a partner"))?;
        let unreadable = |_| format!("the cross-certificate of network {home} is unreadable");
        let root = X509::from_der(root).map_err(unreadable)?;
        let certificate = X509::from_der(cross_certificate).map_err(unreadable)?;
        let key = root.public_key().map_err(unreadable)?;
        if root.issued(&certificate) != X509VerifyResult::OK || !certificate.verify(&key).unwrap_or(false) {
            return Err(format!("the cross-certificate was not issued by network {home}"));
        }
        let same = certificate.public_key().and_then(|key| Ok(self.authority.public_key()?.public_eq(&key)));
        if same.unwrap_or(false) {
            Ok(())
        } else {
            Err("the cross-certificate is for another authority than this network's".into())
        }
    }
}

impl Environment for SgsnEnvironment {
    type Endpoint = Box<dyn Endpoint>;

    fn accept(&mut self, home: &Network) -> Option<Self::Endpoint> {
        self.acceptors.get(home)?.accept().ok()
    }

    fn admit(&mut self, home: &Network, cross_certificate: &[u8]) -> Result<(), NotAdmitted> {
        self.checked(home, cross_certificate).map_err(NotAdmitted)?;
        let acceptor = self.acceptor(cross_certificate).map_err(|error| NotAdmitted(error.to_string()))?;
        self.acceptors.insert(home.clone(), acceptor);
        Ok(())
    }

    fn random(&mut self, bytes: &mut [u8]) {
        if openssl::rand::rand_bytes(bytes).is_err() {
            // Without random numbers, temporary identities would be predictable, so the process must not continue.
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn session_binding_covers_suite_network_root_and_partners() {
        let suite: Suite = "tls1.2/ecdhe_ecdsa+p256/p256@p256@p256/mutual".parse().unwrap();
        let other: Suite = "tls1.2/ecdhe_ecdsa+p256/p384@p384@p384/mutual".parse().unwrap();
        let [home, abroad] = ["20201", "20801"].map(|text| Network::new(text).unwrap());
        let of = |name: &[u8], root: &[u8], partners: &[(&Network, &[u8])]| NodeCertificates {
            leaf: Issued { certificate: name.to_vec(), key: name.to_vec(), counterpart: None },
            authority: b"authority".to_vec(),
            root: root.to_vec(),
            partners: partners.iter().map(|(network, root)| ((*network).clone(), root.to_vec())).collect(),
        };
        let usual = basis(&suite, &abroad, &of(b"sgsn-1", b"root", &[(&home, b"partner")]));
        assert_eq!(usual, basis(&suite, &abroad, &of(b"sgsn-2", b"root", &[(&home, b"partner")])));
        for different in [
            basis(&other, &abroad, &of(b"sgsn-1", b"root", &[(&home, b"partner")])),
            basis(&suite, &home, &of(b"sgsn-1", b"root", &[(&home, b"partner")])),
            basis(&suite, &abroad, &of(b"sgsn-1", b"toor", &[(&home, b"partner")])),
            basis(&suite, &abroad, &of(b"sgsn-1", b"root", &[(&home, b"other")])),
            basis(&suite, &abroad, &of(b"sgsn-1", b"root", &[])),
        ] {
            assert_ne!(usual, different);
        }
    }
}
