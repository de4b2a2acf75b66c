"""A score: a function of a batch of inputs, int32 [n, length], that gives n numbers: at least 0 where the event happens,
larger nearer to it. It must be a function of each row alone.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union, overload

import numpy as np

from . import _native
from .errors import InputError
from .estimates import LawLike
from .laws import law as as_law
from .models import load
from .score_checks import ScoreCheck, check_rows

__all__ = ["Score", "check_score", "score"]

BATCH = 1024
Batch = Union[int, Sequence[int]]
ScoreFunction = Callable[..., Any]
Explain = Callable[[Sequence[int], int], Mapping[str, Any]]


@dataclass(frozen=True)
class Score:
    """A score with the size of its batches; ``deeptail.score`` makes one."""

    function: ScoreFunction = field(repr=False)
    batch: int = BATCH
    smaller: tuple[int, ...] = ()  # batches that may be asked for where fewer rows wait; none: one shape always
    numbers: int = 0  # random numbers beside each input, for answers that are drawn
    name: str = "score"
    wants: tuple[str, ...] = ()  # of lengths, numbers and which
    explain: Optional[Explain] = field(default=None, repr=False)  # of a trigger's tokens and its event: prompt, continuation, match

    def __call__(self, tokens: Any, lengths: Any = None, numbers: Any = None, which: Any = None) -> Any:
        given = {"lengths": lengths, "numbers": numbers, "which": which}
        return self.function(tokens, **{name: given[name] for name in self.wants})


def _wants(function: ScoreFunction, numbers: int) -> tuple[str, ...]:
    try:
        names = set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = set()
    if numbers and "numbers" not in names:
        raise InputError(f"a score with numbers={numbers} needs a parameter `numbers`")
    return tuple(name for name in ("lengths", "numbers", "which") if name in names)


@overload
def score(function: ScoreFunction) -> Score: ...
@overload
def score(
    function: None = None, *, batch: Batch = BATCH, numbers: int = 0, name: Optional[str] = None, explain: Optional[Explain] = None
) -> Callable[[ScoreFunction], Score]: ...
def score(
    function: Optional[ScoreFunction] = None,
    *,
    batch: Batch = BATCH,
    numbers: int = 0,
    name: Optional[str] = None,
    explain: Optional[Explain] = None,
) -> Union[Score, Callable[[ScoreFunction], Score]]:
    """Makes a score of a function of a batch: int32 [batch, length], one shape always, to batch numbers.

    batch: rows; of several sizes, such as [64, 256, 1024], each call has one, the largest that can be filled or nearly so.
    The function may take ``lengths`` (uint32 [batch]) as well, with numbers=k also ``numbers`` (float64 [batch, k]),
    uniform numbers from 0 up to 1 that an answer is drawn with, and in ``split_many`` ``which`` (int32 [batch]), the
    event that each row is asked about.

    >>> import deeptail as dt
    >>> @dt.score(batch=256)
    ... def many_zeros(tokens):
    ...     return (tokens == 16).sum(axis=1) - 12.0
    >>> many_zeros.batch, many_zeros.name
    (256, 'many_zeros')
    """
    *smaller, largest = _sizes(batch)
    if numbers < 0:
        raise InputError("a score needs numbers of at least 0")

    def make(given: ScoreFunction) -> Score:
        named = str(name or getattr(given, "__name__", "score"))
        return Score(given, largest, tuple(smaller), int(numbers), named, _wants(given, numbers), explain)

    return make if function is None else make(function)


def _sizes(batch: Batch) -> list[int]:
    """Ascending."""
    sizes = sorted({int(n) for n in ([batch] if isinstance(batch, (int, np.integer)) else batch)})
    if not sizes or sizes[0] < 1:
        raise InputError("a score needs batch of at least 1")
    return sizes


def as_score(given: Union[Score, ScoreFunction], batch: Optional[Batch]) -> Score:
    """Of a function, or with another batch."""
    if not callable(given):
        raise InputError(f"score: expected a function of a batch, found {type(given).__name__}")
    made = given if isinstance(given, Score) else score(given)
    if batch is None:
        return made
    *smaller, largest = _sizes(batch)
    return dataclasses.replace(made, batch=largest, smaller=tuple(smaller))


def _numbers_of(made: Score, n: int, seed: int) -> Any:
    return np.random.default_rng(seed).random((n, made.numbers))


def check_score(
    given: Union[Score, ScoreFunction],
    law: LawLike,
    *,
    batch: Optional[Batch] = None,
    seed: int = 1,
    events: int = 1,
    model: Any = None,
) -> ScoreCheck:
    """Is the score deterministic, the same alone and in a batch, free of NaN and of ties; how fast is it? events: of
    ``split_many``, how many.

    >>> import deeptail as dt
    >>> check = dt.check_score(lambda tokens: (tokens == 16).mean(axis=1) - 0.5, "hex")
    >>> check.deterministic, check.depends_on_batch, check.nans, check.ok
    (True, False, 0, True)
    """
    made = as_score(given, batch)
    native = as_law(law).native(load(model) if model is not None else None)
    tokens, lengths = _native.sample(native, made.batch, seed=seed)
    numbers = _numbers_of(made, made.batch, seed)
    which = np.arange(made.batch, dtype=np.int32) % events
    return check_rows(made, np.asarray(tokens), np.asarray(lengths), numbers, which, made.smaller)
