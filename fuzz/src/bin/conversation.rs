#![no_main]
//! A valid conversation in which some datagrams are lost, repeated, changed or forged.

use libfuzzer_sys::fuzz_target;
use shakedown_fuzz::{Choices, Environment, flow};
use shakedown_wtls::{Client, Event, ServerConnection};

fuzz_target!(|input: &[u8]| {
    let mut script = Choices(input);
    let Some(choice) = script.byte() else { return };
    let flow = flow(usize::from(choice));
    let (mut here, mut there) = (Environment::new(1), Environment::new(2));
    let mut client = Client::new(flow.client, None, &mut here.cx());
    let mut server = ServerConnection::new(flow.server);
    let (mut ours, mut theirs) = (None, None);
    for _ in 0..64 {
        let (from_client, datagram) = match (client.poll_transmit(), server.poll_transmit()) {
            (None, None) => {
                // No datagram is in flight: the first timer expires.
                let deadlines = [client.poll_timeout(), server.poll_timeout()];
                let Some(next) = deadlines.into_iter().flatten().min() else { break };
                here.now = here.now.max(next);
                there.now = here.now;
                client.handle_timeout(&mut here.cx());
                server.handle_timeout(&mut there.cx());
                continue;
            }
            (Some(datagram), None) => (true, datagram),
            (None, Some(datagram)) => (false, datagram),
            // Of two datagrams, the server's is lost.
            (Some(datagram), Some(_)) => (true, datagram),
        };
        for datagram in change(&mut script, datagram) {
            match from_client {
                true => server.handle_input(&mut there.cx(), &datagram),
                false => client.handle_input(&mut here.cx(), &datagram),
            }
        }
        while let Some(event) = client.poll_event() {
            if let Event::Established(established) = event {
                ours = Some(established);
                let _ = client.write(&mut here.cx(), b"data");
            }
        }
        while let Some(event) = server.poll_event() {
            if let Event::Established(established) = event {
                theirs = Some(established);
                let _ = server.write(&mut there.cx(), b"data");
            }
        }
    }
    if let (Some(ours), Some(theirs)) = (ours, theirs) {
        assert_eq!(ours.transcript, theirs.transcript);
    }
});

/// The datagrams that arrive instead of one, selected by the next byte of the input.
fn change(script: &mut Choices<'_>, mut datagram: Vec<u8>) -> Vec<Vec<u8>> {
    let Some(action) = script.byte() else { return vec![datagram] };
    match action % 8 {
        0 => Vec::new(),
        1 => vec![datagram.clone(), datagram],
        2 | 3 => {
            if let [high, low, with] = *script.take(3) {
                let at = usize::from(u16::from_be_bytes([high, low])) % datagram.len();
                datagram[at] ^= with;
            }
            vec![datagram]
        }
        4 => {
            let made_up = script.take(usize::from(action)).to_vec();
            vec![made_up, datagram]
        }
        5 => {
            let at = usize::from(action / 8) % datagram.len();
            let tail = datagram.split_off(at);
            vec![tail, datagram]
        }
        _ => vec![datagram],
    }
}
