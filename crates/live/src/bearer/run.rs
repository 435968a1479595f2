//! Runs a command behind a bearer.

use super::emulator::{Emulator, Ports, Report};
use super::end::{Arguments, End, EndPlan, GATEWAY, Role, Side};
use super::packet::LinkPlan;
use super::relay::{Relay, Running};
use super::signals::Signals;
use super::{BearerRunError, sys};
use serde::Deserialize;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPlan {
    pub link: LinkPlan,
    pub command: Vec<String>,
    /// A shell command that runs at the gateway, in place of this host's servers.
    #[serde(default)]
    pub pair: Option<String>,
    /// Congestion control of TCP at both ends.
    pub congestion_control: String,
    /// Path of a capture of the packets at the client's interface.
    #[serde(default)]
    pub pcap: Option<PathBuf>,
    /// Whether the capture may replace a file.
    #[serde(default)]
    pub replace: bool,
    /// Maximum time after the command's end in which data of its open connections may still arrive.
    pub linger_s: f64,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    /// The command's exit status, or 128 plus the number of the signal that ended it.
    pub status: i32,
    pub report: Report,
}

/// The variable in which commands find the gateway's address.
const GATEWAY_VARIABLE: &str = "BEARER_GATEWAY";

/// Maximum wait until the gateway's command listens; then the client's command starts anyway.
const LISTENS_WITHIN_NS: u64 = 10_000_000_000;
/// Interval of checks for listeners, open connections and remaining processes.
const LOOK_EVERY_NS: u64 = 20_000_000;
/// Time between SIGTERM and SIGKILL for processes that remain in the namespaces.
const GRACE_NS: u64 = 2_000_000_000;

/// Runs a command behind a bearer until the command ends. Signals are forwarded to the command.
///
/// # Errors
/// [`BearerRunError`]; no child is left running then.
pub fn run(plan: &RunPlan) -> Result<Outcome, BearerRunError> {
    let environment = [(GATEWAY_VARIABLE, GATEWAY.to_string())];
    let shell = |command: &String| vec!["/bin/sh".to_owned(), "-c".to_owned(), command.clone()];
    let server = plan.pair.as_ref().map(|pair| Arguments::new(&shell(pair), &environment)).transpose()?;
    let command = Arguments::new(&plan.command, &environment)?;
    let end = |side, role| {
        let mtu_bytes = plan.link.bearer.mtu_bytes;
        End::make(&EndPlan { side, mtu_bytes, congestion_control: &plan.congestion_control, role })
    };
    let mut gateway = end(Side::Gateway, server.map_or(Role::Sockets, Role::Command))?;
    let mut client = end(Side::Client, Role::Command(command))?;
    let (ports, _relay): (Ports, Option<Running>) = if plan.pair.is_none() {
        let (mut relay, running) = Relay::start(gateway.control()?)?;
        (Some(Box::new(move |kind, port| relay.open(kind, port))), Some(running))
    } else {
        (None, None)
    };
    let tuns = [client.tun().try_clone()?, gateway.tun().try_clone()?];
    let pcap = plan.pcap.as_deref().map(|path| (path, plan.replace));
    let mut emulator = Emulator::new(&plan.link, tuns, pcap, ports)?;
    let namespaces = [namespace(&client), namespace(&gateway)];
    let signals = Signals::collect()?;
    let _punctual = sys::Punctual::begin();
    if plan.pair.is_some() {
        gateway.go()?;
        await_listener(&mut emulator, &mut gateway)?;
    }
    client.go()?;
    let status = carry_until_end(&mut emulator, &signals, &mut client)?;
    linger(&mut emulator, &signals, &gateway, plan.linger_s)?;
    sweep(&mut emulator, &namespaces, &mut gateway)?;
    Ok(Outcome { status, report: emulator.finish()? })
}

/// Carries packets until the command ends; returns its exit status.
fn carry_until_end(
    emulator: &mut Emulator,
    signals: &Signals,
    command: &mut End,
) -> Result<i32, BearerRunError> {
    let process = sys::process_descriptor(command.process())?;
    loop {
        emulator.carry(&[process.as_raw_fd(), signals.descriptor()], None)?;
        while let Some((signal, from_terminal)) = signals.next() {
            if !from_terminal {
                let _ = sys::kill(command.process(), signal);
            }
        }
        if let Some(status) = command.ended(false)? {
            return Ok(status);
        }
    }
}

