"""Events on sampled text, as scores for ``deeptail.split``: any causal language model of transformers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Callable, Optional, Union

import numpy as np
import torch
from torch import Tensor

from .. import _arrays
from ..errors import InputError
from ..events import Continuation
from ..scores import Batch, Score, score
from .automata import DECAY, ByteDfa, TokenSteps, steps_of, token_bytes
from .decoding import Sampling, decode_steps
from .heads import check_eval, device_of, rows_of
from .judges import Program

__all__ = ["continuation_score", "continuation_scores"]

JUST_BELOW = -1e-6  # of texts that came as near as can be
NEVER = -1e3
MOST_NEW, MOST_ANSWERS, MOST_PROMPTS = 64, 8, 4096  # that are remembered: of a batch, of a prompt, in all

# prompts, continuations -> one number each, at least 0 where the event happens.
Judge = Callable[[list[str], list[str]], Any]


class _Patterns:
    """The automata of some events side by side, on a device."""

    def __init__(self, steps: Sequence[TokenSteps], device: Any) -> None:
        first = np.cumsum([0, *(len(s.table) for s in steps)])

        def put(parts: Iterable[Any]) -> Tensor:
            return torch.as_tensor(np.concatenate(list(parts)), device=device)

        self.table = put(s.table + k for s, k in zip(steps, first))  # [n_states, d_vocab]
        self.chances = put(s.chance[s.table] for s in steps)  # [n_states, d_vocab]: of finishing after a token
        self.at_end = put(s.at_end for s in steps)
        self.accepted = put(np.arange(len(s.table)) == s.accepted for s in steps)
        self.starts = torch.as_tensor([s.start + int(k) for s, k in zip(steps, first)], device=device)


class _Follower:
    """How far each text of a batch is, and how near it came: the largest log of the chance to finish at a step."""

    def __init__(self, patterns: _Patterns, which: Any) -> None:
        self._patterns = patterns
        device = patterns.table.device
        self.state = patterns.starts[torch.as_tensor(which, device=device).long()]
        self.best = torch.full(self.state.shape, NEVER, dtype=torch.float64, device=device)

    def before(self, _: int, p: Tensor) -> None:
        near = (p @ self._patterns.chances.T).gather(1, self.state[:, None])[:, 0].double() / p.sum(dim=-1).double()
        self.best = torch.maximum(self.best, torch.log(near.clamp(min=1e-300)))

    def after(self, _: int, token: Tensor, ended: Tensor) -> bool:
        self.state = torch.where(ended, self.state, self._patterns.table[self.state, token])
        return bool(self._patterns.accepted[self.state].all())

    def scores(self) -> Tensor:
        said = self._patterns.at_end[self.state]
        return torch.where(said, torch.zeros_like(self.best), self.best.clamp(min=NEVER, max=JUST_BELOW))


class _Texts:
    """Continuations of one model, by the bytes of its tokens."""

    def __init__(self, model: Any, tokenizer: Any, sampling: Sampling) -> None:
        check_eval(model)
        self.model, self.sampling = model, sampling
        self._tokenizer = tokenizer
        self._bytes: Optional[list[bytes]] = None
        self._said: dict[tuple[int, ...], list[list[int]]] = {}  # by event and prompt

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

    def remember(self, tokens: Any, lengths: Any, which: Any, drawn: Tensor, scores: Tensor) -> None:
        """Continuations with which the event happened, some for each prompt."""
        for row in torch.nonzero(scores >= 0)[:MOST_NEW, 0].tolist():
            prompt = (int(which[row]), *(int(k) for k in tokens[row][: int(lengths[row])]))
            said = self._said.setdefault(prompt, [])
            said.append(drawn[row].tolist())
            del said[:-MOST_ANSWERS]
            if len(self._said) > MOST_PROMPTS:
                del self._said[next(iter(self._said))]

    def explain(self, tokens: Sequence[int], event: int) -> dict[str, Any]:
        """A trigger's prompt, and a continuation with which the event happened after it."""
        found: dict[str, Any] = {"prompt": self.text(tokens)}
        said = self._said.get((event, *tokens))
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
    if event.kind == "matches":
        begin, end = ByteDfa.of_regex(str(event.what)).find(said.encode())
        return {"match": [begin, end]} if begin >= 0 else {}
    if event.kind not in ("contains", "starts_with"):
        return {}
    text = str(event.what).encode()
    at = said.encode().find(text)
    return {"match": [at, at + len(text)]} if at >= 0 else {}


