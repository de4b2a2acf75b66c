"""What an estimate says: frozen objects made from the JSON that the program prints.

Every name is that of ``deeptail estimate --json`` (docs/estimate.md), but for ``interval``, which is ``ci95`` there.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union, overload

import numpy as np

from . import _frames

if TYPE_CHECKING:
    import matplotlib.axes
    import numpy.typing as npt
    import pandas
    import polars

__all__ = ["Cost", "Estimate", "EstimateList", "Interval", "Level", "Position", "Provenance", "Trigger", "Triggers"]


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


def _number(value: Any) -> float:
    """JSON has no infinities: they are the strings "inf" and "-inf"."""
    return math.nan if value is None else float(value)


def _known(kind: Any, values: Mapping[str, Any]) -> Any:
    """A dataclass from what it knows of an object; later versions may say more, which is in to_dict()."""
    return kind(**{name: values[name] for name in kind.__dataclass_fields__ if name in values})


def _match(value: Any, continuation: Optional[str]) -> Optional[tuple[int, int]]:
    """Bytes of the JSON as characters of the text."""
    if not value or continuation is None or value[0] == value[1]:
        return None
    text = continuation.encode()
    begin, end = (len(text[: int(at)].decode("utf-8", "ignore")) for at in value)
    return begin, end


def _event(value: Any) -> str:
    """In words: a next token's event is nothing else."""
    return value if isinstance(value, str) else str(value.get("says", ""))


