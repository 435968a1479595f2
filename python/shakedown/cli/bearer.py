"""`bearer`: commands behind an emulated network, and that network's own figures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shakedown.cli._options import FILE, FiniteRange
from shakedown.cli._output import console, echo, force_option, json_option, note, print_json

if TYPE_CHECKING:
    from shakedown.schema.bearer import BearerCheck, BearerReport

seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Names every random draw."
)


@click.group("bearer")
def command() -> None:
    """Put commands behind an emulated network, and measure networks.

    Works without root: packets cross a TUN device in a network namespace, and the kernel's own TCP is at
    both ends.
    """


@command.command(
    "run",
    short_help="Run COMMAND behind an emulated bearer.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("name", metavar="BEARER")
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND…", type=click.UNPROCESSED)
@seed_option
@click.option("--pair", metavar="'COMMAND'", help="Run this at the far end, in place of this host's servers.")
@click.option("--pcap", type=FILE, help="Capture at the client's end.")
@force_option
@click.option(
    "--congestion-control", default="reno", show_default=True, help="Of TCP at both ends: reno, cubic, bbr."
)
@click.option(
    "--linger",
    "linger_s",
    type=FiniteRange(0.0, 3600.0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="For how long what COMMAND sent last may still arrive after its end.",
)
@click.option("--summary", is_flag=True, help="Afterwards print on standard error what the bearer did.")
def run(
    name: str,
    words: tuple[str, ...],
    seed: int,
    pair: str | None,
    pcap: Path | None,
    force: bool,
    congestion_control: str,
    linger_s: float,
    summary: bool,
) -> None:
    """Run COMMAND behind an emulated bearer; its exit status is passed on.

    Options stand before BEARER. COMMAND sees one network device, bearer0. Servers on this host's loopback
    answer at 198.18.0.2 (in the environment as BEARER_GATEWAY), at their own ports, across the bearer. With
    --pair a shell runs another command at that address instead, and COMMAND begins once that listens.
    """
    from shakedown.errors import InputError
    from shakedown.files.write import check_distinct, check_free
    from shakedown.live.bearer import run_behind
    from shakedown.profiles import load_bearer

    if pcap is not None:
        check_free(pcap, force)
        # A bearer may be a file.
        check_distinct([pcap], [Path(name)])
    arguments = words[1:] if words[0] == "--" else words
    if words[0] != "--" and words[0].startswith("-"):
        raise InputError(
            f'"{words[0][:40]}" stands after the bearer; accepted: options before BEARER, then -- COMMAND'
        )
    status, report = run_behind(
        load_bearer(name),
        arguments,
        pair=pair,
        seed=seed,
        pcap=pcap,
        replace=force,
        congestion_control=congestion_control,
        linger_s=linger_s,
    )
    if pcap is not None and report.key is not None:
        note(f"{pcap}: frames encrypted under {report.key}")
    if summary:
        _summarise(report)
    raise click.exceptions.Exit(status)


def _summarise(report: BearerReport) -> None:
    for word, way in (("up", report.up), ("down", report.down)):
        drops = f"{way.lost} lost, {way.queue_full} by a full queue, {way.other_drops} otherwise"
        delivered = f"{way.delivered} delivered ({way.delivered_bytes:,} bytes)"
        note(f"{word}: {way.offered} packets, {delivered}, {drops}")
    late = report.lateness
    note(f"handed over late by {late.mean_s * 1e6:.0f} us on average, {late.p99_s * 1e6:.0f} us at 99 %")


@command.command("check", short_help="Hold emulated bearers against their profiles.")
@json_option
@click.argument("names", nargs=-1, required=True, metavar="BEARER…")
@seed_option
@click.option(
    "--seconds",
    type=FiniteRange(0.5, 600.0),
    default=5.0,
    show_default=True,
    help="For each of three parts: delay, rate up, rate down.",
)
def check(names: tuple[str, ...], seed: int, seconds: float, as_json: bool) -> None:
    """Measure emulated bearers with packets of their own, and compare them with their profiles.

    "drawn" is what the links made of the same packets in logical time, "long run" what they draw for 20,000
    packets in virtual time; the deviation from the profile is measured / drawn x long run / profile - 1.
    """
    from shakedown.live import bearer as live
    from shakedown.profiles import load_bearer

    bearers = [load_bearer(name) for name in names]
    checked = [live.check(bearer, seed=seed, seconds=seconds) for bearer in bearers]
    if as_json:
        print_json(checked)
        return
    for one in checked:
        _show(one)


def _show(one: BearerCheck) -> None:
    from rich.table import Table

    table = Table(one.bearer, box=None, pad_edge=False, header_style="bold")
    for heading in ("packets", "profile", "measured", "drawn", "long run", "deviation"):
        table.add_column(heading, justify="right")
    for figure in one.figures:
        if figure.figure == "one_way_s":
            what = f"one way {figure.direction}, {figure.bytes} bytes"
        else:
            what = f"{'loss' if figure.figure == 'loss' else 'rate'} {figure.direction}"
        values = (figure.profile, figure.measured, figure.drawn, figure.long_run)
        deviation = "–" if figure.deviation is None else f"{100.0 * figure.deviation:+.2f}%"
        shown = (SHOWN[figure.figure](value) for value in values)
        table.add_row(what, f"{figure.n}", *shown, deviation)
    console().print(table)
    late = one.report.lateness
    echo(f"handed over late by {late.mean_s * 1e6:.0f} us on average, {late.p99_s * 1e6:.0f} us at 99 %")


@command.command("measure", short_help="Measure a path, and write it as a profile.")
@json_option
@click.argument("target", required=False, metavar="HOST:PORT")
@click.option("--reflect", metavar="ADDRESS:PORT", help="Be the far end, until Ctrl-C.")
@click.option("--name", default="measured", show_default=True, help="Of the profile.")
@click.option(
    "--out",
    type=FILE,
    help="The profile's file.  [default: NAME.toml among your own profiles]",
)
@force_option
@click.option(
    "--seconds",
    type=FiniteRange(0.5, 30.0),
    default=5.0,
    show_default=True,
    help="For each of three parts: round trips, rate up, rate down.",
)
def measure(
    target: str | None,
    reflect: str | None,
    name: str,
    out: Path | None,
    force: bool,
    seconds: float,
    as_json: bool,
) -> None:
    """Measure a real path, and write it as a bearer profile.

    At the far end runs "shakedown bearer measure --reflect ADDRESS:PORT". Datagrams cross the path: round
    trips and loss from pings, rates from the spacing of trains of packets.
    """
    from shakedown.live.path_probe import Reflector, address

    if (target is None) == (reflect is None):
        raise click.UsageError("accepted: HOST:PORT of a reflector, or --reflect ADDRESS:PORT to be one")
    if reflect is not None:
        host, port = address(reflect)
        reflector = Reflector((host, port))
        echo(f"reflecting at {host}:{reflector.port}")
        sys.stdout.flush()
        reflector.serve(lambda: False)
    elif target is not None:
        _measure(target, name, out, force, seconds, as_json)


def _measure(target: str, name: str, out: Path | None, force: bool, seconds: float, as_json: bool) -> None:
    from shakedown import api
    from shakedown.reporting.terminal.figures import time

    found = api.measure_path(target, out, name=name, replace=force, seconds=seconds)
    if as_json:
        print_json([found])
        return
    echo(f"round trip: {time(found.round_trip_s.p50)}, 95 %: {time(found.round_trip_s.p95)}")
    echo(f"up: {_rate(found.up_bits_per_s)}, down: {_rate(found.down_bits_per_s)}")
    lost = [_percent(loss) if loss is not None else "unknown" for loss in (found.loss_up, found.loss_down)]
    echo(f"lost: {lost[0]} up, {lost[1]} down")
    echo(f"profile: {found.profile}")


def _seconds(value_s: float) -> str:
    from shakedown.reporting.terminal.figures import time

    return time(value_s)


def _percent(share: float) -> str:
    return f"{100.0 * share:.2f}%"


def _rate(bits_per_s: float) -> str:
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bits_per_s >= size:
            return f"{bits_per_s / size:.4g} {unit}"
    return f"{bits_per_s:.4g} bit/s"


SHOWN: dict[str, Callable[[float], str]] = {
    "one_way_s": _seconds,
    "rate_bits_per_s": _rate,
    "loss": _percent,
}
