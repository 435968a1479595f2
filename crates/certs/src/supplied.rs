//! User-supplied certificates for a suite: the identities of both sides, and the suite that has their keys.

use crate::wtls::{self, WtlsIdentity};
use crate::{CertsError, wtls::load as load_wtls};
use shakedown_pki::credentials::{ReadError, read_bytes};
use shakedown_pki::{Identity, UserIdentity};
use shakedown_trace::suite::{Authentication, KeyExchange, KeyType, Protocol};
use shakedown_trace::{Side, Suite};
use shakedown_wtls::KeyExchangeFamily;
use shakedown_wtls::certificate::{
    CertificateError, ChainCertificate, ChainPolicy, Holder, TrustAnchor, X509Certificate, verify_chain,
};
use shakedown_wtls::crypto::Provider;
use shakedown_wtls::provider::openssl::OpenSsl;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuppliedFiles {
    /// Leaf first; may also contain root and key.
    pub chain: PathBuf,
    /// The leaf's key, if the chain's file does not contain it.
    pub key: Option<PathBuf>,
    /// The root that the peer trusts, if the chain does not end with it.
    pub ca: Option<PathBuf>,
    pub password: Option<String>,
}

/// An identity of either kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnyIdentity {
    /// For any protocol; WTLS accepts only RSA keys and its own curves.
    X509(Identity),
    Wtls(WtlsIdentity),
}

impl AnyIdentity {
    /// The name that the peer checks.
    pub fn subject(&self) -> &str {
        match self {
            Self::X509(identity) => &identity.subject,
            Self::Wtls(identity) => &identity.subject,
        }
    }

    /// The leaf's private key as PKCS #8 DER.
    pub fn key(&self) -> &[u8] {
        match self {
            Self::X509(identity) => &identity.key,
            Self::Wtls(identity) => &identity.key,
        }
    }

    /// The chain that is sent in WTLS, leaf first.
    pub fn wtls_chain(&self) -> Result<Vec<ChainCertificate>, CertificateError> {
        match self {
            Self::X509(identity) => {
                identity.chain.iter().map(|der| Ok(X509Certificate::from_der(der)?.into())).collect()
            }
            Self::Wtls(identity) => Ok(identity.chain.iter().cloned().map(Into::into).collect()),
        }
    }

    /// The root that a WTLS peer trusts.
    pub fn wtls_anchor<P: Provider>(
        &self,
        provider: &P,
        private_curves: bool,
    ) -> Result<TrustAnchor<P>, CertificateError> {
        match self {
            Self::X509(identity) => {
                TrustAnchor::from_x509(provider, &X509Certificate::from_der(&identity.root)?)
            }
            Self::Wtls(identity) => TrustAnchor::from_certificate(provider, &identity.root, private_curves),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuppliedSuite {
    /// With the keys of the files: the server's, or else the client's.
    pub suite: Suite,
    /// The server's identity, instead of that of the store.
    pub server: Option<AnyIdentity>,
    /// The client's identity, instead of that of the store.
    pub client: Option<AnyIdentity>,
    /// Notes for the user, one line each.
    pub notes: Vec<String>,
}

/// Loads each side's files for a suite; all certificates must be valid at `now_unix_s`.
pub fn load(
    suite: &Suite,
    server: Option<&SuppliedFiles>,
    client: Option<&SuppliedFiles>,
    now_unix_s: i64,
) -> Result<SuppliedSuite, CertsError> {
    if client.is_some() && suite.authentication != Some(Authentication::Mutual) {
        return Err(CertsError::NoUse { suite: suite.to_string(), side: "client" });
    }
    let files = (server, client);
    let mut notes = Vec::new();
    let mut load = |files: &SuppliedFiles, side: Side| {
        let (identity, keys, unneeded) = load_side(suite.protocol, files, now_unix_s)?;
        if unneeded > 0 {
            notes.push(format!(
                "{} certificate(s) of the {} are sent beyond the peer's root",
                unneeded,
                side.as_str()
            ));
        }
        Ok::<_, CertsError>((identity, keys))
    };
    let server = server.map(|files| load(files, Side::Server)).transpose()?;
    let client = client.map(|files| load(files, Side::Client)).transpose()?;
    let keys_of = |side: &Option<(AnyIdentity, Vec<KeyType>)>| side.as_ref().map(|(_, keys)| keys.clone());
    let named = match keys_of(&server).or_else(|| keys_of(&client)) {
        // Printed and parsed again, so that the parser rejects keys that the suite cannot use.
        Some(keys) => Suite { keys, ..suite.clone() }.to_string().parse()?,
        None => suite.clone(),
    };
    for (files, found, side) in [(files.0, &server, Side::Server), (files.1, &client, Side::Client)] {
        if let (Some(files), Some((identity @ AnyIdentity::X509(_), _))) = (files, found)
            && named.protocol == Protocol::Wtls
        {
            check_in_wtls(&named, identity, side, now_unix_s)
                .map_err(|source| CertsError::RefusedInWtls { path: files.chain.clone(), source })?;
        }
    }
    if let (Some(one), Some(other)) = (keys_of(&server), keys_of(&client))
        && one != other
    {
        let client = Suite { keys: other, ..suite.clone() }.to_string().parse::<Suite>()?;
        notes.push(format!("the name has the server's keys; the client's are those of {client}"));
    }
    Ok(SuppliedSuite {
        suite: named,
        server: server.map(|side| side.0),
        client: client.map(|side| side.0),
        notes,
    })
}

/// Checks an X.509 chain by the rules of WTLS, which OpenSSL may not require, such as the key usage.
fn check_in_wtls(
    suite: &Suite,
    identity: &AnyIdentity,
    side: Side,
    now_unix_s: i64,
) -> Result<(), CertificateError> {
    let provider = OpenSsl::new()?;
    let anchor = identity.wtls_anchor(&provider, false)?;
    let policy = ChainPolicy {
        holder: match side {
            Side::Server => Holder::Server,
            Side::Client => Holder::Client,
        },
        family: match suite.key_exchange {
            KeyExchange::EcdhEcdsa => KeyExchangeFamily::EcdhEcdsa,
            _ => KeyExchangeFamily::Rsa,
        },
        now_unix_s: u64::try_from(now_unix_s).unwrap_or(0),
        private_curves: false,
        name: Some(identity.subject()),
    };
    verify_chain(&provider, &identity.wtls_chain()?, &[anchor], &policy).map(drop)
}

fn load_side(
    protocol: Protocol,
    files: &SuppliedFiles,
    now_unix_s: i64,
) -> Result<(AnyIdentity, Vec<KeyType>, usize), CertsError> {
    let (key, ca, password) = (files.key.as_deref(), files.ca.as_deref(), files.password.as_deref());
    let is_wtls = wtls::read_certificates(&read_bytes(&files.chain)?, &files.chain)?.is_some();
    match (protocol, is_wtls) {
        (Protocol::Wtls, true) => {
            let key = key.ok_or_else(|| ReadError::NoKey { path: files.chain.clone() })?;
            let (identity, keys) = load_wtls(&files.chain, key, ca, password, now_unix_s)?;
            Ok((AnyIdentity::Wtls(identity), keys, 0))
        }
        (_, true) => Err(CertsError::WrongKind { path: files.chain.clone(), wanted: "X.509" }),
        (_, false) => {
            let user = UserIdentity::load(&files.chain, key, ca, password, now_unix_s)?;
            Ok((AnyIdentity::X509(user.identity), user.keys, user.unneeded))
        }
    }
}
