//! Scripts for one end of a TCP connection, line by line: packets that arrive, and packets expected at given times.
//!
//! `0.100 < . ack 1 sack 1001:2001`   a packet arrives (`S`, `S.`, `.`, or `FROM:TO` data)
//! `0.100 > 1:2001 together 2`        as the next line, with two segments in one packet
//! `0.100 > 1:1001`                   a segment is sent, within max(4 ms, 12.5 % of the time since the line before);
//!                                    a range of several segments expects each of them; `S`, `S.`, `. ack N`, `F`
//! `0.100 write 4000`, `0.100 finish` actions of the application
//! `0.100 window 7`, `threshold 7`, `state Recovery`
//! `2.000 quiet`                      nothing was sent since
//!
//! The tolerance, and that it counts from the line before, are packetdrill's. Times are seconds since the start.

use crate::tcp::{ACK, FIN, Jiffies, Packet, SYN, State, Tcp, TcpConfig};
use shakedown_link::Ns;
use std::collections::VecDeque;

pub struct Script {
    pub tcp: Tcp,
    config: TcpConfig,
    now: Ns,
    /// How much later than written the script runs: kernel timers are late, and so are all lines after them.
    lag: Ns,
    sent: VecDeque<(Ns, Packet)>,
    /// The peer sends timestamps.
    timestamps: bool,
}

/// A host without timestamps, with 1000 jiffies per second, as in packetdrill's scripts.
pub fn plain() -> TcpConfig {
    TcpConfig { timestamps: false, hz: 1000, ..TcpConfig::default() }
}

impl Script {
    pub fn client(config: TcpConfig, segment_bytes: u32) -> Self {
        let mut out = Vec::new();
        let clock = Jiffies::new(config.hz, Ns::ZERO);
        let tcp = Tcp::connect(Ns::ZERO, clock, segment_bytes, &config, &mut out);
        let sent = out.into_iter().map(|packet| (Ns::ZERO, packet)).collect();
        Self { tcp, config, now: Ns::ZERO, lag: Ns::ZERO, sent, timestamps: config.timestamps }
    }

    pub fn server(config: TcpConfig, segment_bytes: u32) -> Self {
        let clock = Jiffies::new(config.hz, Ns::ZERO);
        let tcp = Tcp::listen(clock, segment_bytes, &config);
        Self {
            tcp,
            config,
            now: Ns::ZERO,
            lag: Ns::ZERO,
            sent: VecDeque::new(),
            timestamps: config.timestamps,
        }
    }

    /// A server's end that has just been established, with this round-trip time of the handshake.
    pub fn established(config: TcpConfig, segment_bytes: u32, round_trip_s: f64) -> Self {
        let mut script = Self::server(config, segment_bytes);
        script.run(&format!("0 < S\n0 > S.\n{round_trip_s} < . ack 1"));
        script
    }

    pub fn run(&mut self, lines: &str) {
        for line in lines.lines().map(|line| line.split("//").next().unwrap_or("").trim()) {
            if !line.is_empty() {
                self.line(line);
            }
        }
    }

