//! The key exchange of a full or optimised handshake.

use super::candidate::Candidate;
use crate::certificate::{
    CertificateError, CertifiedKey, ChainCertificate, ChainPolicy, Holder, PeerIdentity, verify_chain,
};
use crate::codec::{Codec, Reader};
use crate::config::{ClientConfig, Identity};
use crate::context::Context;
use crate::crypto::{Group, Key, KeyKind, Provider, PublicKeyRef, RSA_SECRET_BYTES};
use crate::curve::Curve;
use crate::dh::DhGroup;
use crate::error::Error;
use crate::event::HandshakeMode;
use crate::flight::{FlightReader, FlightWriter, Outbound, Place, Transcript};
use crate::key_schedule::{Direction, PreMasterSecret};
use crate::message::{
    CertificateList, CertificateRequest, CertificateVerify, ClientKeyExchange, ServerKey, ServerKeyExchange,
    VERSION,
};
use crate::numbers::{HandshakeType, KeyExchangeFamily, KeyExchangeSuite, PublicKeyType};
use crate::observer::Message;
use crate::parameters::{EncodedRsaKey, Identifier, KeyExchangeId, ParameterSpecifier};
use crate::secured::{Negotiated, Secured};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The state of an exchange after the server's key.
pub(super) struct Exchange<'a, P: Provider> {
    config: &'a ClientConfig<P>,
    offer: KeyExchangeId,
    negotiated: Negotiated,
    server: ServerPublic<P>,
    /// The identity of the server, if its key is certified.
    peer: Option<PeerIdentity>,
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

fn check_size(suite: KeyExchangeSuite, kind: KeyKind) -> Result<(), Error> {
    let bits = kind.size_bits();
    match suite.limit_bits() {
        Some(limit) if bits > limit => Err(Error::KeyTooLarge { bits, suite }),
        _ => Ok(()),
    }
}

impl<'a, P: Provider> Exchange<'a, P> {
    /// Reads the server's certificate.
    pub fn certified(
        cx: &mut Context<'_, P>,
        reader: &mut FlightReader<'_>,
        config: &'a ClientConfig<P>,
        offer: KeyExchangeId,
        negotiated: Negotiated,
        transcript: &mut Transcript,
    ) -> Result<Self, Error> {
        reader.message(cx, transcript, HandshakeType::Certificate, |cx, _, frame| {
            let list = CertificateList::from_bytes("Certificate", frame.body)?;
            let chain = list.into_chain()?;
            let (server, peer) = verify_server(cx, config, &offer, &negotiated, chain)?;
            Ok(Self { config, offer, negotiated, server, peer: Some(peer) })
        })
    }

    /// Reads the server's temporary key.
    pub fn anonymous(
        cx: &mut Context<'_, P>,
        reader: &mut FlightReader<'_>,
        config: &'a ClientConfig<P>,
        offer: KeyExchangeId,
        negotiated: Negotiated,
        transcript: &mut Transcript,
    ) -> Result<Self, Error> {
        reader.message(cx, transcript, HandshakeType::ServerKeyExchange, |cx, _, frame| {
            let suite = negotiated.key_exchange;
            let message = ServerKeyExchange::decode(suite.family(), frame.body)?;
            // Parameters other than those of the chosen offer are accepted if the offer left the choice to the server,
            // or if another offer of the same suite names them.
            let offered = |parameters: &ParameterSpecifier| {
                let mut same_suite = config.key_exchanges.iter().filter(|other| other.suite == offer.suite);
                same_suite.any(|other| other.parameters == *parameters)
            };
            let parameters = match message.parameters.is_none() {
                true => &offer.parameters,
                false if offer.parameters.is_none() || offered(&message.parameters) => &message.parameters,
                false => return Err(Error::NotOffered { what: "set of parameters" }),
            };
            let server = import_server_key(config, suite, parameters, message.key, cx)?;
            Ok(Self { config, offer, negotiated, server, peer: None })
        })
    }

    /// Whether the server's key is certified.
    pub fn is_certified(&self) -> bool {
        self.peer.is_some()
    }

    /// Completes an optimised handshake, in which the server uses its stored copy of the client's certificate.
    pub fn optimised(&self, cx: &Context<'_, P>) -> Result<Secured, Error> {
        let unasked = Error::UnexpectedMessage {
            expected: "CertificateRequest or ServerHelloDone",
            received: Message::ChangeCipherSpec,
        };
        let named = self.offer.identifier != Identifier::Null;
        let identity = self.config.identity.as_ref().filter(|_| named).ok_or_else(|| unasked.clone())?;
        let pre_master = self.agree_with_identity(cx, identity)?.ok_or(unasked)?;
        Ok(self.secure(cx, pre_master, HandshakeMode::Optimised))
    }

    fn secure(&self, cx: &Context<'_, P>, pre_master: PreMasterSecret, mode: HandshakeMode) -> Secured {
        let mut secured = self.negotiated.clone().secure(cx, pre_master, mode);
        secured.exchanged = Some(self.server.kind());
        secured.peer = self.peer.clone();
        secured
    }

    /// Computes the secret with the key of the client's certificate, if it is on the server's curve.
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

