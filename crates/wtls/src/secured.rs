//! What both sides hold once the exchange is complete: the common part of their state machines.

use crate::certificate::ChainCertificate;
use crate::codec::Codec;
use crate::context::Context;
use crate::crypto::{KeyKind, Provider};
use crate::error::Error;
use crate::event::{Established, Event, HandshakeMode};
use crate::key_schedule::{
    Direction, HelloRandom, KeyRefresh, MasterSecret, PreMasterSecret, Randoms, TrafficSecret,
};
use crate::link::{CipherSpecChanged, Link, Place, Transcript};
use crate::message::Finished;
use crate::numbers::{CipherSuite, HandshakeType, HashAlgorithm, KeyExchangeSuite};
use crate::session::{Session, SessionId};
use subtle::ConstantTimeEq;

/// What the hellos settled.
#[derive(Debug, Clone)]
pub(crate) struct Negotiated {
    pub key_exchange: KeyExchangeSuite,
    pub cipher_suite: CipherSuite,
    pub refresh: KeyRefresh,
    pub randoms: Randoms,
    pub session_id: SessionId,
}

impl Negotiated {
    pub fn hash(&self) -> HashAlgorithm {
        self.cipher_suite.hash()
    }

    /// Completes the exchange. Whoever calls this is within the message that did.
    pub fn secure<P: Provider>(
        self,
        cx: &Context<'_, P>,
        pre_master: PreMasterSecret,
        mode: HandshakeMode,
    ) -> Secured {
        let master = pre_master.into_master(cx.provider, self.hash(), &self.randoms);
        self.with_master(master, mode)
    }

    /// Takes up a master secret that was there before.
    pub fn with_master(self, master: MasterSecret, mode: HandshakeMode) -> Secured {
        Secured { negotiated: self, master, mode, exchanged: None, peer_certificates: Vec::new() }
    }
}

/// An exchange that is complete.
#[derive(Clone)]
pub(crate) struct Secured {
    pub negotiated: Negotiated,
    pub master: MasterSecret,
    pub mode: HandshakeMode,
    pub exchanged: Option<KeyKind>,
    pub peer_certificates: Vec<ChainCertificate>,
}

impl Secured {
    fn traffic(&self, direction: Direction) -> TrafficSecret {
        let Negotiated { randoms, cipher_suite, refresh, .. } = &self.negotiated;
        TrafficSecret::new(&self.master, randoms, direction, *cipher_suite, *refresh)
    }

    /// Sends ChangeCipherSpec and Finished.
    pub fn finish<P: Provider>(
        &self,
        link: &mut Link,
        cx: &mut Context<'_, P>,
        transcript: &mut Transcript,
        sender: Direction,
        place: Place,
    ) -> Result<(), Error> {
        link.change_cipher_spec(cx, self.traffic(sender))?;
        link.generate(cx, transcript, HandshakeType::Finished, place, |cx, transcript, to| {
            let verify_data = self.verify_data(cx.provider, sender, transcript);
            Ok(Finished { verify_data }.encode(to)?)
        })
    }

    /// Takes the peer's ChangeCipherSpec.
    pub fn switch_read<P: Provider>(
        &self,
        link: &mut Link,
        cx: &mut Context<'_, P>,
        sender: Direction,
        proof: CipherSpecChanged,
    ) {
        link.switch_read(cx, self.traffic(sender), proof);
    }

    /// Checks the peer's Finished and adds it to the transcript.
    pub fn check_finished<P: Provider>(
        &self,
        cx: &Context<'_, P>,
        transcript: &mut Transcript,
        sender: Direction,
        frame: &crate::message::Frame<'_>,
    ) -> Result<(), Error> {
        let received = Finished::from_bytes("Finished", frame.body)?;
        let expected = self.verify_data(cx.provider, sender, transcript);
        if !bool::from(received.verify_data.ct_eq(&expected)) {
            return Err(Error::FinishedMismatch);
        }
        transcript.push(frame.raw);
        Ok(())
    }

    fn verify_data<P: Provider>(&self, provider: &P, sender: Direction, transcript: &Transcript) -> [u8; 12] {
        self.master.verify_data(provider, self.negotiated.hash(), sender, transcript.bytes())
    }

    /// The session that can be resumed, if the server gave it a name.
    pub fn session(&self) -> Option<Session> {
        let Negotiated { session_id, key_exchange, cipher_suite, .. } = self.negotiated;
        (!session_id.is_none()).then(|| Session {
            id: session_id,
            key_exchange,
            cipher_suite,
            master: self.master.clone(),
            peer_certificates: self.peer_certificates.clone(),
        })
    }

    /// Reports the end of the handshake.
    pub fn establish(self, link: &mut Link, transcript: Transcript) {
        link.session = self.session();
        let Negotiated { session_id, key_exchange, cipher_suite, .. } = self.negotiated;
        link.events.push_back(Event::Established(Box::new(Established {
            mode: self.mode,
            key_exchange,
            exchanged: self.exchanged,
            cipher_suite,
            session_id,
            peer_certificates: self.peer_certificates,
            transcript: transcript.into_bytes(),
        })));
    }
}

/// A hello's random: the time, and twelve random bytes.
pub(crate) fn hello_random<P: Provider>(cx: &mut Context<'_, P>) -> HelloRandom {
    let mut random = [0; 16];
    cx.random.fill(&mut random[4..]);
    random[..4].copy_from_slice(&(cx.now.unix_s as u32).to_be_bytes());
    random
}
