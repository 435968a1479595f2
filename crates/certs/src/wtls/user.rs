//! A user's own WTLS certificates and key, made ready for a suite.

use super::chain::{is_self_signed, issued_by, leaf_of, names_match, path_from, signature_holds};
use super::describe::{chain_name, read_anchors};
use super::issue::common_name;
use super::key::{in_words, is_certified, key_type, private_key};
use super::{WtlsIdentity, read_certificates};
use crate::CertsError;
use shakedown_pki::credentials::{CredentialFile, read_bytes};
use shakedown_pki::{UserError, date, keys};
use shakedown_trace::suite::KeyType;
use shakedown_wtls::certificate::Certificate;
use shakedown_wtls::provider::openssl::OpenSsl;
use std::path::Path;

/// Reads a WTLS chain (leaf first), its key, and the root that peers are to trust (left out where the chain's file ends
/// with it); all must be valid at `now_unix_s`. Gives the identity, its keys (leaf first, root last) and their part of
/// the suite's name.
///
/// # Errors
/// [`CertsError::User`], one variant for each thing that can be wrong, and what reading the files can fail with.
pub fn load(
    chain_path: &Path,
    key_path: &Path,
    ca_path: Option<&Path>,
    password: Option<&str>,
    now_unix_s: i64,
) -> Result<(WtlsIdentity, Vec<KeyType>, String), CertsError> {
    let provider = OpenSsl::new()?;
    let file = || chain_path.to_path_buf();
    let certificates = read_certificates(&read_bytes(chain_path)?, chain_path)?;
    let certificates = certificates.ok_or_else(|| CertsError::NoCertificate { path: file() })?;
    let key = CredentialFile::load(key_path, password)?
        .key
        .ok_or_else(|| UserError::NoKey { path: key_path.into() })?;
    let pkcs8 = keys::to_pkcs8(&key)?;
    let own = private_key(&provider, &pkcs8)?;
    let name = |certificate: &Certificate| certificate.fields().subject.to_string();
    let holds = |certificate: &Certificate| is_certified(&provider, &own, &certificate.fields().public_key);
    let Some(leaf) = certificates.iter().position(holds) else {
        let leaf = &certificates[leaf_of(&provider, &certificates)];
        return Err(CertsError::User(UserError::KeyMismatch {
            key_path: key_path.into(),
            chain_path: file(),
            key: keys::describe(&key),
            leaf: name(leaf),
            leaf_key: in_words(&leaf.fields().public_key),
        }));
    };
    let path = in_order(&provider, &certificates, leaf, chain_path)?;
    let last = &path[path.len() - 1];
    let anchors = ca_path.map(read_anchors).transpose()?;
    let rooted = is_self_signed(&provider, last).then_some(last);
    let root = match (&anchors, rooted) {
        (Some(anchors), _) => path
            .iter()
            .find_map(|certificate| anchors.iter().find(|anchor| issued_by(&provider, certificate, anchor)))
            .ok_or_else(|| UserError::ForeignRoot {
                ca_path: ca_path.unwrap_or(chain_path).into(),
                chain_path: file(),
                subject: name(last),
                issuer: last.fields().issuer.to_string(),
            })?,
        (None, Some(root)) => root,
        (None, None) => {
            let (subject, issuer) = (name(last), last.fields().issuer.to_string());
            return Err(CertsError::User(UserError::NoRoot { path: file(), subject, issuer }));
        }
    };
    let chain: Vec<Certificate> = path
        .iter()
        .enumerate()
        .filter(|(place, one)| *place == 0 || Some(*one) != rooted)
        .map(|(_, one)| one.clone())
        .collect();
    let mut kinds = Vec::with_capacity(chain.len() + 1);
    for certificate in chain.iter().chain([root]) {
        check_dates(certificate, now_unix_s, chain_path)?;
        let key = &certificate.fields().public_key;
        kinds.push(key_type(key).ok_or_else(|| UserError::UnusableKey {
            path: file(),
            subject: name(certificate),
            key: in_words(key),
        })?);
    }
    let subject =
        common_name(&chain[0]).ok_or_else(|| UserError::NoName { path: file(), subject: name(&chain[0]) })?;
    let keys_name = chain_name(&kinds);
    Ok((WtlsIdentity { root: root.clone(), chain, key: pkcs8, subject }, kinds, keys_name))
}

/// The certificates from the leaf upwards, provided that the file has them in that order.
fn in_order(
    provider: &OpenSsl,
    certificates: &[Certificate],
    leaf: usize,
    file: &Path,
) -> Result<Vec<Certificate>, UserError> {
    let path = path_from(provider, certificates, leaf);
    let name = |place: &usize| certificates[*place].fields().subject.to_string();
    let last = path[path.len() - 1];
    if path.len() < certificates.len() {
        let unrelated: Vec<usize> = (0..certificates.len()).filter(|place| !path.contains(place)).collect();
        let claimed = unrelated.iter().find(|place| {
            names_match(provider, &certificates[last], &certificates[**place])
                && !signature_holds(provider, &certificates[last], &certificates[**place])
        });
        let (path, subject) = (file.to_path_buf(), name(&last));
        return Err(match claimed {
            Some(place) => UserError::BadSignature { path, subject, issuer: name(place) },
            None => UserError::BrokenChain {
                path,
                subject,
                issuer: certificates[last].fields().issuer.to_string(),
                unrelated: unrelated.iter().map(name).collect(),
            },
        });
    }
    if !path.iter().copied().eq(0..certificates.len()) {
        return Err(UserError::WrongOrder {
            path: file.into(),
            found: (0..certificates.len()).map(|place| name(&place)).collect(),
            right: path.iter().map(name).collect(),
        });
    }
    Ok(path.into_iter().map(|place| certificates[place].clone()).collect())
}

fn check_dates(certificate: &Certificate, now_unix_s: i64, file: &Path) -> Result<(), UserError> {
    let fields = certificate.fields();
    let (from_s, to_s) =
        (i64::from(fields.valid_not_before_unix_s), i64::from(fields.valid_not_after_unix_s));
    let (path, subject, at) = (file.to_path_buf(), fields.subject.to_string(), date::print(now_unix_s));
    if now_unix_s > to_s {
        return Err(UserError::Expired { path, subject, not_after: date::print(to_s), at });
    }
    if now_unix_s < from_s {
        return Err(UserError::NotYetValid { path, subject, not_before: date::print(from_s), at });
    }
    Ok(())
}
