"""Two calibrations of the same servers at different times, and the overlap of their ranges.

`python -m bench.calibrations measure FILE` calibrates nginx, HAProxy and Go's crypto/tls for the cases of the
capacity benchmark, as `capacity --calibrate` does, and writes the results as JSON.
`python -m bench.calibrations compare FIRST SECOND` prints two such files as a table of a page.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from bench.capacity import CASES
from bench.harness import UnavailableError
from bench.tls_servers import SERVERS, core, serving
from shakedown.errors import ShakedownError
from shakedown.native.processors import placed
from shakedown.schema.base import builtins

SECONDS = 0.45
"""Duration of each of the six rounds; short, so that all cases are measured within three minutes."""


def measure() -> dict[str, dict[str, Any]]:
    """The calibration of every case of every installed server, and the load average."""
    from shakedown import native
    from shakedown.live.calibration import calibrate

    found: dict[str, dict[str, Any]] = {}
    for software in SERVERS:
        cases = [case for case in CASES if case.goes_with(software) and not case.newer]
        try:
            keys = sorted({(case.key, case.ids) for case in cases})
            with serving(software, keys) as server, placed(core(1)):
                for case in cases:
                    place = server.places[case.key, case.ids]
                    name = f"{software} {case.name}"
                    try:
                        one = calibrate(
                            f"127.0.0.1:{place.port}", native.canonical(case.suite), seconds=SECONDS
                        )
                    except ShakedownError as error:
                        found[name] = {"error": str(error)}
                    else:
                        found[name] = {**builtins(one), "load": os.getloadavg()[0]}
        except UnavailableError as error:
            sys.stderr.write(f"{software}: {error}\n")
    return found


def table(first: dict[str, dict[str, Any]], second: dict[str, dict[str, Any]]) -> str:
    """The cases of both files, and whether their ranges overlap."""
    lines = [
        "| server, handshake | first (µs) | range | second (µs) | range | overlap |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    shared = [name for name in first if "server_s" in first[name] and "server_s" in second.get(name, {})]
    overlapping = 0
    for name in shared:
        pair = [one[name]["server_s"] for one in (first, second)]
        overlap = max(one["lower"] for one in pair) <= min(one["upper"] for one in pair)
        overlapping += overlap
        figures = " | ".join(
            f"{1e6 * one['estimate']:,.0f} | {1e6 * one['lower']:,.0f} – {1e6 * one['upper']:,.0f}"
            for one in pair
        )
        lines.append(f"| {name} | {figures} | {'yes' if overlap else 'no'} |")
    lines.append(f"\n{overlapping} of {len(shared)} ranges overlap.")
    return "\n".join(lines)


def main() -> None:
    """Measure or compare, according to the first argument."""
    if sys.argv[1] == "measure":
        Path(sys.argv[2]).write_text(json.dumps(measure()), encoding="utf-8")
    else:
        files = (json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[2:4])
        sys.stdout.write(f"{table(*files)}\n")


if __name__ == "__main__":
    main()
