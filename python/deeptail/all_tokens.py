"""Every token of the vocabulary at once, by draws that all of them share."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from . import _native
from ._progress import Progress, watching
from .errors import EstimateWarning
from .estimates import LawLike, partial, settings_of
from .laws import law as as_law
from .models import load
from .result_parts import known
from .results import Estimate, EstimateList

__all__ = ["AllTokens", "Rest", "estimate_all"]

log = logging.getLogger("deeptail")


@dataclass(frozen=True)
class Rest:
    """What is known besides the rows: tokens that were seen and lie outside the bounds, and those that were never said,
    each of which is below ``unseen_below`` with 95 % confidence."""

    rows: int = 0
    outside: int = 0
    unseen: int = 0
    unseen_below: float = 1.0
    plain_draws: int = 0
    forward_equivalents: float = 0.0
    seconds: float = 0.0
    stopped: bool = False


class AllTokens(EstimateList):
    """An estimate for every token between the bounds, the likeliest first; ``rest`` tells of the others.

    ``method`` of an estimate is the step that answered it: ``mc`` (counted), ``shared`` or ``tokensplit``.
    """

    def __init__(self, estimates: Iterable[Estimate] = (), rest: Optional[Rest] = None) -> None:
        super().__init__(estimates)
        self.rest = rest if rest is not None else Rest()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AllTokens:
        """From the JSON object of ``dt_estimate_all``."""
        return cls((Estimate.from_dict(row) for row in values["rows"]), known(Rest, values["rest"]))

    def __repr__(self) -> str:
        rest = self.rest
        return f"AllTokens({len(self)} rows, {rest.outside} outside, {rest.unseen} unseen, each below {rest.unseen_below:.3g})"


def estimate_all(
    model: Any,
    law: LawLike,
    *,
    above: Optional[float] = None,
    below: Optional[float] = None,
    budget: Optional[float] = None,
    seed: int = 1,
    device: Optional[str] = None,
    threads: int = 0,
    progress: Progress = None,
) -> AllTokens:
    """How likely is each token of the vocabulary to be said, when the input is drawn from a law of independent tokens?

    above, below: tokens whose probability lies between these are worked for and returned (1e-8 and 1 where they are not
    given). budget: forward passes' worth of work for all of them together. The same seed gives the same bits as
    ``deeptail estimate --all``. Ctrl-C ends it: the KeyboardInterrupt carries what was drawn until then as ``partial``.

    >>> import deeptail as dt
    >>> es = dt.estimate_all("dt-1l", "hex", above=0.01, budget=1e4)
    >>> es[0].target_text, es[0].method, es.rest.stopped
    (('e',), 'mc', False)
    """
    loaded = load(model)
    given = settings_of({"above": above, "below": below, "budget": budget, "seed": seed, "device": device, "threads": threads})
    with watching(progress, loaded.name) as told, partial(AllTokens.from_dict):
        found = AllTokens.from_dict(_native.estimate_all(loaded._native, as_law(law).native(loaded), given, progress=told))
    log.info("%s on %s: %r", loaded.name, law, found)
    warned = sum(bool(e.warnings) for e in found)
    if warned:
        warnings.warn(f"{warned} of {len(found)} estimates have warnings of their own", EstimateWarning, stacklevel=2)
    return found
