"""A caller's values as C takes them, or one sentence."""

from __future__ import annotations

import json
import math
from typing import Any, Callable, Mapping, Optional

import numpy as np

from .interface import Array
from .library import InputError


def id_array(values: Any, name: str = "ids") -> Array:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name}: expected whole numbers, found {array.dtype}")
    if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
        raise InputError(f"{name}: expected 32-bit numbers")
    return np.ascontiguousarray(array, dtype=np.int32)


def whole_number(value: int, name: str) -> int:
    if int(value) != value or value < 0 or value >= 2**64:
        raise InputError(f"{name}: expected a whole number of at least 0, found {value}")
    return int(value)


def token_rows(tokens: Any, lengths: Any) -> tuple[Array, Array | None]:
    rows = id_array(tokens, "tokens")
    if rows.ndim == 1:
        rows = rows[None, :]
    if rows.ndim != 2:
        raise InputError(f"tokens: expected [n, length], found {rows.ndim} dimensions")
    if lengths is None:
        return rows, None
    counts = np.ascontiguousarray(lengths, dtype=np.uint32)
    if counts.shape != (rows.shape[0],):
        raise InputError(f"lengths: expected shape [{rows.shape[0]}], found {list(counts.shape)}")
    return rows, counts


def activation_rows(values: Any) -> Array:
    array = np.asarray(values)
    if array.ndim != 2:
        raise InputError(f"activations: expected [n, d_model], found {array.ndim} dimensions")
    return np.ascontiguousarray(array, dtype=np.float32)  # no copy where they are that already


def score_row(values: Any, n: int) -> Array:
    """A batch's scores as float64 [n]: of NumPy, torch (also on a device), or a plain list."""
    for name in ("detach", "double", "cpu", "numpy"):  # a torch tensor; bfloat16 has no NumPy form
        step = getattr(values, name, None)
        if not callable(step):
            break
        values = step()
    array = np.asarray(values)
    if array.shape not in ((n,), (n, 1)):
        raise InputError(f"score: expected {n} numbers, one for each row, found shape {list(array.shape)}")
    if array.dtype.kind not in "fiub":
        raise InputError(f"score: expected numbers, found {array.dtype}")
    return np.ascontiguousarray(array.reshape(n), dtype=np.float64)


def refuse_nan(scores: Array, described: Callable[[int], str]) -> None:
    bad = np.isnan(scores) | (scores == np.inf)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"score: expected a finite number or minus infinity, found {scores[row]} for row {row}, {described(row)}")


def _plain(value: Any) -> Any:
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _not_finite(value: Any, key: str = "a value") -> Optional[tuple[str, Any]]:
    """The innermost key of a number that JSON cannot hold, and that number."""
    if isinstance(value, float):
        return None if math.isfinite(value) else (key, value)
    inside = value.items() if isinstance(value, Mapping) else ((key, v) for v in value) if isinstance(value, (list, tuple)) else ()
    return next((found for k, v in inside if (found := _not_finite(v, str(k)))), None)


def to_json(value: Any) -> str:
    try:
        return json.dumps(value, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        found = _not_finite(value)
        raise InputError(f"{found[0]}: expected a finite number, found {found[1]}" if found else str(error)) from None
