//! Safe functions for system calls that the standard library lacks.

use nix::errno::Errno;
use nix::sys::socket::{self, AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{self, Pid};
use std::io::{self, IoSliceMut};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Turns a negative result into the error that errno names.
pub(super) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

pub(super) fn monotonic_ns() -> u64 {
    clock_ns(ClockId::CLOCK_MONOTONIC)
}

/// Wall-clock time, ns since 1970.
pub(super) fn realtime_ns() -> u64 {
    clock_ns(ClockId::CLOCK_REALTIME)
}

/// Cannot fail: both clocks exist on every Linux.
fn clock_ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

/// A pair of connected sockets that keep message boundaries, closed on exec.
pub(super) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socket::socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?)
}

pub(super) fn send(socket: RawFd, bytes: &[u8]) -> io::Result<()> {
    Ok(socket::send(socket, bytes, MsgFlags::MSG_NOSIGNAL).map(drop)?)
}

/// Room for one descriptor in a control message, aligned as `cmsghdr` must be.
#[repr(C, align(8))]
struct Control([u8; 32]);

/// Sends a few bytes and optionally a descriptor. Async-signal-safe: it allocates nothing.
pub(super) fn send_with(socket: RawFd, bytes: &[u8], descriptor: Option<RawFd>) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control([0; 32]);
    // SAFETY: all zeros is a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    if let Some(descriptor) = descriptor {
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: the control buffer is aligned and longer than CMSG_SPACE of one descriptor (24 bytes), so it contains
        // the header and its data.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor);
        }
    }
    // SAFETY: `message` points to buffers that outlive the call.
    let sent = unsafe { libc::sendmsg(socket, &message, libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives a few bytes and the descriptor that came with them, if any. 0 bytes: the other end was closed.
pub(super) fn receive_with(socket: RawFd, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut control = nix::cmsg_space!([RawFd; 1]);
    let mut parts = [IoSliceMut::new(bytes)];
    loop {
        match recvmsg::<()>(socket, &mut parts, Some(&mut control), MsgFlags::MSG_CMSG_CLOEXEC) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(received) => {
                let descriptor = received.cmsgs()?.find_map(|message| match message {
                    ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
                    _ => None,
                });
                // SAFETY: the kernel has just made the descriptor for us; it has no other owner.
                let descriptor = descriptor.map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) });
                return Ok((received.bytes, descriptor));
            }
        }
    }
}

pub(super) fn readable(descriptor: RawFd) -> libc::pollfd {
    libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }
}

/// Waits until a descriptor is ready (true) or the timeout has passed (`None`: no timeout). A signal also ends the
/// wait.
pub(super) fn poll(entries: &mut [libc::pollfd], timeout_ns: Option<u64>) -> io::Result<bool> {
    let timeout = timeout_ns.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as _,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    let limit = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the entries and the timeout are valid for the call; no signal mask is given.
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

/// While this exists, the thread's timers fire when they are due, not up to 50 us later. If the system permits, the
/// thread has priority: real time (throttled by the kernel) on several processors, otherwise by its nice value.
pub(super) struct Punctual {
    policy: libc::c_int,
    nice: libc::c_int,
}

impl Punctual {
    pub(super) fn begin() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let real_time = priority(1);
        // SAFETY: these calls take numbers or read a valid sched_param, and concern only this thread. A call that is
        // refused changes nothing.
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

fn priority(number: libc::c_int) -> libc::sched_param {
    // SAFETY: all zeros is a valid sched_param; some C libraries' have more fields.
    let mut found: libc::sched_param = unsafe { std::mem::zeroed() };
    found.sched_priority = number;
    found
}

impl Drop for Punctual {
    fn drop(&mut self) {
        let ordinary = priority(0);
        // SAFETY: as in `begin`. A slack of 0 restores the process' default.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 0_u64);
            libc::sched_setscheduler(0, self.policy & !libc::SCHED_RESET_ON_FORK, &ordinary);
            libc::setpriority(libc::PRIO_PROCESS, 0, self.nice);
        }
    }
}

/// Reads once; `None` if there is no data or the other end is closed.
pub(super) fn read(descriptor: BorrowedFd<'_>, buffer: &mut [u8]) -> Option<usize> {
    unistd::read(descriptor, buffer).ok().filter(|got| *got > 0)
}

/// Writes once.
pub(super) fn write(descriptor: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    Ok(unistd::write(descriptor, bytes).map(drop)?)
}

pub(super) fn kill(process: libc::pid_t, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: touches no memory.
    checked(unsafe { libc::kill(process, signal) }).map(drop)
}

/// Exit status of a child, as in a shell: 128 plus the signal number if a signal ended it. `None` while the child runs.
pub(super) fn ended(process: libc::pid_t, wait: bool) -> io::Result<Option<i32>> {
    let flags = if wait { WaitPidFlag::empty() } else { WaitPidFlag::WNOHANG };
    loop {
        match waitpid(Pid::from_raw(process), Some(flags)) {
            Ok(WaitStatus::Exited(_, status)) => return Ok(Some(status)),
            Ok(WaitStatus::Signaled(_, signal, _)) => return Ok(Some(128 + signal as i32)),
            Ok(_) => return Ok(None),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
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
