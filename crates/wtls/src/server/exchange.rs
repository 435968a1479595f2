//! The client's part of a full handshake.

use super::ServerState;
use super::finish::{ExpectChangeCipherSpec, Order};
use crate::certificate::{CertifiedKey, ChainCertificate, ChainPolicy, Holder, verify_chain};
use crate::codec::Codec;
use crate::config::{ClientAuthentication, ServerConfig};
use crate::connection::Input;
use crate::context::Context;
use crate::crypto::{Group, Key, KeyKind, Provider, PublicKeyRef, RSA_SECRET_BYTES};
use crate::curve::Curve;
use crate::dh::DhGroup;
use crate::error::Error;
use crate::event::HandshakeMode;
use crate::key_schedule::PreMasterSecret;
use crate::link::Transcript;
use crate::message::{CertificateList, CertificateVerify, ClientKeyExchange, Frame};
use crate::numbers::{HandshakeType, KeyExchangeFamily};
use crate::parameters::EncodedRsaKey;
use crate::secured::{Negotiated, Secured};
use std::sync::Arc;

/// The key that our part of the exchange is done with. Keys that live in the configuration are
/// named by their index.
pub(super) enum ServerPrivate<P: Provider> {
    Certified { identity: usize },
    Temporary { index: usize },
    Dh { key: P::PrivateKey, group: Arc<DhGroup> },
    Ec { key: P::PrivateKey, curve: Curve },
}

impl<P: Provider> ServerPrivate<P> {
    pub fn kind(&self, config: &ServerConfig<P>) -> KeyKind {
        match self {
            Self::Certified { identity } => config.identities[*identity].kind(),
            Self::Temporary { index } => config.temporary_rsa_keys[*index].key.kind(),
            Self::Dh { group, .. } => Group::Dh(group).kind(),
            Self::Ec { curve, .. } => KeyKind::Ec(*curve),
        }
    }

    fn key<'a>(&'a self, config: &'a ServerConfig<P>) -> &'a P::PrivateKey {
        match self {
            Self::Certified { identity } => &config.identities[*identity].key,
            Self::Temporary { index } => &config.temporary_rsa_keys[*index].key,
            Self::Dh { key, .. } | Self::Ec { key, .. } => key,
        }
    }

    /// The RSA key as it was sent.
    fn encoded_rsa<'a>(&self, config: &'a ServerConfig<P>) -> Option<&'a EncodedRsaKey> {
        match self {
            Self::Certified { identity } => match &config.identities[*identity].certified_key {
                CertifiedKey::Rsa(encoded) => Some(encoded),
                _ => None,
            },
            Self::Temporary { index } => Some(&config.temporary_rsa_keys[*index].public),
            _ => None,
        }
    }
}

/// A client that showed a certificate.
pub(super) struct ClientIdentity<P: Provider> {
    chain: Vec<ChainCertificate>,
    key: P::PublicKey,
}

/// Our flight is on its way and the client was asked who it is.
pub(crate) struct ExpectCertificate<P: Provider>(pub(super) ExpectKeyExchange<P>);

/// The client's part of the exchange is due.
pub(crate) struct ExpectKeyExchange<P: Provider> {
    pub(super) config: Arc<ServerConfig<P>>,
    pub(super) client_version: u8,
    pub(super) negotiated: Negotiated,
    pub(super) transcript: Transcript,
    pub(super) private: ServerPrivate<P>,
    pub(super) client: Option<ClientIdentity<P>>,
}

/// The exchange is complete; the client has yet to prove that its certificate is its own.
pub(crate) struct ExpectCertificateVerify<P: Provider> {
    config: Arc<ServerConfig<P>>,
    secured: Secured,
    transcript: Transcript,
    key: P::PublicKey,
}

fn expect<'a>(input: &Input<'a>, wanted: HandshakeType) -> Result<Frame<'a>, Error> {
    match input {
        Input::Handshake(frame) if frame.handshake_type == wanted => Ok(*frame),
        other => Err(other.unexpected(wanted.name())),
    }
}

impl<P: Provider> ExpectCertificate<P> {
    pub fn transcript_bytes(&self) -> usize {
        self.0.transcript_bytes()
    }

