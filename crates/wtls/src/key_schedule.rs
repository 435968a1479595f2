//! The key schedule, from the pre-master secret to record keys (§11.1, §11.2). Each stage is a type that is created
//! from that of the stage before.

use crate::crypto::{Provider, RSA_SECRET_BYTES};
use crate::numbers::{BLOCK_BYTES, CipherSuite, HashAlgorithm};
use crate::parameters::EncodedRsaKey;
use zeroize::{Zeroize, Zeroizing};

/// Random of one side: 4 bytes of time and 12 random ones.
pub type HelloRandom = [u8; 16];

pub const MASTER_SECRET_BYTES: usize = 20;

/// Length of the content of Finished.
pub const VERIFY_DATA_BYTES: usize = 12;

/// The randoms of both hellos.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Randoms {
    pub client: HelloRandom,
    pub server: HelloRandom,
}

/// The result of the key exchange.
pub struct PreMasterSecret(Zeroizing<Vec<u8>>);

impl PreMasterSecret {
    pub fn null() -> Self {
        Self(Zeroizing::default())
    }

    /// From a pre-shared secret.
    pub fn shared(secret: &[u8]) -> Self {
        Self(Zeroizing::new(secret.to_vec()))
    }

    pub fn agreed(secret: Zeroizing<Vec<u8>>) -> Self {
        Self(secret)
    }

    /// From RSA: the secret and the server's encoded public key, including the lengths of its parts.
    pub fn rsa(secret: &[u8; RSA_SECRET_BYTES], server_key: &EncodedRsaKey) -> Self {
        let mut bytes = Zeroizing::new(Vec::with_capacity(secret.len() + server_key.0.len()));
        bytes.extend_from_slice(secret);
        bytes.extend_from_slice(&server_key.0);
        Self(bytes)
    }

    /// The master secret of a new session.
    pub fn into_master<P: Provider>(
        self,
        provider: &P,
        hash: HashAlgorithm,
        randoms: &Randoms,
    ) -> MasterSecret {
        let mut master = [0; MASTER_SECRET_BYTES];
        let seed = [&randoms.client[..], &randoms.server[..]];
        provider.prf(hash, &self.0, "master secret", &seed, &mut master);
        MasterSecret(master)
    }
}

#[derive(Clone, Zeroize)]
#[zeroize(drop)]
pub struct MasterSecret([u8; MASTER_SECRET_BYTES]);

impl core::fmt::Debug for MasterSecret {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("MasterSecret(..)")
    }
}

impl MasterSecret {
    /// A stored master secret.
    pub fn from_bytes(bytes: [u8; MASTER_SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// The secret bytes.
    pub fn as_bytes(&self) -> &[u8; MASTER_SECRET_BYTES] {
        &self.0
    }

    /// The content of Finished: proof of the master secret and of the messages so far.
    pub fn verify_data<P: Provider>(
        &self,
        provider: &P,
        hash: HashAlgorithm,
        sender: Direction,
        messages: &[u8],
    ) -> [u8; VERIFY_DATA_BYTES] {
        let label = match sender {
            Direction::ClientToServer => "client finished",
            Direction::ServerToClient => "server finished",
        };
        let digest = provider.digest(hash, &[messages]);
        let mut out = [0; VERIFY_DATA_BYTES];
        provider.prf(hash, &self.0, label, &[&digest], &mut out);
        out
    }
}

/// The direction of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    ClientToServer,
    ServerToClient,
}

/// The refresh interval of keys: 2^n records (§9.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyRefresh(pub u8);

impl KeyRefresh {
    /// The first number of the interval that `sequence` lies in.
    pub fn interval_start(self, sequence: u16) -> u16 {
        match 1u16.checked_shl(self.0.into()) {
            Some(interval) => sequence & !(interval - 1),
            None => 0,
        }
    }
}

/// The inputs to the keys of one direction.
#[derive(Clone)]
pub struct TrafficSecret {
    master: MasterSecret,
    randoms: Randoms,
    direction: Direction,
    pub suite: CipherSuite,
    pub refresh: KeyRefresh,
}

impl TrafficSecret {
    pub fn new(
        master: &MasterSecret,
        randoms: &Randoms,
        direction: Direction,
        suite: CipherSuite,
        refresh: KeyRefresh,
    ) -> Self {
        Self { master: master.clone(), randoms: *randoms, direction, suite, refresh }
    }

