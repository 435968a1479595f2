//! The suite of a WTLS handshake (WAP-261).

use super::certificate::{rsa_issuer, rsa_name};
use super::root::{Chain, ProtocolFamily, Root};
use super::{NamedSuite, Parts};
use crate::message::{Name, Seen};
use crate::wtls::WtlsConnection;
use shakedown_trace::MessageName;
use shakedown_trace::suite::Curve;
use shakedown_wtls::certificate::CertifiedKey;
use shakedown_wtls::codec::{Codec, bits};
use shakedown_wtls::message::{CertificateEntry, CertificateList, ServerKey, ServerKeyExchange};
use shakedown_wtls::{
    EncodedRsaKey, KeyExchangeFamily as Family, KeyExchangeId, ParameterSpecifier, SignatureAlgorithm,
};

/// The suite of a WTLS handshake, if all parts of the name were seen.
pub(crate) fn wtls_suite(connection: &WtlsConnection, seen: &[Seen], client: usize) -> Option<NamedSuite> {
    if connection.is_resumed()? {
        return None;
    }
    let (chosen, trusted) = connection.key_exchange()?;
    let family = chosen.family()?;
    let mut parts = Parts { cipher: connection.cipher()?.name().to_owned(), ..Parts::default() };
    let mut remark = None;
    let proposed = connection.server_key_exchange.as_deref();
    let proposed = proposed.and_then(|body| ServerKeyExchange::decode(family, body).ok());
    // The server may propose another group than that of the client's entry.
    let parameters = match &proposed {
        Some(proposed) if !proposed.parameters.is_none() => &proposed.parameters,
        _ => &chosen.parameters,
    };
    parts.exchange = match family {
        Family::Null => return None,
        Family::SharedSecret => "shared_secret".into(),
        Family::DhAnon => {
            let group = parameters.group().ok()?;
            group.number?;
            format!("dh_anon+dh{}", group.bits())
        }
        Family::EcdhAnon => format!("ecdh_anon+{}", curve(parameters)?.wtls_name()?),
        Family::RsaAnon => "rsa_anon".into(),
        Family::Rsa => "rsa".into(),
        Family::EcdhEcdsa => "ecdh_ecdsa".into(),
    };
    match family {
        Family::RsaAnon => {
            let ServerKey::Rsa(key) = proposed?.key else { return None };
            parts.keys = Some(rsa_key(&key)?);
        }
        Family::Rsa | Family::EcdhEcdsa => {
            let mut chain = describe(connection.certificates[1 - client].as_deref()?)?;
            let sent = |name| seen.iter().any(|one| one.name == Name::Known(name));
            chain.prefer(&curves(&trusted));
            let asked = sent(MessageName::CertificateRequest);
            let optimized = !sent(MessageName::ServerHelloDone);
            parts.authentication = Some(match (asked, connection.certificates[client].as_deref()) {
                _ if optimized => "mutual",
                (false, _) => "server",
                (true, Some([0, 0])) => "requested",
                (true, Some(body)) => {
                    chain = chain.shared(&describe(body)?)?;
                    "mutual"
                }
                (true, None) => return None,
            });
            parts.mode = optimized.then_some("optimized");
            parts.keys = Some(chain.keys());
            let unseen = optimized
                .then(|| "the client's chain is not sent; assumed to have the server's keys".to_owned());
            remark =
                [unseen, chain.remark()].into_iter().flatten().reduce(|one, other| format!("{one}; {other}"));
        }
        _ => {}
    }
    Some(NamedSuite { suite: parts.suite("wtls")?, remark })
}

/// The curves of the trusted roots that the client lists for ECDH_ECDSA.
fn curves(trusted: &[KeyExchangeId]) -> Vec<Curve> {
    let trusted = trusted.iter().filter(|entry| entry.family() == Some(Family::EcdhEcdsa));
    trusted.filter_map(|entry| curve(&entry.parameters)).collect()
}

fn rsa_key(key: &EncodedRsaKey) -> Option<String> {
    let (exponent, modulus) = key.parts().ok()?;
    Some(rsa_name(modulus, exponent))
}

/// A curve by its number, or by its parameters if it has none.
fn curve(parameters: &ParameterSpecifier) -> Option<Curve> {
    Curve::from_name(parameters.curve(false).ok()?.short_name())
}

fn describe(body: &[u8]) -> Option<Chain> {
    let list = CertificateList::from_bytes("Certificate", body).ok()?.0;
    let x509: Option<Vec<&[u8]>> = list
        .iter()
        .map(|entry| if let CertificateEntry::X509(der) = entry { Some(&der[..]) } else { None })
        .collect();
    if let Some(chain) = x509.filter(|chain| !chain.is_empty()) {
        return super::certificate::describe(&chain, ProtocolFamily::Wtls);
    }
    let mut names = Vec::new();
    for entry in &list {
        let CertificateEntry::Wtls(certificate) = entry else { return None };
        names.push(match &certificate.fields().public_key {
            CertifiedKey::Rsa(key) => rsa_key(key)?,
            CertifiedKey::Ecdh(key) | CertifiedKey::Ecdsa(key) => {
                curve(&key.parameters)?.wtls_name()?.to_owned()
            }
        });
    }
    let Some(CertificateEntry::Wtls(last)) = list.last() else { return None };
    let signature = last.signature();
    let root = match last.fields().signature_algorithm {
        SignatureAlgorithm::RsaSha => rsa_issuer(signature.len() * 8, names.last()?),
        SignatureAlgorithm::EcdsaSha => {
            // Each half is as long as the curve's order.
            let (first, second) = signature.split_at(signature.len() / 2);
            let longest = bits(first).max(bits(second));
            let fits = |curve: Curve| {
                let known = curve.wtls_name().and_then(shakedown_wtls::Curve::from_name);
                known.is_some_and(|known| known.order_bytes() == first.len())
            };
            Root::of_ecdsa(ProtocolFamily::Wtls, longest as usize, fits)?
        }
        SignatureAlgorithm::Anonymous => return None,
    };
    Some(Chain::new(names, root))
}
