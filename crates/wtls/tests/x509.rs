//! X.509 certificates in WTLS handshakes, issued by OpenSSL.

#![allow(clippy::unwrap_used)]

mod support;

use openssl::asn1::{Asn1Integer, Asn1Object, Asn1OctetString, Asn1Time};
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::extension::{BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectAlternativeName};
use openssl::x509::{X509, X509Builder, X509Extension, X509Name, X509NameBuilder};
use shakedown_wtls::certificate::*;
use shakedown_wtls::provider::openssl::{OpenSsl, PrivateKey};
use shakedown_wtls::*;
use std::sync::Arc;
use support::*;

fn nid(curve: Curve) -> Nid {
    match curve {
        Curve::Sect163k1 => Nid::SECT163K1,
        Curve::Secp160r1 => Nid::SECP160R1,
        Curve::Prime256v1 => Nid::X9_62_PRIME256V1,
        Curve::Sect283r1 => Nid::SECT283R1,
        Curve::C2pnb163v1 => Nid::X9_62_C2PNB163V1,
        Curve::Secp224r1 => Nid::SECP224R1,
        other => panic!("{other} is not in these tests"),
    }
}

fn generate(kind: Kind, index: usize) -> PKey<Private> {
    match kind {
        Kind::Rsa(bits) => PKey::from_rsa(Rsa::private_key_from_der(&rsa_der(bits, index)).unwrap()).unwrap(),
        Kind::Ec(curve) => {
            let group = EcGroup::from_curve_name(nid(curve)).unwrap();
            PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
        }
    }
}

fn name(text: &str) -> X509Name {
    let mut name = X509NameBuilder::new().unwrap();
    name.append_entry_by_text("O", "Test").unwrap();
    name.append_entry_by_text("CN", text).unwrap();
    name.build()
}

/// The properties of a certificate to issue.
struct Spec<'a> {
    subject: &'a str,
    key: &'a PKey<Private>,
    issuer: (&'a str, &'a PKey<Private>),
    ca: Option<u32>,
    hosts: &'a [&'a str],
    days: (i64, i64),
    digest: MessageDigest,
    usage: Option<KeyUsage>,
    more: Option<X509Extension>,
}

impl<'a> Spec<'a> {
    fn new(subject: &'a str, key: &'a PKey<Private>, issuer: (&'a str, &'a PKey<Private>)) -> Self {
        let digest = MessageDigest::sha256();
        Self { subject, key, issuer, ca: None, hosts: &[], days: (-1, 100), digest, usage: None, more: None }
    }

    fn make(self) -> X509 {
        let mut builder = X509Builder::new().unwrap();
        builder.set_version(2).unwrap();
        let serial = BigNum::from_u32(7).unwrap();
        builder.set_serial_number(&Asn1Integer::from_bn(&serial).unwrap()).unwrap();
        builder.set_subject_name(&name(self.subject)).unwrap();
        builder.set_issuer_name(&name(self.issuer.0)).unwrap();
        let at = |days: i64| Asn1Time::from_unix(NOW_UNIX_S as i64 + 86_400 * days).unwrap();
        builder.set_not_before(&at(self.days.0)).unwrap();
        builder.set_not_after(&at(self.days.1)).unwrap();
        builder.set_pubkey(self.key).unwrap();
        let mut constraints = BasicConstraints::new();
        if let Some(limit) = self.ca {
            constraints.critical().ca().pathlen(limit);
        }
        builder.append_extension(constraints.build().unwrap()).unwrap();
        if let Some(usage) = self.usage {
            builder.append_extension(usage.build().unwrap()).unwrap();
        }
        if !self.hosts.is_empty() {
            let mut names = SubjectAlternativeName::new();
            self.hosts.iter().for_each(|host| {
                names.dns(host);
            });
            let names = names.build(&builder.x509v3_context(None, None)).unwrap();
            builder.append_extension(names).unwrap();
        }
        if let Some(more) = self.more {
            builder.append_extension(more).unwrap();
        }
        builder.sign(self.issuer.1, self.digest).unwrap();
        builder.build()
    }
}

fn read(certificate: &X509) -> Result<X509Certificate, X509Error> {
    X509Certificate::from_der(&certificate.to_der().unwrap())
}

