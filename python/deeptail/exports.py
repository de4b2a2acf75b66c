"""Results in the forms of others, and prompts from their files.

An inspect_ai eval log (JSON, version 2), the results file of lm-evaluation-harness, triggers as JSONL; prompts from
text, JSONL and parquet files.
"""

from __future__ import annotations

import datetime
import importlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Optional, Union

from . import _native
from .errors import InputError
from .results import Estimate, EstimateList

__all__ = ["read_prompts", "to_inspect", "to_lm_eval", "write_inspect", "write_lm_eval", "write_triggers"]

Estimates = Union[Estimate, EstimateList, Iterable[Estimate]]
PathLike = Union[str, Path]


def _list(estimates: Estimates) -> list[Estimate]:
    found = [estimates] if isinstance(estimates, Estimate) else list(estimates)
    if not found:
        raise InputError("there is no estimate to write")
    return found


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def _finite(value: Any) -> Any:
    """Infinities as text: JSON has none."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value


def stderr(e: Estimate) -> float:
    """The standard error of p: as the method says, or a quarter of the interval's width."""
    relative = e.diagnostics.get("relative_sd")
    return e.p * relative if relative is not None else (e.interval.high - e.interval.low) / 3.92


def _facts(e: Estimate) -> dict[str, Any]:
    names = ("log10_p", "status", "guarantee", "method", "model", "dist", "event", "seed", "certain_low")
    facts = {name: _finite(getattr(e, name)) for name in names}
    facts["interval"] = list(e.interval)
    facts["target"] = list(e.target)
    facts["warnings"] = list(e.warnings)
    facts["settings"] = dict(e.settings)
    facts["provenance"] = dict(vars(e.provenance))
    return facts


def _sample(number: int, e: Estimate) -> dict[str, Any]:
    said = [t.continuation if t.continuation is not None else t.text for t in e.triggers]
    low, high = e.interval
    return {
        "id": number,
        "epoch": 1,
        "input": e.question,
        "target": list(e.target_text) or e.event,
        "messages": [{"role": "user", "content": e.question}],
        "output": {
            "model": e.model,
            "choices": [{"message": {"role": "assistant", "content": text}, "stop_reason": "stop"} for text in said],
        },
        "scores": {
            "probability": {
                "value": e.p,
                "answer": f"{e.p:.4g}",
                "explanation": f"p = {e.p:.4g}, 95% interval {low:.4g} to {high:.4g}; {e.status}, {e.guarantee}",
                "metadata": _facts(e),
            }
        },
        "metadata": {"triggers": e.triggers.to_dict(), "positions": [dict(vars(p)) for p in e.positions]},
    }


def to_inspect(estimates: Estimates, *, task: str = "deeptail", created: Optional[str] = None) -> dict[str, Any]:
    """An eval log of inspect_ai: one sample for each estimate, its p as the score "probability".

    >>> import deeptail as dt
    >>> e = dt.estimate("dt-1l", "hex", 310, method="mc", budget=2**12)
    >>> log = dt.to_inspect(e)
    >>> log["status"], log["samples"][0]["scores"]["probability"]["value"] == e.p
    ('success', True)
    """
    found = _list(estimates)
    when = created or _now()
    mean = sum(e.p for e in found) / len(found)
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "created": when,
            "task": task,
            "task_id": task,
            "run_id": f"{task}-{when}",
            "dataset": {"name": found[0].dist or task, "samples": len(found), "sample_ids": list(range(1, len(found) + 1))},
            "model": found[0].model or "score",
            "config": {},
            "packages": {"deeptail": _native.version()},
            "scorers": [{"name": "probability", "metrics": [{"name": "mean"}]}],
        },
        "plan": {"name": "plan", "steps": [{"solver": e, "params": {}} for e in sorted({e.method or "split" for e in found})]},
        "results": {
            "total_samples": len(found),
            "completed_samples": len(found),
            "scores": [
                {"name": "probability", "scorer": "probability", "params": {}, "metrics": {"mean": {"name": "mean", "value": mean}}}
            ],
        },
        "stats": {"started_at": when, "completed_at": when, "model_usage": {}},
        "samples": [_sample(k, e) for k, e in enumerate(found, 1)],
    }


def write_inspect(estimates: Estimates, path: PathLike, *, task: str = "deeptail") -> Path:
    """The eval log as a .json file, which ``inspect view`` and ``inspect_ai.log.read_eval_log`` read."""
    return _write(path, json.dumps(to_inspect(estimates, task=task), ensure_ascii=False, indent=1) + "\n")


