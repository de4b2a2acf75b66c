"""deeptail: how likely is it that this language model says that?

>>> import deeptail as dt
>>> e = dt.estimate("dt-1l", "hex", "2", method="mc", budget=2**12)
>>> e.status
'ok'

docs/python.md has an example for everything; the words are those of the command line.
"""

from __future__ import annotations

import logging as _logging
from typing import TYPE_CHECKING, Any

from . import _native
from .all_tokens import AllTokens, Rest, estimate_all
from .benchmarks import Run, Selftest, Table, Truth, bench, read_run, read_truth, report, selftest, truth
from .choices import Choices, frequencies, tokens, uniform
from .clouds import Activations, Head, activations, ga_amls, gld, qld
from .errors import DeviceError, EstimateWarning, InputError, Stopped
from .estimates import estimate, estimate_many, methods
from .events import Continuation, Event, Target, contains, judge, matches, starts_with, target, tokens_any
from .exports import read_prompts, to_inspect, to_lm_eval, write_inspect, write_lm_eval, write_triggers
from .laws import Law, law, laws
from .losses import choose_epsilon, itakura_saito, log_squared, profiles, spb, spb_alpha, spb_loss, squared
from .models import Model, Text, Tokenizer, fetch, load, models
from .results import Cost, Estimate, EstimateList, Interval, Level, Position, Provenance, Trigger, Triggers
from .score_checks import ScoreCheck
from .scores import Score, check_score, score
from .splits import split, split_many, split_state
from .tokenizers import ids

if TYPE_CHECKING:
    from . import torch as torch

_logging.getLogger("deeptail").addHandler(_logging.NullHandler())

__version__ = _native.version()

__all__ = [
    "Activations",
    "AllTokens",
    "Choices",
    "Continuation",
    "Cost",
    "DeviceError",
    "Estimate",
    "EstimateList",
    "EstimateWarning",
    "Event",
    "Head",
    "InputError",
    "Interval",
    "Law",
    "Level",
    "Model",
    "Position",
    "Provenance",
    "Rest",
    "Run",
    "Score",
    "ScoreCheck",
    "Selftest",
    "Stopped",
    "Table",
    "Target",
    "Text",
    "Tokenizer",
    "Trigger",
    "Triggers",
    "Truth",
    "activations",
    "bench",
    "check_score",
    "choose_epsilon",
    "contains",
    "estimate",
    "estimate_all",
    "estimate_many",
    "fetch",
    "frequencies",
    "ga_amls",
    "gld",
    "ids",
    "itakura_saito",
    "judge",
    "law",
    "laws",
    "load",
    "log_squared",
    "matches",
    "methods",
    "models",
    "profiles",
    "qld",
    "read_prompts",
    "read_run",
    "read_truth",
    "report",
    "score",
    "selftest",
    "spb",
    "spb_alpha",
    "spb_loss",
    "split",
    "split_many",
    "split_state",
    "squared",
    "starts_with",
    "target",
    "to_inspect",
    "to_lm_eval",
    "tokens",
    "tokens_any",
    "torch",
    "truth",
    "uniform",
    "write_inspect",
    "write_lm_eval",
    "write_triggers",
]


def __getattr__(name: str) -> Any:
    """``deeptail.torch`` is imported when it is asked for: torch takes seconds."""
    if name == "torch":
        import importlib

        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module 'deeptail' has no attribute {name!r}")
