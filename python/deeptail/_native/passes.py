"""Tokens, samples, forward passes and activations."""

from __future__ import annotations

from ctypes import byref, c_size_t, c_uint64
from typing import Any

import numpy as np

from .handles import Law, Model
from .interface import Array, Progress, TextStruct
from .library import address, check, lib, take
from .values import id_array, token_rows, whole_number
from .watching import Watcher


def encode(model: Model, text: str | bytes, bos: str | int = "none") -> Array:
    """The ids of a text: int32 [n]."""
    data = text.encode() if isinstance(text, str) else text
    room, n = len(data) + 8, c_size_t()
    while True:
        ids = np.empty(room, np.int32)
        check(lib.dt_encode(model.pointer, data, len(data), str(bos).encode(), address(ids), room, byref(n)))
        if n.value <= room:
            return ids[: n.value].copy()
        room = n.value


def decode(model: Model, ids: Any) -> bytes:
    """The text of ids together."""
    array, text = id_array(ids).reshape(-1), TextStruct()
    check(lib.dt_decode(model.pointer, address(array), array.size, byref(text)))
    return take(text)


def sample(law: Law, n: int, seed: int = 1, first: int = 0, threads: int = 0) -> tuple[Array, Array]:
    """Samples [first, first + n) of a seed: tokens int32 [n, max_length] and lengths uint32 [n]."""
    tokens = np.zeros((whole_number(n, "n"), law.info["max_length"]), np.int32)
    lengths = np.zeros(n, np.uint32)
    check(lib.dt_law_sample(law.pointer, whole_number(seed, "seed"), whole_number(first, "first"), n, threads, address(tokens),
                            address(lengths)))
    return tokens, lengths


def _forward(function: str, model: Model, width: int, tokens: Any, lengths: Any, threads: int) -> Array:
    rows, counts = token_rows(tokens, lengths)
    out = np.empty((rows.shape[0], width), np.float32)
    check(getattr(lib, function)(model.pointer, address(rows), address(counts), *rows.shape, threads, address(out)))
    return out


def logits(model: Model, tokens: Any, lengths: Any = None, threads: int = 0) -> Array:
    """After each sequence: float32 [n, d_vocab]."""
    return _forward("dt_logits", model, model.info["d_vocab"], tokens, lengths, threads)


def residuals(model: Model, tokens: Any, lengths: Any = None, threads: int = 0) -> Array:
    """The last position's residual before the final norm: float32 [n, d_model]."""
    return _forward("dt_residuals", model, model.info["d_model"], tokens, lengths, threads)


def capture(model: Model, law: Law, count: int, seed: int = 1, threads: int = 0,
            progress: Progress = None) -> tuple[Array, Array | None]:
    """Activations of inputs of a law, float32 [count, d_model], and their last tokens that vary, or none."""
    out = np.empty((whole_number(count, "count"), model.info["d_model"]), np.float32)
    last, captured = np.empty(count, np.int32), c_uint64()

    def result() -> tuple[Array, Array | None]:
        n = captured.value
        return out[:n], last[:n] if n and last[0] >= 0 else None

    def run(w: Watcher) -> int:
        return int(lib.dt_capture(model.pointer, law.pointer, count, whole_number(seed, "seed"), threads, byref(w.hooks), address(out),
                                  address(last), byref(captured)))

    found: tuple[Array, Array | None] | None = Watcher(progress).run(run, result)
    return found if found is not None else (out[:0], None)
