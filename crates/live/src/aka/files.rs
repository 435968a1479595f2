//! Configuration files of the processes: an HSS's register, an SGSN's certificates, a subscriber's card. The format is
//! JSON, with certificates and keys as PEM. Files with private keys are readable only by their owner.

use super::credentials::{self, Card, NodeCertificates};
use super::{AkaError, suite_of};
use openssl::pkey::PKey;
use openssl::x509::X509;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shakedown_aka::hss::Hss;
use shakedown_aka::names::{Imsi, NameError, Network, NodeName};
use shakedown_pki::issue::Issued;
use shakedown_pki::{input, keys, words};
use shakedown_trace::Suite;
use std::collections::BTreeMap;
use std::path::Path;

const MAX_FILE_BYTES: u64 = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HssFile {
    pub network: String,
    pub subscribers: BTreeMap<String, String>,
    pub barred: Vec<String>,
    /// Roaming agreements: cross-certificates that this network issued for the authorities of serving networks.
    pub certified: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SgsnFile {
    pub name: String,
    pub network: String,
    pub suite: String,
    pub leaf: String,
    pub key: String,
    pub authority: String,
    pub root: String,
    /// Roots of home networks with a roaming agreement.
    pub partners: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardFile {
    pub imsi: String,
    pub home: String,
    pub suite: String,
    pub leaf: String,
    pub key: String,
    pub root: String,
    /// Cross-certificates that serving networks issued for the home network's authority.
    pub authorities: BTreeMap<String, String>,
}

pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, AkaError> {
    let read = input::read(path, MAX_FILE_BYTES).map_err(|error| wrong(path, words(&error)))?;
    let bytes =
        read.ok_or_else(|| wrong(path, format!("has more bytes; accepted: up to {MAX_FILE_BYTES}")))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| wrong(path, format!("{error}; accepted: what \"aka provision\" writes")))
}

fn wrong(path: &Path, reason: impl Into<String>) -> AkaError {
    AkaError::File { path: path.into(), reason: reason.into() }
}

fn named<T>(path: &Path, field: &str, name: Result<T, NameError>) -> Result<T, AkaError> {
    name.map_err(|error| wrong(path, format!("\"{field}\": {error}")))
}

fn certificate(pem: &str, path: &Path, what: &str) -> Result<Vec<u8>, AkaError> {
    let der = X509::from_pem(pem.as_bytes()).and_then(|certificate| certificate.to_der());
    der.map_err(|_| wrong(path, format!("{what} is not a certificate; accepted: one certificate in PEM")))
}

fn certificates(
    all: &BTreeMap<String, String>,
    path: &Path,
    field: &str,
) -> Result<BTreeMap<Network, Vec<u8>>, AkaError> {
    let one = |(name, pem): (&String, &String)| {
        let network = named(path, field, Network::new(name))?;
        let der = certificate(pem, path, &format!("\"{field}\": that of network {network}"))?;
        Ok((network, der))
    };
    all.iter().map(one).collect()
}

/// A leaf and its key, which must match each other and the key type of the suite.
fn leaf_and_key(leaf: &str, key: &str, suite: &Suite, path: &Path) -> Result<Issued, AkaError> {
    let certificate = certificate(leaf, path, "\"leaf\"")?;
    // Without a callback OpenSSL would ask the terminal for the password of a key that has one.
    let key = PKey::private_key_from_pem_callback(key.as_bytes(), |_| Ok(0)).map_err(|_| {
        wrong(
            path,
            "\"key\" is not a private key; accepted: the leaf's private key in PEM, without a password",
        )
    })?;
    let public = X509::from_der(&certificate).and_then(|leaf| leaf.public_key());
    let public =
        public.map_err(|_| wrong(path, "\"leaf\" has no readable key; accepted: an X.509 certificate"))?;
    if !public.public_eq(&key) {
        return Err(wrong(
            path,
            format!(
                "\"key\" ({}) is not the key of \"leaf\" ({}); accepted: the private key of that certificate",
                keys::describe(&key),
                keys::describe(&public),
            ),
        ));
    }
    let [wanted, ..] = credentials::kinds(suite);
    if keys::key_type(&public) != Some(wanted) {
        return Err(wrong(
            path,
            format!(
                "\"leaf\" has another key ({}) than its suite says; accepted by {suite}: {}",
                keys::describe(&public),
                wanted.name(suite.protocol),
            ),
        ));
    }
    let key = key.private_key_to_pkcs8().map_err(|_| wrong(path, "\"key\" cannot be used"))?;
    Ok(Issued { certificate, key, counterpart: None })
}

impl HssFile {
    pub fn hss(&self, path: &Path) -> Result<Hss, AkaError> {
        let network = named(path, "network", Network::new(&self.network))?;
        let mut hss = Hss::new();
        for (imsi, pem) in &self.subscribers {
            let imsi = named(path, "subscribers", Imsi::new(imsi))?;
            of_network(path, "subscribers", &imsi, &network)?;
            let leaf = certificate(pem, path, &format!("\"subscribers\": that of {imsi}"))?;
            hss.subscribe(imsi, &leaf);
        }
        for imsi in &self.barred {
            let imsi = named(path, "barred", Imsi::new(imsi))?;
            if hss.subscribed(&imsi).is_none() {
                let reason =
                    format!("\"barred\": {imsi} is not a subscriber; accepted: those in \"subscribers\"");
                return Err(wrong(path, reason));
            }
            hss.bar(&imsi, true);
        }
        for (network, certificate) in certificates(&self.certified, path, "certified")? {
            hss.certify(network, certificate);
        }
        Ok(hss)
    }
}

fn of_network(path: &Path, field: &str, imsi: &Imsi, network: &Network) -> Result<(), AkaError> {
    if imsi.is_of(network) {
        return Ok(());
    }
    let reason =
        format!("\"{field}\": {imsi} is of another network; accepted: IMSIs that begin with {network}");
    Err(wrong(path, reason))
}

impl SgsnFile {
    pub fn parts(&self, path: &Path) -> Result<(NodeName, Network, Suite, NodeCertificates), AkaError> {
        let name = named(path, "name", NodeName::new(&self.name))?;
        let network = named(path, "network", Network::new(&self.network))?;
        let suite = suite(&self.suite, path)?;
        let certificates = NodeCertificates {
            leaf: leaf_and_key(&self.leaf, &self.key, &suite, path)?,
            authority: certificate(&self.authority, path, "\"authority\"")?,
            root: certificate(&self.root, path, "\"root\"")?,
            partners: certificates(&self.partners, path, "partners")?,
        };
        Ok((name, network, suite, certificates))
    }
}

impl CardFile {
    /// The card and its suite.
    pub fn card(&self, path: &Path) -> Result<(Card, Suite), AkaError> {
        let imsi = named(path, "imsi", Imsi::new(&self.imsi))?;
        let home = named(path, "home", Network::new(&self.home))?;
        of_network(path, "imsi", &imsi, &home)?;
        let suite = suite(&self.suite, path)?;
        let own = leaf_and_key(&self.leaf, &self.key, &suite, path)?;
        let card = Card {
            imsi,
            home,
            root: certificate(&self.root, path, "\"root\"")?,
            leaf: own.certificate,
            key: own.key,
            authorities: certificates(&self.authorities, path, "authorities")?,
        };
        Ok((card, suite))
    }
}

fn suite(name: &str, path: &Path) -> Result<Suite, AkaError> {
    let parsed =
        name.parse().map_err(|error: shakedown_trace::suite::SuiteError| wrong(path, error.to_string()))?;
    suite_of(&parsed).map_err(|error| wrong(path, error.to_string()))
}
