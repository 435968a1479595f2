//! Linux's behaviour as scripts (see `script.rs`).
//!
//! The situations are from packetdrill's tests (`google/packetdrill`, `gtests/net/tcp`, at `2c4001c4`), the kernel's
//! tests (`tools/testing/selftests/net/packetdrill`) and its source (6.18, `net/ipv4`); each test names its source.

use super::script::{Script, plain};
use crate::tcp::{Congestion, TcpConfig};
use shakedown_link::SuperPackets;

/// `tcp_timer.c`: four linear timeouts, six doubling ones.
#[test]
fn syn_is_retransmitted_linearly_then_exponentially_until_131_s() {
    let mut script = Script::client(TcpConfig::default(), 1448);
    script.run(
        "0 > S
         1 > S
         2 > S
         3 > S
         4 > S
         5 > S
         7 > S
         11 > S
         19 > S
         35 > S
         67 > S
         130 quiet
         137 gone",
    );
}

/// `tcp_timer.c`, `inet_connection_sock.c`: a SYN-ACK's timeout doubles from the first.
#[test]
fn syn_ack_is_retransmitted_with_doubling_timeouts() {
    let mut script = Script::server(TcpConfig::default(), 1448);
    script.run(
        "0 < S
         0 > S.
         1 > S.
         3 > S.
         7 > S.
         15 > S.
         31 > S.
         62 quiet
         66 gone",
    );
}

#[test]
fn repeated_syn_is_answered_at_once_but_once_per_500_ms() {
    let mut script = Script::server(TcpConfig::default(), 1448);
    script.run(
        "0 < S
         0 > S.
         1 > S.
         1.1 < S
         1.1 > S.
         1.2 < S
         1.3 quiet
         3.1 > S.",
    );
}

/// `tcp_init_transfer`: one retransmission does not reduce the window.
#[test]
fn single_syn_retransmission_keeps_the_window_at_ten() {
    let mut script = Script::client(TcpConfig::default(), 1448);
    script.run("0 > S\n1 > S\n1.2 < S. echo 1005\n1.2 > . ack 1\n1.2 window 10");
}

/// `tcp_create_openreq_child`, `tcp_init_transfer`: a timeout and a repeated SYN together reduce the window.
#[test]
fn syn_ack_timeout_and_repeated_syn_together_reduce_the_window() {
    let answered = |again: &str| {
        let mut script = Script::server(TcpConfig::default(), 1448);
        script.run("0 < S\n0 > S.");
        script.run(again);
        script
    };
    // After a timeout alone, and after a repeated SYN alone, it is not reduced.
    answered("1 > S.\n1.2 < . ack 1 echo 1010").run("1.2 window 10");
    answered("0.9 < S\n0.9 > S.\n1.1 < . ack 1 echo 901").run("1.1 window 10");
    answered("1 > S.\n1.1 < S\n1.1 > S.\n1.3 < . ack 1 echo 1110").run("1.3 window 1");
    // The first one was answered after all.
    answered("1 > S.\n1.1 < S\n1.1 > S.\n1.3 < . ack 1 echo 1").run("1.3 window 10");
}

/// `tcp_try_undo_spurious_syn`: two retransmissions reduce it, unless the first SYN's timestamp is echoed.
#[test]
fn two_syn_retransmissions_reduce_the_window_unless_spurious() {
    for (echo, window) in [(2015, 1), (1, 10)] {
        let mut script = Script::client(TcpConfig::default(), 1448);
        script.run(&format!("0 > S\n1 > S\n2 > S\n2.2 < S. echo {echo}\n2.2 > . ack 1\n2.2 window {window}"));
    }
}

/// Without timestamps, a client cannot measure the round trip of a SYN sent twice, and uses the fallback.
#[test]
fn timeout_without_a_round_trip_sample_is_three_seconds() {
    let config = TcpConfig { timestamps: false, ..TcpConfig::default() };
    let mut script = Script::client(config, 1460);
    script.run("0 > S\n1 > S\n1.2 < S.\n1.2 > . ack 1");
    assert!((script.tcp.timeout_s() - 3.0).abs() < 0.005, "{}", script.tcp.timeout_s());
}

/// `tcp_rtt_estimator`.
#[test]
fn the_first_timeout_is_three_round_trips_or_200_ms_more() {
    for (round_trip_s, timeout_s) in [(0.1, 0.3), (0.01, 0.21), (0.195, 0.585)] {
        let script = Script::established(plain(), 1000, round_trip_s);
        assert!((script.tcp.timeout_s() - timeout_s).abs() < 0.002, "{}", script.tcp.timeout_s());
    }
}

