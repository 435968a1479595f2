"""The page that says how often ranges of scaled figures hold: its tables, from the trials of calibration."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from shakedown.prediction.calibration import CLOCK, PAIR, SCENARIOS, SOFTWARE, Trial
from shakedown.prediction.ratios import Ratios
from shakedown.prediction.relations import group, kind

FAMILIES = {
    "prime-curve": "curves over prime fields (P-256 …)",
    "random-curve": "curves over random primes (Brainpool)",
    "binary-curve": "curves over binary fields",
    "montgomery-curve": "X25519, X448",
    "edwards-curve": "Ed25519, Ed448",
    "rsa": "RSA, e = 65537",
    "rsa-e3": "RSA, e = 3",
    "dsa": "DSA",
    "dh": "DH, exponents as long as the prime",
    "ffdhe": "DH, short exponents",
    "mlkem": "ML-KEM",
    "mldsa": "ML-DSA",
    "hybrid": "hybrids, as one operation",
    "symmetric": "ciphers, digests, MACs (bulk)",
}
_MODES = {"gcm": "AES-GCM", "ccm": "AES-CCM", "poly1305": "ChaCha20-Poly1305", "cbc": "CBC"}
_WIDE = "### Symmetric work by the clock, however wide the range"
_HEAD = (
    "| family | figures | given | held | median range | median error | within ×/÷ 4 |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def coverage_tables(ratios: Ratios, found: Sequence[Trial]) -> str:
    """The tables in Markdown, one a scenario, then the relations with their fitted factors."""
    parts = []
    boards = {build.board for build in ratios.builds}
    parts.append(f"{len(ratios.builds)} builds of {len(boards)} boards, {len(ratios.triples())} primitives.")
    for name, (title, _) in SCENARIOS.items():
        rows = [trial for trial in found if trial.scenario == name]
        parts += [f"### {title[:1].upper()}{title[1:]}", _HEAD + "\n" + "\n".join(_rows(rows))]
    by_pair = [trial for trial in found if trial.scenario == PAIR]
    parts += [
        "### All hidden but one figure on another curve of the size",
        _HEAD + "\n" + "\n".join(_rows(by_pair)),
    ]
    in_c = [trial for trial in found if trial.scenario == SOFTWARE]
    parts += ["### Curves in C by the library's other boards", _HEAD + "\n" + "\n".join(_rows(in_c))]
    by_clock = [trial for trial in found if trial.scenario == CLOCK]
    parts += [_WIDE, _HEAD + "\n" + "\n".join(_wide_rows(by_clock))]
    parts += [
        "### Fitted factors",
        "| scaled along | factor of the range |\n| --- | ---: |\n"
        + "\n".join(
            f"| {key.partition('/')[0]}: {key.partition('/')[2]} | {value:.2f} |"
            for key, value in sorted(ratios.fit.factors.items())
        ),
    ]
    parts.append(
        "| family | factor of the range |\n| --- | ---: |\n"
        + "\n".join(
            f"| {title} | {ratios.fit.families[name]:.2f} |"
            for name, title in FAMILIES.items()
            if name in ratios.fit.families
        )
    )
    return "\n\n".join(parts)


def _rows(trials: Iterable[Trial]) -> list[str]:
    by_family: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_family["symmetric" if group(trial.target) == "symmetric" else kind(trial.target)].append(trial)
    rows = [_row(title, by_family[name]) for name, title in FAMILIES.items() if name in by_family]
    return [*rows, _row("**all**", [trial for some in by_family.values() for trial in some])]


def _wide_rows(trials: Sequence[Trial]) -> list[str]:
    """By mode, all that have a range; wide ones count where they hardly matter."""
    given = [trial for trial in trials if trial.estimate is not None]
    ciphers = [trial for trial in given if trial.target[0] == "cipher"]
    rows = [
        (title, [one for one in ciphers if one.target[1].endswith(mode)]) for mode, title in _MODES.items()
    ]
    rows += [("other ciphers", [one for one in ciphers if not one.target[1].endswith(tuple(_MODES))])]
    rows += [("digests, MACs", [one for one in given if one not in ciphers]), ("**all**", given)]
    return [_row(title, some, some) for title, some in rows]


def _row(title: str, trials: Sequence[Trial], given: Sequence[Trial] | None = None) -> str:
    known = [trial for trial in trials if trial.known] if given is None else list(given)
    if not known:
        return f"| {title} | {len(trials)} | 0 | – | – | – | – |"
    halves = [trial.estimate.half for trial in known if trial.estimate is not None]
    errors = [abs(trial.error) for trial in known]
    held = sum(trial.held for trial in known) / len(known)
    near = sum(error < math.log(4.0) for error in errors) / len(known)
    middle, error = (math.exp(statistics.median(values)) for values in (halves, errors))
    return (
        f"| {title} | {len(trials)} | {len(known)} | {held:.0%} | ×/÷ {middle:.2f} | ×/÷ {error:.2f} "
        f"| {near:.0%} |"
    )
