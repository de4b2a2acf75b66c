"""Events: what may happen after an input, as small frozen values that become JSON.

The next token is a target; the others are about a continuation that the model samples as it is deployed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Optional, Union

import numpy as np

from .errors import InputError

__all__ = ["Event", "Target", "Continuation", "contains", "event", "judge", "matches", "starts_with", "target", "tokens_any"]

TargetLike = Union[int, str, Sequence[Union[int, str]]]


@dataclass(frozen=True)
class Event:
    """What may happen. ``target``, ``contains``, ``starts_with``, ``matches``, ``tokens_any`` and ``judge`` make them."""

    def to_dict(self) -> dict[str, Any]:
        """As the library takes it."""
        raise NotImplementedError


@dataclass(frozen=True)
class Target(Event):
    """The most likely next token is one of these; with ``sampled`` the next token as it is drawn."""

    tokens: tuple[Union[int, str], ...]
    sampled: bool = False
    temperature: Optional[float] = None
    top_k: Optional[int] = None
    top_p: Optional[float] = None

    def to_dict(self) -> dict[str, Any]:
        given: dict[str, Any] = {"target": list(self.tokens)}
        if self.sampled:
            given["sampled"] = True
        for name in ("temperature", "top_k", "top_p"):
            if getattr(self, name) is not None:
                given[name] = getattr(self, name)
        return given


@dataclass(frozen=True)
class Continuation(Event):
    """Something about the sampled continuation of at most ``within`` tokens."""

    kind: str
    what: Any
    within: Optional[int] = None
    temperature: Optional[float] = None
    top_k: Optional[int] = None
    top_p: Optional[float] = None
    stop: Union[None, str, tuple[str, ...]] = None  # a text, "eos" or "none"
    greedy: bool = False
    threshold: Optional[float] = None  # of a judge

    def __post_init__(self) -> None:
        if self.within is not None and self.within < 1:
            raise InputError(f"{self.kind}: within is {self.within}; at least 1 token")
        if self.temperature is not None and not self.temperature > 0:
            raise InputError(f"{self.kind}: temperature is {self.temperature}; above 0, or greedy=True")

    def to_dict(self) -> dict[str, Any]:
        given: dict[str, Any] = {self.kind: list(self.what) if isinstance(self.what, tuple) else self.what}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("kind", "what") and value is not None and value is not False:
                given[field.name] = list(value) if isinstance(value, tuple) else value
        return given


def target(*tokens: TargetLike, sampled: bool = False, **sampling: Any) -> Target:
    """The next token is one of these, by id or text: the most likely one, or with sampled=True as it is drawn.

    >>> import deeptail as dt
    >>> dt.target(" the", 310).to_dict()
    {'target': [' the', 310]}
    """
    flat: list[Union[int, str]] = []
    for token in tokens:
        if isinstance(token, str):
            flat.append(token)
        elif isinstance(token, (int, np.integer)):
            flat.append(int(token))
        else:
            flat += [t if isinstance(t, str) else int(t) for t in token]
    if not flat:
        raise InputError("a target needs at least one token")
    return Target(tuple(flat), sampled=sampled, **sampling)


def contains(text: str, *, within: int, **sampling: Any) -> Continuation:
    """The sampled continuation contains this text within so many tokens. sampling: temperature, top_k, top_p, stop, greedy.

    >>> import deeptail as dt
    >>> dt.contains(" wizard", within=40, temperature=0.8).to_dict()
    {'contains': ' wizard', 'within': 40, 'temperature': 0.8}
    """
    return Continuation("contains", text, within=within, **sampling)


def starts_with(text: str, *, within: Optional[int] = None, **sampling: Any) -> Continuation:
    """The sampled continuation begins with this text, however it is cut into tokens."""
    return Continuation("starts_with", text, within=within, **sampling)


def matches(regex: str, *, within: int, **sampling: Any) -> Continuation:
    """The sampled continuation matches this regular expression somewhere (docs/events.md has its syntax)."""
    return Continuation("matches", regex, within=within, **sampling)


def tokens_any(ids: Sequence[int], *, within: int, **sampling: Any) -> Continuation:
    """The sampled continuation has one of these tokens."""
    return Continuation("tokens_any", tuple(int(k) for k in ids), within=within, **sampling)


def judge(command: str, *, threshold: float, within: int, **sampling: Any) -> Continuation:
    """A program gives the continuation a number of at least the threshold. It reads JSONL and writes one number a line."""
    return Continuation("judge", command, within=within, threshold=threshold, **sampling)


def event(given: Union[Event, TargetLike]) -> Event:
    """An event as it is; a token or several as a target."""
    if isinstance(given, Event):
        return given
    if given is None:
        raise InputError("what is the event? Give a token, several, or an event such as contains(..)")
    return target(given)
