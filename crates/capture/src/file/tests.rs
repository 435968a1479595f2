#![allow(clippy::unwrap_used)]

use super::*;

/// Builds files of either byte order.
struct Builder {
    bytes: Vec<u8>,
    big_endian: bool,
}

impl Builder {
    fn new(big_endian: bool) -> Self {
        Self { bytes: Vec::new(), big_endian }
    }

    fn half(&mut self, value: u16) -> &mut Self {
        let bytes = if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes.extend_from_slice(&bytes);
        self
    }

    fn word(&mut self, value: u32) -> &mut Self {
        let bytes = if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes.extend_from_slice(&bytes);
        self
    }

    fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn classic(&mut self, magic: u32, link: u32, packets: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
        self.word(magic).half(2).half(4).word(0).word(0).word(65_535).word(link);
        for (seconds, fraction, data, original) in packets {
            self.word(*seconds).word(*fraction).word(data.len() as u32).word(*original).raw(data);
        }
        self.bytes.clone()
    }

    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.bytes.len();
        self.word(kind).word(0);
        body(self);
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
        let length = (self.bytes.len() - start + 4) as u32;
        let big = self.big_endian;
        self.word(length);
        let field = if big { length.to_be_bytes() } else { length.to_le_bytes() };
        self.bytes[start + 4..start + 8].copy_from_slice(&field);
        self
    }

    fn section(&mut self) -> &mut Self {
        self.block(0x0a0d_0d0a, |b| {
            b.word(0x1a2b_3c4d).half(1).half(0).word(u32::MAX).word(u32::MAX);
        })
    }

    fn interface(&mut self, link: u16, options: &[(u16, &[u8])]) -> &mut Self {
        self.block(1, |b| {
            b.half(link).half(0).word(0);
            for (code, value) in options {
                b.half(*code).half(value.len() as u16).raw(value);
                while !b.bytes.len().is_multiple_of(4) {
                    b.bytes.push(0);
                }
            }
        })
    }

    fn enhanced(&mut self, interface: u32, time: u64, data: &[u8]) -> &mut Self {
        self.block(6, |b| {
            b.word(interface).word((time >> 32) as u32).word(time as u32);
            b.word(data.len() as u32).word(data.len() as u32).raw(data);
        })
    }
}

type Packet = (u64, Link, Vec<u8>, usize);

fn read(bytes: &[u8]) -> (Vec<Packet>, Result<(), CaptureError>) {
    let mut packets = Vec::new();
    let result = (|| {
        // One byte at a time: no reliance on how much a read returns.
        let mut reader = CaptureReader::new(Dribble(bytes))?;
        while let Some(packet) = reader.next_packet(&mut KeyLog::default())? {
            packets.push((packet.time_ns, packet.link, packet.data.to_vec(), packet.original_bytes));
        }
        Ok(())
    })();
    (packets, result)
}

struct Dribble<'a>(&'a [u8]);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.len().min(buffer.len()).min(7);
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

#[test]
fn pcap_is_read_in_both_byte_orders_and_time_units() {
    for big_endian in [false, true] {
        for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let file = Builder::new(big_endian).classic(magic, 1, &[(3, 7, b"abc", 9), (4, 0, b"", 0)]);
            let (packets, result) = read(&file);
            result.unwrap();
            let expected = [
                (3_000_000_000 + 7 * unit, Link::Ethernet, b"abc".to_vec(), 9),
                (4_000_000_000, Link::Ethernet, Vec::new(), 0),
            ];
            assert_eq!(packets, expected);
        }
    }
}

