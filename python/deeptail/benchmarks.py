"""Ground truth, benchmark runs, reports, and the library's test of itself."""

from __future__ import annotations

import csv
import io
import logging
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from . import _frames, _native
from ._progress import Progress, watching
from .errors import InputError
from .models import Model
from .results import Estimate, EstimateList

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas
    import polars

__all__ = ["Run", "Selftest", "Table", "Truth", "bench", "read_run", "read_truth", "report", "selftest", "truth"]

log = logging.getLogger("deeptail")
PathLike = Union[str, Path]


@dataclass(frozen=True)
class Truth:
    """How often a model said each token, over so many inputs."""

    model: str
    dist: str
    samples: int
    counts: Mapping[int, int] = field(repr=False)
    finished: bool = True

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Truth:
        counts = {int(token): int(n) for token, n in values["counts"].items()}
        samples = int(values.get("samples", sum(counts.values())))
        return cls(values.get("model", ""), values.get("dist", ""), samples, counts, values.get("outcome") != "stopped")

    def q(self, tokens: Union[int, Iterable[int]]) -> Any:
        """The share of inputs after which a token was said; an array for several tokens."""
        if isinstance(tokens, (int, np.integer)):
            return self.counts.get(int(tokens), 0) / self.samples
        return np.array([self.counts.get(int(t), 0) / self.samples for t in tokens])

    def band(self, low: float, high: float) -> npt.NDArray[np.int64]:
        """The tokens with q from low to high, most frequent first."""
        found = [(n, -t) for t, n in self.counts.items() if low <= n / self.samples <= high]
        return np.array([-t for _, t in sorted(found, reverse=True)], dtype=np.int64)


def truth(
    model: Any,
    law: Any,
    samples: float = 2**20,
    *,
    seed: int = 1,
    out: Optional[PathLike] = None,
    device: str = "cpu",
    threads: int = 0,
    progress: Progress = None,
) -> Truth:
    """Counts what the model says, over so many inputs. With ``out`` into a file, which the same call continues.

    >>> import deeptail as dt
    >>> dt.truth("dt-1l", "hex", 2**12).samples
    4096
    """
    where = {"model": model.info["folder"] if isinstance(model, Model) else str(model), "dist": _law_name(law)}
    with tempfile.TemporaryDirectory(prefix="deeptail-") as folder, watching(progress, "truth") as told:
        path = str(out) if out is not None else str(Path(folder) / "truth.json")
        if where["dist"].lstrip().startswith("{"):
            file = Path(folder) / "law.json"
            file.write_text(where["dist"], encoding="utf-8")
            where["dist"] = str(file)
        given = {**where, "samples": int(samples), "seed": seed, "out": path, "device": device, "threads": threads}
        return Truth.from_dict(_native.call("truth", given, progress=told))


def _law_name(law: Any) -> str:
    return str(law._source) if hasattr(law, "_source") else str(law)


def read_truth(name: PathLike) -> Truth:
    """Counts that ship ("dt-1l-hex"), or a file.

    >>> import deeptail as dt
    >>> truth = dt.read_truth("dt-1l-hex")
    >>> truth.samples == 2**32, truth.counts[395], len(truth.band(1e-7, 1e-6))
    (True, 1609, 56)
    """
    return Truth.from_dict(_native.call("truth_read", {"path": str(name)}))


@dataclass(frozen=True)
class Table:
    """A table of a report: rows of plain values by column."""

    name: str
    rows: tuple[Mapping[str, Any], ...]

    @classmethod
    def from_csv(cls, name: str, text: str) -> Table:
        return cls(name, tuple({k: _value(v) for k, v in row.items()} for row in csv.DictReader(io.StringIO(text))))

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> list[dict[str, Any]]:
        return [dict(row) for row in self.rows]

    def to_pandas(self) -> pandas.DataFrame:
        return _frames.to_pandas(self.rows)

    def to_polars(self) -> polars.DataFrame:
        return _frames.to_polars(self.rows)

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {len(self.rows)} rows)"


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except (TypeError, ValueError):
            pass
    return text


