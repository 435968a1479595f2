//! User-supplied files, which may be pipes: while no data arrives, a callback decides whether to continue.

use crate::cancellation;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Interval of the calls while no data arrives.
const ASK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// An open file.
pub struct Input<W> {
    file: File,
    is_wanted: W,
}

impl<W: FnMut() -> bool> Input<W> {
    /// Opens a file; a pipe needs no writer yet. If `is_wanted` returns false, reading ends with an error.
    pub fn open(path: &Path, is_wanted: W) -> Result<Self> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        Ok(Self { file, is_wanted })
    }
}

impl<W: FnMut() -> bool> Read for Input<W> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&ASK_EVERY)) {
                Ok(0) | Err(Errno::INTR) if (self.is_wanted)() => continue,
                Ok(0) | Err(Errno::INTR) => return Err(Error::other("interrupted")),
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match self.file.read(buffer) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                done => return done,
            }
        }
    }
}

/// The bytes of a file, at most `max_bytes`; `None` for a larger one or an endless device. The callback of
/// [`cancellable`](cancellation::cancellable) decides whether to continue.
pub fn read(path: &Path, max_bytes: u64) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    Input::open(path, cancellation::is_wanted)?.take(max_bytes + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= max_bytes).then_some(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::ops::ControlFlow;

    #[test]
    fn pipe_is_read_to_its_end_with_a_late_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let mut asked = 0;
        let text = std::thread::scope(|scope| {
            let mut input = Input::open(&path, || {
                asked += 1;
                if asked == 2 {
                    scope.spawn(|| std::fs::write(&path, "written late").unwrap());
                }
                true
            })
            .unwrap();
            let mut text = String::new();
            input.read_to_string(&mut text).unwrap();
            text
        });
        assert_eq!(text, "written late");
    }

    #[test]
    fn waiting_for_a_pipe_without_writer_is_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let read = cancellation::cancellable(|| ControlFlow::Break(()), || read(&path, 10));
        assert_eq!(read.unwrap_err().to_string(), "interrupted");
    }

    #[test]
    fn file_longer_than_the_limit_is_not_returned() {
        assert_eq!(read(Path::new("/dev/zero"), 10).unwrap(), None);
        assert_eq!(read(Path::new("/dev/null"), 10).unwrap(), Some(Vec::new()));
        assert!(read(Path::new("/dev"), 10).is_err());
    }
}
