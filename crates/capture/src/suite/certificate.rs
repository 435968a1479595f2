//! Determines the kinds of keys in a chain of X.509 certificates (RFC 5280). No length field is trusted.

use super::root::{Chain, ProtocolFamily, Root, rsa};
use shakedown_trace::suite::Curve;
use shakedown_wtls::codec::{bits, significant};

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT: u8 = 0x06;
const VERSION: u8 = 0xa0;

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const DSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x38, 0x04];
const DSA_SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03];
const EC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// 1.2.840.10045.3, curves of X9.62: over a prime field (1) or a binary one (0), and their number.
const X962: [(&[u8], &str); 3] = [(&[1, 1], "prime192v1"), (&[1, 7], "prime256v1"), (&[0, 1], "c2pnb163v1")];
const X962_ARC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3];

/// 1.3.132.0.n, curves of SEC 2.
const SEC: [(u8, &str); 25] = [
    (1, "sect163k1"),
    (2, "sect163r1"),
    (3, "sect239k1"),
    (4, "sect113r1"),
    (6, "secp112r1"),
    (8, "secp160r1"),
    (9, "secp160k1"),
    (10, "secp256k1"),
    (15, "sect163r2"),
    (16, "sect283k1"),
    (17, "sect283r1"),
    (24, "sect193r1"),
    (25, "sect193r2"),
    (26, "sect233k1"),
    (27, "sect233r1"),
    (30, "secp160r2"),
    (31, "secp192k1"),
    (32, "secp224k1"),
    (33, "secp224r1"),
    (34, "secp384r1"),
    (35, "secp521r1"),
    (36, "sect409k1"),
    (37, "sect409r1"),
    (38, "sect571k1"),
    (39, "sect571r1"),
];
const SEC_ARC: &[u8] = &[0x2b, 0x81, 0x04, 0];

/// 1.3.36.3.3.2.8.1.1.n (RFC 5639).
const BRAINPOOL: [(u8, &str); 3] = [(7, "brainpoolP256r1"), (11, "brainpoolP384r1"), (13, "brainpoolP512r1")];
const BRAINPOOL_ARC: &[u8] = &[0x2b, 0x24, 3, 3, 2, 8, 1, 1];

/// 2.23.43.1.4.n: curve n of WTLS.
const WTLS_ARC: &[u8] = &[0x67, 0x2b, 1, 4];

fn named_curve(object: &[u8]) -> Option<Curve> {
    if let Some(rest) = object.strip_prefix(X962_ARC) {
        return Curve::from_openssl(X962.iter().find(|row| row.0 == rest)?.1);
    }
    let (&last, arc) = object.split_last()?;
    let table: &[(u8, &str)] = match arc {
        SEC_ARC => &SEC,
        BRAINPOOL_ARC => &BRAINPOOL,
        WTLS_ARC => return Curve::from_wtls_number(last),
        _ => return None,
    };
    Curve::from_openssl(table.iter().find(|row| row.0 == last)?.1)
}

/// Consecutive DER values.
struct Values<'a>(&'a [u8]);

impl<'a> Values<'a> {
    /// The next value: tag, content, and the whole encoding.
    fn next(&mut self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let (&[tag, first], rest) = self.0.split_first_chunk::<2>()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x83 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (digits.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)), rest)
            }
            _ => return None,
        };
        let (content, after) = rest.split_at_checked(length)?;
        let whole = &self.0[..self.0.len() - after.len()];
        self.0 = after;
        Some((tag, content, whole))
    }

    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|value| value.0 == tag).map(|value| value.1)
    }
}

/// The parts of a certificate that describe keys.
struct Certificate<'a> {
    issuer: &'a [u8],
    subject: &'a [u8],
    key_algorithm: &'a [u8],
    key: &'a [u8],
    signature_algorithm: &'a [u8],
    signature: &'a [u8],
}

impl<'a> Certificate<'a> {
    fn read(der: &'a [u8]) -> Option<Self> {
        let mut outer = Values(Values(der).expect(SEQUENCE)?);
        let mut inner = Values(outer.expect(SEQUENCE)?);
        let signature_algorithm = outer.expect(SEQUENCE)?;
        let signature = outer.expect(BIT_STRING)?.get(1..)?;
        if inner.0.first() == Some(&VERSION) {
            inner.next()?;
        }
        inner.expect(INTEGER)?;
        inner.expect(SEQUENCE)?;
        let issuer = inner.expect(SEQUENCE)?;
        inner.expect(SEQUENCE)?;
        let subject = inner.expect(SEQUENCE)?;
        let mut key_info = Values(inner.expect(SEQUENCE)?);
        let key_algorithm = key_info.expect(SEQUENCE)?;
        let key = key_info.expect(BIT_STRING)?.get(1..)?;
        Some(Self { issuer, subject, key_algorithm, key, signature_algorithm, signature })
    }

