"""Events on sampled text, as scores for ``deeptail.split``: any causal language model of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional, Union

import torch
from torch import Tensor

from .. import _arrays
from ..errors import InputError
from ..events import Continuation
from ..splits import Score, score
from .automata import DECAY, TokenSteps, steps_of, token_bytes
from .decoding import Sampling, decode_steps
from .heads import check_eval, device_of, rows_of

__all__ = ["continuation_score"]

JUST_BELOW = -1e-6  # of texts that came as near as can be
NEVER = -1e3
MOST_NEW, MOST_ANSWERS, MOST_PROMPTS = 64, 8, 4096  # that are remembered: of a batch, of a prompt, in all

# prompts, continuations -> one number each, at least 0 where the event happens.
Judge = Callable[[list[str], list[str]], Any]


class _Follower:
    """How far each text of a batch is, and how near it came: the largest log of the chance to finish at a step."""

    def __init__(self, steps: TokenSteps, n: int, device: Any) -> None:
        self._table = torch.as_tensor(steps.table, device=device)
        self._chances = torch.as_tensor(steps.chance[steps.table], device=device)  # [n_states, d_vocab]
        self._accepted = steps.accepted
        self.state = torch.full((n,), steps.start, device=device)
        self.best = torch.full((n,), NEVER, dtype=torch.float64, device=device)

    def before(self, _: int, p: Tensor) -> None:
        near = (p @ self._chances.T).gather(1, self.state[:, None])[:, 0].double() / p.sum(dim=-1).double()
        self.best = torch.maximum(self.best, torch.log(near.clamp(min=1e-300)))

    def after(self, _: int, token: Tensor, ended: Tensor) -> bool:
        self.state = torch.where(ended, self.state, self._table[self.state, token])
        return bool((self.state == self._accepted).all())

    def scores(self) -> Tensor:
        said = self.state == self._accepted
        return torch.where(said, torch.zeros_like(self.best), self.best.clamp(min=NEVER, max=JUST_BELOW))


class _Texts:
    """Continuations of one model, by the bytes of its tokens."""

    def __init__(self, model: Any, tokenizer: Any, sampling: Sampling, batch: int, n_steps: int) -> None:
        check_eval(model)
        self.model, self.sampling, self.batch, self.n_steps = model, sampling, batch, n_steps
        self._tokenizer = tokenizer
        self._bytes: Optional[list[bytes]] = None
        self._said: dict[tuple[int, ...], list[list[int]]] = {}  # by prompt

    @property
    def d_vocab(self) -> int:
        return int(self.model.get_output_embeddings().weight.shape[0])

    def text(self, ids: Any) -> str:
        """Without a tokenizer, the ids."""
        if self._tokenizer is None:
            return " ".join(str(int(k)) for k in ids if int(k) >= 0)
        if self._bytes is None:
            self._bytes = token_bytes(self._tokenizer, self.d_vocab)
        said = b""
        for k in ids:
            if int(k) < 0 or int(k) in self.sampling.stop:
                break
            said += self._bytes[int(k)]
        return said.decode("utf-8", "replace")

    def draw(self, tokens: Any, lengths: Any, numbers: Any, follower: Optional[_Follower] = None) -> Tensor:
        with torch.inference_mode():
            rows = rows_of(self.model, tokens, lengths)
            if follower is None:
                return decode_steps(self.model, rows, numbers, self.sampling)
            return decode_steps(self.model, rows, numbers, self.sampling, follower.before, follower.after)

    def remember(self, tokens: Any, lengths: Any, drawn: Tensor, scores: Tensor) -> None:
        """Continuations with which the event happened, some for each prompt."""
        for row in torch.nonzero(scores >= 0)[:MOST_NEW, 0].tolist():
            said = self._said.setdefault(tuple(int(k) for k in tokens[row][: int(lengths[row])]), [])
            said.append(drawn[row].tolist())
            del said[:-MOST_ANSWERS]
            if len(self._said) > MOST_PROMPTS:
                del self._said[next(iter(self._said))]

    def explain(self, tokens: Sequence[int]) -> dict[str, Any]:
        """A trigger's prompt, and a continuation with which the event happened after it."""
        found: dict[str, Any] = {"prompt": self.text(tokens)}
        said = self._said.get(tuple(tokens))
        if said:
            found["continuation"] = self.text(said[0])
            said.append(said.pop(0))  # another one for the next trigger with this prompt
        return found


