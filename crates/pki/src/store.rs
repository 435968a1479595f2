//! The identities of a suite's sides, generated once and kept.

use crate::cache::{Cache, hex};
use crate::date;
use crate::error::{Doing, PkiError};
use crate::issue::{self, Overrides, Place};
use crate::keys;
use crate::name;
use crate::order;
use crate::profile::Profile;
use openssl::pkey::{PKey, Private};
use openssl::x509::X509;
use shakedown_trace::Side;
use shakedown_trace::suite::KeyType;
use std::path::{Path, PathBuf};

/// Folder of keys; its number changes with the layout of the files.
const KEYS: &str = "keys-1";
/// Folder of certificates; its number changes with the layout of the files and the way certificates are created.
const CERTIFICATES: &str = "x509-1";

/// Keys and certificates on disk. The private keys in it are for the laboratory only.
#[derive(Debug)]
pub struct Store {
    cache: Cache,
}

/// What a side presents and what its peer trusts.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// DER certificates that are sent, leaf first, without the root.
    pub chain: Vec<Vec<u8>>,
    /// DER certificate that the peer trusts.
    pub root: Vec<u8>,
    /// The leaf's private key as PKCS #8 DER.
    pub key: Vec<u8>,
    /// DNS name that the peer checks.
    pub subject: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key must not appear in logs.
        let bytes: Vec<_> = self.chain.iter().map(Vec::len).collect();
        formatter
            .debug_struct("Identity")
            .field("subject", &self.subject)
            .field("chain_bytes", &bytes)
            .finish()
    }
}

impl Store {
    /// A store in a folder, which is created when the first file is stored.
    pub fn open(folder: &Path) -> Self {
        Self { cache: Cache::new(folder) }
    }

