"""Every command that prints figures, as a function: what `shakedown.measure`, `shakedown.predict` … are.

They take and return the objects of `shakedown.schema`, which show themselves in a few lines; what goes wrong
raises `ShakedownError`, wrong input `InputError`. Each loads what it needs when it is called.

One or several: a name or path alone is one; a list is several, and names in it may be patterns. What a
function returns of several is `Rows`, a list that displays itself as a table; `measure` and `simulate_mix`
return the object itself for one given alone.
"""

from __future__ import annotations

from shakedown.schema import base


def _html_of(one: object) -> str | None:
    from shakedown.reporting.display import object_html

    return object_html(one)


base.html_of = _html_of
