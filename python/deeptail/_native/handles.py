"""Models, laws and heads that C holds."""

from __future__ import annotations

import ctypes
import json
import os
from ctypes import byref, c_void_p
from typing import Any

import numpy as np

from .interface import Array, HeadStruct, TextStruct
from .library import InputError, address, check, lib, take


class _Handle:
    _free: str

    def __init__(self, pointer: int):
        self._pointer = pointer

    @property
    def pointer(self) -> int:
        return self._pointer

    def __del__(self) -> None:
        pointer, self._pointer = getattr(self, "_pointer", None), 0
        if pointer and lib is not None:
            getattr(lib, self._free)(pointer)


class Model(_Handle):
    """A model that is loaded."""

    _free = "dt_model_free"

    def __init__(self, pointer: int):
        super().__init__(pointer)
        self.info: dict[str, Any] = _info("dt_model_info", pointer)


class Law(_Handle):
    """A law of inputs."""

    _free = "dt_law_free"

    def __init__(self, pointer: int):
        super().__init__(pointer)
        self.info: dict[str, Any] = _info("dt_law_info", pointer)


class Head(_Handle):
    """The way from activations to the vocabulary."""

    _free = "dt_head_free"

    def __init__(self, pointer: int, d_model: int, d_vocab: int):
        super().__init__(pointer)
        self.d_model, self.d_vocab = d_model, d_vocab


def _info(function: str, pointer: int) -> dict[str, Any]:
    text = TextStruct()
    check(getattr(lib, function)(pointer, byref(text)))
    found: dict[str, Any] = json.loads(take(text))
    return found


def pointer_of(value: _Handle | None) -> int | None:
    return None if value is None else value.pointer


def load_model(name: str | os.PathLike[str]) -> Model:
    """A name of the zoo, a folder, a GGUF file, or hf:ORG/NAME in the HuggingFace cache."""
    out = c_void_p()
    check(lib.dt_model_load(os.fsencode(name), byref(out)))
    return Model(out.value or 0)


def load_law(name: str | os.PathLike[str], model: Model | None = None, folder: str | os.PathLike[str] = "") -> Law:
    """A name, a file, or JSON text."""
    out = c_void_p()
    check(lib.dt_law_load(os.fsencode(name), pointer_of(model), os.fsencode(folder), byref(out)))
    return Law(out.value or 0)


def _floats(values: Any, name: str, shape: tuple[int, ...]) -> Array:
    array = np.ascontiguousarray(values, dtype=np.float32)
    if array.shape != shape:
        raise InputError(f"{name}: expected shape {list(shape)}, found {list(array.shape)}")
    return array


def make_head(w_u: Any, b_u: Any = None, ln_w: Any = None, ln_b: Any = None, norm: str = "layer", eps: float = 1e-5) -> Head:
    """From an unembedding [d_model, d_vocab] and the norm before it: layer, rms or none."""
    w = np.asarray(w_u)
    if w.ndim != 2:
        raise InputError(f"w_u: expected [d_model, d_vocab], found {w.ndim} dimensions")
    w = np.ascontiguousarray(w, dtype=np.float32)
    d_model, d_vocab = w.shape
    parts = [None if v is None else _floats(v, n, (size,))
             for v, n, size in ((b_u, "b_u", d_vocab), (ln_w, "ln_w", d_model), (ln_b, "ln_b", d_model))]
    out = c_void_p()
    given = HeadStruct(ctypes.sizeof(HeadStruct), d_model, d_vocab, address(w), *(address(p) for p in parts),
                       norm.encode(), eps)
    check(lib.dt_head_make(byref(given), byref(out)))
    return Head(out.value or 0, d_model, d_vocab)