    /// The default folder of the store: `SHAKEDOWN_CACHE`, or else `shakedown` under `XDG_CACHE_HOME`,
    /// or else `~/.cache/shakedown`.
    pub fn default_dir() -> Result<PathBuf, PkiError> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        variable("SHAKEDOWN_CACHE")
            .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("shakedown")))
            .or_else(|| variable("HOME").map(|folder| folder.join(".cache/shakedown")))
            .ok_or(PkiError::NoCacheDirectory)
    }

    /// Notices about damaged files that were regenerated since the last call, one line each.
    pub fn take_notices(&self) -> Vec<String> {
        self.cache.take_notices()
    }

    /// The identity of a side: a chain of `keys`, leaf first and root last, under a profile.
    ///
    /// Each place of each side's chain has a different key. The chain must be valid at `now_unix_s`.
    pub fn identity(
        &self,
        keys: &[KeyType],
        side: Side,
        profile: &Profile,
        now_unix_s: i64,
    ) -> Result<Identity, PkiError> {
        let now_unix_s = date::checked(now_unix_s)?;
        if keys.len() < 2 {
            return Err(PkiError::ChainTooShort { given: keys.len() });
        }
        profile.check("given")?;
        let leaf_key = self.key_at(keys[0], side.as_str(), 0)?;
        let names: Vec<_> = keys.iter().map(|key| key.standard_name()).collect();
        let folder = format!("{CERTIFICATES}/{}", &hex(&profile.digest())[..16]);
        let certificates = self.cache.fetch(
            &folder,
            &format!("{}-{}.pem", side.as_str(), names.join("@")),
            |text| read_chain(text, keys, &leaf_key),
            || self.make_chain(keys, side, profile),
        )?;
        order::check_validity(&certificates, "certificate", now_unix_s)?;
        into_identity(&certificates, &leaf_key)
    }

    /// `count` client identities under the same issuers: that of [`identity`](Self::identity), then others, each with
    /// another name and a new key, which are not kept.
    pub fn clients(
        &self,
        keys: &[KeyType],
        profile: &Profile,
        now_unix_s: i64,
        count: usize,
    ) -> Result<Vec<Identity>, PkiError> {
        let usual = self.identity(keys, Side::Client, profile, now_unix_s)?;
        let issuer = usual.chain.get(1).unwrap_or(&usual.root);
        let certificate = X509::from_der(issuer).doing("read a certificate")?;
        let key = self.key_at(keys[1], Side::Client.as_str(), 1)?;
        let mut identities = vec![usual.clone()];
        for number in 1..count {
            let name = Some(format!("client-{number}.example"));
            let named =
                profile.with(Place::Client, &Overrides { common_name: name, ..Overrides::default() })?;
            let issued = issue::one(&named, Place::Client, keys[0], Some((&certificate, &key)))?;
            let leaf = X509::from_der(&issued.certificate).doing("read a certificate")?;
            let chain = std::iter::once(issued.certificate).chain(usual.chain.iter().skip(1).cloned());
            identities.push(Identity {
                chain: chain.collect(),
                root: usual.root.clone(),
                key: issued.key,
                subject: name::host(&leaf).unwrap_or_default(),
            });
        }
        identities.truncate(count);
        Ok(identities)
    }

    /// A key for a suite that needs one without a certificate, as PKCS #8 DER.
    pub fn temporary_key(&self, key: KeyType) -> Result<Vec<u8>, PkiError> {
        keys::to_pkcs8(&*self.key_at(key, "temporary", 0)?)
    }

    /// The key at a place of a side's chain (0 is the leaf) as PKCS #8 DER.
    pub fn key(&self, key: KeyType, side: Side, place: usize) -> Result<Vec<u8>, PkiError> {
        keys::to_pkcs8(&*self.key_at(key, side.as_str(), place)?)
    }

    /// The text of `folder/name`, parsed by `read`; created by `make` if it does not exist or is damaged.
    pub fn keep<T, E: From<PkiError>>(
        &self,
        folder: &str,
        name: &str,
        read: impl Fn(&str) -> Result<T, String>,
        make: impl Fn() -> Result<String, E>,
    ) -> Result<T, E> {
        self.cache.fetch(folder, name, read, make)
    }

    fn key_at(&self, key: KeyType, owner: &str, place: usize) -> Result<PKey<Private>, PkiError> {
        self.cache.fetch(
            KEYS,
            &format!("{owner}-{place}-{}.pem", key.standard_name()),
            |text| {
                let found = PKey::private_key_from_pem(text.as_bytes()).map_err(|_| "not a private key")?;
                if keys::key_type(&found) == Some(key) {
                    Ok(found)
                } else {
                    Err("a key of another kind".into())
                }
            },
            || {
                let pem = keys::generate(key)?.private_key_to_pem_pkcs8().doing("encode a private key")?;
                Ok(String::from_utf8_lossy(&pem).into_owned())
            },
        )
    }

    /// Issues a chain from the root down, as PEM with the leaf first.
    fn make_chain(&self, keys: &[KeyType], side: Side, profile: &Profile) -> Result<String, PkiError> {
        let owner = side.as_str();
        let keys = keys.iter().enumerate().map(|(level, key)| self.key_at(*key, owner, level));
        let issued = issue::chain(profile, side, &keys.collect::<Result<Vec<_>, _>>()?)?;
        let mut text = String::new();
        for certificate in &issued {
            text.push_str(&String::from_utf8_lossy(&certificate.to_pem().doing("encode a certificate")?));
        }
        Ok(text)
    }
}

/// Reads a stored chain and checks that it matches its name.
fn read_chain(text: &str, keys: &[KeyType], leaf_key: &PKey<Private>) -> Result<Vec<X509>, String> {
    let chain = X509::stack_from_pem(text.as_bytes()).map_err(|_| "unreadable certificates")?;
    let public_keys = chain.iter().map(|certificate| certificate.public_key()).collect::<Result<Vec<_>, _>>();
    let public_keys = public_keys.map_err(|_| "unreadable public key")?;
    if !public_keys.iter().map(|key| keys::key_type(key)).eq(keys.iter().map(|key| Some(*key))) {
        return Err("certificates of other keys".into());
    }
    if !public_keys[0].public_eq(leaf_key) {
        return Err("the leaf's certificate is not that of its key".into());
    }
    for (place, certificate) in chain.iter().enumerate() {
        let issuer = (place + 1).min(chain.len() - 1);
        if !certificate.verify(&public_keys[issuer]).unwrap_or(false) {
            return Err("a signature does not verify".into());
        }
    }
    Ok(chain)
}

fn into_identity(certificates: &[X509], leaf_key: &PKey<Private>) -> Result<Identity, PkiError> {
    let subject = name::host(&certificates[0]).unwrap_or_default();
    let mut chain = Vec::with_capacity(certificates.len());
    for certificate in certificates {
        chain.push(certificate.to_der().doing("encode a certificate")?);
    }
    let root = chain.pop().unwrap_or_default();
    Ok(Identity { chain, root, key: keys::to_pkcs8(leaf_key)?, subject })
}
