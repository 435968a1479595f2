//! One end of a bearer: a child process in its own network namespace, with a TUN device that the parent holds open.
//!
//! `unshare(CLONE_NEWUSER)` requires a process with one thread, but this library may run in a process that has many (an
//! interpreter, a numerical library). A newly forked child has one. Until it executes its command, it only makes system
//! calls: it must not allocate or lock, because another thread may have held a lock at the fork. Everything that the
//! child needs is prepared before the fork.

use super::BearerRunError;
use super::sys::{self, checked};
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// COMMAND runs on this side.
    Client,
    Gateway,
}

/// The client's address on the link. 198.18.0.0/15 is reserved for network benchmarks (RFC 2544), so it hides no
/// network that a command could need.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The gateway's address on the link, at which the client reaches servers on this host.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// Name of the TUN device in both namespaces.
pub const DEVICE: &str = "bearer0";

impl Side {
    fn addresses(self) -> (Ipv4Addr, Ipv4Addr) {
        match self {
            Self::Client => (CLIENT, GATEWAY),
            Self::Gateway => (GATEWAY, CLIENT),
        }
    }
}

/// Setup steps of the child. It sends the number of the step that failed, or `Ready`, to the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Step {
    Ready,
    /// `unshare`.
    Namespace,
    /// Writing the maps of user and group IDs, which some systems forbid although they create user namespaces.
    UserMap,
    /// `open("/dev/net/tun")`.
    OpenTun,
    /// `TUNSETIFF`.
    MakeTun,
    /// Address, MTU, flags, route.
    Configure,
    Congestion,
    Execute,
}

const STEPS: [Step; 8] = [
    Step::Ready,
    Step::Namespace,
    Step::UserMap,
    Step::OpenTun,
    Step::MakeTun,
    Step::Configure,
    Step::Congestion,
    Step::Execute,
];

/// What the child does after setup.
pub(super) enum Role {
    Command(Arguments),
    /// Creates sockets in its namespace on request and passes them to the parent.
    Sockets,
}

/// A command's arguments and environment in the form that `execve` requires.
pub(super) struct Arguments {
    program: CString,
    candidates: Vec<CString>,
    words: Vec<CString>,
    environment: Vec<CString>,
}

impl Arguments {
    /// Prepares a command, which is searched in PATH unless its name contains a slash. Its environment is that of this
    /// process plus `added`.
    pub(super) fn new(words: &[String], added: &[(&str, String)]) -> Result<Self, BearerRunError> {
        let program = words.first().filter(|word| !word.is_empty()).ok_or(BearerRunError::NoCommand)?;
        let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| BearerRunError::NulInCommand);
        let candidates = if program.contains('/') {
            vec![text(OsStr::new(program))?]
        } else {
            let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
            let found = std::env::split_paths(&path).map(|folder| text(folder.join(program).as_os_str()));
            found.collect::<Result<_, _>>()?
        };
        let mut environment = Vec::new();
        for (name, value) in std::env::vars_os() {
            if added.iter().all(|(other, _)| name != OsStr::new(other)) {
                environment
                    .push(text(OsStr::from_bytes(&[name.as_bytes(), b"=", value.as_bytes()].concat()))?);
            }
        }
        for (name, value) in added {
            environment.push(text(OsStr::new(&format!("{name}={value}")))?);
        }
        Ok(Self {
            program: text(OsStr::new(program))?,
            candidates,
            words: words.iter().map(|word| text(OsStr::new(word))).collect::<Result<_, _>>()?,
            environment,
        })
    }
}

pub(super) struct EndPlan<'a> {
    pub(super) side: Side,
    pub(super) mtu_bytes: u32,
    pub(super) congestion_control: &'a str,
    pub(super) role: Role,
}

#[derive(Debug)]
pub struct End {
    process: libc::pid_t,
    control: OwnedFd,
    tun: OwnedFd,
    program: String,
    reaped: bool,
}

/// Length of a status message from the child: the step (byte 0) and the error number (bytes 4 to 7).
const STATUS_BYTES: usize = 8;

