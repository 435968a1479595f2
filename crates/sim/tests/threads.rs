//! Replications on several threads have the same outcome as on one thread.

mod common;

use common::{class, instant, scenario, service};
use shakedown_link::DistributionSpec;
use shakedown_sim::{ArrivalSpec, Scenario, Simulation};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

fn queues(clients: u64, replications: u32) -> Scenario {
    let time = DistributionSpec::Exponential { minimum_s: 0.005, mean_s: 0.01 };
    let class = class(service(time), instant());
    Scenario {
        replications,
        first_replication: 3,
        ..scenario(vec![class], clients, ArrivalSpec::Poisson { per_s: 70.0 })
    }
}

#[test]
fn several_threads_give_the_outcome_of_one() {
    let simulation = Simulation::new(queues(3000, 7)).expect("valid");
    let text = |outcome| serde_json::to_string(&outcome).expect("serialises");
    let one = text(simulation.run(&mut |_| ControlFlow::Continue(())));
    for threads in [1, 2, 3, 7, 20] {
        let threads = NonZeroUsize::new(threads).expect("not 0");
        let mut last = 0;
        let several = simulation.run_on(threads, &mut |through| {
            assert!((last..=7 * 3000).contains(&through), "{through} after {last}");
            last = through;
            ControlFlow::Continue(())
        });
        assert_eq!(text(several), one, "{threads} threads");
    }
}

#[test]
fn run_on_several_threads_can_be_aborted() {
    // So long that it ends only if `progress` stops it.
    let simulation = Simulation::new(queues(1_000_000_000, 4)).expect("valid");
    let two = NonZeroUsize::new(2).expect("not 0");
    assert!(simulation.run_on(two, &mut |_| ControlFlow::Break(())).is_none());
}
