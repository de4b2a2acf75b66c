"""libdeeptail.so by ctypes: handles, JSON and arrays. The public interface is in the other modules."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

Progress = Optional[Callable[[Mapping[str, Any]], Any]]
Array = npt.NDArray[Any]

_ABI = 1


class InputError(ValueError):
    """A mistake of the caller: file, setting, data. Its text is one sentence."""


class DeviceError(InputError, RuntimeError):
    """A device that is not there, or too small."""


class _Text(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class _ProgressStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("share", c_double), ("done", c_uint64), ("total", c_uint64),
                ("seconds_left", c_double), ("note", c_char_p)]


_KeepGoing = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(_ProgressStruct))
_OnResult = ctypes.CFUNCTYPE(None, c_void_p, c_size_t, c_char_p)


class _Hooks(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("user", c_void_p), ("keep_going", _KeepGoing), ("on_result", _OnResult)]


class _HeadParts(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("d_model", c_size_t), ("d_vocab", c_size_t), ("w_u", c_void_p), ("b_u", c_void_p),
                ("ln_w", c_void_p), ("ln_b", c_void_p), ("norm", c_char_p), ("eps", c_double)]


class _Question(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("model", c_void_p), ("law", c_void_p), ("events", c_char_p), ("head", c_void_p),
                ("activations", c_void_p), ("n_activations", c_size_t), ("d_activations", c_size_t),
                ("last_tokens", c_void_p)]


class _BatchStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("n", c_size_t), ("length", c_size_t), ("n_numbers", c_size_t),
                ("tokens", POINTER(c_int32)), ("lengths", POINTER(c_uint32)), ("numbers", POINTER(c_double)),
                ("which", POINTER(c_uint32))]


_Score = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(_BatchStruct), POINTER(c_double))


class _Scores(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("user", c_void_p), ("score", _Score), ("exact", _Score), ("near", c_double),
                ("batch", c_size_t), ("numbers", c_size_t), ("smaller", POINTER(c_size_t)), ("n_smaller", c_size_t)]


_SampleStates = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_size_t, POINTER(c_int64))
_MutateStates = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_int64), c_size_t, c_uint64, POINTER(c_int64))
_ScoreStates = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_int64), c_size_t, POINTER(c_double))
_DropStates = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_int64), c_size_t)


class _States(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("user", c_void_p), ("sample", _SampleStates), ("mutate", _MutateStates),
                ("score", _ScoreStates), ("drop", _DropStates)]


_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "dt_version": (c_char_p, []),
    "dt_abi_version": (c_int, []),
    "dt_last_error": (c_char_p, []),
    "dt_text_free": (None, [POINTER(_Text)]),
    "dt_add_data_folder": (c_int, [c_char_p]),
    "dt_model_load": (c_int, [c_char_p, POINTER(c_void_p)]),
    "dt_model_free": (None, [c_void_p]),
    "dt_model_info": (c_int, [c_void_p, POINTER(_Text)]),
    "dt_logits": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_void_p]),
    "dt_residuals": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_void_p]),
    "dt_encode": (c_int, [c_void_p, c_char_p, c_size_t, c_char_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "dt_decode": (c_int, [c_void_p, c_void_p, c_size_t, POINTER(_Text)]),
    "dt_law_load": (c_int, [c_char_p, c_void_p, c_char_p, POINTER(c_void_p)]),
    "dt_law_free": (None, [c_void_p]),
    "dt_law_info": (c_int, [c_void_p, POINTER(_Text)]),
    "dt_law_sample": (c_int, [c_void_p, c_uint64, c_uint64, c_size_t, c_size_t, c_void_p, c_void_p]),
    "dt_capture": (c_int, [c_void_p, c_void_p, c_uint64, c_uint64, c_size_t, POINTER(_Hooks), c_void_p, c_void_p,
                           POINTER(c_uint64)]),
    "dt_head_make": (c_int, [POINTER(_HeadParts), POINTER(c_void_p)]),
    "dt_head_free": (None, [c_void_p]),
    "dt_estimate": (c_int, [POINTER(_Question), c_char_p, POINTER(_Hooks), POINTER(_Text)]),
    "dt_event_scores": (c_int, [POINTER(_Question), c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_void_p]),
    "dt_split": (c_int, [c_void_p, c_void_p, POINTER(_Scores), c_char_p, POINTER(_Hooks), POINTER(_Text)]),
    "dt_split_many": (c_int, [c_void_p, c_void_p, POINTER(_Scores), c_char_p, POINTER(_Hooks), POINTER(_Text)]),
    "dt_split_states": (c_int, [POINTER(_States), c_char_p, POINTER(_Hooks), POINTER(_Text)]),
    "dt_generate": (c_int, [c_void_p, c_void_p, c_char_p, POINTER(_Hooks), POINTER(_Text)]),
    "dt_losses": (c_int, [c_char_p, c_char_p, c_void_p, c_void_p, c_size_t, c_void_p]),
    "dt_call": (c_int, [c_char_p, c_char_p, POINTER(_Hooks), POINTER(_Text)]),
}


def library_path() -> str:
    """Where libdeeptail.so is: $DEEPTAIL_LIBRARY, or inside the package."""
    given = os.environ.get("DEEPTAIL_LIBRARY")
    if given:
        return given
    here = Path(__file__).resolve().parent
    for path in (here / "lib" / "libdeeptail.so", here / "libdeeptail.so"):
        if path.exists():
            return str(path)
    raise ImportError(f"deeptail: {here / 'lib' / 'libdeeptail.so'} is missing; install with `pip install .` or `make python`")


def _load() -> ctypes.CDLL:
    path = library_path()
    library = ctypes.CDLL(path)
    abi = getattr(library, "dt_abi_version", None)
    if abi is None or abi() != _ABI:
        found = "none" if abi is None else abi()
        raise ImportError(f"{path}: expected version {_ABI} of deeptail's C interface, found {found}")
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_lib = _load()


def version() -> str:
    """The library's version."""
    return str(_lib.dt_version().decode())


