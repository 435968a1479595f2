#![no_main]
//! The record parser, and the decryption of parsed records.

use libfuzzer_sys::fuzz_target;
use shakedown_fuzz::Synthetic;
use shakedown_wtls::key_schedule::*;
use shakedown_wtls::protection::RecordDecryptor;
use shakedown_wtls::record::Records;
use shakedown_wtls::{BulkCipher, CipherSuite, MacAlgorithm};

fuzz_target!(|input: &[u8]| {
    let Some((choice, datagram)) = input.split_first() else { return };
    let suite = CipherSuite {
        bulk: BulkCipher::ALL[usize::from(choice >> 4) % BulkCipher::ALL.len()],
        mac: MacAlgorithm::ALL[usize::from(choice & 7) % MacAlgorithm::ALL.len()],
    };
    let secret = TrafficSecret::new(
        &MasterSecret::from_bytes([0; 20]),
        &Randoms { client: [0; 16], server: [0; 16] },
        Direction::ClientToServer,
        suite,
        KeyRefresh(*choice),
    );
    let mut decryptor = RecordDecryptor::new(&Synthetic, secret);
    let mut plaintext = Vec::new();
    let mut total = 0;
    for record in Records::new(datagram) {
        let Ok(record) = record else { break };
        total += record.raw.len();
        assert_eq!(record.raw.len(), record.record_type.header_bytes() + record.fragment.len());
        if decryptor.decrypt(&Synthetic, &record, &mut plaintext).is_ok() {
            assert!(plaintext.len() <= record.fragment.len());
            assert!(
                decryptor.decrypt(&Synthetic, &record, &mut plaintext).is_err() || record.sequence.is_none()
            );
        }
    }
    assert!(total <= datagram.len());
});
