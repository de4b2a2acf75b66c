"""Estimates, scores of events, texts, losses, and everything that is JSON alone."""

from __future__ import annotations

import ctypes
import json
from ctypes import byref
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from .handles import Head, Law, Model, pointer_of
from .interface import Array, Progress, QuestionStruct, TextStruct
from .library import InputError, address, check, lib, take
from .values import activation_rows, id_array, to_json, token_rows
from .watching import Watcher


def _question(events: str, model: Model | None, law: Law | None, head: Head | None = None, activations: Array | None = None,
              last_tokens: Array | None = None) -> QuestionStruct:
    n, d = (0, 0) if activations is None else activations.shape
    return QuestionStruct(ctypes.sizeof(QuestionStruct), pointer_of(model), pointer_of(law), events.encode(), pointer_of(head),
                          address(activations), n, d, address(last_tokens))


def _lines(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def estimate(events: Sequence[Mapping[str, Any]], *, model: Model | None = None, law: Law | None = None,
             head: Head | None = None, activations: Any = None, last_tokens: Any = None,
             settings: Mapping[str, Any] | None = None, progress: Progress = None,
             on_result: Callable[[int, dict[str, Any]], Any] | None = None) -> list[dict[str, Any]]:
    """What `deeptail estimate --json` prints, for each event."""
    cloud = None if activations is None else activation_rows(activations)
    last = None if last_tokens is None else id_array(last_tokens, "last_tokens")
    if cloud is not None and last is not None and last.shape != (cloud.shape[0],):
        raise InputError(f"last_tokens: expected shape [{cloud.shape[0]}], found {list(last.shape)}")
    question = _question(to_json(list(events)), model, law, head, cloud, last)
    text, given = TextStruct(), to_json(dict(settings or {})).encode()
    watcher = Watcher(progress, on_result)
    try:
        found = watcher.run(lambda w: int(lib.dt_estimate(byref(question), given, byref(w.hooks), byref(text))),
                            lambda: _lines(take(text)))
    finally:
        lib.dt_text_free(byref(text))
    return found or []


def _told(function: Any, model: Model, law: Law, settings: Mapping[str, Any] | None, progress: Progress) -> Any:
    """Of a function of a model, a law and settings: the JSON that it gives."""
    text, given = TextStruct(), to_json(dict(settings or {})).encode()
    watcher = Watcher(progress)
    try:
        return watcher.run(lambda w: int(function(model.pointer, law.pointer, given, byref(w.hooks), byref(text))),
                           lambda: json.loads(take(text)))
    finally:
        lib.dt_text_free(byref(text))


def estimate_all(model: Model, law: Law, settings: Mapping[str, Any] | None = None, progress: Progress = None) -> dict[str, Any]:
    """Every token at once, rows and rest: budget, above, below, seed, device, threads."""
    found: dict[str, Any] = _told(lib.dt_estimate_all, model, law, settings, progress)
    return found


def event_scores(event: Mapping[str, Any], model: Model, law: Law, tokens: Any, lengths: Any = None,
                 threads: int = 0) -> Array:
    """The event's own score of each sequence: float64 [n]; at least 0: it happens."""
    rows, counts = token_rows(tokens, lengths)
    out = np.empty(rows.shape[0], np.float64)
    question = _question(to_json([dict(event)]), model, law)
    check(lib.dt_event_scores(byref(question), address(rows), address(counts), *rows.shape, threads, address(out)))
    return out


def generate(model: Model, law: Law, settings: Mapping[str, Any] | None = None, progress: Progress = None) -> list[dict[str, Any]]:
    """What the model says after prompts of the law: count, within, temperature, top_k, top_p, greedy, stop, seed, threads."""
    found: list[dict[str, Any]] = _told(lib.dt_generate, model, law, settings, progress)
    return found


def loss(name: str, truth: Any, estimate: Any, **parameters: float) -> Array:
    """Losses of each pair, in the shape that the two have together."""
    q, p = np.broadcast_arrays(np.asarray(truth, np.float64), np.asarray(estimate, np.float64))
    q, p = np.ascontiguousarray(q), np.ascontiguousarray(p)
    out = np.empty(q.shape, np.float64)
    check(lib.dt_losses(name.encode(), to_json(parameters).encode(), address(q), address(p), q.size, address(out)))
    return out


def call(what: str, arguments: Mapping[str, Any] | None = None, progress: Progress = None) -> Any:
    """Everything else: JSON in, JSON out."""
    text, given = TextStruct(), to_json(dict(arguments or {})).encode()
    watcher = Watcher(progress)
    try:
        return watcher.run(lambda w: int(lib.dt_call(what.encode(), given, byref(w.hooks), byref(text))),
                           lambda: json.loads(take(text)))
    finally:
        lib.dt_text_free(byref(text))
