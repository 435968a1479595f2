"""`measure`: real handshakes in memory, priced from inside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shakedown.cli._output import (
    json_option,
    note,
    print_json,
    progress_bar,
    show_measurements,
    show_transfers,
)
from shakedown.cli._own import own_material_options
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
@click.option(
    "--now",
    type=Moment(),
    help="Time at which certificates are checked; left out, a fixed one; today with certificates of yours.",
)
@click.option(
    "--tickets", metavar="N", type=click.IntRange(0, 16), help="TLS 1.3 tickets that the server sends."
)
@click.option(
    "--profile",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="NAME|FILE.toml",
    help='Certificate profile; "certs profiles" lists those that come along.',
)
@own_material_options
@click.option(
    "--certificate-form",
    type=click.Choice(["wtls", "x509"]),
    help="WTLS: the form of the certificates that are made; your own have theirs.  [default: wtls]",
)
@click.option(
    "--private-curves",
    is_flag=True,
    help="WTLS: numbers of our own for curves without one, which otherwise travel in full.",
)
@click.option(
    "--transfer",
    "sizes_kib",
    metavar="SIZE",
    type=click.IntRange(1, 1 << 20),
    multiple=True,
    help="After the handshake, transfer SIZE KiB from server to client; may be given several times.",
)
@click.option(
    "--link",
    type=click.Choice(["open", "wep"]),
    default="open",
    show_default=True,
    help="What lies under a transfer; wep enciphers every frame.",
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
    certificate_form: str | None,
    private_curves: bool,
    sizes_kib: tuple[int, ...],
    link: str,
    pcap: Path | None,
    keylog: Path | None,
    as_json: bool,
    **own: Path | str | None,
) -> None:
    """Measure what handshakes cost here: time per message and operation, and bytes, on both sides.

    SUITE is protocol/key-exchange[/keys][/authentication][/mode][/cipher], as in tls1.3/x25519/p256/server;
    "shakedown suites" lists them.
    """
    from shakedown import core

    if keylog and not pcap:
        raise click.UsageError("--keylog goes with --pcap, which it unlocks")
    if link != "open" and not sizes_kib:
        raise click.UsageError("--link goes with --transfer, under which it lies")
    names = [core.canonical(suite) for suite in suites]
    wtls = {"certificate_form": certificate_form, "private_curves": private_curves or None}
    if any(wtls.values()) and not all(name.startswith("wtls/") for name in names):
        raise click.UsageError("--certificate-form and --private-curves are for suites of wtls alone")
    alone = core.unpaired(own)
    if alone is not None:
        raise click.UsageError(f"--{alone[0]} goes with --{alone[1]}".replace("_", "-"))
    if any(own[chain] for chain in core.OWN_MATERIAL):
        # One moment for all that follows.
        now = core.moment(now, own)
        names = [_named_by_own(name, now=now, certificate_form=certificate_form, **own) for name in names]
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
                    **wtls,
                    **own,
                )
                if sizes_kib:
                    sizes_bytes = [1024 * size for size in sizes_kib]
                    result["transfers"] = core.transfers(
                        name, sizes_bytes, link=link, repeat=repeat, now=now, profile=profile, **wtls, **own
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
    for remark in core.take_notices():
        note(remark)
    if pcap:
        core.capture(
            names,
            pcap,
            keylog=keylog,
            seed=seed,
            now=now,
            tickets=tickets,
            profile=profile,
            **wtls,
            **own,
        )
        note(f"capture: {pcap}")


def _named_by_own(name: str, **options: object) -> str:
    """The suite's name with the keys of the user's certificates."""
    from shakedown import core

    found, notes = core.own(name, **options)
    for remark in notes:
        note(f"{found}: {remark}")
    return found


def _show(measured: list[Measurement], as_json: bool) -> None:
    if as_json:
        print_json(measured)
    elif measured:
        show_measurements(measured)
        show_transfers(measured)
