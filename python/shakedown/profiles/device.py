"""Device profiles: the cost of each primitive on one chip, clock, library and build.

The file format is described in ``docs/reference/device-profile.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from shakedown.errors import InputError, did_you_mean
from shakedown.profiles.costs import Cost, Triple, read_primitive
from shakedown.profiles.overhead import (
    UNKNOWN_CONNECTION,
    MessageWork,
    Overhead,
    read_connection,
    read_overhead,
)
from shakedown.profiles.tables import Table
from shakedown.schema.base import builtins
from shakedown.schema.profiles import (
    DeviceConnection,
    DeviceCore,
    DeviceEnergy,
    DeviceImplementation,
    DeviceTotal,
)

SCHEMA = 1
SLOWEST_HZ, FASTEST_HZ = 1e3, 1e12
"""The plausible clock rates; a rate outside is probably in another unit."""
DEFAULT_SPREAD = 1.1
"""Default factor by which a published figure may differ from the same build elsewhere: the difference of two
benchmarks of one build on one core.
"""
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


POWER_SPREAD = 1.25
"""Default factor by which powers may be too high or too low."""
MICROCONTROLLER = DeviceEnergy(0.33e-9, 1e-4, None, 3.0)
"""Default power of a microcontroller: W/Hz while computing, W while waiting.

Data sheets give 42 (nRF91), 52 (nRF52840), 54 (CC2340), 91 (STM32L496), 139 (STM32L053), 168 (ESP32-C3) and
214 µA/MHz (STM32L152). Their geometric mean is 91, here at 3.3 V and rounded up. Asleep: 3 µA to 0.8 mA.
"""
FASTEST_MICROCONTROLLER_HZ = 1e9


@dataclass(frozen=True)
class Device:
    """A validated device profile; ``assumed`` has the reasons for values without a source.

    ``variant`` names this build among those of the board; ``variants`` are the other ones. ``spread`` is the
    factor by which a figure may differ from the same build elsewhere; ``reference``: whether figures of other
    devices may be scaled from these.
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
    totals: tuple[DeviceTotal, ...]
    core: DeviceCore
    implementation: DeviceImplementation
    assumed: Mapping[str, str] = field(default_factory=dict)
    variant: str = ""
    connection: DeviceConnection = UNKNOWN_CONNECTION
    spread: float = DEFAULT_SPREAD
    reference: bool = True
    variants: tuple[Device, ...] = ()

    def __repr__(self) -> str:
        return f"Device({self.name}: {self.title}, {len(self.costs)} primitives)"

    @property
    def has_primitives(self) -> bool:
        """Whether the profile has any primitive; otherwise it only has a description and totals."""
        return bool(self.costs)

    @property
    def power(self) -> DeviceEnergy:
        """The profile's power; missing figures are assumed for microcontrollers, else unknown."""
        usual, own = MICROCONTROLLER, self.energy
        small = self.core.word_bits in (8, 32) and self.clock_hz <= FASTEST_MICROCONTROLLER_HZ
        if not small or usual.active_w is None or None not in (own.active_w, own.idle_w):
            return own
        active_w = usual.active_w * self.clock_hz if own.active_w is None else own.active_w
        idle_w = usual.idle_w if own.idle_w is None else own.idle_w
        return DeviceEnergy(active_w, idle_w, own.battery_j, max(own.spread, usual.spread))

    @property
    def board(self) -> str:
        """The profile's name without the variant's."""
        return self.name.partition(":")[0]

    @property
    def lineage(self) -> str:
        """The library of the figures, from the profile's `library`; empty if it is not a known one."""
        text = self.library.lower()
        return next((name for name in _LIBRARIES if name in text), "")

    def summary(self) -> dict[str, Any]:
        """The device as ``devices --json`` prints it, with the number of its primitives."""
        keys = ("name", "title", "chip", "clock_hz", "library", "build", "date", "source", "note", "assumed")
        return {
            **{key: builtins(getattr(self, key)) for key in keys},
            "primitives": len(self.costs),
            "variant": self.variant,
            "variants": [one.name for one in self.variants],
        }

    def as_json(self) -> dict[str, Any]:
        """The profile as a dict, times in seconds."""
        overhead = self.overhead
        placed = {
            (protocol, message, *triple): MessageWork(cost.mean_s, 0.0, cost.per_kib_s)
            for (protocol, message, triple), cost in overhead.primitives.items()
        }
        work = {
            **{one.name: getattr(overhead, one.name) for one in fields(overhead)},
            "messages": _rows(overhead.messages, ("protocol", "name", "work", "key")),
            "handshakes": _rows(overhead.handshakes, ("protocol", "side")),
            "primitives": [
                {key: value for key, value in row.items() if key != "sd_s"}
                for row in _rows(placed, ("protocol", "message", *_TRIPLE))
            ],
        }
        keys = ("core", "implementation", "spread", "reference", "connection", "energy", "totals")
        return {
            **self.summary(),
            **{key: builtins(getattr(self, key)) for key in keys},
            "overhead": builtins(work),
            "primitives": _rows(self.costs, _TRIPLE),
        }


