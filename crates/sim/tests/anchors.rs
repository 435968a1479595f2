//! Published measurements of TCP and TLS 1.3: bad paths (Paquin, Stebila and Tamvada, ePrint 2019/1447; repository
//! xvzcf/pq-tls-benchmark, `emulation-exp/data`), and various first windows (manastasova/pq-tls-benchmark).

mod common;

use common::{bearer, class, constant, handshake, message, run, scenario};
use shakedown_link::{Bearer, Direction, Ns, Path, Unit};
use shakedown_sim::tcp::{Jiffies, Packet, State, Tcp, TcpConfig};
use shakedown_sim::{ArrivalSpec, HandshakeSpec, Outcome, Sender, TransportKind};

/// The published message lengths. The work of both hosts is 1.2 ms; in the fastest published cell, 0.9 to 1.7 ms.
fn tls13(hello: u32, share: u32, certificate: u32, signature: u32) -> HandshakeSpec {
    use Sender::{Client, Server};
    let mut handshake = handshake(
        TransportKind::Stream,
        vec![
            message(Client, "ClientHello", hello, 1, 1),
            message(Server, "ServerHello", share, 2, 1),
            message(Server, "EncryptedExtensions", 28, 2, 1),
            message(Server, "Certificate", certificate, 2, 1),
            message(Server, "CertificateVerify", signature, 2, 1),
            message(Server, "Finished", 58, 2, 1),
            message(Client, "Finished", 58, 3, 2),
        ],
    );
    handshake.write_bytes = Some(4096);
    handshake.messages[1].generate = constant(0.0006);
    handshake.messages[3].process = constant(0.0006);
    handshake
}

/// The number of segments after which the measured client assumes a loss and not reordering. Linux's default, three,
/// fits none of the cells in which the client sends several segments (Frodo's hello, seven): after a loss it always
/// waited a quarter of a round trip for reordered segments (RACK), and retransmitted one segment of a pair; the server
/// did neither. The published scripts do not explain this. It was not stored from other connections: all end with a
/// reset (`SO_LINGER` 0), after which Linux saves no metrics. Linux 6.18 does not do this with the same pairs.
const CLIENT_REORDERING: u32 = 6;

fn cell(handshake: &HandshakeSpec, trip_ms: f64, loss: f64, clients: u64) -> Outcome {
    cell_with(handshake, trip_ms, loss, clients, CLIENT_REORDERING)
}

/// The measured path is netem between interfaces of one machine, with `gso off gro off tso off`. Linux nevertheless
/// builds super-packets: in its first window, pairs of segments.
fn cell_with(
    handshake: &HandshakeSpec,
    trip_ms: f64,
    loss: f64,
    clients: u64,
    client_reordering: u32,
) -> Outcome {
    let path = bearer(&format!(
        r#"{{"up_bits_per_s": 1e9, "down_bits_per_s": 1e9, "traversal_s": {}, "loss": {loss},
             "super_packets": "cut"}}"#,
        trip_ms / 2e3
    ));
    let clients = if loss > 0.0 { clients } else { 1 };
    // Random arrivals, for all phases of the server's clock.
    let arrivals = ArrivalSpec::Poisson { per_s: 10.0 };
    let mut scenario = scenario(vec![class(handshake.clone(), path)], clients, arrivals);
    scenario.tcp.syn_linear_timeouts = 0;
    scenario.tcp.timer_floor_us = 8_000;
    scenario.tcp.one_clock = true;
    scenario.tcp.client_reordering = client_reordering;
    run(scenario)
}

