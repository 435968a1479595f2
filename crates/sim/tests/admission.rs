//! Token buckets of servers: admissions against theory, and the cost of each kind of refusal, calculated by hand.

mod common;

use common::{bearer, class, constant, instant, message, run, scenario, service, tls13};
use shakedown_sim::outcome::Cause;
use shakedown_sim::{AdmissionSpec, ArrivalSpec, Outcome, Refusal, RetrySpec, Scenario, Sender, Simulation};

/// M/D/1 with room for N customers: the share of lost arrivals, and the wait of the others in service times, from the
/// chain embedded at departures (Gross and Harris, 5.1.8).
fn m_d_1_k(load: f64, room: usize) -> (f64, f64) {
    let arrivals = |n: usize| (1..=n).fold((-load).exp(), |share, k| share * load / k as f64);
    let mut left = vec![1.0 / room as f64; room];
    for _ in 0..20_000 {
        let mut next = vec![0.0; room];
        for (there, share) in left.iter().enumerate() {
            let stay = there.saturating_sub(1);
            let mut rest = *share;
            for n in 0..room - 1 - stay {
                next[stay + n] += share * arrivals(n);
                rest -= share * arrivals(n);
            }
            next[room - 1] += rest;
        }
        left = next;
    }
    let scale = left[0] + load;
    let lost = 1.0 - 1.0 / scale;
    let waiting = (1..room).map(|k| (k - 1) as f64 * left[k] / scale).sum::<f64>() + (room - 1) as f64 * lost;
    (lost, waiting / (load * (1.0 - lost)))
}

/// A bucket whose token rate is the service rate admits the same clients as a queue with N places: their number and
/// their waits are those of M/D/1/N.
#[test]
fn bucket_admits_as_many_as_an_md1n_queue() {
    let token_s = 0.01;
    for (load, burst) in [(0.8, 1), (0.8, 5), (1.5, 5)] {
        let arrivals = ArrivalSpec::Poisson { per_s: load / token_s };
        // A refused client does not become ready, because it waits for an answer.
        let mut answered = service(constant(token_s));
        answered.messages.push(message(Sender::Server, "Finished", 1, 2, 2));
        let mut fleet = scenario(vec![class(answered, instant())], 200_000, arrivals);
        let admission = AdmissionSpec { per_s: 1.0 / token_s, burst, refusal: Refusal::Silence };
        fleet.server.admission = Some(admission);
        let found = run(fleet);
        let (lost, wait) = m_d_1_k(load, burst as usize);
        let share = found.failed[&Cause::Lost] as f64 / found.counted as f64;
        assert!((share - lost).abs() < 0.004, "{load}, {burst}: {share} lost, expected {lost}");
        let counted = found.admissions.expect("a bucket");
        assert_eq!(counted.admitted, found.completed);
        assert_eq!(counted.refused, found.failed[&Cause::Lost]);
        let mean = found.wait.mean().expect("a mean") * 1e-9 / token_s;
        assert!((mean - wait).abs() < 0.01 + 0.02 * wait, "{load}, {burst}: waits {mean}, expected {wait}");
    }
}

