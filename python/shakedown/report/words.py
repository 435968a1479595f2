"""Numbers and sentences for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shakedown.measurement import Measurement, Side, time_by_class_us


def duration(microseconds: float) -> str:
    """`45 µs`, `1.22 ms`, `18.3 ms`, `1.4 s`."""
    if microseconds < 999.5:
        return f"{microseconds:.0f} µs" if microseconds >= 9.95 else f"{microseconds:.1f} µs"
    if microseconds < 999_500:
        value = microseconds / 1000
        return f"{value:.2f} ms" if value < 10 else f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"
    return f"{microseconds / 1e6:.2f} s"


def times(ratio: float) -> str:
    """`1.3 times`, `43 times`."""
    return f"{ratio:.1f} times" if ratio < 9.95 else f"{ratio:,.0f} times"


def count(number: int, noun: str) -> str:
    """`1 handshake`, `12 handshakes`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class Piece:
    """A run of text; `suite` marks a suite's name, `strong` a figure to look at."""

    text: str
    suite: bool = False
    strong: bool = False


Sentence = list[Piece]


def _suite(name: str) -> Piece:
    return Piece(name, suite=True)


def _figure(text: str) -> Piece:
    return Piece(text, strong=True)


def answer(by_suite: Mapping[str, Measurement]) -> list[Sentence]:
    """One sentence on time and one on bytes: the least, the most, and how far apart they are."""
    if len(by_suite) == 1:
        return [_single(next(iter(by_suite.values())))]
    both = {suite: mean_us(one, "client") + mean_us(one, "server") for suite, one in by_suite.items()}
    sizes = {suite: one["bytes"]["total"] for suite, one in by_suite.items()}
    least, most = min(both, key=both.__getitem__), max(both, key=both.__getitem__)
    small, large = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    return [
        [
            Piece(f"Of {count(len(by_suite), 'handshake')}, "),
            _suite(least),
            Piece(" takes the least time, "),
            _figure(f"{duration(both[least])}"),
            Piece(" of both sides together, and "),
            _suite(most),
            Piece(" the most, "),
            _figure(duration(both[most])),
            Piece(f": {times(both[most] / both[least])} as long."),
        ],
        [
            Piece("On the wire they take from "),
            _figure(f"{sizes[small]:,.0f} bytes"),
            Piece(" ("),
            _suite(small),
            Piece(") to "),
            _figure(f"{sizes[large]:,.0f} bytes"),
            Piece(" ("),
            _suite(large),
            Piece(")."),
        ],
    ]


def _single(measurement: Measurement) -> Sentence:
    trips = count_round_trips(measurement["flights"])
    return [
        _suite(measurement["suite"]),
        Piece(" costs the client "),
        _figure(duration(mean_us(measurement, "client"))),
        Piece(" and the server "),
        _figure(duration(mean_us(measurement, "server"))),
        Piece(", and "),
        _figure(f"{measurement['bytes']['total']:,.0f} bytes"),
        Piece(f" on the wire in {trips}."),
    ]


def count_round_trips(flights: int) -> str:
    """Flights as round trips: `2 round trips`, `1.5 round trips`."""
    trips = flights / 2
    return f"{trips:g} round trip{'' if trips == 1 else 's'}"


def mean_us(measurement: Measurement, side: Side) -> float:
    """Mean time of a whole handshake on one side."""
    return measurement["handshake"]["client_us" if side == "client" else "server_us"]["mean"]


def findings(by_suite: Mapping[str, Measurement]) -> list[Sentence]:
    """What stands out, where the suites allow the comparison."""
    found = []
    for find in (_resumption, _mutual, _post_quantum, _heaviest_part):
        sentence = find(by_suite)
        if sentence:
            found.append(sentence)
    return found