/// `cubic/cubic-rto-ss-ca-cwnd-bump.pkt`: a probe when the timeout is due, which is earlier than the usual probe, then
/// the timeout again; slow start up to the threshold; then one more segment per twenty acknowledged.
#[test]
fn lost_segment_is_probed_then_times_out_to_a_window_of_two() {
    let mut script = Script::established(plain(), 1000, 0.1);
    script.run(
        "0.1 write 1000
         0.1 > 1:1001
         0.2 < . ack 1001
         0.2 window 10
         0.2 write 1000
         0.2 > 1001:2001
         0.5 > 1001:2001
         0.8 > 1001:2001
         0.9 < . ack 2001
         0.9 window 2
         0.9 threshold 7
         0.9 write 200000
         0.9 > 2001:4001
         1.0 < . ack 3001
         1.0 > 4001:6001
         1.0 window 3
         1.002 < . ack 4001
         1.002 > 6001:8001
         1.002 window 4
         1.1 < . ack 5001
         1.1 > 8001:10001
         1.102 < . ack 6001
         1.102 > 10001:12001
         1.102 window 6
         1.104 < . ack 7001
         1.104 > 12001:14001
         1.104 window 7
         1.106 < . ack 8001
         1.106 > 14001:15001
         1.204 < . ack 9001
         1.204 > 15001:16001
         1.206 < . ack 10001
         1.206 > 16001:17001
         1.208 < . ack 11001
         1.208 > 17001:18001
         1.210 < . ack 12001
         1.210 > 18001:19001
         1.212 < . ack 13001
         1.212 > 19001:20001
         1.214 < . ack 14001
         1.214 > 20001:21001
         1.216 < . ack 15001
         1.216 > 21001:22001
         1.314 < . ack 16001
         1.314 > 22001:23001
         1.315 window 7
         1.317 < . ack 17001
         1.317 > 23001:24001
         1.319 < . ack 18001
         1.319 > 24001:25001
         1.321 < . ack 19001
         1.321 > 25001:26001
         1.323 < . ack 20001
         1.323 > 26001:27001
         1.325 < . ack 21001
         1.325 > 27001:28001
         1.327 < . ack 22001
         1.327 > 28001:29001
         1.425 < . ack 23001
         1.425 > 29001:31001
         1.425 window 8",
    );
}

/// `fast_retransmit/fr-4pkt-fack-last-byte.pkt`: part of a segment does not count; a probe 2·srtt after sending, the
/// timeout 300 ms after the probe.
#[test]
fn partial_segment_sack_is_ignored() {
    let mut script = Script::established(plain(), 1000, 0.1);
    script.run(
        "0.1 write 4000
         0.1 > 1:4001
         0.2 < . ack 1 sack 4000:4001
         0.3 > 3001:4001
         0.6 > 1:1001
         1.1 < . ack 1001 sack 4000:4001
         1.1 > 1001:3001
         1.2 < . ack 3001 sack 4000:4001
         1.2 > 3001:4001
         1.3 < . ack 4001",
    );
}

/// `shutdown/shutdown-rdwr-write-queue-close.pkt`: the probe is the FIN, two round trips after it was sent.
#[test]
fn unanswered_fin_is_used_as_the_probe() {
    let mut script = Script::established(plain(), 1000, 0.01);
    script.run("0.01 write 9000\n0.01 > 1:9001\n0.01 finish\n0.01 > F\n0.032 > F");
}

/// `fast_retransmit/fr-4pkt-sack.pkt`.
#[test]
fn third_duplicate_ack_retransmits_the_first_segment() {
    let mut script = Script::established(plain(), 1460, 0.1);
    script.run(
        "0.1 write 5840
         0.1 > 1:5841
         0.2 < . ack 1 sack 1461:2921
         0.2 < . ack 1 sack 1461:4381
         0.2 < . ack 1 sack 1461:5841
         0.2 > 1:1461
         0.3 < . ack 5841",
    );
}

