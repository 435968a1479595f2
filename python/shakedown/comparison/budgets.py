"""Budgets: limits per suite, compared with figures that are measured and predicted on this machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import UNSET

from shakedown import native
from shakedown.errors import InputError, ShakedownError
from shakedown.files.toml import load_toml
from shakedown.native.scenario import (
    DEFAULT_BEARER,
    DEFAULT_DEVICE,
    DEFAULT_SERVER_DEVICE,
    HandshakeId,
    MeasureOptions,
)
from shakedown.profiles import load_bearer, load_device
from shakedown.reporting.rows import Rows
from shakedown.schema.arguments import checked
from shakedown.schema.base import SIDES, Bounds, convert
from shakedown.schema.budget import Budget, BudgetFile, CheckedLimit
from shakedown.schema.measured import Measurement
from shakedown.schema.predictions import MAX_FAILED_SHARE, Capacity, Prediction

MAX_BUDGET_BYTES = 1 << 20
HEADROOM = 1.001
"""Factor for recorded counts: repetitions of one build differ by 0.03 %; an increase of 0.2 % must fail."""

PREDICTED = {"ready_s": "s", "energy_j": "J", "capacity_per_s": "1/s"}
UNITS = {
    "bytes": "bytes",
    **{f"{side}_instructions": "1" for side in SIDES},
    **{f"{side}_memory_bytes": "bytes" for side in SIDES},
    **{f"{side}_time_us": "us" for side in SIDES},
    **PREDICTED,
}
"""The limits, and their units."""

TIMES = tuple(f"{side}_time_us" for side in SIDES)
COUNTS = tuple(f"{side}_instructions" for side in SIDES)


@checked
def read_budgets(path: str | Path) -> tuple[Budget, ...]:
    """The tables of a budget's file. Raises `InputError`."""
    path = Path(path)
    data, _ = load_toml(path, MAX_BUDGET_BYTES, "budget")
    budgets = convert(data, BudgetFile, str(path), "TOML").budget
    for number, one in enumerate(budgets):
        where = f"{path}: budget[{number}]"
        try:
            native.runnable(one.suite)
            for device in filter(None, (one.device, one.server_device)):
                load_device(device)
            if one.bearer is not None:
                load_bearer(one.bearer)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        if not list(limits(one)):
            raise InputError(f"{where}: sets no limit; accepted: {', '.join(UNITS)}")
        if (one.capacity_per_s is None) != (one.within_s is None):
            raise InputError(f"{where}: capacity_per_s requires within_s, its time limit")
    return budgets


def limits(budget: Budget) -> Iterator[tuple[str, float]]:
    for name in UNITS:
        limit = getattr(budget, name)
        if limit is not None:
            yield name, limit


@checked
def check_budgets(
    budgets: str | Path | Sequence[Budget],
    *,
    times: bool = False,
    progress: Callable[[int, str], None] | None = None,
) -> Rows[CheckedLimit]:
    """Checks suites against their budgets: those of a file, or those that `read_budgets` returns.

    Args:
        budgets: limits on bytes, instructions, memory, times, predicted energy and capacity.
        times: exceeded limits on times also fail.
        progress: called with the number of checked suites, and the next suite.

    Raises:
        InputError: for a file that is not a budget.
    """
    given = read_budgets(budgets) if isinstance(budgets, str | Path) else budgets
    tell = progress or (lambda done, label: None)
    found: Rows[CheckedLimit] = Rows()
    for number, budget in enumerate(given):
        tell(number, budget.suite)
        found += _check(budget, times)
    tell(len(given), "")
    return found


def _check(budget: Budget, times: bool) -> Iterator[CheckedLimit]:
    wanted = dict(limits(budget))
    found: dict[str, float | str] = {}
    stacks = ""
    if set(wanted) - set(PREDICTED):
        measured = _measured(budget, bool(set(wanted) & set(COUNTS)))
        if isinstance(measured, str):
            found.update(dict.fromkeys(set(UNITS) - set(PREDICTED), measured))
        else:
            stacks = measured.stacks
            found.update(measured_figures(measured))
    if set(wanted) & set(PREDICTED):
        found.update(_predicted(budget))
    place = " ".join(filter(None, (budget.device, budget.bearer, budget.server_device)))
    for name, limit in wanted.items():
        value = found.get(name, "is not known here")
        known = None if isinstance(value, str) else value
        kept = known is not None and (known >= limit if name == "capacity_per_s" else known <= limit)
        yield CheckedLimit(
            suite=budget.suite,
            stacks=stacks,
            place=place if name in PREDICTED else "",
            quantity=name,
            unit=UNITS[name],
            limit=limit,
            found=known,
            gated=times or name not in TIMES,
            verdict="unknown" if known is None else "kept" if kept else "exceeded",
            reason=value if isinstance(value, str) else None,
        )


