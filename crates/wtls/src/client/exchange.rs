//! The key exchange of a full or optimised handshake.

use super::ClientState;
use super::finish::{ExpectChangeCipherSpec, Order};
use super::hello::leaf_key_type;
use crate::certificate::{
    CertificateError, CertifiedKey, ChainCertificate, ChainPolicy, Holder, verify_chain,
};
use crate::codec::Codec;
use crate::config::{ClientConfig, Identity};
use crate::connection::Input;
use crate::context::Context;
use crate::crypto::{Group, Key, KeyKind, Provider, PublicKeyRef, RSA_SECRET_BYTES};
use crate::curve::Curve;
use crate::dh::DhGroup;
use crate::error::Error;
use crate::event::HandshakeMode;
use crate::key_schedule::{Direction, PreMasterSecret};
use crate::link::{Link, Place, Transcript};
use crate::message::{
    CertificateList, CertificateRequest, CertificateVerify, ClientKeyExchange, Frame, ServerKey,
    ServerKeyExchange, VERSION,
};
use crate::numbers::{HandshakeType, KeyExchangeFamily, KeyExchangeSuite};
use crate::parameters::{EncodedRsaKey, KeyExchangeId, ParameterSpecifier};
use crate::secured::{Negotiated, Secured};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The server will show who it is.
pub(crate) struct ExpectCertificate<P: Provider> {
    pub config: Arc<ClientConfig<P>>,
    pub offer: KeyExchangeId,
    pub negotiated: Negotiated,
    pub transcript: Transcript,
}

/// The server will send a temporary key.
pub(crate) struct ExpectServerKeyExchange<P: Provider> {
    pub config: Arc<ClientConfig<P>>,
    pub offer: KeyExchangeId,
    pub negotiated: Negotiated,
    pub transcript: Transcript,
}

/// The server's key is known.
pub(crate) struct ExpectRequestOrDone<P: Provider> {
    exchange: Exchange<P>,
    request: Option<CertificateRequest>,
}

/// The server's flight is complete and ours is due.
pub(crate) struct Answer<P: Provider> {
    exchange: Exchange<P>,
    request: Option<CertificateRequest>,
}

/// What an exchange works with.
struct Exchange<P: Provider> {
    config: Arc<ClientConfig<P>>,
    offer: KeyExchangeId,
    negotiated: Negotiated,
    transcript: Transcript,
    server: ServerPublic<P>,
    peer_certificates: Vec<ChainCertificate>,
}

/// The server's key, in the form that the exchange needs.
enum ServerPublic<P: Provider> {
    Rsa { key: P::PublicKey, encoded: EncodedRsaKey },
    Dh { key: P::PublicKey, group: Arc<DhGroup> },
    Ec { key: P::PublicKey, curve: Curve },
}

impl<P: Provider> ServerPublic<P> {
    fn kind(&self) -> KeyKind {
        match self {
            Self::Rsa { key, .. } | Self::Dh { key, .. } | Self::Ec { key, .. } => key.kind(),
        }
    }
}

/// The message, if it is the one that is wanted.
fn expect<'a>(input: &Input<'a>, wanted: HandshakeType) -> Result<Frame<'a>, Error> {
    match input {
        Input::Handshake(frame) if frame.handshake_type == wanted => Ok(*frame),
        other => Err(other.unexpected(wanted.name())),
    }
}

fn check_size(suite: KeyExchangeSuite, kind: KeyKind) -> Result<(), Error> {
    let bits = kind.size_bits();
    match suite.limit_bits() {
        Some(limit) if bits > limit => Err(Error::KeyTooLarge { bits, suite }),
        _ => Ok(()),
    }
}