/// Two clients at once, 0.1 s from a server that admits one every 2.5 s and processes a ClientHello in 0.05 s.
fn two_at_once(refusal: Refusal) -> Scenario {
    let link = bearer(r#"{"up_bits_per_s": null, "down_bits_per_s": null, "traversal_s": 0.1}"#);
    let mut handshake = tls13(900);
    handshake.messages[0].process = constant(0.05);
    let mut fleet = scenario(vec![class(handshake, link)], 2, ArrivalSpec::Storm { within_s: 0.0 });
    fleet.tcp.hz = 1000;
    fleet.server.admission = Some(AdmissionSpec { per_s: 0.4, burst: 1, refusal });
    fleet.retry = Some(RetrySpec { attempts: 4, delay_s: 1.0, factor: 1.0, maximum_s: 60.0, jitter: 0.0 });
    fleet.series_s = 0.5;
    fleet
}

fn ready_s(found: &Outcome) -> (f64, f64) {
    let (first, last) = found.ready.range().expect("both");
    (first as f64 * 1e-9, last as f64 * 1e-9)
}

/// Bytes that the second client's failed attempts add, compared with a fleet without refusals: (up, down).
fn added_bytes(found: &Outcome) -> (u64, u64) {
    let mut free = two_at_once(Refusal::Reset);
    free.server.admission = None;
    let free = run(free);
    let of = |outcome: &Outcome| (outcome.traffic.up_bytes, outcome.traffic.down_bytes);
    (of(found).0 - of(&free).0, of(found).1 - of(&free).1)
}

/// SYNs of 60 bytes at 0.1, 1.3 and 2.5 s find no token, and are answered by 40 bytes; between two of them are a round
/// trip and a pause of 1 s. The fourth, at 3.7 s, is admitted.
#[test]
fn reset_ends_the_attempt_after_one_round_trip() {
    let found = run(two_at_once(Refusal::Reset));
    let (first, last) = ready_s(&found);
    assert!((last - first - 3.6).abs() < 1e-6, "{first} and {last}");
    assert_eq!(found.attempt_failures[&Cause::Refused], 3);
    assert_eq!(added_bytes(&found), (3 * 60, 3 * 40));
    let refused: Vec<u64> = found.series.intervals.iter().map(|one| one.refused).collect();
    assert_eq!(refused[..8], [1, 0, 1, 0, 0, 1, 0, 0]);
    // Three pauses, and two ClientHellos at the server; both clients are `UnderWay` in the rest of their time.
    let stages = (0..found.series.length()).map(|number| found.series.clients(number).stages);
    let sums = stages
        .fold([0.0; 4], |sums, one| std::array::from_fn(|stage| sums[stage] + one[stage].as_secs_f64()));
    let all: f64 = sums.iter().sum();
    assert!((sums[0] - 3.0).abs() < 1e-6 && sums[1] == 0.0 && (sums[2] - 0.1).abs() < 1e-6, "{sums:?}");
    assert!((all - first - last).abs() < 1e-6, "{sums:?}, {first} and {last}");
}

/// The second client's ClientHello is processed after the first's, and answered by an alert of 7 bytes: 0.1 s for the
/// SYN, 0.1 s back, 0.1 s to the server, 2 × 0.05 s there, 0.1 s back, a pause of 1 s. Tokens are requested at 0.3, 1.8
/// and, as the server is idle at the second attempt, 3.25 s.
#[test]
fn alert_costs_a_round_trip_bytes_and_server_time() {
    let found = run(two_at_once(Refusal::Alert));
    assert_eq!(found.attempt_failures[&Cause::Refused], 2);
    let (first, last) = ready_s(&found);
    assert!((last - first - 2.95).abs() < 1e-6, "{first} and {last}");
    let counted = found.admissions.expect("a bucket");
    assert_eq!((counted.admitted, counted.refused), (2, 2));
    assert_eq!(found.busy_ns, 4 * 50_000_000, "one ClientHello of one client and three of the other");
    let (up, down) = added_bytes(&found);
    assert!(up >= 2 * (60 + 52 + 224 + 52) && down >= 2 * (60 + 7 + 52), "{up} and {down}");
    assert!(down <= 2 * (60 + 7 + 52 + 52), "{down}");
}

/// The client is computing the last of three flights, which do not depend on an answer, when the server refuses it.
#[test]
fn alert_may_answer_several_flights() {
    let mut fleet = two_at_once(Refusal::Alert);
    let messages = &mut fleet.classes[0].handshake.messages;
    messages.splice(1..1, [8, 9].map(|flight| message(Sender::Client, "Other", 100, flight, flight)));
    messages[2].generate = constant(0.5);
    let found = run(fleet);
    assert_eq!((found.completed, found.failed.len()), (2, 0));
    assert!(found.attempt_failures[&Cause::Refused] >= 1);
}

/// Without an answer, the client's timer repeats the SYN after 1, 2 and 3 s; the third repetition finds a token.
#[test]
fn silent_refusal_is_ended_by_the_client_timer() {
    let found = run(two_at_once(Refusal::Silence));
    assert!(found.attempt_failures.is_empty());
    let (first, last) = ready_s(&found);
    assert!((2.9..3.4).contains(&(last - first)), "{first} and {last}");
    assert_eq!(added_bytes(&found), (3 * 60, 0));
    assert_eq!(found.admissions.expect("a bucket").refused, 3);
}

#[test]
fn offered_load_counts_admitted_clients_and_alerts_need_tcp() {
    let arrivals = ArrivalSpec::Poisson { per_s: 1000.0 };
    let mut fleet = scenario(vec![class(service(constant(0.01)), instant())], 1000, arrivals);
    let admission = AdmissionSpec { per_s: 50.0, burst: 1, refusal: Refusal::Silence };
    fleet.server.admission = Some(admission);
    let offered = Simulation::new(fleet.clone()).expect("valid").offered_e9();
    assert_eq!(offered, Some(500_000_000));
    fleet.server.admission = Some(AdmissionSpec { refusal: Refusal::Alert, ..admission });
    let error = Simulation::new(fleet).expect_err("no TCP").to_string();
    assert!(error.contains("class 0 does not go over TCP; accepted without TCP: silence"), "{error}");
}
