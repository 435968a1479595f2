//! Signals that arrive while a command runs: collected by handlers, read from a pipe.

use super::sys::{self, checked};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// Signals that are forwarded to the command.
const FORWARDED: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Descriptor of the pipe that the handler writes to; -1 if there is none.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// Replaces the process' signal handlers and restores them on drop. At most one may exist in a process.
pub(super) struct Signals {
    reader: OwnedFd,
    _writer: OwnedFd,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

/// `si_code` of signals from the kernel, which a terminal sends to the command too.
const FROM_KERNEL: libc::c_int = 0x80;

extern "C" fn collect(signal: libc::c_int, about: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid siginfo to handlers installed with SA_SIGINFO; write is async-signal-safe, and
    // errno is restored.
    unsafe {
        let errno = *libc::__errno_location();
        let bytes = [signal as u8, u8::from((*about).si_code == FROM_KERNEL)];
        libc::write(PIPE.load(Ordering::Relaxed), bytes.as_ptr().cast(), bytes.len());
        *libc::__errno_location() = errno;
    }
}

impl Signals {
    /// Starts to collect signals. Ignored signals stay ignored.
    pub(super) fn collect() -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for the two descriptors, which then have no other owner.
        let (reader, writer) = unsafe {
            checked(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK))?;
            (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
        };
        PIPE.store(writer.as_raw_fd(), Ordering::Relaxed);
        let mut before = Vec::new();
        for signal in FORWARDED {
            // SAFETY: both actions are valid; the handler is async-signal-safe.
            unsafe {
                let mut old: libc::sigaction = std::mem::zeroed();
                checked(libc::sigaction(signal, std::ptr::null(), &mut old))?;
                if old.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                let mut new: libc::sigaction = std::mem::zeroed();
                let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = collect;
                new.sa_sigaction = handler as usize;
                new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                libc::sigemptyset(&mut new.sa_mask);
                checked(libc::sigaction(signal, &new, std::ptr::null_mut()))?;
                before.push((signal, old));
            }
        }
        Ok(Self { reader, _writer: writer, before })
    }

    /// Readable when a signal has arrived.
    pub(super) fn descriptor(&self) -> RawFd {
        self.reader.as_raw_fd()
    }

    /// The next signal, and whether the terminal sent it to the command, too.
    pub(super) fn next(&self) -> Option<(libc::c_int, bool)> {
        let mut bytes = [0; 2];
        let got = sys::read(self.reader.as_fd(), &mut bytes)?;
        (got == 2).then_some((libc::c_int::from(bytes[0]), bytes[1] == 1))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: the action is the one that was there before.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
        PIPE.store(-1, Ordering::Relaxed);
    }
}
