"""Splitting by a caller's functions."""

from __future__ import annotations

import ctypes
import json
from ctypes import byref, c_size_t
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from .handles import Law, Model, pointer_of
from .interface import (DropStates, MutateStates, Progress, SampleStates, ScoreFunction, ScoresStruct, ScoreStates, StatesStruct,
                        TextStruct)
from .library import InputError, lib, take
from .values import refuse_nan, score_row, to_json, whole_number
from .watching import Watcher

Score = Callable[..., Any]


def _called(score: Score, watcher: Watcher, several: bool) -> Any:
    """The user's function as C calls it; of several events it is told which. What it raises is kept, and the run stops."""

    def function(_user: Any, told: Any, out: Any) -> int:
        try:
            if watcher.error is not None:
                return 0
            batch = told.contents
            n, length, m = batch.n, batch.length, batch.n_numbers
            tokens = np.ctypeslib.as_array(batch.tokens, (n, length)).copy()
            given = [tokens, np.ctypeslib.as_array(batch.lengths, (n,)).copy()]
            if m:
                given.append(np.ctypeslib.as_array(batch.numbers, (n, m)).copy())
            if several:
                given.append(np.ctypeslib.as_array(batch.which, (n,)).astype(np.int32))
            scores = score_row(score(*given), n)
            refuse_nan(scores, lambda row: f"tokens {tokens[row].tolist()}")
            np.ctypeslib.as_array(out, (n,))[:] = scores
            return 1
        except BaseException as error:
            watcher.keep(error)
            return 0

    return watcher.function(ScoreFunction, function)


def split(law: Law, score: Score, *, exact: Score | None = None, near: float = 0.0, batch: int = 256,
          smaller: Sequence[int] = (), numbers: int = 0, events: Sequence[str] | None = None, model: Model | None = None,
          settings: Mapping[str, Any] | None = None, progress: Progress = None) -> Any:
    """Splitting by score(tokens int32 [batch, length], lengths uint32 [batch]), with numbers > 0 also float64 [batch, numbers],
    and with events also int32 [batch]: which of them. The estimate as a dict, of events a list of them.

    None: progress said stop before anything was known."""
    watcher, several = Watcher(progress), events is not None
    functions = (_called(score, watcher, several), _called(exact, watcher, several) if exact is not None else ScoreFunction(0))
    sizes = (c_size_t * len(smaller))(*(whole_number(n, "batch") for n in smaller))
    given = ScoresStruct(ctypes.sizeof(ScoresStruct), None, *functions, float(near), whole_number(batch, "batch"),
                         whole_number(numbers, "numbers"), sizes, len(smaller))
    all_settings = {**dict(settings or {}), **({"events": list(events)} if events is not None else {})}
    text, asked = TextStruct(), to_json(all_settings).encode()
    function = lib.dt_split_many if several else lib.dt_split
    try:
        return watcher.run(
            lambda w: int(function(law.pointer, pointer_of(model), byref(given), asked, byref(w.hooks), byref(text))),
            lambda: json.loads(take(text)))
    finally:
        lib.dt_text_free(byref(text))


class _StateStore:
    """Objects by number; C knows the numbers."""

    def __init__(self) -> None:
        self.objects: dict[int, Any] = {}
        self._next = 0

    def add(self, states: Sequence[Any], n: int, name: str, out: Any) -> None:
        found = list(states)
        if len(found) != n:
            raise InputError(f"{name}: expected {n} states, found {len(found)}")
        numbers = np.arange(self._next, self._next + n, dtype=np.int64)
        self.objects.update(zip(numbers.tolist(), found))
        self._next += n
        np.ctypeslib.as_array(out, (n,))[:] = numbers

    def get(self, numbers: Any, n: int) -> list[Any]:
        return [self.objects[i] for i in np.ctypeslib.as_array(numbers, (n,)).tolist()]

    def drop(self, numbers: Any, n: int) -> None:
        for i in np.ctypeslib.as_array(numbers, (n,)).tolist():
            self.objects.pop(i, None)


def split_state(sample: Callable[..., Any], mutate: Callable[..., Any], score: Callable[..., Any], *,
                settings: Mapping[str, Any] | None = None, progress: Progress = None) -> dict[str, Any] | None:
    """Splitting on any objects: sample(n, rng), mutate(states, rng), score(states). "states" has some with the event."""
    watcher, store = Watcher(progress), _StateStore()

    def kept(work: Callable[..., None]) -> Callable[..., int]:
        def function(_user: Any, *given: Any) -> int:
            try:
                if watcher.error is not None:
                    return 0
                work(*given)
                return 1
            except BaseException as error:
                watcher.keep(error)
                return 0

        return function

    def do_sample(seed: int, n: int, out: Any) -> None:
        store.add(sample(n, np.random.default_rng(seed)), n, "sample", out)

    def do_mutate(states: Any, n: int, seed: int, out: Any) -> None:
        store.add(mutate(store.get(states, n), np.random.default_rng(seed)), n, "mutate", out)

    def do_score(states: Any, n: int, out: Any) -> None:
        objects = store.get(states, n)
        scores = score_row(score(objects), n)
        refuse_nan(scores, lambda row: f"state {objects[row]!r:.200}")
        np.ctypeslib.as_array(out, (n,))[:] = scores

    functions = (watcher.function(SampleStates, kept(do_sample)), watcher.function(MutateStates, kept(do_mutate)),
                 watcher.function(ScoreStates, kept(do_score)), watcher.function(DropStates, kept(store.drop)))
    given, text = StatesStruct(ctypes.sizeof(StatesStruct), None, *functions), TextStruct()
    asked = to_json(dict(settings or {})).encode()

    def result() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(take(text))
        found["states"] = [store.objects[i] for i in found["states"]]
        return found

    try:
        answer: dict[str, Any] | None = watcher.run(
            lambda w: int(lib.dt_split_states(byref(given), asked, byref(w.hooks), byref(text))), result)
    finally:
        lib.dt_text_free(byref(text))
    return answer
