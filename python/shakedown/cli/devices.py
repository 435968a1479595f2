"""`devices`: the device profiles; measuring this machine, and importing benchmark output."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shakedown.cli._options import Group
from shakedown.cli._output import (
    counted,
    echo,
    force_option,
    note,
    print_json,
    print_objects,
    print_rows,
    rows_options,
)
from shakedown.cli._types import DEVICE, FILE, Duration, FiniteRange, Whole
from shakedown.errors import InputError
from shakedown.reporting.columns import Column, Selection

if TYPE_CHECKING:
    from shakedown.profiles.device import Device
    from shakedown.schema.profiles import DeviceEnergy

MAX_PRIMITIVE_S, MAX_PROFILE_S = 3600.0, 86_400.0


def _columns(_given: dict[str, Any]) -> Sequence[Column]:
    from shakedown.reporting.columns.catalogue import DEVICES, PRIMITIVES

    return (*DEVICES, *PRIMITIVES)


class Listing(Group):
    """A group that shows the profiles named by words that are not subcommands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands:
            return "show", self.commands["show"], args
        return super().resolve_command(ctx, args)

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        return [*super().shell_complete(ctx, incomplete), *DEVICE.items(incomplete)]


@click.group(
    "devices",
    epilog="Example: shakedown devices cortex",
    cls=Listing,
    invoke_without_command=True,
    subcommand_metavar="[NAME… | import FILE | measure]",
)
@rows_options(_columns)
@click.pass_context
def command(ctx: click.Context, selection: Selection) -> None:
    """List the device profiles, or the named ones; "measure" and "import FILE" write a profile.

    Some boards have figures of several builds: NAME:VARIANT selects one.
    """
    if ctx.invoked_subcommand is not None:
        return
    from shakedown.profiles import existing_device_names, load_device

    profiles = []
    for name in existing_device_names():
        try:
            profiles.append(load_device(name))
        except InputError as error:
            note(f"skipped: {error}")
    _list(profiles, selection)


def _list(profiles: Sequence[Device], selection: Selection) -> None:
    if selection.json:
        print_json([profile.summary() for profile in profiles])
        return
    print_objects(profiles, selection)


@command.command("show", hidden=True)
@rows_options(_columns)
@click.argument("names", nargs=-1, required=True, metavar="NAME…", type=DEVICE)
def show(names: tuple[str, ...], selection: Selection) -> None:
    """Show device profiles; patterns and parts of names or titles list those that match."""
    from shakedown.profiles import existing_device_names, load_device
    from shakedown.profiles.registry import matching
    from shakedown.reporting.columns.catalogue import PRIMITIVES, primitive_rows

    found = matching(names, existing_device_names(), lambda name: load_device(name).title, "device")
    profiles = [load_device(name) for name in found]
    if not set(names) >= set(found):
        _list(profiles, selection)
        return
    if selection.json:
        print_json([profile.as_json() for profile in profiles])
        return
    if selection.csv:
        print_rows(PRIMITIVES, [row for one in profiles for row in primitive_rows(one)], selection)
        return
    for profile in profiles:
        echo(profile.title)
        echo(f"  {profile.chip}, {profile.clock_hz / 1e6:g} MHz")
        if profile.library:
            echo(f"  {profile.library}; {profile.build}")
        for line in (*profile.source, profile.note):
            if line:
                echo(f"  {line}")
        if power := _power(profile.energy):
            echo(f"  {power}")
        for key, reason in profile.assumed.items():
            echo(f"  assumed: {key}: {reason}")
        if profile.variants:
            echo("  variants: " + ", ".join(f"{one.name} ({one.build})" for one in profile.variants))
        print_rows(PRIMITIVES, primitive_rows(profile), selection)
        for total in profile.totals:
            echo(f"total {total.quantity} {total.suite}: {total.value:g} {total.unit}  {total.note}".rstrip())


def _power(energy: DeviceEnergy) -> str:
    """The processor's power and the battery's energy; empty if neither is known."""
    from shakedown.reporting.figures import power

    states = ((energy.active_w, "computing"), (energy.idle_w, "waiting"))
    said = [f"{power(watts)} {state}" for watts, state in states if watts is not None]
    said = [", ".join(said) + f" (×/÷ {energy.spread:g})"] if said else []
    return "; ".join([*said, *([f"battery: {energy.battery_j:g} J"] if energy.battery_j else [])])


