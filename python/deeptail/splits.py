"""Splitting with a score of your own: any model, any event, any state. deeptail brings levels, moves, replicas and
intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional, TypeVar, Union

import numpy as np

from . import _native
from ._progress import Progress, watching
from .errors import InputError
from .estimates import LawLike, _tokenizer, first_of, partial, read, settings_of, tell
from .laws import law as as_law
from .models import load
from .results import Estimate, EstimateList
from .score_checks import ScoreCheck
from .scores import Batch, Score, ScoreFunction, as_score, check_score

__all__ = ["split", "split_many", "split_state"]

State = TypeVar("State")


def _with_check(values: dict[str, Any], check: Optional[ScoreCheck]) -> dict[str, Any]:
    if check is not None and check.depends_on_batch:
        values = {**values, "warnings": [*values.get("warnings", ()), check.sentence()]}
        if values.get("guarantee") == "unbiased":
            values["guarantee"] = "consistent"
    return values


class _Run:
    """What split and split_many have in common: one call of the library, its answers as estimates."""

    def __init__(self, law: LawLike, score: Union[Score, ScoreFunction], batch: Optional[Batch], model: Any, tokenizer: Any) -> None:
        self.made = as_score(score, batch)
        self.owner = load(model) if model is not None else None
        self.source = as_law(law)
        self.text_of = tokenizer if tokenizer is not None else _tokenizer(self.owner) or self.source.tokenizer
        self.check: Optional[ScoreCheck] = None

    def checked(self, seed: int, events: int = 1) -> None:
        self.check = check_score(self.made, self.source, seed=seed, events=events, model=self.owner)
        self.check.refuse()

    def finish(self, values: dict[str, Any], event: int = 0) -> Estimate:
        return read(_explained(_with_check(values, self.check), self.made, event), self.text_of)

    def run(self, score: ScoreFunction, exact: Optional[ScoreFunction], told: Any, **given: Any) -> Any:
        return _native.split(
            self.source.native(self.owner),
            score,
            exact=exact,
            batch=self.made.batch,
            smaller=self.made.smaller,
            numbers=self.made.numbers,
            model=None if self.owner is None else self.owner._native,
            progress=told,
            **given,
        )


def split(
    law: LawLike,
    score: Union[Score, ScoreFunction],
    *,
    budget: Optional[float] = None,
    replicas: Optional[int] = None,
    seed: int = 1,
    batch: Optional[Batch] = None,
    exact: Union[None, Score, ScoreFunction] = None,
    near: float = 0.0,
    check: bool = True,
    event: Optional[str] = None,
    model: Any = None,
    tokenizer: Any = None,
    progress: Progress = None,
    **settings: Any,
) -> Estimate:
    """How likely is score(input) >= 0, when the input is drawn from the law?

    score: a function of a batch, int32 [batch, length], that gives one number for each row; ``deeptail.score`` says what
    else it may take. All populations and replicas share its batches, which have one shape always. An exception that it
    raises comes out as itself. budget: scored inputs. exact: a second, slower score that decides where the first is
    within ``near`` of a level. check: a batch is scored three more times beforehand; a score that is not deterministic
    is refused, and one that depends on the batch is told in the warnings, with the guarantee "consistent".
    model or tokenizer: what gives triggers their text. Other settings: those of tokensplit.

    >>> import deeptail as dt
    >>> law = dt.Law.positions([[0, 1]] * 20, d_vocab=2, name="coins")
    >>> r = dt.split(law, lambda tokens: tokens.sum(axis=1) - 19.5, budget=6e4, seed=1)
    >>> r.guarantee, 0.5 < r.p / 2**-20 < 2
    ('unbiased', True)
    """
    asked = _Run(law, score, batch, model, tokenizer)
    made = asked.made
    slow = None if exact is None else as_score(exact, made.batch)
    if check:
        asked.checked(seed)
    given = settings_of({"budget": budget, "replicas": replicas, "seed": seed, "event": event or made.name, **settings})
    with watching(progress, made.name) as told, partial(asked.finish):
        values = asked.run(made, slow, told, near=near, settings=given)
    return tell(asked.finish(first_of([values])))


def _about(made: Score) -> ScoreFunction:
    """As the library calls it: numbers only where there are any, then which event."""
    return lambda tokens, lengths, *more: made(tokens, lengths, more[0] if made.numbers else None, more[-1])


def split_many(
    law: LawLike,
    score: Union[Score, ScoreFunction],
    events: Sequence[str],
    *,
    budget: Optional[float] = None,
    replicas: Optional[int] = None,
    seed: int = 1,
    batch: Optional[Batch] = None,
    exact: Union[None, Score, ScoreFunction] = None,
    near: float = 0.0,
    check: bool = True,
    model: Any = None,
    tokenizer: Any = None,
    progress: Progress = None,
    **settings: Any,
) -> EstimateList:
    """Several events about inputs of one law, that share batches: a device is busy even where one event alone would leave
    batches half empty. events: their names. The score takes ``which`` (int32 [batch]): the number of the event that each
    row is asked about. budget: scored inputs of each event; everything else as of ``split``, and so is each answer. Ctrl-C
    carries what is known as ``partial``, an EstimateList.

    >>> import deeptail as dt, numpy as np
    >>> law = dt.Law.positions([[0, 1]] * 20, d_vocab=2, name="coins")
    >>> least = np.array([17.0, 19.0])
    >>> rs = dt.split_many(law, lambda tokens, which: tokens.sum(axis=1) - least[which], ["17 heads", "19 heads"], budget=2e4)
    >>> [r.event for r in rs], rs[0].p > rs[1].p > 1e-6
    (['17 heads', '19 heads'], True)
    """
    asked, names = _Run(law, score, batch, model, tokenizer), [str(name) for name in events]
    made = asked.made
    if "which" not in made.wants:
        raise InputError("split_many: the score needs a parameter `which`, the event that each row is asked about")
    slow = None if exact is None else _about(as_score(exact, made.batch))
    if not names:
        return EstimateList()
    if check:
        asked.checked(seed, len(names))
    given = settings_of({"budget": budget, "replicas": replicas, "seed": seed, **settings})

    def finish(answers: Sequence[Optional[dict[str, Any]]]) -> EstimateList:
        return EstimateList(asked.finish(values, k) for k, values in enumerate(answers) if values is not None)

    with watching(progress, made.name) as told, partial(finish):
        found = finish(asked.run(_about(made), slow, told, near=near, settings=given, events=names))
    for answer in found:
        tell(answer)
    return found


def _explained(values: dict[str, Any], made: Score, event: int) -> dict[str, Any]:
    """Triggers of drawn answers, with what the score remembers of them."""
    triggers = values.get("triggers") or []
    if made.explain is None or not triggers:
        return values
    return {**values, "triggers": [{**t, **made.explain(t["tokens"], event)} for t in triggers]}


def split_state(
    sample: Callable[[int, np.random.Generator], Sequence[State]],
    mutate: Callable[[Sequence[State], np.random.Generator], Sequence[State]],
    score: Callable[[Sequence[State]], Any],
    *,
    budget: Optional[float] = None,
    replicas: Optional[int] = None,
    seed: int = 1,
    event: Optional[str] = None,
    progress: Progress = None,
    **settings: Any,
) -> Estimate:
    """Splitting on states of your own, any Python objects.

    sample(n, rng): n independent states. mutate(states, rng): one proposal for each, by a move that leaves the law as it
    is (reversible; redrawing a part of the state is one). score(states): one number each, at least 0 where the event
    happens. States are never changed by deeptail; a proposal must be a new object.

    >>> import deeptail as dt, numpy as np
    >>> def sample(n, rng):
    ...     return list(rng.random((n, 20)) < 0.5)
    >>> def mutate(states, rng):
    ...     return [np.where(rng.random(20) < 0.1, rng.random(20) < 0.5, s) for s in states]
    >>> r = dt.split_state(sample, mutate, lambda states: [s.sum() - 19.5 for s in states], budget=4e4, seed=2)
    >>> 0.3 < r.p / 2**-20 < 3
    True
    """
    for name, function in (("sample", sample), ("mutate", mutate), ("score", score)):
        if not callable(function):
            raise InputError(f"{name}: expected a function, found {type(function).__name__}")
    given = settings_of({"budget": budget, "replicas": replicas, "seed": seed, "event": event, **settings})
    with watching(progress, "split_state") as told, partial(read):
        values = _native.split_state(sample, mutate, score, settings=given, progress=told)
    return tell(read(first_of([values])))
