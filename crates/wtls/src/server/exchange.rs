//! The client's flight of a full handshake.

use super::finish::{Accepted, Permit, conclude};
use crate::certificate::{CertifiedKey, ChainPolicy, Holder, PeerIdentity, verify_chain};
use crate::codec::Codec;
use crate::config::{ClientAuthentication, ServerConfig};
use crate::connection::Ending;
use crate::context::Context;
use crate::crypto::{Group, Key, KeyKind, Provider, PublicKeyRef, RSA_SECRET_BYTES};
use crate::curve::Curve;
use crate::dh::DhGroup;
use crate::error::Error;
use crate::event::HandshakeMode;
use crate::flight::{FlightReader, FlightWriter, Outbound, Place, Transcript};
use crate::key_schedule::{Direction, PreMasterSecret};
use crate::message::{CertificateList, CertificateVerify, ClientKeyExchange};
use crate::numbers::HandshakeType;
use crate::observer::Message;
use crate::parameters::EncodedRsaKey;
use crate::secured::{Negotiated, Secured, VerifyData};
use std::sync::Arc;

/// The server's private key for the exchange. Keys of the configuration are identified by their index.
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

    /// The server's RSA key as sent.
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

/// How the client authenticates.
enum Claim<P: Provider> {
    None,
    /// By its certified ECDH key, from which the secret was computed.
    Agreed(Box<Secured>),
    /// By a signature with this key, which is still to be read.
    Signer {
        identity: PeerIdentity,
        key: P::PublicKey,
    },
}

/// The state after the server's flight of a full handshake.
pub(super) struct FullHandshake<P: Provider> {
    pub config: Arc<ServerConfig<P>>,
    pub client_version: u8,
    pub negotiated: Negotiated,
    pub transcript: Transcript,
    pub private: ServerPrivate<P>,
    pub asks: bool,
}

impl<P: Provider> FullHandshake<P> {
    /// Whether the client's flight can begin with this message. If not, no public-key operation is spent on it.
    pub fn may_begin_with(&self, message: Option<Message>) -> bool {
        let first = if self.asks { HandshakeType::Certificate } else { HandshakeType::ClientKeyExchange };
        message == Some(Message::Handshake(first))
    }

    /// Reads the client's flight and responds with the server's. The state does not change, because a forged flight may
    /// arrive before the client's. `None` for a flight in `accepted`: a second connection must not use the same keys.
    pub fn receive(
        &self,
        cx: &mut Context<'_, P>,
        reader: &mut FlightReader<'_>,
        request: &[u8],
        outbound: &Outbound,
        accepted: &[VerifyData],
    ) -> Result<Option<Accepted>, Error> {
        let config = &self.config;
        let mut transcript = self.transcript.continued(request.len() + 64);
        let claim = if self.asks { self.certificate(cx, reader, &mut transcript)? } else { Claim::None };
        let secured = match claim {
            Claim::Agreed(secured) => *secured,
            Claim::None => self.key_exchange(cx, reader, &mut transcript)?,
            Claim::Signer { identity, key } => {
                let mut secured = self.key_exchange(cx, reader, &mut transcript)?;
                let kind = HandshakeType::CertificateVerify;
                reader.message(cx, &mut transcript, kind, |cx, transcript, frame| {
                    let message = CertificateVerify::from_bytes("CertificateVerify", frame.body)?;
                    let digest = cx.provider.digest(self.negotiated.hash(), &[transcript.bytes()]);
                    Ok(cx.provider.rsa_verify(&key, &digest, &message.signature)?)
                })?;
                secured.peer = Some(identity);
                secured
            }
        };
        let client = Direction::ClientToServer;
        let (decryptor, verify_data) =
            secured.read_finished(cx, &config.settings, reader, &mut transcript, client)?;
        if accepted.contains(&verify_data) {
            return Ok(None);
        }
        let permit = Permit::check(config, &secured)?;
        let mut writer = FlightWriter::new(outbound.clone());
        let server = Direction::ServerToClient;
        secured.write_finished(cx, &mut writer, &mut transcript, server, Place::Last)?;
        let (flight, outbound) = writer.finish();
        let ending = Ending::Reply { request: request.to_vec(), flight: flight.clone() };
        let rest = reader.rest().to_vec();
        let (connection, established) =
            conclude(permit, cx, config, secured, transcript, outbound, decryptor, ending);
        Ok(Some(Accepted { connection, established, flight: Some(flight), verify_data, rest }))
    }

