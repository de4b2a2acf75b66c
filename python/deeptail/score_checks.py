"""What a score must keep, measured on one batch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from . import _arrays
from .errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["ScoreCheck", "check_rows"]


@dataclass(frozen=True)
class ScoreCheck:
    """What was found of a score on one batch of inputs."""

    rows: int
    deterministic: bool  # the same batch twice gives the same bits
    largest_repeat_difference: float
    depends_on_batch: bool  # other neighbours give another score
    largest_batch_difference: float
    nans: int
    infinities: int  # minus infinity is allowed
    ties: float  # share of rows whose score another, different row has too
    rows_per_second: float
    mean: float
    sd: float
    events: int  # rows on which the event happens

    @property
    def ok(self) -> bool:
        return self.deterministic and not self.depends_on_batch and self.nans == 0

    def sentence(self) -> str:
        """What is wrong, or ""."""
        if self.nans:
            return f"the score of {self.nans} of {self.rows} rows is NaN"
        if not self.deterministic:
            return f"the score is not deterministic: the same rows differ by up to {self.largest_repeat_difference:.3g}"
        if self.depends_on_batch:
            return (
                f"the score depends on a row's neighbours, by up to {self.largest_batch_difference:.3g}: "
                "decisions so near to a level are not exact"
            )
        return ""

    def refuse(self) -> None:
        """Raises InputError where splitting with this score would mean nothing."""
        if self.nans or not self.deterministic:
            raise InputError(self.sentence())


Rows = Callable[[Any, Any, Any, Any], Any]


def _scores(score: Rows, rows: tuple[Any, ...], order: Any) -> npt.NDArray[np.float64]:
    tokens, *others = (part[order].copy() for part in rows)
    found = _arrays.doubles(score(tokens, *others), "score")
    if found.shape != (len(tokens),):
        raise InputError(f"score: expected {len(tokens)} numbers for {len(tokens)} rows, found shape {list(found.shape)}")
    return found


def _largest(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        return float(np.max(np.where(same, 0.0, np.abs(a - b)), initial=0.0))


def _ties(scores: npt.NDArray[np.float64], tokens: Any, numbers: Any) -> float:
    """Among different rows: twice the same row is no tie."""
    rows = np.concatenate([tokens.astype(np.float64), numbers], axis=1) if numbers.size else tokens
    distinct = np.unique(rows, axis=0, return_index=True)[1]
    values, counts = np.unique(scores[distinct], return_counts=True)
    finite = np.isfinite(values)
    return float(counts[finite & (counts > 1)].sum() / max(1, len(distinct)))


def check_rows(score: Rows, tokens: Any, lengths: Any, numbers: Any, which: Any, smaller: Sequence[int] = ()) -> ScoreCheck:
    """Scores a batch twice, in reverse order, with one row everywhere else, and the first rows in smaller batches."""
    n, rows = len(tokens), (tokens, lengths, numbers, which)
    every = np.arange(n)
    first = _scores(score, rows, every)
    start = time.perf_counter()
    again = _scores(score, rows, every)
    seconds = time.perf_counter() - start
    back = _scores(score, rows, every[::-1])[::-1]
    alone = every.copy()
    alone[n // 2 :] = 0  # half of the batch is one row
    half = _scores(score, rows, alone)[: n // 2 or 1]
    repeat = _largest(first, again)
    others = [back, half, *(_scores(score, rows, every[:size]) for size in smaller)]
    neighbours = max(_largest(again[: len(other)], other) for other in others)
    finite = first[np.isfinite(first)]
    return ScoreCheck(
        rows=n,
        deterministic=repeat == 0.0,
        largest_repeat_difference=repeat,
        depends_on_batch=repeat == 0.0 and neighbours > 0.0,
        largest_batch_difference=neighbours,
        nans=int(np.isnan(first).sum()),
        infinities=int(np.isinf(first).sum()),
        ties=_ties(first, tokens, numbers),
        rows_per_second=n / max(seconds, 1e-9),
        mean=float(finite.mean()) if finite.size else float("nan"),
        sd=float(finite.std()) if finite.size else float("nan"),
        events=int((first >= 0).sum()),
    )
