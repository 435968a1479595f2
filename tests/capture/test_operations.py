"""Operations of captured handshakes compared with those that `measure` records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from capture.oracle import Captured
from shakedown import native
from shakedown.api import in_memory
from shakedown.cli import exit_status

# What a capture does not show.
INVISIBLE = {"digest", "mac", "cipher", "prf", "import"}

Trace = Mapping[str, Any]


def done(trace: Trace) -> Counter[tuple[str, ...]]:
    """Counts of the visible operations, by message, side and algorithm."""
    names = [(message["from"], message["name"]) for message in trace["messages"]]
    keys = ("side", "operation", "algorithm", "parameters")
    return Counter(
        {
            (*names[one["message"]], *(one[key] for key in keys)): one["count"]
            for one in trace["operations"]
            if one["operation"] not in INVISIBLE
        }
    )


def measured(suite: str, known: dict[str, Trace] = {}) -> Trace:  # noqa: B006 - kept for all tests
    if suite not in known:
        known[suite] = msgspec.to_builtins(in_memory.measure(suite, 1))
    return known[suite]


def every_mode() -> list[str]:
    """Each key exchange of each protocol in each authentication and mode, and TLS 1.3 in every group."""
    chosen: dict[tuple[str | None, ...], str] = {}
    for offer in native.suites():
        about = native.describe(offer.suite)
        group = about["group"] if about["protocol"] == "tls1.3" else None
        keys = ("protocol", "key_exchange", "authentication", "mode")
        chosen.setdefault((*(about[key] for key in keys), group), offer.suite)
    # Smaller keys are generated faster.
    smaller = {"rsa2048": "rsa1024", "dsa2048": "dsa1024", "+dh2048": "+dh1024"}
    names = "\n".join(chosen.values())
    for usual, small in smaller.items():
        names = names.replace(usual, small)
    return names.splitlines()


def traced(capture: Path, key_log: Path, folder: Path) -> list[Trace]:
    out = folder / "traces.json"
    arguments = ["inspect", str(capture), "--keylog", str(key_log), "--summary", "--traces-out", str(out)]
    assert exit_status(arguments) == 0
    found: list[Trace] = json.loads(out.read_text(encoding="utf-8"))
    return found


def disagreements(traces: Iterable[Trace]) -> dict[str, tuple[object, object]]:
    pairs = {trace["suite"]: (done(trace), done(measured(trace["suite"]))) for trace in traces}
    return {suite: pair for suite, pair in pairs.items() if pair[0] != pair[1]}


def test_captured_handshakes_have_the_measured_operations(tmp_path: Path) -> None:
    suites = every_mode()
    capture, key_log = tmp_path / "all.pcap", tmp_path / "all.keys"
    in_memory.capture(suites, capture, keylog=key_log)
    traces = traced(capture, key_log, tmp_path)
    assert disagreements(traces) == {}
    # A resumption without its full handshake has no name, except in TLS 1.3, by its key exchange.
    nameless = ("/resumed", "/ticket")
    named = {suite for suite in suites if suite.startswith("tls1.3/") or not suite.endswith(nameless)}
    assert len(traces) == len(named)
    assert {trace["suite"] for trace in traces} >= {suite for suite in named if not suite.endswith(nameless)}
    assert any(trace["suite"].startswith("tls1.3/psk_dhe+") for trace in traces)


def test_captured_handshakes_of_real_peers_have_the_measured_operations(
    captured: Captured, tmp_path: Path
) -> None:
    """Also resumed by identifier and by ticket; the full handshakes are in the same capture."""
    traces = traced(captured.path, captured.key_log, tmp_path)
    runnable = {offer: native.describe(offer)["stack"] for offer in {trace["suite"] for trace in traces}}
    found = [trace for trace in traces if runnable[trace["suite"]] and trace["suite"].startswith("tls")]
    assert disagreements(found) == {}
    modes = Counter(native.describe(trace["suite"])["mode"] for trace in found)
    assert modes["full"] > 10
    assert modes["resumed"] == 2
    assert modes["ticket"] == 1
