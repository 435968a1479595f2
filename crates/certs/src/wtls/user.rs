//! User-supplied WTLS certificates and keys, prepared for a suite.

use super::chain::linked;
use super::describe::read_anchors;
use super::issue::common_name;
use super::key::{in_words, is_certified, key_type, private_key};
use super::{WtlsIdentity, read_certificates};
use crate::CertsError;
use shakedown_pki::credentials::{CredentialFile, read_bytes};
use shakedown_pki::order::{Link, check_dates, find_root, in_order, is_self_signed, leaf_of};
use shakedown_pki::{UserError, keys};
use shakedown_trace::suite::KeyType;
use shakedown_wtls::certificate::Certificate;
use shakedown_wtls::provider::openssl::OpenSsl;
use std::path::Path;

/// Reads a WTLS chain (leaf first), its key, and the root that peers trust (`None`: at the end of the chain's file);
/// all must be valid at `now_unix_s`. Returns the identity and the types of its keys, leaf first and root last.
pub fn load(
    chain_path: &Path,
    key_path: &Path,
    ca_path: Option<&Path>,
    password: Option<&str>,
    now_unix_s: i64,
) -> Result<(WtlsIdentity, Vec<KeyType>), CertsError> {
    let provider = OpenSsl::new()?;
    let file = || chain_path.to_path_buf();
    let certificates = read_certificates(&read_bytes(chain_path)?, chain_path)?;
    let certificates = certificates.ok_or_else(|| CertsError::NoCertificate { path: file() })?;
    let key = CredentialFile::load_key(key_path, password)?;
    let pkcs8 = keys::to_pkcs8(&key)?;
    let own = private_key(&provider, &pkcs8)?;
    let all = linked(&provider, &certificates);
    let holds = |certificate: &Certificate| is_certified(&provider, &own, &certificate.fields().public_key);
    let Some(leaf) = certificates.iter().position(holds) else {
        let leaf = &all[leaf_of(&all)];
        return Err(CertsError::User(UserError::KeyMismatch {
            key_path: key_path.into(),
            chain_path: file(),
            key: keys::describe(&key),
            leaf: leaf.subject(),
            leaf_key: in_words(&leaf.certificate.fields().public_key),
        }));
    };
    let path: Vec<_> = in_order(&all, leaf, true, chain_path)?.into_iter().map(|place| all[place]).collect();
    let anchors = ca_path.map(read_anchors).transpose()?;
    let trusted = anchors.as_ref().map(|anchors| linked(&provider, anchors));
    let (root, _) = find_root(&path, trusted.as_deref().zip(ca_path), chain_path)?;
    // A root is not sent, unless it is the only certificate.
    let is_sent = |place: usize| place == 0 || place + 1 < path.len() || !is_self_signed(&path[place]);
    let sent: Vec<_> = (0..path.len()).filter(|place| is_sent(*place)).map(|place| path[place]).collect();
    let mut kinds = Vec::with_capacity(sent.len() + 1);
    for one in sent.iter().chain([root]) {
        check_dates(one, now_unix_s, chain_path)?;
        let key = &one.certificate.fields().public_key;
        kinds.push(key_type(key).ok_or_else(|| UserError::UnusableKey {
            path: file(),
            subject: one.subject(),
            key: in_words(key),
        })?);
    }
    let chain: Vec<Certificate> = sent.iter().map(|one| one.certificate.clone()).collect();
    let subject = common_name(&chain[0])
        .ok_or_else(|| UserError::NoName { path: file(), subject: sent[0].subject() })?;
    Ok((WtlsIdentity { root: root.certificate.clone(), chain, key: pkcs8, subject }, kinds))
}
