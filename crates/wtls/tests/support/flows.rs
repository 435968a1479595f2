//! Handshakes of every kind.

use super::*;

/// A kind of handshake.
#[derive(Clone)]
pub struct Flow {
    pub name: &'static str,
    pub client: Arc<ClientConfig<OpenSsl>>,
    pub server: Arc<ServerConfig<OpenSsl>>,
    pub session: Option<Session>,
    /// Whether a client needs no secret.
    pub open_to_all: bool,
}

/// Every kind of handshake, with every kind of key exchange.
pub static FLOWS: LazyLock<Vec<Flow>> = LazyLock::new(|| {
    let ec = [Kind::Ec(Curve::Wtls8), Kind::Ec(Curve::Secp160r1)];
    let rsa = [Kind::Rsa(512)];
    let flow = |name, (client, mut server): (ClientConfig<_>, ServerConfig<_>)| {
        let open_to_all = server.client_authentication != ClientAuthentication::Required;
        server.sessions = Arc::new(MemorySessions::new(1_000_000));
        let (client, server) = (Arc::new(client), Arc::new(server));
        Flow { name, client, server, session: None, open_to_all }
    };
    let none = ClientAuthentication::None;
    let (requested, required) = (ClientAuthentication::Requested, ClientAuthentication::Required);
    let curve = ParameterSpecifier::of_curve(Curve::Wtls8, false);
    let group = ParameterSpecifier::Index(1);
    let none_given = ParameterSpecifier::NONE;
    let mut flows = vec![
        flow("ecdh_anon", anonymous_pair(offer(KeyExchangeSuite::EcdhAnon, curve))),
        flow("dh_anon", anonymous_pair(offer(KeyExchangeSuite::DhAnon, group))),
        flow("rsa_anon", anonymous_pair(offer(KeyExchangeSuite::RsaAnon512, none_given))),
        flow("ecdh_ecdsa/server", certified_pair(&ec, none, false, false)),
        flow("ecdh_ecdsa/requested", certified_pair(&ec, requested, false, false)),
        flow("ecdh_ecdsa/mutual", certified_pair(&ec, required, true, false)),
        flow("rsa/server", certified_pair(&rsa, none, false, false)),
        flow("rsa/mutual", certified_pair(&rsa, required, true, false)),
    ];
    let (mut client, mut server) = certified_pair(&ec, required, true, false);
    let chain = Chain::new("client", &ec, 2, false);
    client.key_exchanges[0].identifier = Identifier::KeyHash(chain.leaf_hash());
    let known = KnownClient::new(&*PROVIDER, chain.certificates[0].clone(), false).unwrap();
    server.known_clients.push(known);
    flows.push(flow("optimised", (client, server)));
    let identifier = Identifier::Binary(b"subscriber".to_vec());
    let named =
        KeyExchangeId::new(KeyExchangeSuite::SharedSecret, ParameterSpecifier::NONE, identifier.clone());
    let (mut client, mut server) = anonymous_pair(named);
    let secret = || SharedSecret { identifier: identifier.clone(), secret: vec![7; 16].into() };
    client.shared_secrets.push(secret());
    server.shared_secrets.push(secret());
    // A client must know the secret.
    let mut shared = flow("shared_secret", (client, server));
    shared.open_to_all = false;
    flows.push(shared);
    let mut resumed = flows[5].clone();
    let mut first = Pair::new(&resumed.client, &resumed.server, None, 77);
    first.run();
    (resumed.name, resumed.session) = ("resumed", first.client.session().cloned());
    assert!(resumed.session.is_some());
    // A session that the server no longer stores.
    let mut forgotten = flows[5].clone();
    let mut other = Pair::new(&resumed.client, &resumed.server, None, 78);
    other.run();
    (forgotten.name, forgotten.session) = ("forgotten", other.client.session().cloned());
    forgotten.server.sessions.remove(&forgotten.session.as_ref().unwrap().id);
    flows.push(resumed);
    flows.push(forgotten);
    flows
});
