"""libdeeptail.so, loaded, and how its calls fail."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref
from pathlib import Path

from .interface import ABI, Array, SIGNATURES, TextStruct


class InputError(ValueError):
    """A mistake of the caller: file, setting, data. Its text is one sentence."""


class DeviceError(InputError, RuntimeError):
    """A device that is not there, or too small."""


def library_path() -> str:
    """Where libdeeptail.so is: $DEEPTAIL_LIBRARY, or inside the package."""
    given = os.environ.get("DEEPTAIL_LIBRARY")
    if given:
        return given
    here = Path(__file__).resolve().parent.parent
    for path in (here / "lib" / "libdeeptail.so", here / "libdeeptail.so"):
        if path.exists():
            return str(path)
    raise ImportError(f"deeptail: {here / 'lib' / 'libdeeptail.so'} is missing; install with `pip install .` or `make python`")


def _load() -> ctypes.CDLL:
    path = library_path()
    library = ctypes.CDLL(path)
    abi = getattr(library, "dt_abi_version", None)
    if abi is None or abi() != ABI:
        found = "none" if abi is None else abi()
        raise ImportError(f"{path}: expected version {ABI} of deeptail's C interface, found {found}")
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


lib = _load()


def version() -> str:
    """The library's version."""
    return str(lib.dt_version().decode())


def abi_version() -> int:
    """The version of its C interface."""
    return int(lib.dt_abi_version())


def _raise(status: int) -> None:
    sentence = lib.dt_last_error().decode("utf-8", "replace")
    if status == 1:
        raise InputError(sentence)
    if status == 2:
        raise DeviceError(sentence)
    if status == 3:
        raise MemoryError(sentence)
    raise RuntimeError(sentence)


def check(status: int) -> None:
    if status != 0:
        _raise(status)


def take(text: TextStruct) -> bytes:
    data = ctypes.string_at(text.data, text.size) if text.data else b""
    lib.dt_text_free(byref(text))
    return data


def address(array: Array | None) -> int | None:
    return None if array is None else int(array.ctypes.data)


def add_data_folder(folder: str | os.PathLike[str]) -> None:
    """Models, laws and counts are looked for by name in its models/, distributions/ and truth/, too."""
    check(lib.dt_add_data_folder(os.fsencode(folder)))