def abi_version() -> int:
    """The version of its C interface."""
    return int(_lib.dt_abi_version())


_STOPPED = 4


def _raise(status: int) -> None:
    sentence = _lib.dt_last_error().decode("utf-8", "replace")
    if status == 1:
        raise InputError(sentence)
    if status == 2:
        raise DeviceError(sentence)
    if status == 3:
        raise MemoryError(sentence)
    raise RuntimeError(sentence)


def _check(status: int) -> None:
    if status != 0:
        _raise(status)


def _take(text: _Text) -> bytes:
    data = ctypes.string_at(text.data, text.size) if text.data else b""
    _lib.dt_text_free(byref(text))
    return data


def _pointer(array: Array | None) -> int | None:
    return None if array is None else int(array.ctypes.data)


_watchers: dict[int, tuple[Callable[..., Any], _Watcher]] = {}  # of calls under way, by the functions that C calls
_other_hook: Callable[[Any], Any] = sys.unraisablehook


def _watcher_of(told: Any) -> _Watcher | None:
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


class _Watcher:
    """Hooks of one call. An exception of a user's function stops the call, and is raised when that has returned."""

    def __init__(self, progress: Progress, on_result: Callable[[int, dict[str, Any]], Any] | None = None):
        self.error: BaseException | None = None
        self._progress, self._on_result = progress, on_result
        self._called: list[Callable[..., Any]] = []
        self._kept: list[Any] = []  # ctypes keeps no reference to them
        self.hooks = _Hooks(ctypes.sizeof(_Hooks), None, self.function(_KeepGoing, self._keep_going),
                            self.function(_OnResult, self._result))

    def function(self, kind: Any, called: Callable[..., Any]) -> Any:
        """As C takes it, for as long as the call lasts."""
        self._called.append(called)
        self._kept.append(kind(called))
        return self._kept[-1]

    def run(self, call: Callable[[_Watcher], int], result: Callable[[], Any]) -> Any:
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
        _check(status)
        return partial()


def add_data_folder(folder: str | os.PathLike[str]) -> None:
    """Models, laws and counts are looked for by name in its models/, distributions/ and truth/, too."""
    _check(_lib.dt_add_data_folder(os.fsencode(folder)))


class _Handle:
    _free: str

    def __init__(self, pointer: int):
        self._pointer = pointer

    @property
    def pointer(self) -> int:
        return self._pointer

    def __del__(self) -> None:
        pointer, self._pointer = getattr(self, "_pointer", None), 0
        if pointer and _lib is not None:
            getattr(_lib, self._free)(pointer)


class Model(_Handle):
    """A model that is loaded."""

    _free = "dt_model_free"

    def __init__(self, pointer: int):
        super().__init__(pointer)
        self.info: dict[str, Any] = _info("dt_model_info", pointer)


