"""The load generator, as the only one or one of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from shakedown.native import check_text, chosen_options, name_errors_as_input, release_build
from shakedown.native.core import extension
from shakedown.schema import convert
from shakedown.schema.live import LoadOutcome, LoadProgress

if TYPE_CHECKING:
    from shakedown.native.scenario import HandshakeId, MeasureOptions


def load(
    config: Mapping[str, object],
    suite: str | None,
    options: Mapping[str, object],
    progress: Callable[[LoadProgress], None] | None = None,
) -> LoadOutcome:
    """Loads a server from one generator; arguments and errors are those of `part`."""
    return merge([part(config, suite, options, progress)])


def part(
    config: Mapping[str, object],
    suite: str | None,
    options: Mapping[str, object],
    progress: Callable[[LoadProgress], None] | None = None,
) -> dict[str, Any]:
    """Runs one of several generators; returns its figures for `merge`. `config` has fields of `Config` in
    `crates/live/src/load`.

    `progress` is called about ten times a second; a `KeyboardInterrupt` that it raises, as Ctrl-C, ends the
    run early. Raises `InputError` for invalid options, `CoreError` if the server cannot be reached.
    """

    def tell(now: dict[str, object]) -> None:
        if progress is not None:
            progress(convert(now, LoadProgress))

    core = release_build()
    for name, value in {**config, **options}.items():
        check_text(name, value)
    with name_errors_as_input(suite or ""):
        found: dict[str, Any] = core.load(config, suite=suite, options=options, progress=tell)
    if found["load"]["interrupted"] and not found["load"]["elapsed_s"]:
        # Interrupted before the load started, so there are no figures.
        raise KeyboardInterrupt
    return found


def merge(parts: Sequence[Mapping[str, Any]]) -> LoadOutcome:
    """Combines the figures of concurrent generators, as if one generator had recorded all times."""
    with name_errors_as_input(""):
        return convert(release_build().merge_loads(parts), LoadOutcome)


def connection_plans() -> list[tuple[str, int, str]]:
    """The suites served to measure the cost of a connection: name, number of tickets, clients' stack."""
    return cast("list[tuple[str, int, str]]", extension().connection_plans())


def connection_served(
    handshake: HandshakeId, options: MeasureOptions, seconds: float, processors: Sequence[int]
) -> dict[str, float]:
    """CPU time per connection: `server_us` of a server on the first processor, `client_us` on the last."""
    core = release_build()
    chosen = chosen_options(options, handshake)
    with name_errors_as_input(handshake.suite):
        found = core.connection_served(handshake.suite, seconds, list(processors), options=chosen)
    return cast("dict[str, float]", found)


def connection_per_kib_us(processors: Sequence[int]) -> float:
    """The server's CPU time per KiB without TLS, in microseconds."""
    return cast(float, release_build().connection_per_kib_us(list(processors)))


def connection_line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The fixed cost of a connection (us), and the ratio by which handshakes take longer than in memory.

    A point is a handshake's time in memory and its connection's additional time (us).
    """
    return cast("tuple[float, float]", extension().connection_line(list(points)))
