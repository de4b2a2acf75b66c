"""Questions and their answers: one event, many events, activations of your own."""

from __future__ import annotations

import dataclasses
import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar, Union

import numpy as np

from . import _native
from ._progress import Progress, watching
from .errors import EstimateWarning, Stopped
from .events import Event, TargetLike, event as as_event
from .laws import Law, law as as_law
from .models import Model, load
from .results import Estimate, EstimateList, Trigger, Triggers
from .tokenizers import decode_ids

__all__ = ["estimate", "estimate_many", "methods"]

log = logging.getLogger("deeptail")

LawLike = Union[str, Path, Law, Mapping[str, Any]]


def _setting(value: Any) -> Any:
    """Whole numbers without a point: counts are asked for as counts."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (float, np.floating)) and float(value).is_integer() and abs(float(value)) < 2**63:
        return int(value)
    if isinstance(value, np.generic):
        return value.item()
    return value


def settings_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were given, as the library takes them."""
    return {key: _setting(value) for key, value in given.items() if value is not None}


def _pieces(tokenizer: Any, trigger: Trigger) -> Trigger:
    if tokenizer is None or not trigger.tokens:
        return trigger
    pieces = tuple(decode_ids(tokenizer, [token]) for token in trigger.tokens)
    text = trigger.text or decode_ids(tokenizer, trigger.tokens)
    return dataclasses.replace(trigger, pieces=pieces, text=text)


def read(values: Mapping[str, Any], tokenizer: Any = None) -> Estimate:
    """The library's JSON as an Estimate, its triggers cut into tokens."""
    found = Estimate.from_dict(values)
    triggers = Triggers(_pieces(tokenizer, trigger) for trigger in found.triggers)
    return dataclasses.replace(found, triggers=triggers)


def tell(found: Estimate, stacklevel: int = 3) -> Estimate:
    """What an estimate warns of, once, as Python says such things."""
    log.info("%s: %r", found.question, found)
    for sentence in found.warnings:
        warnings.warn(sentence, EstimateWarning, stacklevel=stacklevel)
    return found


Answer = TypeVar("Answer")


def first_of(answers: Sequence[Optional[Answer]]) -> Answer:
    """The answer, if there is one."""
    if not answers or answers[0] is None:
        raise Stopped("the work was stopped before anything was known")
    return answers[0]


@contextmanager
def partial(convert: Callable[[Any], Any]) -> Iterator[None]:
    """Whatever interrupts a native call carries what is finished; here it becomes results."""
    try:
        yield
    except BaseException as error:
        done = getattr(error, "partial", None)
        if done is not None:
            error.partial = convert(done)  # type: ignore[attr-defined]
        raise


def _tokenizer(model: Optional[Model]) -> Any:
    return model.tokenizer if model is not None and model.has_tokenizer else None


def _ask(model: Any, law: LawLike, events: list[Event], settings: Mapping[str, Any], progress: Progress) -> list[Estimate]:
    loaded = load(model)
    tokenizer = _tokenizer(loaded)
    asked = [e.to_dict() for e in events]
    with watching(progress, loaded.name) as told, partial(lambda done: EstimateList(read(d, tokenizer) for d in done)):
        answers = _native.estimate(
            asked,
            model=loaded._native,
            law=as_law(law).native(loaded),
            settings=settings_of(settings),
            progress=told,
            on_result=lambda k, values: log.debug("%s of %s: p = %s", k + 1, len(asked), values.get("p")),
        )
    return [read(values, tokenizer) for values in answers]


def estimate(
    model: Any,
    law: LawLike,
    target: Union[Event, TargetLike, None] = None,
    *,
    event: Optional[Event] = None,
    method: Optional[str] = None,
    budget: Optional[float] = None,
    seed: int = 1,
    replicas: Optional[int] = None,
    device: Optional[str] = None,
    threads: int = 0,
    progress: Progress = None,
    **settings: Any,
) -> Estimate:
    """How likely is the event, when the input is drawn from the law?

    target: a token (id or text), several of which any will do, or an event such as ``contains(" bomb", within=40)``.
    method: tokensplit for tokens unless another is named (``methods()``). budget: forward passes' worth of work. Other
    settings are those of the method, as the command line has them, with _ for -.

    The same seed gives the same bits as ``deeptail estimate``. Ctrl-C ends it: the KeyboardInterrupt then carries what
    is finished as ``partial``, an Estimate or None.

    >>> import deeptail as dt
    >>> e = dt.estimate("dt-1l", "hex", "2", method="mc", budget=2**14, seed=3)
    >>> e.status, e.guarantee, e.cost.forward
    ('ok', 'unbiased', 16384)
    """
    given = as_event(event if event is not None else target)  # type: ignore[arg-type]
    all_settings = {"method": method, "budget": budget, "seed": seed, "replicas": replicas, "device": device, "threads": threads}
    with partial(lambda done: done[0] if done else None):
        found = first_of(_ask(model, law, [given], {**all_settings, **settings}, progress))
    return tell(found)


def estimate_many(
    model: Any,
    law: LawLike,
    targets: Iterable[Union[Event, TargetLike]],
    *,
    method: Optional[str] = None,
    budget: Optional[float] = None,
    seed: int = 1,
    replicas: Optional[int] = None,
    device: Optional[str] = None,
    threads: int = 0,
    progress: Progress = None,
    **settings: Any,
) -> EstimateList:
    """Many events of one model and law: the model is loaded once, activations are captured once; on a CUDA device up to
    256 targets run side by side. Each answer is the one that ``estimate`` gives. Settings are those of ``estimate``;
    Ctrl-C carries the finished ones as ``partial``, an EstimateList.

    >>> import deeptail as dt
    >>> es = dt.estimate_many("dt-1l", "hex", range(300, 303), method="qld", calibration=2**10)
    >>> [e.guarantee for e in es]
    ['model_based', 'model_based', 'model_based']
    """
    events = [as_event(given) for given in targets]
    if not events:
        return EstimateList()
    all_settings = {"method": method, "budget": budget, "seed": seed, "replicas": replicas, "device": device, "threads": threads}
    found = _ask(model, law, events, {**all_settings, **settings}, progress)
    for answer in found:
        tell(answer)
    return EstimateList(found)


def methods() -> dict[str, dict[str, Any]]:
    """The methods by name, best first, with their settings.

    >>> import deeptail as dt
    >>> "qld" in dt.methods()
    True
    """
    return {entry["name"]: entry for entry in _native.call("list", {"what": "methods"})}