def _trigger(values: Mapping[str, Any]) -> Trigger:
    return Trigger(
        sample=int(values.get("sample", 0)),
        tokens=tuple(values.get("tokens", ())),
        text=values.get("text") or "",
        margin=_number(values.get("margin", 0.0)),
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


@dataclass(frozen=True)
class Estimate:
    """The probability of an event, with its interval and all that is known about it.

    >>> import deeptail as dt
    >>> e = dt.estimate("dt-1l", "hex", 18, method="mc", budget=2**12)
    >>> e
    Estimate(p=0.0625, interval=[0.0553, 0.0704], status='ok', guarantee='unbiased', method='mc')
    >>> e.p == 256 / 4096, e.p in e.interval, e.question
    (True, True, 'Pr[dt-1l on hex says 18 "2"]')
    """

    p: float
    log10_p: float
    interval: Interval
    status: str
    guarantee: str
    method: str = ""
    model: str = ""
    dist: str = ""
    target: tuple[int, ...] = ()
    target_text: tuple[str, ...] = ()
    event: str = ""
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    cost: Cost = field(default_factory=Cost, compare=False)
    levels: tuple[Level, ...] = ()
    warnings: tuple[str, ...] = ()
    diagnostics: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)
    triggers: Triggers = field(default_factory=Triggers)
    positions: tuple[Position, ...] = ()
    replicas: tuple[float, ...] = ()
    certain_low: float = 0.0
    provenance: Provenance = field(default_factory=Provenance)
    _json: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Estimate:
        """From the JSON object of ``deeptail estimate --json``.

        >>> import deeptail as dt
        >>> e = dt.Estimate.from_dict({"p": 1e-6, "log10_p": -6, "ci95": [5e-7, 2e-6], "status": "ok", "guarantee": "unbiased"})
        >>> e.interval
        Interval(low=5e-07, high=2e-06)
        """
        return cls(
            p=_number(values["p"]),
            log10_p=_number(values["log10_p"]),
            interval=Interval(*(_number(end) for end in values["ci95"])),
            status=values["status"],
            guarantee=values["guarantee"],
            method=values.get("method", ""),
            model=values.get("model") or "",
            dist=values.get("dist") or "",
            target=tuple(values.get("target") or ()),
            target_text=tuple(values.get("target_text") or ()),
            event=_event(values.get("event", "")),
            seed=int(values.get("seed", 0)),
            settings=dict(values.get("settings") or {}),
            cost=_known(Cost, values.get("cost") or {}),
            levels=tuple(_known(Level, level) for level in values.get("levels") or ()),
            warnings=tuple(values.get("warnings") or ()),
            diagnostics={name: _number(x) for name, x in (values.get("diagnostics") or {}).items()},
            triggers=Triggers(_trigger(trigger) for trigger in values.get("triggers") or ()),
            positions=tuple(_known(Position, position) for position in values.get("positions") or ()),
            replicas=tuple(_number(p) for p in values.get("replicas") or ()),
            certain_low=_number(values.get("certain_low", 0.0)),
            provenance=_known(Provenance, values.get("provenance") or {}),
            _json=copy.deepcopy(dict(values)),
        )

    @classmethod
    def from_json(cls, text: str) -> Estimate:
        """From one line of ``deeptail estimate --json``."""
        return cls.from_dict(json.loads(text))

    @property
    def question(self) -> str:
        """What was asked, for people: Pr[dt-1l on hex says 37 "E"]."""
        said = self.event or "the event"
        for token, text in zip(self.target, self.target_text):
            if said == f"says {token}":
                said = f"says {token} {json.dumps(text, ensure_ascii=False)}"
        where = f"{self.model or 'score'} on {self.dist}" if self.dist else self.model
        return f"Pr[{where} {said}]" if where else f"Pr[{said}]"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object, as a copy of your own."""
        return copy.deepcopy(dict(self._json))

    def to_json(self) -> str:
        """One line, as ``deeptail estimate --json`` prints it."""
        return json.dumps(self._json, ensure_ascii=False, separators=(",", ":"))

    def row(self) -> dict[str, Any]:
        """The figures that fit into one row of a table."""
        return {
            "model": self.model,
            "dist": self.dist,
            "event": self.event,
            "target": self.target[0] if len(self.target) == 1 else list(self.target) or None,
            "text": ", ".join(self.target_text),
            "p": self.p,
            "log10_p": self.log10_p,
            "low": self.interval.low,
            "high": self.interval.high,
            "status": self.status,
            "guarantee": self.guarantee,
            "method": self.method,
            "seed": self.seed,
            "forward_equivalents": self.cost.forward_equivalents,
            "seconds": self.cost.seconds,
            "warnings": len(self.warnings),
        }

    def to_pandas(self) -> pandas.DataFrame:
        """A frame of one row."""
        return _frames.to_pandas([self.row()])

    def to_polars(self) -> polars.DataFrame:
        return _frames.to_polars([self.row()])

    def plot(self, ax: Optional[matplotlib.axes.Axes] = None) -> matplotlib.axes.Axes:
        """The interval on a log axis, with the replicas (matplotlib)."""
        from . import _plots

        axes: matplotlib.axes.Axes = _plots.interval(self, ax)
        return axes

    def plot_levels(self, ax: Optional[matplotlib.axes.Axes] = None) -> matplotlib.axes.Axes:
        """The probability after each level (matplotlib)."""
        from . import _plots

        axes: matplotlib.axes.Axes = _plots.levels(self, ax)
        return axes

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Estimate(p={self.p:.3g}, interval=[{low:.3g}, {high:.3g}], status={self.status!r}, "
            f"guarantee={self.guarantee!r}, method={self.method!r})"
        )

    def _repr_html_(self) -> str:
        from . import _html

        return _html.estimate(self)


class EstimateList(Sequence[Estimate]):
    """Answers to many questions, with their figures as arrays.

    >>> import deeptail as dt
    >>> es = dt.estimate_many("dt-1l", "hex", [18, "ly"], method="mc", budget=2**12)
    >>> len(es), es.status
    (2, ('ok', 'not_reached_upper_bound'))
    >>> es.p.shape, float(es.p[0]) == es[0].p
    ((2,), True)
    """

    def __init__(self, estimates: Iterable[Estimate] = ()) -> None:
        self._estimates = tuple(estimates)

    @overload
    def __getitem__(self, index: int) -> Estimate: ...
    @overload
    def __getitem__(self, index: slice) -> EstimateList: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[Estimate, EstimateList]:
        found = self._estimates[index]
        return EstimateList(found) if isinstance(found, tuple) else found

    def __len__(self) -> int:
        return len(self._estimates)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self._estimates)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EstimateList) and self._estimates == other._estimates

    def __hash__(self) -> int:
        return hash(self._estimates)

    def _array(self, values: Iterable[float]) -> npt.NDArray[np.float64]:
        array = np.array(list(values), dtype=np.float64)
        array.flags.writeable = False
        return array

    @property
    def p(self) -> npt.NDArray[np.float64]:
        return self._array(e.p for e in self)

    @property
    def log10_p(self) -> npt.NDArray[np.float64]:
        return self._array(e.log10_p for e in self)

    @property
    def low(self) -> npt.NDArray[np.float64]:
        return self._array(e.interval.low for e in self)

    @property
    def high(self) -> npt.NDArray[np.float64]:
        return self._array(e.interval.high for e in self)

    @property
    def status(self) -> tuple[str, ...]:
        return tuple(e.status for e in self)

    @property
    def targets(self) -> tuple[tuple[int, ...], ...]:
        return tuple(e.target for e in self)

    def to_dict(self) -> list[dict[str, Any]]:
        return [e.to_dict() for e in self]

    def to_json(self) -> str:
        """One line each."""
        return "".join(e.to_json() + "\n" for e in self)

    def to_pandas(self) -> pandas.DataFrame:
        return _frames.to_pandas([e.row() for e in self])

    def to_polars(self) -> polars.DataFrame:
        return _frames.to_polars([e.row() for e in self])

    def plot(self, ax: Optional[matplotlib.axes.Axes] = None) -> matplotlib.axes.Axes:
        """The intervals below each other on a log axis (matplotlib)."""
        from . import _plots

        axes: matplotlib.axes.Axes = _plots.many(self, ax)
        return axes

    def __repr__(self) -> str:
        if not self:
            return "EstimateList(0)"
        ok = sum(e.status == "ok" for e in self)
        return f"EstimateList({len(self)}: {ok} ok, p from {self.p.min():.3g} to {self.p.max():.3g})"

    def _repr_html_(self) -> str:
        from . import _html

        return _html.estimates(self)
