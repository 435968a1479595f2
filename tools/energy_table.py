"""The predicted energy of a handshake on battery-powered devices over every bearer.

`make energy-table` writes the table of docs/validation/energy.md, with the number of lines whose energies and
battery life have both bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from shakedown.errors import InputError
from shakedown.prediction.predict import predict_rows
from shakedown.profiles import bearer_names
from shakedown.reporting.figures import rough
from shakedown.schema.options import PredictionOptions
from tools import pages

PAGE = pages.VALIDATION / "energy.md"
DEVICES = ("cortex-m4", "esp32-c3", "nrf52840", "phone")
SUITES = ("tls1.2/psk", "tls1.3/x25519/p256/server")
BATTERY_J = 2.4 * 3600 * 3.6
"""2.4 Ah at 3.6 V."""
OPTIONS = PredictionOptions(battery_j=BATTERY_J, from_idle=True)

Figure = dict[str, Any]


def short(value: float | None) -> str:
    """Two significant digits."""
    return "?" if value is None else rough(value)


def cell(figure: Figure, unit: float = 1.0) -> str:
    """An estimate with its range; if a part is unknown, only the range, if it has both ends."""
    estimate, *ends = (
        None if figure[name] is None else figure[name] * unit for name in ("estimate", "lower", "upper")
    )
    if estimate is None and None in ends:
        return "–"
    between = " – ".join(map(short, ends))
    return between if estimate is None else f"{short(estimate)} ({between})"


def has_both_ends(row: Figure) -> bool:
    """Whether energy and battery life of a handshake have lower and upper bounds."""
    figures = (row["energy_j"], row["wake_tail_j"], row["handshakes_per_charge"])
    return all(figure["lower"] is not None and figure["upper"] is not None for figure in figures)


Line = tuple[str, tuple[bool, ...]]
"""A line of the table, and by suite whether it has both bounds; empty if no handshake succeeds."""


def lines(bearer: str) -> Iterator[Line]:
    """A line for each device."""
    for device in DEVICES:
        try:
            rows = predict_rows(SUITES, device=device, bearer=bearer, options=OPTIONS)
        except InputError:
            yield f"| {bearer} | {device} | – | – | – | – | – |", ()
            continue
        cells = (
            *(cell(row["energy_j"], 1e3) for row in rows),
            cell(rows[0]["wake_tail_j"], 1e3),
            *(cell(row["handshakes_per_charge"]) for row in rows),
        )
        yield f"| {bearer} | {device} | {' | '.join(cells)} |", tuple(map(has_both_ends, rows))


def table(found: Sequence[Line]) -> str:
    """The table in Markdown, with a sentence on both bounds."""
    psk, full = (sum(whole[at] for _, whole in found if whole) for at in range(len(SUITES)))
    refused = sum(not whole for _, whole in found)
    lacking = sorted({line.split(" | ")[1] for line, whole in found if whole and not whole[1]})
    unknown = f", which is unknown on {', '.join(lacking)}" if lacking else ""
    head = (
        "| bearer | device | PSK (mJ) | TLS 1.3, P-256 (mJ) | waking and tail (mJ) | PSK per charge "
        "| P-256 per charge |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    )
    return (
        f"Energy and battery life have a lower and an upper end in {psk} of {len(found)} lines for PSK and "
        f"in {full} for P-256{unknown}. In {refused} lines no handshake completes: the bearer's packets are "
        "too small for TCP.\n\n" + "\n".join([head, *(line for line, _ in found)])
    )


def main() -> None:
    """Compute, write, and print the sentence."""
    text = table([line for bearer in bearer_names() for line in lines(bearer)])
    pages.write(PAGE, "energies: made by make energy-table", text)
    print(text.split("\n", 1)[0])


if __name__ == "__main__":
    main()
