//! What the processes are told in files: an HSS's register, an SGSN's certificates, a subscriber's card. JSON, with
//! certificates and keys as PEM; whoever reads a key can be whom it belongs to, so files with keys are the owner's alone.

use super::lab::{self, Card, NodeCertificates};
use super::{AkaError, Operator, suite_of};
use openssl::pkey::PKey;
use openssl::x509::X509;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shakedown_aka::hss::Hss;
use shakedown_aka::names::{Imsi, Network, NodeName};
use shakedown_pki::Profile;
use shakedown_pki::issue::Issued;
use shakedown_trace::Suite;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The longest file that is read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// An HSS's register.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HssFile {
    /// Its network.
    pub network: String,
    /// Subscribers and their leaves.
    pub subscribers: BTreeMap<String, String>,
    /// Who of them is barred.
    pub barred: Vec<String>,
    /// Roaming agreements: a serving network's authority as this network certifies it.
    pub certified: BTreeMap<String, String>,
}

/// An SGSN's certificates.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SgsnFile {
    /// Its name.
    pub name: String,
    /// Its network.
    pub network: String,
    /// What it negotiates.
    pub suite: String,
    /// Its certificate.
    pub leaf: String,
    /// Its key.
    pub key: String,
    /// Its network's authority.
    pub authority: String,
    /// Its network's root.
    pub root: String,
    /// Roots of home networks with which there is an agreement.
    pub partners: BTreeMap<String, String>,
}

/// A subscriber's card.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardFile {
    /// Who it is.
    pub imsi: String,
    /// Of which network.
    pub home: String,
    /// What it negotiates.
    pub suite: String,
    /// The subscriber's certificate.
    pub leaf: String,
    /// Its key.
    pub key: String,
    /// The home network's root.
    pub root: String,
    /// The home network's authority, as each serving network certifies it.
    pub authorities: BTreeMap<String, String>,
}

/// What was written.
#[derive(Clone, Debug, Serialize)]
pub struct Provisioned {
    /// The suite that all of it is for.
    pub suite: String,
    /// The files.
    pub files: Vec<PathBuf>,
}

/// Reads one of the files.
///
/// # Errors
/// [`AkaError::File`].
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, AkaError> {
    let wrong = |reason: String| AkaError::File { path: path.into(), reason };
    let mut text = String::new();
    // A device that never ends says that it has no bytes.
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text));
    if read.map_err(|error| wrong(words(&error)))? as u64 > MAX_FILE_BYTES {
        return Err(wrong(format!("has more bytes; accepted: up to {MAX_FILE_BYTES}")));
    }
    serde_json::from_str(&text)
        .map_err(|error| wrong(format!("{error}; accepted: what \"aka provision\" writes")))
}

/// An error of the system without its number.
pub(super) fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn certificate(pem: &str, path: &Path, what: &str) -> Result<Vec<u8>, AkaError> {
    let der = X509::from_pem(pem.as_bytes()).and_then(|certificate| certificate.to_der());
    der.map_err(|_| AkaError::File { path: path.into(), reason: format!("{what} is no certificate in PEM") })
}

fn key(pem: &str, path: &Path) -> Result<Vec<u8>, AkaError> {
    let der = PKey::private_key_from_pem(pem.as_bytes()).and_then(|key| key.private_key_to_pkcs8());
    der.map_err(|_| AkaError::File { path: path.into(), reason: "key is no private key in PEM".into() })
}

fn certificates(
    all: &BTreeMap<String, String>,
    path: &Path,
    what: &str,
) -> Result<BTreeMap<Network, Vec<u8>>, AkaError> {
    all.iter().map(|(name, pem)| Ok((Network::new(name)?, certificate(pem, path, what)?))).collect()
}

impl HssFile {
    /// The register.
    ///
    /// # Errors
    /// [`AkaError`].
    pub fn hss(&self, path: &Path) -> Result<Hss, AkaError> {
        let mut hss = Hss::new();
        for (imsi, pem) in &self.subscribers {
            hss.subscribe(Imsi::new(imsi)?, &certificate(pem, path, "a subscriber's")?);
        }
        for imsi in &self.barred {
            hss.bar(&Imsi::new(imsi)?, true);
        }
        for (network, certificate) in certificates(&self.certified, path, "a cross-certificate")? {
            hss.certify(network, certificate);
        }
        Ok(hss)
    }
}

impl SgsnFile {
    /// Name, network, suite, certificates.
    ///
    /// # Errors
    /// [`AkaError`].
    pub fn parts(&self, path: &Path) -> Result<(NodeName, Network, Suite, NodeCertificates), AkaError> {
        let certificates = NodeCertificates {
            leaf: Issued {
                certificate: certificate(&self.leaf, path, "leaf")?,
                key: key(&self.key, path)?,
                counterpart: None,
            },
            authority: certificate(&self.authority, path, "authority")?,
            root: certificate(&self.root, path, "root")?,
            partners: certificates(&self.partners, path, "a partner's root")?,
        };
        Ok((
            NodeName::new(&self.name)?,
            Network::new(&self.network)?,
            suite(&self.suite, path)?,
            certificates,
        ))
    }
}