impl<P: Provider> ExpectCertificate<P> {
    pub fn handle(self, input: &Input<'_>, cx: &Context<'_, P>) -> Result<ClientState<P>, Error> {
        let frame = expect(input, HandshakeType::Certificate)?;
        let Self { config, offer, negotiated, mut transcript } = self;
        transcript.push(frame.raw);
        let list = CertificateList::from_bytes("Certificate", frame.body)?;
        let chain = list.into_chain()?;
        let private_curves = config.settings.private_curves;
        let family = negotiated.key_exchange.family();
        let policy = ChainPolicy {
            holder: Holder::Server,
            family,
            now_unix_s: cx.now.unix_s,
            private_curves,
            require_authority_mark: config.settings.require_authority_mark,
            name: config.server_name.as_deref(),
        };
        let leaf = chain.first().ok_or(CertificateError::Missing)?;
        let public_key = leaf.public_key(true).into_owned();
        // Before the expensive part: the size, and that the curve is the one that was offered.
        let kind = public_key.kind(private_curves)?;
        check_size(negotiated.key_exchange, kind)?;
        if let (KeyKind::Ec(curve), false) = (kind, offer.parameters.is_none())
            && offer.parameters.curve(private_curves)? != curve
        {
            return Err(Error::NotOffered { what: "curve" });
        }
        let key = verify_chain(cx.provider, &chain, &config.anchors, &policy)?.key;
        let server = match (public_key, kind) {
            (CertifiedKey::Rsa(encoded), _) => ServerPublic::Rsa { key, encoded },
            (_, KeyKind::Ec(curve)) => ServerPublic::Ec { key, curve },
            _ => return Err(Error::NotOffered { what: "kind of key" }),
        };
        let exchange = Exchange { config, offer, negotiated, transcript, server, peer_certificates: chain };
        let state = ExpectRequestOrDone { exchange, request: None };
        Ok(ClientState::ExpectRequestOrDone(Box::new(state)))
    }
}

impl<P: Provider> ExpectServerKeyExchange<P> {
    pub fn handle(self, input: &Input<'_>, cx: &Context<'_, P>) -> Result<ClientState<P>, Error> {
        let frame = expect(input, HandshakeType::ServerKeyExchange)?;
        let Self { config, offer, negotiated, mut transcript } = self;
        transcript.push(frame.raw);
        let suite = negotiated.key_exchange;
        let message = ServerKeyExchange::decode(suite.family(), frame.body)?;
        // Other parameters than those of the chosen offer are taken where we left the choice to the
        // server, or named them in another offer of the same suite.
        let offered = |parameters: &ParameterSpecifier| {
            let mut same_suite = config.key_exchanges.iter().filter(|other| other.suite == offer.suite);
            same_suite.any(|other| other.parameters == *parameters)
        };
        let parameters = match message.parameters.is_none() {
            true => &offer.parameters,
            false if offer.parameters.is_none() || offered(&message.parameters) => &message.parameters,
            false => return Err(Error::NotOffered { what: "set of parameters" }),
        };
        let server = import_server_key(&config, suite, parameters, message.key, cx)?;
        let peer_certificates = Vec::new();
        let exchange = Exchange { config, offer, negotiated, transcript, server, peer_certificates };
        let state = ExpectRequestOrDone { exchange, request: None };
        Ok(ClientState::ExpectRequestOrDone(Box::new(state)))
    }
}

fn import_server_key<P: Provider>(
    config: &ClientConfig<P>,
    suite: KeyExchangeSuite,
    parameters: &ParameterSpecifier,
    server_key: ServerKey,
    cx: &Context<'_, P>,
) -> Result<ServerPublic<P>, Error> {
    let server = match server_key {
        ServerKey::Rsa(encoded) => {
            let (exponent, modulus) = encoded.parts()?;
            let key = cx.provider.import(PublicKeyRef::Rsa { exponent, modulus })?;
            ServerPublic::Rsa { key, encoded }
        }
        ServerKey::Dh(value) => {
            let group = parameters.group()?;
            check_size(suite, Group::Dh(&group).kind())?;
            let key = cx.provider.import(PublicKeyRef::Dh { group: &group, value: &value })?;
            ServerPublic::Dh { key, group }
        }
        ServerKey::Ec(point) => {
            let curve = parameters.curve(config.settings.private_curves)?;
            check_size(suite, KeyKind::Ec(curve))?;
            let key = cx.provider.import(PublicKeyRef::Ec { curve, point: &point })?;
            ServerPublic::Ec { key, curve }
        }
    };
    check_size(suite, server.kind())?;
    Ok(server)
}

