//! `dh…` groups use exponents as long as the prime, `ffdhe…` groups short ones: their costs show it.

use super::common;
use shakedown_stacks::measure::Measurement;
use shakedown_trace::{Operation, Side};

/// Time of a side's key agreement, in microseconds: the minimum of several medians, because other work only adds to it.
fn derive_us(name: &str, side: Side) -> f64 {
    let of = |measurement: &Measurement| {
        let derive = measurement
            .operations
            .iter()
            .find(|record| record.side == side && record.operation == Operation::Derive);
        derive.map(|record| record.us).unwrap()
    };
    (0..3).map(|_| of(&common::measure(name, 11))).fold(f64::INFINITY, f64::min)
}

#[test]
fn exponent_cost_follows_its_length() {
    let _alone = common::alone();
    for side in [Side::Client, Side::Server] {
        let [dh1024, dh2048, ffdhe2048] = ["dh1024", "dh2048", "ffdhe2048"]
            .map(|group| derive_us(&format!("tls1.2/dh_anon+{group}"), side));
        println!("{side}: dh1024 {dh1024:.1} us, dh2048 {dh2048:.1} us, ffdhe2048 {ffdhe2048:.1} us");
        // Twice the length: a multiplication takes up to four times as long, and there are twice as many. About 7.
        assert!(dh2048 > 3.0 * dh1024, "{side}: {dh2048} against {dh1024} us");
        // 225 bits of exponent instead of 2048.
        assert!(ffdhe2048 < 2.0 * dh1024, "{side}: {ffdhe2048} against {dh1024} us");
        assert!(dh2048 > 3.0 * ffdhe2048, "{side}: {dh2048} against {ffdhe2048} us");
    }
}
