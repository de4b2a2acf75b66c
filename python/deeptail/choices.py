"""What a position or a slot may hold, and how likely each is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

import numpy as np

from .errors import InputError

__all__ = ["Choices", "choices_of", "frequencies", "tokens", "uniform"]

Item = Union[int, str]


@dataclass(frozen=True)
class Choices:
    """Different tokens or texts with their probabilities."""

    items: tuple[Item, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.items or len(self.items) != len(self.weights):
            raise InputError("choices: expected at least one, with a weight for each")
        if min(self.weights) < 0 or sum(self.weights) <= 0:
            raise InputError("choices: weights must be at least 0 and not all 0")
        if len(set(self.items)) != len(self.items):
            raise InputError("choices: one of them is given twice")

    @property
    def probabilities(self) -> tuple[float, ...]:
        total = sum(self.weights)
        return tuple(weight / total for weight in self.weights)


def uniform(items: Union[str, Iterable[Item]]) -> Choices:
    """All alike: the characters of a string, or the items of a list.

    >>> import deeptail as dt
    >>> dt.uniform("ab").probabilities
    (0.5, 0.5)
    """
    given = tuple(items)
    return Choices(given, (1.0,) * len(given))


def tokens(items: Union[str, Iterable[Item]]) -> Choices:
    """The same as ``uniform``, for a position: single tokens, by text or id."""
    return uniform(items)


def frequencies(source: Union[str, Path, Mapping[str, float]]) -> Choices:
    """Weights by text: a dictionary, or a file with one text a line, perhaps followed by a tab or a space and a weight.

    >>> import deeptail as dt
    >>> dt.frequencies({"cat": 3, "dog": 1}).probabilities
    (0.75, 0.25)
    """
    if isinstance(source, Mapping):
        return Choices(tuple(source), tuple(float(w) for w in source.values()))
    weights: dict[str, float] = {}
    for line in Path(source).read_text(encoding="utf-8").splitlines():
        found = re.fullmatch(r"(.*\S)[\t ]+([0-9.eE+-]+)", line)
        word, weight = (found.group(1), found.group(2)) if found else (line.strip(), "1")
        if not word:
            continue
        try:
            weights[word] = weights.get(word, 0.0) + float(weight)
        except ValueError:
            weights[line.strip()] = weights.get(line.strip(), 0.0) + 1.0
    if not weights:
        raise InputError(f"{source}: no words")
    return Choices(tuple(weights), tuple(weights.values()))


def choices_of(entry: Any) -> Choices:
    if isinstance(entry, Choices):
        return entry
    if isinstance(entry, Mapping):
        return Choices(tuple(entry), tuple(float(w) for w in entry.values()))
    if isinstance(entry, (str, int, np.integer)):
        return Choices((int(entry) if not isinstance(entry, str) else entry,), (1.0,))
    if isinstance(entry, Sequence):
        return uniform(entry)
    raise InputError(f"a position is a token, a list of tokens, a dictionary of weights or Choices; found {type(entry).__name__}")