def _task_name(e: Estimate) -> str:
    words = f"{e.dist or 'law'}-{e.event}"
    return "deeptail_" + re.sub(r"[^A-Za-z0-9]+", "_", words).strip("_")


def to_lm_eval(estimates: Estimates) -> dict[str, Any]:
    """Results as lm-evaluation-harness writes them: one task for each estimate.

    >>> import deeptail as dt
    >>> e = dt.estimate("dt-1l", "hex", 310, method="mc", budget=2**12)
    >>> dt.to_lm_eval(e)["results"]["deeptail_hex_says_310"]["probability,none"] == e.p
    True
    """
    found: dict[str, Estimate] = {}
    for e in _list(estimates):
        name, k = _task_name(e), 2
        while name in found:
            name, k = f"{_task_name(e)}_{k}", k + 1
        found[name] = e
    first = next(iter(found.values()))
    results = {
        name: {
            "alias": name,
            "probability,none": e.p,
            "probability_stderr,none": stderr(e),
            "low,none": e.interval.low,
            "high,none": e.interval.high,
            "log10_probability,none": _finite(e.log10_p),
        }
        for name, e in found.items()
    }
    return {
        "results": results,
        "group_subtasks": {name: [] for name in found},
        "configs": {name: {"task": name, "output_type": "probability", "metadata": _facts(e)} for name, e in found.items()},
        "versions": {name: _native.version() for name in found},
        "n-shot": {name: 0 for name in found},
        "higher_is_better": {name: {"probability": False} for name in found},
        "n-samples": {name: {"original": e.cost.forward, "effective": e.cost.forward} for name, e in found.items()},
        "config": {"model": "deeptail", "model_args": f"pretrained={first.model}", "random_seed": first.seed},
        "date": datetime.datetime.now(datetime.timezone.utc).timestamp(),
        "model_name": first.model,
    }


def write_lm_eval(estimates: Estimates, path: PathLike) -> Path:
    """The same as a file."""
    return _write(path, json.dumps(to_lm_eval(estimates), ensure_ascii=False, indent=2) + "\n")


def write_triggers(estimates: Estimates, path: PathLike) -> Path:
    """All triggers, one JSON object a line, each with its question and p."""
    lines = []
    for e in _list(estimates):
        for trigger in e.triggers.to_dict():
            row = {"model": e.model, "dist": e.dist, "event": e.event, "p": e.p, **trigger}
            lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return _write(path, "".join(lines))


def _write(path: PathLike, text: str) -> Path:
    Path(path).write_text(text, encoding="utf-8")
    return Path(path)


def _rows(path: Path) -> Iterator[Any]:
    if path.suffix == ".parquet":
        try:
            parquet: Any = importlib.import_module("pyarrow.parquet")
        except ImportError as error:
            raise InputError(f"{path}: parquet files need pyarrow: pip install pyarrow") from error
        yield from parquet.read_table(path).to_pylist()
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if path.suffix not in (".jsonl", ".ndjson"):
            yield line
        elif line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise InputError(f"{path}: line {number}: no JSON: {error}") from None


def _prompt(row: Any, column: Optional[str], where: str) -> Optional[str]:
    if isinstance(row, str):
        return row or None
    if isinstance(row, Mapping):
        names = [column] if column else ["prompt", "text", "input", "question"]
        for name in names:
            if isinstance(row.get(name), str):
                return str(row[name])
        raise InputError(f"{where}: no text in {' or '.join(map(repr, names))}; it has {', '.join(map(repr, row))}")
    raise InputError(f"{where}: expected a text or an object, found {type(row).__name__}")


def read_prompts(path: PathLike, *, column: Optional[str] = None) -> list[str]:
    """Prompts of a file: JSONL (texts, or objects with "prompt", "text", "input" or "question"), parquet (pyarrow), or
    plain text with one a line. ``Law.pool`` makes a law of them.

    >>> import deeptail as dt, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "prompts.jsonl"
    >>> _ = file.write_text('{"prompt": "Once upon"}\\n"The end"\\n')
    >>> dt.read_prompts(file)
    ['Once upon', 'The end']
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{path}: no such file")
    found = (_prompt(row, column, f"{path}: row {k}") for k, row in enumerate(_rows(file), 1))
    prompts = [text for text in found if text is not None]
    if not prompts:
        raise InputError(f"{path}: no prompts")
    return prompts
