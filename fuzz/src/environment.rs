//! Configurations of every flow, with deterministic time and randomness.

use crate::synthetic::{Synthetic, SyntheticKey};
use shakedown_trace::Side;
use shakedown_wtls::certificate::*;
use shakedown_wtls::crypto::KeyKind;
use shakedown_wtls::*;
use std::sync::Arc;
use std::time::Duration;

/// A source of bytes.
type Bytes = dyn FnMut(&mut [u8]);

/// The environment of one side.
pub struct Environment {
    random: Box<Bytes>,
    observer: (),
    /// The current time.
    pub now: Duration,
}

impl Environment {
    /// An environment whose random bytes count from `first`.
    pub fn new(first: u8) -> Self {
        let mut next = first;
        let random = move |out: &mut [u8]| {
            for byte in out {
                *byte = next | 1;
                next = next.wrapping_add(29);
            }
        };
        Self { random: Box::new(random), observer: (), now: Duration::from_secs(1) }
    }

    /// The context of one call.
    pub fn cx(&mut self) -> Context<'_, Synthetic> {
        Context {
            now: Time { elapsed: self.now, unix_s: 1_800_000_000 },
            provider: &Synthetic,
            random: &mut self.random,
            observer: &mut self.observer,
        }
    }
}

/// The configurations of both sides.
pub struct Flow {
    pub client: Arc<ClientConfig<Synthetic>>,
    pub server: Arc<ServerConfig<Synthetic>>,
}

/// Number of flows.
pub const FLOWS: usize = 11;

const EC: KeyKind = KeyKind::Ec(Curve::Secp160r1);
const RSA: KeyKind = KeyKind::Rsa { bits: 512 };

fn key(kind: KeyKind, leaf: bool) -> CertifiedKey {
    match kind {
        KeyKind::Ec(curve) => {
            let point = CertifiedPoint {
                parameters: ParameterSpecifier::of_curve(curve, false),
                point: vec![2; 1 + curve.field_bytes()],
            };
            if leaf { CertifiedKey::Ecdh(point) } else { CertifiedKey::Ecdsa(point) }
        }
        other => {
            let modulus = vec![0xC1; other.size_bits().div_ceil(8) as usize];
            CertifiedKey::Rsa(EncodedRsaKey::new(&[3], &modulus).expect("a short key"))
        }
    }
}

fn subject(name: &str, public_key: CertifiedKey) -> Subject {
    Subject {
        name: Identifier::text(name),
        public_key,
        valid_not_before_unix_s: 0,
        valid_not_after_unix_s: u32::MAX,
    }
}

fn issued(kind: KeyKind) -> Certificate {
    let name = Identifier::text("Root; Org; US");
    let issuer = Issuer { name: &name, key: &SyntheticKey(kind) };
    let mut random = |out: &mut [u8]| out.fill(1);
    issue(&Synthetic, &issuer, subject("Peer; Org; US", key(kind, true)), &mut random)
        .expect("a short certificate")
}

/// X.509 certificates of a kind, made by `openssl req` and `openssl x509`: a leaf, and the root that issued it.
fn x509(kind: KeyKind) -> [&'static [u8]; 2] {
    match kind {
        EC => [include_bytes!("../x509/ec-leaf.der"), include_bytes!("../x509/ec-root.der")],
        _ => [include_bytes!("../x509/rsa-leaf.der"), include_bytes!("../x509/rsa-root.der")],
    }
}

fn read_x509(der: &[u8]) -> X509Certificate {
    X509Certificate::from_der(der).expect("a certificate of ours")
}

/// The bytes of a certificate of each kind and form.
pub fn certificate_bytes() -> Vec<Vec<u8>> {
    let kinds = [EC, RSA];
    let own = kinds.map(|kind| issued(kind).as_bytes().to_vec());
    own.into_iter().chain(kinds.into_iter().flat_map(x509).map(<[u8]>::to_vec)).collect()
}

fn identity(kind: KeyKind, form: CertificateFormat) -> Identity<Synthetic> {
    let certificate: ChainCertificate = match form {
        CertificateFormat::X509 => read_x509(x509(kind)[0]).into(),
        _ => issued(kind).into(),
    };
    Identity::new(vec![certificate], SyntheticKey(kind)).expect("one certificate")
}

fn anchors(kind: KeyKind) -> [TrustAnchor<Synthetic>; 2] {
    let name = Identifier::text("Root; Org; US");
    let own = TrustAnchor::new(&Synthetic, name, &key(kind, false), false);
    [own, TrustAnchor::from_x509(&Synthetic, &read_x509(x509(kind)[1]))]
        .map(|anchor| anchor.expect("a good key"))
}