#[test]
fn pcapng_is_read_with_two_clocks_and_two_sections() {
    for big_endian in [false, true] {
        let mut builder = Builder::new(big_endian);
        builder.section().interface(1, &[(2, b"eth0")]).interface(101, &[(9, &[9]), (1, b"x")]);
        builder.enhanced(0, 5_000_001, b"one").block(0x0bad, |b| {
            b.raw(b"unknown block");
        });
        builder.enhanced(1, 5_000_001, b"three").section().interface(276, &[(9, &[0x8a])]);
        builder.enhanced(0, 2048, b"four").block(3, |b| {
            b.word(6).raw(b"simple");
        });
        let (packets, result) = read(&builder.bytes);
        result.unwrap();
        let expected = [
            (5_000_001_000, Link::Ethernet, b"one".to_vec(), 3),
            (5_000_001, Link::RawIp, b"three".to_vec(), 5),
            (2_000_000_000, Link::LinuxCooked2, b"four".to_vec(), 4),
            (0, Link::LinuxCooked2, b"simple".to_vec(), 6),
        ];
        assert_eq!(packets, expected);
    }
}

#[test]
fn secrets_inside_the_file_are_kept() {
    let mut builder = Builder::new(false);
    let text = format!("CLIENT_RANDOM {} {}\n", "ab".repeat(32), "01".repeat(48));
    builder.section().block(10, |b| {
        b.word(0x544c_534b).word(text.len() as u32).raw(text.as_bytes());
    });
    let mut reader = CaptureReader::new(&builder.bytes[..]).unwrap();
    let mut keys = crate::tls::keylog::KeyLog::default();
    assert!(reader.next_packet(&mut keys).unwrap().is_none());
    assert!(!keys.is_empty());
}

#[test]
fn truncated_file_yields_the_packets_before_the_cut() {
    let classic = Builder::new(false).classic(0xa1b2_c3d4, 1, &[(1, 0, b"first", 5), (2, 0, b"second", 6)]);
    let first_end = 24 + 16 + 5;
    for length in 24..classic.len() {
        let (packets, result) = read(&classic[..length]);
        assert_eq!(packets.len(), usize::from(length >= first_end), "{length}");
        match result {
            Ok(()) => assert!(length == 24 || length == first_end, "{length}"),
            Err(error) => assert!(matches!(error, CaptureError::Cut { .. }), "{error}"),
        }
    }
    let mut builder = Builder::new(true);
    builder.section().interface(1, &[]).enhanced(0, 0, b"first");
    let whole = builder.bytes.len();
    builder.enhanced(0, 0, b"second");
    for length in whole..builder.bytes.len() {
        let (packets, result) = read(&builder.bytes[..length]);
        assert_eq!(packets.len(), 1);
        assert_eq!(result.is_ok(), length == whole);
    }
}

#[test]
fn each_violation_has_its_error() {
    let error = |bytes: &[u8]| read(bytes).1.unwrap_err();
    assert!(matches!(error(b""), CaptureError::Empty));
    assert!(matches!(error(b"hello world, this is text"), CaptureError::NotACapture { .. }));
    assert!(error(b"\x1f\x8b\x08\x00\x00\x00").to_string().contains("gzip"));
    assert!(matches!(error(b"ab"), CaptureError::NotACapture { .. }));
    let odd_link = Builder::new(false).classic(0xa1b2_c3d4, 105, &[]);
    assert!(matches!(error(&odd_link), CaptureError::UnknownLinkType { number: 105 }));
    let mut version = Builder::new(false).classic(0xa1b2_c3d4, 1, &[]);
    version[4] = 9;
    assert!(matches!(error(&version), CaptureError::UnknownVersion { major: 9, .. }));
    let mut huge = Builder::new(false).classic(0xa1b2_c3d4, 1, &[(0, 0, b"x", 1)]);
    huge[24 + 11] = 0xff;
    assert!(matches!(error(&huge), CaptureError::Corrupt { offset: 24, .. }));
    let mut stray = Builder::new(false);
    stray.section().enhanced(0, 0, b"x");
    assert!(matches!(error(&stray.bytes), CaptureError::Corrupt { .. }));
    let mut tail = Builder::new(false);
    tail.section().interface(1, &[]);
    let last = tail.bytes.len() - 1;
    tail.bytes[last] = 1;
    assert!(matches!(error(&tail.bytes), CaptureError::Corrupt { .. }));
}
