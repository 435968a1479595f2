"""Device profiles: what each primitive costs on one chip, clock, library and build.

The file format is described in ``docs/reference/device-profile.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from shakedown.errors import did_you_mean
from shakedown.profiles.costs import Cost, Triple, read_primitive
from shakedown.profiles.overhead import Connection, Overhead, read_connection, read_overhead
from shakedown.profiles.tables import Table

__all__ = ["Cost", "Device", "Triple", "parse_device"]

SCHEMA = 1
SLOWEST_HZ, FASTEST_HZ = 1e3, 1e12
"""No processor's clock is outside: one that is was written in another unit."""
DEFAULT_SPREAD = 1.1
"""How far, ×/÷, a published figure may be from what the same build does elsewhere, where nothing else is
said: two benchmarks of one build on one core differ by so much."""
MULTIPLIERS = ("8x8=16", "16x16=32", "32x32=32", "32x32=64", "64x64=128", "52x52=104")
VECTORS = ("none", "neon", "mve", "avx2", "avx512", "avx512-ifma")
KINDS = ("c", "assembler", "instructions", "accelerator", "secure element")
_LIBRARIES = (
    "wolfssl",
    "openssl",
    "mbedtls",
    "mbed-crypto",
    "emcrypt",
    "pqm4",
    "pqclean",
    "mlkem",
    "micro-ecc",
)


@dataclass(frozen=True, slots=True)
class Core:
    """What the processor has: word size in bits (0 unknown), multiplier, vector unit."""

    word_bits: int = 0
    multiplier: str = ""
    vector: str = ""


@dataclass(frozen=True, slots=True)
class Implementation:
    """How a build computes, by family: in C, in assembler, by instructions for it, or in an accelerator."""

    curves: str = ""
    integers: str = ""
    lattices: str = ""
    symmetric: str = ""


@dataclass(frozen=True, slots=True)
class DeviceEnergy:
    """Power while computing and while waiting, in watts, and the battery in joules; None where unknown.

    ``spread`` is how far, ×/÷, the powers may be off.
    """

    active_w: float | None = None
    idle_w: float | None = None
    battery_j: float | None = None
    spread: float = 1.25


@dataclass(frozen=True, slots=True)
class Total:
    """A figure published for a whole handshake on this device, not used for pricing."""

    quantity: str
    value: float
    unit: str
    suite: str = ""
    note: str = ""