/// `limited_transmit/limited-transmit-sack.pkt` (RFC 3042); then it turns out to be reordering, not loss.
#[test]
fn first_two_duplicate_acks_send_one_new_segment_each() {
    let mut script = Script::established(plain(), 1000, 0.1);
    script.run(
        "0.1 write 15000
         0.1 > 1:10001
         0.21 < . ack 1 sack 1001:2001
         0.21 > 10001:11001
         0.22 < . ack 1 sack 1001:3001
         0.22 > 11001:12001
         0.23 < . ack 3001
         0.23 > 12001:14001
         0.25 < . ack 5001
         0.25 > 14001:15001
         0.27 < . ack 7001
         0.29 < . ack 9001
         0.31 < . ack 11001
         0.33 < . ack 13001
         0.35 < . ack 15001
         0.35 state Open",
    );
}

/// `fast_recovery/prr-ss-10pkt-lost-1.pkt`.
#[test]
fn after_one_loss_of_ten_one_segment_is_sent_per_acked_segment() {
    let mut script = Script::established(plain(), 1000, 0.1);
    script.run(
        "0.1 write 10000
         0.1 > 1:10001
         0.21 < . ack 1 sack 1001:2001
         0.22 < . ack 1 sack 1001:3001
         0.23 < . ack 1 sack 1001:4001
         0.23 > 1:1001
         0.24 state Recovery
         0.24 window 7
         0.24 threshold 7
         0.25 write 7000
         0.26 < . ack 1 sack 1001:5001
         0.26 > 10001:11001
         0.27 < . ack 1 sack 1001:6001
         0.27 > 11001:12001
         0.28 < . ack 1 sack 1001:7001
         0.28 > 12001:13001
         0.29 < . ack 1 sack 1001:8001
         0.29 > 13001:14001
         0.30 < . ack 1 sack 1001:9001
         0.30 > 14001:15001
         0.31 < . ack 1 sack 1001:10001
         0.31 > 15001:16001
         0.33 < . ack 10001
         0.33 > 16001:17001
         0.34 state Open
         0.34 window 7
         0.34 threshold 7
         0.36 < . ack 12001
         0.38 < . ack 14001
         0.40 < . ack 16001
         0.42 < . ack 17001",
    );
}

/// `fast_recovery/prr-ss-30pkt-lost1_4.pkt`.
#[test]
fn after_four_losses_of_ten_each_ack_retransmits_one() {
    let mut script = Script::established(plain(), 1000, 0.01);
    script.run(
        "0.01 write 10000
         0.01 > 1:10001
         0.02 < . ack 1 sack 4001:5001
         0.022 < . ack 1 sack 4001:6001
         0.022 < . ack 1 sack 4001:7001
         0.022 > 1:1001
         0.022 < . ack 1 sack 4001:8001
         0.022 > 1001:2001
         0.022 < . ack 1 sack 4001:9001
         0.022 > 2001:3001
         0.022 < . ack 1 sack 4001:10001
         0.022 > 3001:4001
         0.032 < . ack 1001 sack 4001:10001
         0.032 < . ack 2001 sack 4001:10001
         0.032 < . ack 3001 sack 4001:10001
         0.032 < . ack 10001
         0.042 write 10000
         0.042 > 10001:17001",
    );
}

/// `tcp_rack_reo_wnd`: with one segment acknowledged after the loss, waits a quarter of the round trip (and 2 ms).
#[test]
fn one_sack_block_waits_for_the_reordering_timeout() {
    let mut script = Script::established(plain(), 1000, 0.1);
    script.run(
        "0.1 write 2000
         0.1 > 1:2001
         0.2 < . ack 1 sack 1001:2001
         0.227 > 1:1001
         0.3 < . ack 2001",
    );
}

/// `slow_start/slow-start-{ack-per-1pkt,ack-per-2pkt,app-limited}.pkt`.
#[test]
fn first_window_doubles_with_single_and_delayed_acks() {
    for per in [1_u32, 2] {
        let mut script = Script::established(plain(), 1000, 0.1);
        script.run("0.1 write 30000\n0.1 > 1:10001\n0.1 window 10");
        let mut reached = 10_001;
        for step in 1..=10 / per {
            let (at, ack) = (0.2 + 0.005 * f64::from(step), 1 + 1000 * per * step);
            let upto = (reached + 2000 * per).min(30_001);
            script.run(&format!("{at} < . ack {ack}\n{at} > {reached}:{upto}"));
            reached = upto;
        }
        script.run("0.26 window 20");
    }
    let mut script = Script::established(plain(), 1000, 0.1);
    script.run("0.1 write 10000\n0.1 > 1:10001\n0.205 < . ack 2001\n0.205 window 12\n0.21 < . ack 4001\n0.21 window 14");
    script.run("0.22 < . ack 10001\n0.22 window 20");
}

