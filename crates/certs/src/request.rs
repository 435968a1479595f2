//! The `certs` command as a function of a [`Request`], which returns a [`Response`].

mod issue;

use crate::files::{self, Sheet, Written};
use crate::{CertsError, describe, wtls};
use openssl::x509::X509;
use serde::{Deserialize, Serialize};
use shakedown_pki::inspect::{Criteria, Description};
use shakedown_pki::issue::{Issued, Overrides, Place, new_chain, pkcs12};
use shakedown_pki::{PkiError, Profile, keys};
use shakedown_trace::Side;
use shakedown_trace::suite::KeyType;
use shakedown_wtls::certificate::Certificate as WtlsCertificate;
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    Show(Show),
    /// Create a chain with new keys.
    Make(Make),
    /// Create one certificate with a new key.
    Issue(Issue),
    /// List the included certificate profiles.
    Profiles {},
    /// Check a profile, given by its name or the path of a file.
    Profile {
        name: String,
    },
}

/// The result of a request.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant)] // one at a time exists
pub enum Response {
    Shown(Vec<Shown>),
    Made { files: Vec<Written>, description: Description },
    Profiles(Vec<ProfileEntry>),
}

/// One file described.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    pub file: PathBuf,
    #[serde(flatten)]
    pub description: Description,
}

#[derive(Clone, Debug, Serialize)]
pub struct ProfileEntry {
    pub name: &'static str,
    /// The usual keys of chains with this profile.
    pub keys: String,
    /// Its TOML text, which users can adapt.
    pub text: &'static str,
}

/// Describe files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Show {
    pub files: Vec<PathBuf>,
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// File of the roots that the peer trusts.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    #[serde(default)]
    pub password: Option<String>,
    /// The host that the peer expects.
    #[serde(default)]
    pub host: Option<String>,
    /// `server` or `client`: the side that presents the chain.
    #[serde(default = "server")]
    pub side: String,
    /// The peer's security level, 0 to 5.
    #[serde(default = "two")]
    pub level: u8,
    /// The time at which certificates are validated, in seconds since 1970.
    pub now: i64,
}

/// Create a chain with new keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Make {
    /// `leaf@issuer@root`; a single key is used for leaf and root; `None`: the profile's usual keys.
    #[serde(default)]
    pub keys: Option<String>,
    pub out: PathBuf,
    #[serde(default)]
    pub replace: bool,
    /// WTLS certificates instead of X.509.
    #[serde(default)]
    pub wtls: bool,
    /// `server` or `client`: the side of the leaf.
    #[serde(default = "server")]
    pub side: String,
    /// Name or path of the profile.
    #[serde(default = "lab")]
    pub profile: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub alternative_names: Vec<String>,
    /// First day of the leaf's validity.
    #[serde(default)]
    pub not_before: Option<String>,
    #[serde(default)]
    pub days: Option<u32>,
    /// Also write a PKCS #12 archive with this password.
    #[serde(default)]
    pub password: Option<String>,
    /// The time at which certificates were validated, in seconds since 1970.
    pub now: i64,
}

/// Create one certificate with a new key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issue {
    /// `root`, `intermediate`, `server` or `client`.
    pub place: String,
    pub key: String,
    /// The issuer's certificate, followed by its issuers; `None` only for a root.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// The issuer's key, if it is not in the same file.
    #[serde(default)]
    pub ca_key: Option<PathBuf>,
    #[serde(default)]
    pub ca_password: Option<String>,
    pub out: PathBuf,
    #[serde(default)]
    pub replace: bool,
    /// A WTLS certificate instead of X.509; implied if the issuer's certificate is a WTLS certificate.
    #[serde(default)]
    pub wtls: bool,
    /// Name or path of the profile.
    #[serde(default = "lab")]
    pub profile: String,
    /// Replaces the profile's common name.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub alternative_names: Vec<String>,
    /// First day of validity.
    #[serde(default)]
    pub not_before: Option<String>,
    #[serde(default)]
    pub days: Option<u32>,
    /// The time at which certificates were validated, in seconds since 1970.
    pub now: i64,
}

fn server() -> String {
    "server".into()
}

fn lab() -> String {
    "lab".into()
}

fn two() -> u8 {
    2
}

/// Executes a request.
///
/// # Errors
/// [`CertsError`]; each message is one line with the problem, its place, and what is accepted.
pub fn run(request: &Request) -> Result<Response, CertsError> {
    match request {
        Request::Show(show) => show.run(),
        Request::Make(make) => make.run(),
        Request::Issue(issue) => issue.run(),
        Request::Profiles {} => profiles(),
        Request::Profile { name } => {
            Profile::find(name)?;
            Ok(Response::Profiles(Vec::new()))
        }
    }
}

fn profiles() -> Result<Response, CertsError> {
    let mut list = Vec::new();
    for name in Profile::names() {
        let (profile, text) = Profile::named(name)?;
        list.push(ProfileEntry { name, keys: profile.keys.unwrap_or_default(), text });
    }
    Ok(Response::Profiles(list))
}

fn side_of(text: &str) -> Result<Side, CertsError> {
    let unknown = || CertsError::UnknownWord { what: "side", value: text.into(), accepted: "server, client" };
    Side::from_name(text).ok_or_else(unknown)
}

