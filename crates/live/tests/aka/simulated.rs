//! Attaches in virtual time.

use crate::attaches::suite;
use shakedown_aka::run::Plan;
use shakedown_live::aka::simulate;
use std::ops::ControlFlow;

fn plan(extra: &str) -> Plan {
    let message = |from: &str, place: usize| {
        let (generate, process) = (0.001 * (1 << place) as f64, 0.0001 * (1 << place) as f64);
        format!(
            r#"{{"from":"{from}","name":"m","bytes":1,"flight":{place},"generate":{{"kind":"constant","s":{generate}}},
               "process":{{"kind":"constant","s":{process}}}}}"#
        )
    };
    let handshake = |senders: &[&str]| {
        let messages: Vec<_> = senders.iter().enumerate().map(|(place, from)| message(from, place)).collect();
        format!(r#"{{"name":"n","transport":"stream","messages":[{}]}}"#, messages.join(","))
    };
    let (full, resumed) =
        (handshake(&["client", "server", "client", "server"]), handshake(&["client", "server", "client"]));
    let text = format!(
        r#"{{"bearer":{{"up_bits_per_s":null,"down_bits_per_s":null,"traversal_s":0.5}},"full":{full},"resumed":{resumed},
            "attaches":3,"mobiles":1,"gap_s":0.0,"roaming":true,"moves":0.0,"background_per_s":0.0,"workers":1,
            "max_resumptions":10,"max_age_s":1000.0,"core_round_trip_s":0.04,"preparation":{{"kind":"constant","s":0.25}},
            "timeout_s":60.0,"seed":7{extra}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

/// On a bearer that only delays, times consist of round trips, processing times and the core network's round trips.
#[test]
fn virtual_times_match_the_computed_ones() {
    let outcome = simulate(&suite(), &plan(""), &mut |_| ControlFlow::Continue(())).unwrap();
    let near = |found: Option<f64>, wanted: f64| {
        let found = found.unwrap();
        assert!((found - wanted).abs() < 1e-6, "{found}, not {wanted}");
    };
    let [first, second, _] = &outcome.attaches[..] else { panic!("{outcome:?}") };
    assert_eq!((first.resumed, second.resumed), (false, true), "{outcome:?}");
    // Client: 1 | 0.2 + 4 | 0.8 ms; server: 0.1 + 2 | 0.4 + 8.
    let (client, server) = (1e-3 * (1.0 + 4.2 + 0.8), 1e-3 * (2.1 + 8.4));
    near(first.nrt_s, 1.0);
    near(first.rpt_s, 1.25);
    // Before the handshake, the SGSN queries the cross-certificate.
    near(first.tht_s, 2.0 + client + server + 0.04);
    near(first.tst_s, 3.25 + client + server + 0.04);
    // From the ServerHello: two round trips, the mobile's two steps, the second of the server's, the home network.
    near(first.scrt_s, 2.0 + 1e-3 * (4.2 + 0.8 + 8.4) + 0.04);
    near(first.attach_s, 1.25 + 2.0 + client + server + 0.04 + 1.0 + 0.04);
    assert_eq!(first.queries, 2);
    // Resumed: client 1 | 0.2 + 4; server 0.1 + 2 | 0.4. Accepted when the mobile's Finished has arrived.
    near(second.nrt_s, 1.0);
    near(second.tht_s, 1.0 + 1e-3 * (1.0 + 4.2 + 2.1));
    near(second.scrt_s, 1.0 + 1e-3 * (4.2 + 0.4));
    near(second.attach_s, 1.25 + 2.0 + 1e-3 * (1.0 + 4.2 + 2.1 + 0.4));
    assert_eq!(second.queries, 0);
    assert_eq!(outcome.attaches[0].retransmissions, 0);
}

#[test]
fn equal_plans_give_equal_outcomes_and_other_seeds_differ() {
    let mut noisy = plan("");
    noisy.bearer.traversal_sd_s = 0.1;
    noisy.background_per_s = 50.0;
    noisy.gap_s = 5.0;
    noisy.moves = 0.4;
    noisy.mobiles = 2;
    noisy.attaches = 20;
    noisy.max_resumptions = 3;
    let run = |plan: &Plan| {
        let outcome = simulate(&suite(), plan, &mut |_| ControlFlow::Continue(())).unwrap();
        serde_json::to_string(&outcome).unwrap()
    };
    let text = run(&noisy);
    assert_eq!(text, run(&noisy));
    assert!(text.contains("\"handed_over\":") && !text.contains("\"handed_over\":0"), "{text}");
    let other = Plan { seed: 8, ..noisy };
    assert_ne!(text, run(&other));
}

/// An M/D/1 queue: background requests of one service time, and the mobile's requests among them.
#[test]
fn background_requests_delay_the_server_work() {
    let wait = |rate: f64| {
        let mut busy = plan("");
        busy.background_per_s = rate;
        busy.gap_s = 1.0;
        busy.attaches = 1500;
        busy.max_resumptions = 0;
        let outcome = simulate(&suite(), &busy, &mut |_| ControlFlow::Continue(())).unwrap();
        let times: Vec<f64> = outcome.attaches.iter().skip(1).map(|one| one.tht_s.unwrap()).collect();
        let idle = 2.0 + 1e-3 * (6.0 + 10.5);
        times.iter().sum::<f64>() / times.len() as f64 - idle
    };
    assert!(wait(0.0).abs() < 1e-6);
    // Pollaczek-Khinchin formula: each of the server's two jobs waits rho x / 2 / (1 - rho), with x = 10.5 ms.
    let (rate, x) = (60.0, 0.0105);
    let rho: f64 = rate * x;
    let expected = 2.0 * rho * x / 2.0 / (1.0 - rho);
    let found = wait(rate);
    assert!((found / expected - 1.0).abs() < 0.1, "waits {found} s, expected {expected} s");
}
