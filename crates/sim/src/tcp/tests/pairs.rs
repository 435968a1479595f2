//! Two ends of a connection over links that lose, duplicate and reorder packets: all written data arrives once and in
//! order, and the counters stay correct.

use crate::tcp::{Congestion, Jiffies, Packet, State, Tcp, TcpConfig};
use proptest::prelude::*;
use shakedown_link::{Bearer, BearerSpec, Direction, Ns, Path, SuperPackets, Unit};

struct Pair {
    client: Tcp,
    server: Tcp,
    path: Path<Packet>,
    config: TcpConfig,
    now: Ns,
    out: Vec<Packet>,
    steps: u32,
}

impl Pair {
    fn new(spec: &BearerSpec, config: TcpConfig, seed: u64) -> Self {
        let path = Bearer::try_from(spec).expect("valid").path(seed, 0);
        let segment = config.segment_bytes(spec.mtu_bytes);
        let super_packets = spec.super_packets;
        let clock = Jiffies::new(config.hz, Ns(seed % 4_000_000));
        let mut out = Vec::new();
        let client = Tcp::connect(Ns::ZERO, clock, segment, &config, &mut out);
        let server = Tcp::listen(clock, segment, &config);
        let [client, server] = [client, server].map(|end| end.with_super_packets(super_packets));
        let mut pair = Self { client, server, path, config, now: Ns::ZERO, out, steps: 0 };
        pair.flush(Direction::Up);
        pair
    }

    fn flush(&mut self, direction: Direction) {
        for packet in self.out.drain(..) {
            let _ = self.path.offer(direction, self.now, Unit::new(self.config.wire_bytes(&packet), packet));
        }
    }

    fn write(&mut self, client: bool, bytes: u32) {
        let (tcp, direction) =
            if client { (&mut self.client, Direction::Up) } else { (&mut self.server, Direction::Down) };
        tcp.write(self.now, bytes, &self.config, &mut self.out);
        self.flush(direction);
    }

    /// Processes the next event; false if there is none.
    fn step(&mut self) -> bool {
        let times = [self.path.next().map(|next| next.0), self.client.deadline(), self.server.deadline()];
        let Some(next) = times.into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        self.steps += 1;
        assert!(self.steps < 100_000, "no end: {:?} {:?}", self.client, self.server);
        if let Some((_, direction, unit)) = self.path.take(self.now) {
            let packet = unit.payload.expect("a packet");
            let tcp = if direction == Direction::Up { &mut self.server } else { &mut self.client };
            tcp.receive(self.now, &packet, &self.config, &mut self.out);
            tcp.read(self.now, &self.config, &mut self.out);
            self.flush(direction.reverse());
        }
        for direction in [Direction::Up, Direction::Down] {
            let tcp = if direction == Direction::Up { &mut self.client } else { &mut self.server };
            if tcp.deadline().is_some_and(|due| due <= self.now) {
                tcp.timeout(self.now, &self.config, &mut self.out);
            }
            self.flush(direction);
        }
        self.client.check();
        self.server.check();
        true
    }

    fn run_until(&mut self, mut done: impl FnMut(&Self) -> bool) -> bool {
        while !done(self) {
            if !self.step() {
                return false;
            }
        }
        true
    }
}

fn spec(text: &str) -> BearerSpec {
    serde_json::from_str(text).expect("a bearer")
}