def _judged_by(event: Union[Continuation, Judge]) -> Optional[Judge]:
    """The function of texts, where the event is one or a program; of the others none."""
    if not isinstance(event, Continuation):
        return event
    if event.kind != "judge":
        return None
    program, least = Program(str(event.what)), float(event.threshold or 0.0)
    return lambda prompts, continuations: [number - least for number in program(prompts, continuations)]


def continuation_score(
    model: Any,
    tokenizer: Any,
    event: Union[Continuation, Judge],
    max_new_tokens: Optional[int] = None,
    *,
    sampling: Optional[Sampling] = None,
    batch: Batch = 256,
    decay: float = DECAY,
) -> Score:
    """An event on the sampled continuation, as a score for ``deeptail.split``.

    event: ``deeptail.contains``, ``starts_with``, ``matches``, ``tokens_any`` or ``judge``, with its temperature, top_k,
    top_p and stop; or a function of (prompts, continuations) that gives one number for each, at least 0 where the event
    happens.
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
    texts = _Texts(model, tokenizer, how)
    judged = _judged_by(event)

    if judged is None:
        assert given is not None
        return _pattern_score(texts, [given], tokenizer, n_steps, batch, decay)

    judge = judged

    def says(tokens: Any, lengths: Any, numbers: Any) -> Any:
        drawn = texts.draw(tokens, lengths, numbers)
        prompts = [texts.text(row[:end]) for row, end in zip(tokens, lengths)]
        found = judge(prompts, [texts.text(row) for row in drawn.tolist()])
        scores = torch.as_tensor(_arrays.doubles(found, "score"))
        texts.remember(tokens, lengths, np.zeros(len(tokens), int), drawn, scores)
        return scores

    name = f"{given.kind} {given.what!r} within {n_steps}" if given is not None else getattr(event, "__name__", "event")
    return score(batch=batch, numbers=n_steps, name=name, explain=texts.explain)(says)


def continuation_scores(
    model: Any,
    tokenizer: Any,
    events: Sequence[Continuation],
    *,
    batch: Batch = 256,
    decay: float = DECAY,
) -> Score:
    """Several events on sampled continuations, as a score for ``deeptail.split_many``, where all of them share batches:
    ``contains``, ``starts_with``, ``matches`` or ``tokens_any``, with one sampling and one ``within`` for all."""
    if not events:
        raise InputError("continuation_scores: no events")
    how = {_sampling(model, tokenizer, event) for event in events}
    n_steps = {event.within for event in events}
    if len(how) > 1 or len(n_steps) > 1 or None in n_steps:
        raise InputError("continuation_scores: the events must have one `within` and be sampled in one way")
    if any(event.kind == "judge" for event in events):
        raise InputError("continuation_scores: a judge is asked about one event; give it to continuation_score")
    return _pattern_score(_Texts(model, tokenizer, how.pop()), events, tokenizer, int(n_steps.pop() or 0), batch, decay)


def _pattern_score(
    texts: _Texts, events: Sequence[Continuation], tokenizer: Any, n_steps: int, batch: Batch, decay: float
) -> Score:
    steps = [steps_of(event, tokenizer, texts.d_vocab, decay) for event in events]
    patterns = _Patterns(steps, device_of(texts.model))

    def says(tokens: Any, lengths: Any, numbers: Any, which: Any) -> Any:
        about = np.zeros(len(tokens), np.int64) if which is None else which
        follower = _Follower(patterns, about)
        drawn, scores = texts.draw(tokens, lengths, numbers, follower), follower.scores()
        texts.remember(tokens, lengths, about, drawn, scores)
        return scores

    def explain(tokens: Sequence[int], event: int) -> dict[str, Any]:
        found = texts.explain(tokens, event)
        return {**found, **_where(events[event], found.get("continuation", ""))}

    name = f"{events[0].kind} {events[0].what!r} within {n_steps}" if len(events) == 1 else f"one of {len(events)} texts"
    return score(batch=batch, numbers=n_steps, name=name, explain=explain)(says)