/// Carries packets until the gateway's command listens or ends, at most for `LISTENS_WITHIN_NS`.
fn await_listener(emulator: &mut Emulator, server: &mut End) -> Result<(), BearerRunError> {
    let begin_ns = sys::monotonic_ns();
    while sys::monotonic_ns() < begin_ns + LISTENS_WITHIN_NS {
        let over = |tcp, udp| {
            states(server, tcp).any(|state| state == TCP_LISTEN) || states(server, udp).next().is_some()
        };
        if over("tcp", "udp") || over("tcp6", "udp6") || server.ended(false)?.is_some() {
            break;
        }
        emulator.carry(&[], Some(sys::monotonic_ns() + LOOK_EVERY_NS))?;
    }
    Ok(())
}

const TCP_LISTEN: u8 = 10;
/// ESTABLISHED, SYN_RECV, FIN_WAIT1, FIN_WAIT2: the client's last data, or its FIN, has not arrived.
const TCP_AWAITS_CLIENT: [u8; 4] = [1, 3, 4, 5];

/// States of the sockets of an end, from the kernel's socket table.
fn states(end: &End, protocol: &str) -> impl Iterator<Item = u8> {
    let text = std::fs::read_to_string(format!("/proc/{}/net/{protocol}", end.process())).unwrap_or_default();
    let states = text.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().nth(3));
    states.filter_map(|state| u8::from_str_radix(state, 16).ok()).collect::<Vec<_>>().into_iter()
}

/// Carries what the command sent before it ended, as a modem would.
fn linger(
    emulator: &mut Emulator,
    signals: &Signals,
    gateway: &End,
    linger_s: f64,
) -> Result<(), BearerRunError> {
    let until_ns = sys::monotonic_ns() + (linger_s * 1e9) as u64;
    while sys::monotonic_ns() < until_ns {
        let is_open = states(gateway, "tcp").any(|state| TCP_AWAITS_CLIENT.contains(&state));
        if emulator.is_idle() && !is_open {
            break;
        }
        let look_ns = (sys::monotonic_ns() + LOOK_EVERY_NS).min(until_ns);
        if emulator.carry(&[signals.descriptor()], Some(look_ns))? && signals.next().is_some() {
            break;
        }
    }
    Ok(())
}

/// Network namespace of an end, under the kernel's name.
fn namespace(end: &End) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{}/ns/net", end.process())).ok()
}

/// Processes in any of the namespaces, except `but`.
fn processes_in(namespaces: &[Option<PathBuf>], but: libc::pid_t) -> Vec<libc::pid_t> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let processes = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<libc::pid_t>().ok());
    let is_inside = |process: &libc::pid_t| {
        let found = std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
        found.is_some() && namespaces.contains(&found)
    };
    processes.filter(|process| *process != but).filter(is_inside).collect()
}

/// Terminates the remaining processes in the namespaces, which disappear with their last process. A gateway child that
/// only creates sockets ends when its [`End`] is dropped.
fn sweep(
    emulator: &mut Emulator,
    namespaces: &[Option<PathBuf>],
    gateway: &mut End,
) -> Result<(), BearerRunError> {
    let sockets_only = if gateway.is_command() { 0 } else { gateway.process() };
    for (signal, grace_ns) in [(libc::SIGTERM, GRACE_NS), (libc::SIGKILL, GRACE_NS)] {
        let until_ns = sys::monotonic_ns() + grace_ns;
        let mut left = processes_in(namespaces, sockets_only);
        for process in &left {
            let _ = sys::kill(*process, signal);
        }
        while !left.is_empty() && sys::monotonic_ns() < until_ns {
            emulator.carry(&[], Some(sys::monotonic_ns() + LOOK_EVERY_NS))?;
            // A child that ended stays in the process table until it is reaped.
            gateway.ended(false)?;
            left = processes_in(namespaces, sockets_only);
        }
        if left.is_empty() {
            break;
        }
    }
    Ok(())
}
