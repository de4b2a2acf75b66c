"""Splitting with a score of your own: any model, any event, any state.

A score is a function of a batch of inputs, int32 [n, length], that gives n numbers: at least 0 where the event
happens, larger nearer to it. It must be a function of each row alone. deeptail brings levels, moves, replicas and
intervals.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, TypeVar, Union, overload

import numpy as np

from . import _native
from ._progress import Progress, watching
from .errors import InputError
from .estimates import LawLike, _tokenizer, first_of, partial, read, settings_of, tell
from .laws import law as as_law
from .models import load
from .results import Estimate
from .score_checks import ScoreCheck, check_rows

__all__ = ["Score", "check_score", "score", "split", "split_state"]

BATCH = 1024
ScoreFunction = Callable[..., Any]
Explain = Callable[[Sequence[int]], Mapping[str, Any]]
State = TypeVar("State")


@dataclass(frozen=True)
class Score:
    """A score with the size of its batches; ``deeptail.score`` makes one."""

    function: ScoreFunction = field(repr=False)
    batch: int = BATCH
    numbers: int = 0  # random numbers beside each input, for answers that are drawn
    name: str = "score"
    wants: tuple[str, ...] = ()  # of lengths and numbers
    explain: Optional[Explain] = field(default=None, repr=False)  # of a trigger's tokens: prompt, continuation, match

    def __call__(self, tokens: Any, lengths: Any = None, numbers: Any = None) -> Any:
        given = {"lengths": lengths, "numbers": numbers}
        return self.function(tokens, **{name: given[name] for name in self.wants})


def _wants(function: ScoreFunction, numbers: int) -> tuple[str, ...]:
    try:
        names = set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = set()
    if numbers and "numbers" not in names:
        raise InputError(f"a score with numbers={numbers} needs a parameter `numbers`")
    return tuple(name for name in ("lengths", "numbers") if name in names)


@overload
def score(function: ScoreFunction) -> Score: ...
@overload
def score(
    function: None = None, *, batch: int = BATCH, numbers: int = 0, name: Optional[str] = None, explain: Optional[Explain] = None
) -> Callable[[ScoreFunction], Score]: ...
def score(
    function: Optional[ScoreFunction] = None,
    *,
    batch: int = BATCH,
    numbers: int = 0,
    name: Optional[str] = None,
    explain: Optional[Explain] = None,
) -> Union[Score, Callable[[ScoreFunction], Score]]:
    """Makes a score of a function of a batch: int32 [batch, length], one shape always, to batch numbers.

    The function may take ``lengths`` (uint32 [batch]) as well, and with numbers=k also ``numbers`` (float64 [batch, k]),
    uniform numbers from 0 up to 1 that an answer is drawn with.

    >>> import deeptail as dt
    >>> @dt.score(batch=256)
    ... def many_zeros(tokens):
    ...     return (tokens == 16).sum(axis=1) - 12.0
    >>> many_zeros.batch, many_zeros.name
    (256, 'many_zeros')
    """
    if batch < 1 or numbers < 0:
        raise InputError("a score needs batch of at least 1 and numbers of at least 0")

    def make(given: ScoreFunction) -> Score:
        named = str(name or getattr(given, "__name__", "score"))
        return Score(given, int(batch), int(numbers), named, _wants(given, numbers), explain)

    return make if function is None else make(function)


def _as_score(given: Union[Score, ScoreFunction], batch: Optional[int]) -> Score:
    if not callable(given):
        raise InputError(f"score: expected a function of a batch, found {type(given).__name__}")
    made = given if isinstance(given, Score) else score(given)
    return made if batch is None else Score(made.function, int(batch), made.numbers, made.name, made.wants, made.explain)


def _numbers_of(made: Score, n: int, seed: int) -> Any:
    return np.random.default_rng(seed).random((n, made.numbers))


def check_score(given: Union[Score, ScoreFunction], law: LawLike, *, batch: Optional[int] = None, seed: int = 1, model: Any = None) -> ScoreCheck:
    """Is the score deterministic, the same alone and in a batch, free of NaN and of ties; how fast is it?

    >>> import deeptail as dt
    >>> check = dt.check_score(lambda tokens: (tokens == 16).mean(axis=1) - 0.5, "hex")
    >>> check.deterministic, check.depends_on_batch, check.nans, check.ok
    (True, False, 0, True)
    """
    made = _as_score(given, batch)
    native = as_law(law).native(load(model) if model is not None else None)
    tokens, lengths = _native.sample(native, made.batch, seed=seed)
    numbers = _numbers_of(made, made.batch, seed)
    return check_rows(lambda t, l, u: made(t, l, u), np.asarray(tokens), np.asarray(lengths), numbers)


def _with_check(values: dict[str, Any], check: Optional[ScoreCheck]) -> dict[str, Any]:
    if check is not None and check.depends_on_batch:
        values = {**values, "warnings": [*values.get("warnings", ()), check.sentence()]}
        if values.get("guarantee") == "unbiased":
            values["guarantee"] = "consistent"
    return values


def split(
    law: LawLike,
    score: Union[Score, ScoreFunction],
    *,
    budget: Optional[float] = None,
    replicas: Optional[int] = None,
    seed: int = 1,
    batch: Optional[int] = None,
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
    made = _as_score(score, batch)
    slow = None if exact is None else _as_score(exact, made.batch)
    owner = load(model) if model is not None else None
    source = as_law(law)
    text_of = tokenizer if tokenizer is not None else _tokenizer(owner) or source.tokenizer
    found_check = check_score(made, source, seed=seed, model=owner) if check else None
    if found_check is not None:
        found_check.refuse()
    given = settings_of({"budget": budget, "replicas": replicas, "seed": seed, "event": event or made.name, **settings})
    more: dict[str, Any] = {"numbers": made.numbers} if made.numbers else {}

    def finish(values: dict[str, Any]) -> Estimate:
        return read(_explained(_with_check(values, found_check), made), text_of)

    with watching(progress, made.name) as told, partial(finish):
        values = _native.split(
            source.native(owner),
            made,
            exact=slow,
            near=near,
            batch=made.batch,
            model=None if owner is None else owner._native,
            settings=given,
            progress=told,
            **more,
        )
    return tell(finish(first_of([values])))


def _explained(values: dict[str, Any], made: Score) -> dict[str, Any]:
    """Triggers of drawn answers, with what the score remembers of them."""
    triggers = values.get("triggers") or []
    if made.explain is None or not triggers:
        return values
    return {**values, "triggers": [{**t, **made.explain(t["tokens"])} for t in triggers]}


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
