"""Eight threads that use the package for the first time concurrently, in each of several new processes.

`child.py FOLDER PROCESSES NAME…` forks each process before the package is loaded. Thread `i` of a process
calls function `i` of the names, in turn. Prints a line for each process that failed.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from pathlib import Path

THREADS = 8
SUITE = "tls1.2/psk"
EXPERIMENT = 'suites = ["tls1.2/psk"]\nrepeat = 2\n'
BUDGET = f'[[budget]]\nsuite = "{SUITE}"\nbytes = 344\n'
MIX = '[[clients]]\nsuite = "tls1.2/psk"\nweight = 1\n'


def uses(folder: Path) -> dict[str, object]:
    """A quick call of each public function; those that need another machine end in an `InputError`."""
    import shakedown

    own = folder / f"{os.getpid()}-{threading.get_ident()}"

    def written(name: str, text: str) -> Path:
        own.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(text)
        return own / name

    def ran() -> Path:
        run = shakedown.load_experiment(written("e.toml", EXPERIMENT))
        shakedown.run_experiment(run, own / "r")
        return own / "r"

    def captured() -> Path:
        shakedown.capture([SUITE], written("x", "").with_name("c.pcap"))
        return own / "c.pcap"

    def loaded() -> object:
        with shakedown.serve(SUITE, listen="127.0.0.1:0") as server:
            return shakedown.load(
                server.address, SUITE, shakedown.LoadOptions(rate_per_s=20.0, duration_s=0.1)
            )

    return {
        "attach": lambda: shakedown.attach(attaching=shakedown.Attaching(attaches=2)),
        "attach_live": lambda: shakedown.attach_live("127.0.0.1:1", own / "card.json"),
        "authenticate": lambda: shakedown.authenticate("127.0.0.1:1", "secret", "tls9/x"),
        "bearers": lambda: shakedown.bearers("lte"),
        "calibrate": lambda: shakedown.calibrate("no such target", SUITE),
        "canonical": lambda: shakedown.canonical("tls1.2/psk"),
        "capacity": lambda: shakedown.capacity(SUITE, within_s=2.0),
        "capture": captured,
        "certs": lambda: shakedown.certs("profiles"),
        "check_bearer": lambda: shakedown.check_bearer("no such bearer"),
        "check_budgets": lambda: shakedown.check_budgets(written("b.toml", BUDGET)),
        "compare": lambda: shakedown.compare(ran(), ran()),
        "compare_pair": lambda: shakedown.compare_pair("tls9/x", SUITE),
        "compare_live": lambda: shakedown.compare_live(own / "none.toml"),
        "describe": lambda: shakedown.describe(SUITE),
        "devices": lambda: shakedown.devices("phone"),
        "inspect": lambda: shakedown.inspect(captured()),
        "load": loaded,
        "load_experiment": lambda: shakedown.load_experiment(written("e.toml", EXPERIMENT)),
        "load_results": lambda: shakedown.load_results(ran()),
        "machine": shakedown.machine,
        "measure": lambda: shakedown.measure(SUITE, repeat=3)._repr_html_(),
        "measure_path": lambda: shakedown.measure_path("no such host"),
        "predict": lambda: repr(shakedown.predict(SUITE)),
        "primitives": lambda: shakedown.primitives("digest", "sha256", seconds=0.01),
        "report": lambda: shakedown.report(ran()),
        "reproduce": lambda: shakedown.reproduce("no such paper"),
        "run_experiment": ran,
        "serve": lambda: shakedown.serve(SUITE, listen="127.0.0.1:0").stop(),
        "simulate": lambda: shakedown.simulate(SUITE, shakedown.Fleet(clients=20))._repr_html_(),
        "simulate_mix": lambda: shakedown.simulate_mix(
            written("m.toml", MIX), shakedown.Fleet(arrivals="poisson:5/s", clients=20)
        ),
        "stacks": shakedown.stacks,
        "suites": lambda: repr(shakedown.suites("tls1.2", "psk")),
    }


def at_once(names: list[str], folder: Path) -> int:
    """Runs all threads from one barrier; returns 1 if any raised something other than an `InputError`."""
    # Threads switch as often as possible, to provoke races.
    sys.setswitchinterval(1e-6)
    failed: list[str] = []
    barrier = threading.Barrier(THREADS)

    def one(name: str) -> None:
        barrier.wait()
        try:
            uses(folder)[name]()
        except Exception as error:
            from shakedown import InputError

            # Errors about arguments are expected; all others are failures.
            if not isinstance(error, InputError):
                failed.append(f"{name}: {traceback.format_exc()}")

    threads = [threading.Thread(target=one, args=(names[i % len(names)],)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.write("".join(failed))
    sys.stdout.flush()
    return 1 if failed else 0


def main() -> int:
    folder, processes, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    import click  # noqa: F401 - third-party modules are loaded once for all processes
    import msgspec  # noqa: F401
    import numpy  # noqa: F401

    worst = 0
    for number in range(processes):
        child = os.fork()
        if child == 0:
            os._exit(at_once(names, folder))
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            sys.stdout.write(f"process {number} of {' '.join(names)} ended with {code}\n")
            sys.stdout.flush()
            worst = 1
    return worst


if __name__ == "__main__":
    sys.exit(main())
