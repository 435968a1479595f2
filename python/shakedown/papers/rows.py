"""The rows of a reproduction: for each claim, each cell of a result table, and each of the modern rerun."""

from __future__ import annotations

from shakedown.schema.replication import Verdict

AGREES: Verdict = "agrees"
DIFFERS: Verdict = "differs"
UNDECIDED: Verdict = "undecided"
UNTESTABLE: Verdict = "cannot be tested"
VERDICTS: tuple[Verdict, ...] = (AGREES, DIFFERS, UNDECIDED, UNTESTABLE)

PAPERS_OWN = "the paper's own figures"
MEASURED_HERE = "handshakes of the modern rerun"
"""The data on which a verdict depends."""

PRIMITIVE_OFF = 0.05
"""Relative difference of a public-key primitive's cost between runs, compared with the other primitives."""

COMMON_OFF = 0.12
"""The same for all other work of one side in one suite, and for a transfer."""

RULE = f"""\
A verdict compares one figure with one statement of a paper, in the unit of the statement.

- **Tolerance.** It was set before anything was computed. For a printed figure it is half of the last printed
  digit, a whole digit if the paper truncates, or the paper's own spread. Some statements are vague ("about",
  "similar", "equal"), read from a curve, or sums of rounded figures. Their tolerance was noted when the
  statement was collected, and is printed with it (±) or above its table. A bound is exact if the paper says
  "at least" or "every"; otherwise it is compared to its printed digits.
- **Measurement.** Suites are measured alternately in several rounds. For each part of a handshake the
  shortest time counts, because other work on the machine can only add time. A primitive has the same cost in
  all suites of a protocol that use it in the same message.
- **Interval.** Each figure from measurements has an interval. It contains the figures of each half of the
  rounds alone, and those of many combinations of changed costs: every public-key primitive
  ±{PRIMITIVE_OFF:.0%}, the other work of each side and suite ±{COMMON_OFF:.0%}. Repeated runs, idle or busy,
  differ by no more than this (p95).
- **Verdict.** A statement *agrees* only if the whole interval is within the tolerance, and *differs* only
  if the whole interval is outside. Otherwise it is *undecided*.
- **Not tested.** A statement *cannot be tested* if it is an input of the computation, if it is about a device
  or person that is not available, or if it has no bound. A comparison of two machines needs both machines, or
  published figures of both. Times measured on the papers' devices, and shares of such times, have no verdict:
  the times of the same handshakes on a modern machine are printed next to them, with their intervals."""
"""How verdicts are reached, as the pages print it."""


def tidy_number(value: float) -> float | int:
    """A number without the noise of binary fractions; whole numbers as int."""
    rounded = float(f"{value:.8g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded
