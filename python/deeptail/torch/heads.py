"""Logits and residuals of the last position."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from ..clouds import Head

__all__ = ["Rows", "head", "last_logits", "logits_of", "margin", "residuals", "rows_of"]


FINAL_NORMS = ("norm", "ln_f", "final_layer_norm", "final_layernorm", "decoder.final_layer_norm", "norm_f")


@dataclass(frozen=True)
class Rows:
    """A batch as a model takes it: where lengths differ, padded on the left, with a mask and positions."""

    tokens: Tensor  # [n, length]
    mask: Optional[Tensor] = None  # [n, length]
    positions: Optional[Tensor] = None  # [n, length]

    def arguments(self) -> dict[str, Any]:
        given: dict[str, Any] = {"input_ids": self.tokens}
        if self.mask is not None:
            given.update(attention_mask=self.mask, position_ids=self.positions)
        return given


def device_of(model: Any) -> Any:
    return next(model.parameters()).device


def check_eval(model: Any) -> None:
    if getattr(model, "training", False):
        raise InputError("the model is in training mode: call model.eval() first, dropout makes a score random")


def rows_of(model: Any, tokens: Any, lengths: Any = None) -> Rows:
    """tokens: [n, length]; lengths: [n], where rows end earlier."""
    device = device_of(model)
    ids = torch.as_tensor(np.ascontiguousarray(tokens) if isinstance(tokens, np.ndarray) else tokens, device=device).long()
    if ids.ndim != 2:
        raise InputError(f"tokens: expected [n, length], found {ids.ndim} dimensions")
    if lengths is None:
        return Rows(ids)
    given, length = np.asarray(lengths, dtype=np.int64), ids.shape[1]
    if (given == length).all():  # looked at here: a device would have to be waited for
        return Rows(ids)
    ends = torch.as_tensor(given, device=device)
    at = torch.arange(length, device=device)[None, :] - (length - ends)[:, None]  # [n, length], negative where padded
    mask = at >= 0
    shifted = torch.gather(ids, 1, at.clamp(min=0)) * mask
    return Rows(shifted, mask.long(), at.clamp(min=0))


class LastHead:
    """The unembedding in float32. Where it is no plain product, the model's own logits are taken."""

    def __init__(self, model: Any) -> None:
        unembed = model.get_output_embeddings()
        self.weight: Optional[Tensor] = getattr(unembed, "weight", None)
        self.bias: Optional[Tensor] = getattr(unembed, "bias", None)
        self.version = self._state(model)
        config = getattr(model, "config", None)
        self.softcap = getattr(config, "final_logit_softcapping", None)
        self.scale = getattr(config, "logit_scale", None) or 1.0 / (getattr(config, "logits_scaling", None) or 1.0)
        if self.weight is not None:
            self.weight = self.weight.detach().float()
        if self.bias is not None:
            self.bias = self.bias.detach().float()
        self.plain = self.weight is not None

    @staticmethod
    def _state(model: Any) -> Any:
        """Another one once the weights were changed or moved."""
        weight = getattr(model.get_output_embeddings(), "weight", None)
        return None if weight is None else (weight.data_ptr(), weight._version, weight.device)

    def logits(self, hidden: Tensor) -> Tensor:
        assert self.weight is not None
        z = torch.nn.functional.linear(hidden.float(), self.weight, self.bias) * self.scale
        return torch.tanh(z / self.softcap) * self.softcap if self.softcap else z


_heads: weakref.WeakKeyDictionary[Any, LastHead] = weakref.WeakKeyDictionary()


def _hidden(model: Any, rows: Rows) -> Tensor:
    found: Tensor = model.base_model(**rows.arguments(), use_cache=False).last_hidden_state[:, -1]
    return found


def _own_logits(model: Any, rows: Rows) -> Tensor:
    found: Tensor = model(**rows.arguments(), use_cache=False).logits[:, -1].float()
    return found