@dataclass(frozen=True)
class Run:
    """A benchmark run in its folder."""

    folder: Path
    outcome: str = "finished"
    done: int = 0
    total: int = 0

    @property
    def items(self) -> list[dict[str, Any]]:
        """One object for each estimate, as the folder holds them."""
        return list(_native.call("run_read", {"folder": str(self.folder)})["items"])

    @property
    def estimates(self) -> EstimateList:
        """The same as estimates."""
        return EstimateList(Estimate.from_dict({**item["estimate"], "target_text": [item.get("target_text") or ""]}) for item in self.items)

    @property
    def header(self) -> dict[str, Any]:
        return dict(_native.call("run_read", {"folder": str(self.folder)})["header"])

    def to_pandas(self) -> pandas.DataFrame:
        return _frames.to_pandas([_flat(item) for item in self.items])

    def to_polars(self) -> polars.DataFrame:
        return _frames.to_polars([_flat(item) for item in self.items])

    def report(self, out: PathLike) -> Path:
        """One page that works offline."""
        return report([self], out)

    def tables(self) -> dict[str, Table]:
        """The report's tables by name: scores, loss-benchmarking, ..."""
        with tempfile.TemporaryDirectory(prefix="deeptail-") as folder:
            given = {"runs": [str(self.folder)], "out": str(Path(folder) / "report.html"), "tables": str(Path(folder) / "tables")}
            found = _native.call("report", given)["tables"]
        return {Path(name).stem: Table.from_csv(Path(name).stem, text) for name, text in found.items() if name.endswith(".csv")}

    def table(self, name: str) -> Table:
        found = self.tables()
        if name not in found:
            raise InputError(f"the report has no table {name!r}: {', '.join(found)}")
        return found[name]


def _flat(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as one row: its estimate's figures, and the counted truth where it is known."""
    row = {"item": item["item"], "variant": item["variant"], "replica": item["replica"]}
    row.update(Estimate.from_dict(item["estimate"]).row())
    row["text"] = item.get("target_text")
    held = item.get("truth")
    row["truth"] = held["count"] / held["samples"] if held else None
    return row


def bench(
    suite: PathLike,
    out: PathLike,
    *,
    only: Sequence[str] = (),
    shard: int = 1,
    shards: int = 1,
    device: str = "cpu",
    threads: int = 0,
    progress: Progress = None,
) -> Run:
    """Runs a suite into a folder; the same call continues after a crash or Ctrl-C, and leaves a finished run alone."""
    given = {"suite": str(suite), "out": str(out), "only": list(only), "shard": shard, "shards": shards, "device": device, "threads": threads}
    with watching(progress, Path(suite).stem) as told:
        found = _native.call("bench", given, progress=told)
    log.info("%s: %s, %s of %s", out, found["outcome"], found["done"], found["total"])
    return Run(Path(out), found["outcome"], int(found["done"]), int(found["total"]))


def read_run(folder: PathLike) -> Run:
    """A run that is there already."""
    found = _native.call("run_read", {"folder": str(folder)})
    return Run(Path(folder), done=len(found["items"]), total=len(found["items"]))


def report(runs: Sequence[Union[Run, PathLike]], out: PathLike, *, truth: PathLike = "") -> Path:
    """One page of one or several runs, which works offline."""
    folders = [str(run.folder) if isinstance(run, Run) else str(run) for run in runs]
    _native.call("report", {"runs": folders, "out": str(out), "tables": "", "truth": str(truth)})
    return Path(out)


@dataclass(frozen=True)
class Selftest:
    """Splitting on events with known probabilities."""

    passed: bool
    events: tuple[Mapping[str, Any], ...] = field(repr=False)


def selftest(*, seed: int = 1, progress: Progress = None) -> Selftest:
    """Splitting on events with known probabilities: does this machine give what it should?"""
    with watching(progress, "selftest") as told:
        found = _native.call("selftest", {"seed": seed}, progress=told)
    return Selftest(bool(found["passed"]), tuple(found["events"]))