fn engine_key(key: &PKey<Private>, kind: Kind) -> PrivateKey {
    match kind {
        Kind::Rsa(_) => PROVIDER.rsa_key_from_der(&key.rsa().unwrap().private_key_to_der().unwrap()).unwrap(),
        Kind::Ec(curve) => PROVIDER.ec_key(curve, &key.ec_key().unwrap().private_key().to_vec()).unwrap(),
    }
}

/// A root, an intermediate and a leaf of one kind.
struct Family {
    kind: Kind,
    root: X509,
    intermediate: X509,
    leaf: X509,
    keys: [PKey<Private>; 3],
}

impl Family {
    fn new(who: &str, kind: Kind, digest: MessageDigest) -> Self {
        let keys = [0, 1, 2].map(|index| generate(kind, 900 + index));
        let (root_name, middle_name) = (format!("{who} root"), format!("{who} CA"));
        let ca = Some(3);
        let root = Spec { ca, digest, ..Spec::new(&root_name, &keys[2], (&root_name, &keys[2])) }.make();
        let intermediate =
            Spec { ca, digest, ..Spec::new(&middle_name, &keys[1], (&root_name, &keys[2])) }.make();
        let host = format!("{who}.test");
        let hosts = &[host.as_str()][..];
        let leaf = Spec { hosts, digest, ..Spec::new(who, &keys[0], (&middle_name, &keys[1])) }.make();
        Self { kind, root, intermediate, leaf, keys }
    }

    fn identity(&self) -> Identity<OpenSsl> {
        let chain = vec![read(&self.leaf).unwrap(), read(&self.intermediate).unwrap()];
        Identity::new(chain, engine_key(&self.keys[0], self.kind)).unwrap()
    }

    fn anchor(&self) -> TrustAnchor<OpenSsl> {
        TrustAnchor::from_x509(&*PROVIDER, &read(&self.root).unwrap()).unwrap()
    }
}

fn pair(kind: Kind, digest: MessageDigest, mutual: bool) -> (ClientConfig<OpenSsl>, ServerConfig<OpenSsl>) {
    let server = Family::new("gateway", kind, digest);
    let offer = certified_offer(kind, false);
    let mut server_config = ServerConfig::new(vec![offer.known_suite().unwrap()]);
    server_config.identities.push(server.identity());
    server_config.sessions = Arc::new(MemorySessions::new(10));
    let mut client_config = ClientConfig::new(vec![offer]);
    client_config.anchors.push(server.anchor());
    client_config.server_name = Some("gateway.test".to_owned());
    if mutual {
        let client = Family::new("handset", kind, digest);
        client_config.identity = Some(client.identity());
        server_config.anchors.push(client.anchor());
        server_config.client_authentication = ClientAuthentication::Required;
    }
    (client_config, server_config)
}

#[test]
fn handshakes_with_x509_certificates_complete() {
    let kinds = [
        (Kind::Rsa(1024), MessageDigest::sha1()),
        (Kind::Rsa(2048), MessageDigest::sha256()),
        (Kind::Rsa(2048), MessageDigest::sha512()),
        (Kind::Ec(Curve::Secp160r1), MessageDigest::sha1()),
        (Kind::Ec(Curve::Sect163k1), MessageDigest::sha256()),
        (Kind::Ec(Curve::C2pnb163v1), MessageDigest::sha256()),
        (Kind::Ec(Curve::Prime256v1), MessageDigest::sha384()),
        (Kind::Ec(Curve::Secp224r1), MessageDigest::sha256()),
        (Kind::Ec(Curve::Sect283r1), MessageDigest::sha512()),
    ];
    for (kind, digest) in kinds {
        for mutual in [false, true] {
            let (client, server) = pair(kind, digest, mutual);
            let (client, server) = (Arc::new(client), Arc::new(server));
            let mut pair = Pair::new(&client, &server, None, 1);
            pair.run();
            let ours = established(&pair.client_events)
                .unwrap_or_else(|| panic!("{kind:?} {:?}", pair.client_events));
            let theirs = established(&pair.server_events).unwrap();
            assert_eq!(ours.transcript, theirs.transcript);
            assert_eq!(peer_certificates(ours).len(), 2);
            assert_eq!(peer_certificates(theirs).len(), if mutual { 2 } else { 0 });
            // After a resumption, both sides still have the identity of the other.
            let session = pair.client.session().unwrap().clone();
            let mut again = Pair::new(&client, &server, Some(session), 2);
            let resumed = established(&again.run().server_events).unwrap();
            assert_eq!(resumed.mode, HandshakeMode::Resumed);
            assert_eq!(peer_certificates(resumed).len(), if mutual { 2 } else { 0 });
        }
    }
}