/// The keys of a chain; `X` means `X@X`.
fn kinds_of(text: &str) -> Result<Vec<KeyType>, CertsError> {
    let kind =
        |name: &str| KeyType::from_name(name).ok_or_else(|| CertsError::UnknownKey { key: name.into() });
    let mut kinds = text.split('@').map(kind).collect::<Result<Vec<_>, _>>()?;
    if let [lone] = kinds[..] {
        kinds.push(lone);
    }
    Ok(kinds)
}

/// A new chain is validated without checks of strength: the user chose the keys.
fn criteria(side: Side, now_unix_s: i64) -> Criteria {
    Criteria { now_unix_s, security_level: 0, host: None, side }
}

impl Show {
    fn run(&self) -> Result<Response, CertsError> {
        if self.level > 5 {
            let value = self.level.to_string();
            return Err(CertsError::UnknownWord { what: "security level", value, accepted: "0 to 5" });
        }
        let criteria = Criteria {
            now_unix_s: self.now,
            security_level: self.level,
            host: self.host.clone(),
            side: side_of(&self.side)?,
        };
        let describe = |file: &PathBuf| {
            let (key, ca, password) = (self.key.as_deref(), self.ca.as_deref(), self.password.as_deref());
            let description = describe(file, key, ca, password, &criteria)?;
            Ok(Shown { file: file.clone(), description })
        };
        self.files.iter().map(describe).collect::<Result<_, _>>().map(Response::Shown)
    }
}

impl Make {
    fn run(&self) -> Result<Response, CertsError> {
        let side = side_of(&self.side)?;
        let leaf = if side == Side::Server { Place::Server } else { Place::Client };
        let overrides = Overrides {
            common_name: self.name.clone(),
            alternative_names: self.alternative_names.clone(),
            not_before: self.not_before.clone(),
            days: self.days,
        };
        let profile = Profile::find(&self.profile)?.with(leaf, &overrides)?;
        let kinds = match &self.keys {
            Some(text) => kinds_of(text)?,
            None => profile.usual_keys(),
        };
        let sheets = match self.wtls {
            true if self.password.is_some() => return Err(CertsError::NoWtlsArchive),
            true => wtls_sheets(&wtls::new_chain(&profile, side, &kinds)?)?,
            false => self.sheets(&new_chain(&profile, side, &kinds)?)?,
        };
        let files = files::write(&self.out, &sheets, self.replace)?;
        let path = |name: &str| self.out.join(name);
        let (chain, key, ca) = (path("chain.pem"), path("key.pem"), path("ca.pem"));
        let description = describe(&chain, Some(&key), Some(&ca), None, &criteria(side, self.now))?;
        Ok(Response::Made { files, description })
    }

    fn sheets(&self, chain: &[Issued]) -> Result<Vec<Sheet>, CertsError> {
        let Some((root, sent)) = chain.split_last() else {
            return Err(PkiError::ChainTooShort { given: 0 }.into());
        };
        let mut list = vec![
            Sheet::public(
                "chain.pem",
                "the certificates that are sent: the leaf, then its issuers",
                pems(sent.iter().map(|one| &one.certificate))?,
            ),
            Sheet::private("key.pem", "the leaf's private key", key_pem(&sent[0].key)?),
            Sheet::public("ca.pem", "the root, which peers trust", pems([&root.certificate])?),
            Sheet::private("ca-key.pem", "the root's private key, to issue more", key_pem(&root.key)?),
        ];
        let counterparts: Vec<&Vec<u8>> = chain.iter().filter_map(|one| one.counterpart.as_ref()).collect();
        if !counterparts.is_empty() {
            let what = "the cross-signed CA's own root, which peers may trust instead";
            list.push(Sheet::public("ca-other.pem", what, pems(counterparts)?));
        }
        if let Some(password) = &self.password {
            let archive = pkcs12(chain, password)?;
            list.push(Sheet::private("all.p12", "chain, root and the leaf's key, PKCS #12", archive));
        }
        Ok(list)
    }
}

fn wtls_sheets(chain: &[(WtlsCertificate, Vec<u8>)]) -> Result<Vec<Sheet>, CertsError> {
    let Some(((root, root_key), sent)) = chain.split_last() else {
        return Err(PkiError::ChainTooShort { given: 0 }.into());
    };
    let text: String = sent.iter().map(|(certificate, _)| certificate.to_pem()).collect();
    let raw: Vec<u8> = sent.iter().flat_map(|(certificate, _)| certificate.as_bytes().to_vec()).collect();
    Ok(vec![
        Sheet::public("chain.pem", "the certificates that are sent: the leaf, then its issuers", text),
        Sheet::public("chain.wtls", "the same certificates in binary form", raw),
        Sheet::private("key.pem", "the leaf's private key", key_pem(&sent[0].1)?),
        Sheet::public("ca.pem", "the root, which peers trust", root.to_pem()),
        Sheet::private("ca-key.pem", "the root's private key, to issue more", key_pem(root_key)?),
    ])
}

fn pems<'a>(certificates: impl IntoIterator<Item = &'a Vec<u8>>) -> Result<Vec<u8>, CertsError> {
    let mut text = Vec::new();
    for der in certificates {
        let pem = X509::from_der(der).and_then(|certificate| certificate.to_pem());
        text.extend(pem.map_err(encoding)?);
    }
    Ok(text)
}

fn key_pem(pkcs8: &[u8]) -> Result<Vec<u8>, CertsError> {
    keys::from_pkcs8(pkcs8)?.private_key_to_pem_pkcs8().map_err(encoding)
}

fn encoding(error: openssl::error::ErrorStack) -> CertsError {
    PkiError::Encoding { what: "certificate or key", detail: error.to_string() }.into()
}