/// The configurations of flow `index` (modulo [`FLOWS`]).
pub fn flow(index: usize) -> Flow {
    use KeyExchangeSuite as S;
    let index = index % FLOWS;
    let curve = ParameterSpecifier::of_curve(Curve::Secp160r1, false);
    let named = Identifier::Binary(b"name".to_vec());
    let null = Identifier::Null;
    let (suite, parameters, identifier) = match index {
        0..=2 | 9 => (S::EcdhEcdsa, curve, null),
        3 | 4 | 10 => (S::Rsa, ParameterSpecifier::NONE, null),
        5 => (S::RsaAnon, ParameterSpecifier::NONE, null),
        6 => (S::DhAnon, ParameterSpecifier::NONE, null),
        7 => (S::EcdhAnon, curve, null),
        _ => (S::SharedSecret, ParameterSpecifier::NONE, named.clone()),
    };
    let mut client = ClientConfig::new(vec![KeyExchangeId::new(suite, parameters, identifier)]);
    let mut server = ServerConfig::new(S::ALL.to_vec());
    let form = if index > 8 { CertificateFormat::X509 } else { CertificateFormat::Wtls };
    for kind in [EC, RSA] {
        server.identities.push(identity(kind, form));
        server.anchors.extend(anchors(kind));
        client.anchors.extend(anchors(kind));
    }
    if matches!(index, 1 | 2 | 4 | 9 | 10) {
        let kind = if matches!(index, 4 | 10) { RSA } else { EC };
        client.identity = Some(identity(kind, form));
        server.client_authentication = ClientAuthentication::Requested;
    }
    if index == 2 {
        let known = KnownClient::new(&Synthetic, issued(EC), false).expect("a good key");
        let hash = key(EC, true).key_hash(&Synthetic, false).expect("a good key");
        server.known_clients.push(known);
        client.key_exchanges[0].identifier = Identifier::KeyHash(hash);
    }
    let CertifiedKey::Rsa(public) = key(RSA, true) else { unreachable!("it is an RSA key") };
    server.temporary_rsa_keys.push(TemporaryRsaKey { key: SyntheticKey(RSA), public });
    server.groups.push(DhGroup::group_1());
    server.curves = Curve::ALL.to_vec();
    let secret = || SharedSecret { identifier: named.clone(), secret: vec![1; 16].into() };
    client.shared_secrets.push(secret());
    server.shared_secrets.push(secret());
    server.sessions = Arc::new(MemorySessions::new(4));
    Flow { client: Arc::new(client), server: Arc::new(server) }
}

/// Input bytes that select the next actions.
pub struct Choices<'a>(pub &'a [u8]);

impl<'a> Choices<'a> {
    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).first().copied()
    }

    /// The next `count` bytes, or all that are left.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// The steps of an input. Each begins with two bytes: an address (2 bits), an action (2 bits; 0 or 1: a datagram
/// arrives), and the length of the bytes that follow (12 bits).
pub fn steps(mut input: &[u8]) -> impl Iterator<Item = (usize, u8, &[u8])> {
    std::iter::from_fn(move || {
        let (head, rest) = input.split_first_chunk::<2>()?;
        let head = u16::from_be_bytes(*head);
        let length = usize::from(head & 0x0FFF).min(rest.len());
        let (bytes, rest) = rest.split_at(length);
        input = rest;
        Some((usize::from(head >> 14), (head >> 12 & 3) as u8, bytes))
    })
}

/// A valid conversation of flow `index`: the sender and the content of each datagram.
pub fn genuine(index: usize) -> Vec<(Side, Vec<u8>)> {
    let flow = flow(index);
    let (mut here, mut there) = (Environment::new(1), Environment::new(2));
    let mut client = Client::new(flow.client, None, &mut here.cx());
    let mut server = ServerConnection::new(flow.server);
    let mut said = Vec::new();
    for round in 0..4 {
        while let Some(datagram) = client.poll_transmit() {
            server.handle_input(&mut there.cx(), &datagram);
            said.push((Side::Client, datagram));
        }
        while let Some(datagram) = server.poll_transmit() {
            client.handle_input(&mut here.cx(), &datagram);
            said.push((Side::Server, datagram));
        }
        if round == 2 {
            let _ = client.write(&mut here.cx(), b"data");
            let _ = server.write(&mut there.cx(), b"data");
        }
    }
    assert!(client.is_open() && server.is_open(), "flow {index} connects");
    said
}