class Law(_Handle):
    """A law of inputs."""

    _free = "dt_law_free"

    def __init__(self, pointer: int):
        super().__init__(pointer)
        self.info: dict[str, Any] = _info("dt_law_info", pointer)


class Head(_Handle):
    """The way from activations to the vocabulary."""

    _free = "dt_head_free"

    def __init__(self, pointer: int, d_model: int, d_vocab: int):
        super().__init__(pointer)
        self.d_model, self.d_vocab = d_model, d_vocab


def _info(function: str, pointer: int) -> dict[str, Any]:
    text = _Text()
    _check(getattr(_lib, function)(pointer, byref(text)))
    found: dict[str, Any] = json.loads(_take(text))
    return found


def _handle(value: _Handle | None) -> int | None:
    return None if value is None else value.pointer


def load_model(name: str | os.PathLike[str]) -> Model:
    """A name of the zoo, a folder, a GGUF file, or hf:ORG/NAME in the HuggingFace cache."""
    out = c_void_p()
    _check(_lib.dt_model_load(os.fsencode(name), byref(out)))
    return Model(out.value or 0)


def load_law(name: str | os.PathLike[str], model: Model | None = None, folder: str | os.PathLike[str] = "") -> Law:
    """A name, a file, or JSON text."""
    out = c_void_p()
    _check(_lib.dt_law_load(os.fsencode(name), _handle(model), os.fsencode(folder), byref(out)))
    return Law(out.value or 0)


def _floats(values: Any, name: str, shape: tuple[int, ...]) -> Array:
    array = np.ascontiguousarray(values, dtype=np.float32)
    if array.shape != shape:
        raise InputError(f"{name}: expected shape {list(shape)}, found {list(array.shape)}")
    return array


def make_head(w_u: Any, b_u: Any = None, ln_w: Any = None, ln_b: Any = None, norm: str = "layer", eps: float = 1e-5) -> Head:
    """From an unembedding [d_model, d_vocab] and the norm before it: layer, rms or none."""
    w = np.asarray(w_u)
    if w.ndim != 2:
        raise InputError(f"w_u: expected [d_model, d_vocab], found {w.ndim} dimensions")
    w = np.ascontiguousarray(w, dtype=np.float32)
    d_model, d_vocab = w.shape
    parts = [None if v is None else _floats(v, n, (size,))
             for v, n, size in ((b_u, "b_u", d_vocab), (ln_w, "ln_w", d_model), (ln_b, "ln_b", d_model))]
    out = c_void_p()
    given = _HeadParts(ctypes.sizeof(_HeadParts), d_model, d_vocab, _pointer(w), *(_pointer(p) for p in parts),
                       norm.encode(), eps)
    _check(_lib.dt_head_make(byref(given), byref(out)))
    return Head(out.value or 0, d_model, d_vocab)


def encode(model: Model, text: str | bytes, bos: str | int = "none") -> Array:
    """The ids of a text: int32 [n]."""
    data = text.encode() if isinstance(text, str) else text
    room, n = len(data) + 8, c_size_t()
    while True:
        ids = np.empty(room, np.int32)
        _check(_lib.dt_encode(model.pointer, data, len(data), str(bos).encode(), _pointer(ids), room, byref(n)))
        if n.value <= room:
            return ids[: n.value].copy()
        room = n.value


def _ids(values: Any, name: str = "ids") -> Array:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"{name}: expected whole numbers, found {array.dtype}")
    if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
        raise InputError(f"{name}: expected 32-bit numbers")
    return np.ascontiguousarray(array, dtype=np.int32)


def decode(model: Model, ids: Any) -> bytes:
    """The text of ids together."""
    array, text = _ids(ids).reshape(-1), _Text()
    _check(_lib.dt_decode(model.pointer, _pointer(array), array.size, byref(text)))
    return _take(text)


def sample(law: Law, n: int, seed: int = 1, first: int = 0, threads: int = 0) -> tuple[Array, Array]:
    """Samples [first, first + n) of a seed: tokens int32 [n, max_length] and lengths uint32 [n]."""
    tokens = np.zeros((_count(n, "n"), law.info["max_length"]), np.int32)
    lengths = np.zeros(n, np.uint32)
    _check(_lib.dt_law_sample(law.pointer, _count(seed, "seed"), _count(first, "first"), n, threads, _pointer(tokens),
                              _pointer(lengths)))
    return tokens, lengths