/// `tcp_incr_quickack`, `tcp_grow_window`: the first segments are acknowledged one by one.
#[test]
fn first_received_segments_are_acknowledged_one_by_one() {
    let mut script = Script::client(TcpConfig::default(), 1448);
    script.run("0 > S\n0.07 < S. echo 1\n0.07 > . ack 1\n0.08 write 300\n0.08 > 1:301");
    let mut at = 0.15;
    for number in 0..20 {
        let (from, to) = (1 + 1448 * number, 1449 + 1448 * number);
        script.run(&format!("{at} < {from}:{to} ack 301\n{at} > . ack {to}"));
        at += 0.001;
    }
}

/// `nagle/https_client.pkt`: a client that resumes receives 143 bytes and acknowledges them at once.
#[test]
fn first_response_to_a_resuming_client_is_acknowledged_at_once() {
    let mut script = Script::client(TcpConfig::default(), 1448);
    script.run("0 > S\n0.01 < S. echo 1\n0.01 > . ack 1\n0.01 write 517\n0.01 > 1:518");
    script.run("0.02 < 1:144 ack 518\n0.02 > . ack 144");
}

/// `TCP_DELACK_MIN`, `tcp_event_data_sent`: after an answer within the delay, the next ACK waits for data.
#[test]
fn acknowledgement_after_a_response_is_delayed_by_40_ms() {
    // `tcp_in_quickack_mode`: not if the route requests quick acknowledgements.
    for (quick_ack, at) in [(false, 0.243), (true, 0.201)] {
        let mut script = Script::established(TcpConfig { quick_ack, ..TcpConfig::default() }, 1448, 0.1);
        script.run(&format!(
            "0.1 < 1:301 ack 1
             0.1 > . ack 301
             0.101 write 2000
             0.101 > 1:2001
             0.201 < 301:381 ack 2001 seq 301
             {at} > . ack 381"
        ));
    }
}

/// `tcp_dsack_mult.pkt` and RFC 2883: duplicates are reported at once, out-of-order data with the newest block first.
#[test]
fn duplicates_and_gaps_are_acknowledged_at_once() {
    let mut script = Script::established(plain(), 1000, 0.1);
    script.run(
        "0.1 < 1:1001 ack 1
         0.1 > . ack 1001
         0.11 < 1:1001 ack 1
         0.11 > . ack 1001 sack 1:1001
         0.12 < 2001:3001 ack 1
         0.12 > . ack 1001 sack 2001:3001
         0.13 < 4001:5001 ack 1
         0.13 > . ack 1001 sack 4001:5001,2001:3001
         0.14 < 2001:3001 ack 1
         0.14 > . ack 1001 sack 2001:3001,2001:3001,4001:5001
         0.15 < 1001:2001 ack 1
         0.15 > . ack 3001 sack 4001:5001
         0.16 < 3001:4001 ack 1
         0.16 > . ack 5001",
    );
}

/// A premature timeout is undone when the echo shows that the original arrived (RFC 4015, `tcp_packet_delayed`).
#[test]
fn spurious_timeout_is_undone_by_the_timestamp() {
    let mut script = Script::established(TcpConfig { hz: 1000, ..TcpConfig::default() }, 1000, 0.1);
    script.run(
        "0.1 write 3000
         0.1 > 1:3001
         0.3 > 2001:3001   // the probe
         0.6 > 1:1001      // the timeout
         0.7 < . ack 3001 echo 101
         0.7 window 10
         0.7 state Open",
    );
}

/// Reno halves the window; CUBIC keeps seven tenths.
#[test]
fn reno_and_cubic_reduce_to_their_thresholds() {
    for (congestion, threshold) in [(Congestion::Reno, 5), (Congestion::Cubic, 7)] {
        let mut script = Script::established(TcpConfig { congestion, ..plain() }, 1000, 0.1);
        script.run(
            "0.1 write 10000
             0.1 > 1:10001
             0.2 < . ack 1 sack 1001:2001
             0.2 < . ack 1 sack 1001:3001
             0.2 < . ack 1 sack 1001:4001
             0.2 > 1:1001",
        );
        script.run(&format!("0.21 threshold {threshold}"));
    }
}

/// Data written before the connection is established is sent at once when it is
/// (`fastopen/client/syn-data-timeout.pkt`, without fast open's cookie).
#[test]
fn data_written_before_establishment_is_sent_on_establishment() {
    let mut script = Script::client(plain(), 1000);
    script.run("0 > S\n0.01 write 1000\n1 > S\n1.02 < S.\n1.02 > . ack 1\n1.02 > 1:1001");
}