    /// The client's identity, if it fits the key exchange and the server trusts its issuer.
    fn wanted_identity(&self, request: &CertificateRequest) -> Option<&'a Identity<P>> {
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

    /// Reads the rest of the server's flight and generates the client's: Certificate, ClientKeyExchange and
    /// CertificateVerify as required, then ChangeCipherSpec and Finished.
    pub fn answer(
        self,
        cx: &mut Context<'_, P>,
        reader: &mut FlightReader<'_>,
        outbound: Outbound,
        mut transcript: Transcript,
    ) -> Result<Candidate, Error> {
        let mut request = None;
        if reader.peek_message() == Some(Message::Handshake(HandshakeType::CertificateRequest)) {
            let kind = HandshakeType::CertificateRequest;
            request = Some(reader.message(cx, &mut transcript, kind, |_, _, frame| {
                Ok(CertificateRequest::from_bytes("CertificateRequest", frame.body)?)
            })?);
        }
        reader.message(cx, &mut transcript, HandshakeType::ServerHelloDone, |_, _, frame| {
            Ok(Reader::new(frame.body).finish("ServerHelloDone")?)
        })?;

        let mut flight = FlightWriter::new(outbound);
        let identity = request.as_ref().and_then(|request| self.wanted_identity(request));
        let agrees = self.negotiated.key_exchange.family() == KeyExchangeFamily::EcdhEcdsa;
        let mut agreed = None;
        if request.is_some() {
            let kind = HandshakeType::Certificate;
            agreed = flight.message(cx, &mut transcript, kind, Place::Middle, |cx, _, to| {
                let entries = identity.map_or(&[][..], |identity| &identity.entries);
                CertificateList::encode_entries(entries, to)?;
                // The certified keys of both sides yield the secret: no ClientKeyExchange follows.
                let pre_master = match identity.filter(|_| agrees) {
                    Some(identity) => self.agree_with_identity(cx, identity)?,
                    None => None,
                };
                Ok(pre_master.map(|pre_master| self.secure(cx, pre_master, HandshakeMode::Full)))
            })?;
        }
        let secured = match agreed {
            Some(secured) => secured,
            None => {
                let kind = HandshakeType::ClientKeyExchange;
                flight.message(cx, &mut transcript, kind, Place::Middle, |cx, _, to| {
                    let (message, pre_master) = self.key_exchange(cx)?;
                    message.encode(to)?;
                    Ok(self.secure(cx, pre_master, HandshakeMode::Full))
                })?
            }
        };
        if let Some(identity) = identity.filter(|_| !agrees) {
            let kind = HandshakeType::CertificateVerify;
            let hash = self.negotiated.hash();
            flight.message(cx, &mut transcript, kind, Place::Middle, |cx, transcript, to| {
                let digest = cx.provider.digest(hash, &[transcript.bytes()]);
                let signature = cx.provider.rsa_sign(&identity.key, &digest)?;
                Ok(CertificateVerify { signature }.encode(to)?)
            })?;
        }
        let client = Direction::ClientToServer;
        secured.write_finished(cx, &mut flight, &mut transcript, client, Place::Last)?;
        let (flight, outbound) = flight.finish();
        Ok(Candidate { request: Vec::new(), flight, secured, transcript, outbound })
    }

    /// The client's part of the exchange, and the resulting secret.
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

fn verify_server<P: Provider>(
    cx: &Context<'_, P>,
    config: &ClientConfig<P>,
    offer: &KeyExchangeId,
    negotiated: &Negotiated,
    chain: Vec<ChainCertificate>,
) -> Result<(ServerPublic<P>, PeerIdentity), Error> {
    let private_curves = config.settings.private_curves;
    let policy = ChainPolicy {
        holder: Holder::Server,
        family: negotiated.key_exchange.family(),
        now_unix_s: cx.now.unix_s,
        private_curves,
        name: config.server_name.as_deref(),
    };
    let leaf = chain.first().ok_or(CertificateError::Missing)?;
    let public_key = leaf.public_key(true);
    // Before expensive operations, check the size, and that the curve is the offered one.
    let kind = public_key.kind(private_curves)?;
    check_size(negotiated.key_exchange, kind)?;
    if let (KeyKind::Ec(curve), false) = (kind, offer.parameters.is_none())
        && offer.parameters.curve(private_curves)? != curve
    {
        return Err(Error::NotOffered { what: "curve" });
    }
    let verified = verify_chain(cx.provider, &chain, &config.anchors, &policy)?;
    let key = verified.key;
    let server = match (&*public_key, kind) {
        (CertifiedKey::Rsa(encoded), _) => ServerPublic::Rsa { key, encoded: encoded.clone() },
        (_, KeyKind::Ec(curve)) => ServerPublic::Ec { key, curve },
        _ => return Err(Error::NotOffered { what: "kind of key" }),
    };
    drop(public_key);
    Ok((server, PeerIdentity::new(chain, verified.validity_unix_s)))
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

fn leaf_key_type(family: KeyExchangeFamily) -> PublicKeyType {
    match family {
        KeyExchangeFamily::EcdhEcdsa => PublicKeyType::Ecdh,
        _ => PublicKeyType::Rsa,
    }
}
