//! Writes a large capture of handshakes with some application data behind each, for measuring how fast
//! captures are read: `write_large FILE MEGABYTES KILOBYTES_OF_DATA_PER_CONNECTION`.
//!
//! The handshakes have the shape of TLS 1.2 with a certificate chain; their content is filler.

use shakedown_capture::write::{Chunk, Conversation, Writer};
use shakedown_trace::Side;
use shakedown_trace::endpoint::Transport;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// A handshake record with one message of that type and size.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = body.len() + 4;
    let mut record = vec![22, 3, 3, (length >> 8) as u8, length as u8, kind, 0];
    record.extend_from_slice(&(body.len() as u16).to_be_bytes());
    record.extend_from_slice(body);
    record
}

fn hello(kind: u8, number: u64) -> Vec<u8> {
    let mut body = vec![3, 3];
    for part in 0..4 {
        body.extend_from_slice(&(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(part)).to_be_bytes());
    }
    body.push(0);
    match kind {
        1 => body.extend_from_slice(&[0, 2, 0xc0, 0x2f, 1, 0]),
        _ => body.extend_from_slice(&[0xc0, 0x2f, 0]),
    }
    message(kind, &body)
}

fn run(path: &str, megabytes: u64, kilobytes: usize) -> Result<u64, Box<dyn std::error::Error>> {
    let finish = [&[20, 3, 3, 0, 1, 1][..], &[22, 3, 3, 0, 40], &[0x5a; 40]].concat();
    let flight: Vec<u8> = [message(11, &[0x30; 3000]), message(12, &[1; 329]), message(14, &[])].concat();
    let answer = [message(16, &[2; 66]), finish.clone()].concat();
    let mut data = Vec::new();
    for _ in 0..kilobytes.div_ceil(16) {
        data.extend_from_slice(&[23, 3, 3, 0x40, 0x18]);
        data.extend_from_slice(&[0xa5; 0x4018]);
    }
    let mut writer = Writer::create(Path::new(path))?;
    let mut connections = 0;
    let mut written = 0;
    while written < megabytes * 1_000_000 {
        let (client_hello, server_hello) = (hello(1, connections), hello(2, !connections));
        let server_flight = [&server_hello[..], &flight].concat();
        let at = |from, microseconds, bytes| Chunk { from, time: Duration::from_micros(microseconds), bytes };
        let chunks = [
            at(Side::Client, 0, &client_hello[..]),
            at(Side::Server, 500, &server_flight),
            at(Side::Client, 900, &answer),
            at(Side::Server, 1300, &finish),
            at(Side::Server, 1500, &data),
        ];
        let (client, server) = writer.addresses(443);
        let start = Duration::from_secs(1_700_000_000) + Duration::from_micros(connections * 2000);
        writer.connection(&Conversation {
            transport: Transport::Stream,
            client,
            server,
            start,
            chunks: &chunks,
        })?;
        connections += 1;
        written += (chunks.iter().map(|chunk| chunk.bytes.len()).sum::<usize>() as u64) * 104 / 100 + 1000;
    }
    writer.finish()?;
    Ok(connections)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match arguments.as_slice() {
        [path, megabytes, kilobytes] => {
            megabytes.parse().ok().zip(kilobytes.parse().ok()).map(|both| (path, both))
        }
        _ => None,
    };
    let Some((path, (megabytes, kilobytes))) = parsed else {
        eprintln!("usage: write_large FILE MEGABYTES KILOBYTES_OF_DATA_PER_CONNECTION");
        return ExitCode::from(2);
    };
    match run(path, megabytes, kilobytes) {
        Ok(connections) => {
            println!("{connections} connections");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