@dataclass(frozen=True)
class Device:
    """A validated device profile; ``assumed`` says why a key has its value where no source gives it.

    ``variant`` names this build among those of the board; ``variants`` are the other ones. ``spread`` is how
    far, ×/÷, a figure may be from what the same build does elsewhere; ``reference`` whether other devices'
    figures may be scaled by these.
    """

    name: str
    title: str
    chip: str
    clock_hz: float
    library: str
    build: str
    date: str
    source: tuple[str, ...]
    note: str
    overhead: Overhead
    energy: DeviceEnergy
    costs: Mapping[Triple, Cost]
    totals: tuple[Total, ...]
    assumed: Mapping[str, str] = field(default_factory=dict)
    variant: str = ""
    core: Core = Core()
    implementation: Implementation = Implementation()
    connection: Connection = field(default_factory=Connection)
    spread: float = DEFAULT_SPREAD
    reference: bool = True
    variants: tuple[Device, ...] = ()

    def __repr__(self) -> str:
        return f"Device({self.name}: {self.title}, {len(self.costs)} primitives)"

    @property
    def priced(self) -> bool:
        """Whether the profile has any primitive; without one it is description and totals only."""
        return bool(self.costs)

    @property
    def board(self) -> str:
        """The profile's name without the variant's."""
        return self.name.partition(":")[0]

    @property
    def lineage(self) -> str:
        """Which library the figures are of, as far as the profile's text says; empty where it does not."""
        text = self.library.lower()
        return next((name for name in _LIBRARIES if name in text), "")

    def summary(self) -> dict[str, Any]:
        """What ``devices --json`` says of the device, its primitives only counted."""
        return {
            "name": self.name,
            "title": self.title,
            "chip": self.chip,
            "clock_hz": self.clock_hz,
            "library": self.library,
            "build": self.build,
            "date": self.date,
            "source": list(self.source),
            "note": self.note,
            "assumed": dict(self.assumed),
            "primitives": len(self.costs),
            "variant": self.variant,
            "variants": [one.name for one in self.variants],
        }

    def as_json(self) -> dict[str, Any]:
        """The whole profile, times in seconds."""
        primitives = [
            {"operation": operation, "algorithm": algorithm, "parameters": parameters, **asdict(cost)}
            for (operation, algorithm, parameters), cost in sorted(self.costs.items())
        ]
        overhead = {
            "known": self.overhead.known,
            "stack": self.overhead.stack,
            "per_handshake_s": self.overhead.per_handshake_s,
            "per_message_s": self.overhead.per_message_s,
            "per_byte_s": self.overhead.per_byte_s,
            "sd_s": self.overhead.sd_s,
            "messages": [
                {"protocol": protocol, "name": name, "work": work, "key": key, **asdict(cost)}
                for (protocol, name, work, key), cost in sorted(self.overhead.messages.items())
            ],
            "handshakes": [
                {"protocol": protocol, "side": side, **asdict(cost)}
                for (protocol, side), cost in sorted(self.overhead.handshakes.items())
            ],
            "primitives": [
                {
                    "protocol": protocol,
                    "message": message,
                    "operation": triple[0],
                    "algorithm": triple[1],
                    "parameters": triple[2],
                    "mean_s": cost.mean_s,
                    "per_kib_s": cost.per_kib_s,
                }
                for (protocol, message, triple), cost in sorted(self.overhead.primitives.items())
            ],
            "cooling": asdict(self.overhead.cooling),
        }
        return {
            **self.summary(),
            "core": asdict(self.core),
            "implementation": asdict(self.implementation),
            "spread": self.spread,
            "reference": self.reference,
            "overhead": overhead,
            "connection": asdict(self.connection),
            "energy": asdict(self.energy),
            "primitives": primitives,
            "totals": [asdict(total) for total in self.totals],
        }


_BUILD_KEYS = ["clock_hz", "library", "build", "date", "source", "note", "spread", "reference"]


def parse_device(document: Mapping[str, Any], where: str) -> Device:
    """Validate a device profile.

    Args:
        document: the parsed TOML document.
        where: how complaints name the file.

    Raises:
        InputError: naming file, table, key and what is accepted.
    """
    top = Table(document, where)
    if top.number("schema") != SCHEMA:
        raise top.fail(f"schema is {document['schema']!r}; accepted: {SCHEMA}")
    assumed = top.assumptions()
    name = top.text("name")
    title, chip = top.text("title"), top.text("chip")
    clock_hz = _clock_hz(top)
    variant = top.text("variant", "")
    library, build, date = top.text("library", ""), top.text("build", ""), top.text("date")
    source, note = top.texts("source"), top.text("note", "")
    spread, reference = _trust(top)
    core, implementation = _core(top.table("core")), _implementation(top.table("implementation"))
    overhead, connection = (
        read_overhead(top.table("overhead"), clock_hz),
        read_connection(top.table("connection")),
    )
    energy = _energy(top.table("energy"))
    costs = _costs(top, clock_hz, len(source))
    totals = tuple(_total(table) for table in top.tables("total"))
    builds = top.tables("variants")
    top.finish(
        [
            *("schema", "name", "title", "chip", "variant", *_BUILD_KEYS, "assumed"),
            *("core", "implementation", "overhead", "connection", "energy", "primitive", "total", "variants"),
        ]
    )
    if costs and not (library and build):
        raise top.fail("library and build are missing; a profile with primitives names both")
    device = Device(
        name=name,
        title=title,
        chip=chip,
        clock_hz=clock_hz,
        library=library,
        build=build,
        date=date,
        source=source,
        note=note,
        overhead=overhead,
        energy=energy,
        costs=costs,
        totals=totals,
        assumed=assumed,
        variant=variant,
        core=core,
        implementation=implementation,
        connection=connection,
        spread=spread,
        reference=reference,
    )
    if builds and not variant:
        raise top.fail("variant is missing; a profile with [[variants]] names its own build")
    return replace(device, variants=_variants(builds, device))


