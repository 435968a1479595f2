"""`bearer`: runs commands behind emulated networks, and measures emulated and real networks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import Group
from shakedown.cli._output import (
    echo,
    force_option,
    json_option,
    note,
    print_json,
    print_rows,
    rows_options,
)
from shakedown.cli._types import BEARER, FILE, Duration, Whole
from shakedown.reporting.columns import Column, Selection
from shakedown.reporting.figures import time

if TYPE_CHECKING:
    from shakedown.schema.bearer import BearerCheck, BearerReport, Lateness

seed_option = click.option(
    "--seed", type=Whole(0, 2**63 - 1), default=0, show_default=True, help="Random seed."
)


def _check_columns(_given: dict[str, Any]) -> Sequence[Column]:
    from shakedown.reporting.columns import ALWAYS, ROOM, Column, label

    def kind(name: str) -> Column:
        return Column(key=name, name=name.replace("_", " "), rank=ROOM if name == "drawn" else ALWAYS,
                      text=lambda row: SHOWN[row["figure"]](row[name]))  # fmt: skip

    def off(value: float | None) -> str:
        return "–" if value is None else f"{100.0 * value:+.2f}%"

    return (
        label("bearer", "bearer", identity=True),
        label("what", "figure", prose=True),
        Column(key="n", name="packets", rank=ALWAYS, show=str),
        *map(kind, ("profile", "measured", "drawn", "long_run")),
        Column(key="deviation", name="deviation", rank=ALWAYS, show=off),
    )


@click.group("bearer", cls=Group)
def command() -> None:
    """Put commands behind an emulated network, and measure networks.

    Root is not needed. Packets cross a TUN device in a network namespace; both ends use the kernel's TCP.
    """


@command.command(
    "run",
    epilog="Example: shakedown bearer run nb-iot -- true",
    short_help="Run COMMAND behind an emulated bearer.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("name", metavar="BEARER", type=BEARER)
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND…", type=click.UNPROCESSED)
@seed_option
@click.option(
    "--pair", metavar="'COMMAND'", help="Run another command at the far end, in place of this host's servers."
)
@click.option("--pcap", type=FILE, help="Capture at the client's end.")
@force_option
@click.option(
    "--congestion-control",
    default="reno",
    show_default=True,
    help="Congestion control at both ends: reno, cubic, bbr.",
)
@click.option(
    "--linger",
    "linger_s",
    type=Duration(3600.0, least_s=0.0),
    default="10s",
    show_default=True,
    help="Time for packets in flight after COMMAND has ended.",
)
@click.option("--summary", is_flag=True, help="At the end print the bearer's counters on standard error.")
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

    Options come before BEARER. COMMAND has one network interface, bearer0. It reaches servers on this host's
    loopback over the bearer, at 198.18.0.2 (BEARER_GATEWAY in the environment) and their own ports. With
    --pair a shell runs another command at that address instead; COMMAND starts when the other command
    listens.
    """
    from shakedown.errors import InputError
    from shakedown.files.write import check_distinct, check_free
    from shakedown.live.bearer import run_behind
    from shakedown.profiles import load_bearer

    if pcap is not None:
        check_free(pcap, force)
        # The bearer may be a path.
        check_distinct([pcap], [Path(name)])
    arguments = words[1:] if words[0] == "--" else words
    if words[0] != "--" and words[0].startswith("-"):
        raise InputError(
            f'"{words[0][:40]}" comes after the bearer; accepted: options before BEARER, then -- COMMAND'
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
    note(_late(report.lateness))


def _late(late: Lateness) -> str:
    name, most_s = ("at most", late.max_s) if late.p99_s is None else ("p99", late.p99_s)
    return f"packets delivered late: {late.mean_s * 1e6:.0f} µs on average, {name} {most_s * 1e6:.0f} µs"


@command.command(
    "check",
    epilog="Example: shakedown bearer check nb-iot --seconds 2",
    short_help="Compare emulated bearers with their profiles.",
)
@rows_options(_check_columns)
@click.argument("names", nargs=-1, required=True, metavar="BEARER…", type=BEARER)
@seed_option
@click.option(
    "--seconds",
    type=Duration(600.0, least_s=0.5),
    default="5s",
    show_default=True,
    help="Time for each of three parts: delay, rate up, rate down.",
)
def check(names: tuple[str, ...], seed: int, seconds: float, selection: Selection) -> None:
    """Send test packets through emulated bearers, and compare them with their profiles.

    "drawn" is the delay, rate or loss that the link model computed for these packets, "long run" that of
    20,000 packets in virtual time. The deviation from the profile is
    measured / drawn x long run / profile - 1.
    """
    from shakedown.live import bearer as live
    from shakedown.profiles import load_bearer

    bearers = [load_bearer(name) for name in names]
    checked = [live.check(bearer, seed=seed, seconds=seconds) for bearer in bearers]
    if selection.json:
        print_json(checked)
        return
    print_rows(_check_columns({}), [row for one in checked for row in _check_rows(one)], selection)
    for one in () if selection.csv else checked:
        echo(f"{one.bearer}: {_late(one.report.lateness)}")


def _check_rows(one: BearerCheck) -> Iterator[dict[str, Any]]:
    import msgspec

    for figure in one.figures:
        if figure.figure == "one_way_s":
            what = f"one way {figure.direction}, {figure.bytes} bytes"
        else:
            what = f"{'loss' if figure.figure == 'loss' else 'rate'} {figure.direction}"
        yield {"bearer": one.bearer, "what": what, **msgspec.structs.asdict(figure)}


@command.command(
    "measure",
    epilog="Example: shakedown bearer measure example.net:9000",
    short_help="Measure a path, and write it as a profile.",
)
@json_option
@click.argument("target", required=False, metavar="HOST:PORT")
@click.option("--reflect", metavar="ADDRESS:PORT", help="Run as the far end, until Ctrl-C.")
@click.option("--name", default="measured", show_default=True, help="Name of the profile.")
@click.option(
    "--out",
    type=FILE,
    help="The profile's file.  [default: NAME.toml among your profiles]",
)
@force_option
@click.option(
    "--seconds",
    type=Duration(30.0, least_s=0.5),
    default="5s",
    show_default=True,
    help="Time for each of three parts: round trips, rate up, rate down.",
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

    Start "shakedown bearer measure --reflect ADDRESS:PORT" at the far end first. Round trips and loss are
    measured with pings, rates with the time between the packets of a burst.
    """
    from shakedown.api.bearers import measure_path
    from shakedown.live.path_probe import Reflector, address

    if (target is None) == (reflect is None):
        raise click.UsageError("accepted: a reflector's HOST:PORT, or --reflect ADDRESS:PORT to reflect")
    if reflect is not None:
        host, port = address(reflect)
        reflector = Reflector((host, port))
        echo(f"reflecting at {host}:{reflector.port}")
        sys.stdout.flush()
        reflector.serve(lambda: False)
        return
    assert target is not None
    found = measure_path(target, out, name=name, replace=force, seconds=seconds)
    if as_json:
        print_json([found])
        return
    echo(f"round trip: median {time(found.round_trip_s.p50)}, p95 {time(found.round_trip_s.p95)}")
    echo(f"up: {_rate(found.up_bits_per_s)}, down: {_rate(found.down_bits_per_s)}")
    lost = [_percent(loss) if loss is not None else "unknown" for loss in (found.loss_up, found.loss_down)]
    echo(f"loss: {lost[0]} up, {lost[1]} down")
    echo(f"profile: {found.profile}")


def _percent(share: float) -> str:
    return f"{100.0 * share:.2f}%"


def _rate(bits_per_s: float) -> str:
    from shakedown.reporting.columns.catalogue import bit_rate

    return bit_rate(float(f"{bits_per_s:.4g}"))


SHOWN: dict[str, Callable[[float], str]] = {
    "one_way_s": time,
    "rate_bits_per_s": _rate,
    "loss": _percent,
}