    fn line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let time: f64 = words.next().and_then(|time| time.parse().ok()).expect("a line begins with a time");
        let at = Ns::from_secs_f64(time) + self.lag;
        assert!(at >= self.now, "{line}: time goes back");
        let verb = words.next().expect("a verb");
        let rest: Vec<&str> = words.collect();
        if verb == ">" {
            self.expect(at, line, &rest);
            return;
        }
        self.advance(at, line);
        let mut out = Vec::new();
        match (verb, rest.as_slice()) {
            ("<", rest) => {
                let packet = self.packet(rest);
                self.tcp.receive(at, &packet, &self.config, &mut out);
            }
            ("write", [bytes]) => {
                let bytes = bytes.parse().expect("a number of bytes");
                self.tcp.write(at, bytes, &self.config, &mut out);
            }
            ("finish", []) => self.tcp.finish(at, &self.config, &mut out),
            ("read", []) => self.tcp.read(at, &self.config, &mut out),
            ("window", [segments]) => assert_eq!(self.tcp.window().to_string(), *segments, "{line}"),
            ("threshold", [segments]) => {
                assert_eq!(
                    self.tcp.threshold().map(|number| number.to_string()).as_deref(),
                    Some(*segments),
                    "{line}"
                );
            }
            ("state", [state]) => assert_eq!(format!("{:?}", self.tcp.recovery()), *state, "{line}"),
            ("gone", []) => assert_eq!(self.tcp.state(), State::TimedOut, "{line}"),
            ("quiet", []) => assert_eq!(self.sent.front(), None, "{line}"),
            _ => panic!("{line}: not a line of a script"),
        }
        self.sent.extend(out.into_iter().map(|packet| (at, packet)));
    }

    /// Lets timers expire until a time; packets that no line expects are an error.
    fn advance(&mut self, at: Ns, line: &str) {
        assert_eq!(self.sent.front(), None, "before {line}: sent, but not expected");
        while let Some(due) = self.tcp.deadline().filter(|due| *due <= at) {
            self.fire(due);
            assert_eq!(self.sent.front(), None, "before {line}: sent, but not expected");
        }
        self.now = at;
    }

    fn fire(&mut self, due: Ns) {
        let mut out = Vec::new();
        self.tcp.timeout(due, &self.config, &mut out);
        self.sent.extend(out.into_iter().map(|packet| (due, packet)));
    }

    fn expect(&mut self, at: Ns, line: &str, rest: &[&str]) {
        let tolerance = Ns(4_000_000.max((at - self.now).0 / 8));
        let range = rest[0].split_once(':').map(|(from, to)| (number(from), number(to)));
        let mut reached = range.map_or(0, |(from, _)| from);
        loop {
            while self.sent.is_empty() {
                let due = self.tcp.deadline().filter(|due| *due <= at + tolerance);
                let due = due.unwrap_or_else(|| {
                    panic!("{line}: nothing was sent; next timer {:?}", self.tcp.deadline())
                });
                self.fire(due);
            }
            let (sent_at, packet) = self.sent.pop_front().expect("not empty");
            if let Some(place) = rest.iter().position(|word| *word == "together") {
                assert_eq!(packet.segments(), number(rest[place + 1]), "{line}: {packet:?}");
            }
            let off = Ns(sent_at.0.abs_diff(at.0));
            assert!(off <= tolerance, "{line}: sent at {sent_at}: {packet:?}");
            if let Some((_, to)) = range {
                assert_eq!(packet.seq, reached, "{line}: {packet:?}");
                assert!(packet.end() <= to && packet.bytes > 0, "{line}: {packet:?}");
                reached = packet.end();
            } else {
                let flags = match rest[0] {
                    "S" => SYN,
                    "S." => SYN | ACK,
                    "F" => FIN | ACK,
                    "." => ACK,
                    other => panic!("{line}: {other}"),
                };
                assert_eq!((packet.flags, packet.bytes), (flags, 0), "{line}: {packet:?}");
            }
            if let Some(place) = rest.iter().position(|word| *word == "ack") {
                assert_eq!(packet.ack, number(rest[place + 1]), "{line}: {packet:?}");
            }
            if let Some(place) = rest.iter().position(|word| *word == "sack") {
                let blocks: Vec<_> = rest[place + 1].split(',').map(block).collect();
                assert_eq!(packet.sack(), blocks, "{line}");
            }
            if let Some(place) = rest.iter().position(|word| *word == "echo") {
                assert_eq!(packet.echo, number(rest[place + 1]), "{line}: {packet:?}");
            }
            if range.is_none_or(|(_, to)| reached == to) {
                self.now = self.now.max(sent_at);
                self.lag += sent_at.since(at);
                return;
            }
        }
    }

    fn packet(&self, words: &[&str]) -> Packet {
        let mut packet = Packet { flags: ACK, seq: 1, ..Packet::default() };
        match words[0] {
            "S" => packet = Packet { flags: SYN, seq: 0, ..Packet::default() },
            "S." => packet = Packet { flags: SYN | ACK, seq: 0, ack: 1, ..Packet::default() },
            "." => {}
            data => {
                let (from, to) = block(data);
                packet.seq = from;
                packet.bytes = to - from;
            }
        }
        let mut rest = words[1..].iter();
        while let (Some(word), Some(value)) = (rest.next(), rest.next()) {
            match *word {
                "ack" => packet.ack = number(value),
                "echo" => packet.echo = number(value),
                "more" => packet.more = number(value) as u8,
                "seq" => packet.seq = number(value),
                "stamp" => packet.stamp = number(value),
                "sack" => {
                    for (place, text) in packet.sack.iter_mut().zip(value.split(',')) {
                        *place = block(text);
                        packet.blocks += 1;
                    }
                }
                other => panic!("{other}: not a field of a packet"),
            }
        }
        if self.timestamps {
            packet.stamp = packet.stamp.max(1);
        }
        if packet.ack == 0 && packet.flags & ACK != 0 {
            packet.ack = 1;
        }
        packet
    }
}

fn number(text: &str) -> u32 {
    text.parse().unwrap_or_else(|_| panic!("{text}: not a number"))
}

fn block(text: &str) -> (u32, u32) {
    let (from, to) = text.split_once(':').expect("FROM:TO");
    (number(from), number(to))
}
