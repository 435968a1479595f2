//! What kinds of keys a chain of X.509 certificates has (RFC 5280), read without trust in any length.

use shakedown_trace::suite::Curve;

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

/// Object identifiers of curves (RFC 5480, SEC 2, X9.62): 1.3.132.0.n, and 1.2.840.10045.3.x.n.
const CURVES: [(&[u8], &str); 17] = [
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], "prime256v1"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 0, 1], "c2pnb163v1"),
    (&[0x2b, 0x81, 0x04, 0, 1], "sect163k1"),
    (&[0x2b, 0x81, 0x04, 0, 8], "secp160r1"),
    (&[0x2b, 0x81, 0x04, 0, 10], "secp256k1"),
    (&[0x2b, 0x81, 0x04, 0, 15], "sect163r2"),
    (&[0x2b, 0x81, 0x04, 0, 16], "sect283k1"),
    (&[0x2b, 0x81, 0x04, 0, 17], "sect283r1"),
    (&[0x2b, 0x81, 0x04, 0, 26], "sect233k1"),
    (&[0x2b, 0x81, 0x04, 0, 27], "sect233r1"),
    (&[0x2b, 0x81, 0x04, 0, 33], "secp224r1"),
    (&[0x2b, 0x81, 0x04, 0, 34], "secp384r1"),
    (&[0x2b, 0x81, 0x04, 0, 35], "secp521r1"),
    (&[0x2b, 0x81, 0x04, 0, 36], "sect409k1"),
    (&[0x2b, 0x81, 0x04, 0, 37], "sect409r1"),
    (&[0x2b, 0x81, 0x04, 0, 38], "sect571k1"),
    (&[0x2b, 0x81, 0x04, 0, 39], "sect571r1"),
];

/// DER values one after the other.
struct Values<'a>(&'a [u8]);

impl<'a> Values<'a> {
    /// The next value: tag, content, and the value as a whole.
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

/// The parts of a certificate that tell about keys.
struct Certificate<'a> {
    issuer: &'a [u8],
    subject: &'a [u8],
    /// Algorithm identifier and key.
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

    /// The key in the words of suite names.
    fn key_name(&self) -> Option<String> {
        let mut algorithm = Values(self.key_algorithm);
        let object = algorithm.expect(OBJECT)?;
        if object.starts_with(RSA) {
            let mut numbers = Values(Values(self.key).expect(SEQUENCE)?);
            let bits = bits(numbers.expect(INTEGER)?);
            let exponent = numbers.expect(INTEGER)?;
            return Some(format!("rsa{bits}{}", if exponent == [3] { "e3" } else { "" }));
        }
        if object.starts_with(DSA) {
            let mut parameters = Values(algorithm.expect(SEQUENCE)?);
            return Some(format!("dsa{}", bits(parameters.expect(INTEGER)?)));
        }
        match object {
            EC_KEY => {
                let curve = algorithm.expect(OBJECT)?;
                let (_, name) = CURVES.iter().find(|row| row.0 == curve)?;
                Some(Curve::from_openssl(name)?.name().to_owned())
            }
            ED25519 => Some("ed25519".to_owned()),
            _ => post_quantum(object),
        }
    }

    /// The key that signed this certificate; `own` is the name of the key that it certifies.
    fn issuer_key_name(&self, own: &str) -> Option<String> {
        let object = Values(self.signature_algorithm).expect(OBJECT)?;
        if object.starts_with(RSA) {
            let bits = self.signature.len() * 8;
            // The exponent does not show: as the certified key's, if that is as large.
            return Some(if own == format!("rsa{bits}e3") { own.to_owned() } else { format!("rsa{bits}") });
        }
        if object.starts_with(ECDSA) {
            let mut numbers = Values(Values(self.signature).expect(SEQUENCE)?);
            let longest = bits(numbers.expect(INTEGER)?).max(bits(numbers.expect(INTEGER)?));
            // The certified key's own curve, if such a signature fits it; else the usual one of that size.
            let fits = |curve: &Curve| (longest..longest + 24).contains(&usize::from(curve.field_bits() + 1));
            let same = Curve::from_name(own).filter(fits);
            let usual = ["p224", "p256", "p384", "p521"].into_iter().filter_map(Curve::from_name).find(fits);
            return same.or(usual).or_else(|| Curve::all().find(fits)).map(|curve| curve.name().to_owned());
        }
        if object.starts_with(DSA)
            || (object.starts_with(DSA_SHA2) && object.get(8).is_some_and(|&last| last <= 8))
        {
            return own.starts_with("dsa").then(|| own.to_owned());
        }
        if object == ED25519 {
            return Some("ed25519".to_owned());
        }
        post_quantum(object)
    }
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

fn bits(integer: &[u8]) -> usize {
    let start = integer.iter().position(|&byte| byte != 0).unwrap_or(integer.len());
    let digits = &integer[start..];
    digits.first().map_or(0, |first| digits.len() * 8 - first.leading_zeros() as usize)
}

/// What a Certificate message showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// No certificate: a client that has none.
    Nothing,
    /// The keys part of a suite name.
    Keys(Box<str>),
    /// Something that cannot be told.
    Unclear,
}

impl Shown {
    /// Reads a Certificate message, of TLS 1.3 where `modern`.
    pub(crate) fn read(body: &[u8], modern: bool) -> Self {
        match chain(body, modern) {
            Some(chain) if chain.is_empty() => Self::Nothing,
            Some(chain) => describe(&chain).map_or(Self::Unclear, |keys| Self::Keys(keys.into_boxed_str())),
            None => Self::Unclear,
        }
    }

    /// Memory held.
    pub(crate) fn held_bytes(&self) -> usize {
        if let Self::Keys(keys) = self { keys.len() } else { 0 }
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

/// The keys part of a suite name: what was sent, and the root that was not.
fn describe(chain: &[&[u8]]) -> Option<String> {
    let certificates = chain.iter().map(|der| Certificate::read(der)).collect::<Option<Vec<_>>>()?;
    let mut names = certificates.iter().map(Certificate::key_name).collect::<Option<Vec<_>>>()?;
    let last = certificates.last()?;
    // A root that was sent all the same is the trusted one; a lone one is its own.
    if names.len() == 1 || last.issuer != last.subject {
        let root = last.issuer_key_name(names.last()?)?;
        names.push(root);
    }
    Some(names.join("@"))
}
