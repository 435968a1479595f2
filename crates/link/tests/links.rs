//! Compares links with arithmetic: times to the nanosecond, accounting of units and bytes, closed forms of loss.

use proptest::prelude::*;
use shakedown_link::{
    Bearer, BearerSpec, Delay, Direction, Distribution, DistributionSpec, Drop, Duplication, Encapsulation,
    Fate, Link, Loss, LossProcess, Mtu, Ns, Path, Probability, Purpose, Rate, RateValue, Stream, Unit,
};
use std::collections::VecDeque;

fn rate(bits_per_s: f64) -> RateValue {
    RateValue::from_bits_per_s(bits_per_s).expect("a rate")
}

fn stream(purpose: Purpose) -> Stream {
    Stream::of(1, 1, purpose)
}

/// A unit of which only the length is known.
fn sized(bytes: u32) -> Unit {
    Unit { payload: None, ..Unit::new(bytes, Vec::new()) }
}

fn constant(delay: Ns) -> Delay {
    Delay::new(Distribution::constant(delay), stream(Purpose::DELAY_UP))
}

/// A link without cost: offered units are due immediately, in order.
#[derive(Default)]
struct Null {
    held: VecDeque<(Ns, Unit)>,
}

impl Link for Null {
    fn offer(&mut self, at: Ns, unit: Unit) -> Fate {
        let at = self.held.back().map_or(at, |(last, _)| at.max(*last));
        self.held.push_back((at, unit));
        Fate::Accepted
    }

    fn next(&self) -> Option<Ns> {
        self.held.front().map(|(at, _)| *at)
    }

    fn take(&mut self, until: Ns) -> Option<(Ns, Unit)> {
        if self.next()? <= until { self.held.pop_front() } else { None }
    }
}

/// Loses the second unit that it is offered.
struct LosesSecond {
    offered: u32,
    inner: Null,
}

impl Link for LosesSecond {
    fn offer(&mut self, at: Ns, unit: Unit) -> Fate {
        self.offered += 1;
        if self.offered == 2 { Fate::Dropped(Drop::Lost) } else { self.inner.offer(at, unit) }
    }

    fn next(&self) -> Option<Ns> {
        self.inner.next()
    }

    fn take(&mut self, until: Ns) -> Option<(Ns, Unit)> {
        self.inner.take(until)
    }
}

fn spec() -> BearerSpec {
    serde_json::from_str(r#"{"up_bits_per_s": 9600, "down_bits_per_s": 9600, "traversal_s": 0.391}"#)
        .expect("valid")
}

fn path(spec: &BearerSpec) -> Path<Vec<u8>> {
    Bearer::try_from(spec).expect("valid").path(1, 1)
}

/// All units in flight.
fn drain(link: &mut impl Link) -> Vec<(Ns, Unit)> {
    std::iter::from_fn(|| link.take(Ns::MAX)).collect()
}

#[test]
fn a_unit_takes_length_over_rate_plus_delay_to_the_nanosecond() {
    // 60 bytes at 9.6 kbit/s: 50 ms each way; the second waits for the first.
    let mut link = Rate::new(rate(9600.0), constant(Ns::from_ms(391)));
    for _ in 0..2 {
        assert_eq!(link.offer(Ns::from_ms(7), sized(60)), Fate::Accepted);
    }
    assert_eq!(link.next(), Some(Ns::from_ms(7 + 50 + 391)));
    let times: Vec<Ns> = drain(&mut link).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [Ns::from_ms(448), Ns::from_ms(498)]);
    assert_eq!(link.busy(), Ns::from_ms(100));
}

#[test]
fn a_million_packets_at_an_odd_rate_do_not_drift() {
    let mut link = Rate::new(rate(9601.0), Null::default());
    let mut last = Ns::ZERO;
    for _ in 0..1_000_000 {
        assert_eq!(link.offer(Ns::ZERO, sized(1500)), Fate::Accepted);
        last = link.take(Ns::MAX).expect("accepted").0;
    }
    // 10⁶ · 1500 · 8 · 10⁹ / 9601, rounded down once and not a million times.
    assert_eq!(last, Ns((12_000_000_000_u128 * 1_000_000_000 / 9601) as u64));
}

