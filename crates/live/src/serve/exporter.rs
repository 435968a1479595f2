//! Metrics in Prometheus's text format (version 0.0.4), on an address of their own.

use super::summary::failures;
use super::tally::{Durations, MessageTime, Tally, lock};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Upper ends of a histogram's buckets, in seconds.
const BUCKETS_S: [f64; 15] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// How long whoever asks may take: more than a busy machine keeps its processor from it, less than Prometheus waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// Who may ask at once; the others wait to be accepted. Each has a thread, so that silent ones keep nobody out.
const MAX_ASKING: usize = 32;
/// How often it is looked whether one of them is done.
const LOOK_EVERY: Duration = Duration::from_millis(5);
const MAX_REQUEST_BYTES: usize = 8_192;

/// A thread that answers requests for metrics.
pub struct Exporter {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Binds and begins to answer.
    ///
    /// # Errors
    /// What the system says of the address.
    pub fn start(address: SocketAddr, tallies: Arc<[Arc<Tally>]>, epoch: Instant) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let thread = std::thread::Builder::new().name("serve-metrics".into()).spawn(move || {
            // Each thread holds one more reference.
            let asking = Arc::new(());
            for stream in listener.incoming() {
                while Arc::strong_count(&asking) > MAX_ASKING && !stop.load(SeqCst) {
                    std::thread::sleep(LOOK_EVERY);
                }
                if stop.load(SeqCst) {
                    return;
                }
                match stream {
                    Ok(stream) => {
                        let (one, tallies) = (Arc::clone(&asking), Arc::clone(&tallies));
                        let answering = std::thread::Builder::new().name("metrics".into()).spawn(move || {
                            // Whoever goes away before the answer wanted none.
                            let _ = answer(stream, &tallies, epoch);
                            drop(one);
                        });
                        // No thread, no answer: there may be one in a moment.
                        drop(answering);
                    }
                    // No descriptors: there may be some in a moment.
                    Err(_) => std::thread::sleep(Duration::from_millis(50)),
                }
            }
        })?;
        Ok(Self { address, stopping, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.stopping.store(true, SeqCst);
        // Wakes the thread from accepting.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(match own {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        if TcpStream::connect_timeout(&own, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream, tallies: &[Arc<Tally>], epoch: Instant) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let left = || match until.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
        left => Ok(Some(left)),
    };
    let mut request = Vec::new();
    let mut chunk = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        stream.set_read_timeout(left()?)?;
        let read = stream.read(&mut chunk)?;
        if read == 0 || request.len() > MAX_REQUEST_BYTES {
            return Ok(());
        }
        request.extend_from_slice(&chunk[..read]);
    }
    let (status, kind, body) =
        if request.starts_with(b"GET /metrics ") || request.starts_with(b"GET /metrics?") {
            ("200 OK", "text/plain; version=0.0.4; charset=utf-8", text(tallies, epoch.elapsed()))
        } else {
            ("404 Not Found", "text/plain", "metrics are at /metrics\n".to_owned())
        };
    stream.set_write_timeout(left()?)?;
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// All metrics.
pub fn text(tallies: &[Arc<Tally>], elapsed: Duration) -> String {
    let mut page = Page::default();
    let sum = |count: fn(&Tally) -> u64| tallies.iter().map(|tally| count(tally)).sum::<u64>();
    let gauge = |count: fn(&Tally) -> i64| tallies.iter().map(|tally| count(tally)).sum::<i64>();
    page.family("connections_accepted_total", "counter", "Connections accepted.");
    page.sample("connections_accepted_total", "", sum(|tally| tally.accepted.get()));
    page.family("connections_open", "gauge", "Connections open now.");
    page.sample("connections_open", "", gauge(|tally| tally.open.get()));
    page.family("handshakes_in_progress", "gauge", "Connections whose handshake is not over.");
    page.sample("handshakes_in_progress", "", gauge(|tally| tally.handshaking.get()));
    page.family("handshakes_total", "counter", "Handshakes completed.");
    page.sample("handshakes_total", r#"{outcome="full"}"#, sum(|tally| tally.full.get()));
    page.sample("handshakes_total", r#"{outcome="resumed"}"#, sum(|tally| tally.resumed.get()));
    page.family("handshakes_failed_total", "counter", "Handshakes that came to nothing, by cause.");
    for (cause, count) in failures(tallies) {
        page.sample("handshakes_failed_total", &format!("{{cause=\"{}\"}}", label(&cause)), count);
    }
    page.family("accept_pauses_total", "counter", "Times at which accepting paused for want of room.");
    page.sample("accept_pauses_total", "", sum(|tally| tally.pauses.get()));
    page.family("connections_idle_closed_total", "counter", "Established connections silent too long.");
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
    page.histogram("handshake_busy_seconds", "What the stack worked for one handshake.", &busy);
    page.family("message_cpu_seconds", "summary", "CPU time of a message, in sampled handshakes.");
    for ((name, from), time) in &messages {
        let labels = format!("{{message=\"{name}\",from=\"{from}\"}}");
        page.sample("message_cpu_seconds_sum", &labels, time.sum_s);
        page.sample("message_cpu_seconds_count", &labels, time.count);
    }
    page.family("traces_lost_total", "counter", "Sampled handshakes that could not be kept.");
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

/// A label's value: what would end it is left out.
fn label(value: &str) -> String {
    value.chars().filter(|letter| !matches!(letter, '"' | '\\' | '\n')).collect()
}

/// A page being written. Every name begins with the program's.
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