impl CardFile {
    /// The card, and the suite that it is for.
    ///
    /// # Errors
    /// [`AkaError`].
    pub fn card(&self, path: &Path) -> Result<(Card, Suite), AkaError> {
        let card = Card {
            imsi: Imsi::new(&self.imsi)?,
            home: Network::new(&self.home)?,
            root: certificate(&self.root, path, "root")?,
            leaf: certificate(&self.leaf, path, "leaf")?,
            key: key(&self.key, path)?,
            authorities: certificates(&self.authorities, path, "an authority")?,
        };
        Ok((card, suite(&self.suite, path)?))
    }
}

fn suite(name: &str, path: &Path) -> Result<Suite, AkaError> {
    let wrong = |error: shakedown_trace::suite::SuiteError| AkaError::File {
        path: path.into(),
        reason: error.to_string(),
    };
    suite_of(&name.parse().map_err(wrong)?)
}

fn pem(der: &[u8]) -> Result<String, AkaError> {
    let text = X509::from_der(der).and_then(|certificate| certificate.to_pem());
    let text = text.map_err(|stack| AkaError::OpenSsl { what: "write a certificate", stack })?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn key_pem(pkcs8: &[u8]) -> Result<String, AkaError> {
    let text = PKey::private_key_from_der(pkcs8).and_then(|key| key.private_key_to_pem_pkcs8());
    let text = text.map_err(|stack| AkaError::OpenSsl { what: "write a key", stack })?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn write(path: PathBuf, value: &impl Serialize, files: &mut Vec<PathBuf>) -> Result<(), AkaError> {
    let wrong = |reason: String| AkaError::File { path: path.clone(), reason };
    let mut text = serde_json::to_string_pretty(value).map_err(|error| wrong(error.to_string()))?;
    text.push('\n');
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.map_err(|error| wrong(words(&error)))?;
    file.write_all(text.as_bytes()).map_err(|error| wrong(words(&error)))?;
    files.push(path);
    Ok(())
}

/// Makes two operators with a roaming agreement, and files for the home network's HSS and subscribers and the serving
/// network's SGSNs. Files that are there are not replaced.
///
/// # Errors
/// [`AkaError`].
pub fn provision(
    folder: &Path,
    suite: &Suite,
    home: &str,
    serving: &str,
    nodes: &[String],
    subscribers: usize,
) -> Result<Provisioned, AkaError> {
    let suite = suite_of(suite)?;
    let (home, serving) = (Network::new(home)?, Network::new(serving)?);
    let profile = Profile::default();
    let kinds = lab::kinds(&suite);
    let own = Operator::new(&home, kinds, &profile)?;
    let other = if home == serving { None } else { Some(Operator::new(&serving, kinds, &profile)?) };
    let abroad = other.as_ref().unwrap_or(&own);
    std::fs::create_dir_all(folder)
        .map_err(|error| AkaError::File { path: folder.into(), reason: words(&error) })?;
    let mut files = Vec::new();
    let mut register = HssFile {
        network: home.to_string(),
        subscribers: BTreeMap::new(),
        barred: Vec::new(),
        certified: [(serving.to_string(), pem(&own.certify(abroad)?)?)].into(),
    };
    for place in 0..subscribers {
        let imsi = format!("{home}{place:0width$}", width = 15 - home.as_str().len());
        let leaf = own.subscriber(&format!("subscriber-{place}.example"))?;
        register.subscribers.insert(imsi.clone(), pem(&leaf.certificate)?);
        let card = CardFile {
            home: home.to_string(),
            suite: suite.to_string(),
            leaf: pem(&leaf.certificate)?,
            key: key_pem(&leaf.key)?,
            root: pem(&own.root()?)?,
            authorities: [(serving.to_string(), pem(&abroad.certify(&own)?)?)].into(),
            imsi,
        };
        write(folder.join(format!("card-{place}.json")), &card, &mut files)?;
    }
    write(folder.join(format!("hss-{home}.json")), &register, &mut files)?;
    for name in nodes {
        let name = NodeName::new(name)?;
        let leaf = abroad.node(name.as_str())?;
        let node = SgsnFile {
            name: name.to_string(),
            network: serving.to_string(),
            suite: suite.to_string(),
            leaf: pem(&leaf.certificate)?,
            key: key_pem(&leaf.key)?,
            authority: pem(&abroad.authority()?)?,
            root: pem(&abroad.root()?)?,
            partners: [(home.to_string(), pem(&own.root()?)?)].into(),
        };
        write(folder.join(format!("{name}.json")), &node, &mut files)?;
    }
    Ok(Provisioned { suite: suite.to_string(), files })
}
