"""What an estimate says: frozen objects made from the JSON that the program prints.

Every name is that of ``deeptail estimate --json`` (docs/estimate.md), but for ``interval``, which is ``ci95`` there.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional, Union, overload

import numpy as np

from . import _frames
from .result_parts import Cost, Interval, Level, Position, Provenance, Trigger, Triggers, event_words, known, number, trigger

if TYPE_CHECKING:
    import matplotlib.axes
    import numpy.typing as npt
    import pandas
    import polars

__all__ = ["Cost", "Estimate", "EstimateList", "Interval", "Level", "Position", "Provenance", "Trigger", "Triggers"]


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
            p=number(values["p"]),
            log10_p=number(values["log10_p"]),
            interval=Interval(*(number(end) for end in values["ci95"])),
            status=values["status"],
            guarantee=values["guarantee"],
            method=values.get("method", ""),
            model=values.get("model") or "",
            dist=values.get("dist") or "",
            target=tuple(values.get("target") or ()),
            target_text=tuple(values.get("target_text") or ()),
            event=event_words(values.get("event", "")),
            seed=int(values.get("seed", 0)),
            settings=dict(values.get("settings") or {}),
            cost=known(Cost, values.get("cost") or {}),
            levels=tuple(known(Level, level) for level in values.get("levels") or ()),
            warnings=tuple(values.get("warnings") or ()),
            diagnostics={name: number(x) for name, x in (values.get("diagnostics") or {}).items()},
            triggers=Triggers(trigger(given) for given in values.get("triggers") or ()),
            positions=tuple(known(Position, position) for position in values.get("positions") or ()),
            replicas=tuple(number(p) for p in values.get("replicas") or ()),
            certain_low=number(values.get("certain_low", 0.0)),
            provenance=known(Provenance, values.get("provenance") or {}),
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
