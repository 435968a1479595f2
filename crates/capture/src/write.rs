//! Writes conversations from memory as if they had been captured on an Ethernet.
//!
//! The file is a classic pcap with nanosecond times, IPv4 over Ethernet, every checksum correct. A stream gets
//! a three-way handshake, segments of at most 1460 bytes, acknowledgements and an orderly close; a datagram is
//! one UDP packet, in IPv4 fragments if it is larger than the MTU.
//!
//! A file appears under its name only when [`Writer::finish`] succeeds: until then it is a draft in the
//! same folder, which is removed when the writer is dropped. Existing files are never replaced.

mod packet;

use packet::{Endpoints, Flags, PacketBuilder};
use shakedown_trace::Side;
use shakedown_trace::endpoint::Transport;
use std::fs::Permissions;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::NamedTempFile;

/// Largest payload of a TCP segment: Ethernet's 1500 bytes less the headers.
pub const MAXIMUM_SEGMENT_BYTES: usize = 1460;
/// Largest payload of a UDP datagram over IPv4.
pub const MAXIMUM_DATAGRAM_BYTES: usize = 65_507;
/// First client port: the bottom of the dynamic range (RFC 6335).
pub const FIRST_CLIENT_PORT: u16 = 49_152;
pub const SERVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);

const LINK_TYPE_ETHERNET: u32 = 1;
const SNAP_LENGTH_BYTES: u32 = 262_144;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;

/// Data that one side sent: a chunk of a stream, or a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    pub from: Side,
    /// Time since the start of the conversation.
    pub time: Duration,
    pub bytes: &'a [u8],
}

/// One connection, from its first to its last byte.
#[derive(Clone, Copy, Debug)]
pub struct Conversation<'a> {
    /// TCP for a stream, UDP for datagrams.
    pub transport: Transport,
    /// Address of the client; [`Writer::addresses`] returns distinct ones.
    pub client: SocketAddrV4,
    pub server: SocketAddrV4,
    /// Start, since 1970-01-01 00:00 UTC.
    pub start: Duration,
    /// The data that was sent, in order.
    pub chunks: &'a [Chunk<'a>],
}

/// Why a capture could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("cannot create {path}: {source}")]
    Create { path: PathBuf, source: std::io::Error },
    /// The file could not be written, for example because the disk is full.
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: std::io::Error },
    #[error(
        "a datagram of {bytes} bytes does not fit into a UDP packet, which takes at most {MAXIMUM_DATAGRAM_BYTES}"
    )]
    DatagramTooLarge { bytes: usize },
    #[error(
        "a packet at {seconds} s since 1970 does not fit into a capture, whose times end at {} s",
        u32::MAX
    )]
    TimeTooLate { seconds: u64 },
}

#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
    conversations: u32,
    packets: u64,
}