fn status(step: Step, errno: i32) -> [u8; STATUS_BYTES] {
    let mut bytes = [0; STATUS_BYTES];
    bytes[0] = step as u8;
    bytes[4..].copy_from_slice(&errno.to_ne_bytes());
    bytes
}

/// The error in a status message.
fn error_in([_, _, _, _, errno @ ..]: [u8; STATUS_BYTES]) -> io::Error {
    io::Error::from_raw_os_error(i32::from_ne_bytes(errno))
}

impl End {
    /// Creates an end. A child with a command waits for [`go`](Self::go).
    pub(super) fn make(plan: &EndPlan<'_>) -> Result<Self, BearerRunError> {
        let prepared = Prepared::new(plan)?;
        let (ours, theirs) = sys::socket_pair()?;
        // SAFETY: the child runs `child`, which makes system calls only and never returns; see there.
        let process = checked(unsafe { libc::fork() })?;
        if process == 0 {
            child(&prepared, theirs.as_raw_fd(), ours.as_raw_fd());
        }
        drop(theirs);
        let program = match &prepared.role {
            Role::Command(arguments) => arguments.program.to_string_lossy().into_owned(),
            Role::Sockets => String::new(),
        };
        let mut bytes = [0; STATUS_BYTES];
        let (got, tun) = match sys::receive_with(ours.as_raw_fd(), &mut bytes) {
            Ok(received) => received,
            Err(error) => {
                let _ = sys::kill(process, libc::SIGKILL);
                let _ = sys::ended(process, true);
                return Err(error.into());
            }
        };
        if let (STATUS_BYTES, Some(tun), 0) = (got, tun, bytes[0]) {
            return Ok(Self { process, control: ours, tun, program, reaped: false });
        }
        let _ = sys::kill(process, libc::SIGKILL);
        let _ = sys::ended(process, true);
        let step = STEPS.get(usize::from(bytes[0])).copied().unwrap_or(Step::Namespace);
        Err(BearerRunError::refused(step, error_in(bytes), plan.congestion_control))
    }

    /// Starts the command. Returns when it has been executed, or with the error of `execve`.
    pub(super) fn go(&mut self) -> Result<(), BearerRunError> {
        sys::send(self.control.as_raw_fd(), &[1])?;
        let mut bytes = [0; STATUS_BYTES];
        let (got, _) = sys::receive_with(self.control.as_raw_fd(), &mut bytes)?;
        if got == 0 {
            return Ok(());
        }
        Err(BearerRunError::Execute { program: self.program.clone(), error: error_in(bytes) })
    }

    /// Descriptor of the TUN device: reads return packets that the namespace's kernel sends, writes pass packets to it.
    pub fn tun(&self) -> &OwnedFd {
        &self.tun
    }

    pub fn process(&self) -> libc::pid_t {
        self.process
    }

    pub(super) fn is_command(&self) -> bool {
        !self.program.is_empty()
    }

    /// The child's control socket, over which [`ask_socket`] requests sockets.
    pub(super) fn control(&self) -> io::Result<OwnedFd> {
        self.control.try_clone()
    }

    /// Exit status of the child, if it has ended; see [`sys::ended`].
    pub(super) fn ended(&mut self, wait: bool) -> io::Result<Option<i32>> {
        if self.reaped {
            return Ok(None);
        }
        let ended = sys::ended(self.process, wait)?;
        self.reaped = ended.is_some();
        Ok(ended)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = sys::kill(self.process, libc::SIGKILL);
            let _ = sys::ended(self.process, true);
        }
    }
}

/// Everything that the child needs, allocated before the fork.
struct Prepared<'a> {
    role: &'a Role,
    own: Ipv4Addr,
    peer: Ipv4Addr,
    mtu_bytes: u32,
    uid_map: String,
    gid_map: String,
    ping_groups: String,
    congestion_control: &'a str,
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    parent: libc::pid_t,
    privileged: bool,
}