impl<P: Provider> ExpectRequestOrDone<P> {
    pub fn handle(
        mut self,
        input: Input<'_>,
        link: &mut Link,
        cx: &mut Context<'_, P>,
    ) -> Result<ClientState<P>, Error> {
        const EXPECTED: &str = "CertificateRequest or ServerHelloDone";
        let frame = match input {
            Input::Handshake(frame) => frame,
            Input::ChangeCipherSpec(_) => return self.optimised(input, link, cx),
        };
        match frame.handshake_type {
            HandshakeType::CertificateRequest if self.request.is_none() => {
                let request = CertificateRequest::from_bytes("CertificateRequest", frame.body)?;
                self.exchange.transcript.push(frame.raw);
                self.request = Some(request);
                Ok(ClientState::ExpectRequestOrDone(Box::new(self)))
            }
            HandshakeType::ServerHelloDone => {
                crate::codec::Reader::new(frame.body).finish("ServerHelloDone")?;
                self.exchange.transcript.push(frame.raw);
                let Self { exchange, request } = self;
                Ok(ClientState::Answer(Box::new(Answer { exchange, request })))
            }
            _ => Err(input.unexpected(EXPECTED)),
        }
    }

    /// The server has our certificate already and goes ahead.
    fn optimised(
        self,
        input: Input<'_>,
        link: &mut Link,
        cx: &mut Context<'_, P>,
    ) -> Result<ClientState<P>, Error> {
        let named = self.exchange.offer.identifier != crate::parameters::Identifier::Null;
        let identity = self.exchange.config.identity.as_ref();
        let (Some(identity), true, None) = (identity, named, &self.request) else {
            return Err(input.unexpected("CertificateRequest or ServerHelloDone"));
        };
        let Some(pre_master) = self.exchange.agree_with_identity(cx, identity)? else {
            return Err(input.unexpected("CertificateRequest or ServerHelloDone"));
        };
        let (secured, transcript) = self.exchange.complete(cx, pre_master, HandshakeMode::Optimised);
        ExpectChangeCipherSpec::new(secured, transcript, Order::ServerFirst).handle(input, link, cx)
    }
}

impl<P: Provider> Exchange<P> {
    /// Agrees by the key of our certificate, if it is on the server's curve.
    fn agree_with_identity(
        &self,
        cx: &Context<'_, P>,
        identity: &Identity<P>,
    ) -> Result<Option<PreMasterSecret>, Error> {
        match &self.server {
            ServerPublic::Ec { key, curve } if identity.kind() == KeyKind::Ec(*curve) => {
                Ok(Some(PreMasterSecret::agreed(cx.provider.derive(&identity.key, key)?)))
            }
            _ => Ok(None),
        }
    }

    fn complete(
        self,
        cx: &Context<'_, P>,
        pre_master: PreMasterSecret,
        mode: HandshakeMode,
    ) -> (Secured, Transcript) {
        let mut secured = self.negotiated.secure(cx, pre_master, mode);
        secured.exchanged = Some(self.server.kind());
        secured.peer_certificates = self.peer_certificates;
        (secured, self.transcript)
    }

    /// Our identity, if the server asks for it and it is of use.
    fn wanted_identity(&self, request: Option<&CertificateRequest>) -> Option<&Identity<P>> {
        let request = request?;
        let family = self.negotiated.key_exchange.family();
        self.config.identity.as_ref().filter(|identity| {
            let fits = match (&self.server, identity.kind()) {
                (ServerPublic::Ec { curve, .. }, KeyKind::Ec(own)) => *curve == own,
                (ServerPublic::Rsa { .. }, KeyKind::Rsa { .. }) => true,
                _ => false,
            };
            let key_type = identity.certified_key.key_type();
            fits && family.is_certified()
                && key_type == leaf_key_type(family)
                && identity.is_trusted_by(&request.trusted_authorities)
        })
    }
}

