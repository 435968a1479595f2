"""The functions `shakedown.measure`, `shakedown.predict` and others, for commands that print figures.

(`load`, `compare`, `inspect`, `check_budgets`, `calibrate` and `run_experiment` are in the packages that
implement them; `shakedown.__init__` lists all.) The functions return objects of `shakedown.schema`, which
print as a few lines. Errors are of class `ShakedownError`, those of invalid input `InputError`.

Functions accept one name or path, or a list of names, paths and patterns. They return `Rows`, a list that is
displayed as a table; given one name, `measure` and `simulate_mix` return one object.
"""

from __future__ import annotations

from shakedown.schema import base


def _html_of(one: object) -> str | None:
    from shakedown.reporting.display import object_html

    return object_html(one)


base.html_of = _html_of
