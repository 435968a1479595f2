//! ClientHello and ServerHello.

use crate::codec::{Codec, DecodeError, EncodeError, Reader, Writer, bounded};
use crate::key_schedule::{HelloRandom, KeyRefresh};
use crate::numbers::{OfferedCipherSuite, SequenceNumberMode};
use crate::parameters::KeyExchangeId;
use crate::session::SessionId;

/// The only version, of WAP-199 and WAP-261 alike.
pub const VERSION: u8 = 1;

/// The only compression method.
const NULL_COMPRESSION: u8 = 0;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHello {
    pub version: u8,
    /// Time and random bytes.
    pub random: HelloRandom,
    /// A session to be resumed, or none.
    pub session_id: SessionId,
    /// Key exchanges in order of preference.
    pub client_key_ids: Vec<KeyExchangeId>,
    /// Trusted keys in order of preference.
    pub trusted_key_ids: Vec<KeyExchangeId>,
    /// Cipher suites in order of preference.
    pub cipher_suites: Vec<OfferedCipherSuite>,
    /// Compression methods; number 0 must be among them.
    pub compression_methods: Vec<u8>,
    pub sequence_number_mode: SequenceNumberMode,
    /// How often keys are to be refreshed.
    pub key_refresh: KeyRefresh,
}

impl ClientHello {
    /// Whether the client offers uncompressed records, as it must.
    pub fn offers_null_compression(&self) -> bool {
        self.compression_methods.contains(&NULL_COMPRESSION)
    }
}

impl Codec for ClientHello {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.u8(self.version);
        to.raw(&self.random);
        self.session_id.encode(to)?;
        to.v16_with("client_key_ids", |to| encode_all(&self.client_key_ids, to))?;
        to.v16_with("trusted_key_ids", |to| encode_all(&self.trusted_key_ids, to))?;
        to.v8_with("cipher_suites", |to| encode_all(&self.cipher_suites, to))?;
        to.v8("compression_methods", &self.compression_methods)?;
        to.u8(self.sequence_number_mode.number());
        to.u8(self.key_refresh.0);
        Ok(())
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            version: from.u8("client version")?,
            random: from.array("client random")?,
            session_id: SessionId::decode(from)?,
            client_key_ids: Reader::new(from.v16("client_key_ids")?).list()?,
            trusted_key_ids: Reader::new(from.v16("trusted_key_ids")?).list()?,
            cipher_suites: {
                let suites = bounded("cipher_suites", from.v8("cipher_suites")?, 2, 255)?;
                Reader::new(suites).list()?
            },
            compression_methods: {
                let field = "compression_methods";
                bounded(field, from.v8(field)?, 1, 255)?.to_vec()
            },
            sequence_number_mode: SequenceNumberMode::from_number(from.u8("sequence number mode")?)?,
            key_refresh: KeyRefresh(from.u8("key refresh")?),
        })
    }
}

pub(super) fn encode_all<T: Codec>(values: &[T], to: &mut Writer) -> Result<(), EncodeError> {
    values.iter().try_for_each(|value| value.encode(to))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerHello {
    pub version: u8,
    /// Time and random bytes.
    pub random: HelloRandom,
    /// The client's session if it is resumed, otherwise a new one; empty if this one cannot be resumed.
    pub session_id: SessionId,
    /// The selected key exchange of the client, counted from 1; 0 for a resumed session.
    pub client_key_id: u8,
    /// The cipher suite, unparsed: it may not be one of those offered.
    pub cipher_suite: OfferedCipherSuite,
    pub compression_method: u8,
    pub sequence_number_mode: SequenceNumberMode,
    /// How often keys are refreshed.
    pub key_refresh: KeyRefresh,
}

impl Codec for ServerHello {
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError> {
        to.u8(self.version);
        to.raw(&self.random);
        self.session_id.encode(to)?;
        to.u8(self.client_key_id);
        self.cipher_suite.encode(to)?;
        to.u8(self.compression_method);
        to.u8(self.sequence_number_mode.number());
        to.u8(self.key_refresh.0);
        Ok(())
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            version: from.u8("server version")?,
            random: from.array("server random")?,
            session_id: SessionId::decode(from)?,
            client_key_id: from.u8("client_key_id")?,
            cipher_suite: OfferedCipherSuite::decode(from)?,
            compression_method: from.u8("compression method")?,
            sequence_number_mode: SequenceNumberMode::from_number(from.u8("sequence number mode")?)?,
            key_refresh: KeyRefresh(from.u8("key refresh")?),
        })
    }
}