    pub fn handle(self, input: &Input<'_>, cx: &Context<'_, P>) -> Result<ServerState<P>, Error> {
        let frame = expect(input, HandshakeType::Certificate)?;
        let Self(mut next) = self;
        next.transcript.push(frame.raw);
        let list = CertificateList::from_bytes("Certificate", frame.body)?;
        if list.0.is_empty() {
            return match next.config.client_authentication {
                ClientAuthentication::Required => Err(Error::NoClientCertificate),
                _ => Ok(ServerState::ExpectKeyExchange(Box::new(next))),
            };
        }
        let chain = list.into_chain()?;
        let settings = &next.config.settings;
        let policy = ChainPolicy {
            holder: Holder::Client,
            family: next.negotiated.key_exchange.family(),
            now_unix_s: cx.now.unix_s,
            private_curves: settings.private_curves,
            require_authority_mark: settings.require_authority_mark,
            name: None,
        };
        let key = verify_chain(cx.provider, &chain, &next.config.anchors, &policy)?.key;
        let own = next.private.kind(&next.config);
        if own == key.kind() && matches!(own, KeyKind::Ec(_)) {
            // Both certified keys are on one curve and make the secret: there is nothing to follow.
            let secret = cx.provider.derive(next.private.key(&next.config), &key)?;
            let pre_master = PreMasterSecret::agreed(secret);
            let mut secured = next.negotiated.secure(cx, pre_master, HandshakeMode::Full);
            secured.exchanged = Some(own);
            secured.peer_certificates = chain;
            return Ok(ExpectChangeCipherSpec {
                config: next.config,
                secured,
                transcript: next.transcript,
                order: Order::ClientFirst,
            }
            .into());
        }
        if matches!(own, KeyKind::Ec(_)) {
            // An ECDH key on another curve cannot sign, so it proves nothing.
            return Err(Error::NotOffered { what: "curve" });
        }
        next.client = Some(ClientIdentity { chain, key });
        Ok(ServerState::ExpectKeyExchange(Box::new(next)))
    }
}

impl<P: Provider> ExpectKeyExchange<P> {
    pub fn transcript_bytes(&self) -> usize {
        self.transcript.bytes().len()
    }

    pub fn handle(self, input: &Input<'_>, cx: &mut Context<'_, P>) -> Result<ServerState<P>, Error> {
        let frame = expect(input, HandshakeType::ClientKeyExchange)?;
        let Self { config, client_version, negotiated, mut transcript, private, client } = self;
        transcript.push(frame.raw);
        let family = negotiated.key_exchange.family();
        let own = private.kind(&config);
        let modulus_bytes = own.size_bits().div_ceil(8) as usize;
        let message = ClientKeyExchange::decode(family, modulus_bytes, frame.body)?;
        let key = private.key(&config);
        let pre_master = match (&message, own) {
            (ClientKeyExchange::Rsa(ciphertext), KeyKind::Rsa { .. }) => {
                let mut fallback = [0; RSA_SECRET_BYTES];
                cx.random.fill(&mut fallback);
                let provider = cx.provider;
                let secret = provider.rsa_decrypt(key, ciphertext, client_version, &fallback)?;
                let encoded = private.encoded_rsa(&config);
                let encoded = encoded.ok_or(Error::Configuration { what: "an RSA key" })?;
                PreMasterSecret::rsa(&secret, encoded)
            }
            (ClientKeyExchange::Dh(value), _) => {
                let ServerPrivate::Dh { group, .. } = &private else {
                    return Err(Error::Configuration { what: "a DH key" });
                };
                let peer = cx.provider.import(PublicKeyRef::Dh { group, value })?;
                PreMasterSecret::agreed(cx.provider.derive(key, &peer)?)
            }
            (ClientKeyExchange::Ec(point), KeyKind::Ec(curve)) => {
                let peer = cx.provider.import(PublicKeyRef::Ec { curve, point })?;
                PreMasterSecret::agreed(cx.provider.derive(key, &peer)?)
            }
            _ => return Err(Error::Configuration { what: "a key of the suite's kind" }),
        };
        let mut secured = negotiated.secure(cx, pre_master, HandshakeMode::Full);
        secured.exchanged = Some(own);
        match client {
            Some(ClientIdentity { chain, key }) if family == KeyExchangeFamily::Rsa => {
                secured.peer_certificates = chain;
                let state = ExpectCertificateVerify { config, secured, transcript, key };
                Ok(ServerState::ExpectCertificateVerify(Box::new(state)))
            }
            _ => {
                let order = Order::ClientFirst;
                Ok(ExpectChangeCipherSpec { config, secured, transcript, order }.into())
            }
        }
    }
}

impl<P: Provider> ExpectCertificateVerify<P> {
    pub fn transcript_bytes(&self) -> usize {
        self.transcript.bytes().len()
    }

    pub fn handle(self, input: &Input<'_>, cx: &Context<'_, P>) -> Result<ServerState<P>, Error> {
        let frame = expect(input, HandshakeType::CertificateVerify)?;
        let Self { config, secured, mut transcript, key } = self;
        let message = CertificateVerify::from_bytes("CertificateVerify", frame.body)?;
        let digest = cx.provider.digest(secured.negotiated.hash(), &[transcript.bytes()]);
        cx.provider.rsa_verify(&key, &digest, &message.signature)?;
        transcript.push(frame.raw);
        let order = Order::ClientFirst;
        Ok(ExpectChangeCipherSpec { config, secured, transcript, order }.into())
    }
}
