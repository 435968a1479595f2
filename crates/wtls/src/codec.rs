//! Bytes: a bounds-checked reader and a length-checked writer in WTLS's presentation language.
//!
//! Integers are big-endian; `v8` and `v16` are vectors with a length prefix of one or two bytes (WAP-261 §8).

/// Why received bytes do not have the expected structure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("{field} needs {needed} bytes, {left} are left")]
    Truncated { field: &'static str, needed: usize, left: usize },
    #[error("{extra} bytes are left after {structure}")]
    Trailing { structure: &'static str, extra: usize },
    #[error("{field} has the unassigned value {value}")]
    Unassigned { field: &'static str, value: u32 },
    #[error("{field} has length {length}; accepted: {min} to {max}")]
    Length { field: &'static str, length: usize, min: usize, max: usize },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} has {length} bytes, at most {max} fit")]
pub struct EncodeError {
    pub field: &'static str,
    pub length: usize,
    pub max: usize,
}

/// A structure with one binary form.
pub trait Codec: Sized {
    /// Appends the binary form.
    fn encode(&self, to: &mut Writer) -> Result<(), EncodeError>;
    /// Reads one value. The next read begins after it.
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// The binary form.
    fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut writer = Writer::default();
        self.encode(&mut writer)?;
        Ok(writer.into_bytes())
    }

    /// Reads a value that must use all of `bytes`.
    fn from_bytes(structure: &'static str, bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let value = Self::decode(&mut reader)?;
        reader.finish(structure)?;
        Ok(value)
    }
}

/// A cursor over received bytes.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next `count` bytes.
    pub fn take(&mut self, field: &'static str, count: usize) -> Result<&'a [u8], DecodeError> {
        let left = self.left();
        if count > left {
            return Err(DecodeError::Truncated { field, needed: count, left });
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(field, N)?);
        Ok(array)
    }

    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(field)?[0])
    }

    /// Two bytes.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_be_bytes(self.array(field)?))
    }

    /// Four bytes.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array(field)?))
    }

    /// A vector with a one-byte length.
    pub fn v8(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.u8(field)?;
        self.take(field, length.into())
    }

    /// A vector with a two-byte length.
    pub fn v16(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.u16(field)?;
        self.take(field, length.into())
    }

    /// The remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn position(&self) -> usize {
        self.at
    }

    /// The bytes read since `start`, an earlier [`position`](Self::position).
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    /// Whether all bytes have been read.
    pub fn is_empty(&self) -> bool {
        self.left() == 0
    }

    /// Reads values up to the end, for a list without a count.
    pub fn list<T: Codec>(&mut self) -> Result<Vec<T>, DecodeError> {
        let mut values = Vec::new();
        while !self.is_empty() {
            values.push(T::decode(self)?);
        }
        Ok(values)
    }

    /// Checks that no bytes remain.
    pub fn finish(self, structure: &'static str) -> Result<(), DecodeError> {
        match self.left() {
            0 => Ok(()),
            extra => Err(DecodeError::Trailing { structure, extra }),
        }
    }
}

/// Checks a length against the bounds of the specification.
pub fn bounded<'a>(
    field: &'static str,
    bytes: &'a [u8],
    min: usize,
    max: usize,
) -> Result<&'a [u8], DecodeError> {
    if (min..=max).contains(&bytes.len()) {
        Ok(bytes)
    } else {
        Err(DecodeError::Length { field, length: bytes.len(), min, max })
    }
}

/// A big-endian number without leading zeros.
pub fn significant(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

/// Size of a big-endian number, in bits.
pub fn bits(number: &[u8]) -> u32 {
    let number = significant(number);
    number.first().map_or(0, |first| 8 * number.len() as u32 - first.leading_zeros())
}

/// Bytes under construction.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// A writer that appends to `bytes`.
    pub fn appending_to(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Raw bytes without a length.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Two bytes.
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_be_bytes());
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    /// A vector with a one-byte length.
    pub fn v8(&mut self, field: &'static str, bytes: &[u8]) -> Result<(), EncodeError> {
        self.v8_with(field, |writer| {
            writer.raw(bytes);
            Ok(())
        })
    }

    /// A vector with a two-byte length.
    pub fn v16(&mut self, field: &'static str, bytes: &[u8]) -> Result<(), EncodeError> {
        self.v16_with(field, |writer| {
            writer.raw(bytes);
            Ok(())
        })
    }

    /// A vector with a one-byte length whose content `fill` writes.
    pub fn v8_with<T, E: From<EncodeError>>(
        &mut self,
        field: &'static str,
        fill: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let at = self.bytes.len();
        self.u8(0);
        let done = fill(self)?;
        let length = self.bytes.len() - at - 1;
        self.bytes[at] =
            u8::try_from(length).map_err(|_| EncodeError { field, length, max: u8::MAX.into() })?;
        Ok(done)
    }

    /// A vector with a two-byte length whose content `fill` writes.
    pub fn v16_with<T, E: From<EncodeError>>(
        &mut self,
        field: &'static str,
        fill: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let at = self.bytes.len();
        self.u16(0);
        let done = fill(self)?;
        let length = self.bytes.len() - at - 2;
        let count = u16::try_from(length).map_err(|_| EncodeError { field, length, max: u16::MAX.into() })?;
        self.bytes[at..at + 2].copy_from_slice(&count.to_be_bytes());
        Ok(done)
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