impl Writer {
    /// Begins a capture that will appear at `path`, which must not exist yet.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let create_error = |source| WriteError::Create { path: path.to_path_buf(), source };
        if path.is_dir() {
            return Err(create_error(std::io::ErrorKind::IsADirectory.into()));
        }
        // A symbolic link exists, too, and is not followed.
        if path.symlink_metadata().is_ok() {
            return Err(create_error(std::io::ErrorKind::AlreadyExists.into()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = tempfile::Builder::new()
            .prefix(".new-")
            // The umask restricts the mode.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .map_err(|error| create_error(plain(error)))?;
        let mut writer = Self {
            path: path.to_path_buf(),
            file: BufWriter::with_capacity(1 << 18, file),
            conversations: 0,
            packets: 0,
        };
        let mut header = Vec::with_capacity(24);
        header.extend_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
        header.extend_from_slice(&2u16.to_le_bytes());
        header.extend_from_slice(&4u16.to_le_bytes());
        header.extend_from_slice(&[0; 8]);
        header.extend_from_slice(&SNAP_LENGTH_BYTES.to_le_bytes());
        header.extend_from_slice(&LINK_TYPE_ETHERNET.to_le_bytes());
        writer.put(&header)?;
        Ok(writer)
    }

    /// Client's and server's address for the next conversation; each client address and port is used once.
    pub fn addresses(&mut self, server_port: u16) -> (SocketAddrV4, SocketAddrV4) {
        let ports = u32::from(u16::MAX - FIRST_CLIENT_PORT) + 1;
        let host = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)) + self.conversations / ports);
        // The remainder is below 16,384, so that the sum fits.
        let port = FIRST_CLIENT_PORT + (self.conversations % ports) as u16;
        self.conversations += 1;
        (SocketAddrV4::new(host, port), SocketAddrV4::new(SERVER_ADDRESS, server_port))
    }

    /// Appends a conversation.
    ///
    /// # Errors
    /// [`WriteError`]; the file is then incomplete and the writer should be dropped.
    pub fn connection(&mut self, conversation: &Conversation<'_>) -> Result<(), WriteError> {
        match conversation.transport {
            Transport::Stream => self.stream(conversation),
            Transport::Datagram => self.datagrams(conversation),
        }
    }

    /// Completes the file and renames it to its final path.
    ///
    /// # Errors
    /// [`WriteError::Write`]: the file is then not created, and an existing one stays.
    pub fn finish(self) -> Result<(), WriteError> {
        let Self { path, file, .. } = self;
        let result = file
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)
            .and_then(|file| file.as_file().sync_all().map(|()| file))
            // Fails if the name exists by now.
            .and_then(|file| file.persist_noclobber(&path).map_err(|refused| refused.error));
        result.map(drop).map_err(|source| WriteError::Write { path, source: plain(source) })
    }

    fn stream(&mut self, conversation: &Conversation<'_>) -> Result<(), WriteError> {
        let start = conversation.start;
        let mut tcp = Stream::new(conversation);
        tcp.send(self, start, Side::Client, Flags::SYN, &[])?;
        tcp.send(self, start, Side::Server, Flags::SYN | Flags::ACK, &[])?;
        tcp.send(self, start, Side::Client, Flags::ACK, &[])?;
        let mut end = start;
        for (index, chunk) in conversation.chunks.iter().enumerate() {
            let time = start + chunk.time;
            end = end.max(time);
            let segments = chunk.bytes.chunks(MAXIMUM_SEGMENT_BYTES);
            let last = segments.len().saturating_sub(1);
            for (number, segment) in segments.enumerate() {
                let push = if number == last { Flags::PUSH } else { Flags::NONE };
                tcp.send(self, time, chunk.from, Flags::ACK | push, segment)?;
                // Every second segment is acknowledged, and the last one unless the response acknowledges it.
                let answered = conversation.chunks.get(index + 1).is_some_and(|next| next.from != chunk.from);
                if (number == last && !answered) || (number != last && number % 2 == 1) {
                    tcp.send(self, time, chunk.from.peer(), Flags::ACK, &[])?;
                }
            }
        }
        tcp.send(self, end, Side::Client, Flags::FIN | Flags::ACK, &[])?;
        tcp.send(self, end, Side::Server, Flags::FIN | Flags::ACK, &[])?;
        tcp.send(self, end, Side::Client, Flags::ACK, &[])
    }

    fn datagrams(&mut self, conversation: &Conversation<'_>) -> Result<(), WriteError> {
        let mut builders = builders(conversation);
        for chunk in conversation.chunks {
            if chunk.bytes.len() > MAXIMUM_DATAGRAM_BYTES {
                return Err(WriteError::DatagramTooLarge { bytes: chunk.bytes.len() });
            }
            let time = conversation.start + chunk.time;
            for frame in builders[chunk.from as usize].datagram(chunk.bytes) {
                self.frame(time, &frame)?;
            }
        }
        Ok(())
    }

    fn frame(&mut self, time: Duration, frame: &[u8]) -> Result<(), WriteError> {
        let Ok(seconds) = u32::try_from(time.as_secs()) else {
            return Err(WriteError::TimeTooLate { seconds: time.as_secs() });
        };
        let length = (frame.len() as u32).to_le_bytes();
        let mut header = [0; 16];
        header[..4].copy_from_slice(&seconds.to_le_bytes());
        header[4..8].copy_from_slice(&time.subsec_nanos().to_le_bytes());
        header[8..12].copy_from_slice(&length);
        header[12..].copy_from_slice(&length);
        self.packets += 1;
        self.put(&header)?;
        self.put(frame)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.file
            .write_all(bytes)
            .map_err(|source| WriteError::Write { path: self.path.clone(), source: plain(source) })
    }
}

/// The system's error without the name of the temporary file.
fn plain(error: std::io::Error) -> std::io::Error {
    match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => error.kind().into(),
    }
}

/// Sequence numbers of a TCP connection being written.
struct Stream {
    builders: [PacketBuilder; 2],
    /// Next sequence number of each side.
    next: [u32; 2],
}

impl Stream {
    fn new(conversation: &Conversation<'_>) -> Self {
        // Initial sequence numbers depend on the client's port: the same conversation gives the same bytes.
        let seed = u32::from(conversation.client.port()).wrapping_mul(0x9e37_79b9);
        Self { builders: builders(conversation), next: [seed, seed.rotate_left(16) ^ 0x5bd1_e995] }
    }

    fn send(
        &mut self,
        writer: &mut Writer,
        time: Duration,
        from: Side,
        flags: Flags,
        payload: &[u8],
    ) -> Result<(), WriteError> {
        let sequence = self.next[from as usize];
        let acknowledgement = if flags.contains(Flags::ACK) { self.next[from.peer() as usize] } else { 0 };
        let frame = self.builders[from as usize].segment(sequence, acknowledgement, flags, payload);
        let advance =
            payload.len() as u32 + u32::from(flags.contains(Flags::SYN) || flags.contains(Flags::FIN));
        self.next[from as usize] = sequence.wrapping_add(advance);
        writer.frame(time, &frame)
    }
}

/// One packet builder per sender, indexed by side.
fn builders(conversation: &Conversation<'_>) -> [PacketBuilder; 2] {
    let (client, server) = (conversation.client, conversation.server);
    [
        PacketBuilder::new(Endpoints { source: client, destination: server, from_client: true }),
        PacketBuilder::new(Endpoints { source: server, destination: client, from_client: false }),
    ]
}

#[cfg(test)]
mod tests;