impl<'a> Prepared<'a> {
    fn new(plan: &'a EndPlan<'a>) -> Result<Self, BearerRunError> {
        let (own, peer) = plan.side.addresses();
        // SAFETY: these calls only return numbers.
        let (uid, gid, parent) = unsafe { (libc::geteuid(), libc::getegid(), libc::getpid()) };
        let pointers = |texts: &[CString]| {
            let ends = std::iter::once(std::ptr::null());
            texts.iter().map(|text| text.as_ptr()).chain(ends).collect::<Vec<_>>()
        };
        let (arguments, environment) = match &plan.role {
            Role::Command(command) => (pointers(&command.words), pointers(&command.environment)),
            Role::Sockets => (Vec::new(), Vec::new()),
        };
        Ok(Self {
            role: &plan.role,
            own,
            peer,
            mtu_bytes: plan.mtu_bytes,
            uid_map: format!("{uid} {uid} 1"),
            gid_map: format!("{gid} {gid} 1"),
            ping_groups: format!("{gid} {gid}"),
            congestion_control: plan.congestion_control,
            arguments,
            environment,
            parent,
            privileged: uid == 0,
        })
    }
}

/// The child's main function. It only makes system calls, because the parent may have had other threads.
fn child(prepared: &Prepared<'_>, control: RawFd, parents: RawFd) -> ! {
    let failed = match set_up(prepared, control, parents) {
        Ok(()) => match prepared.role {
            Role::Command(command) => (Step::Execute, execute(prepared, command)),
            Role::Sockets => serve_sockets(control),
        },
        Err(failed) => failed,
    };
    let _ = sys::send_with(control, &status(failed.0, failed.1), None);
    exit()
}

fn exit() -> ! {
    // SAFETY: ends the process immediately, without running exit handlers.
    unsafe { libc::_exit(127) }
}

type Failed = (Step, i32);

fn errno() -> i32 {
    // SAFETY: reads the thread's errno.
    unsafe { *libc::__errno_location() }
}

fn at(step: Step, result: libc::c_int) -> Result<libc::c_int, Failed> {
    if result < 0 { Err((step, errno())) } else { Ok(result) }
}

fn set_up(prepared: &Prepared<'_>, control: RawFd, parents: RawFd) -> Result<(), Failed> {
    // SAFETY: closes a descriptor that only this process' copy of the parent's end refers to; the rest touch no memory.
    unsafe {
        libc::close(parents);
        // The kernel kills this child when the parent ends.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != prepared.parent {
            exit();
        }
    }
    isolate(prepared)?;
    let tun = tun(prepared)?;
    if sys::send_with(control, &status(Step::Ready, 0), Some(tun)).is_err() {
        exit();
    }
    // SAFETY: closes this process' copy of `tun`, which would keep the device alive.
    unsafe { libc::close(tun) };
    let mut go = [0_u8];
    if let Role::Command(_) = prepared.role {
        // SAFETY: the buffer has room for the byte.
        let got = unsafe { libc::recv(control, go.as_mut_ptr().cast(), 1, 0) };
        if got != 1 {
            exit();
        }
    }
    Ok(())
}

/// Enters new namespaces. Root needs no user namespace for this, and keeps its access to the file system.
fn isolate(prepared: &Prepared<'_>) -> Result<(), Failed> {
    // SAFETY: changes the namespaces of this process, which has one thread.
    let bare = || unsafe { libc::unshare(libc::CLONE_NEWNET) };
    if prepared.privileged && bare() == 0 {
        return Ok(());
    }
    // SAFETY: as above.
    at(Step::Namespace, unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) })?;
    // The kernel requires this before it accepts a map of groups.
    put(c"/proc/self/setgroups", b"deny").map_err(|errno| (Step::UserMap, errno))?;
    put(c"/proc/self/uid_map", prepared.uid_map.as_bytes()).map_err(|errno| (Step::UserMap, errno))?;
    put(c"/proc/self/gid_map", prepared.gid_map.as_bytes()).map_err(|errno| (Step::UserMap, errno))
}

fn put(path: &CStr, text: &[u8]) -> Result<(), i32> {
    // SAFETY: the path ends in a zero; the buffer is valid for its length; the descriptor is closed once.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file < 0 {
            return Err(errno());
        }
        let written = libc::write(file, text.as_ptr().cast(), text.len());
        let error = errno();
        libc::close(file);
        if written < 0 { Err(error) } else { Ok(()) }
    }
}