_TRIPLE = ("operation", "algorithm", "parameters")


def _rows(costs: Mapping[Any, object], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Sorted costs, each as a dict that includes the parts of its key."""
    return [{**dict(zip(names, key, strict=True)), **builtins(cost)} for key, cost in sorted(costs.items())]


def parse_device(document: Mapping[str, Any], where: str) -> Device:
    """Validate a device profile, a TOML document; `where` is its name in errors. Raises `InputError`."""
    top = Table(document, where)
    if top.number("schema") != SCHEMA:
        raise top.fail(f"schema is {document['schema']!r}; accepted: {SCHEMA}")
    assumed = {key: " ".join(texts) for key, texts in top.about("assumed").items()}
    name, title, chip = top.text("name"), top.text("title"), top.text("chip")
    device = Device(
        name=name,
        title=title,
        chip=chip,
        **_build(top),
        connection=read_connection(top.table("connection")),
        energy=_energy(top.table("energy")),
        totals=tuple(_total(table) for table in top.tables("total")),
        assumed=assumed,
        variant=top.text("variant", ""),
        core=_core(top.table("core")),
    )
    builds = top.tables("variants")
    top.finish()
    if device.costs and not (device.library and device.build):
        raise top.fail("library and build are missing; a profile with primitives names both")
    if builds and not device.variant:
        raise top.fail("variant is missing; a profile with [[variants]] names its own build")
    return replace(device, variants=_variants(builds, device))


def _variants(tables: list[Table], device: Device) -> tuple[Device, ...]:
    """The board's other builds, which have different figures and the same chip, core and power."""
    found: dict[str, Device] = {device.variant: device}
    for table in tables:
        name = table.text("name")
        if name in found:
            raise table.fail(f"duplicate variant {name!r}; accepted: a unique name")
        build = _build(table, device.clock_hz)
        for key in ("library", "build"):
            if not build[key]:
                raise table.fail(f"{key} is missing")
        table.finish()
        title = f"{device.title}, {name}"
        found[name] = replace(
            device, name=f"{device.name}:{name}", title=title, totals=(), variant=name, **build
        )
    return tuple(one for name, one in found.items() if name != device.variant)


def variant_of(device: Device, variant: str) -> Device:
    """One of a board's builds by its name. Raises `InputError`."""
    builds = {one.variant: one for one in (device, *device.variants)}
    if variant in builds:
        return builds[variant]
    if not device.variants:
        raise InputError(f"device {device.name!r} has no variants; accepted: {device.name}")
    listed = ", ".join(f"{device.name}:{name}" for name in builds)
    raise InputError(
        f"device {device.name!r} has no variant {variant!r}; accepted: {listed}"
        f"{did_you_mean(variant, list(builds))}"
    )


def _build(table: Table, clock_hz: float | None = None) -> dict[str, Any]:
    """The fields that differ between builds: description, sources and figures."""
    clock_hz = table.number("clock_hz", clock_hz, minimum=SLOWEST_HZ, maximum=FASTEST_HZ)
    source = table.texts("source")
    return {
        "clock_hz": clock_hz,
        "library": table.text("library", ""),
        "build": table.text("build", ""),
        "date": table.text("date"),
        "source": source,
        "note": table.text("note", ""),
        "spread": table.number("spread", DEFAULT_SPREAD, minimum=1.0),
        "reference": table.flag("reference", default=True),
        "implementation": _implementation(table.table("implementation")),
        "overhead": read_overhead(table.table("overhead"), clock_hz),
        "costs": _costs(table, clock_hz, len(source)),
    }


def _costs(table: Table, clock_hz: float, sources: int) -> dict[Triple, Cost]:
    costs: dict[Triple, Cost] = {}
    for one in table.tables("primitive"):
        triple, cost = read_primitive(one, clock_hz, sources)
        if triple in costs:
            raise one.fail(f"duplicate primitive {' '.join(triple).strip()}; accepted: one entry for each")
        costs[triple] = cost
    return costs


def _core(table: Table) -> DeviceCore:
    bits = table.number("word_bits", 0.0)
    if bits not in (0, 8, 16, 32, 64):
        raise table.fail(f"word_bits is {bits:g}; accepted: 8, 16, 32, 64")
    core = DeviceCore(int(bits), table.text("multiplier", "", MULTIPLIERS), table.text("vector", "", VECTORS))
    table.finish()
    return core


def _implementation(table: Table) -> DeviceImplementation:
    names = DeviceImplementation.__struct_fields__
    found = DeviceImplementation(*(table.text(name, "", KINDS) for name in names))
    table.finish()
    return found


def _energy(table: Table) -> DeviceEnergy:
    active, idle, battery = (table.maybe(key, above=0) for key in ("active_w", "idle_w", "battery_j"))
    spread = table.number("spread", POWER_SPREAD, minimum=1.0)
    table.finish()
    return DeviceEnergy(active, idle, battery, spread)


def _total(table: Table) -> DeviceTotal:
    what, value, unit = table.text("quantity"), table.number("value"), table.text("unit")
    total = DeviceTotal(what, value, unit, table.text("suite", ""), table.text("note", ""))
    table.finish()
    return total
