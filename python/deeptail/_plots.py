"""Figures by matplotlib, which is imported when it is asked for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Optional

from .errors import InputError

if TYPE_CHECKING:
    import matplotlib.axes

    from .results import Estimate, EstimateList

COLOUR = "#3b82f6"


def _axes(ax: Optional[matplotlib.axes.Axes], width: float, height: float) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise InputError("matplotlib is not installed: pip install matplotlib; results show themselves without it") from error
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def _bar(axes: Any, e: Estimate, y: float) -> None:
    low, high = e.interval
    floor = low if low > 0 else min([p for p in (e.p, high) if p > 0], default=1e-12) / 100
    axes.plot([floor, high], [y, y], color=COLOUR, alpha=0.4, linewidth=7, solid_capstyle="butt")
    if e.p > 0:
        axes.plot([e.p], [y], "o", color=COLOUR)


def interval(e: Estimate, ax: Optional[matplotlib.axes.Axes]) -> Any:
    axes = _axes(ax, 6.0, 1.6)
    _bar(axes, e, 0.0)
    axes.plot([p for p in e.replicas if p > 0], [0.0 for p in e.replicas if p > 0], "|", color="gray", markersize=16)
    axes.set_xscale("log")
    axes.set_yticks([])
    axes.set_xlabel("probability")
    axes.set_title(e.question, fontsize="medium")
    return axes


def levels(e: Estimate, ax: Optional[matplotlib.axes.Axes]) -> Any:
    from ._html import after_levels

    axes = _axes(ax, 6.0, 3.0)
    shares = after_levels(e)
    scores = [level.level for level in e.levels]
    axes.plot(scores, shares[1:], "o-", color=COLOUR)
    axes.set_yscale("log")
    axes.set_xlabel("score of the level")
    axes.set_ylabel("probability so far")
    return axes


def many(es: EstimateList, ax: Optional[matplotlib.axes.Axes]) -> Any:
    axes = _axes(ax, 6.0, min(12.0, 1.0 + 0.22 * len(es)))
    for k, e in enumerate(es):
        _bar(axes, e, -float(k))
    axes.set_xscale("log")
    axes.set_yticks([-float(k) for k in range(len(es))])
    axes.set_yticklabels([", ".join(e.target_text) or e.event for e in es], fontsize="small")
    axes.set_xlabel("probability")
    if any(math.isinf(e.log10_p) for e in es):
        axes.set_title("without a point: never seen", fontsize="small")
    return axes
