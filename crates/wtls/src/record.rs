//! The record header, and the records of a datagram (§9.2.1).

use crate::codec::{DecodeError, Reader};
use crate::numbers::ContentType;

/// The first byte: flags and content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordType(pub u8);

impl RecordType {
    const LENGTH: u8 = 0x80;
    const SEQUENCE: u8 = 0x40;
    const PROTECTED: u8 = 0x20;
    const RESERVED: u8 = 0x10;

    pub fn new(content: ContentType, protected: bool, sequence: bool, length: bool) -> Self {
        let flag = |bit: u8, set: bool| if set { bit } else { 0 };
        Self(
            content.number()
                | flag(Self::PROTECTED, protected)
                | flag(Self::SEQUENCE, sequence)
                | flag(Self::LENGTH, length),
        )
    }

    /// Whether a length field follows. Only the last record of a datagram may lack it.
    pub fn has_length(self) -> bool {
        self.0 & Self::LENGTH != 0
    }

    /// The same type with a length field.
    pub(crate) fn with_length(self) -> Self {
        Self(self.0 | Self::LENGTH)
    }

    /// Whether a sequence number follows.
    pub fn has_sequence(self) -> bool {
        self.0 & Self::SEQUENCE != 0
    }

    /// Whether the fragment is protected by a cipher spec other than null.
    pub fn is_protected(self) -> bool {
        self.0 & Self::PROTECTED != 0
    }

    /// The content type. `None` if it is unknown; such records must be ignored.
    pub fn content(self) -> Option<ContentType> {
        if self.0 & Self::RESERVED != 0 {
            return None;
        }
        ContentType::from_number(self.0 & 0x0F).ok()
    }

    pub fn header_bytes(self) -> usize {
        1 + 2 * usize::from(self.has_sequence()) + 2 * usize::from(self.has_length())
    }
}

/// A record as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    pub record_type: RecordType,
    /// The sequence number, if the record contains it.
    pub sequence: Option<u16>,
    pub fragment: &'a [u8],
    /// The whole record, header included.
    pub raw: &'a [u8],
}

#[derive(Debug, Clone)]
pub struct Records<'a> {
    reader: Reader<'a>,
}

impl<'a> Records<'a> {
    /// The records of a datagram. A truncated record is the last one.
    pub fn new(datagram: &'a [u8]) -> Self {
        Self { reader: Reader::new(datagram) }
    }

    /// The bytes that have not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.reader.clone().rest()
    }

    fn read(&mut self) -> Result<Record<'a>, DecodeError> {
        let start = self.reader.position();
        let record_type = RecordType(self.reader.u8("record type")?);
        let sequence = match record_type.has_sequence() {
            true => Some(self.reader.u16("sequence number")?),
            false => None,
        };
        let fragment = match record_type.has_length() {
            true => self.reader.v16("record")?,
            false => self.reader.rest(),
        };
        Ok(Record { record_type, sequence, fragment, raw: self.reader.since(start) })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let record = self.read();
        if record.is_err() {
            self.reader.rest();
        }
        Some(record)
    }
}

/// Appends a header to a datagram. `sequence` and `length` are written only if `record_type` has these fields.
pub fn write_header(datagram: &mut Vec<u8>, record_type: RecordType, sequence: u16, length: u16) {
    datagram.push(record_type.0);
    if record_type.has_sequence() {
        datagram.extend_from_slice(&sequence.to_be_bytes());
    }
    if record_type.has_length() {
        datagram.extend_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn all(datagram: &[u8]) -> Vec<Result<Record<'_>, DecodeError>> {
        Records::new(datagram).collect()
    }

    #[test]
    fn records_are_parsed_with_and_without_length_and_number() {
        let datagram = [0xC3, 0, 7, 0, 2, 1, 2, 0x84, 0, 1, 9, 0x44, 0, 8, 5, 6];
        let records: Vec<_> = all(&datagram).into_iter().map(Result::unwrap).collect();
        assert_eq!(records.len(), 3);
        assert_eq!((records[0].sequence, records[0].fragment), (Some(7), &[1, 2][..]));
        assert_eq!((records[1].sequence, records[1].fragment), (None, &[9][..]));
        assert_eq!((records[2].sequence, records[2].fragment), (Some(8), &[5, 6][..]));
        assert_eq!(records[1].raw, [0x84, 0, 1, 9]);
        let header_bytes: Vec<_> = records.iter().map(|record| record.record_type.header_bytes()).collect();
        assert_eq!(header_bytes, [5, 3, 3]);
    }

    #[test]
    fn truncated_record_ends_the_datagram() {
        let records = all(&[0xC3, 0, 0, 0, 9, 1, 2]);
        let error = DecodeError::Truncated { field: "record", needed: 9, left: 2 };
        assert_eq!(records, [Err(error)]);
    }

    #[test]
    fn unknown_record_types_have_no_content_type() {
        assert_eq!(RecordType(0xD3).content(), None);
        assert_eq!(RecordType(0xC5).content(), None);
        assert_eq!(RecordType(0xE3).content(), Some(ContentType::Handshake));
    }
}
