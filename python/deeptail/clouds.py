"""Activations and heads: of a model, or arrays of your own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from . import _arrays, _native
from ._progress import Progress, watching
from .estimates import LawLike, first_of, partial, read, settings_of, tell
from .events import TargetLike, event as as_event
from .laws import law as as_law
from .models import load
from .results import Estimate

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Activations", "Head", "activations", "ga_amls", "gld", "qld"]


@dataclass(frozen=True)
class Activations:
    """Final residuals of inputs of a law, [n, d_model], read-only; ``numpy.asarray`` takes them as they are."""

    values: npt.NDArray[np.float32]
    last_tokens: Optional[npt.NDArray[np.int32]] = None  # [n]: the last token that varies, for conditioned priors

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> npt.NDArray[Any]:
        return self.values if dtype in (None, np.float32) and not copy else np.array(self.values, dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Activations({len(self)} of {self.values.shape[1]})"


def _captured(pair: Any) -> Activations:
    values, last = np.asarray(pair[0]).view(), pair[1]
    values.flags.writeable = False
    return Activations(values, None if last is None else np.asarray(last))


def activations(
    model: Any, law: LawLike, count: float = 2**16, *, seed: int = 1, threads: int = 0, progress: Progress = None
) -> Activations:
    """Final residuals at the last position, before the last norm, of so many inputs.

    >>> import deeptail as dt
    >>> dt.activations("dt-1l", "hex", 1000).shape
    (1000, 128)
    """
    loaded = load(model)
    with watching(progress, "activations") as told, partial(_captured):
        pair = _native.capture(loaded._native, as_law(law).native(loaded), int(count), seed=seed, threads=threads, progress=told)
    return _captured(pair)


class Head:
    """The way from activations to the vocabulary: a norm and an unembedding, from NumPy or torch arrays.

    w_u: [d_model, d_vocab] (the weight of a torch Linear is the transpose of it). norm: "layer", "rms" or "none".

    >>> import deeptail as dt, numpy as np
    >>> dt.Head(np.eye(4, 7), norm="none")
    Head(d_model=4, d_vocab=7, norm='none')
    """

    def __init__(self, w_u: Any, b_u: Any = None, *, ln_w: Any = None, ln_b: Any = None, norm: str = "layer", eps: float = 1e-5) -> None:
        def vector(x: Any, what: str) -> Any:
            return None if x is None else _arrays.floats(x, what, 1)

        unembed = _arrays.floats(w_u, "w_u", 2)
        self.d_model, self.d_vocab = unembed.shape
        self.norm = norm
        self._native = _native.make_head(
            unembed, vector(b_u, "b_u"), ln_w=vector(ln_w, "ln_w"), ln_b=vector(ln_b, "ln_b"), norm=norm, eps=eps
        )

    @classmethod
    def from_torch(cls, lm_head: Any, norm: Any = None) -> Head:
        """From a torch Linear without or with a bias and the norm before it (LayerNorm, or an RMS norm of transformers)."""
        w_u = _arrays.as_numpy(lm_head.weight).T
        b_u = getattr(lm_head, "bias", None)
        if norm is None:
            return cls(w_u, b_u, norm="none")
        rms = "rms" in type(norm).__name__.lower()
        eps = float(getattr(norm, "variance_epsilon", getattr(norm, "eps", 1e-5)) or 1e-5)
        return cls(w_u, b_u, ln_w=norm.weight, ln_b=getattr(norm, "bias", None), norm="rms" if rms else "layer", eps=eps)

    def __repr__(self) -> str:
        return f"Head(d_model={self.d_model}, d_vocab={self.d_vocab}, norm={self.norm!r})"


def _on_arrays(method: str, cloud: Any, head: Any, target: TargetLike, progress: Progress, settings: Mapping[str, Any]) -> Estimate:
    last = cloud.last_tokens if isinstance(cloud, Activations) else None
    values = _arrays.floats(cloud.values if isinstance(cloud, Activations) else cloud, "activations", 2)
    owner: dict[str, Any] = {"head": head._native} if isinstance(head, Head) else {"model": load(head)._native}
    with watching(progress, method) as told, partial(lambda done: read(done[0]) if done else None):
        answers = _native.estimate(
            [as_event(target).to_dict()],
            activations=values,
            last_tokens=last,
            settings=settings_of({"method": method, **settings}),
            progress=told,
            **owner,
        )
    return tell(read(first_of(answers)), stacklevel=4)


def qld(activations: Any, head: Any, target: TargetLike, *, seed: int = 1, progress: Progress = None, **settings: Any) -> Estimate:
    """Quadratic logit decomposition of activations of your own: [n, d_model], NumPy or torch. head: a Head or a model.

    >>> import deeptail as dt
    >>> e = dt.qld(dt.activations("dt-1l", "hex", 2**12), "dt-1l", 395)
    >>> e.guarantee, e.cost.forward
    ('model_based', 0)
    """
    return _on_arrays("qld", activations, head, target, progress, {"seed": seed, **settings})


def gld(activations: Any, head: Any, target: TargetLike, *, seed: int = 1, progress: Progress = None, **settings: Any) -> Estimate:
    """Gaussian logit difference of activations of your own.

    >>> import deeptail as dt
    >>> dt.gld(dt.activations("dt-1l", "hex", 2**12), "dt-1l", 395).method
    'gld'
    """
    return _on_arrays("gld", activations, head, target, progress, {"seed": seed, **settings})


def ga_amls(activations: Any, head: Any, target: TargetLike, *, seed: int = 1, progress: Progress = None, **settings: Any) -> Estimate:
    """Splitting on activations of your own, under a prior fitted to them.

    >>> import deeptail as dt
    >>> cloud = dt.activations("dt-1l", "hex", 2**12)
    >>> dt.ga_amls(cloud, "dt-1l", 310, particles=200, moves=5).guarantee
    'model_based'
    """
    return _on_arrays("ga-amls", activations, head, target, progress, {"seed": seed, **settings})