#[test]
fn late_polling_does_not_change_delivery_times() {
    let make = || Rate::new(rate(1e6), constant(Ns::from_ms(5)));
    let (mut prompt, mut late) = (make(), make());
    let mut seen = Vec::new();
    for number in 0..100 {
        let at = Ns(number * 700_000);
        for link in [&mut prompt, &mut late] {
            assert_eq!(link.offer(at, sized(100)), Fate::Accepted);
        }
        while let Some((at, _)) = prompt.take(at) {
            seen.push(at);
        }
    }
    seen.extend(drain(&mut prompt).iter().map(|(at, _)| *at));
    assert_eq!(seen, drain(&mut late).iter().map(|(at, _)| *at).collect::<Vec<_>>());
}

#[test]
fn a_full_queue_drops_from_the_tail() {
    let offer = |bytes, count| {
        let mut link = Rate::new(rate(8000.0), Null::default()).bounded(bytes);
        (0..count).map(|_| link.offer(Ns::ZERO, sized(1000))).filter(|fate| *fate == Fate::Accepted).count()
    };
    assert_eq!(offer(Some(3999), 10), 3);
    assert_eq!(offer(Some(4000), 10), 4);
    assert_eq!(offer(None, 10), 10);
    let mut link = Rate::new(rate(8000.0), Null::default()).bounded(Some(1000));
    assert_eq!(link.offer(Ns::ZERO, sized(1000)), Fate::Accepted);
    assert_eq!(link.offer(Ns(999_999_999), sized(1000)), Fate::Dropped(Drop::QueueFull));
    assert_eq!(link.offer(Ns::from_s(1), sized(1000)), Fate::Accepted);
}

#[test]
fn bursts_match_computed_mean_and_length() {
    let probability = |value| Probability::new(value).expect("a probability");
    let (worsens, recovers) = (0.01, 0.2);
    let process =
        LossProcess::Bursts { worsens: probability(worsens), recovers: probability(recovers), is_bad: false };
    let mut link = Loss::new(process, stream(Purpose::LOSS_UP), Null::default());
    let lost: Vec<bool> =
        (0..2_000_000).map(|_| link.offer(Ns::ZERO, sized(1)) == Fate::Dropped(Drop::Lost)).collect();
    let count = lost.iter().filter(|lost| **lost).count() as f64;
    let mean = worsens / (worsens + recovers);
    assert!((count / lost.len() as f64 / mean - 1.0).abs() < 0.03, "{count} lost, expected share {mean}");
    let runs = lost.windows(2).filter(|pair| pair[0] && !pair[1]).count() as f64;
    assert!(
        (count / runs * recovers - 1.0).abs() < 0.03,
        "bursts of {}, expected {}",
        count / runs,
        1.0 / recovers
    );
}

#[test]
fn order_is_kept_unless_reordering_is_enabled() {
    let jitter = Distribution::try_from(&DistributionSpec::Uniform { minimum_s: 0.01, maximum_s: 0.05 })
        .expect("valid");
    let order = |mut link: Delay| -> Vec<u32> {
        for number in 0..200 {
            assert_eq!(link.offer(Ns::from_ms(number.into()), sized(number)), Fate::Accepted);
        }
        let taken = drain(&mut link);
        assert!(taken.windows(2).all(|pair| pair[0].0 <= pair[1].0), "logical times go back");
        taken.iter().map(|(_, unit)| unit.bytes).collect()
    };
    let sorted: Vec<u32> = (0..200).collect();
    let delay = || Delay::new(jitter.clone(), stream(Purpose::DELAY_UP));
    assert_eq!(order(delay()), sorted);
    assert_ne!(order(delay().overtaking()), sorted);
    assert_eq!(order(delay().holding(Ns::from_s(1))), sorted);
    let some = Probability::new(0.1).expect("a probability");
    let constant = constant(Ns::from_ms(10)).reordering(some, Ns(2_500_000), stream(Purpose::DELAY_UP));
    let reordered = order(constant);
    // Held back by 2.5 ms: overtaken by the two units after it (unless these are held back, too).
    let (place, unit) = reordered
        .iter()
        .enumerate()
        .find(|(place, unit)| **unit as usize != *place)
        .expect("some are held back");
    assert_eq!(*unit as usize, place + 1);
    assert_eq!(reordered[place + 2] as usize, place);
}

