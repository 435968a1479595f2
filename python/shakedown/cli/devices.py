"""`devices`: the device profiles, shipped and own, and making one from benchmark output."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import FILE, FiniteRange
from shakedown.cli._output import console, echo, echo_folded, force_option, json_option, note, print_json
from shakedown.errors import InputError

if TYPE_CHECKING:
    from shakedown.profiles.device import DeviceEnergy


class Listing(click.Group):
    """A group whose words that are no subcommand are names to show."""

    def resolve_command(  # noqa: D102
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands:
            return "show", self.commands["show"], args
        return super().resolve_command(ctx, args)


@click.group("devices", cls=Listing, invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the device profiles; with NAME…, show them; "measure" and "import FILE" make one.

    Some boards have figures of several builds: NAME:VARIANT is another than the usual one.
    """
    if ctx.invoked_subcommand is not None:
        return
    from shakedown.profiles import existing_device_names, load_device

    profiles = []
    for name in existing_device_names():
        try:
            profiles.append(load_device(name))
        except InputError as error:
            note(f"left out: {error}")
    if as_json:
        print_json([profile.summary() for profile in profiles])
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("device", no_wrap=True)
    table.add_column("title")
    table.add_column("figures")
    table.add_column("variants")
    for profile in profiles:
        table.add_row(
            profile.name,
            Text(profile.title),
            str(len(profile.costs)) if profile.priced else "description only",
            Text(" ".join(one.variant for one in profile.variants)),
        )
    console().print(table)


@command.command("show", hidden=True)
@json_option
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
def show(names: tuple[str, ...], as_json: bool) -> None:
    """Show device profiles."""
    from shakedown.profiles import load_device

    profiles = [load_device(name) for name in names]
    if as_json:
        print_json([profile.as_json() for profile in profiles])
        return
    from rich.table import Table

    from shakedown.cli._scenario import seconds
    from shakedown.reporting.terminal.figures import NOTHING

    for profile in profiles:
        echo_folded(profile.title)
        echo_folded(f"  {profile.chip}, {profile.clock_hz / 1e6:g} MHz")
        if profile.library:
            echo_folded(f"  {profile.library}; {profile.build}")
        for line in (*profile.source, profile.note):
            if line:
                echo_folded(f"  {line}")
        if power := _power(profile.energy):
            echo_folded(f"  {power}")
        for key, reason in profile.assumed.items():
            echo_folded(f"  assumed: {key}: {reason}")
        if profile.variants:
            echo_folded("  variants: " + ", ".join(f"{one.name} ({one.build})" for one in profile.variants))
        table = Table("operation", "algorithm", "parameters", box=None, pad_edge=False, header_style="bold")
        table.add_column("per call", justify="right", no_wrap=True)
        table.add_column("per KiB", justify="right", no_wrap=True)
        table.add_column("note")
        for triple, cost in sorted(profile.costs.items()):
            # A call that costs nothing has a note; symmetric work by the KiB alone says nothing of calls.
            per_call = NOTHING if cost.per_kib_s and not cost.mean_s else seconds(cost.mean_s)
            per_kib = seconds(cost.per_kib_s) if cost.per_kib_s else NOTHING
            table.add_row(*triple, per_call, per_kib, cost.note)
        for total in profile.totals:
            table.add_row(
                "total", total.quantity, total.suite, f"{total.value:g} {total.unit}", "", total.note
            )
        console().print(table)


def _power(energy: DeviceEnergy) -> str:
    """What the processor draws, and what the battery holds; empty where neither is known."""
    watts = ((energy.active_w, "computing"), (energy.idle_w, "waiting"))
    said = [f"{power:g} W {state}" for power, state in watts if power is not None]
    said = [", ".join(said) + f" (×/÷ {energy.spread:g})"] if said else []
    return "; ".join([*said, *([f"battery: {energy.battery_j:g} J"] if energy.battery_j else [])])


