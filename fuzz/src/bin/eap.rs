#![no_main]
//! EAP packets and EAP-TLS fragments from a peer or server that knows the secret but ignores the protocol.

use libfuzzer_sys::fuzz_target;
use shakedown_eap::peer::{Peer, Reply};
use shakedown_eap::server::{Output, Server};
use shakedown_eap::tls::MAX_OVERHEAD_BYTES;
use shakedown_fuzz::Sponge;
use shakedown_trace::Side;
use shakedown_trace::endpoint::Time;
use shakedown_trace::suite::Protocol;

fuzz_target!(|input: &[u8]| {
    let [choice, fragment, rest @ ..] = input else { return };
    let mut rest = rest;
    let protocol = if choice & 2 == 0 { Protocol::Tls13 } else { Protocol::Tls12 };
    let fragment = usize::from(*fragment) + 1;
    let fits = |packet: &[u8]| assert!(packet.len() <= fragment.max(260) + MAX_OVERHEAD_BYTES);
    let mut packets = std::iter::from_fn(|| {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let (packet, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        rest = after;
        Some(packet)
    });
    if choice & 1 == 0 {
        let mut peer = Peer::new(Sponge::endpoint(Side::Client, protocol), "name", fragment);
        for packet in packets.by_ref() {
            match peer.handle(Time::ZERO, packet) {
                Reply::Response(response) => fits(&response),
                Reply::Success => {
                    assert!(peer.tunnel().msk().is_some());
                    return;
                }
                Reply::Failure(_) => return,
                Reply::Ignored => {}
            }
        }
    } else {
        let mut server = Server::new(Sponge::endpoint(Side::Server, protocol), fragment);
        for packet in packets.by_ref() {
            match server.handle(Time::ZERO, packet) {
                Output::Request(request) => fits(&request),
                Output::Success(success) => {
                    assert!(server.tunnel().msk().is_some() && success.len() == 4);
                    return;
                }
                Output::Failure(failure, _) => {
                    assert_eq!(failure.len(), 4);
                    return;
                }
                Output::Ignored => {}
            }
        }
    }
});