#[test]
fn held_delay_is_the_same_during_its_interval() {
    let jitter = Distribution::try_from(&DistributionSpec::Exponential { minimum_s: 0.01, mean_s: 0.05 })
        .expect("valid");
    let mut link: Delay = Delay::new(jitter, stream(Purpose::DELAY_UP)).holding(Ns::from_ms(100));
    // Ten units within 100 ms, and ten more long after.
    let sent: Vec<Ns> = (0..20).map(|number| Ns::from_ms(number * 10 + number / 10 * 10_000)).collect();
    for at in &sent {
        assert_eq!(link.offer(*at, sized(1)), Fate::Accepted);
    }
    let delays: Vec<Ns> = drain(&mut link).iter().zip(&sent).map(|((at, _), sent)| *at - *sent).collect();
    assert!(delays[..10].iter().all(|delay| *delay == delays[0]));
    assert!(delays[10..].iter().all(|delay| *delay == delays[10]));
    assert_ne!(delays[0], delays[10]);
}

#[test]
fn fragments_add_headers_and_join_to_the_same_bytes() {
    let inner = Rate::new(rate(8000.0), Null::default());
    let mut link = Mtu::new(1500, 20, inner);
    let payload: Vec<u8> = (0..4000_u32).map(|number| number as u8).collect();
    // 4028 bytes with headers: 4008 of content in parts of 1480, 1480 and 1048 bytes.
    assert_eq!(link.offer(Ns::ZERO, Unit::new(4028, payload.clone())), Fate::Accepted);
    let (at, unit) = link.take(Ns::MAX).expect("joined");
    assert_eq!(at, Ns::from_ms(1500 + 1500 + 1068));
    assert_eq!(unit, Unit::new(4028, payload));
    assert!(link.take(Ns::MAX).is_none());
    // A unit with more fragments than can be numbered is dropped.
    assert_eq!(link.offer(Ns::ZERO, sized(u32::MAX)), Fate::Dropped(Drop::TooLong));
}

#[test]
fn a_unit_with_a_lost_fragment_never_arrives_and_the_next_does() {
    let mut link = Mtu::new(1500, 20, LosesSecond { offered: 0, inner: Null::default() });
    assert_eq!(link.offer(Ns::ZERO, Unit::new(2000, vec![1; 1980])), Fate::Dropped(Drop::Lost));
    assert_eq!(link.offer(Ns::ZERO, Unit::new(2000, vec![2; 1980])), Fate::Accepted);
    assert_eq!(drain(&mut link), [(Ns::ZERO, Unit::new(2000, vec![2; 1980]))]);
}

#[test]
fn duplicated_fragments_and_units_are_delivered() {
    let always = Probability::new(1.0).expect("a probability");
    let mut link = Duplication::new(always, stream(Purpose::DUPLICATION_UP), Null::default());
    assert_eq!(link.offer(Ns::ZERO, Unit::new(3, vec![1, 2, 3])), Fate::Duplicated);
    assert_eq!(drain(&mut link).len(), 2);
    let twice = Duplication::new(always, stream(Purpose::DUPLICATION_UP), Null::default());
    let mut link = Mtu::new(1500, 20, twice);
    assert_eq!(link.offer(Ns::ZERO, Unit::new(2000, vec![2; 1980])), Fate::Accepted);
    // The first fragment, its copy and the last fragment give one unit; the copy of the last never becomes a unit.
    assert_eq!(drain(&mut link).len(), 1);
}

#[test]
fn full_duplex_directions_are_independent() {
    let mut path = path(&spec());
    for direction in [Direction::Up, Direction::Down] {
        assert_eq!(path.offer(direction, Ns::ZERO, sized(60)), Fate::Accepted);
    }
    assert_eq!(path.next(), Some((Ns::from_ms(441), Direction::Up)));
    assert_eq!(path.take(Ns::MAX).map(|taken| (taken.0, taken.1)), Some((Ns::from_ms(441), Direction::Up)));
    assert_eq!(path.take(Ns::MAX).map(|taken| (taken.0, taken.1)), Some((Ns::from_ms(441), Direction::Down)));
    assert!(path.take(Ns::MAX).is_none());
}

#[test]
fn half_duplex_medium_is_shared() {
    let mut path = path(&BearerSpec { half_duplex: true, ..spec() });
    for direction in [Direction::Up, Direction::Down, Direction::Down] {
        assert_eq!(path.offer(direction, Ns::ZERO, sized(60)), Fate::Accepted);
    }
    let times: Vec<u64> =
        std::iter::from_fn(|| path.take(Ns::MAX)).map(|(at, ..)| at.0 / 1_000_000).collect();
    assert_eq!(times, [50 + 391, 100 + 391, 150 + 391]);
}

