"""Measures the machine whose figures stand in for stacks' work elsewhere, and writes what the package keeps.

`python -m tools.measure_reference` measures the profile `epyc-turin` again (minutes; on a quiet
machine of that kind
only) and then derives `data/overhead.json`; with `--derive`, it derives from the profile as it is; with
`--connection`, it measures the TCP connection alone (half a minute), and changes that table in both files.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

from shakedown.prediction.stack_work import DATA
from shakedown.profiles import load_device
from shakedown.profiles.device import Device, parse_device
from shakedown.profiles.registry import shipped_names

PROFILE = "epyc-turin"
TITLE = "AMD EPYC (Zen 5, Turin) virtual machine, one core"
PLACE = Path(__file__).parent.parent / "python" / "shakedown" / "profiles" / "devices" / f"{PROFILE}.toml"

SOFTWARE_S_PER_KIB = 1.61e-6
"""SHA-256 of a KiB there without the processor's instructions for it: `OPENSSL_ia32cap=:~0x20000000 shakedown
primitives digest sha256`."""
PLAIN = (
    ("encapsulate", "mlkem", "mlkem768"),
    ("decapsulate", "mlkem", "mlkem768"),
    ("verify", "mldsa", "mldsa44"),
    ("verify", "mldsa", "mldsa65"),
)
"""Primitives that OpenSSL computes in plain C everywhere."""
LINEAGES = {
    "openssl": (1.0, 1.5),
    "wolfssl": (0.15, 3.0),
    "": (0.3, 5.0),
}
"""What a library needs of OpenSSL's work on messages, and how far that may be off, ×/÷. For wolfSSL it
is what is
left of whole handshakes on the two boards that publish these with their primitives (see the prediction
check);
for the rest, between the two."""


def measure(seconds: float) -> None:
    """Measure this machine, into the shipped profile."""
    from shakedown import native
    from shakedown.prediction.connection_cost import connection_cost
    from shakedown.prediction.this_machine import measure_suites, profile_of, suites

    def say(done: int, total: int, name: str) -> None:
        if done % 50 == 0:
            print(f"{done}/{total} {name}", file=sys.stderr)

    timed = native.primitives(seconds=seconds, progress=say)
    measured = measure_suites(suites(), progress=say)
    connection = connection_cost()
    text = profile_of(PROFILE, timed, measured, connection, title=TITLE)
    PLACE.write_text(text, encoding="utf-8")


def measure_connection() -> None:
    """Measure a TCP connection here, into that table of the profile and of the data; all else stays."""
    from shakedown.prediction.connection_cost import connection_cost

    found = connection_cost()
    table = "".join(f"{key} = {value:.6g}\n" for key, value in found.items())
    text, count = re.subn(
        r"(?m)^\[connection\]\n(?:\w+ = .*\n)+", f"[connection]\n{table}", PLACE.read_text(encoding="utf-8")
    )
    if count != 1:
        raise SystemExit(f"{PLACE}: {count} tables [connection]; expected one")
    document = json.loads(DATA.read_bytes())
    before = document["connection"]
    PLACE.write_text(text, encoding="utf-8")
    document["connection"] = _connection(parse_device(tomllib.loads(text), str(PLACE)))
    DATA.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"before: {before}\nnow:    {document['connection']}")


def derive() -> dict[str, Any]:
    """What the package keeps of the profile and of other profiles' software digests."""
    device = load_device(PROFILE)
    if not device.overhead.messages:
        raise SystemExit(f"{PLACE}: no [[overhead.message]]; measure it first")
    calls: dict[str, list[float]] = defaultdict(list)
    for (operation, _, _), cost in device.costs.items():
        if operation in ("digest", "mac", "cipher", "prf") and cost.mean_s > 0.0:
            calls[operation].append(cost.mean_s)
    return {
        "from": PROFILE,
        "software_s_per_kib": SOFTWARE_S_PER_KIB,
        "cycles_per_byte": _cycles_per_byte(),
        "messages": [
            [protocol, name, work, _round(cost.mean_s), _round(cost.sd_s), _round(cost.per_kib_s)]
            for (protocol, name, work, key), cost in sorted(device.overhead.messages.items())
            if not key
        ],
        "handshakes": [
            [protocol, side, _round(cost.mean_s), _round(cost.sd_s), _round(cost.per_kib_s)]
            for (protocol, side), cost in sorted(device.overhead.handshakes.items())
        ],
        "calls": {name: _round(statistics.median(values)) for name, values in sorted(calls.items())},
        "imports": [
            [algorithm, parameters, _round(cost.mean_s)]
            for (operation, algorithm, parameters), cost in sorted(device.costs.items())
            if operation == "import"
        ],
        "connection": _connection(device),
        "plain": [
            [*triple, _round(device.costs[triple].mean_s)] for triple in PLAIN if triple in device.costs
        ],
        "plain_cycles": _plain_cycles({t: device.costs[t].mean_s for t in PLAIN if t in device.costs}),
        "lineages": {name: list(pair) for name, pair in LINEAGES.items()},
    }


def _connection(device: Device) -> dict[str, float]:
    """What a TCP connection costs each side, and by what share the handshake takes longer than in memory."""
    found = device.connection
    return {
        "server_s": _round(found.server_s or 0.0),
        "client_s": _round(found.client_s or 0.0),
        "per_kib_s": _round(found.per_kib_s),
        "server_cold": _round(found.server_cold),
        "client_cold": _round(found.client_cold),
    }


def _plain_cycles(plain: dict[tuple[str, str, str], float]) -> list[float]:
    """The clock, in Hz, at which a 64-bit core runs lattice schemes in C as fast as the reference does."""
    logs = []
    for name in shipped_names("devices"):
        one = load_device(name)
        if one.lineage != "openssl" or one.implementation.lattices != "c" or not one.reference:
            continue
        ratios = [
            math.log(one.costs[triple].mean_s / seconds)
            for triple, seconds in plain.items()
            if triple in one.costs
        ]
        if ratios and name != PROFILE:
            logs.append(statistics.fmean(ratios) + math.log(one.clock_hz))
    return [_round(math.exp(statistics.fmean(logs))), round(math.exp(1.645 * statistics.stdev(logs)), 2)]


def _cycles_per_byte() -> dict[str, list[float]]:
    """SHA-256 in software by word size: the geometric mean over boards, and how far 90 % of them are off."""
    found: dict[int, dict[str, float]] = defaultdict(dict)
    for name in shipped_names("devices"):
        device = load_device(name)
        for build in (device, *device.variants):
            cost = build.costs.get(("digest", "sha256", ""))
            if cost and build.implementation.symmetric in ("c", "assembler"):
                found[build.core.word_bits][build.board] = cost.per_kib_s / 1024.0 * build.clock_hz
    result = {}
    for bits, boards in sorted(found.items()):
        logs = [math.log(cycles) for cycles in boards.values()]
        deviation = statistics.stdev(logs) if len(logs) > 2 else math.log(2.0)
        result[str(bits)] = [
            round(math.exp(statistics.fmean(logs)), 1),
            round(math.exp(1.645 * deviation), 2),
        ]
    return result


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def main() -> None:
    """Measure unless asked not to, then derive."""
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--derive", action="store_true", help="do not measure")
    what.add_argument("--connection", action="store_true", help="measure the TCP connection alone")
    parser.add_argument("--seconds", type=float, default=1.0, help="longest time for each primitive")
    chosen = parser.parse_args()
    if chosen.connection:
        measure_connection()
        return
    if not chosen.derive:
        measure(chosen.seconds)
    DATA.write_text(json.dumps(derive(), indent=1) + "\n", encoding="utf-8")
    print(DATA)


if __name__ == "__main__":
    main()