impl<P: Provider> Answer<P> {
    /// Certificate, ClientKeyExchange, CertificateVerify, as far as they are due, then
    /// ChangeCipherSpec and Finished.
    pub fn respond(self, link: &mut Link, cx: &mut Context<'_, P>) -> Result<ClientState<P>, Error> {
        let Self { mut exchange, request } = self;
        let mut transcript = core::mem::take(&mut exchange.transcript);
        let identity = exchange.wanted_identity(request.as_ref());
        let is_ec = exchange.negotiated.key_exchange.family() == KeyExchangeFamily::EcdhEcdsa;
        let mode = HandshakeMode::Full;

        let mut secured = None;
        if request.is_some() {
            let kind = HandshakeType::Certificate;
            link.generate(cx, &mut transcript, kind, Place::Middle, |cx, _, to| {
                let entries = identity.map(|identity| identity.entries.clone());
                CertificateList(entries.unwrap_or_default()).encode(to)?;
                // The certified keys of both sides make the secret: nothing else is to be sent.
                if let (Some(identity), true) = (identity, is_ec)
                    && let Some(pre_master) = exchange.agree_with_identity(cx, identity)?
                {
                    secured = Some(exchange.negotiated.clone().secure(cx, pre_master, mode));
                }
                Ok(())
            })?;
        }
        let mut secured = match secured {
            Some(secured) => secured,
            None => {
                let mut secured = None;
                let kind = HandshakeType::ClientKeyExchange;
                link.generate(cx, &mut transcript, kind, Place::Middle, |cx, _, to| {
                    let (message, pre_master) = exchange.key_exchange(cx)?;
                    message.encode(to)?;
                    secured = Some(exchange.negotiated.clone().secure(cx, pre_master, mode));
                    Ok(())
                })?;
                secured.ok_or(Error::Configuration { what: "a key exchange" })?
            }
        };
        if let (Some(identity), false) = (identity, is_ec) {
            let kind = HandshakeType::CertificateVerify;
            let hash = exchange.negotiated.hash();
            link.generate(cx, &mut transcript, kind, Place::Middle, |cx, transcript, to| {
                let digest = cx.provider.digest(hash, &[transcript.bytes()]);
                let signature = cx.provider.rsa_sign(&identity.key, &digest)?;
                Ok(CertificateVerify { signature }.encode(to)?)
            })?;
        }
        secured.exchanged = Some(exchange.server.kind());
        secured.peer_certificates = core::mem::take(&mut exchange.peer_certificates);
        secured.finish(link, cx, &mut transcript, Direction::ClientToServer, Place::Last)?;
        link.end_flight();
        Ok(ExpectChangeCipherSpec::new(secured, transcript, Order::ClientFirst).into())
    }
}

impl<P: Provider> Exchange<P> {
    /// Our part of the exchange, and the secret that comes out of it.
    fn key_exchange(&self, cx: &mut Context<'_, P>) -> Result<(ClientKeyExchange, PreMasterSecret), Error> {
        let form = self.negotiated.key_exchange.point_form();
        Ok(match &self.server {
            ServerPublic::Rsa { key, encoded } => {
                let mut secret = Zeroizing::new([0; RSA_SECRET_BYTES]);
                cx.random.fill(&mut secret[1..]);
                secret[0] = VERSION;
                let ciphertext = cx.provider.rsa_encrypt(key, &*secret, cx.random)?;
                (ClientKeyExchange::Rsa(ciphertext), PreMasterSecret::rsa(&secret, encoded))
            }
            ServerPublic::Dh { key, group } => {
                let own = cx.provider.generate(Group::Dh(group), cx.random)?;
                let value = cx.provider.public_value(&own, form)?;
                let secret = cx.provider.derive(&own, key)?;
                (ClientKeyExchange::Dh(value), PreMasterSecret::agreed(secret))
            }
            ServerPublic::Ec { key, curve } => {
                let own = cx.provider.generate(Group::Ec(*curve), cx.random)?;
                let point = cx.provider.public_value(&own, form)?;
                let secret = cx.provider.derive(&own, key)?;
                (ClientKeyExchange::Ec(point), PreMasterSecret::agreed(secret))
            }
        })
    }
}