def _count(value: int, name: str) -> int:
    if int(value) != value or value < 0 or value >= 2**64:
        raise InputError(f"{name}: expected a whole number of at least 0, found {value}")
    return int(value)


def _batch(tokens: Any, lengths: Any) -> tuple[Array, Array | None]:
    rows = _ids(tokens, "tokens")
    if rows.ndim == 1:
        rows = rows[None, :]
    if rows.ndim != 2:
        raise InputError(f"tokens: expected [n, length], found {rows.ndim} dimensions")
    if lengths is None:
        return rows, None
    counts = np.ascontiguousarray(lengths, dtype=np.uint32)
    if counts.shape != (rows.shape[0],):
        raise InputError(f"lengths: expected shape [{rows.shape[0]}], found {list(counts.shape)}")
    return rows, counts


def _forward(function: str, model: Model, width: int, tokens: Any, lengths: Any, threads: int) -> Array:
    rows, counts = _batch(tokens, lengths)
    out = np.empty((rows.shape[0], width), np.float32)
    _check(getattr(_lib, function)(model.pointer, _pointer(rows), _pointer(counts), *rows.shape, threads, _pointer(out)))
    return out


def logits(model: Model, tokens: Any, lengths: Any = None, threads: int = 0) -> Array:
    """After each sequence: float32 [n, d_vocab]."""
    return _forward("dt_logits", model, model.info["d_vocab"], tokens, lengths, threads)


def residuals(model: Model, tokens: Any, lengths: Any = None, threads: int = 0) -> Array:
    """The last position's residual before the final norm: float32 [n, d_model]."""
    return _forward("dt_residuals", model, model.info["d_model"], tokens, lengths, threads)


def capture(model: Model, law: Law, count: int, seed: int = 1, threads: int = 0,
            progress: Progress = None) -> tuple[Array, Array | None]:
    """Activations of inputs of a law, float32 [count, d_model], and their last tokens that vary, or none."""
    out = np.empty((_count(count, "count"), model.info["d_model"]), np.float32)
    last, captured = np.empty(count, np.int32), c_uint64()

    def result() -> tuple[Array, Array | None]:
        n = captured.value
        return out[:n], last[:n] if n and last[0] >= 0 else None

    watcher = _Watcher(progress)
    found: tuple[Array, Array | None] | None = watcher.run(lambda w: int(_lib.dt_capture(model.pointer, law.pointer, count, _count(seed, "seed"), threads,
                                               byref(w.hooks), _pointer(out), _pointer(last), byref(captured))),
                        result)
    return found if found is not None else (out[:0], None)


def _question(events: str, model: Model | None, law: Law | None, head: Head | None = None, activations: Array | None = None,
              last_tokens: Array | None = None) -> _Question:
    n, d = (0, 0) if activations is None else activations.shape
    return _Question(ctypes.sizeof(_Question), _handle(model), _handle(law), events.encode(), _handle(head),
                     _pointer(activations), n, d, _pointer(last_tokens))


def _activations(values: Any) -> Array:
    array = np.asarray(values)
    if array.ndim != 2:
        raise InputError(f"activations: expected [n, d_model], found {array.ndim} dimensions")
    return np.ascontiguousarray(array, dtype=np.float32)  # no copy where they are that already