#[test]
fn client_is_identified_by_its_x509_key_hash() {
    let kind = Kind::Ec(Curve::Sect163k1);
    let (mut client, mut server) = pair(kind, MessageDigest::sha256(), true);
    let handset = Family::new("handset", kind, MessageDigest::sha256());
    let known = read(&handset.leaf).unwrap();
    let hash = known.public_key(true).key_hash(&*PROVIDER, false).unwrap();
    client.identity = Some(handset.identity());
    server.known_clients.push(KnownClient::new(&*PROVIDER, known.clone(), false).unwrap());
    for identifier in [Identifier::KeyHash(hash), known.subject().clone()] {
        client.key_exchanges[0].identifier = identifier;
        let mut config = ClientConfig::new(client.key_exchanges.clone());
        config.identity = Some(handset.identity());
        config.anchors = std::mem::take(&mut client.anchors);
        let config = Arc::new(config);
        // The configuration is moved and returned, because an anchor cannot be cloned.
        let shared = Arc::new(std::mem::replace(&mut server, ServerConfig::new(Vec::new())));
        let mut pair = Pair::new(&config, &shared, None, 3);
        let found = established(&pair.run().server_events).map(|found| found.mode);
        assert_eq!(found, Some(HandshakeMode::Optimised), "{:?}", pair.server_events);
        drop(pair);
        server = Arc::into_inner(shared).unwrap();
        client.anchors = Arc::into_inner(config).unwrap().anchors;
    }
}

#[test]
fn overlong_root_name_is_replaced_by_its_key_hash() {
    let kind = Kind::Rsa(1024);
    let keys = [generate(kind, 900), generate(kind, 901)];
    let long = "r".repeat(64);
    let mut builder = X509NameBuilder::new().unwrap();
    for field in ["O", "OU", "CN", "L", "ST"] {
        builder.append_entry_by_text(field, &long).unwrap();
    }
    let root_name = builder.build();
    let make = |subject: &str, issuer_key: &PKey<Private>, key| {
        let made =
            Spec { ca: (subject == "root").then_some(3), ..Spec::new(subject, key, ("root", issuer_key)) };
        let made = made.make();
        let mut builder = X509Builder::new().unwrap();
        builder.set_version(2).unwrap();
        builder.set_subject_name(if subject == "root" { &root_name } else { made.subject_name() }).unwrap();
        builder.set_issuer_name(&root_name).unwrap();
        builder.set_not_before(made.not_before()).unwrap();
        builder.set_not_after(made.not_after()).unwrap();
        builder.set_pubkey(key).unwrap();
        let serial = BigNum::from_u32(9).unwrap();
        builder.set_serial_number(&Asn1Integer::from_bn(&serial).unwrap()).unwrap();
        builder.sign(issuer_key, MessageDigest::sha256()).unwrap();
        read(&builder.build()).unwrap()
    };
    let (root, leaf) = (make("root", &keys[1], &keys[1]), make("leaf", &keys[1], &keys[0]));
    let anchor = TrustAnchor::from_x509(&*PROVIDER, &root).unwrap();
    let hash = Identifier::KeyHash(anchor.key_hash);
    let offer = certified_offer(kind, false);
    let mut client = ClientConfig::new(vec![offer.clone()]);
    client.anchors.push(anchor);
    let mut server = ServerConfig::new(vec![offer.known_suite().unwrap()]);
    let identity = Identity::new(vec![leaf], engine_key(&keys[0], kind)).unwrap();
    server.identities.push(identity.with_authority(hash));
    let mut pair = Pair::new(&Arc::new(client), &Arc::new(server), None, 1);
    assert!(established(&pair.run().client_events).is_some(), "{:?}", pair.client_events);
}

/// Verifies leaf and intermediate of a changed family as a client of `gateway.test` does.
fn verified(chain: &[&X509], root: &X509, kind: Kind, host: Option<&str>) -> Result<(), CertificateError> {
    verified_of(Holder::Server, chain, root, kind, host)
}

