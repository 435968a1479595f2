//! Errors of creating and running a bearer.

use super::Step;
use shakedown_link::BearerError;
use shakedown_pki::words;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum BearerRunError {
    #[error("no command; accepted: a command and its arguments after --")]
    NoCommand,
    #[error("the command or the environment contains a zero byte")]
    NulInCommand,
    #[error("{program}: {}", words(error))]
    Execute { program: String, error: io::Error },
    #[error("{0}")]
    Bearer(#[from] BearerError),
    #[error("no network namespace: {}; {}", words(error), namespace_remedy())]
    Namespace { error: io::Error },
    #[error(
        "the system creates user namespaces without privileges ({}); {}",
        words(error),
        namespace_remedy()
    )]
    UserMap { error: io::Error },
    #[error("/dev/net/tun: {}; {}", words(error), tun_remedy(error))]
    Tun { error: io::Error },
    #[error("no TUN device in the namespace: {}; {}", words(error), namespace_remedy())]
    MakeTun { error: io::Error },
    #[error("the TUN device could not be configured: {}", words(error))]
    Configure { error: io::Error },
    #[error("congestion control {name:?}: {}; accepted: {}", words(error), congestion_controls())]
    Congestion { name: String, error: io::Error },
    #[error("{}: {}", path.display(), words(error))]
    Pcap { path: PathBuf, error: io::Error },
    #[error("frame encryption: {0}")]
    Cipher(#[from] shakedown_link::cipher::CipherError),
    #[error("too few packets arrived; accepted: a longer measurement")]
    NothingArrived,
    #[error("{}", words(_0))]
    System(#[from] io::Error),
}

impl BearerRunError {
    pub(super) fn refused(step: Step, error: io::Error, congestion_control: &str) -> Self {
        match step {
            Step::Ready | Step::Namespace => Self::Namespace { error },
            Step::UserMap => Self::UserMap { error },
            Step::OpenTun => Self::Tun { error },
            Step::MakeTun => Self::MakeTun { error },
            Step::Configure | Step::Execute => Self::Configure { error },
            Step::Congestion => Self::Congestion { name: congestion_control.to_owned(), error },
        }
    }

    /// Exit status for this error: 127 or 126, as in a shell, if the command could not be executed; 2 for an invalid
    /// request; otherwise 1.
    pub fn exit_status(&self) -> i32 {
        match self {
            Self::Execute { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            Self::Execute { .. } => 126,
            Self::NoCommand | Self::NulInCommand | Self::Bearer(_) | Self::Congestion { .. } => 2,
            _ => 1,
        }
    }
}

fn setting(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// What to enable, from the system settings that forbid namespaces.
fn namespace_remedy() -> String {
    let is = |path: &str, value: &str| setting(path).is_some_and(|found| found == value);
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return "enable user namespaces: sysctl kernel.unprivileged_userns_clone=1".to_owned();
    }
    if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        return "AppArmor restricts user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a \
                profile with \"userns\" for this program"
            .to_owned();
    }
    if is("/proc/sys/user/max_user_namespaces", "0") {
        return "enable user namespaces: sysctl user.max_user_namespaces=1024".to_owned();
    }
    if setting("/proc/self/ns/user").is_none() && !std::path::Path::new("/proc/self/ns/user").exists() {
        return "this kernel was built without user namespaces (CONFIG_USER_NS)".to_owned();
    }
    "a container may forbid it: allow unshare (seccomp) and CAP_NET_ADMIN, or run it outside".to_owned()
}

fn tun_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "let users open it: chmod 0666 /dev/net/tun",
        io::ErrorKind::NotFound => {
            "make it: modprobe tun, or mkdir -p /dev/net && mknod -m 0666 /dev/net/tun c 10 200"
        }
        _ => "load its module: modprobe tun; a container must be given the device (--device /dev/net/tun)",
    }
}

fn congestion_controls() -> String {
    let path = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    setting(path).map_or_else(|| "reno".to_owned(), |found| found.replace(' ', ", "))
}