def _lines(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def estimate(events: Sequence[Mapping[str, Any]], *, model: Model | None = None, law: Law | None = None,
             head: Head | None = None, activations: Any = None, last_tokens: Any = None,
             settings: Mapping[str, Any] | None = None, progress: Progress = None,
             on_result: Callable[[int, dict[str, Any]], Any] | None = None) -> list[dict[str, Any]]:
    """What `deeptail estimate --json` prints, for each event."""
    cloud = None if activations is None else _activations(activations)
    last = None if last_tokens is None else _ids(last_tokens, "last_tokens")
    if cloud is not None and last is not None and last.shape != (cloud.shape[0],):
        raise InputError(f"last_tokens: expected shape [{cloud.shape[0]}], found {list(last.shape)}")
    question = _question(_json(list(events)), model, law, head, cloud, last)
    text, given = _Text(), _json(dict(settings or {})).encode()
    watcher = _Watcher(progress, on_result)
    try:
        found = watcher.run(lambda w: int(_lib.dt_estimate(byref(question), given, byref(w.hooks), byref(text))),
                     lambda: _lines(_take(text)))
    finally:
        _lib.dt_text_free(byref(text))
    return found or []


def _plain(value: Any) -> Any:
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _json(value: Any) -> str:
    try:
        return json.dumps(value, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(str(error)) from None


def event_scores(event: Mapping[str, Any], model: Model, law: Law, tokens: Any, lengths: Any = None,
                 threads: int = 0) -> Array:
    """The event's own score of each sequence: float64 [n]; at least 0: it happens."""
    rows, counts = _batch(tokens, lengths)
    out = np.empty(rows.shape[0], np.float64)
    question = _question(_json([dict(event)]), model, law)
    _check(_lib.dt_event_scores(byref(question), _pointer(rows), _pointer(counts), *rows.shape, threads, _pointer(out)))
    return out


def generate(model: Model, law: Law, settings: Mapping[str, Any] | None = None, progress: Progress = None) -> list[dict[str, Any]]:
    """What the model says after prompts of the law: count, within, temperature, top_k, top_p, greedy, stop, seed, threads."""
    text, given = _Text(), _json(dict(settings or {})).encode()
    watcher = _Watcher(progress)
    try:
        found: list[dict[str, Any]] = watcher.run(
            lambda w: int(_lib.dt_generate(model.pointer, law.pointer, given, byref(w.hooks), byref(text))),
            lambda: json.loads(_take(text)))
    finally:
        _lib.dt_text_free(byref(text))
    return found


Score = Callable[..., Any]


def _row(values: Any, n: int) -> Array:
    """A batch's scores as float64 [n]: of NumPy, torch (also on a device), or a plain list."""
    for name in ("detach", "double", "cpu", "numpy"):  # a torch tensor; bfloat16 has no NumPy form
        step = getattr(values, name, None)
        if not callable(step):
            break
        values = step()
    array = np.asarray(values)
    if array.shape not in ((n,), (n, 1)):
        raise InputError(f"score: expected {n} numbers, one for each row, found shape {list(array.shape)}")
    if array.dtype.kind not in "fiub":
        raise InputError(f"score: expected numbers, found {array.dtype}")
    return np.ascontiguousarray(array.reshape(n), dtype=np.float64)


def _refuse_nan(scores: Array, described: Callable[[int], str]) -> None:
    bad = np.isnan(scores) | (scores == np.inf)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"score: expected a finite number or minus infinity, found {scores[row]} for row {row}, {described(row)}")


def _called(score: Score, watcher: _Watcher, several: bool) -> Any:
    """The user's function as C calls it; of several events it is told which. What it raises is kept, and the run stops."""

    def function(_user: Any, told: Any, out: Any) -> int:
        try:
            if watcher.error is not None:
                return 0
            batch = told.contents
            n, length, m = batch.n, batch.length, batch.n_numbers
            tokens = np.ctypeslib.as_array(batch.tokens, (n, length)).copy()
            given = [tokens, np.ctypeslib.as_array(batch.lengths, (n,)).copy()]
            if m:
                given.append(np.ctypeslib.as_array(batch.numbers, (n, m)).copy())
            if several:
                given.append(np.ctypeslib.as_array(batch.which, (n,)).astype(np.int32))
            scores = _row(score(*given), n)
            _refuse_nan(scores, lambda row: f"tokens {tokens[row].tolist()}")
            np.ctypeslib.as_array(out, (n,))[:] = scores
            return 1
        except BaseException as error:
            watcher.keep(error)
            return 0

    return watcher.function(_Score, function)


def split(law: Law, score: Score, *, exact: Score | None = None, near: float = 0.0, batch: int = 256,
          smaller: Sequence[int] = (), numbers: int = 0, events: Sequence[str] | None = None, model: Model | None = None,
          settings: Mapping[str, Any] | None = None, progress: Progress = None) -> Any:
    """Splitting by score(tokens int32 [batch, length], lengths uint32 [batch]), with numbers > 0 also float64 [batch, numbers],
    and with events also int32 [batch]: which of them. The estimate as a dict, of events a list of them.

    None: progress said stop before anything was known."""
    watcher, several = _Watcher(progress), events is not None
    functions = (_called(score, watcher, several), _called(exact, watcher, several) if exact is not None else _Score(0))
    sizes = (c_size_t * len(smaller))(*(_count(n, "batch") for n in smaller))
    given = _Scores(ctypes.sizeof(_Scores), None, *functions, float(near), _count(batch, "batch"), _count(numbers, "numbers"),
                    sizes, len(smaller))
    all_settings = {**dict(settings or {}), **({"events": list(events)} if events is not None else {})}
    text, asked = _Text(), _json(all_settings).encode()
    function = _lib.dt_split_many if several else _lib.dt_split
    try:
        return watcher.run(
            lambda w: int(function(law.pointer, _handle(model), byref(given), asked, byref(w.hooks), byref(text))),
            lambda: json.loads(_take(text)))
    finally:
        _lib.dt_text_free(byref(text))


class _StateStore:
    """Objects by number; C knows the numbers."""

    def __init__(self) -> None:
        self.objects: dict[int, Any] = {}
        self._next = 0

    def add(self, states: Sequence[Any], n: int, name: str, out: Any) -> None:
        found = list(states)
        if len(found) != n:
            raise InputError(f"{name}: expected {n} states, found {len(found)}")
        numbers = np.arange(self._next, self._next + n, dtype=np.int64)
        self.objects.update(zip(numbers.tolist(), found))
        self._next += n
        np.ctypeslib.as_array(out, (n,))[:] = numbers

    def get(self, numbers: Any, n: int) -> list[Any]:
        return [self.objects[i] for i in np.ctypeslib.as_array(numbers, (n,)).tolist()]

    def drop(self, numbers: Any, n: int) -> None:
        for i in np.ctypeslib.as_array(numbers, (n,)).tolist():
            self.objects.pop(i, None)


def split_state(sample: Callable[..., Any], mutate: Callable[..., Any], score: Callable[..., Any], *,
                settings: Mapping[str, Any] | None = None, progress: Progress = None) -> dict[str, Any] | None:
    """Splitting on any objects: sample(n, rng), mutate(states, rng), score(states). "states" has some with the event."""
    watcher, store = _Watcher(progress), _StateStore()

    def kept(work: Callable[..., None]) -> Callable[..., int]:
        def function(_user: Any, *given: Any) -> int:
            try:
                if watcher.error is not None:
                    return 0
                work(*given)
                return 1
            except BaseException as error:
                watcher.keep(error)
                return 0

        return function

    def do_sample(seed: int, n: int, out: Any) -> None:
        store.add(sample(n, np.random.default_rng(seed)), n, "sample", out)

    def do_mutate(states: Any, n: int, seed: int, out: Any) -> None:
        store.add(mutate(store.get(states, n), np.random.default_rng(seed)), n, "mutate", out)

    def do_score(states: Any, n: int, out: Any) -> None:
        objects = store.get(states, n)
        scores = _row(score(objects), n)
        _refuse_nan(scores, lambda row: f"state {objects[row]!r:.200}")
        np.ctypeslib.as_array(out, (n,))[:] = scores

    functions = (watcher.function(_SampleStates, kept(do_sample)), watcher.function(_MutateStates, kept(do_mutate)),
                 watcher.function(_ScoreStates, kept(do_score)), watcher.function(_DropStates, kept(store.drop)))
    given, text = _States(ctypes.sizeof(_States), None, *functions), _Text()
    asked = _json(dict(settings or {})).encode()

    def result() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(_take(text))
        found["states"] = [store.objects[i] for i in found["states"]]
        return found

    try:
        answer: dict[str, Any] | None = watcher.run(
            lambda w: int(_lib.dt_split_states(byref(given), asked, byref(w.hooks), byref(text))), result)
    finally:
        _lib.dt_text_free(byref(text))
    return answer


def loss(name: str, truth: Any, estimate: Any, **parameters: float) -> Array:
    """Losses of each pair, in the shape that the two have together."""
    q, p = np.broadcast_arrays(np.asarray(truth, np.float64), np.asarray(estimate, np.float64))
    q, p = np.ascontiguousarray(q), np.ascontiguousarray(p)
    out = np.empty(q.shape, np.float64)
    _check(_lib.dt_losses(name.encode(), _json(parameters).encode(), _pointer(q), _pointer(p), q.size, _pointer(out)))
    return out


def call(what: str, arguments: Mapping[str, Any] | None = None, progress: Progress = None) -> Any:
    """Everything else: JSON in, JSON out."""
    text, given = _Text(), _json(dict(arguments or {})).encode()
    watcher = _Watcher(progress)
    try:
        return watcher.run(lambda w: int(_lib.dt_call(what.encode(), given, byref(w.hooks), byref(text))),
                    lambda: json.loads(_take(text)))
    finally:
        _lib.dt_text_free(byref(text))