fn verified_of(
    holder: Holder,
    chain: &[&X509],
    root: &X509,
    kind: Kind,
    host: Option<&str>,
) -> Result<(), CertificateError> {
    let anchor = TrustAnchor::from_x509(&*PROVIDER, &read(root)?)?;
    let chain: Result<Vec<ChainCertificate>, X509Error> =
        chain.iter().map(|one| read(one).map(Into::into)).collect();
    let family = match kind {
        Kind::Rsa(_) => KeyExchangeFamily::Rsa,
        Kind::Ec(_) => KeyExchangeFamily::EcdhEcdsa,
    };
    let policy = ChainPolicy { holder, family, now_unix_s: NOW_UNIX_S, private_curves: false, name: host };
    verify_chain(&*PROVIDER, &chain?, &[anchor], &policy).map(drop)
}

#[test]
fn each_invalid_x509_chain_is_refused() {
    for kind in [Kind::Rsa(1024), Kind::Ec(Curve::Secp160r1)] {
        let family = Family::new("gateway", kind, MessageDigest::sha256());
        let [key, ca_key, root_key] = &family.keys;
        let by_ca = || Spec::new("gateway", key, ("gateway CA", ca_key));
        let by_root = || Spec::new("gateway CA", ca_key, ("gateway root", root_key));
        let leaf = |spec: Spec<'_>| verified(&[&spec.make(), &family.intermediate], &family.root, kind, None);
        let ca = |spec: Spec<'_>| verified(&[&family.leaf, &spec.make()], &family.root, kind, None);

        leaf(by_ca()).unwrap();
        ca(Spec { ca: Some(0), ..by_root() }).unwrap();
        verified(&[&family.leaf, &family.intermediate], &family.root, kind, Some("gateway.test")).unwrap();
        // Without alternative names the common name is used.
        let plain = by_ca().make();
        verified(&[&plain, &family.intermediate], &family.root, kind, Some("gateway")).unwrap();

        let not_now =
            |found| assert!(matches!(found, Err(CertificateError::NotValidNow { .. })), "{found:?}");
        not_now(leaf(Spec { days: (-9, -1), ..by_ca() }));
        not_now(leaf(Spec { days: (1, 9), ..by_ca() }));
        let no_authority =
            |found| assert!(matches!(found, Err(CertificateError::NotAuthority { .. })), "{found:?}");
        no_authority(ca(by_root()));
        let mut no_signer = KeyUsage::new();
        no_signer.critical().digital_signature();
        no_authority(ca(Spec { ca: Some(0), usage: Some(no_signer), ..by_root() }));
        let found = verified(&[&family.leaf, &family.intermediate], &family.root, kind, Some("other.test"));
        assert!(matches!(found, Err(CertificateError::WrongName { .. })), "{found:?}");
        let found = verified(&[&family.leaf], &family.root, kind, None);
        assert!(matches!(found, Err(CertificateError::UnknownIssuer { .. })), "{found:?}");
        let forged = Spec::new("gateway", key, ("gateway CA", root_key));
        let found = leaf(forged);
        assert!(matches!(found, Err(CertificateError::Crypto(_))), "{found:?}");

        let oid = Asn1Object::from_str("1.3.6.1.4.1.99999.1").unwrap();
        let value = Asn1OctetString::new_from_bytes(&[5, 0]).unwrap();
        for critical in [true, false] {
            let more = X509Extension::new_from_der(&oid, critical, &value).unwrap();
            let found = leaf(Spec { more: Some(more), ..by_ca() });
            let refused = matches!(found, Err(CertificateError::X509(X509Error::CriticalExtension { .. })));
            assert_eq!(refused, critical, "{found:?}");
        }
    }
}

#[test]
fn key_usage_is_enforced() {
    type Allow = fn(&mut KeyUsage) -> &mut KeyUsage;
    let usages: [(&str, Allow); 3] = [
        ("digital signatures", KeyUsage::digital_signature),
        ("key encipherment", KeyUsage::key_encipherment),
        ("key agreement", KeyUsage::key_agreement),
    ];
    let needs = [
        (Kind::Rsa(1024), Holder::Server, "key encipherment"),
        (Kind::Rsa(1024), Holder::Client, "digital signatures"),
        (Kind::Ec(Curve::Secp160r1), Holder::Server, "key agreement"),
        (Kind::Ec(Curve::Secp160r1), Holder::Client, "key agreement"),
    ];
    for (kind, holder, needed) in needs {
        let family = Family::new("gateway", kind, MessageDigest::sha256());
        for (name, allow) in usages {
            let mut usage = KeyUsage::new();
            allow(usage.critical());
            let issuer = ("gateway CA", &family.keys[1]);
            let leaf = Spec { usage: Some(usage), ..Spec::new("gateway", &family.keys[0], issuer) }.make();
            let found = verified_of(holder, &[&leaf, &family.intermediate], &family.root, kind, None);
            match found {
                Ok(()) => assert_eq!(name, needed),
                Err(error) => {
                    assert_ne!(name, needed);
                    let said = format!(
                        "the X.509 certificate of CN=gateway,O=Test does not allow {needed} (key usage)"
                    );
                    assert_eq!(error.to_string(), said);
                }
            }
        }
    }
}

