//! Measures the suites named on the command line; for looking at the instrument itself.

use shakedown_stacks::{Settings, measure};
use std::ops::ControlFlow;

/// Rust's own allocations are counted beside OpenSSL's.
#[global_allocator]
static ALLOCATOR: shakedown_ossl::memory::Counting = shakedown_ossl::memory::Counting;

fn main() {
    eprintln!("memory: {}", shakedown_ossl::memory::install());
    for name in std::env::args().skip(1) {
        let result = name.parse().map_err(|error| format!("{error}")).and_then(|suite| {
            measure::measure(&suite, 30, &Settings::default(), &mut |_| ControlFlow::Continue(()))
                .map_err(|error| error.to_string())
        });
        match result {
            Err(error) => println!("{name}: {error}"),
            Ok(found) => {
                println!(
                    "{}: {} B, {} flights, client {:.0} us, server {:.0} us, unattributed {:.1} {:.1}, coverage {:.4}, preempted {}",
                    found.suite,
                    found.bytes.total,
                    found.flights,
                    found.handshake.client_us.summary.median,
                    found.handshake.server_us.summary.median,
                    found.unattributed_us.client,
                    found.unattributed_us.server,
                    found.accounting.coverage,
                    found.preempted
                );
                println!("  {:?}", found.memory);
                for message in &found.messages {
                    println!(
                        "  {:2} {:6} {:2} {:20} {:5} B  {:8.1} {:8.1}",
                        message.index,
                        message.from,
                        message.unit,
                        message.name,
                        message.bytes,
                        message.generate_us,
                        message.process_us
                    );
                    for operation in found.operations.iter().filter(|o| o.message == Some(message.index)) {
                        println!(
                            "       {:6} {:11} {} {} {:.1} us x{} {} B",
                            operation.side,
                            operation.operation.as_str(),
                            operation.algorithm,
                            operation.parameters,
                            operation.us,
                            operation.count,
                            operation.bytes
                        );
                    }
                }
            }
        }
    }
}
