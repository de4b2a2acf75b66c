"""Scores for causal language models of transformers, on any device: ``deeptail.torch``.

The body runs in the model's own dtype, the head of the last position in float32: bf16 logits are steps of 1/16 or
more, and splitting needs to see which of two inputs is nearer. Batches have one shape always. Models must be in eval
mode, since dropout makes a score random.
"""

from __future__ import annotations

from .decoding import Sampling, sample_continuations
from .graphs import CapturedLogits
from .heads import head, last_logits, margin, residuals
from .margins import margin_score, margin_scores
from .texts import continuation_score, continuation_scores

__all__ = [
    "CapturedLogits",
    "Sampling",
    "continuation_score",
    "continuation_scores",
    "head",
    "last_logits",
    "margin",
    "margin_score",
    "margin_scores",
    "residuals",
    "sample_continuations",
]