/// 60 bytes take 50 ms, after which a direction with a duty cycle of 1 % is silent for 4.95 s.
#[test]
fn half_duplex_medium_is_free_during_silences() {
    let mut path = path(&BearerSpec { half_duplex: true, duty_cycle_up: 0.01, pause_down_s: 2.0, ..spec() });
    let mut arrives = |direction, at| {
        assert_eq!(path.offer(direction, Ns::from_ms(at), sized(60)), Fate::Accepted);
        // The arrival, without the delay.
        let arrivals = std::iter::from_fn(|| path.take(Ns::MAX));
        arrivals.map(|(at, ..)| at.0 / 1_000_000 - 391).last().expect("accepted")
    };
    assert_eq!(arrives(Direction::Up, 0), 50);
    assert_eq!(arrives(Direction::Up, 0), 5050);
    // Between the two, and then after the second, because there is no room before it.
    assert_eq!(arrives(Direction::Down, 20), 100);
    assert_eq!(arrives(Direction::Down, 4960), 5100);
    // The client waits for its own silence, and not for the server's.
    assert_eq!(arrives(Direction::Down, 9980), 10_030);
    assert_eq!(arrives(Direction::Up, 9981), 10_080);
}

#[test]
fn fragments_repeat_the_compressed_header_of_the_profile() {
    let mut path = path(&BearerSpec { mtu_bytes: 51, ip_bytes: 1, udp_bytes: 1, ..spec() });
    assert_eq!(path.offer(Direction::Down, Ns::ZERO, Unit::new(445, vec![0; 443])), Fate::Accepted);
    let (_, _, unit) = path.take(Ns::MAX).expect("joined");
    assert_eq!(unit, Unit::new(445, vec![0; 443]));
    // 444 bytes after the header, 48 in a fragment: ten fragments.
    assert_eq!(path.times(Ns::ZERO, Ns::from_s(9)).received_bytes, 444 + 10);
}

#[test]
fn radio_setup_is_repeated_after_its_release() {
    let mut path = path(&BearerSpec { setup: Some(DistributionSpec::Constant { s: 2.0 }), ..spec() });
    let sent = |path: &mut Path, direction, at: u64| {
        assert_eq!(path.offer(direction, Ns::from_ms(at), sized(60)), Fate::Accepted);
        path.take(Ns::MAX).expect("accepted").0.0 / 1_000_000 - at
    };
    assert_eq!(sent(&mut path, Direction::Up, 1000), 2000 + 441);
    assert_eq!(sent(&mut path, Direction::Down, 4000), 441);
    assert_eq!(sent(&mut path, Direction::Up, 14_000), 441);
    path.release(Ns::from_ms(20_000));
    assert_eq!(sent(&mut path, Direction::Up, 24_000), 2000 + 441);
    let times = path.times(Ns::ZERO, Ns::from_ms(50_000));
    assert_eq!(times.sending, Ns::from_ms(150));
    assert_eq!(times.receiving, Ns::from_ms(50));
    assert_eq!((times.first_setup, times.setups), (Ns::from_s(2), 2));
    // Connected from 3 s to 20 s and from 26 s to the end.
    assert_eq!(times.waiting, Ns::from_ms(17_000 + 24_000 - 200));
    assert_eq!((times.sent_bytes, times.received_bytes), (180, 60));
}

#[test]
fn link_overhead_takes_time() {
    let mut path = path(
        &serde_json::from_str(
            r#"{"up_bits_per_s": 8000, "down_bits_per_s": 8000, "traversal_s": 0, "packet_overhead_bytes": 42,
                "link_encryption": "wep"}"#,
        )
        .expect("valid"),
    );
    assert_eq!(path.offer(Direction::Up, Ns::ZERO, Unit::new(100, vec![0; 80])), Fate::Accepted);
    let (at, _, unit) = path.take(Ns::MAX).expect("accepted");
    assert_eq!((at, unit.bytes), (Ns::from_ms(150), 100));
}

