//! The state of both sides after the key exchange, and the common part of their handshakes.

use crate::certificate::PeerIdentity;
use crate::codec::Codec;
use crate::config::Settings;
use crate::context::Context;
use crate::crypto::{KeyKind, Provider};
use crate::error::Error;
use crate::event::{Established, HandshakeMode};
use crate::flight::{FlightReader, FlightWriter, Place, Transcript};
use crate::key_schedule::{
    Direction, HelloRandom, KeyRefresh, MasterSecret, PreMasterSecret, Randoms, TrafficSecret,
    VERIFY_DATA_BYTES,
};
use crate::message::Finished;
use crate::numbers::{CipherSuite, HandshakeType, HashAlgorithm, KeyExchangeSuite};
use crate::policy::PolicyId;
use crate::protection::RecordDecryptor;
use crate::session::{Session, SessionId};
use subtle::ConstantTimeEq;

/// The content of a Finished message.
pub(crate) type VerifyData = [u8; VERIFY_DATA_BYTES];

/// The negotiated parameters of the hellos.
#[derive(Debug, Clone)]
pub(crate) struct Negotiated {
    pub key_exchange: KeyExchangeSuite,
    pub cipher_suite: CipherSuite,
    pub refresh: KeyRefresh,
    pub randoms: Randoms,
    pub session_id: SessionId,
    pub policy: PolicyId,
}

impl Negotiated {
    pub fn hash(&self) -> HashAlgorithm {
        self.cipher_suite.hash()
    }

    /// Completes the exchange. Must be called within the message that completes it, or just before this message.
    pub fn secure<P: Provider>(
        self,
        cx: &Context<'_, P>,
        pre_master: PreMasterSecret,
        mode: HandshakeMode,
    ) -> Secured {
        let master = pre_master.into_master(cx.provider, self.hash(), &self.randoms);
        let made_unix_s = cx.now.unix_s;
        Secured { negotiated: self, master, mode, exchanged: None, peer: None, made_unix_s }
    }

    /// Continues with the master secret of a session.
    pub fn resume(self, session: &Session) -> Secured {
        Secured {
            negotiated: self,
            master: session.master.clone(),
            mode: HandshakeMode::Resumed,
            exchanged: None,
            peer: session.peer.clone(),
            made_unix_s: session.made_unix_s,
        }
    }
}

/// A completed key exchange.
#[derive(Clone)]
pub(crate) struct Secured {
    pub negotiated: Negotiated,
    pub master: MasterSecret,
    pub mode: HandshakeMode,
    pub exchanged: Option<KeyKind>,
    /// The identity of the peer, if it is authenticated at the latest when its Finished is verified.
    pub peer: Option<PeerIdentity>,
    /// When the master secret was created, in seconds since 1970.
    made_unix_s: u64,
}

impl Secured {
    fn traffic(&self, direction: Direction) -> TrafficSecret {
        let Negotiated { randoms, cipher_suite, refresh, .. } = &self.negotiated;
        TrafficSecret::new(&self.master, randoms, direction, *cipher_suite, *refresh)
    }

    pub fn write_finished<P: Provider>(
        &self,
        cx: &mut Context<'_, P>,
        flight: &mut FlightWriter,
        transcript: &mut Transcript,
        sender: Direction,
        place: Place,
    ) -> Result<(), Error> {
        flight.change_cipher_spec(cx, self.traffic(sender))?;
        flight.message(cx, transcript, HandshakeType::Finished, place, |cx, transcript, to| {
            let verify_data = self.verify_data(cx.provider, sender, transcript);
            Ok(Finished { verify_data }.encode(to)?)
        })
    }

    /// Creates the decryptor of the peer's records. `sender` is the peer.
    pub fn decryptor<P: Provider>(
        &self,
        cx: &Context<'_, P>,
        settings: &Settings,
        sender: Direction,
    ) -> RecordDecryptor {
        let decryptor = RecordDecryptor::new(cx.provider, self.traffic(sender));
        decryptor.distinguishing_padding(settings.distinguish_record_errors)
    }

    /// Reads the peer's ChangeCipherSpec and Finished.
    pub fn read_finished<P: Provider>(
        &self,
        cx: &mut Context<'_, P>,
        settings: &Settings,
        flight: &mut FlightReader<'_>,
        transcript: &mut Transcript,
        sender: Direction,
    ) -> Result<(RecordDecryptor, VerifyData), Error> {
        let mut decryptor = flight.change_cipher_spec(cx, |cx| Ok(self.decryptor(cx, settings, sender)))?;
        let verify_data = self.check_finished(cx, flight, transcript, &mut decryptor, sender)?;
        Ok((decryptor, verify_data))
    }

    pub fn check_finished<P: Provider>(
        &self,
        cx: &mut Context<'_, P>,
        flight: &mut FlightReader<'_>,
        transcript: &mut Transcript,
        decryptor: &mut RecordDecryptor,
        sender: Direction,
    ) -> Result<VerifyData, Error> {
        flight.finished(cx, transcript, decryptor, |cx, transcript, frame| {
            let received = Finished::from_bytes("Finished", frame.body)?;
            let expected = self.verify_data(cx.provider, sender, transcript);
            if bool::from(received.verify_data.ct_eq(&expected)) {
                Ok(expected)
            } else {
                Err(Error::FinishedMismatch)
            }
        })
    }

    fn verify_data<P: Provider>(
        &self,
        provider: &P,
        sender: Direction,
        transcript: &Transcript,
    ) -> VerifyData {
        self.master.verify_data(provider, self.negotiated.hash(), sender, transcript.bytes())
    }

    /// The session, if the server assigned it an identifier.
    pub fn session(&self) -> Option<Session> {
        let Negotiated { session_id, key_exchange, cipher_suite, policy, .. } = self.negotiated;
        (!session_id.is_none()).then(|| Session {
            id: session_id,
            key_exchange,
            cipher_suite,
            master: self.master.clone(),
            peer: self.peer.clone(),
            policy,
            made_unix_s: self.made_unix_s,
        })
    }

    /// The content of the event at the end of the handshake.
    pub fn established(self, transcript: Transcript) -> Box<Established> {
        let Negotiated { session_id, key_exchange, cipher_suite, .. } = self.negotiated;
        Box::new(Established {
            mode: self.mode,
            key_exchange,
            exchanged: self.exchanged,
            cipher_suite,
            session_id,
            peer: self.peer,
            transcript: transcript.into_bytes(),
        })
    }
}

/// The random of a hello: the time, and twelve random bytes.
pub(crate) fn hello_random<P: Provider>(cx: &mut Context<'_, P>) -> HelloRandom {
    let mut random = [0; 16];
    cx.random.fill(&mut random[4..]);
    random[..4].copy_from_slice(&(cx.now.unix_s as u32).to_be_bytes());
    random
}