def _measured(budget: Budget, counted: bool) -> Measurement | str:
    """The measurement, or the reason why there is none. Raises errors that do not concern only this suite."""
    handshake = HandshakeId(
        suite=native.canonical(budget.suite),
        client_stack=budget.client_stack,
        server_stack=budget.server_stack,
    )
    try:
        return native.measure(
            handshake, MeasureOptions(counter="instructions" if counted else None).issuing(handshake.suite)
        )
    except Exception as error:
        if isinstance(error, InputError) or not (
            isinstance(error, ShakedownError) or native.is_failure(error)
        ):
            raise
        return str(error)


def measured_figures(measured: Measurement) -> dict[str, float | str]:
    found: dict[str, float | str] = {"bytes": measured.bytes.total}
    for side in SIDES:
        found[f"{side}_time_us"] = measured.handshake.of(side).median
        if measured.instructions is not UNSET:
            found[f"{side}_instructions"] = measured.instructions.of(side).median
        if measured.memory is not None:
            found[f"{side}_memory_bytes"] = getattr(measured.memory, f"{side}_peak_bytes")
    return found


def _predicted(budget: Budget) -> Iterator[tuple[str, float | str]]:
    from shakedown.prediction.capacity import capacity_rows
    from shakedown.prediction.inputs import ServerModel
    from shakedown.prediction.predict import predict_rows

    where: Any = {
        "device": budget.device or DEFAULT_DEVICE,
        "bearer": budget.bearer or DEFAULT_BEARER,
        "server": ServerModel(device=budget.server_device or DEFAULT_SERVER_DEVICE),
    }
    if budget.ready_s is not None or budget.energy_j is not None:
        one = convert(predict_rows(budget.suite, **where)[0], Prediction)
        yield "ready_s", _ready_s(one)
        yield "energy_j", _estimate(one.energy_j)
    if budget.capacity_per_s is not None:
        assert budget.within_s is not None
        found = convert(capacity_rows(budget.suite, within_s=budget.within_s, **where)[0], Capacity)
        known = found.rate_per_s
        yield "capacity_per_s", "no server cost is known" if known is None else _estimate(known)


def _ready_s(one: Prediction) -> float | str:
    """The mean time until ready, or the reason why there is none for all handshakes."""
    if one.failed > MAX_FAILED_SHARE:
        return f"{one.failed:.1%} of the handshakes fail"
    if one.ready_s is None:
        return "no handshake completes"
    return _without(one.ready_s.missing) if one.ready_s.missing else one.ready_s.mean


def _estimate(bounds: Bounds) -> float | str:
    """The estimate, or the reason why there is none."""
    return _without(bounds.missing) if bounds.estimate is None else bounds.estimate


def _without(missing: Sequence[str]) -> str:
    return f"no estimate without {', '.join(missing)}"


def recorded(suites: Sequence[str]) -> str:
    """A budget's file with the present figures of suites; instructions and memory are 0.1 % higher."""
    tables = []
    for suite in suites:
        measured = _measured(Budget(suite=suite), True)
        if isinstance(measured, str):
            raise ShakedownError(f"{suite}: {measured}")
        found = measured_figures(measured)
        lines = ["[[budget]]", f'suite = "{measured.suite}"']
        for name, value in found.items():
            if name in TIMES or isinstance(value, str):
                continue
            vary = name in COUNTS or name.endswith("memory_bytes")
            if name == "bytes" and measured.bytes_vary:
                value += 2 * sum(one.operation == "sign" for one in measured.operations)
            lines.append(f"{name} = {math.ceil(value * HEADROOM) if vary else value:_}")
        tables.append("\n".join(lines) + "\n")
    return "\n".join(tables)
