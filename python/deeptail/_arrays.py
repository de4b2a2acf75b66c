"""Arrays of others as NumPy arrays, without a copy where their layout allows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt


def _from_torch(x: Any) -> Any:
    x = x.detach()
    if str(x.dtype) in ("torch.bfloat16", "torch.float16"):
        x = x.float()
    return x.cpu().numpy()


def as_numpy(x: Any) -> npt.NDArray[Any]:
    """NumPy, torch (on any device), anything with DLPack, lists."""
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "detach") and hasattr(x, "cpu"):
        x = _from_torch(x)
    elif hasattr(x, "__dlpack__") and not hasattr(x, "__array_interface__") and hasattr(np, "from_dlpack"):
        x = np.from_dlpack(x)
    array: npt.NDArray[Any] = np.asarray(x)
    return array


def floats(x: Any, what: str, dims: int) -> npt.NDArray[np.float32]:
    """float32 in C order; uint16 is taken for the bits of bfloat16."""
    array = as_numpy(x)
    if array.ndim != dims:
        raise InputError(f"{what}: expected {dims} dimension{'s' if dims > 1 else ''}, found {array.ndim}")
    if array.dtype == np.uint16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    if array.dtype.kind not in "fiu":
        raise InputError(f"{what}: expected numbers, found {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.float32)


def doubles(x: Any, what: str) -> npt.NDArray[np.float64]:
    """float64, of any shape."""
    array = as_numpy(x)
    if array.dtype.kind not in "fiu":
        raise InputError(f"{what}: expected numbers, found {array.dtype}")
    return np.asarray(array, dtype=np.float64)


def token_rows(x: Any, what: str = "tokens") -> npt.NDArray[np.int32]:
    """int32 [n, length]; one sequence is one row."""
    array = as_numpy(x)
    if array.dtype.kind not in "iu":
        raise InputError(f"{what}: expected token ids, found {array.dtype}")
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2:
        raise InputError(f"{what}: expected [n, length], found {array.ndim} dimensions")
    return np.ascontiguousarray(array, dtype=np.int32)