def _variants(tables: list[Table], device: Device) -> tuple[Device, ...]:
    """The board's other builds: each with figures of its own, sharing chip, core and power."""
    found: dict[str, Device] = {device.variant: device}
    for table in tables:
        name = table.text("name")
        if name in found:
            raise table.fail(f"duplicate variant {name!r}; accepted: a name of its own")
        clock_hz = _clock_hz(table, device.clock_hz)
        library, build, date = table.text("library"), table.text("build"), table.text("date")
        source, note = table.texts("source"), table.text("note", "")
        spread, reference = _trust(table)
        implementation = _implementation(table.table("implementation"))
        overhead = read_overhead(table.table("overhead"), clock_hz)
        costs = _costs(table, clock_hz, len(source))
        table.finish(["name", *_BUILD_KEYS, "implementation", "overhead", "primitive"])
        found[name] = replace(
            device,
            name=f"{device.name}:{name}",
            title=f"{device.title}, {name}",
            clock_hz=clock_hz,
            library=library,
            build=build,
            date=date,
            source=source,
            note=note,
            overhead=overhead,
            costs=costs,
            totals=(),
            variant=name,
            implementation=implementation,
            spread=spread,
            reference=reference,
        )
    return tuple(one for name, one in found.items() if name != device.variant)


def variant_of(device: Device, variant: str) -> Device | None:
    """One of a board's builds by its name, None where it has none of that name."""
    if variant == device.variant:
        return device
    return next((one for one in device.variants if one.variant == variant), None)


def variant_names(device: Device) -> list[str]:
    """The names of a board's builds, its usual one first."""
    return [device.variant, *(one.variant for one in device.variants)] if device.variants else []


def _clock_hz(table: Table, default: float | None = None) -> float:
    return table.number("clock_hz", default, minimum=SLOWEST_HZ, maximum=FASTEST_HZ)


def _trust(table: Table) -> tuple[float, bool]:
    spread = table.number("spread", DEFAULT_SPREAD, minimum=1.0)
    return spread, table.flag("reference", default=True)


def _costs(table: Table, clock_hz: float, sources: int) -> dict[Triple, Cost]:
    costs: dict[Triple, Cost] = {}
    for one in table.tables("primitive"):
        triple, cost = read_primitive(one, clock_hz, sources)
        if triple in costs:
            raise one.fail(f"duplicate primitive {' '.join(triple).strip()}; accepted: one entry a triple")
        costs[triple] = cost
    return costs


def _core(table: Table) -> Core:
    bits = table.number("word_bits", 0.0)
    if bits not in (0, 8, 16, 32, 64):
        raise table.fail(f"word_bits is {bits:g}; accepted: 8, 16, 32, 64")
    core = Core(int(bits), _choice(table, "multiplier", MULTIPLIERS), _choice(table, "vector", VECTORS))
    table.finish(["word_bits", "multiplier", "vector"])
    return core


def _implementation(table: Table) -> Implementation:
    keys = ["curves", "integers", "lattices", "symmetric"]
    found = Implementation(*(_choice(table, key, KINDS) for key in keys))
    table.finish(keys)
    return found


def _choice(table: Table, key: str, accepted: tuple[str, ...]) -> str:
    return table.text(key, accepted=accepted) if key in table else ""


def _energy(table: Table) -> DeviceEnergy:
    keys = ["active_w", "idle_w", "battery_j"]
    active, idle, battery = (table.number(key, above=0) if key in table else None for key in keys)
    spread = table.number("spread", DeviceEnergy().spread, minimum=1.0)
    table.finish([*keys, "spread"])
    return DeviceEnergy(active, idle, battery, spread)


def _total(table: Table) -> Total:
    total = Total(
        table.text("quantity"),
        table.number("value"),
        table.text("unit"),
        table.text("suite", ""),
        table.text("note", ""),
    )
    table.finish(["quantity", "value", "unit", "suite", "note"])
    return total


def unknown_variant(device: Device, variant: str) -> str:
    """What an error says of a variant that a board does not have."""
    names = variant_names(device)
    if not names:
        return f"device {device.name!r} has no variants; accepted: {device.name}"
    listed = ", ".join(f"{device.name}:{name}" for name in names)
    return (
        f"device {device.name!r} has no variant {variant!r}; accepted: {listed}{did_you_mean(variant, names)}"
    )