    pub fn record_keys<P: Provider>(&self, provider: &P, sequence: u16) -> RecordKeys {
        let start = self.refresh.interval_start(sequence);
        let number = start.to_be_bytes();
        let Randoms { client, server } = &self.randoms;
        let CipherSuite { bulk, mac } = self.suite;
        let (expansion, key_label, iv_label) = match self.direction {
            Direction::ClientToServer => ("client expansion", "client write key", "client write IV"),
            Direction::ServerToClient => ("server expansion", "server write key", "server write IV"),
        };

        let material = bulk.key_material_bytes();
        let mut block = Zeroizing::new([0; RecordKeys::MAX_BLOCK]);
        let wanted = mac.key_bytes() + material + bulk.iv_bytes();
        let block = &mut block[..wanted];
        let hash = self.suite.hash();
        provider.prf(hash, &self.master.0, expansion, &[&number, server, client], block);
        let (mac_secret, rest) = block.split_at(mac.key_bytes());
        let (key, iv) = rest.split_at(material);

        let mut keys = RecordKeys::empty(start, self.suite);
        keys.mac_secret[..mac_secret.len()].copy_from_slice(mac_secret);
        if bulk.is_exportable() {
            let final_key = &mut keys.key[..bulk.key_bytes()];
            provider.prf(hash, key, key_label, &[client, server], final_key);
            provider.prf(hash, &[], iv_label, &[&number, client, server], &mut keys.iv);
        } else {
            keys.key[..key.len()].copy_from_slice(key);
            keys.iv[..iv.len()].copy_from_slice(iv);
        }
        keys
    }
}

/// The keys of one refresh interval of one direction.
#[derive(Clone, Zeroize)]
#[zeroize(drop)]
pub struct RecordKeys {
    /// The interval's first sequence number.
    #[zeroize(skip)]
    pub interval_start: u16,
    #[zeroize(skip)]
    suite: CipherSuite,
    mac_secret: [u8; 20],
    key: [u8; 24],
    iv: [u8; BLOCK_BYTES],
}

impl RecordKeys {
    /// The longest key block: SHA and 3DES.
    const MAX_BLOCK: usize = 20 + 24 + BLOCK_BYTES;

    fn empty(interval_start: u16, suite: CipherSuite) -> Self {
        Self { interval_start, suite, mac_secret: [0; 20], key: [0; 24], iv: [0; BLOCK_BYTES] }
    }

    pub fn mac_secret(&self) -> &[u8] {
        &self.mac_secret[..self.suite.mac.key_bytes()]
    }

    pub fn key(&self) -> &[u8] {
        &self.key[..self.suite.bulk.key_bytes()]
    }

    /// The IV of a record: the interval's IV, XORed with the record's number, which is repeated four times.
    pub fn record_iv(&self, sequence: u16) -> [u8; BLOCK_BYTES] {
        let number = sequence.to_be_bytes();
        let mut iv = self.iv;
        for (index, byte) in iv.iter_mut().enumerate() {
            *byte ^= number[index % 2];
        }
        iv
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refresh_intervals_start_at_multiples_of_a_power_of_two() {
        assert_eq!(KeyRefresh(3).interval_start(19), 16);
        assert_eq!(KeyRefresh(0).interval_start(19), 19);
        assert_eq!(KeyRefresh(15).interval_start(0xFFFF), 0x8000);
        assert_eq!(KeyRefresh(16).interval_start(0xFFFF), 0);
        assert_eq!(KeyRefresh(255).interval_start(0xFFFF), 0);
    }
}