def _sampling(model: Any, tokenizer: Any, event: Continuation) -> Sampling:
    stop: tuple[int, ...] = ()
    if event.stop not in (None, "none"):
        if event.stop != "eos":
            raise InputError('stop: with a model of transformers "eos" or "none"')
        end = getattr(tokenizer, "eos_token_id", None)
        end = end if end is not None else getattr(getattr(model, "generation_config", None), "eos_token_id", None)
        if end is None:
            raise InputError('stop="eos": neither the tokenizer nor the model has an end of text')
        stop = tuple(int(k) for k in (end if isinstance(end, (list, tuple)) else [end]))
    return Sampling(event.temperature or 1.0, event.top_k or 0, event.top_p or 1.0, event.greedy, stop)


def _where(event: Continuation, said: str) -> dict[str, Any]:
    if event.kind not in ("contains", "starts_with"):
        return {}
    text = str(event.what).encode()
    at = said.encode().find(text)
    return {"match": [at, at + len(text)]} if at >= 0 else {}


def continuation_score(
    model: Any,
    tokenizer: Any,
    event: Union[Continuation, Judge],
    max_new_tokens: Optional[int] = None,
    *,
    sampling: Optional[Sampling] = None,
    batch: int = 256,
    decay: float = DECAY,
) -> Score:
    """An event on the sampled continuation, as a score for ``deeptail.split``.

    event: ``deeptail.contains``, ``starts_with`` or ``tokens_any``, with its temperature, top_k, top_p and stop; or a
    function of (prompts, continuations) that gives one number for each, at least 0 where the event happens.
    max_new_tokens: tokens that are drawn; the event's ``within`` where it has one.

    Each input carries one random number for each new token; moves draw some of them anew. The score of strings is the
    largest log of the chance to say the rest at once, at any step; ``decay`` is its guess of the chance of one more byte.
    A wrong guess costs accuracy, not correctness.
    """
    given = event if isinstance(event, Continuation) else None
    n_steps = max_new_tokens or (given.within if given is not None else None)
    if not n_steps or n_steps < 1:
        raise InputError("continuation_score: say how many tokens, by within= of the event or max_new_tokens")
    how = sampling or (_sampling(model, tokenizer, given) if given is not None else Sampling())
    texts = _Texts(model, tokenizer, how, batch, n_steps)
    steps = steps_of(given, tokenizer, texts.d_vocab, decay) if given is not None else None

    def says(tokens: Any, lengths: Any, numbers: Any) -> Any:
        if steps is not None:
            follower = _Follower(steps, len(tokens), device_of(model))
            drawn, scores = texts.draw(tokens, lengths, numbers, follower), follower.scores()
        else:
            drawn = texts.draw(tokens, lengths, numbers)
            prompts = [texts.text(row[:end]) for row, end in zip(tokens, lengths)]
            judged = event(prompts, [texts.text(row) for row in drawn.tolist()])  # type: ignore[operator]
            scores = torch.as_tensor(_arrays.doubles(judged, "score"))
        texts.remember(tokens, lengths, drawn, scores)
        return scores

    def explain(tokens: Sequence[int]) -> dict[str, Any]:
        found = texts.explain(tokens)
        return {**found, **(_where(given, found.get("continuation", "")) if given is not None else {})}

    name = f"{given.kind} {given.what!r} within {n_steps}" if given is not None else getattr(event, "__name__", "event")
    return score(batch=batch, numbers=n_steps, name=name, explain=explain)(says)