#[test]
fn flight_without_loss_takes_the_computed_time() {
    // 12 Mbit/s, 35 ms one way: SYN and SYN-ACK of 60 bytes, then 10,000 bytes: six segments of 1448 and a rest.
    let bearer = spec(r#"{"up_bits_per_s": 12e6, "down_bits_per_s": 12e6, "traversal_s": 0.035}"#);
    let mut pair = Pair::new(&bearer, TcpConfig::default(), 0);
    assert!(pair.run_until(|pair| pair.client.state() == State::Established));
    let connect_ns = 2 * (40_000 + 35_000_000);
    assert_eq!(pair.now, Ns(connect_ns));
    pair.write(true, 300);
    assert!(pair.run_until(|pair| pair.server.received() == 300));
    // The acknowledgement of the SYN-ACK is sent first.
    let request_ns = (52 + 352) * 8 * 1_000_000_000 / 12_000_000 + 35_000_000;
    assert_eq!(pair.now.0, connect_ns + request_ns + 1 - 1);
    pair.write(false, 10_000);
    assert!(pair.run_until(|pair| pair.client.received() == 10_000));
    // Seven headers, and again an acknowledgement first.
    let answer_ns = (52 + 10_000 + 7 * 52) * 8 * 1_000_000_000 / 12_000_000 + 35_000_000;
    assert!(pair.now.0.abs_diff(connect_ns + request_ns + answer_ns) < 5, "{}", pair.now);
    assert_eq!(pair.client.retransmissions() + pair.server.retransmissions(), 0);
}

#[test]
fn retransmitted_syn_and_syn_ack_are_counted() {
    // 1.2 s one way: the SYN is repeated after 1 s; the SYN-ACK when a repeated SYN arrives, and by its own timer.
    let bearer = spec(r#"{"up_bits_per_s": 1e9, "down_bits_per_s": 1e9, "traversal_s": 1.2}"#);
    let mut pair = Pair::new(&bearer, TcpConfig::default(), 0);
    assert!(pair.run_until(|pair| pair.server.state() == State::Established));
    assert_eq!(pair.client.retransmissions(), 2, "at about 1 and 2 s of 2.4");
    assert!(pair.server.retransmissions() >= 2, "{}", pair.server.retransmissions());
}

proptest! {
    #![proptest_config(ProptestConfig::default())]
    /// Unless an end gives up after its maximum number of timeouts.
    #[test]
    fn all_written_bytes_arrive(
        loss in prop_oneof![Just(0.0), 0.0..0.4],
        duplication in prop_oneof![Just(0.0), 0.0..0.3],
        reordering in prop_oneof![Just(0.0), 0.0..0.3],
        delay_s in 0.0005..0.4,
        spread_s in prop_oneof![Just(0.0), 0.0..0.05],
        bits_per_s in prop_oneof![Just(9600.0), 3e4..1e8],
        queue_bytes in prop_oneof![Just(None), (6_000_u64..40_000).prop_map(Some)],
        writes in prop::collection::vec((any::<bool>(), 1_u32..30_000), 1..5),
        timestamps in prop::bool::weighted(0.8),
        cubic in any::<bool>(),
        super_packets in prop::sample::select(&[SuperPackets::None, SuperPackets::Cut, SuperPackets::Whole][..]),
        seed in any::<u32>(),
    ) {
        let mut bearer = spec(r#"{"up_bits_per_s": 1, "down_bits_per_s": 1, "traversal_s": 0.1}"#);
        bearer.up_bits_per_s = Some(bits_per_s);
        bearer.down_bits_per_s = Some(bits_per_s);
        bearer.traversal_s = delay_s;
        bearer.traversal_sd_s = spread_s;
        bearer.traversal_reorders = reordering > 0.1;
        bearer.loss = loss;
        bearer.duplication = duplication;
        bearer.reordering = reordering;
        bearer.reordering_s = delay_s / 2.0;
        bearer.queue_bytes = queue_bytes;
        bearer.super_packets = super_packets;
        let congestion = if cubic { Congestion::Cubic } else { Congestion::Reno };
        let config = TcpConfig { timestamps, congestion, ..TcpConfig::default() };
        let mut pair = Pair::new(&bearer, config, seed.into());
        let opened = pair.run_until(|pair| pair.client.state() != State::SynSent);
        prop_assert!(opened);
        if pair.client.state() == State::Established {
            let (mut up, mut down) = (0, 0);
            for (client, bytes) in &writes {
                pair.write(*client, *bytes);
                if *client { up += bytes } else { down += bytes }
                let arrived = pair.run_until(|pair| {
                    let ended = |tcp: &Tcp| matches!(tcp.state(), State::TimedOut | State::Reset);
                    (pair.server.received() == up && pair.client.received() == down)
                        || ended(&pair.client) || ended(&pair.server)
                });
                prop_assert!(arrived, "stuck: {:?} {:?}", pair.client, pair.server);
                prop_assert!(pair.server.received() <= up && pair.client.received() <= down);
                let given_up = [&pair.client, &pair.server].into_iter().any(|tcp| tcp.state() == State::TimedOut);
                if !given_up {
                    prop_assert_eq!((pair.server.received(), pair.client.received()), (up, down));
                }
            }
        }
    }
}