@command.command("measure")
@click.option("--name", default="this-machine", show_default=True, help="Name of the profile.")
@click.option(
    "--seconds",
    default=0.3,
    show_default=True,
    type=FiniteRange(min=0.0, min_open=True),
    help="Longest time for each key, group or algorithm, in seconds.",
)
@click.option(
    "--rounds",
    default=3,
    show_default=True,
    type=click.IntRange(min=1),
    help="How often each suite is measured.",
)
@click.option(
    "--minutes",
    default=8.0,
    show_default=True,
    type=FiniteRange(min=0.0, min_open=True),
    help="Begin no round of handshakes that would end later than this.",
)
@click.option(
    "--openssl",
    "program",
    metavar="PROGRAM",
    help="For a server that runs another OpenSSL than the one in here: that library's program.",
)
@click.option(
    "--busy", is_flag=True, help="Keep the other processors busy meanwhile, as on a saturated server."
)
@click.option("--force", is_flag=True, help="Replace a profile that exists; this-machine always is.")
def measure(
    name: str, seconds: float, rounds: int, minutes: float, program: str | None, busy: bool, force: bool
) -> None:
    """Measure a full profile of this machine: primitives, stacks' own work, a served connection.

    It is kept among your own profiles, and "--device this-machine" finds it. Takes some minutes; the quieter
    the machine, the truer the figures. The profile is written after every round of handshakes: what is
    interrupted leaves the rounds before.
    """
    from time import perf_counter

    from shakedown import native
    from shakedown.cli._output import progress_bar
    from shakedown.prediction.connection_cost import connection_cost
    from shakedown.prediction.cpu_contention import busy_neighbours
    from shakedown.prediction.libssl import libssl_of
    from shakedown.prediction.other_openssl import measure_other
    from shakedown.prediction.this_machine import measure_suites, profile_of, suites
    from shakedown.profiles import THIS_MACHINE, load_device
    from shakedown.profiles.importers import profile_path, write_profile

    may_replace = force or name == THIS_MACHINE
    path = profile_path(name, None, replace=may_replace)
    if program is not None:
        libssl_of(program)  # refused before anything is measured
    begun = perf_counter()
    with progress_bar(1000, "a served connection") as update:
        connection = connection_cost(progress=lambda done, total: update(1000 * done // total, ""))
    with busy_neighbours(busy=busy), progress_bar(1000, "primitives") as update:
        timed = native.primitives(
            seconds=seconds, progress=lambda done, total, what: update(1000 * done // total, what)
        )

    def kept(measured: list[dict[str, Any]]) -> None:
        nonlocal may_replace
        write_profile(path, profile_of(name, timed, measured, connection), replace=may_replace)
        may_replace = True

    with busy_neighbours(busy=busy), progress_bar(1000, "handshakes") as update:
        measured = measure_suites(
            suites(),
            rounds=rounds,
            minutes=minutes - (perf_counter() - begun) / 60.0,
            progress=lambda done, total, what: update(1000 * done // total, what),
            kept=kept,
        )
    if program is not None:
        with busy_neighbours(busy=busy), progress_bar(1000, f"OpenSSL of {program}") as update:
            other = measure_other(
                program,
                load_device(str(path)),
                progress=lambda done, total, what: update(1000 * done // total, what),
            )
        write_profile(path, profile_of(name, timed, measured, connection, other=other), replace=True)
        echo(f"{path}: as with {other.version}")
    echo(f"{path}: {len(timed)} primitives, {len(measured)} suites, a served connection")


@command.command("import")
@click.argument("file", type=FILE)
@click.option("--name", required=True, help="Name of the profile.")
@click.option("--chip", required=True, help="Chip, as in 'STM32L4A6 (Cortex-M4)'.")
@click.option("--clock", required=True, type=click.FloatRange(0, 1e6, min_open=True), help="Clock in MHz.")
@click.option("--title", help="Title for people.  [default: the name]")
@click.option("--library", help="Library and version.  [default: as far as the output says]")
@click.option("--build", default="not stated", show_default=True, help="Build: compiler, flags, assembler.")
@click.option("--date", help="Date of the figures.  [default: today]")
@click.option("--source", help="Where the figures stand.  [default: the file's name]")
@click.option(
    "--out",
    type=FILE,
    help="Profile to write.  [default: among your own]",
)
@force_option
def import_(
    file: Path,
    name: str,
    clock: float,
    title: str | None,
    date: str | None,
    source: str | None,
    force: bool,
    **given: Any,  # noqa: ANN401 - as `save_import` takes them
) -> None:
    """Make a device profile from benchmark output.

    FILE holds what "openssl speed -mr", wolfCrypt's benchmark, mbedTLS's benchmark, "shakedown measure
    --json" or "shakedown primitives --json" printed, or is pqm4's benchmarks.csv or benchmarks.md, whose
    cycles --clock makes times. Every figure in it that no profile can hold is named.
    """
    from shakedown.profiles.importers import save_import

    saved = save_import(
        file,
        name=name,
        clock_hz=clock * 1e6,
        title=title or name,
        date=date or datetime.now(UTC).date().isoformat(),
        source=source or file.name,
        replace=force,
        **given,
    )
    for line in saved.left_out:
        note(f"left out: {line}")
    overhead = ", the stack's own work" if saved.overhead else ""
    echo(f"{saved.path}: {saved.primitives} primitives{overhead}")