/// `tcp_rack_advance`: after a hole, the echo for a retransmission is that of the last segment before the hole, and
/// shows nothing about it. Its delivery shows without a timeout that an earlier retransmission was lost.
#[test]
fn delivered_retransmission_shows_that_an_earlier_one_was_lost() {
    let mut script = Script::established(TcpConfig { hz: 1000, ..TcpConfig::default() }, 1000, 0.1);
    script.run(
        "0.1 write 10000
         0.1 > 1:10001
         0.2 < . ack 1 echo 1 sack 1001:2001
         0.2 < . ack 1 echo 1 sack 1001:3001
         0.2 < . ack 1 echo 1 sack 1001:4001
         0.2 > 1:1001
         0.21 < . ack 1 echo 1 sack 5001:6001,1001:4001
         0.21 > 4001:5001
         0.22 < . ack 1 echo 1 sack 5001:10001,1001:4001
         0.32 < . ack 1 echo 1 sack 1001:10001
         0.32 > 1:1001     // its copy, sent before the other, was lost
         0.42 < . ack 10001 echo 321
         0.42 state Open",
    );
}

/// The same, but faster than the minimum round trip: the original was delivered, which shows nothing.
#[test]
fn retransmission_acknowledged_too_soon_is_not_used_by_rack() {
    let mut script = Script::established(TcpConfig { hz: 1000, ..TcpConfig::default() }, 1000, 0.1);
    script.run(
        "0.1 write 10000
         0.1 > 1:10001
         0.2 < . ack 1 echo 1 sack 1001:2001
         0.2 < . ack 1 echo 1 sack 1001:3001
         0.2 < . ack 1 echo 1 sack 1001:4001
         0.2 > 1:1001
         0.21 < . ack 1 echo 1 sack 5001:6001,1001:4001
         0.21 > 4001:5001
         0.22 < . ack 1 echo 1 sack 5001:10001,1001:4001
         0.25 < . ack 1 echo 1 sack 1001:10001
         0.29 quiet
         0.3 < . ack 10001 echo 201
         0.3 state Open",
    );
}

/// `tcp_sacktag_write_queue` sorts the blocks: that the newest comes first does not count as reordering.
#[test]
fn sack_blocks_are_processed_in_sequence_order() {
    let mut script = Script::established(plain(), 1000, 0.1);
    script.run(
        "0.1 write 6000
         0.1 > 1:6001
         0.2 < . ack 1 sack 4001:6001,1001:3001
         0.2 > 1:1001
         0.2 > 3001:4001
         0.3 < . ack 6001
         0.3 state Open",
    );
}

/// An established server whose link accepts super-packets.
fn offloading(config: TcpConfig, segment_bytes: u32, round_trip_s: f64) -> Script {
    let mut script = Script::established(config, segment_bytes, round_trip_s);
    script.tcp = script.tcp.clone().with_super_packets(SuperPackets::Cut);
    script
}

/// `tcp_tso_autosize`: at least two segments (`tcp_min_tso_segs`), or a millisecond's if that is more, of one write.
#[test]
fn segments_are_sent_in_super_packets_of_one_millisecond() {
    let mut far = offloading(plain(), 1448, 0.2);
    far.run("0.2 write 4096\n0.2 > 1:2897 together 2\n0.2 > 2897:4097 together 1");
    far.run("0.2 write 11059\n0.2 > 4097:6993 together 2\n0.2 > 6993:9889 together 2\n0.2 > 9889:12785 together 2");
    // The last segment of the window is sent alone.
    far.run("0.2 > 12785:14233 together 1\n0.201 quiet");
    // 29 kB in 10 ms: 2.8 kB in 1/1024 s, less than two segments; of 64 kB nothing is left after 19 halvings.
    let mut near = offloading(plain(), 1448, 0.01);
    near.run("0.01 write 14480\n0.01 > 1:2897 together 2");
    let mut nearer = offloading(plain(), 1448, 0.003);
    // 9.7 MB/s are 9.4 kB in 1/1024 s, and 2 kB are added: 7 segments.
    nearer.run("0.003 write 14480\n0.003 > 1:10137 together 7\n0.003 > 10137:14481 together 3");
}

