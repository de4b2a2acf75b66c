"""Logits by a CUDA graph: a small model is ready long before Python has launched its kernels one by one, and batches of one
shape need them launched only once."""

from __future__ import annotations

import logging
import time
from typing import Any, Callable, Optional

import torch
from torch import Tensor

from .heads import LastHead, check_eval, last_head, logits_of, rows_of

__all__ = ["CapturedLogits"]

MOST_SHAPES = 8
WARM_UP, TIMED = 3, 5
log = logging.getLogger("deeptail")


class _Graph:
    """All kernels of one forward pass on batches of one shape."""

    def __init__(self, model: Any, tokens: Tensor) -> None:
        self._tokens = tokens.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                logits_of(model, self._tokens)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._logits = logits_of(model, self._tokens)

    def __call__(self, tokens: Tensor) -> Tensor:
        self._tokens.copy_(tokens)
        self._graph.replay()
        return self._logits.clone()


def _seconds(run: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(TIMED):
        run()
    torch.cuda.synchronize()
    return time.perf_counter() - start


class CapturedLogits:
    """As ``last_logits``, for one model and batches of a few shapes. Where there is no graph to be had (no CUDA device, rows
    of different lengths, a model that looks at its tensors on the way), or where it is slower, as it may be for large
    batches, the model is run as it is.

    >>> import deeptail as dt, torch
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> hf = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, vocab_size=50, n_positions=8)).eval()
    >>> logits = dt.torch.CapturedLogits(hf)
    >>> bool((logits([[1, 2, 3]]) == dt.torch.last_logits(hf, [[1, 2, 3]])).all())
    True
    """

    def __init__(self, model: Any) -> None:
        check_eval(model)
        self._model = model
        self._head: Optional[LastHead] = None
        self._graphs: dict[tuple[int, ...], Optional[_Graph]] = {}  # by shape; None: it cannot be

    def __call__(self, tokens: Any, lengths: Any = None) -> Tensor:
        check_eval(self._model)
        with torch.inference_mode():
            rows = rows_of(self._model, tokens, lengths)
            if not rows.tokens.is_cuda or rows.mask is not None:
                return logits_of(self._model, **rows.arguments())
            graph = self._graph_for(rows.tokens)
            return logits_of(self._model, rows.tokens) if graph is None else graph(rows.tokens)

    def _graph_for(self, tokens: Tensor) -> Optional[_Graph]:
        head, shape = last_head(self._model), tuple(tokens.shape)
        if head is not self._head:  # the weights are others than they were
            self._head, self._graphs = head, {}
        if shape not in self._graphs:
            self._graphs[shape] = self._capture(tokens) if len(self._graphs) < MOST_SHAPES else None
        return self._graphs[shape]

    def _capture(self, tokens: Tensor) -> Optional[_Graph]:
        """What it gives is compared with the model's own; masks may be made otherwise in a graph, so not to the bit."""
        plain = logits_of(self._model, tokens)
        try:
            graph = _Graph(self._model, tokens)
            off = float((graph(tokens) - plain).abs().max())
        except Exception as error:  # whatever torch says to a model that cannot be captured
            log.info("no CUDA graph: %s", error)
            return None
        tolerance = 1e-3 if next(self._model.parameters()).dtype == torch.float32 else 0.05
        right = off <= tolerance * (1 + float(plain.abs().max()))
        return graph if right and _seconds(lambda: graph(tokens)) < _seconds(lambda: logits_of(self._model, tokens)) else None