#[test]
fn extended_key_usage_is_enforced_on_the_whole_chain() {
    let kind = Kind::Rsa(1024);
    let family = Family::new("gateway", kind, MessageDigest::sha256());
    let [key, ca_key, root_key] = &family.keys;
    type Allow = fn(&mut ExtendedKeyUsage) -> &mut ExtendedKeyUsage;
    let purposes: [(&str, Allow, bool, bool); 3] = [
        ("server", ExtendedKeyUsage::server_auth, true, false),
        ("client", ExtendedKeyUsage::client_auth, false, true),
        ("code", ExtendedKeyUsage::code_signing, false, false),
    ];
    for (name, allow, for_servers, for_clients) in purposes {
        for critical in [false, true] {
            let purpose = || {
                let mut usage = ExtendedKeyUsage::new();
                if critical {
                    usage.critical();
                }
                Some(allow(&mut usage).build().unwrap())
            };
            let leaf = Spec { more: purpose(), ..Spec::new("gateway", key, ("gateway CA", ca_key)) }.make();
            let by_root = Spec::new("gateway CA", ca_key, ("gateway root", root_key));
            let ca = Spec { ca: Some(3), more: purpose(), ..by_root }.make();
            for (holder, right) in [(Holder::Server, for_servers), (Holder::Client, for_clients)] {
                for chain in [[&leaf, &family.intermediate], [&family.leaf, &ca]] {
                    let found = verified_of(holder, &chain, &family.root, kind, None);
                    assert_eq!(found.is_ok(), right, "{name} {holder:?} {found:?}");
                    let usage = matches!(found, Err(CertificateError::Usage { .. }));
                    assert_eq!(usage, !right, "{name} {holder:?} {found:?}");
                }
            }
        }
    }
}

#[test]
fn name_constraints_and_repeated_extensions_are_refused() {
    let key = generate(Kind::Rsa(1024), 900);
    let extension = |id: &str, critical, value: &[u8]| {
        let id = Asn1Object::from_str(id).unwrap();
        X509Extension::new_from_der(&id, critical, &Asn1OctetString::new_from_bytes(value).unwrap()).unwrap()
    };
    // permittedSubtrees: dNSName "test"
    let limits = [0x30, 0x0A, 0xA0, 0x08, 0x30, 0x06, 0x82, 0x04, b't', b'e', b's', b't'];
    for critical in [false, true] {
        let more = Some(extension("2.5.29.30", critical, &limits));
        let made = Spec { ca: Some(0), more, ..Spec::new("CA", &key, ("root", &key)) }.make();
        let error = read(&made).unwrap_err();
        assert_eq!(error, X509Error::NameConstraints { subject: "CN=CA,O=Test".to_owned() });
    }
    let more = Some(extension("2.5.29.19", false, &[0x30, 0x00]));
    let error = read(&Spec { more, ..Spec::new("CA", &key, ("root", &key)) }.make()).unwrap_err();
    assert!(error.to_string().ends_with("the extension 2.5.29.19 occurs twice"), "{error}");
}

#[test]
fn common_name_is_used_beside_an_ip_alternative_name() {
    let kind = Kind::Ec(Curve::Secp160r1);
    let family = Family::new("gateway", kind, MessageDigest::sha256());
    let mut address = SubjectAlternativeName::new();
    address.ip("127.0.0.1");
    let builder = X509Builder::new().unwrap();
    let more = Some(address.build(&builder.x509v3_context(None, None)).unwrap());
    let leaf = Spec { more, ..Spec::new("gw", &family.keys[0], ("gateway CA", &family.keys[1])) }.make();
    let named = |host| verified(&[&leaf, &family.intermediate], &family.root, kind, Some(host));
    named("gw").unwrap();
    assert!(matches!(named("127.0.0.1"), Err(CertificateError::WrongName { .. })));
}