/// Creates and configures the TUN device, and enables the loopback device.
fn tun(prepared: &Prepared<'_>) -> Result<RawFd, Failed> {
    // IPv6 is disabled, so that neighbour discovery and router solicitations do not use the link. On a kernel without
    // IPv6 this fails harmlessly.
    let _ = put(c"/proc/sys/net/ipv6/conf/all/disable_ipv6", b"1");
    let _ = put(c"/proc/sys/net/ipv6/conf/default/disable_ipv6", b"1");
    // TCP metrics of one connection must not affect the next one. Old kernels lack the other two settings; ping and low
    // ports then require root.
    let _ = put(c"/proc/sys/net/ipv4/tcp_no_metrics_save", b"1");
    let _ = put(c"/proc/sys/net/ipv4/ping_group_range", prepared.ping_groups.as_bytes());
    let _ = put(c"/proc/sys/net/ipv4/ip_unprivileged_port_start", b"0");
    put(c"/proc/sys/net/ipv4/tcp_congestion_control", prepared.congestion_control.as_bytes())
        .map_err(|errno| (Step::Congestion, errno))?;
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the path ends in a zero.
    let tun = at(Step::OpenTun, unsafe { libc::open(c"/dev/net/tun".as_ptr(), flags) })?;
    let mut request = request(DEVICE);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request is valid, its name ends in a zero.
    at(Step::MakeTun, unsafe { libc::ioctl(tun, libc::TUNSETIFF, &request) })?;
    // On failure the process ends, and the device with it.
    configure(prepared)?;
    Ok(tun)
}

fn request(device: &str) -> libc::ifreq {
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *place = byte as libc::c_char;
    }
    request
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut bytes = [0 as libc::c_char; 14];
    for (place, octet) in bytes[2..6].iter_mut().zip(address.octets()) {
        *place = octet as libc::c_char;
    }
    libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data: bytes }
}

/// Packets that the kernel may queue while the emulator is not scheduled.
const DEVICE_QUEUE_PACKETS: libc::c_int = 4000;

fn configure(prepared: &Prepared<'_>) -> Result<(), Failed> {
    let step = |result| at(Step::Configure, result);
    // SAFETY: touches no memory.
    let socket = step(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // The type of a request number depends on the C library.
    let ask = |what: libc::c_ulong, request: &libc::ifreq| {
        // SAFETY: each of these requests takes a valid ifreq.
        step(unsafe { libc::ioctl(socket, what as _, request) }).map(drop)
    };
    let up = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    let mut loopback = request("lo");
    loopback.ifr_ifru.ifru_flags = up;
    ask(libc::SIOCSIFFLAGS, &loopback)?;
    let mut device = request(DEVICE);
    device.ifr_ifru.ifru_mtu = prepared.mtu_bytes as libc::c_int;
    ask(libc::SIOCSIFMTU, &device)?;
    device.ifr_ifru.ifru_metric = DEVICE_QUEUE_PACKETS;
    // Only the host's root may change the queue length; otherwise the default of 500 packets remains.
    let _ = ask(libc::SIOCSIFTXQLEN, &device);
    device.ifr_ifru.ifru_addr = socket_address(prepared.own);
    ask(libc::SIOCSIFADDR, &device)?;
    device.ifr_ifru.ifru_dstaddr = socket_address(prepared.peer);
    ask(libc::SIOCSIFDSTADDR, &device)?;
    device.ifr_ifru.ifru_netmask = socket_address(Ipv4Addr::BROADCAST);
    ask(libc::SIOCSIFNETMASK, &device)?;
    device.ifr_ifru.ifru_flags = up;
    ask(libc::SIOCSIFFLAGS, &device)?;
    // SAFETY: all zeros is a valid rtentry.
    let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
    route.rt_dst = socket_address(Ipv4Addr::UNSPECIFIED);
    route.rt_genmask = socket_address(Ipv4Addr::UNSPECIFIED);
    route.rt_gateway = socket_address(prepared.peer);
    route.rt_flags = libc::RTF_UP | libc::RTF_GATEWAY;
    // SAFETY: the request takes a valid rtentry.
    step(unsafe { libc::ioctl(socket, libc::SIOCADDRT as _, &route) })?;
    // SAFETY: closed once; there is no other owner.
    unsafe { libc::close(socket) };
    Ok(())
}

/// Executes the command, which inherits the standard streams and the descriptors that the caller left open on exec.
fn execute(prepared: &Prepared<'_>, command: &Arguments) -> i32 {
    // SAFETY: a zeroed signal set is emptied before use; actions and masks are set for this process alone; the pointers
    // to arguments and environment end in null and outlive the call.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        // Interpreters ignore these signals, but commands expect the default. Handlers end with exec.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        let mut denied = libc::ENOENT;
        for candidate in &command.candidates {
            libc::execve(candidate.as_ptr(), prepared.arguments.as_ptr(), prepared.environment.as_ptr());
            if errno() != libc::ENOENT && errno() != libc::ENOTDIR {
                denied = errno();
            }
        }
        denied
    }
}

