//! System calls that the standard library has no words for, each behind a safe function.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// `-1` as the error that it stands for.
pub(super) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The monotonic clock, ns.
pub(super) fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// The clock of the day, ns since 1970.
pub(super) fn realtime_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A pair of connected sockets that keep message boundaries, closed on exec.
pub(super) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: `ends` has room for the two descriptors.
    checked(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
    // SAFETY: both descriptors were just made and have no other owner.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Sends a few bytes.
pub(super) fn send(socket: RawFd, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the buffer is valid for its length.
    let sent = unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Room for one descriptor in a control message, aligned as `cmsghdr` must be.
#[repr(C, align(8))]
struct Control([u8; 32]);

/// Sends a few bytes and perhaps a descriptor. Async-signal-safe: it allocates nothing.
pub(super) fn send_with(socket: RawFd, bytes: &[u8], descriptor: Option<RawFd>) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control([0; 32]);
    // SAFETY: all zeros is a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    if let Some(descriptor) = descriptor {
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: the control buffer is aligned and longer than CMSG_SPACE of one descriptor (24 bytes), so the header and
        // its data lie within it.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as usize;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor);
        }
    }
    // SAFETY: `message` points to buffers that outlive the call.
    let sent = unsafe { libc::sendmsg(socket, &message, libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives a few bytes and the descriptor that came with them, if any. 0 bytes: the other end was closed.
pub(super) fn receive_with(socket: RawFd, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = Control([0; 32]);
    // SAFETY: all zeros is a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    let received = loop {
        // SAFETY: `message` points to buffers that outlive the call.
        let received = unsafe { libc::recvmsg(socket, &mut message, libc::MSG_CMSG_CLOEXEC) };
        if received >= 0 {
            break received as usize;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    };
    // SAFETY: the kernel filled the control buffer; a header that is there lies within it.
    let descriptor = unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        let is_one = !header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_RIGHTS;
        // The descriptor was just made for us by the kernel.
        is_one.then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()))
    };
    Ok((received, descriptor))
}

/// What to wait for at a descriptor.
pub(super) fn readable(descriptor: RawFd) -> libc::pollfd {
    libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }
}

/// Waits for any of the descriptors, at most so long (`None`: for ever). Interrupted counts as nothing ready.
pub(super) fn poll(entries: &mut [libc::pollfd], timeout_ns: Option<u64>) -> io::Result<bool> {
    let timeout = timeout_ns.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    let limit = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the entries and the time-out are valid for the call; no signal mask is given.
    match unsafe { libc::ppoll(entries.as_mut_ptr(), entries.len() as u64, limit, std::ptr::null()) } {
        0 => Ok(false),
        ready if ready > 0 => Ok(true),
        _ => {
            let error = io::Error::last_os_error();
            for entry in entries {
                entry.revents = 0;
            }
            if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) }
        }
    }
}

/// While it lives, this thread's timers fire when they are due, not up to 50 us later, and where the system allows it the
/// thread runs before others: with more than one processor as a real-time thread, of which the kernel keeps some time back.
pub(super) struct Punctual {
    policy: libc::c_int,
    nice: libc::c_int,
}

impl Punctual {
    pub(super) fn begin() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let real_time = libc::sched_param { sched_priority: 1 };
        // SAFETY: these calls take numbers, or read a valid sched_param; they concern this thread alone. What is refused
        // changes nothing: the bearer is then as punctual as any program.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64);
            let before =
                Self { policy: libc::sched_getscheduler(0), nice: libc::getpriority(libc::PRIO_PROCESS, 0) };
            let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
            if processors < 2 || libc::sched_setscheduler(0, policy, &real_time) < 0 {
                libc::setpriority(libc::PRIO_PROCESS, 0, NICE);
            }
            before
        }
    }
}

const NICE: libc::c_int = -10;

impl Drop for Punctual {
    fn drop(&mut self) {
        let ordinary = libc::sched_param { sched_priority: 0 };
        // SAFETY: as when it began. A slack of 0 is the process' default.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 0_u64);
            libc::sched_setscheduler(0, self.policy & !libc::SCHED_RESET_ON_FORK, &ordinary);
            libc::setpriority(libc::PRIO_PROCESS, 0, self.nice);
        }
    }
}

/// Reads once; `None` where nothing is there, or the other end is gone.
pub(super) fn read(descriptor: BorrowedFd<'_>, buffer: &mut [u8]) -> Option<usize> {
    // SAFETY: the buffer is valid for its length.
    let got = unsafe { libc::read(descriptor.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(got).ok().filter(|got| *got > 0)
}

/// Writes once.
pub(super) fn write(descriptor: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the buffer is valid for its length.
    let put = unsafe { libc::write(descriptor.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    if put < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends a signal.
pub(super) fn kill(process: libc::pid_t, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: touches no memory.
    checked(unsafe { libc::kill(process, signal) }).map(drop)
}

/// How a child ended, as a shell tells it: its exit status, or 128 and the signal. `None`: it has not.
pub(super) fn ended(process: libc::pid_t, wait: bool) -> io::Result<Option<i32>> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is valid to write to.
        let found = unsafe { libc::waitpid(process, &mut status, if wait { 0 } else { libc::WNOHANG }) };
        match checked(found) {
            Ok(0) => return Ok(None),
            Ok(_) if libc::WIFEXITED(status) => return Ok(Some(libc::WEXITSTATUS(status))),
            Ok(_) => return Ok(Some(128 + libc::WTERMSIG(status))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A descriptor that becomes readable when a child ends.
pub(super) fn process_descriptor(process: libc::pid_t) -> io::Result<OwnedFd> {
    // SAFETY: touches no memory; the kernel sets close-on-exec.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    let descriptor = checked(descriptor as libc::c_int)?;
    // SAFETY: it was just made and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
