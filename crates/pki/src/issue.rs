//! Issues certificates on request: whole chains, or one certificate by an existing issuer.

use crate::certificate::{self, Issuer};
use crate::error::{Doing, PkiError};
use crate::keys;
use crate::profile::{Profile, Role};
use openssl::pkcs12::Pkcs12;
use openssl::pkey::{PKey, Private};
use openssl::stack::Stack;
use openssl::x509::X509;
use shakedown_trace::Side;
use shakedown_trace::suite::KeyType;

shakedown_trace::spelled! {
    /// A place in a chain.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Place {
        Root = "root",
        Intermediate = "intermediate",
        Server = "server",
        Client = "client",
    }
}

/// Changes to a profile's certificates of one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Replaces the common name; for a leaf, also replaces the alternative names by this DNS name.
    pub common_name: Option<String>,
    /// Replaces the alternative names: `dns:…`, `ip:…`, `uri:…`, `email:…`.
    pub alternative_names: Vec<String>,
    /// First day of validity, `YYYY-MM-DD`.
    pub not_before: Option<String>,
    pub days: Option<u32>,
}

/// A certificate with its key.
#[derive(Clone)]
pub struct Issued {
    pub certificate: Vec<u8>,
    /// PKCS #8 DER.
    pub key: Vec<u8>,
    /// DER of a self-signed certificate with the same name and key, if the profile has one (cross-signing).
    pub counterpart: Option<Vec<u8>>,
}

impl Profile {
    /// The role of a certificate at a place.
    pub fn place(&self, place: Place, has_issuer: bool) -> Result<&Role, PkiError> {
        match (place, has_issuer) {
            (Place::Root, false) => Ok(&self.root),
            (Place::Root, true) => Err(PkiError::IssuerWithoutUse),
            (_, false) => Err(PkiError::IssuerNeeded),
            (Place::Intermediate, true) => Ok(self.intermediate(1)),
            (Place::Server, true) => Ok(&self.server),
            (Place::Client, true) => Ok(&self.client),
        }
    }

    /// The profile with overrides for one place applied.
    pub fn with(&self, place: Place, overrides: &Overrides) -> Result<Self, PkiError> {
        let mut profile = self.clone();
        match place {
            Place::Root => overrides.apply(&mut profile.root, false),
            Place::Intermediate => {
                profile.intermediates.iter_mut().for_each(|role| overrides.apply(role, false))
            }
            Place::Server => overrides.apply(&mut profile.server, true),
            Place::Client => overrides.apply(&mut profile.client, true),
        }
        profile.check("with the options given")?;
        Ok(profile)
    }
}

impl Overrides {
    fn apply(&self, role: &mut Role, is_leaf: bool) {
        if let Some(name) = &self.common_name {
            role.wtls_name = None;
            role.subject.retain(|attribute| !attribute.starts_with("CN="));
            role.subject.push(format!("CN={name}"));
            if is_leaf && self.alternative_names.is_empty() {
                role.subject_alternative_names = vec![format!("dns:{name}")];
            }
        }
        if !self.alternative_names.is_empty() {
            role.subject_alternative_names.clone_from(&self.alternative_names);
        }
        if self.not_before.is_some() {
            role.not_before.clone_from(&self.not_before);
        }
        if self.days.is_some() {
            role.days = self.days;
        }
    }
}

/// A new chain with new keys, leaf first and root last.
pub fn new_chain(profile: &Profile, side: Side, kinds: &[KeyType]) -> Result<Vec<Issued>, PkiError> {
    if kinds.len() < 2 {
        return Err(PkiError::ChainTooShort { given: kinds.len() });
    }
    let keys = kinds.iter().map(|kind| keys::generate(*kind)).collect::<Result<Vec<_>, _>>()?;
    let certificates = chain(profile, side, &keys)?;
    let mut issued = Vec::with_capacity(keys.len());
    for (level, (certificate, key)) in certificates.iter().zip(&keys).enumerate() {
        let role = profile.role(side, level, keys.len());
        let counterpart = match role.cross_signed {
            true => Some(der(&certificate::make(profile, role, level, key, None)?)?),
            false => None,
        };
        issued.push(Issued { certificate: der(certificate)?, key: keys::to_pkcs8(key)?, counterpart });
    }
    Ok(issued)
}

/// One new certificate with a new key: a root, or issued by `issuer` (certificate and key).
pub fn one(
    profile: &Profile,
    place: Place,
    kind: KeyType,
    issuer: Option<(&X509, &PKey<Private>)>,
) -> Result<Issued, PkiError> {
    let role = profile.place(place, issuer.is_some())?;
    let issuer = checked(issuer)?;
    let key = keys::generate(kind)?;
    let certificate = certificate::make(profile, role, 1, &key, issuer.as_ref())?;
    Ok(Issued { certificate: der(&certificate)?, key: keys::to_pkcs8(&key)?, counterpart: None })
}

/// DER of a certificate for an authority's existing key, issued by `issuer` (certificate and key): the authority's own
/// root, or another one (a cross-certificate).
pub fn authority(
    profile: &Profile,
    key: &PKey<Private>,
    issuer: (&X509, &PKey<Private>),
) -> Result<Vec<u8>, PkiError> {
    let role = profile.place(Place::Intermediate, true)?;
    let issuer = checked(Some(issuer))?;
    der(&certificate::make(profile, role, 1, key, issuer.as_ref())?)
}

fn checked<'a>(issuer: Option<(&'a X509, &'a PKey<Private>)>) -> Result<Option<Issuer<'a>>, PkiError> {
    match issuer {
        Some((certificate, key)) if certificate.public_key().is_ok_and(|public| public.public_eq(key)) => {
            Ok(Some(Issuer { certificate, key }))
        }
        Some((certificate, _)) => Err(PkiError::ForeignIssuerKey { issuer: crate::name::short(certificate) }),
        None => Ok(None),
    }
}

/// Leaf, its key and the other certificates as a PKCS #12 archive.
///
/// # Errors
/// [`PkiError`]: the chain is empty, the password contains a zero byte, or OpenSSL failed.
pub fn pkcs12(chain: &[Issued], password: &str) -> Result<Vec<u8>, PkiError> {
    let Some((leaf, others)) = chain.split_first() else { return Err(PkiError::ChainTooShort { given: 0 }) };
    if password.contains('\0') {
        return Err(PkiError::Encoding { what: "password", detail: "it holds a zero byte".into() });
    }
    let key = keys::from_pkcs8(&leaf.key)?;
    let build = || {
        let mut between = Stack::new()?;
        for other in others {
            between.push(X509::from_der(&other.certificate)?)?;
        }
        let certificate = X509::from_der(&leaf.certificate)?;
        let mut builder = Pkcs12::builder();
        builder.pkey(&key).cert(&certificate).ca(between);
        builder.build2(password)?.to_der()
    };
    build().doing("make a PKCS #12 archive")
}

/// Issues a chain from the root down; `keys` and the result are leaf first.
pub(crate) fn chain(profile: &Profile, side: Side, keys: &[PKey<Private>]) -> Result<Vec<X509>, PkiError> {
    let mut issued: Vec<X509> = Vec::new();
    for (level, key) in keys.iter().enumerate().rev() {
        let role = profile.role(side, level, keys.len());
        let issuer = issued.last().map(|certificate| Issuer { certificate, key: &keys[level + 1] });
        issued.push(certificate::make(profile, role, level, key, issuer.as_ref())?);
    }
    issued.reverse();
    Ok(issued)
}

fn der(certificate: &X509) -> Result<Vec<u8>, PkiError> {
    certificate.to_der().doing("encode a certificate")
}
