"""`measure`: real handshakes in memory, priced from inside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shakedown.cli._output import json_option, note, print_json, progress_bar, show_measurements
from shakedown.cli._suites import Moment, suites_argument

if TYPE_CHECKING:
    from shakedown.measurement import Measurement


@click.command("measure")
@suites_argument
@click.option(
    "--repeat",
    metavar="N",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="Handshakes per suite.",
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    help="Seed of the randomness that is not cryptographic.",
)
@click.option("--now", type=Moment(), help="Time at which certificates are checked; left out, a fixed one.")
@click.option(
    "--tickets", metavar="N", type=click.IntRange(0, 16), help="TLS 1.3 tickets that the server sends."
)
@click.option(
    "--profile", type=click.Path(dir_okay=False, path_type=Path), help="Certificate profile (TOML)."
)
@click.option(
    "--pcap",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a handshake of each suite as a capture.",
)
@click.option(
    "--keylog",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the key log that unlocks the capture.",
)
@json_option
def command(
    suites: tuple[str, ...],
    repeat: int,
    seed: int | None,
    now: int | None,
    tickets: int | None,
    profile: Path | None,
    pcap: Path | None,
    keylog: Path | None,
    as_json: bool,
) -> None:
    """Measure what handshakes cost here: time per message and operation, and bytes, on both sides.

    SUITE is protocol/key-exchange[/keys][/authentication][/mode][/cipher], as in tls1.3/x25519/p256/server;
    "shakedown suites" lists them.
    """
    from shakedown import core

    if keylog and not pcap:
        raise click.UsageError("--keylog goes with --pcap, which it unlocks")
    names = [core.canonical(suite) for suite in suites]
    measured: list[Measurement] = []
    try:
        with progress_bar(repeat * len(names), "measuring") as update:
            for position, name in enumerate(names):

                def tell(done: int, position: int = position, name: str = name) -> None:
                    update(position * repeat + min(done, repeat), name)

                tell(0)
                result = core.measure(
                    name,
                    repeat,
                    seed=seed,
                    now=now,
                    tickets=tickets,
                    profile=profile,
                    progress=tell,
                )
                measured.append(result)
    except KeyboardInterrupt:
        _show(measured, as_json)
        raise KeyboardInterrupt(f"interrupted: {len(measured)} of {len(names)} suites measured") from None
    except Exception:
        if measured:
            _show(measured, as_json)
        raise
    _show(measured, as_json)
    if pcap:
        core.capture(names, pcap, keylog=keylog, seed=seed, now=now, tickets=tickets, profile=profile)
        note(f"capture: {pcap}")


def _show(measured: list[Measurement], as_json: bool) -> None:
    if as_json:
        print_json(measured)
    elif measured:
        show_measurements(measured)
