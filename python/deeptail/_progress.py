"""How far a long call is: by tqdm where it is installed and someone watches, or told to a function of the user's."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Callable, Optional, Union

from .errors import InputError

# None: tqdm where it is installed and someone watches; True: in any case; False: nothing; a function(done, total):
# that one, where returning False ends the work with what is finished.
Progress = Union[None, bool, Callable[[int, int], Any]]
Told = Callable[[Mapping[str, Any]], Any]


def _someone_watches() -> bool:
    return "ipykernel" in sys.modules or bool(getattr(sys.stderr, "isatty", lambda: False)())


def _tqdm() -> Any:
    try:
        return importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return None


class _Bar:
    """A tqdm bar that stands for the whole as 1000 parts: its units differ from method to method."""

    def __init__(self, tqdm: Any, what: str) -> None:
        self._bar = tqdm(total=1000, desc=what, bar_format="{l_bar}{bar}| {elapsed}{postfix}", leave=False)

    def __call__(self, told: Mapping[str, Any]) -> None:
        at = int(1000 * min(1.0, float(told["share"])))
        self._bar.set_postfix_str(str(told.get("note") or ""), refresh=False)
        self._bar.update(max(0, at - self._bar.n))

    def close(self) -> None:
        self._bar.close()


@contextmanager
def watching(progress: Progress, what: str) -> Iterator[Optional[Told]]:
    """What a native call is given as its progress."""
    if callable(progress):
        said = progress
        yield lambda told: said(int(told["done"]), int(told["total"]))
        return
    tqdm = _tqdm() if progress or (progress is None and _someone_watches()) else None
    if tqdm is None:
        if progress:
            raise InputError("progress=True needs tqdm: pip install tqdm")
        yield None
        return
    bar = _Bar(tqdm, what)
    try:
        yield bar
    finally:
        bar.close()
