//! Writes the seeds of the fuzzers: valid conversations, messages, certificates and captures.

use shakedown_fuzz::{
    FLOWS, Talk, as_next_generation, as_pieces, certificate_bytes, conversation_seed, genuine, message_seeds,
    radius_seed, talks, write_capture,
};
use shakedown_trace::Side;
use shakedown_wtls::record::Records;
use std::io::Result;
use std::path::Path;

fn write(target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(format!("seed-{name}")), bytes)
}

/// One capture of conversations, in both formats.
fn write_captures(name: &str, talks: &[&Talk]) -> Result<()> {
    let path = std::env::temp_dir().join(format!("shakedown-seed-{}.pcap", std::process::id()));
    write_capture(talks, &path).map_err(std::io::Error::other)?;
    let capture = std::fs::read(&path)?;
    std::fs::remove_file(&path)?;
    write("packets", &format!("{name}-pcapng"), &as_next_generation(&capture))?;
    write("packets", &format!("{name}-pcap"), &capture)
}

fn main() -> Result<()> {
    write("radius", "answer", &radius_seed())?;
    for side in 0..2 {
        write("eap", &format!("{side}"), &conversation_seed(side))?;
    }
    let messages = message_seeds();
    for (number, message) in messages.iter().enumerate() {
        write("aka", &format!("{number}"), message)?;
    }
    write("aka", "all", &messages.concat())?;
    // An attach without an attacker, and one with each kind of change on the wire.
    write("attach", "honest", &[0; 250])?;
    for meddling in 1..7_u8 {
        let mut choices = [0; 120];
        choices[usize::from(meddling) * 5] = meddling;
        write("attach", &format!("meddled-{meddling}"), &choices)?;
    }
    let talks = talks();
    for talk in &talks {
        write("records", &talk.name, &as_pieces(talk))?;
        write_captures(&talk.name, &[talk])?;
    }
    write_captures("all", &talks.iter().collect::<Vec<_>>())?;
    for flow in 0..FLOWS {
        let said = genuine(flow);
        let sent_by = |side: Side| -> Vec<u8> {
            let datagrams = said.iter().filter(|(from, _)| *from == side);
            let framed =
                datagrams.map(|(_, bytes)| [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat());
            [vec![flow as u8], framed.collect::<Vec<_>>().concat()].concat()
        };
        write("server", &format!("{flow}"), &sent_by(Side::Client))?;
        write("listener", &format!("{flow}"), &sent_by(Side::Client))?;
        write("client", &format!("{flow}"), &sent_by(Side::Server))?;
        write("conversation", &format!("{flow}"), &[flow as u8])?;
        for (index, (_, datagram)) in said.iter().enumerate() {
            write("record", &format!("{flow}-{index}"), &[&[flow as u8], &datagram[..]].concat())?;
            for (place, record) in Records::new(datagram).flatten().enumerate() {
                let name = format!("{flow}-{index}-{place}");
                write("message", &name, &[&[flow as u8], record.fragment].concat())?;
            }
        }
    }
    for (index, bytes) in certificate_bytes().iter().enumerate() {
        write("certificate", &format!("{index}"), bytes)?;
    }
    Ok(())
}
