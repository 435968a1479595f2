//! Metrics in Prometheus' text format (version 0.0.4), on a separate address.

use super::scrapers::{Answer, Scrapers};
use super::summary::failures;
use super::tally::{Durations, MessageTime, Tally, lock};
use crate::socket;
use mio::{Poll, Waker};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Upper bounds of a histogram's buckets, in seconds.
const BUCKETS_S: [f64; 15] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Maximum duration of a connection: longer than an answer takes on a busy machine, shorter than Prometheus waits.
const MAX_SCRAPE: Duration = Duration::from_secs(5);

/// A thread that answers requests for metrics.
pub struct Exporter {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Binds and begins to answer.
    pub fn start(address: SocketAddr, tallies: Arc<[Arc<Tally>]>, epoch: Instant) -> io::Result<Self> {
        let listener = socket::bind_tcp(address, 1)?.remove(0);
        let address = listener.local_addr()?;
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), Scrapers::WAKER)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let mut scrapers = Scrapers::new(poll, listener, MAX_SCRAPE)?;
        let answer = move |path: &[u8]| match path {
            b"/metrics" => Answer {
                status: "200 OK",
                kind: "text/plain; version=0.0.4; charset=utf-8",
                body: text(&tallies, epoch.elapsed()),
            },
            _ => Answer {
                status: "404 Not Found",
                kind: "text/plain",
                body: "metrics are at /metrics\n".to_owned(),
            },
        };
        let thread = std::thread::Builder::new().name("serve-metrics".into()).spawn(move || {
            // Only an error of the poll ends the thread; the server continues without metrics.
            while !stop.load(SeqCst) && scrapers.turn(&answer).is_ok() {}
        })?;
        Ok(Self { address, stopping, waker, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.stopping.store(true, SeqCst);
        if self.waker.wake().is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

pub fn text(tallies: &[Arc<Tally>], elapsed: Duration) -> String {
    let mut page = Page::default();
    let sum = |count: fn(&Tally) -> u64| tallies.iter().map(|tally| count(tally)).sum::<u64>();
    page.family("connections_accepted_total", "counter", "Connections accepted.");
    page.sample("connections_accepted_total", "", sum(|tally| tally.accepted.get()));
    page.family("connections_open", "gauge", "Connections open now.");
    page.sample("connections_open", "", sum(|tally| tally.open.get()));
    page.family("handshakes_in_progress", "gauge", "Connections whose handshake is in progress.");
    page.sample("handshakes_in_progress", "", sum(|tally| tally.handshaking.get()));
    page.family("handshakes_total", "counter", "Handshakes completed.");
    page.sample("handshakes_total", r#"{outcome="full"}"#, sum(|tally| tally.full.get()));
    page.sample("handshakes_total", r#"{outcome="resumed"}"#, sum(|tally| tally.resumed.get()));
    page.family("handshakes_failed_total", "counter", "Failed handshakes, by cause.");
    for (cause, count) in failures(tallies) {
        page.sample("handshakes_failed_total", &format!("{{cause=\"{}\"}}", label(&cause)), count);
    }
    page.family("accept_pauses_total", "counter", "Number of times that a limit paused accepting.");
    page.sample("accept_pauses_total", "", sum(|tally| tally.pauses.get()));
    page.family(
        "connections_idle_closed_total",
        "counter",
        "Established connections that were idle for too long.",
    );
    page.sample("connections_idle_closed_total", "", sum(|tally| tally.idle_closed.get()));
    page.family("answers_total", "counter", "Requests answered.");
    page.sample("answers_total", "", sum(|tally| tally.answers.get()));
    page.family("received_bytes_total", "counter", "Bytes received.");
    page.sample("received_bytes_total", "", sum(|tally| tally.received_bytes.get()));
    page.family("sent_bytes_total", "counter", "Bytes sent.");
    page.sample("sent_bytes_total", "", sum(|tally| tally.sent_bytes.get()));
    let (mut handshakes, mut busy) = (Durations::default(), Durations::default());
    let mut messages: BTreeMap<_, MessageTime> = BTreeMap::new();
    for tally in tallies {
        handshakes.merge(&lock(&tally.handshakes));
        busy.merge(&lock(&tally.busy));
        for (key, time) in lock(&tally.messages).iter() {
            let all = messages.entry(*key).or_default();
            all.count += time.count;
            all.sum_s += time.sum_s;
        }
    }
    page.histogram("handshake_seconds", "From accepting to the end of the handshake.", &handshakes);
    page.histogram("handshake_busy_seconds", "The stack's processing time for one handshake.", &busy);
    page.family("message_cpu_seconds", "summary", "CPU time of a message, in sampled handshakes.");
    for ((name, from), time) in &messages {
        let labels = format!("{{message=\"{name}\",from=\"{from}\"}}");
        page.sample("message_cpu_seconds_sum", &labels, time.sum_s);
        page.sample("message_cpu_seconds_count", &labels, time.count);
    }
    page.family("traces_lost_total", "counter", "Sampled handshakes that could not be saved.");
    page.sample("traces_lost_total", "", sum(|tally| tally.traces_lost.get()));
    page.family("uptime_seconds", "gauge", "Time since the server started.");
    page.sample("uptime_seconds", "", elapsed.as_secs_f64());
    if let Ok(usage) = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF) {
        let seconds = |time: nix::sys::time::TimeVal| {
            Duration::from_secs(u64::try_from(time.tv_sec()).unwrap_or(0)).as_secs_f64()
                + Duration::from_micros(u64::try_from(time.tv_usec()).unwrap_or(0)).as_secs_f64()
        };
        let cpu_s = seconds(usage.user_time()) + seconds(usage.system_time());
        page.plain("process_cpu_seconds_total", "counter", "CPU time of the process.", cpu_s);
    }
    page.text
}

/// A label's value without the characters that would end it.
fn label(value: &str) -> String {
    value.chars().filter(|letter| !matches!(letter, '"' | '\\' | '\n')).collect()
}

/// A page of metrics. `family` and `sample` add the prefix `shakedown_` to names.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = write!(self.text, "# HELP shakedown_{name} {help}\n# TYPE shakedown_{name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.text, "shakedown_{name}{labels} {value}");
    }

    fn plain(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }

    fn histogram(&mut self, name: &str, help: &str, durations: &Durations) {
        self.family(name, "histogram", help);
        for bound_s in BUCKETS_S {
            let within = durations.count_within(Duration::from_secs_f64(bound_s));
            self.sample(&format!("{name}_bucket"), &format!("{{le=\"{bound_s}\"}}"), within);
        }
        self.sample(&format!("{name}_bucket"), r#"{le="+Inf"}"#, durations.count());
        self.sample(&format!("{name}_sum"), "", durations.sum_s());
        self.sample(&format!("{name}_count"), "", durations.count());
    }
}