/// 1 Gbit/s, and a Linux whose SYN timeouts double from the first on. Medians agree within 1 % or 1 ms, if no step is
/// near, and 95th percentiles within 10 %. Segments are lost independently here; in the measurements, those of hellos
/// with several segments were not: see the next test.
#[test]
fn bad_path_cells_match_the_measurements() {
    let p256 = || tls13(290, 123, 600, 80);
    let kyber = || tls13(1030, 860, 600, 80);
    let frodo = || tls13(9850, 9810, 600, 80);
    let qtesla = || tls13(290, 123, 17_600, 2_630);
    type Cell = (&'static str, HandshakeSpec, f64, f64, Option<f64>, Option<f64>);
    let cells: [Cell; 10] = [
        ("P-256", p256(), 195.7, 0.0, Some(393.1), None),
        ("P-256", p256(), 195.7, 0.05, Some(393.0), Some(1411.9)),
        ("P-256", p256(), 195.7, 0.2, Some(993.8), Some(4575.0)),
        ("P-256 and Kyber512", kyber(), 195.7, 0.0, Some(393.2), None),
        ("P-256 and Kyber512", kyber(), 195.7, 0.03, Some(393.0), Some(1414.7)),
        ("P-256 and Kyber512", kyber(), 195.7, 0.1, Some(393.3), Some(2426.9)),
        ("Frodo640", frodo(), 195.7, 0.0, Some(395.5), None),
        ("Frodo640", frodo(), 195.7, 0.1, None, Some(3027.0)),
        ("ECDSA P-256", p256(), 195.6, 0.0, Some(392.8), None),
        ("qTESLA-p-I", qtesla(), 195.6, 0.0, Some(588.4), None),
    ];
    let mut wrong = Vec::new();
    for (name, handshake, trip_ms, loss, median_ms, p95_ms) in cells {
        let found = cell(&handshake, trip_ms, loss, 60_000).report().handshake_s;
        // Without loss there is only one client: its time is every percentile.
        let p95 = found.p95.or(found.max).expect("ready") * 1e3;
        let p50 = found.p50.expect("ready") * 1e3;
        println!("{name}, {loss}: median {p50:.1} ({median_ms:?}), p95 {p95:.1} ({p95_ms:?})");
        if let Some(median_ms) = median_ms
            && (p50 - median_ms).abs() > (0.01 * median_ms).max(1.0)
        {
            wrong.push(format!("{name}, {loss}: median {p50:.1} ms, published {median_ms}"));
        }
        if let Some(p95_ms) = p95_ms
            && (p95 / p95_ms - 1.0).abs() > 0.1
        {
            wrong.push(format!("{name}, {loss}: p95 {p95:.1} ms, published {p95_ms}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A row of the tables: loss in per cent, and the times (ms) that 25, 37.5, 50, 62.5, 75, 85 and 95 % do not exceed.
type Line = (f64, [f64; 7]);

const SHARES: [f64; 7] = [0.25, 0.375, 0.5, 0.625, 0.75, 0.85, 0.95];

/// `prime256v1_195p719ms.csv`
const P256: [Line; 6] = [
    (0.0, [392.8, 393.0, 393.1, 393.2, 393.4, 393.6, 394.0]),
    (1.0, [392.7, 392.8, 392.9, 393.0, 393.1, 393.3, 393.9]),
    (5.0, [392.7, 392.9, 393.0, 393.1, 393.3, 992.2, 1411.9]),
    (10.0, [392.9, 393.0, 393.2, 393.5, 1001.5, 1407.6, 2009.7]),
    (15.0, [392.9, 393.1, 393.6, 1003.8, 1408.2, 1599.7, 3427.7]),
    (20.0, [393.1, 393.5, 993.8, 1406.1, 1595.5, 2438.5, 4575.0]),
];

/// `p256_kyber512_90s_195p719ms.csv`
const KYBER: [Line; 6] = [
    (0.0, [392.9, 393.0, 393.2, 393.3, 393.5, 393.7, 394.2]),
    (1.0, [392.8, 392.9, 393.0, 393.1, 393.3, 393.4, 394.1]),
    (5.0, [392.8, 392.9, 393.1, 393.2, 393.5, 1009.6, 1599.4]),
    (10.0, [393.0, 393.1, 393.3, 393.6, 1017.8, 1589.8, 2426.9]),
    (15.0, [393.1, 393.3, 393.6, 1010.8, 1421.1, 2014.4, 3623.1]),
    (20.0, [393.2, 393.6, 1013.6, 1414.3, 2019.1, 3419.9, 5756.9]),
];

/// `p256_frodo640aes_195p719ms.csv`
const FRODO: [Line; 6] = [
    (0.0, [394.9, 395.2, 395.5, 395.8, 396.2, 396.7, 397.8]),
    (1.0, [394.8, 395.0, 395.2, 395.5, 395.9, 396.6, 850.1]),
    (5.0, [395.1, 395.6, 396.1, 653.5, 853.2, 1396.6, 1998.9]),
    (10.0, [396.0, 652.6, 850.9, 1208.0, 1463.9, 2001.3, 3027.3]),
    (15.0, [847.1, 1179.8, 1436.3, 1853.2, 2464.4, 3377.1, 6195.0]),
    (20.0, [1183.9, 1491.8, 2011.7, 2651.3, 3691.9, 5657.5, 11906.7]),
];

/// `qteslapi_195p634ms.csv`
const QTESLA: [Line; 6] = [
    (0.0, [588.2, 588.3, 588.4, 588.6, 589.1, 589.5, 590.5]),
    (1.0, [588.2, 588.3, 588.4, 588.5, 588.8, 589.2, 1040.0]),
    (5.0, [588.3, 588.5, 588.8, 783.3, 979.3, 1347.6, 1999.4]),
    (10.0, [588.6, 783.6, 784.5, 1184.6, 1591.3, 1993.0, 3217.4]),
    (15.0, [783.9, 979.6, 1351.5, 1602.7, 2196.6, 3009.0, 5280.3]),
    (20.0, [979.6, 1379.5, 1654.6, 2268.1, 3204.8, 4663.3, 9151.3]),
];

/// `p256_frodo640aes_78p699ms.csv`
const FRODO_78: [Line; 6] = [
    (0.0, [161.0, 161.3, 161.6, 162.0, 162.5, 163.0, 164.2]),
    (1.0, [160.4, 160.6, 160.9, 161.2, 161.6, 162.2, 350.1]),
    (5.0, [160.8, 161.2, 161.8, 240.5, 350.0, 543.5, 1328.8]),
    (10.0, [161.6, 240.4, 349.7, 537.5, 804.8, 1354.4, 1962.3]),
    (15.0, [318.5, 427.5, 639.4, 920.4, 1374.6, 1792.5, 3906.5]),
    (20.0, [504.0, 710.7, 1116.3, 1513.1, 2166.6, 3585.7, 9689.6]),
];

/// `p256_frodo640aes_31p169ms.csv`
const FRODO_31: [Line; 6] = [
    (0.0, [65.4, 65.6, 65.9, 66.2, 66.6, 67.1, 68.0]),
    (1.0, [65.2, 65.4, 65.6, 65.9, 66.3, 66.9, 148.5]),
    (5.0, [65.6, 65.9, 66.5, 97.3, 148.3, 333.6, 1149.9]),
    (10.0, [66.6, 115.0, 148.4, 330.9, 463.4, 1096.3, 1604.1]),
    (15.0, [129.2, 182.8, 379.9, 571.2, 1147.3, 1473.0, 3844.7]),
    (20.0, [209.8, 404.9, 682.6, 1164.0, 1654.9, 2671.4, 8103.8]),
];

/// `qteslapi_31p086ms.csv`
const QTESLA_31: [Line; 6] = [
    (0.0, [94.4, 94.5, 94.6, 94.8, 95.2, 95.6, 96.5]),
    (1.0, [94.4, 94.5, 94.6, 94.7, 95.0, 95.5, 157.0]),
    (5.0, [94.5, 94.7, 95.0, 125.1, 156.5, 361.6, 1132.4]),
    (10.0, [94.8, 125.2, 126.2, 201.0, 405.9, 1121.2, 1626.3]),
    (15.0, [125.6, 156.7, 363.1, 455.7, 1142.4, 1420.5, 3275.9]),
    (20.0, [156.5, 362.9, 454.6, 1137.4, 1442.3, 2428.1, 5051.8]),
];

/// `dilithium2_195p634ms.csv`
const DILITHIUM: [Line; 6] = [
    (0.0, [392.6, 392.7, 392.9, 393.1, 393.3, 393.5, 394.0]),
    (1.0, [392.5, 392.7, 392.8, 392.9, 393.0, 393.1, 652.4]),
    (5.0, [392.6, 392.8, 392.9, 393.0, 650.2, 1193.2, 1797.7]),
    (10.0, [392.8, 392.9, 393.2, 845.2, 1393.8, 1790.7, 2684.8]),
    (15.0, [392.9, 588.4, 994.6, 1402.3, 1800.1, 2430.0, 4441.2]),
    (20.0, [393.3, 991.3, 1400.7, 1799.5, 2461.3, 3685.4, 7423.9]),
];

type Case = (&'static str, HandshakeSpec, f64, [Line; 6]);

fn cases() -> [Case; 8] {
    let frodo = || tls13(9850, 9810, 600, 80);
    let qtesla = || tls13(290, 123, 17_600, 2_630);
    [
        ("P-256", tls13(290, 123, 600, 80), 195.719, P256),
        ("P-256 and Kyber512", tls13(1030, 860, 600, 80), 195.719, KYBER),
        ("Frodo640", frodo(), 195.719, FRODO),
        ("Frodo640", frodo(), 78.699, FRODO_78),
        ("Frodo640", frodo(), 31.169, FRODO_31),
        ("Dilithium 2", tls13(290, 123, 3_420, 2_060), 195.634, DILITHIUM),
        ("qTESLA-p-I", qtesla(), 195.634, QTESLA),
        ("qTESLA-p-I", qtesla(), 31.086, QTESLA_31),
    ]
}

/// Handshakes in each published cell (`emulation-exp/code/kex/experiment.py`: 50 clients of 100), and in ours.
const THEIR_HANDSHAKES: f64 = 5_000.0;
const OUR_HANDSHAKES: u64 = 20_000;

/// Rows with times that differ by more than two points: name, round trip (ms), minimum loss (%). The published times
/// are longer: those of handshakes whose server loses several packets of its flight.
const NOT_MET: [(&str, f64, f64); 3] =
    [("P-256 and Kyber512", 195.719, 20.0), ("qTESLA-p-I", 195.634, 15.0), ("qTESLA-p-I", 31.086, 15.0)];
/// The maximum relative difference of these times, and the maximum number of times that differ.
const MAX_DIFFERENCE: f64 = 0.25;
const MAX_DEVIATIONS: usize = 12;

/// A published time that differs.
struct Deviation {
    description: String,
    name: &'static str,
    /// In a row of [`NOT_MET`], within `MAX_DIFFERENCE`, and not a 95th percentile.
    excused: bool,
}

/// The published times that differ. For seven shares at each loss, a time must lie between our times two points below
/// and above its share. The rows without loss give the work of the measured hosts and its variation.
fn deviations_with(client_reordering: u32) -> Vec<Deviation> {
    let mut deviations = Vec::new();
    for (name, mut handshake, trip_ms, lines) in cases() {
        let (_, quiet_ms) = lines[0];
        handshake.messages[1].generate = constant(0.0);
        let bare_s = cell(&handshake, trip_ms, 0.0, 1).ready.mean().expect("ready") * 1e-9;
        handshake.messages[1].generate = constant(quiet_ms[2] * 1e-3 - bare_s);
        let spread_ms = quiet_ms[6] - quiet_ms[0];
        for (loss, published) in lines {
            let outcome = cell_with(&handshake, trip_ms, loss / 100.0, OUR_HANDSHAKES, client_reordering);
            let at_ms = |share: f64| outcome.ready.quantile(share).expect("ready") * 1e-6;
            let ours: Vec<_> = SHARES.iter().map(|share| format!("{:.1}", at_ms(*share))).collect();
            println!("{name}, {trip_ms} ms, {loss} %: ours {}, published {published:?}", ours.join(" "));
            let not_met =
                NOT_MET.iter().any(|(of, trip, least)| (*of, *trip) == (name, trip_ms) && loss >= *least);
            for (share, theirs_ms) in SHARES.into_iter().zip(published) {
                let (low_ms, high_ms) = (at_ms(share - POINTS), at_ms(share + POINTS));
                let lies = |near: f64| {
                    let near = |ms: f64| (near * ms).max(1.0).max(spread_ms);
                    theirs_ms >= low_ms - near(low_ms) && theirs_ms <= high_ms + near(high_ms)
                };
                if lies(0.01) {
                    continue;
                }
                let description = format!(
                    "{name}, {trip_ms} ms, {loss} %: {theirs_ms} at {share}, ours {low_ms:.1} to {high_ms:.1}"
                );
                println!("{description}");
                deviations.push(Deviation {
                    description,
                    name,
                    excused: not_met && share != 0.95 && lies(MAX_DIFFERENCE),
                });
            }
        }
    }
    deviations
}

/// The maximum number of times that differ by chance if the model is exact.
fn by_chance() -> f64 {
    let in_a_line: f64 = SHARES
        .iter()
        .map(|share| {
            let variance = share * (1.0 - share) * (1.0 / THEIR_HANDSHAKES + 1.0 / OUR_HANDSHAKES as f64);
            libm::erfc(POINTS / (2.0 * variance).sqrt())
        })
        .sum();
    in_a_line * 5.0 * cases().len() as f64
}

/// Of 336 times, 280 with loss, one or two differ by chance. With Linux's three duplicates for the client a dozen more
/// differ, all in cells in which it sends several segments.
#[test]
fn all_shares_match_the_measurements() {
    let deviations = deviations_with(CLIENT_REORDERING);
    let wrong: Vec<_> =
        deviations.iter().filter(|one| !one.excused).map(|one| one.description.as_str()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(deviations.len() <= MAX_DEVIATIONS, "{} times differ", deviations.len());
    assert!((1.0..2.0).contains(&by_chance()), "{}", by_chance());
    let of_frodo = |all: &[Deviation]| all.iter().filter(|one| one.name == "Frodo640").count();
    let as_linux = deviations_with(TcpConfig::default().client_reordering);
    assert_eq!(of_frodo(&deviations), 0);
    assert!(of_frodo(&as_linux) >= 10, "{}", of_frodo(&as_linux));
    assert_eq!(as_linux.len() - of_frodo(&as_linux), deviations.len());
}

/// The maximum difference of shares.
const POINTS: f64 = 0.02;

/// Two hosts whose first windows differ, over one path.
struct Hosts {
    ends: [Tcp; 2],
    configs: [TcpConfig; 2],
    path: Path<Packet>,
    now: Ns,
    out: Vec<Packet>,
}

impl Hosts {
    fn new(windows: [u32; 2], bits_per_s: f64, trip_ms: f64) -> Self {
        let spec = bearer(&format!(
            r#"{{"up_bits_per_s": {bits_per_s}, "down_bits_per_s": {bits_per_s}, "traversal_s": {}}}"#,
            trip_ms / 2e3
        ));
        let configs = windows.map(|initial_window| TcpConfig { initial_window, ..TcpConfig::default() });
        let clock = Jiffies::new(250, Ns(1_234_567));
        let segment = configs[0].segment_bytes(1500);
        let mut out = Vec::new();
        let client = Tcp::connect(Ns::ZERO, clock, segment, &configs[0], &mut out);
        let server = Tcp::listen(clock, segment, &configs[1]);
        let path = Bearer::try_from(&spec).expect("a bearer").path(1, 0);
        let mut hosts = Self { ends: [client, server], configs, path, now: Ns::ZERO, out };
        hosts.flush(0);
        hosts
    }

    fn flush(&mut self, own: usize) {
        let direction = if own == 0 { Direction::Up } else { Direction::Down };
        for packet in self.out.drain(..) {
            let bytes = self.configs[own].wire_bytes(&packet);
            let _ = self.path.offer(direction, self.now, Unit::new(bytes, packet));
        }
    }

    /// One side writes, in pieces as long as s2n's records, until the other has received everything.
    fn transfer(&mut self, from: usize, bytes: u32) {
        let whole = self.ends[1 - from].received() + bytes;
        let mut left = bytes;
        while left > 0 {
            let record = left.min(8_192);
            self.ends[from].write(self.now, record, &self.configs[from], &mut self.out);
            left -= record;
        }
        self.flush(from);
        self.run_until(|hosts| hosts.ends[1 - from].received() == whole);
    }

    fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            let deadlines = self.ends.iter().map(Tcp::deadline);
            let next = deadlines.chain([self.path.next().map(|next| next.0)]).flatten().min();
            self.now = self.now.max(next.expect("something is under way"));
            while let Some((_, direction, unit)) = self.path.take(self.now) {
                let own = usize::from(direction == Direction::Up);
                let packet = unit.payload.expect("a packet");
                self.ends[own].receive(self.now, &packet, &self.configs[own], &mut self.out);
                self.ends[own].read(self.now, &self.configs[own], &mut self.out);
                self.flush(own);
            }
            for own in 0..2 {
                if self.ends[own].deadline().is_some_and(|due| due <= self.now) {
                    self.ends[own].timeout(self.now, &self.configs[own], &mut self.out);
                    self.flush(own);
                }
            }
        }
    }

    /// Milliseconds to connect, and to send the client's hello, both flights, and an answer to the client's flight.
    fn mutual(windows: [u32; 2], mbit_per_s: f64, trip_ms: f64, flight_bytes: u32) -> f64 {
        let mut hosts = Self::new(windows, mbit_per_s * 1e6, trip_ms);
        hosts.run_until(|hosts| hosts.ends[0].state() == State::Established);
        for (from, bytes) in [(0, 1_600), (1, flight_bytes), (0, flight_bytes), (1, 100)] {
            hosts.transfer(from, bytes);
            // The work of a host; in the published grid, all work together is 4 to 14 ms.
            hosts.now += Ns::from_ms(1);
        }
        hosts.now.as_secs_f64() * 1e3
    }
}

/// manastasova/pq-tls-benchmark, `test_pq_icwnd_server24_client10`: ML-KEM and ML-DSA on both sides, the server's first
/// window of 24 segments, the client's of 10. The lengths are not published: they are determined from the time at 1
/// Mbit/s and 35 ms, and must then give the times of the eight other cells.
#[test]
fn initial_window_grid_follows_from_one_cell() {
    let cells =
        [(35.0, [456.3, 145.5, 144.5]), (50.0, [500.9, 206.3, 206.1]), (150.0, [876.8, 612.8, 616.7])];
    let windows = [10, 24];
    let flight_bytes = (15_000..26_000)
        .step_by(50)
        .min_by_key(|bytes| (Hosts::mutual(windows, 1.0, 35.0, *bytes) * 1e3 - 456_300.0).abs() as u64)
        .expect("lengths");
    let mut wrong = Vec::new();
    for (trip_ms, published) in cells {
        for (mbit_per_s, published_ms) in [1.0, 100.0, 1000.0].into_iter().zip(published) {
            let ours = Hosts::mutual(windows, mbit_per_s, trip_ms, flight_bytes);
            println!("{flight_bytes} bytes, {trip_ms} ms, {mbit_per_s} Mbit/s: {ours:.1} ({published_ms})");
            if (ours / published_ms - 1.0).abs() > 0.05 {
                wrong.push(format!(
                    "{trip_ms} ms, {mbit_per_s} Mbit/s: {ours:.1} ms, published {published_ms}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{flight_bytes} bytes: {}", wrong.join("; "));
    // With 24 segments at both ends, one round trip less, as in the same source: 463 ms at 150.7 ms and 1 Gbit/s.
    let wide = Hosts::mutual([24, 24], 1000.0, 150.668, flight_bytes);
    assert!((wide / 463.1 - 1.0).abs() < 0.05, "{wide:.1} ms");
}
