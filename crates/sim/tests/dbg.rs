mod common;
use common::*;
use shakedown_sim::ArrivalSpec;
#[test]
fn dbg() {
    let o = run(scenario(vec![class(service(constant(0.01)), instant())], 2, ArrivalSpec::Fixed { per_s: 200.0 }));
    println!("{:?}", o.report());
}
