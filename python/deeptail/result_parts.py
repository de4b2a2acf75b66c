"""The parts of an estimate, as the program's JSON has them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union, overload

from . import _frames

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["Cost", "Interval", "Level", "Position", "Provenance", "Trigger", "Triggers", "event_words", "known", "number", "trigger"]


class Interval(NamedTuple):
    """The ends of a 95 % interval; equal to a plain pair.

    >>> from deeptail.results import Interval
    >>> Interval(1e-7, 3e-7) == (1e-7, 3e-7)
    True
    >>> 2e-7 in Interval(1e-7, 3e-7)
    True
    """

    low: float
    high: float

    def __contains__(self, p: object) -> bool:
        return isinstance(p, (int, float)) and self.low <= p <= self.high


@dataclass(frozen=True)
class Cost:
    """What was paid: passes, flops, seconds."""

    forward: int = 0
    backward: int = 0
    score_evals: int = 0
    logits: int = 0
    flops: float = 0.0
    forward_equivalents: float = 0.0
    seconds: float = 0.0
    tokens: Optional[float] = None  # decoded tokens, of events on sampled text


@dataclass(frozen=True)
class Level:
    """One level of splitting, of all replicas together."""

    level: float
    survive_fraction: float
    particles: int
    ancestors: int
    sibling_correlation: float = 0.0
    moves: int = 0
    acceptance: float = 0.0
    step_size: float = 0.0
    mean_squared_jump: float = 0.0
    parent_correlation: float = 0.0


@dataclass(frozen=True)
class Trigger:
    """An input on which the event happens."""

    sample: int
    tokens: tuple[int, ...]
    text: str = ""
    margin: float = 0.0
    prompt: Optional[str] = None  # of events on sampled text
    continuation: Optional[str] = None
    match: Optional[tuple[int, int]] = None  # where in the continuation, in characters
    answer: tuple[int, ...] = ()  # the tokens of the continuation
    pieces: tuple[str, ...] = ()  # the text of each token, where there is a tokenizer


@dataclass(frozen=True)
class Position:
    """What triggering inputs share: at ``position`` the ``token`` in a ``share`` of them, in ``prior`` of all inputs."""

    position: int
    token: int
    share: float
    prior: float
    text: str = ""


@dataclass(frozen=True)
class Provenance:
    """What a result was made from."""

    model_sha256: str = ""
    dist_sha256: str = ""
    version: str = ""
    device: str = ""


def number(value: Any) -> float:
    """JSON has no infinities: they are the strings "inf" and "-inf"."""
    return math.nan if value is None else float(value)


def known(kind: Any, values: Mapping[str, Any]) -> Any:
    """A dataclass from what it knows of an object; later versions may say more, which is in to_dict()."""
    return kind(**{name: values[name] for name in kind.__dataclass_fields__ if name in values})


def _match(value: Any, continuation: Optional[str]) -> Optional[tuple[int, int]]:
    """Bytes of the JSON as characters of the text."""
    if not value or continuation is None or value[0] == value[1]:
        return None
    text = continuation.encode()
    begin, end = (len(text[: int(at)].decode("utf-8", "ignore")) for at in value)
    return begin, end


def event_words(value: Any) -> str:
    """In words: a next token's event is nothing else."""
    return value if isinstance(value, str) else str(value.get("says", ""))


def trigger(values: Mapping[str, Any]) -> Trigger:
    return Trigger(
        sample=int(values.get("sample", 0)),
        tokens=tuple(values.get("tokens", ())),
        text=values.get("text") or "",
        margin=number(values.get("margin", 0.0)),
        prompt=values.get("prompt"),
        continuation=values.get("continuation"),
        match=_match(values.get("match"), values.get("continuation")),
        answer=tuple(values.get("answer", ())),
        pieces=tuple(values.get("pieces", ())),
    )


class Triggers(Sequence[Trigger]):
    """The inputs that trigger an event, as a sequence and as a frame."""

    def __init__(self, triggers: Iterable[Trigger] = ()) -> None:
        self._triggers = tuple(triggers)

    @overload
    def __getitem__(self, index: int) -> Trigger: ...
    @overload
    def __getitem__(self, index: slice) -> Triggers: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[Trigger, Triggers]:
        found = self._triggers[index]
        return Triggers(found) if isinstance(found, tuple) else found

    def __len__(self) -> int:
        return len(self._triggers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Triggers) and self._triggers == other._triggers

    def __hash__(self) -> int:
        return hash(self._triggers)

    def __repr__(self) -> str:
        return f"Triggers({len(self)}: {[trigger.text or trigger.continuation for trigger in self]!r})"

    def to_dict(self) -> list[dict[str, Any]]:
        """One plain dictionary for each, without what is not known of it."""
        rows = []
        for trigger in self:
            row = {name: getattr(trigger, name) for name in Trigger.__dataclass_fields__}
            rows.append({name: _plain(value) for name, value in row.items() if value not in (None, ())})
        return rows

    def to_jsonl(self) -> str:
        """One JSON object a line."""
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.to_dict())

    def to_pandas(self) -> pandas.DataFrame:
        return _frames.to_pandas(self.to_dict())

    def to_polars(self) -> polars.DataFrame:
        return _frames.to_polars(self.to_dict())


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