def last_head(model: Any) -> LastHead:
    """Made once for each model, and compared with the model's own logits on two tokens."""
    known = _heads.get(model)
    if known is not None and known.version == LastHead._state(model):
        return known
    made = LastHead(model)
    if made.plain:
        probe = Rows(torch.tensor([[0, 1]], device=device_of(model)))
        own, ours = _own_logits(model, probe), made.logits(_hidden(model, probe))
        tolerance = 1e-3 if next(model.parameters()).dtype == torch.float32 else 0.05
        made.plain = own.shape == ours.shape and bool((own - ours).abs().max() <= tolerance * (1 + own.abs().max()))
    _heads[model] = made
    return made


def logits_of(model: Any, input_ids: Tensor, attention_mask: Optional[Tensor] = None, position_ids: Optional[Tensor] = None) -> Tensor:
    """As last_logits, of rows that are where the model is, within inference mode."""
    made, rows = last_head(model), Rows(input_ids, attention_mask, position_ids)
    return made.logits(_hidden(model, rows)) if made.plain else _own_logits(model, rows)


def last_logits(model: Any, tokens: Any, lengths: Any = None) -> Tensor:
    """Logits of the next token after each row, float32 [n, d_vocab]; tokens: [n, length] of NumPy or torch.

    >>> import deeptail as dt, torch
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> hf = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=50, n_positions=8)).eval()
    >>> z = dt.torch.last_logits(hf, torch.zeros(3, 5, dtype=torch.long))
    >>> tuple(z.shape), z.dtype
    ((3, 50), torch.float32)
    """
    check_eval(model)
    with torch.inference_mode():
        return logits_of(model, **rows_of(model, tokens, lengths).arguments())


def ids_of(target: Union[int, Sequence[int]]) -> list[int]:
    return [int(target)] if isinstance(target, (int, np.integer)) else sorted({int(t) for t in target})


def margin(logits: Tensor, target: Union[int, Sequence[int]]) -> Tensor:
    """By how much the largest logit of the target exceeds all others: at least 0 iff the model says it. At a tie the
    smaller id is said; where that loses, the margin is just below 0.

    >>> import deeptail as dt, torch
    >>> dt.torch.margin(torch.tensor([[1.0, 3.0, 2.5]]), 1)
    tensor([0.5000])
    >>> dt.torch.margin(torch.tensor([[3.0, 3.0, 2.5]]), 1) < 0
    tensor([True])
    """
    ids = torch.tensor(ids_of(target), device=logits.device)
    mine, where = logits[:, ids].max(dim=1)
    others = logits.clone()
    others[:, ids] = -torch.inf
    best = others.max(dim=1).values
    found = mine - best
    said = ids[where]  # of equal ones among the target any will do, but for the smallest id at a tie with others
    before = torch.arange(logits.shape[1], device=logits.device)[None, :] < said[:, None]
    lost = (found == 0) & ((others == best[:, None]) & before).any(dim=1)
    return torch.where(lost, torch.full_like(found, -torch.finfo(found.dtype).tiny), found)


def final_norm(model: Any) -> Any:
    for name in FINAL_NORMS:
        found = model.base_model
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not None:
            return found
    raise InputError(f"{type(model).__name__}: no final norm under a name that is known: {', '.join(FINAL_NORMS)}")


@contextmanager
def _inputs_of(module: Any) -> Iterator[list[Tensor]]:
    seen: list[Tensor] = []
    hook = module.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    try:
        yield seen
    finally:
        hook.remove()


def residuals(model: Any, tokens: Any, lengths: Any = None) -> Tensor:
    """Residuals of the last position, before the final norm: float32 [n, d_model], for ``qld``, ``gld`` and ``ga_amls``."""
    check_eval(model)
    with torch.inference_mode(), _inputs_of(final_norm(model)) as seen:
        _hidden(model, rows_of(model, tokens, lengths))
        return seen[0][:, -1].float()


def head(model: Any) -> Head:
    """The final norm and unembedding, as ``deeptail.Head``."""
    return Head.from_torch(model.get_output_embeddings(), final_norm(model))