/// `tcp_send_loss_probe` and `tcp_retransmit_timer` send only one segment of a super-packet. A lost super-packet
/// therefore takes one round trip for the probe and another for the rest.
#[test]
fn last_segment_of_a_lost_super_packet_is_the_probe() {
    let mut script = offloading(plain(), 1000, 0.1);
    script.run(
        "0.1 write 3500
         0.1 > 1:2001 together 2
         0.1 > 2001:3501 together 2
         0.2 < . ack 2001
         0.402 > 3001:3501 together 1
         0.502 < . ack 2001 sack 3001:3501
         0.502 > 2001:3001 together 1
         0.602 < . ack 3501",
    );
    let mut script = offloading(plain(), 1000, 0.1);
    script.run(
        "0.1 write 2000
         0.1 > 1:2001 together 2
         0.302 > 1001:2001 together 1
         0.602 > 1:1001 together 1
         0.702 < . ack 1001
         0.702 > 1001:2001 together 1
         0.802 < . ack 2001",
    );
}

/// `tcp_xmit_retransmit_queue`: segments sent in one packet are retransmitted in one packet, as far as the window
/// allows. Segments count one by one, so two packets after a hole are enough.
#[test]
fn lost_super_packet_is_retransmitted_as_one() {
    let mut script = offloading(plain(), 1000, 0.1);
    script.run(
        "0.1 write 10000
         0.1 > 1:10001 together 2
         0.2 < . ack 1 sack 2001:4001
         0.2 < . ack 1 sack 2001:6001
         0.2 > 1:2001 together 2
         0.2 < . ack 1 sack 2001:8001
         0.2 < . ack 1 sack 2001:10001
         0.3 < . ack 10001
         0.3 state Open",
    );
}

/// A super-packet that is divided after the queueing discipline is acknowledged by segment; an undivided one, once.
#[test]
fn divided_super_packet_is_acknowledged_per_segment() {
    for (super_packets, acks) in
        [(SuperPackets::Cut, "0.1 > . ack 1001\n0.1 > . ack 2001"), (SuperPackets::Whole, "0.1 > . ack 2001")]
    {
        let mut script = Script::established(plain(), 1000, 0.1);
        script.tcp = script.tcp.clone().with_super_packets(super_packets);
        script.run("0.1 < 1:2001 ack 1 more 1");
        script.run(acks);
    }
}

/// `tcp_sequence`: a segment that was acknowledged completely is answered, but its timestamp is not echoed. A segment
/// that ends at the acknowledged sequence number is processed normally.
#[test]
fn old_segment_is_acknowledged_without_its_own_timestamp() {
    let mut script = Script::established(TcpConfig::default(), 1000, 0.1);
    script.run(
        "0.1 < 1:1001 ack 1 stamp 101
         0.1 > . ack 1001 echo 101
         0.2 < 1001:2001 ack 1 stamp 201
         0.2 > . ack 2001 echo 201
         0.5 < 1:1001 ack 1 stamp 501
         0.5 > . ack 2001 sack 1:1001 echo 201
         0.7 < 1001:2001 ack 1 stamp 701
         0.7 > . ack 2001 sack 1001:2001 echo 701",
    );
}

/// `tcp_output.c`, `tcp_bbr.c`: the first ten segments are sent at once; each later one when the previous one has left
/// at 99 % of 2.887 times the first window per round trip, here 28.6 kB/s: 35 ms for 1000 bytes, half if idle before.
#[test]
fn bbr_paces_after_the_first_ten_segments() {
    let config = TcpConfig { congestion: Congestion::Bbr, ..plain() };
    let mut script = Script::established(config, 1000, 1.0);
    script.run(
        "1.0 write 13000
         1.0 > 1:10001
         2.0 < . ack 1001
         2.0 > 10001:11001
         2.010 quiet
         2.0175 > 11001:12001
         2.040 quiet
         2.050 < . ack 2001
         2.0525 > 12001:13001",
    );
}

/// `bbr_set_cwnd_to_recover_or_restore`: the window is restored after a loss, and deliveries increase it.
#[test]
fn bbr_restores_its_window_after_recovery() {
    let config = TcpConfig { congestion: Congestion::Bbr, ..plain() };
    let mut script = Script::established(config, 1000, 0.1);
    script.run(
        "0.1 write 10000
         0.1 > 1:10001
         0.2 < . ack 1 sack 1001:10001
         0.2 > 1:1001
         0.2 state Recovery
         0.3 < . ack 10001
         0.3 state Open
         0.3 window 11",
    );
}
