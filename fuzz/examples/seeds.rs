//! Writes what the fuzzers start from: genuine conversations, messages and certificates.

use shakedown_fuzz::{FLOWS, certificate_bytes, datagrams, genuine};
use shakedown_wtls::record::Records;
use std::io::Result;
use std::path::Path;

fn write(target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(format!("seed-{name}")), bytes)
}

fn main() -> Result<()> {
    for flow in 0..FLOWS {
        let [server, client] = genuine(flow);
        write("server", &format!("{flow}"), &server)?;
        write("client", &format!("{flow}"), &client)?;
        write("conversation", &format!("{flow}"), &[flow as u8])?;
        let all = datagrams(&server[1..]).chain(datagrams(&client[1..]));
        for (index, (_, datagram)) in all.enumerate() {
            write("record", &format!("{flow}-{index}"), &[&[flow as u8], datagram].concat())?;
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
