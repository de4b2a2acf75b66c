"""Texts drawn token by token, driven by numbers that are given: the same numbers, the same text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from .heads import Rows, check_eval, last_head, rows_of

__all__ = ["Sampling", "sample_continuations"]


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn: temperature, then top-k, then top-p, as deployed."""

    temperature: float = 1.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    greedy: bool = False
    stop: tuple[int, ...] = ()  # ids that end a text

    def __post_init__(self) -> None:
        if not self.temperature > 0 or self.top_k < 0 or not 0 < self.top_p <= 1:
            raise InputError("sampling: temperature must be above 0, top_k at least 0, top_p above 0 and at most 1")

    def probabilities(self, logits: Tensor) -> Tensor:
        """[n, d_vocab], float32; not normalised again after what was cut off."""
        p = torch.softmax(logits / self.temperature, dim=-1, dtype=torch.float32)
        if (self.top_k == 0 or self.top_k >= p.shape[-1]) and self.top_p >= 1.0:
            return p
        sorted_p, order = torch.sort(p, dim=-1, descending=True, stable=True)  # of equal ones the smaller id first
        keep = torch.ones_like(sorted_p, dtype=torch.bool)
        if self.top_k:
            keep[:, self.top_k :] = False
        if self.top_p < 1.0:
            kept = sorted_p * keep
            before = torch.cumsum(kept.double(), dim=-1) - kept.double()
            keep &= before < self.top_p * kept.double().sum(dim=-1, keepdim=True)
        return p * torch.zeros_like(keep).scatter(1, order, keep)

    def draw(self, p: Tensor, u: Tensor) -> Tensor:
        """By the inverse of the distribution function, ids in ascending order. p: [n, d_vocab], u: [n] in [0, 1)."""
        if self.greedy:
            best = p.max(dim=-1, keepdim=True).values
            return (p == best).to(torch.uint8).argmax(dim=-1)  # the smaller id at a tie
        below = torch.cumsum(p.double(), dim=-1)
        at = torch.searchsorted(below, (u * below[:, -1])[:, None], right=True)[:, 0]
        last = p.shape[-1] - 1 - (p.flip(-1) > 0).to(torch.uint8).argmax(dim=-1)  # where rounding reaches the end
        return torch.minimum(at, last)


# Before each token is drawn: its step, probabilities [n, d_vocab]; after it: the tokens drawn [n] and which texts had
# ended before. True ends it all.
BeforeStep = Callable[[int, Tensor], None]
AfterStep = Callable[[int, Tensor, Tensor], bool]


class _Stepper:
    """A model with keys and values of what it has read."""

    def __init__(self, model: Any, rows: Rows) -> None:
        self._model, self._head = model, last_head(model)
        self._mask, self._positions = rows.mask, None if rows.positions is None else rows.positions[:, -1:]
        self._past: Any = None
        self.logits = self._run(rows.tokens, rows.positions)

    def _run(self, tokens: Tensor, positions: Optional[Tensor]) -> Tensor:
        given: dict[str, Any] = {"input_ids": tokens, "use_cache": True, "past_key_values": self._past}
        if self._mask is not None:
            given.update(attention_mask=self._mask, position_ids=positions)
        if self._head.plain:
            out = self._model.base_model(**given)
            self._past = out.past_key_values
            return self._head.logits(out.last_hidden_state[:, -1])
        out = self._model(**given)
        self._past = out.past_key_values
        found: Tensor = out.logits[:, -1].float()
        return found

    def feed(self, tokens: Tensor) -> None:
        if self._mask is not None and self._positions is not None:
            self._mask = torch.cat([self._mask, torch.ones_like(self._mask[:, :1])], dim=1)
            self._positions = self._positions + 1
        self.logits = self._run(tokens[:, None], self._positions)


def decode_steps(
    model: Any, rows: Rows, numbers: Any, sampling: Sampling, before: Optional[BeforeStep] = None, after: Optional[AfterStep] = None
) -> Tensor:
    """The drawn tokens, [n, n_steps]; after a stop token, that token again; -1 where nobody asked any more."""
    u = torch.as_tensor(np.ascontiguousarray(numbers, dtype=np.float64), device=rows.tokens.device)
    n, n_steps = u.shape
    stop = torch.tensor(sampling.stop, device=rows.tokens.device, dtype=torch.long)
    drawn = torch.zeros(n, n_steps, dtype=torch.long, device=rows.tokens.device)
    ended = torch.zeros(n, dtype=torch.bool, device=rows.tokens.device)
    stepper = _Stepper(model, rows)
    for t in range(n_steps):
        if t > 0:
            stepper.feed(drawn[:, t - 1])
        p = sampling.probabilities(stepper.logits)
        if before is not None:
            before(t, p)
        token = sampling.draw(p, u[:, t])
        token = torch.where(ended, drawn[:, t - 1] if t else token, token)
        drawn[:, t] = token
        finished = after is not None and after(t, token, ended)
        if len(stop):
            ended = ended | torch.isin(token, stop)
        if finished:
            drawn[:, t + 1 :] = -1  # not drawn
            break
    return drawn


def sample_continuations(
    model: Any,
    tokens: Any,
    numbers: Any,
    *,
    lengths: Any = None,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    greedy: bool = False,
    stop: Sequence[int] = (),
) -> Tensor:
    """Draws a continuation of each row with the numbers that are given (from 0 up to 1, float64 [n, new tokens]): [n, new tokens].
    The t-th number of a row drives its t-th new token, so the same numbers give the same text.

    >>> import deeptail as dt, numpy as np, torch
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> hf = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=50, n_positions=16)).eval()
    >>> numbers = np.random.default_rng(1).random((3, 6))
    >>> drawn = dt.torch.sample_continuations(hf, np.zeros((3, 2), np.int32), numbers)
    >>> tuple(drawn.shape)
    (3, 6)
    """
    check_eval(model)
    sampling = Sampling(temperature, top_k, top_p, greedy, tuple(int(k) for k in stop))
    with torch.inference_mode():
        return decode_steps(model, rows_of(model, tokens, lengths), numbers, sampling)
