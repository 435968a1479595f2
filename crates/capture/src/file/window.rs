//! A sliding window over a reader: big reads, no copy per packet.

use crate::CaptureError;
use std::io::{ErrorKind, Read};

const INITIAL_BYTES: usize = 1 << 20;

/// The part of a file that has been read and not yet passed.
pub(super) struct Window<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `start` in the file.
    offset: u64,
}

impl<R: Read> Window<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, buffer: vec![0; INITIAL_BYTES], start: 0, end: 0, offset: 0 }
    }

    /// Reads until `count` bytes are available; false if the file ends before.
    pub(super) fn want(&mut self, count: usize) -> Result<bool, CaptureError> {
        if self.end - self.start >= count {
            return Ok(true);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < count {
            self.buffer.resize(count.next_power_of_two(), 0);
        }
        while self.end < count {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(CaptureError::Read { offset: self.offset + self.end as u64, source });
                }
            }
        }
        Ok(true)
    }
}

impl<R> Window<R> {
    pub(super) fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Passes bytes that are available.
    pub(super) fn pass(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// The `count` bytes that precede the last `behind` passed bytes.
    pub(super) fn taken(&self, count: usize, behind: usize) -> &[u8] {
        let end = self.start - behind;
        &self.buffer[end - count..end]
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }
}