    /// Reads the client's certificate and verifies it.
    fn certificate(
        &self,
        cx: &mut Context<'_, P>,
        reader: &mut FlightReader<'_>,
        transcript: &mut Transcript,
    ) -> Result<Claim<P>, Error> {
        reader.message(cx, transcript, HandshakeType::Certificate, |cx, _, frame| {
            let list = CertificateList::from_bytes("Certificate", frame.body)?;
            if list.0.is_empty() {
                // The policy is enforced at the end; this only saves the work until then.
                return match self.config.client_authentication {
                    ClientAuthentication::Required => Err(Error::NoClientCertificate),
                    _ => Ok(Claim::None),
                };
            }
            let chain = list.into_chain()?;
            let settings = &self.config.settings;
            let policy = ChainPolicy {
                holder: Holder::Client,
                family: self.negotiated.key_exchange.family(),
                now_unix_s: cx.now.unix_s,
                private_curves: settings.private_curves,
                name: None,
            };
            let verified = verify_chain(cx.provider, &chain, &self.config.anchors, &policy)?;
            let identity = PeerIdentity::new(chain, verified.validity_unix_s);
            let (own, key) = (self.private.kind(&self.config), verified.key);
            match own {
                KeyKind::Ec(_) if own == key.kind() => {
                    // Both certified keys are on one curve and yield the secret: no ClientKeyExchange follows.
                    let secret = cx.provider.derive(self.private.key(&self.config), &key)?;
                    let mut secured = self.secure(cx, PreMasterSecret::agreed(secret));
                    secured.peer = Some(identity);
                    Ok(Claim::Agreed(Box::new(secured)))
                }
                // An ECDH key on another curve cannot sign, so it proves nothing.
                KeyKind::Ec(_) => Err(Error::NotOffered { what: "curve" }),
                _ => Ok(Claim::Signer { identity, key }),
            }
        })
    }

    fn secure(&self, cx: &Context<'_, P>, pre_master: PreMasterSecret) -> Secured {
        let mut secured = self.negotiated.clone().secure(cx, pre_master, HandshakeMode::Full);
        secured.exchanged = Some(self.private.kind(&self.config));
        secured
    }

    /// Reads ClientKeyExchange and completes the exchange.
    fn key_exchange(
        &self,
        cx: &mut Context<'_, P>,
        reader: &mut FlightReader<'_>,
        transcript: &mut Transcript,
    ) -> Result<Secured, Error> {
        let config = &self.config;
        reader.message(cx, transcript, HandshakeType::ClientKeyExchange, |cx, _, frame| {
            let own = self.private.kind(config);
            let family = self.negotiated.key_exchange.family();
            let modulus_bytes = own.size_bits().div_ceil(8) as usize;
            let message = ClientKeyExchange::decode(family, modulus_bytes, frame.body)?;
            let key = self.private.key(config);
            let pre_master = match (&message, own) {
                (ClientKeyExchange::Rsa(ciphertext), KeyKind::Rsa { .. }) => {
                    let mut fallback = [0; RSA_SECRET_BYTES];
                    cx.random.fill(&mut fallback);
                    let secret = cx.provider.rsa_decrypt(key, ciphertext, self.client_version, &fallback)?;
                    let encoded = self.private.encoded_rsa(config);
                    let encoded = encoded.ok_or(Error::Configuration { what: "an RSA key" })?;
                    PreMasterSecret::rsa(&secret, encoded)
                }
                (ClientKeyExchange::Dh(value), _) => {
                    let ServerPrivate::Dh { group, .. } = &self.private else {
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
            Ok(self.secure(cx, pre_master))
        })
    }
}
