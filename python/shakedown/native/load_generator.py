"""The load generator, alone or as one of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from shakedown.native import complaints, paths_as_text, release_build
from shakedown.schema import convert
from shakedown.schema.live import LoadOutcome, LoadProgress


def load(
    config: Mapping[str, object],
    suite: str | None,
    options: Mapping[str, object],
    progress: Callable[[LoadProgress], None] | None = None,
) -> LoadOutcome:
    """Loads a server, with the fields of `Config` in `crates/live/src/load`; None stands for a default.

    `progress` is called about ten times a second; Ctrl-C ends the run early. Raises `InputError` for invalid
    options, the core's `CoreError` if the server cannot be reached.
    """

    def tell(now: dict[str, object]) -> None:
        if progress is not None:
            progress(convert(now, LoadProgress))

    return convert(_load(config, suite, options, progress=tell), LoadOutcome)


def part(
    config: Mapping[str, object],
    suite: str | None,
    options: Mapping[str, object],
    look: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """What one generator of several counted, for `merge`; raises as `load`.

    `look` is called about ten times a second: a `KeyboardInterrupt` that it raises ends the run early.
    """
    progress = None if look is None else lambda _now: look()
    return _load(config, suite, options, parts=True, progress=progress)


def _load(
    config: Mapping[str, object], suite: str | None, options: Mapping[str, object], **run: object
) -> dict[str, Any]:
    core: Any = release_build()
    given, chosen = map(paths_as_text, (config, options))
    with complaints(suite or ""):
        found = cast("dict[str, Any]", core.load(given, suite=suite, options=chosen or None, **run))
    own = found.get("load", found)
    if own["interrupted"] and not own["elapsed_s"]:
        # Before the first start could be: there are no figures, and none a second.
        raise KeyboardInterrupt
    return found


def merge(parts: Sequence[Mapping[str, Any]]) -> LoadOutcome:
    """The combined figures of concurrent generators, as if one had counted all times."""
    with complaints(""):
        return convert(release_build().merge_loads(parts), LoadOutcome)