/// Kind of a socket that a child creates: a TCP listener or a UDP socket, bound to a port of its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum SocketKind {
    Tcp = 1,
    Udp = 2,
}

/// Requests a socket in the child's namespace, bound to a port (0: any).
pub(super) fn ask_socket(
    control: &OwnedFd,
    kind: SocketKind,
    address: Ipv4Addr,
    port: u16,
) -> io::Result<OwnedFd> {
    let mut asked = [0; 8];
    asked[0] = kind as u8;
    asked[2..4].copy_from_slice(&port.to_ne_bytes());
    asked[4..].copy_from_slice(&address.octets());
    sys::send(control.as_raw_fd(), &asked)?;
    let mut answer = [0; STATUS_BYTES];
    match sys::receive_with(control.as_raw_fd(), &mut answer)? {
        (STATUS_BYTES, Some(socket)) => Ok(socket),
        (STATUS_BYTES, None) => Err(error_in(answer)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Creates sockets on request until the control socket is closed. Keeps no other descriptor open.
fn serve_sockets(control: RawFd) -> ! {
    // SAFETY: moves the control socket to descriptor 3 and closes all others, also the standard streams: a reader of
    // the parent's output must not wait for this process. Signals of the terminal concern the command.
    unsafe {
        let control = if control == 3 { 3 } else { libc::dup2(control, 3) };
        libc::close(0);
        libc::close(1);
        libc::close(2);
        libc::syscall(libc::SYS_close_range, 4_u32, u32::MAX, 0_u32);
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGTSTP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        let mut asked = [0_u8; 8];
        while libc::recv(control, asked.as_mut_ptr().cast(), asked.len(), 0) == asked.len() as isize {
            match make_socket(&asked) {
                Ok(socket) => {
                    let _ = sys::send_with(control, &status(Step::Ready, 0), Some(socket));
                    libc::close(socket);
                }
                Err(errno) => {
                    let _ = sys::send_with(control, &status(Step::Configure, errno), None);
                }
            }
        }
    }
    exit()
}

fn make_socket(asked: &[u8; 8]) -> Result<RawFd, i32> {
    let listens = asked[0] == SocketKind::Tcp as u8;
    let kind = if listens { libc::SOCK_STREAM } else { libc::SOCK_DGRAM };
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: u16::from_ne_bytes([asked[2], asked[3]]).to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([asked[4], asked[5], asked[6], asked[7]]) },
        sin_zero: [0; 8],
    };
    // SAFETY: the address is valid for its length; on failure the socket is closed once.
    unsafe {
        let socket = libc::socket(libc::AF_INET, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0);
        if socket < 0 {
            return Err(errno());
        }
        let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        let bound = libc::bind(socket, std::ptr::from_ref(&address).cast(), length);
        if bound < 0 || listens && libc::listen(socket, 1024) < 0 {
            let error = errno();
            libc::close(socket);
            return Err(error);
        }
        Ok(socket)
    }
}