def _pairs(by_suite: Mapping[str, Measurement], old: str, new: str) -> list[tuple[str, str]]:
    """Suites whose names differ in one part only: `old` in the first is `new` in the second."""
    renamed = {
        suite: "/".join(part for part in (new if part == old else part for part in suite.split("/")) if part)
        for suite in by_suite
        if old in suite.split("/")
    }
    return [(suite, other) for suite, other in renamed.items() if other in by_suite and other != suite]


def _resumption(by_suite: Mapping[str, Measurement]) -> Sentence | None:
    pairs = [(full, resumed) for resumed, full in _pairs(by_suite, "resumed", "")]
    if not pairs:
        return None
    saved = {pair: 1 - _both(by_suite[pair[1]]) / _both(by_suite[pair[0]]) for pair in pairs}
    full, resumed = max(saved, key=saved.__getitem__)
    before, after = by_suite[full]["bytes"]["total"], by_suite[resumed]["bytes"]["total"]
    verb = "saves" if saved[full, resumed] >= 0 else "adds"
    return [
        Piece("Resuming "),
        _suite(full),
        Piece(f" {verb} "),
        _figure(f"{abs(saved[full, resumed]):.0%}"),
        Piece(f" of the time of both sides, and takes {after:,.0f} bytes instead of {before:,.0f}."),
    ]


def _mutual(by_suite: Mapping[str, Measurement]) -> Sentence | None:
    pairs = _pairs(by_suite, "server", "mutual") or _pairs(by_suite, "requested", "mutual")
    if not pairs:
        return None
    one_way, mutual = pairs[0]
    ratio = mean_us(by_suite[mutual], "client") / mean_us(by_suite[one_way], "client")
    more = by_suite[mutual]["bytes"]["total"] - by_suite[one_way]["bytes"]["total"]
    return [
        Piece("When the client must authenticate too ("),
        _suite(mutual),
        Piece("), it works "),
        _figure(times(ratio) if ratio >= 1 else f"{1 - ratio:.0%}"),
        Piece(" as long as" if ratio >= 1 else " less than"),
        Piece(f" with the server's certificate alone, and {more:,.0f} more bytes travel."),
    ]


def _post_quantum(by_suite: Mapping[str, Measurement]) -> Sentence | None:
    def rest(suite: str) -> tuple[str, ...]:
        parts = suite.split("/")
        return (parts[0], *parts[3:])

    quantum = [suite for suite in by_suite if "mlkem" in suite and "mldsa" in suite]
    for suite in quantum:
        for old in by_suite:
            if (
                rest(old) == rest(suite)
                and "mlkem" not in old
                and "mldsa" not in old
                and len(old.split("/")) >= 3
            ):
                now, then = by_suite[suite], by_suite[old]
                return [
                    Piece("Post-quantum "),
                    _suite(suite),
                    Piece(" sends "),
                    _figure(times(now["bytes"]["total"] / then["bytes"]["total"])),
                    Piece(" the bytes of "),
                    _suite(old),
                    Piece(" and takes "),
                    _figure(times(_both(now) / _both(then))),
                    Piece(" its time."),
                ]
    return None


def _heaviest_part(by_suite: Mapping[str, Measurement]) -> Sentence | None:
    shares = {}
    for suite, one in by_suite.items():
        splits = [time_by_class_us(one, side) for side in ("client", "server")]
        public = sum(split["key"] + split["signature"] for split in splits)
        if public:
            shares[suite] = public / _both(one)
    if not shares:
        return None
    least, most = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    if least == most:
        return [Piece("Public-key operations are "), _figure(f"{shares[most]:.0%}"), Piece(" of its time.")]
    return [
        Piece("Where there are public-key operations, they are "),
        _figure(f"{shares[least]:.0%}"),
        Piece(" ("),
        _suite(least),
        Piece(") to "),
        _figure(f"{shares[most]:.0%}"),
        Piece(" ("),
        _suite(most),
        Piece(") of the time; the rest is symmetric work, parsing and bookkeeping."),
    ]


def _both(measurement: Measurement) -> float:
    return mean_us(measurement, "client") + mean_us(measurement, "server")
