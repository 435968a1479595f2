//! The suite of a WTLS handshake (WAP-261).

use super::certificate::{bits, rsa_issuer, rsa_name};
use super::root::{Chain, ProtocolFamily, Root, order_bits};
use super::{NamedSuite, Parts};
use crate::message::{Name, Seen};
use crate::tls::Fields;
use crate::wtls::{Parameters, WtlsConnection};
use shakedown_trace::MessageName;
use shakedown_trace::suite::Curve;

/// Key of a WTLS certificate, and the signature on it.
struct Certificate<'a> {
    key: String,
    /// 0 anonymous, 1 ECDSA, 2 RSA.
    signature_algorithm: u8,
    signature: &'a [u8],
}

/// The suite of a WTLS handshake, if it showed everything that the name says.
pub(crate) fn wtls_suite(connection: &WtlsConnection, seen: &[Seen], client: usize) -> Option<NamedSuite> {
    if connection.is_resumed()? {
        return None;
    }
    let (number, mut parameters) = connection.key_exchange()?;
    let mut parts = Parts { cipher: connection.cipher()?.name().to_owned(), ..Parts::default() };
    let mut remark = None;
    let exchange = match number {
        1 => "shared_secret",
        2..=4 => "dh_anon",
        5..=7 => "rsa_anon",
        8..=10 => "rsa",
        11..=13 | 15..=17 => "ecdh_anon",
        14 | 18 => "ecdh_ecdsa",
        _ => return None,
    };
    parts.exchange = exchange.to_owned();
    // The server may propose another group than the one that the client's entry names.
    if let Some(body) = &connection.server_key_exchange {
        let proposed = Parameters::read(body)?.0;
        if proposed != Parameters::Index(0) {
            parameters = proposed;
        }
    }
    match exchange {
        "dh_anon" => {
            let Parameters::Index(index) = parameters else { return None };
            parts.exchange =
                format!("dh_anon+{}", *["dh512", "dh768"].get(usize::from(index.checked_sub(1)?))?)
        }
        "ecdh_anon" => parts.exchange = format!("ecdh_anon+{}", curve(parameters)?.wtls_name()?),
        "rsa_anon" => {
            let mut fields = Fields(connection.server_key_exchange.as_deref()?.get(1..)?);
            let exponent = fields.vector(2)?;
            parts.keys = Some(rsa_name(fields.vector(2)?, exponent));
        }
        "rsa" | "ecdh_ecdsa" => {
            let mut chain = describe(connection.certificates[1 - client].as_deref()?)?;
            let sent = |name| seen.iter().any(|one| one.name == Name::Known(name));
            chain.prefer(&trusted_curves(connection));
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
                .then(|| "the client's chain is not sent; taken to be of the server's keys".to_owned());
            remark =
                [unseen, chain.remark()].into_iter().flatten().reduce(|one, other| format!("{one}; {other}"));
        }
        _ => {}
    }
    Some(NamedSuite { suite: parts.suite("wtls")?, remark })
}

/// The curves of the roots that the client says it trusts to sign keys of elliptic curves.
fn trusted_curves(connection: &WtlsConnection) -> Vec<Curve> {
    let trusted = connection.trusted_keys().into_iter().filter(|entry| matches!(entry.0, 14 | 18));
    trusted.filter_map(|(_, parameters)| curve(parameters)).collect()
}

fn identifier(fields: &mut Fields<'_>) -> Option<()> {
    match fields.byte()? {
        0 => {}
        1 => {
            fields.half()?;
            fields.vector(1)?;
        }
        2 | 255 => {
            fields.vector(1)?;
        }
        254 => {
            fields.take(20)?;
        }
        _ => return None,
    }
    Some(())
}

