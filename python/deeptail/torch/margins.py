"""The next token as an event: scores for ``deeptail.split`` and ``split_many``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import torch
from torch import Tensor

from ..scores import BATCH, Batch, Score, score
from .graphs import CapturedLogits
from .heads import device_of, ids_of, margin

__all__ = ["margin_score", "margin_scores"]


def _margin_of_each(logits: Tensor, ids: Tensor) -> Tensor:
    """As margin, with a target of its own for each row, on the CPU; ids: [n]."""
    mine = logits.gather(1, ids[:, None])[:, 0]
    best = logits.scatter(1, ids[:, None], -torch.inf).max(dim=1).values
    found = (mine - best).cpu()
    for row in torch.nonzero(found == 0)[:, 0].tolist():
        found[row] = margin(logits[row : row + 1], int(ids[row]))[0]
    return found


def margin_score(model: Any, target: Union[int, Sequence[int]], *, batch: Batch = BATCH) -> Score:
    """The event that the most likely next token is one of these, as a score for ``deeptail.split``."""
    ids, logits = ids_of(target), CapturedLogits(model)

    def says(tokens: Any, lengths: Any) -> Tensor:
        with torch.inference_mode():
            return margin(logits(tokens, lengths), ids)

    return score(batch=batch, name="says " + ",".join(map(str, ids)))(says)


def margin_scores(model: Any, targets: Sequence[int], *, batch: Batch = BATCH) -> Score:
    """Event k: the most likely next token is targets[k]. As a score for ``deeptail.split_many``, where all of them share batches.

    >>> import deeptail as dt
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> hf = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=50, n_positions=8)).eval()
    >>> law = dt.Law.positions([range(50)] * 4, d_vocab=50)
    >>> rs = dt.split_many(law, dt.torch.margin_scores(hf, [3, 4], batch=64), ["says 3", "says 4"], budget=1000, replicas=2)
    >>> len(rs)
    2
    """
    ids, logits = torch.tensor([int(t) for t in targets], device=device_of(model)), CapturedLogits(model)

    def says(tokens: Any, lengths: Any, which: Any) -> Tensor:
        with torch.inference_mode():
            about = ids[torch.as_tensor(which, device=ids.device).long()]
            return _margin_of_each(logits(tokens, lengths), about)

    return score(batch=batch, name=f"says one of {len(ids)} tokens")(says)
