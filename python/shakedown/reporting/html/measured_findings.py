"""The first findings on measured handshakes: the fastest and the slowest, and notable differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, log
from typing import TYPE_CHECKING

from shakedown.reporting.columns import Row
from shakedown.reporting.columns.measured import NOISY, count_round_trips, uncertainty
from shakedown.reporting.figures import count, share, time_us, times, whole
from shakedown.reporting.html.text import Sentence, sentence
from shakedown.schema.base import SIDES

if TYPE_CHECKING:
    from shakedown.results.folder import Results


def both_us(row: Row) -> float:
    """Mean time of a whole handshake, both sides together."""
    return float(row["client_us"] + row["server_us"])


WIDE_INTERVAL = 0.2
"""A 95 % interval of at least this share of the mean causes a remark at the head of the page."""


def both_uncertainty(row: Row) -> float:
    """Half of the 95 % interval of the time of both sides, as a share of it."""
    return hypot(*(uncertainty(row, side) * row[f"{side}_us"] for side in SIDES)) / (both_us(row) or 1.0)


def _mean(mean_us: float, off: float) -> str:
    """`902 µs`; `4.9 ms ± 88%` if the interval is wide."""
    return time_us(mean_us) if off < NOISY else f"{time_us(mean_us, 2)} ± {share(off)}"


@dataclass(frozen=True)
class _Ratio:
    """The ratio of two means, and its relative uncertainty."""

    value: float
    off: float

    @property
    def is_shown(self) -> bool:
        """Whether the intervals of the means are disjoint; those of means that may be 0 are not."""
        return self.value > 0.0 and self.off < min(abs(log(self.value)), 1.0)

    def times(self) -> str:
        """`61 times`; `about 60 times` if the intervals are wide."""
        if self.off < NOISY:
            return times(self.value)
        return f"about {float(f'{self.value:.{1 if self.value >= 2.0 else 2}g}'):,g} times"

    def part(self) -> str:
        """The difference from 1, as a share: `12%`."""
        away = abs(1.0 - self.value)
        return share(away) if self.off < NOISY else f"about {share(float(f'{away:.1g}'))}"


def _both(one: Row, other: Row) -> _Ratio:
    return _Ratio(both_us(one) / both_us(other), hypot(both_uncertainty(one), both_uncertainty(other)))


def answer(results: Results) -> list[Sentence]:
    """A sentence on time and one on bytes: the minimum, the maximum, and their ratio; then a remark on the
    uncertainty of the times, if it is large.
    """
    rows = results.handshakes.to_dicts()
    if not rows:
        return []
    if len(rows) == 1:
        return [_single(rows[0]), *_doubts(rows)]
    least, most = min(rows, key=both_us), max(rows, key=both_us)
    small, large = min(rows, key=lambda row: row["bytes"]), max(rows, key=lambda row: row["bytes"])
    ratio = _both(most, least)
    apart = f"{ratio.times()} as long" if ratio.is_shown else "the intervals overlap"
    return [
        sentence(
            f"Of {count(len(rows), 'handshake')}, {{least}} takes the least time, {{!low}} of both sides "
            f"together, and {{most}} the most, {{!high}}: {apart}.",
            least=least["label"],
            low=_mean(both_us(least), both_uncertainty(least)),
            most=most["label"],
            high=_mean(both_us(most), both_uncertainty(most)),
        ),
        sentence(
            "On the wire they take from {!few} ({small}) to {!many} ({large}).",
            few=f"{whole(small['bytes'])} bytes",
            small=small["label"],
            many=f"{whole(large['bytes'])} bytes",
            large=large["label"],
        ),
        *_doubts(rows),
    ]


def _doubts(rows: Sequence[Row]) -> Iterator[Sentence]:
    """The suites whose times are uncertain, and the remedy."""
    off = {row["label"]: max(uncertainty(row, side) for side in SIDES) for row in rows}
    rough = [suite for suite, part in off.items() if part >= WIDE_INTERVAL]
    if not rough:
        return
    worst = max(rough, key=off.__getitem__)
    which = "its times" if len(rows) == 1 else f"times of {len(rough):,} of {len(rows):,} handshakes"
    most = "" if len(rows) == 1 else ", {worst}"
    yield sentence(
        f"Uncertain: {which} are known to ± 20 % or worse (± {{!most}}{most}), because other programs were "
        "running or there were few repetitions. Measure again on an idle machine, or with a higher repeat.",
        worst=worst,
        most=share(off[worst]),
    )


def _single(row: Row) -> Sentence:
    return sentence(
        f"{{suite}} costs the client {{!client}} and the server {{!server}}, and {{!bytes}} on the wire in "
        f"{count_round_trips(row['flights'])}.",
        suite=row["label"],
        client=_mean(row["client_us"], uncertainty(row, "client")),
        server=_mean(row["server_us"], uncertainty(row, "server")),
        bytes=f"{whole(row['bytes'])} bytes",
    )


def findings(results: Results) -> list[Sentence]:
    """Notable differences between suites that can be compared, if their intervals support them."""
    rows = {row["label"]: row for row in results.handshakes.to_dicts()}
    made = (find(rows) for find in (_resumption, _mutual, _post_quantum, _heaviest_part))
    return [found for found in made if found]


def _pairs(rows: Mapping[str, Row], old: str, new: str) -> list[tuple[str, str]]:
    """Suites whose names differ in one part only: it is `old` in the first and `new` in the second."""
    renamed = {
        suite: "/".join(part for part in (new if part == old else part for part in suite.split("/")) if part)
        for suite in rows
        if old in suite.split("/")
    }
    return [(suite, other) for suite, other in renamed.items() if other in rows and other != suite]


def _resumption(rows: Mapping[str, Row]) -> Sentence | None:
    pairs = [(full, resumed) for resumed, full in _pairs(rows, "resumed", "")]
    if not pairs:
        return None
    ratios = {pair: _both(rows[pair[1]], rows[pair[0]]) for pair in pairs}
    # The largest saving, preferably among pairs whose intervals are disjoint.
    full, resumed = min(ratios, key=lambda pair: (not ratios[pair].is_shown, ratios[pair].value))
    ratio = ratios[full, resumed]
    verb = "saves" if ratio.value <= 1 else "adds"
    time = f" {verb} {{!part}} of the time of both sides, and" if ratio.is_shown else ""
    return sentence(
        f"Resuming {{full}}{time} takes {whole(rows[resumed]['bytes'])} bytes instead of "
        f"{whole(rows[full]['bytes'])}.",
        full=full,
        part=ratio.part(),
    )


def _mutual(rows: Mapping[str, Row]) -> Sentence | None:
    pairs = _pairs(rows, "server", "mutual") or _pairs(rows, "requested", "mutual")
    if not pairs:
        return None

    def compared(one_way: str, mutual: str) -> _Ratio:
        one, other = rows[mutual], rows[one_way]
        off = hypot(uncertainty(one, "client"), uncertainty(other, "client"))
        return _Ratio(one["client_us"] / other["client_us"], off)

    one_way, mutual = next(
        (pair for pair in pairs if compared(*pair).is_shown and compared(*pair).value > 1.0), pairs[0]
    )
    ratio = compared(one_way, mutual)
    more = f"{whole(rows[mutual]['bytes'] - rows[one_way]['bytes'])} more bytes are sent"
    # The client also signs, so a shorter time than without signatures is caused by the machine.
    if not ratio.is_shown or ratio.value < 1.0:
        return sentence(f"When the client must authenticate too ({{mutual}}), {more}.", mutual=mutual)
    return sentence(
        "When the client must authenticate too ({mutual}), it works {!ratio} as long as with the server's "
        f"certificate alone, and {more}.",
        mutual=mutual,
        ratio=ratio.times(),
    )


def _post_quantum(rows: Mapping[str, Row]) -> Sentence | None:
    def rest(suite: str) -> tuple[str, ...]:
        parts = suite.split("/")
        return (parts[0], *parts[3:])

    classical: dict[tuple[str, ...], str] = {
        rest(suite): suite
        for suite in reversed(list(rows))
        if "mlkem" not in suite and "mldsa" not in suite and len(suite.split("/")) >= 3
    }
    pairs = [
        (suite, old)
        for suite in rows
        if "mlkem" in suite and "mldsa" in suite and (old := classical.get(rest(suite))) is not None
    ]
    if not pairs:
        return None
    suite, old = next((pair for pair in pairs if _both(*map(rows.__getitem__, pair)).is_shown), pairs[0])
    ratio = _both(rows[suite], rows[old])
    time = " and takes {!time} its time" if ratio.is_shown else ""
    return sentence(
        f"Post-quantum {{suite}} sends {{!bytes}} the bytes of {{old}}{time}.",
        suite=suite,
        bytes=times(rows[suite]["bytes"] / rows[old]["bytes"]),
        old=old,
        time=ratio.times(),
    )


def _heaviest_part(rows: Mapping[str, Row]) -> Sentence | None:
    shares = {}
    for suite, row in rows.items():
        public = sum(row[f"{side}_{kind}_us"] for side in SIDES for kind in ("key", "signature"))
        if public and both_uncertainty(row) < WIDE_INTERVAL:
            shares[suite] = public / both_us(row)
    if not shares:
        return None
    least, most = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    if least == most:
        return sentence("Public-key operations are {!part} of its time.", part=share(shares[most]))
    return sentence(
        "Where there are public-key operations, they are {!low} ({least}) to {!high} ({most}) of the time; "
        "the rest is symmetric work, parsing and bookkeeping.",
        low=share(shares[least]),
        least=least,
        high=share(shares[most]),
        most=most,
    )