#[test]
fn path_length_constraint_is_enforced() {
    let kind = Kind::Ec(Curve::Secp160r1);
    let keys = [0, 1, 2, 3].map(|_| generate(kind, 0));
    let root = Spec { ca: Some(9), ..Spec::new("root", &keys[3], ("root", &keys[3])) }.make();
    for limit in [0, 1] {
        let upper = Spec { ca: Some(limit), ..Spec::new("upper", &keys[2], ("root", &keys[3])) }.make();
        // A self-issued certificate, as at a change of keys, does not count for the path length.
        let again = Spec { ca: Some(9), ..Spec::new("lower", &keys[1], ("lower", &keys[1])) }.make();
        let lower = Spec { ca: Some(0), ..Spec::new("lower", &keys[1], ("upper", &keys[2])) }.make();
        let leaf = Spec::new("leaf", &keys[0], ("lower", &keys[1])).make();
        let found = verified(&[&leaf, &lower, &upper], &root, kind, None);
        assert_eq!(found.is_ok(), limit == 1, "{found:?}");
        let found = verified(&[&leaf, &again, &lower, &upper], &root, kind, None);
        assert_eq!(found.is_ok(), limit == 1, "{found:?}");
    }
}

#[test]
fn keys_and_signatures_unknown_to_wtls_are_refused() {
    let root_key = generate(Kind::Rsa(1024), 900);
    let ed25519 = PKey::generate_ed25519().unwrap();
    let p384 = EcGroup::from_curve_name(Nid::SECP384R1).unwrap();
    let p384 = PKey::from_ec_key(EcKey::generate(&p384).unwrap()).unwrap();
    let said = |key: &PKey<Private>, signer: &PKey<Private>, digest| {
        let spec = Spec { digest, ..Spec::new("odd", key, ("root", signer)) };
        read(&spec.make()).unwrap_err().to_string()
    };
    let sha256 = MessageDigest::sha256();
    let text = said(&ed25519, &root_key, sha256);
    assert_eq!(text, "the X.509 certificate of CN=odd,O=Test has a key of the unknown kind 1.3.101.112");
    let text = said(&p384, &root_key, sha256);
    assert!(text.ends_with("on a curve that WTLS does not have (1.3.132.0.34)"), "{text}");
    let text = said(&root_key, &ed25519, MessageDigest::null());
    assert!(text.contains("is signed with Ed25519; accepted: RSA"), "{text}");
    let text = said(&root_key, &root_key, MessageDigest::md5());
    assert!(text.contains("is signed with RSA with MD5"), "{text}");
}

#[test]
fn any_changed_byte_is_refused() {
    for kind in [Kind::Rsa(1024), Kind::Ec(Curve::Sect163k1)] {
        let family = Family::new("gateway", kind, MessageDigest::sha256());
        let anchor = [family.anchor()];
        let links = [&family.leaf, &family.intermediate].map(|one| one.to_der().unwrap());
        for (place, honest) in links.iter().enumerate() {
            for at in 0..honest.len() {
                let mut ders = links.clone();
                ders[place][at] ^= 0x04;
                let chain = ders.iter().map(|der| X509Certificate::from_der(der).map(Into::into));
                let Ok(chain) = chain.collect::<Result<Vec<ChainCertificate>, _>>() else { continue };
                let family = if matches!(kind, Kind::Rsa(_)) {
                    KeyExchangeFamily::Rsa
                } else {
                    KeyExchangeFamily::EcdhEcdsa
                };
                let policy = ChainPolicy {
                    holder: Holder::Server,
                    family,
                    now_unix_s: NOW_UNIX_S,
                    private_curves: false,
                    name: None,
                };
                let found = verify_chain(&*PROVIDER, &chain, &anchor, &policy);
                assert!(found.is_err(), "byte {at} of certificate {place}, {kind:?}");
            }
        }
    }
}

#[test]
fn truncated_certificate_is_malformed() {
    let whole =
        Family::new("gateway", Kind::Ec(Curve::Secp160r1), MessageDigest::sha256()).leaf.to_der().unwrap();
    for length in 0..whole.len() {
        let error = X509Certificate::from_der(&whole[..length]).unwrap_err();
        assert!(matches!(error, X509Error::Malformed(_)), "{error}");
    }
    let longer = [&whole[..], &[0]].concat();
    assert!(X509Certificate::from_der(&longer).is_err());
}