#[test]
fn impossible_bearers_are_refused_with_the_key() {
    let refused = |change: fn(&mut BearerSpec)| {
        let mut spec = spec();
        change(&mut spec);
        Bearer::try_from(&spec).expect_err("impossible").to_string()
    };
    assert!(refused(|spec| spec.up_bits_per_s = Some(0.0)).starts_with("up_bits_per_s is 0"));
    assert!(refused(|spec| spec.down_bits_per_s = Some(f64::NAN)).starts_with("down_bits_per_s is NaN"));
    assert!(refused(|spec| spec.traversal_s = -1.0).contains("traversal_s"));
    assert!(refused(|spec| spec.loss = 1.5).starts_with("loss is 1.5"));
    assert!(
        refused(|spec| spec.setup = Some(DistributionSpec::Constant { s: f64::INFINITY }))
            .starts_with("setup")
    );
    assert!(refused(|spec| spec.mtu_bytes = 27).starts_with("mtu_bytes is 27; accepted: 28 or more"));
    assert!(refused(|spec| (spec.mtu_bytes, spec.ip_bytes) = (8, 1)).contains("accepted: 9 or more"));
    assert!(refused(|spec| spec.loss_burst_packets = 0.5).starts_with("loss_burst_packets is 0.5"));
    assert!(serde_json::from_str::<BearerSpec>(r#"{"traversal_s": 0, "up": 1}"#).is_err());
}

#[cfg(feature = "openssl")]
#[test]
fn payloads_are_encrypted_on_the_link_and_decrypted_on_arrival() {
    use shakedown_link::cipher::{Ccmp, FrameCipher, MacHeader, Wep};
    /// Records the frames on the air, and damages every third unit.
    struct Air {
        inner: Null,
        seen: Vec<Vec<u8>>,
    }
    impl Link for Air {
        fn offer(&mut self, at: Ns, mut unit: Unit) -> Fate {
            let payload = unit.payload.as_mut().expect("a payload");
            self.seen.push(payload.clone());
            if self.seen.len().is_multiple_of(3) {
                payload[20] ^= 0x40;
            }
            self.inner.offer(at, unit)
        }
        fn next(&self) -> Option<Ns> {
            self.inner.next()
        }
        fn take(&mut self, until: Ns) -> Option<(Ns, Unit)> {
            self.inner.take(until)
        }
    }
    let wep = || -> Box<dyn FrameCipher> { Box::new(Wep::new(b"13 bytes long", 0, 0).expect("RC4")) };
    let header = MacHeader::data([2; 6], [4; 6], [6; 6]);
    let ccmp = || -> Box<dyn FrameCipher> { Box::new(Ccmp::new([7; 16], 0, header, 0).expect("AES-CCM")) };
    for (sender, receiver, overhead) in [(wep(), wep(), 8), (ccmp(), ccmp(), 16)] {
        let air = Air { inner: Null::default(), seen: Vec::new() };
        let mut link = Encapsulation::counted(overhead, air);
        link.encrypt(sender, receiver);
        let plain = vec![0x5a; 1000];
        for _ in 0..6 {
            assert_eq!(link.offer(Ns::ZERO, Unit::new(1000, plain.clone())), Fate::Accepted);
        }
        assert_eq!(drain(&mut link), vec![(Ns::ZERO, Unit::new(1000, plain.clone())); 4]);
        assert_eq!(link.rejected(), 2);
        assert!(link.inner.seen.iter().all(|frame| frame.len() as u32 == 1000 + overhead));
        // No part of the plaintext is on the air, and no two frames are equal.
        assert!(link.inner.seen.iter().all(|frame| !frame.windows(8).any(|window| window == &plain[..8])));
        assert_ne!(link.inner.seen[0][8..], link.inner.seen[1][8..]);
    }
}

proptest! {
    /// Units and bytes offered are units and bytes delivered, lost and held; nothing is sent faster than the rate; the
    /// same seed gives the same fates and times.
    #[test]
    fn offered_units_are_delivered_lost_or_held(
        units in prop::collection::vec((0_u64..50_000_000, 20_u32..1500), 1..80),
        bits_per_s in 1_000.0..1e7,
        loss in 0.0..0.5,
        duplication in 0.0..0.3,
        queue_bytes in 2_000_u64..20_000,
        seed in 0_u64..1000,
    ) {
        let run = || {
            let probability = |value| Probability::new(value).expect("a probability");
            let delay: Delay = constant(Ns::from_ms(3));
            let copies = Duplication::new(probability(duplication), Stream::of(seed, 0, Purpose::DUPLICATION_UP), delay);
            let process = LossProcess::Independent(probability(loss));
            let lossy = Loss::new(process, Stream::of(seed, 0, Purpose::LOSS_UP), copies);
            let sender = Rate::new(rate(bits_per_s), lossy).bounded(Some(queue_bytes));
            let mut link = Encapsulation::counted(7, sender);
            let (mut now, mut fates, mut taken) = (Ns::ZERO, Vec::new(), Vec::new());
            for (gap, bytes) in &units {
                now += Ns(*gap);
                while let Some((at, unit)) = link.take(now) {
                    taken.push((at, unit.bytes));
                }
                fates.push(link.offer(now, sized(*bytes)));
            }
            let held = drain(&mut link);
            taken.extend(held.iter().map(|(at, unit)| (*at, unit.bytes)));
            let busy = link.inner.busy();
            (fates, taken, busy, link.inner.free_at(), link.inner.sent_bytes())
        };
        let (fates, taken, busy, free_at, sent_bytes) = run();
        let sum = |wanted: fn(&Fate) -> u64| -> u64 {
            fates.iter().zip(&units).map(|(fate, (_, bytes))| wanted(fate) * u64::from(*bytes)).sum()
        };
        let arrived: u64 = taken.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
        let copies = |fate: &Fate| match fate { Fate::Accepted => 1, Fate::Duplicated => 2, Fate::Dropped(_) => 0 };
        prop_assert_eq!(arrived, sum(copies));
        let sent = |fate: &Fate| u64::from(*fate != Fate::Dropped(Drop::QueueFull));
        let count: u64 = fates.iter().map(sent).sum();
        prop_assert_eq!(sent_bytes, sum(sent) + 7 * count);
        prop_assert!(busy <= free_at, "utilisation above one");
        // A rate is kept to a thousandth of a bit per second.
        let least = sent_bytes as f64 * 8.0 / ((bits_per_s * 1e3).round() * 1e-3);
        prop_assert!((busy.as_secs_f64() - least).abs() < 1e-7 * least + 1e-6, "{busy} busy, {least} s of bits");
        prop_assert!(taken.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        prop_assert_eq!(run(), (fates, taken, busy, free_at, sent_bytes));
    }
}

/// Fates and arrivals of units of all lengths in both directions, offered at shorter and shorter intervals.
fn carried(path: &mut Path<Vec<u8>>) -> (Vec<Fate>, Vec<(Ns, Direction, Unit)>) {
    let (mut fates, mut arrived) = (Vec::new(), Vec::new());
    let mut now = Ns::from_ms(3);
    for number in 0..60_u32 {
        now += Ns::from_ms(u64::from(60 - number));
        let direction = if number % 3 == 0 { Direction::Up } else { Direction::Down };
        fates.push(path.offer(direction, now, Unit::new(40 + 37 * number, vec![number as u8; 8])));
        arrived.extend(std::iter::from_fn(|| path.take(now)));
    }
    // Some units stay in flight.
    (fates, arrived)
}

proptest! {
    #[test]
    fn renewed_path_behaves_like_a_new_one(
        shares in prop::array::uniform3(0.0..0.3_f64), burst in 0_u32..2, sd_s in 0.0..0.2_f64, holds_s in 0.0..0.1_f64,
        half_duplex in any::<bool>(), reorders in any::<bool>(), setup_s in 0.0..0.5_f64, seeds in any::<[u64; 2]>()
    ) {
        let spec = BearerSpec {
            loss: shares[0], duplication: shares[1], reordering: shares[2], reordering_s: 0.05,
            loss_burst_packets: f64::from(burst * 3), traversal_sd_s: sd_s, traversal_holds_s: holds_s,
            traversal_reorders: reorders, half_duplex, setup: Some(DistributionSpec::Constant { s: setup_s }),
            queue_bytes: Some(5000), mtu_bytes: 576, ..spec()
        };
        let bearer = Bearer::try_from(&spec).expect("valid");
        let mut used = bearer.path(seeds[0], 1);
        carried(&mut used);
        bearer.renew(&mut used, seeds[1], 2);
        let mut new = bearer.path(seeds[1], 2);
        prop_assert_eq!(used.times(Ns::ZERO, Ns::from_s(1)), new.times(Ns::ZERO, Ns::from_s(1)));
        prop_assert_eq!(carried(&mut used), carried(&mut new));
    }
}
