//! Seeds for fuzzing of captures: conversations of every protocol, as pieces and as capture files. Their content is
//! valid as far as it is read without keys.

use shakedown_capture::file::CaptureReader;
use shakedown_capture::tls::keylog::KeyLog;
use shakedown_capture::write::{Chunk, Conversation, WriteError, Writer};
use shakedown_trace::Side;
use shakedown_trace::endpoint::Transport;
use std::path::Path;
use std::time::Duration;

use crate::{FLOWS, genuine};

const HANDSHAKE: u8 = 22;
const CHANGE_CIPHER_SPEC: [u8; 6] = [20, 3, 3, 0, 1, 1];
const CLOSE: [u8; 7] = [21, 3, 3, 0, 2, 1, 0];
/// A self-signed certificate with an Ed25519 key.
const CERTIFICATE: &[u8] = include_bytes!("certificate.der");

/// Sender and bytes.
pub type Said = (Side, Vec<u8>);

/// A seed conversation.
pub struct Talk {
    pub name: String,
    pub transport: Transport,
    pub said: Vec<Said>,
}

fn counted(length_bytes: usize, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    [&length[4 - length_bytes..], content].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &counted(2, content)].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &counted(3, body)].concat()
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &counted(2, content)].concat()
}

fn client_hello(session: &[u8], extensions: &[Vec<u8>], datagram: bool) -> Vec<u8> {
    let version: &[u8] = if datagram { &[0xfe, 0xfd] } else { &[3, 3] };
    let name = extension(0, &counted(2, &[&[0][..], &counted(2, b"seed.example")].concat()));
    let extensions = [&[name], extensions].concat().concat();
    let cookie: &[u8] = if datagram { &[0] } else { &[] };
    let suites = [0, 4, 0xc0, 0x2b, 0x13, 0x01, 1, 0];
    let all = [version, &[7; 32], &counted(1, session), cookie, &suites, &counted(2, &extensions)].concat();
    message(1, &all)
}

fn server_hello(session: &[u8], cipher_suite: u16, extensions: &[Vec<u8>], datagram: bool) -> Vec<u8> {
    let version: &[u8] = if datagram { &[0xfe, 0xfd] } else { &[3, 3] };
    let suite = cipher_suite.to_be_bytes();
    let all =
        [version, &[9; 32], &counted(1, session), &suite, &[0], &counted(2, &extensions.concat())].concat();
    message(2, &all)
}

fn server_flight(session: &[u8], asks: bool, datagram: bool) -> Vec<Vec<u8>> {
    let chain = counted(3, &counted(3, CERTIFICATE));
    let exchange = [&[3, 0, 29, 32][..], &[5; 32], &[8, 7, 0, 64], &[6; 64]].concat();
    let mut messages = vec![server_hello(session, 0xc02b, &[], datagram), message(11, &chain)];
    messages.push(message(12, &exchange));
    messages.extend(asks.then(|| message(13, &[1, 64, 0, 2, 8, 7, 0, 0])));
    messages.push(message(14, &[]));
    messages
}

/// A full TLS 1.2 handshake with a ticket, its resumption, TLS 1.3, and a ClientHello in the format of SSL 2.0.
fn streams() -> Vec<Talk> {
    let undecrypted = |bytes: usize| record(HANDSHAKE, &vec![0xa5; bytes]);
    let secret = |bytes: usize| record(23, &vec![0x5a; bytes]);
    let ticket = record(HANDSHAKE, &message(4, &[&[0, 0, 1, 0][..], &counted(2, &[4; 48])].concat()));
    let finish = [&CHANGE_CIPHER_SPEC[..], &undecrypted(40)].concat();
    let data = [secret(100), CLOSE.to_vec()].concat();
    let hello =
        |session: &[u8], extensions: &[Vec<u8>]| record(HANDSHAKE, &client_hello(session, extensions, false));
    let full = vec![
        (Side::Client, hello(&[], &[extension(35, &[])])),
        (Side::Server, record(HANDSHAKE, &server_flight(&[1; 32], true, false).concat())),
        (
            Side::Client,
            [
                record(HANDSHAKE, &message(11, &[0, 0, 0])),
                record(HANDSHAKE, &message(16, &[&[32][..], &[3; 32]].concat())),
                finish.clone(),
            ]
            .concat(),
        ),
        (Side::Server, [&ticket[..], &finish].concat()),
        (Side::Client, data.clone()),
        (Side::Server, data.clone()),
    ];
    let short = vec![
        (Side::Client, hello(&[1; 32], &[extension(35, &[4; 48])])),
        (
            Side::Server,
            [&record(HANDSHAKE, &server_hello(&[1; 32], 0xc02b, &[], false))[..], &finish].concat(),
        ),
        (Side::Client, finish.clone()),
        (Side::Server, data.clone()),
    ];
    let identity = [&counted(2, &[4; 48])[..], &[0; 4]].concat();
    let key = [&counted(2, &identity)[..], &counted(2, &counted(1, &[8; 32]))].concat();
    let share = [&[0, 29][..], &counted(2, &[2; 32])].concat();
    let modern = vec![
        (
            Side::Client,
            hello(
                &[2; 32],
                &[
                    extension(43, &[2, 3, 4]),
                    extension(51, &counted(2, &share)),
                    extension(42, &[]),
                    extension(41, &key),
                ],
            ),
        ),
        (
            Side::Server,
            [
                record(
                    HANDSHAKE,
                    &server_hello(
                        &[2; 32],
                        0x1301,
                        &[extension(43, &[3, 4]), extension(51, &share), extension(41, &[0, 0])],
                        false,
                    ),
                ),
                CHANGE_CIPHER_SPEC.to_vec(),
                secret(30),
                secret(400),
                secret(53),
            ]
            .concat(),
        ),
        (Side::Client, [&CHANGE_CIPHER_SPEC[..], &secret(53), &secret(80)].concat()),
        (Side::Server, [secret(200), secret(200)].concat()),
    ];
    let old = vec![
        (
            Side::Client,
            [&[0x80, 25, 1, 3, 1, 0, 3, 0, 0, 0, 16, 0, 0, 47][..], &[7; 16]].concat()[..27].to_vec(),
        ),
        (Side::Server, record(HANDSHAKE, &server_flight(&[], false, false).concat())),
        (Side::Client, vec![21, 3, 1, 0, 2, 2, 40]),
    ];
    let named = [("full", full), ("short", short), ("modern", modern), ("old", old)];
    named
        .into_iter()
        .map(|(name, said)| Talk { name: format!("tls-{name}"), transport: Transport::Stream, said })
        .collect()
}