@command.command("measure", epilog="Example: shakedown devices measure --minutes 2")
@click.option("--name", default="this-machine", show_default=True, help="Name of the profile.")
@click.option(
    "--seconds",
    default="0.3s",
    show_default=True,
    type=Duration(MAX_PRIMITIVE_S),
    help="Limit of time for each key, group or algorithm.",
)
@click.option(
    "--rounds",
    default=3,
    show_default=True,
    type=Whole(min=1),
    help="How often each suite is measured.",
)
@click.option(
    "--minutes",
    "limit_s",
    default="8min",
    show_default=True,
    type=Duration(MAX_PROFILE_S, unit="min"),
    help="Limit of the total time: start no round of handshakes that would end after it.",
)
@click.option(
    "--openssl",
    "program",
    metavar="PROGRAM",
    help="Measure the OpenSSL of this openssl program instead.",
)
@click.option("--busy", is_flag=True, help="Load the other processors, as on a saturated server.")
@click.option("--force", is_flag=True, help="Replace an existing profile; this-machine is always replaced.")
def measure(
    name: str, seconds: float, rounds: int, limit_s: float, program: str | None, busy: bool, force: bool
) -> None:
    """Measure a full profile of this machine: primitives, the stacks' own work, the cost of a connection.

    Saves it among your own profiles, where "--device this-machine" finds it. Takes some minutes; keep the
    machine idle. The profile is written after every round of handshakes, so an interrupted run
    keeps the completed rounds.
    """
    from time import perf_counter

    from shakedown import native
    from shakedown.prediction.connection_cost import Speeds, connection_cost
    from shakedown.prediction.cpu_contention import Watch, busy_neighbours
    from shakedown.prediction.libssl import libssl_of
    from shakedown.prediction.other_openssl import measure_other
    from shakedown.prediction.processor_speed import Speed
    from shakedown.prediction.this_machine import measure_primitives, measure_suites, profile_of
    from shakedown.profiles import THIS_MACHINE
    from shakedown.profiles.importers import profile_path, write_profile

    may_replace = force or name == THIS_MACHINE
    path = profile_path(name, None, replace=may_replace)
    if program is not None:
        libssl_of(program)  # refused before anything is measured
    begun, alone, beside = perf_counter(), Speed(), Speed()
    watch = Watch(alone, beside)
    with counted("a served connection") as update:
        connection = connection_cost(progress=update, speeds=Speeds(alone, beside))
    with busy_neighbours(busy=busy), counted("primitives") as update:
        timed = measure_primitives(seconds, speed=alone, progress=update)

    def on_round(measured: list[dict[str, Any]]) -> None:
        nonlocal may_replace
        text = profile_of(name, timed, measured, connection, spread=watch.spread)
        write_profile(path, text, replace=may_replace)
        may_replace = True

    with busy_neighbours(busy=busy), counted("handshakes") as update:
        measured = measure_suites(
            list(native.profile_suites()),
            rounds=rounds,
            minutes=(limit_s - (perf_counter() - begun)) / 60.0,
            speed=alone,
            progress=update,
            on_round=on_round,
        )
    if program is not None:
        with busy_neighbours(busy=busy), counted(f"OpenSSL of {program}") as update:
            other = measure_other(program, progress=update, alone=alone, beside=beside)
        text = profile_of(name, timed, measured, connection, other=other, spread=watch.spread)
        write_profile(path, text, replace=True)
        echo(f"{path}: as with {other.version}; from round to round within ×/÷ {other.unsteady:.2f}")
    for line in watch.warnings():
        note(line)
    echo(f"{path}: {len(timed)} primitives, {len(measured)} suites, a served connection")


@command.command(
    "import",
    epilog="Example: shakedown devices import speed.txt --name my-board --chip 'Cortex-A72' --clock 1500",
)
@click.argument("file", type=FILE)
@click.option("--name", required=True, help="Name of the profile.")
@click.option("--chip", required=True, help="Chip, as in 'STM32L4A6 (Cortex-M4)'.")
@click.option("--clock", required=True, type=FiniteRange(0, 1e6, min_open=True), help="Clock in MHz.")
@click.option("--title", help="Readable title.  [default: the name]")
@click.option("--library", help="Library and version.  [default: as in FILE]")
@click.option("--build", default="not stated", show_default=True, help="Build: compiler, flags, assembler.")
@click.option("--date", help="Date of the figures.  [default: today]")
@click.option("--source", help="Source of the figures.  [default: the file's name]")
@click.option(
    "--out",
    type=FILE,
    help="Profile to write.  [default: NAME.toml among your profiles]",
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

    FILE is the output of "openssl speed -mr", wolfCrypt's benchmark, mbedTLS's benchmark, "shakedown measure
    --json" or "shakedown primitives --json", or the file benchmarks.csv or benchmarks.md of pqm4. (--clock
    converts pqm4's cycles to times.) Figures that a profile cannot represent are listed.
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
    for line in saved.omitted:
        note(f"not imported: {line}")
    overhead = ", the stack's own work" if saved.overhead else ""
    echo(f"{saved.path}: {saved.primitives} primitives{overhead}")
