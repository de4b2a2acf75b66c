"""Progress, results and exceptions of a call that is under way."""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any, Callable

from .interface import HooksStruct, KeepGoing, OnResult, Progress
from .library import check

_STOPPED = 4
_watchers: dict[int, tuple[Callable[..., Any], Watcher]] = {}  # of calls under way, by the functions that C calls
_other_hook: Callable[[Any], Any] = sys.unraisablehook


def _watcher_of(told: Any) -> Watcher | None:
    if told.object is not None:
        return _watchers.get(id(told.object), (None, None))[1]
    # From Python 3.13 on only the message says whose it is.
    for called, watcher in list(_watchers.values()):
        if repr(called) in (told.err_msg or ""):
            return watcher
    return None


def _unraisable(told: Any) -> Any:
    """A signal may be handled before the first line of a function that C calls: ctypes can only report what it raises there."""
    watcher = _watcher_of(told)
    if watcher is None:
        return _other_hook(told)
    watcher.keep(told.exc_value if told.exc_value is not None else told.exc_type())
    return None


def _listen() -> None:
    global _other_hook
    if sys.unraisablehook is not _unraisable:
        _other_hook, sys.unraisablehook = sys.unraisablehook, _unraisable


class Watcher:
    """Hooks of one call. An exception of a user's function stops the call, and is raised when that has returned."""

    def __init__(self, progress: Progress, on_result: Callable[[int, dict[str, Any]], Any] | None = None):
        self.error: BaseException | None = None
        self._progress, self._on_result = progress, on_result
        self._called: list[Callable[..., Any]] = []
        self._kept: list[Any] = []  # ctypes keeps no reference to them
        self.hooks = HooksStruct(ctypes.sizeof(HooksStruct), None, self.function(KeepGoing, self._keep_going),
                                 self.function(OnResult, self._result))

    def function(self, kind: Any, called: Callable[..., Any]) -> Any:
        """As C takes it, for as long as the call lasts."""
        self._called.append(called)
        self._kept.append(kind(called))
        return self._kept[-1]

    def run(self, call: Callable[[Watcher], int], result: Callable[[], Any]) -> Any:
        """What the call gives; raises what it or a user's function raised."""
        _listen()
        for called in self._called:
            _watchers[id(called)] = (called, self)
        try:
            status = call(self)
        finally:
            for called in self._called:
                _watchers.pop(id(called), None)
        return self.finish(status, result)

    def _keep_going(self, _user: Any, told: Any) -> int:
        try:
            if self.error is not None:
                return 0
            if self._progress is None:
                return 1
            p = told.contents
            answer = self._progress({"share": p.share, "done": p.done, "total": p.total,
                                     "seconds_left": p.seconds_left, "note": (p.note or b"").decode("utf-8", "replace")})
            return 0 if answer is False else 1
        except BaseException as error:  # KeyboardInterrupt too: it is raised here, between two bytecodes
            self.keep(error)
            return 0

    def _result(self, _user: Any, number: int, text: bytes) -> None:
        try:
            if self.error is None and self._on_result is not None:
                self._on_result(number, json.loads(text))
        except BaseException as error:
            self.keep(error)

    def keep(self, error: BaseException) -> None:
        """The first one counts."""
        if self.error is None:
            self.error = error

    def finish(self, status: int, partial: Callable[[], Any]) -> Any:
        """What the call gave; raises what it or a user's function raised."""
        if self.error is not None:
            error, self.error = self.error, None
            try:
                error.partial = partial() if status == 0 else None  # type: ignore[attr-defined]
            except AttributeError:  # an exception with slots
                pass
            raise error
        if status == _STOPPED:
            return None
        check(status)
        return partial()