/// A DTLS message in fragments of at most `size` bytes, one per record.
fn fragmented(message: &[u8], number: u16, size: usize, sequence: &mut u8) -> Vec<Vec<u8>> {
    let (head, body) = message.split_at(4);
    let starts: Vec<usize> = if body.is_empty() { vec![0] } else { (0..body.len()).step_by(size).collect() };
    let fragment = |at: usize| {
        let part = &body[at..body.len().min(at + size)];
        let place = (at as u32).to_be_bytes();
        let content = [head, &number.to_be_bytes(), &place[1..], &counted(3, part)].concat();
        *sequence += 1;
        datagram_record(HANDSHAKE, 0, *sequence, &content)
    };
    starts.into_iter().map(fragment).collect()
}

fn datagram_record(kind: u8, epoch: u8, sequence: u8, content: &[u8]) -> Vec<u8> {
    [&[kind, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, sequence][..], &counted(2, content)].concat()
}

fn datagram_talks() -> Vec<Talk> {
    let (mut to_server, mut to_client) = (0, 0);
    let mut said: Vec<Said> = Vec::new();
    let mut say = |side, packets: Vec<Vec<u8>>| said.extend(packets.into_iter().map(|packet| (side, packet)));
    say(Side::Client, fragmented(&client_hello(&[], &[], true), 0, 900, &mut to_server));
    say(Side::Server, fragmented(&message(3, &[0xfe, 0xfd, 4, 1, 2, 3, 4]), 0, 900, &mut to_client));
    say(Side::Client, fragmented(&client_hello(&[], &[], true), 1, 60, &mut to_server));
    for (number, message) in server_flight(&[1; 32], false, true).iter().enumerate() {
        say(Side::Server, fragmented(message, number as u16 + 1, 200, &mut to_client));
    }
    say(Side::Client, fragmented(&message(16, &[&[32][..], &[3; 32]].concat()), 2, 900, &mut to_server));
    for side in [Side::Client, Side::Server] {
        let finish = [datagram_record(20, 0, 40, &[1]), datagram_record(HANDSHAKE, 1, 0, &[0xa5; 48])];
        say(side, vec![finish.concat(), datagram_record(23, 1, 1, &[0x5a; 64])]);
    }
    let mut talks = vec![Talk { name: "dtls".to_owned(), transport: Transport::Datagram, said }];
    talks.extend((0..FLOWS).map(|flow| Talk {
        name: format!("wtls-{flow}"),
        transport: Transport::Datagram,
        said: genuine(flow),
    }));
    talks
}

/// Every conversation.
pub fn talks() -> Vec<Talk> {
    let mut all = streams();
    all.extend(datagram_talks());
    all
}

/// The conversation as input of the fuzz target `records`.
pub fn as_pieces(talk: &Talk) -> Vec<u8> {
    let mut pieces = vec![0];
    for (side, bytes) in &talk.said {
        pieces.push(u8::from(*side == Side::Server));
        pieces.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
        pieces.extend_from_slice(bytes);
    }
    pieces
}

/// Writes a capture file of conversations to `path`.
pub fn write_capture(talks: &[&Talk], path: &Path) -> Result<(), WriteError> {
    let mut writer = Writer::create(path)?;
    for talk in talks {
        let (client, server) = writer.addresses(443);
        let chunks: Vec<Chunk<'_>> = talk
            .said
            .iter()
            .enumerate()
            .map(|(place, (from, bytes))| Chunk {
                from: *from,
                time: Duration::from_millis(place as u64),
                bytes,
            })
            .collect();
        let (transport, start) = (talk.transport, Duration::from_secs(1_000_000_000));
        writer.connection(&Conversation { transport, client, server, start, chunks: &chunks })?;
    }
    writer.finish()
}

/// The same packets as pcapng.
pub fn as_next_generation(capture: &[u8]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let padded = [body, &[0; 3][..(4 - body.len() % 4) % 4]].concat();
        let length = (padded.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, &padded, &length].concat()
    };
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    // Times in nanoseconds (option 9), and the end of the options.
    let device = [1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    let mut file = [block(0x0a0d_0d0a, &section), block(1, &device)].concat();
    let Ok(mut reader) = CaptureReader::new(capture) else { return file };
    while let Ok(Some(packet)) = reader.next_packet(&mut KeyLog::default()) {
        let (time, length) = (packet.time_ns.to_le_bytes(), (packet.data.len() as u32).to_le_bytes());
        let head = [&[0; 4][..], &time[4..], &time[..4], &length, &length].concat();
        file.extend(block(6, &[&head[..], packet.data].concat()));
    }
    file
}
