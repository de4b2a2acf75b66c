"""Scores of estimates against truths. Both are keywords, since other libraries have them in the other order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from . import _arrays, _native
from .errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["choose_epsilon", "itakura_saito", "log_squared", "profiles", "spb", "spb_alpha", "spb_loss", "squared"]


def _losses(name: str, truth: Any, estimate: Any, **parameters: float) -> npt.NDArray[np.float64]:
    q, p = np.broadcast_arrays(_arrays.doubles(truth, "truth"), _arrays.doubles(estimate, "estimate"))
    found = _native.loss(name, np.ascontiguousarray(q), np.ascontiguousarray(p), **parameters)
    return np.asarray(found, dtype=np.float64).reshape(q.shape)


def profiles() -> dict[str, dict[str, Any]]:
    """The loss's parameters by use.

    >>> import deeptail as dt
    >>> dt.profiles()["oversight"]["alpha"]
    2.0
    """
    return {entry["name"]: entry for entry in _native.call("list", {"what": "profiles"})}


def choose_epsilon(*, truth: Any, alpha: float = 1.5, m0: float = 2.0, mmax: float = 100.0, eta: float = 0.05) -> float:
    """The shift that keeps zero estimates finite and the loss what it was, for truths like these (docs/loss.md)."""
    rarest = float(np.min(_arrays.doubles(truth, "truth")))
    if not 0 < rarest < 1:
        raise InputError(f"truth: expected probabilities above 0 and below 1, found {rarest}")
    found = _native.call("spb_epsilon", {"alpha": alpha, "qmin": rarest, "mmax": mmax, "m0": m0, "eta": eta})
    return float(found["epsilon"])


def _parameters(truth: Any, profile: Optional[str], alpha: Optional[float], gamma: Optional[float], epsilon: Optional[float]) -> dict[str, float]:
    known = profiles()
    name = profile or "benchmarking"
    if name not in known:
        raise InputError(f"there is no profile {name!r}: {', '.join(known)}")
    alpha = float(known[name]["alpha"] if alpha is None else alpha)
    gamma = float(known[name]["gamma"] if gamma is None else gamma)
    return {"alpha": alpha, "gamma": gamma, "epsilon": choose_epsilon(truth=truth, alpha=alpha) if epsilon is None else float(epsilon)}


def spb(
    *,
    estimate: Any,
    truth: Any,
    profile: Optional[str] = None,
    alpha: Optional[float] = None,
    gamma: Optional[float] = None,
    epsilon: Optional[float] = None,
) -> npt.NDArray[np.float64]:
    """The SPB loss of each pair; their mean is the loss of the table. Parameters: those of the profile (benchmarking)
    unless they are given; epsilon as the command line chooses it.

    >>> import deeptail as dt
    >>> dt.spb(estimate=[1e-6, 2e-6, 0], truth=1e-6).round(3).tolist()
    [0.0, 0.243, 196.04]
    """
    return _losses("spb", truth, estimate, **_parameters(truth, profile, alpha, gamma, epsilon))


def spb_loss(
    *,
    estimate: Any,
    truth: Any,
    profile: Optional[str] = None,
    alpha: Optional[float] = None,
    gamma: Optional[float] = None,
    epsilon: Optional[float] = None,
) -> float:
    """The mean of ``spb``: what ``deeptail loss`` prints.

    >>> import deeptail as dt
    >>> round(dt.spb_loss(estimate=[9.3e-10, 1.1e-8], truth=[1.16e-9, 7.45e-9]), 4)
    0.0503
    """
    return float(np.mean(spb(estimate=estimate, truth=truth, profile=profile, alpha=alpha, gamma=gamma, epsilon=epsilon)))


def spb_alpha(*, ratio: float, m0: float = 2.0) -> float:
    """The smallest alpha for which an underestimate by a factor m0 costs at least ratio times as much as the overestimate.

    >>> import deeptail as dt
    >>> round(dt.spb_alpha(ratio=3, m0=2), 3)
    2.688
    """
    return float(_native.call("spb_alpha", {"ratio": ratio, "m0": m0}))


def itakura_saito(*, estimate: Any, truth: Any) -> npt.NDArray[np.float64]:
    """q/p - ln(q/p) - 1; infinite at p = 0.

    >>> import deeptail as dt
    >>> float(dt.itakura_saito(estimate=1e-6, truth=1e-6))
    0.0
    """
    return _losses("itakura_saito", truth, estimate)


def squared(*, estimate: Any, truth: Any) -> npt.NDArray[np.float64]:
    """(p - q)^2."""
    return _losses("squared", truth, estimate)


def log_squared(*, estimate: Any, truth: Any) -> npt.NDArray[np.float64]:
    """(ln p - ln q)^2; infinite at p = 0.

    >>> import deeptail as dt
    >>> round(float(dt.log_squared(estimate=1e-6, truth=1e-7)), 4)
    5.3019
    """
    return _losses("log_squared", truth, estimate)
