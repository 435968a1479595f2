"""The array types of the models and the one guard that they share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Numbers = npt.ArrayLike


def floats(values: Numbers) -> Floats:
    return np.asarray(values, dtype=np.float64)


def only_if(condition: npt.NDArray[np.bool_] | np.bool_, values: Floats) -> Floats:
    """Return ``values`` where ``condition`` holds and NaN elsewhere."""
    return np.where(condition, values, np.nan)


def distinct(values: Floats) -> Floats:
    """The distinct values in ascending order. ``np.unique`` does it too, but loads numpy's masked arrays."""
    ordered = np.sort(values)
    return floats(ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])])
