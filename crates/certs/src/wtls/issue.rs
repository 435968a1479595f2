//! Issues WTLS chains on request, and keeps those of the store.

use super::chain::linked;
use super::key::{Use, certified, curve_of, is_certified, key_type, private_key, randomness};
use super::{WtlsIdentity, read_certificates};
use crate::CertsError;
use shakedown_pki::issue::Place;
use shakedown_pki::{PkiError, Profile, Role, Store, hex, keys, order};
use shakedown_trace::Side;
use shakedown_trace::suite::{KeyType, Protocol};
use shakedown_wtls::Identifier;
use shakedown_wtls::certificate::{self, Certificate, CertifiedKey, Issuer, ServiceName, Subject};
use shakedown_wtls::provider::openssl::{OpenSsl, PrivateKey};
use std::path::Path;

/// Folder of certificates; its number changes with the layout of the files and the way certificates are created.
const CERTIFICATES: &str = "wtls-1";

/// The identity of a side: a chain of `kinds`, leaf first and root last, under a profile, from the store.
///
/// Each place of each side's chain has a different key, the same as in an X.509 chain of that description. The chain
/// must be valid at `now_unix_s`. `private_curves`: peers have agreed on numbers for curves without a number, whose
/// parameters are otherwise sent.
pub fn identity(
    store: &Store,
    kinds: &[KeyType],
    side: Side,
    profile: &Profile,
    now_unix_s: i64,
    private_curves: bool,
) -> Result<WtlsIdentity, CertsError> {
    check_kinds(kinds)?;
    let provider = OpenSsl::new()?;
    let at = |place: usize| store.key(kinds[place], side, place);
    let leaf_key = private_key(&provider, &at(0)?)?;
    let names: Vec<_> = kinds.iter().map(|kind| kind.standard_name()).collect();
    let folder = format!("{CERTIFICATES}/{}", &hex(&profile.digest())[..16]);
    let numbers = if private_curves { "-private-numbers" } else { "" };
    let name = format!("{}-{}{numbers}.pem", side.as_str(), names.join("@"));
    let mut chain = store.keep(
        &folder,
        &name,
        |text| read_kept(&provider, text, kinds, &leaf_key),
        || {
            let keys = (0..kinds.len()).map(at).collect::<Result<Vec<_>, _>>()?;
            let issued = make_chain(&provider, profile, side, &keys, private_curves)?;
            Ok::<_, CertsError>(issued.iter().map(Certificate::to_pem).collect())
        },
    )?;
    order::check_validity(&linked(&provider, &chain), "WTLS certificate", now_unix_s)?;
    let subject = common_name(&chain[0]).unwrap_or_default();
    let Some(root) = chain.pop() else { return Err(PkiError::ChainTooShort { given: 0 }.into()) };
    Ok(WtlsIdentity { chain, root, key: at(0)?, subject })
}

/// A new chain with new keys: certificates and PKCS #8 keys, leaf first and root last.
pub fn new_chain(
    profile: &Profile,
    side: Side,
    kinds: &[KeyType],
) -> Result<Vec<(Certificate, Vec<u8>)>, CertsError> {
    check_kinds(kinds)?;
    let provider = OpenSsl::new()?;
    let mut pkcs8 = Vec::with_capacity(kinds.len());
    for kind in kinds {
        pkcs8.push(keys::to_pkcs8(&*keys::generate(*kind)?)?);
    }
    let certificates = make_chain(&provider, profile, side, &pkcs8, false)?;
    Ok(certificates.into_iter().zip(pkcs8).collect())
}

/// One new certificate with a new key (PKCS #8): a root, or issued by `issuer` (certificate and PKCS #8 key).
pub fn one(
    profile: &Profile,
    place: Place,
    kind: KeyType,
    issuer: Option<(&Certificate, &[u8])>,
) -> Result<(Certificate, Vec<u8>), CertsError> {
    let provider = OpenSsl::new()?;
    let role = profile.place(place, issuer.is_some())?;
    let above = match issuer {
        Some((certificate, pkcs8)) => {
            let fields = certificate.fields();
            let key = private_key(&provider, pkcs8)?;
            if !is_certified(&provider, &key, &fields.public_key) {
                return Err(PkiError::ForeignIssuerKey { issuer: fields.subject.to_string() }.into());
            }
            if matches!(fields.public_key, CertifiedKey::Ecdh(_)) {
                return Err(certificate::CertificateError::IssuerKey.into());
            }
            let kinds: Vec<_> = [Some(kind), key_type(&fields.public_key)].into_iter().flatten().collect();
            check_mixture(&kinds)?;
            Some((fields.subject.clone(), key))
        }
        None => {
            check_mixture(&[kind])?;
            None
        }
    };
    let pkcs8 = keys::to_pkcs8(&*keys::generate(kind)?)?;
    let key = private_key(&provider, &pkcs8)?;
    let what_for = if matches!(place, Place::Server | Place::Client) { Use::Leaf } else { Use::Issuer };
    let maker = Maker { provider: &provider, profile, private_curves: false };
    let name = wtls_name(role, usize::from(what_for == Use::Issuer), place == Place::Root);
    let issued = maker.make(role, name, &key, what_for, above.as_ref().map(|(name, key)| (name, key)))?;
    Ok((issued, pkcs8))
}

/// WTLS certifies only RSA keys and points on its own curves, and a chain has only one of the two.
fn check_kinds(kinds: &[KeyType]) -> Result<(), CertsError> {
    if kinds.len() < 2 {
        return Err(PkiError::ChainTooShort { given: kinds.len() }.into());
    }
    check_mixture(kinds)
}

fn check_mixture(kinds: &[KeyType]) -> Result<(), CertsError> {
    let is_rsa = |kind: &KeyType| matches!(kind, KeyType::Rsa { .. });
    if let Some(foreign) = kinds.iter().find(|kind| !is_rsa(kind) && curve_of(**kind).is_none()) {
        return Err(CertsError::NoWtlsKey { key: foreign.standard_name().to_owned() });
    }
    if kinds.iter().any(is_rsa) && !kinds.iter().all(is_rsa) {
        let names: Vec<_> = kinds.iter().map(|kind| kind.name(Protocol::Wtls)).collect();
        return Err(CertsError::MixedWtlsKeys { keys: names.join("@") });
    }
    Ok(())
}

/// Issues a chain from the root down; keys (PKCS #8) and certificates are leaf first.
fn make_chain(
    provider: &OpenSsl,
    profile: &Profile,
    side: Side,
    pkcs8: &[Vec<u8>],
    private_curves: bool,
) -> Result<Vec<Certificate>, CertsError> {
    let maker = Maker { provider, profile, private_curves };
    let mut issued: Vec<Certificate> = Vec::new();
    let mut issuer_key: Option<PrivateKey> = None;
    for level in (0..pkcs8.len()).rev() {
        let role = profile.role(side, level, pkcs8.len());
        let key = private_key(provider, &pkcs8[level])?;
        let what_for = if level == 0 { Use::Leaf } else { Use::Issuer };
        let above = issued.last().map(|above| &above.fields().subject).zip(issuer_key.as_ref());
        let name = wtls_name(role, level, issued.is_empty());
        let certificate = maker.make(role, name, &key, what_for, above)?;
        issued.push(certificate);
        issuer_key = Some(key);
    }
    issued.reverse();
    Ok(issued)
}

/// Inputs that all certificates of a chain share.
struct Maker<'a> {
    provider: &'a OpenSsl,
    profile: &'a Profile,
    private_curves: bool,
}

impl Maker<'_> {
    /// One certificate, issued by the name and key `above`, or else self-signed.
    fn make(
        &self,
        role: &Role,
        name: String,
        key: &PrivateKey,
        what_for: Use,
        above: Option<(&Identifier, &PrivateKey)>,
    ) -> Result<Certificate, CertsError> {
        let (not_before_s, not_after_s) = self.profile.validity_s(role);
        let subject = Subject {
            name: Identifier::text(&name),
            public_key: certified(self.provider, key, what_for, self.private_curves)?,
            valid_not_before_unix_s: u32::try_from(not_before_s).unwrap_or(0),
            valid_not_after_unix_s: u32::try_from(not_after_s).unwrap_or(u32::MAX),
        };
        Ok(match above {
            Some((name, key)) => {
                certificate::issue(self.provider, &Issuer { name, key }, subject, &mut randomness())?
            }
            None => certificate::self_signed(self.provider, key, subject, &mut randomness())?,
        })
    }
}

/// Name of a role's WTLS certificate; derived from the X.509 name if the profile has none.
fn wtls_name(role: &Role, level: usize, is_root: bool) -> String {
    if let Some(name) = &role.wtls_name {
        return name.replace("{level}", &level.to_string());
    }
    let attribute = |wanted: &str| {
        let found = role.subject.iter().find_map(|text| text.strip_prefix(wanted)?.strip_prefix('='));
        found.unwrap_or_default().replace("{level}", &level.to_string())
    };
    let is_leaf = level == 0;
    let name = ServiceName {
        service: if is_leaf { String::new() } else { attribute("CN") },
        organization: attribute("O"),
        country: attribute("C"),
        common_name: if is_leaf { attribute("CN") } else { String::new() },
        extensions: if is_leaf || is_root { Vec::new() } else { vec![("T".into(), "ca".into())] },
    };
    name.to_string()
}

/// Reads a stored chain and checks that it matches its name.
fn read_kept(
    provider: &OpenSsl,
    text: &str,
    kinds: &[KeyType],
    leaf_key: &PrivateKey,
) -> Result<Vec<Certificate>, String> {
    let chain =
        read_certificates(text.as_bytes(), Path::new("")).ok().flatten().ok_or("unreadable certificates")?;
    let found = chain.iter().map(|certificate| key_type(&certificate.fields().public_key));
    if !found.eq(kinds.iter().map(|kind| Some(*kind))) {
        return Err("certificates of other keys".into());
    }
    if !is_certified(provider, leaf_key, &chain[0].fields().public_key) {
        return Err("the leaf's certificate is not that of its key".into());
    }
    let linked = linked(provider, &chain);
    if !linked.windows(2).all(|pair| order::issued_by(&pair[0], &pair[1]))
        || !order::is_self_signed(&linked[linked.len() - 1])
    {
        return Err("a signature does not verify".into());
    }
    Ok(chain)
}

/// The common name in a certificate's subject, if it is text and has one.
pub(super) fn common_name(certificate: &Certificate) -> Option<String> {
    let name = ServiceName::parse(certificate.fields().subject.as_text()?).common_name;
    (!name.is_empty()).then_some(name)
}