fn certificate<'a>(fields: &mut Fields<'a>) -> Option<Certificate<'a>> {
    if fields.byte()? != 1 {
        return None;
    }
    fields.byte()?;
    let signature_algorithm = fields.byte()?;
    identifier(fields)?;
    fields.take(8)?;
    identifier(fields)?;
    let kind = fields.byte()?;
    let (parameters, rest) = Parameters::read(fields.0)?;
    fields.0 = rest;
    let key = match kind {
        2 => {
            let exponent = fields.vector(2)?;
            rsa_name(fields.vector(2)?, exponent)
        }
        3 | 4 => {
            fields.vector(1)?;
            curve(parameters)?.wtls_name()?.to_owned()
        }
        _ => return None,
    };
    let signature = if signature_algorithm == 0 { &[][..] } else { fields.vector(2)? };
    Some(Certificate { key, signature_algorithm, signature })
}

/// Orders of the curves that have no number and are spelt out (SEC 2, version 2.0; FIPS 186-4).
const ORDERS: [(&str, &[u8]); 4] = [
    ("sect163r2", b"\x04\0\0\0\0\0\0\0\0\0\x02\x92\xFE\x77\xE7\x0C\x12\xA4\x23\x4C\x33"),
    (
        "prime256v1",
        b"\xFF\xFF\xFF\xFF\0\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xBC\xE6\xFA\xAD\xA7\x17\x9E\x84\xF3\xB9\xCA\xC2\xFC\x63\x25\x51",
    ),
    (
        "sect283k1",
        b"\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xE9\xAE\x2E\xD0\x75\x77\x26\x5D\xFF\x7F\x94\x45\x1E\x06\x1E\x16\x3C\x61",
    ),
    (
        "sect283r1",
        b"\x03\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xEF\x90\x39\x96\x60\xFC\x93\x8A\x90\x16\x5B\x04\x2A\x7C\xEF\xAD\xB3\x07",
    ),
];

/// A curve by its number, or by the order that a set of parameters has last but one.
fn curve(parameters: Parameters<'_>) -> Option<Curve> {
    let set = match parameters {
        Parameters::Index(number) => return Curve::from_wtls_number(number),
        Parameters::Explicit(set) => set,
    };
    let has = |order: &[u8]| {
        let tail = set.len().checked_sub(order.len() + 3).map(|at| &set[at..]);
        tail.is_some_and(|tail| usize::from(tail[0]) == order.len() && tail[1..].starts_with(order))
    };
    let (name, _) = ORDERS.iter().find(|row| has(row.1))?;
    Curve::from_openssl(name)
}

fn describe(body: &[u8]) -> Option<Chain> {
    if let Some(chain) = x509_chain(body) {
        return super::certificate::describe(&chain, ProtocolFamily::Wtls);
    }
    let mut list = Fields(Fields(body).vector(2)?);
    let mut names = Vec::new();
    let mut last = None;
    while !list.0.is_empty() {
        let one = certificate(&mut list)?;
        names.push(one.key.clone());
        last = Some(one);
    }
    let last = last?;
    let root = match last.signature_algorithm {
        2 => rsa_issuer(last.signature.len() * 8, &last.key),
        1 => {
            // Each half is as long as the order: about the field, or a byte more.
            let (first, second) = last.signature.split_at(last.signature.len() / 2);
            let longest = bits(first).max(bits(second));
            Root::of_ecdsa(ProtocolFamily::Wtls, longest, |curve| order_bytes(curve) == first.len())?
        }
        _ => return None,
    };
    Some(Chain::new(names, root))
}

/// The chain, where all of it is X.509.
fn x509_chain(body: &[u8]) -> Option<Vec<&[u8]>> {
    let mut list = Fields(Fields(body).vector(2)?);
    let mut chain = Vec::new();
    while !list.0.is_empty() {
        if list.byte()? != 2 {
            return None;
        }
        chain.push(list.vector(2)?);
    }
    (!chain.is_empty()).then_some(chain)
}

/// Bytes of a curve's order (WAP-261 table 8): a whole byte more than its numbers need where it begins with a
/// one and many zeros.
fn order_bytes(curve: Curve) -> usize {
    match curve.wtls_number() {
        Some(4 | 8) => 15,
        Some(7 | 9) => 21,
        Some(11) => 30,
        _ => order_bits(curve).div_ceil(8),
    }
}