    /// The key as spelled in suite names.
    fn key_name(&self) -> Option<String> {
        let mut algorithm = Values(self.key_algorithm);
        let object = algorithm.expect(OBJECT)?;
        if object.starts_with(RSA) {
            let mut numbers = Values(Values(self.key).expect(SEQUENCE)?);
            let modulus = numbers.expect(INTEGER)?;
            return Some(rsa_name(modulus, numbers.expect(INTEGER)?));
        }
        if object.starts_with(DSA) {
            let mut parameters = Values(algorithm.expect(SEQUENCE)?);
            return Some(format!("dsa{}", bits(parameters.expect(INTEGER)?)));
        }
        match object {
            EC_KEY => Some(named_curve(algorithm.expect(OBJECT)?)?.name().to_owned()),
            ED25519 => Some("ed25519".to_owned()),
            _ => post_quantum(object),
        }
    }

    /// The key that signed this certificate; `own` is the name of the key that it certifies.
    fn issuer(&self, own: &str, family: ProtocolFamily) -> Option<Root> {
        let object = Values(self.signature_algorithm).expect(OBJECT)?;
        let known = |name: String| Root::Known(name.into_boxed_str());
        if object.starts_with(RSA) {
            return Some(rsa_issuer(self.signature.len() * 8, own));
        }
        if object.starts_with(ECDSA) {
            let mut numbers = Values(Values(self.signature).expect(SEQUENCE)?);
            let longest = bits(numbers.expect(INTEGER)?).max(bits(numbers.expect(INTEGER)?));
            return Root::of_ecdsa(family, longest as usize, |_| true);
        }
        if object.starts_with(DSA)
            || (object.starts_with(DSA_SHA2) && object.get(8).is_some_and(|&last| last <= 8))
        {
            return own.starts_with("dsa").then(|| known(own.to_owned()));
        }
        if object == ED25519 {
            return Some(known("ed25519".to_owned()));
        }
        post_quantum(object).map(known)
    }
}

/// The RSA key that made a signature of this size. Its exponent is assumed to be that of the certified key, if both
/// keys have the same size.
pub(super) fn rsa_issuer(bits: usize, own: &str) -> Root {
    Root::Rsa { bits, small_exponent: own == rsa(bits, true) }
}

/// An RSA key as spelled in suite names.
pub(super) fn rsa_name(modulus: &[u8], exponent: &[u8]) -> String {
    rsa(bits(modulus) as usize, significant(exponent) == [3])
}

/// FIPS 204's parameter sets: the last number of 2.16.840.1.101.3.4.3.
fn post_quantum(object: &[u8]) -> Option<String> {
    let (&last, arc) = object.split_last()?;
    let set = match last {
        17 => 44,
        18 => 65,
        19 => 87,
        _ => return None,
    };
    (arc == DSA_SHA2).then(|| format!("mldsa{set}"))
}

/// The content of a Certificate message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Presented {
    /// No certificate, from a client that has none.
    Nothing,
    Keys(Box<Chain>),
    /// Keys that cannot be determined.
    Unclear,
}

impl Presented {
    /// Reads a Certificate message, in the format of TLS 1.3 if `modern`.
    pub(crate) fn read(body: &[u8], modern: bool) -> Self {
        match chain(body, modern) {
            Some(chain) if chain.is_empty() => Self::Nothing,
            Some(chain) => describe(&chain, ProtocolFamily::Tls)
                .map_or(Self::Unclear, |chain| Self::Keys(Box::new(chain))),
            None => Self::Unclear,
        }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        if let Self::Keys(keys) = self { keys.held_bytes() } else { 0 }
    }
}

/// The certificates of a Certificate message, leaf first.
fn chain(body: &[u8], modern: bool) -> Option<Vec<&[u8]>> {
    let mut fields = crate::tls::Fields(body);
    if modern {
        fields.vector(1)?;
    }
    let mut list = crate::tls::Fields(fields.vector(3)?);
    let mut chain = Vec::new();
    while !list.0.is_empty() {
        chain.push(list.vector(3)?);
        if modern {
            list.vector(2)?;
        }
    }
    Some(chain)
}

/// The keys that were sent, and the inferred root.
pub(super) fn describe(chain: &[&[u8]], family: ProtocolFamily) -> Option<Chain> {
    let certificates = chain.iter().map(|der| Certificate::read(der)).collect::<Option<Vec<_>>>()?;
    let mut names = certificates.iter().map(Certificate::key_name).collect::<Option<Vec<_>>>()?;
    let last = certificates.last()?;
    if last.issuer != last.subject {
        let root = last.issuer(names.last()?, family)?;
        return Some(Chain::new(names, root));
    }
    // A self-signed last certificate is the root; if it is the only one, it is also the leaf.
    let root =
        Root::Known(if names.len() == 1 { names.last()?.clone() } else { names.pop()? }.into_boxed_str());
    Some(Chain::new(names, root))
}
