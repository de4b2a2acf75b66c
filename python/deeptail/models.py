"""Models: by name, folder, GGUF file, from the HuggingFace cache, or a transformers model that is in memory."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

import numpy as np

from . import _arrays, _native
from ._progress import Progress, watching
from .errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Model", "Text", "Tokenizer", "fetch", "load", "models"]


BEGINNINGS = ("<|BOS|>", "<s>", "<bos>", "<|begin_of_text|>", "<|endoftext|>")


class Tokenizer:
    """Text to token ids and back, as the model's own files say.

    >>> import deeptail as dt
    >>> tokenizer = dt.load("dt-1l").tokenizer
    >>> tokenizer.encode("To be")
    [3595, 377]
    >>> tokenizer.decode([3595, 377]), tokenizer.token(377), tokenizer.id(" be"), tokenizer.bos
    ('To be', ' be', 377, 0)
    """

    def __init__(self, model: _native.Model) -> None:
        self._model = model
        facts = model.info["tokenizer"]
        self.sha256: str = facts["sha256"]
        self.vocab_size: int = facts["vocab_size"]
        self._added = tuple(int(k) for k in facts["bos"] or ())

    @property
    def bos(self) -> Optional[int]:
        """The token that texts begin with: as its files say, or by its usual names."""
        if self._added:
            return self._added[0]
        found = (self.encode(name) for name in BEGINNINGS)
        return next((ids[0] for ids in found if len(ids) == 1), None)

    def encode(self, text: str, *, bos: bool = False) -> list[int]:
        """Token ids; with bos also the token that texts begin with."""
        ids = [int(k) for k in _native.encode(self._model, text, bos="none")]
        first = self.bos if bos else None
        return ids if first is None else [first, *ids]

    def decode(self, ids: Any) -> str:
        """The text of these ids; bytes that are no UTF-8 become U+FFFD."""
        row = _arrays.token_rows(ids)[0] if len(ids) else np.empty(0, np.int32)
        return bytes(_native.decode(self._model, row)).decode("utf-8", "replace")

    def token(self, id: int) -> str:
        """The text of one token."""
        return self.decode([id])

    def piece(self, id: int) -> bytes:
        """The bytes of one token inside a text, where SentencePiece keeps its space."""
        a = self.encode("a")[-1:]
        alone = bytes(_native.decode(self._model, np.array(a, np.int32)))
        return bytes(_native.decode(self._model, np.array([*a, id], np.int32)))[len(alone) :]

    def id(self, text: str) -> int:
        """The token that is exactly this text."""
        ids = self.encode(text)
        if len(ids) != 1:
            raise InputError(f"{text!r} is {len(ids)} tokens, not one: {[self.token(k) for k in ids]}")
        return ids[0]

    def __len__(self) -> int:
        return self.vocab_size

    def __repr__(self) -> str:
        return f"Tokenizer({self.vocab_size} tokens, sha256 {self.sha256[:12]}..)"


class Text(NamedTuple):
    """What a model said after a prompt; ``Model.generate`` gives them."""

    prompt: str
    continuation: str  # "" where the model has no tokenizer
    prompt_tokens: tuple[int, ...]
    tokens: tuple[int, ...]  # the token that ended it left out
    stopped: bool  # by such a token


class Model:
    """A model that is loaded; ``deeptail.load`` makes them.

    >>> import deeptail as dt
    >>> model = dt.load("dt-1l")
    >>> model
    Model('dt-1l', n_layers=1, d_model=128, d_vocab=4096)
    >>> model.logits([[0, 16, 21, 20]]).shape
    (1, 4096)
    """

    def __init__(self, native: _native.Model, keep: object = None) -> None:
        self._native = native
        self._keep = keep  # what must live as long, such as a folder of weights
        info = native.info
        self.name: str = info["name"]
        self.sha256: str = info["sha256"]
        self.n_layers: int = info["n_layers"]
        self.d_model: int = info["d_model"]
        self.d_vocab: int = info["d_vocab"]
        self.n_ctx: int = info["n_ctx"]
        self._tokenizer = Tokenizer(native) if info["tokenizer"] else None

    @property
    def info(self) -> dict[str, Any]:
        """All that is known of it, as plain values."""
        return dict(self._native.info)

    @property
    def tokenizer(self) -> Tokenizer:
        if self._tokenizer is None:
            raise InputError(f"{self.name} has no tokenizer: name tokens by their ids")
        return self._tokenizer

    @property
    def has_tokenizer(self) -> bool:
        return self._tokenizer is not None

    def logits(self, tokens: Any, *, threads: int = 0) -> npt.NDArray[np.float32]:
        """After each of n sequences of one length: [n, d_vocab]."""
        return np.asarray(_native.logits(self._native, _arrays.token_rows(tokens), threads=threads))

    def residuals(self, tokens: Any, *, threads: int = 0) -> npt.NDArray[np.float32]:
        """Final residuals at the last position, before the last norm: [n, d_model]."""
        return np.asarray(_native.residuals(self._native, _arrays.token_rows(tokens), threads=threads))

    def generate(
        self,
        prompt: Any = "",
        *,
        count: int = 1,
        within: Optional[int] = None,
        temperature: Optional[float] = None,
        top_k: Optional[int] = None,
        top_p: Optional[float] = None,
        greedy: bool = False,
        stop: Optional[str] = None,
        seed: int = 1,
        threads: int = 0,
        progress: Progress = None,
    ) -> list[Text]:
        """What the model says after a prompt (a text), or after prompts of a law: the texts that ``deeptail model
        generate`` prints. within: new tokens of each, 64 or what the model has room for. Ctrl-C carries those that are
        there as ``partial``.

        >>> import deeptail as dt
        >>> model = dt.load("dt-1l")
        >>> said = model.generate("To be", count=2, within=4, seed=1)
        >>> len(said), len(said[0].tokens), said == model.generate("To be", count=2, within=4, seed=1)
        (2, 4, True)
        """
        from .laws import Law, law as as_law

        law = Law.constant(prompt) if isinstance(prompt, str) else as_law(prompt)
        given = {"count": count, "within": within, "temperature": temperature, "top_k": top_k, "top_p": top_p, "stop": stop}
        given.update(greedy=greedy, seed=seed, threads=threads)

        def read(found: list[dict[str, Any]]) -> list[Text]:
            return [
                Text(f.get("prompt", ""), f.get("continuation", ""), tuple(f["prompt_tokens"]), tuple(f["tokens"]), f["stopped"])
                for f in found
            ]

        with watching(progress, self.name) as told:
            try:
                asked = {key: value for key, value in given.items() if value is not None}
                return read(_native.generate(self._native, law.native(self), asked, told) or [])
            except BaseException as error:
                if getattr(error, "partial", None) is not None:
                    error.partial = read(error.partial)  # type: ignore[attr-defined]
                raise

    def __repr__(self) -> str:
        return f"Model({self.name!r}, n_layers={self.n_layers}, d_model={self.d_model}, d_vocab={self.d_vocab})"


def _is_transformers(source: object) -> bool:
    return hasattr(source, "save_pretrained") and hasattr(source, "config") and hasattr(source, "state_dict")


def _from_transformers(source: Any, tokenizer: Any) -> Model:
    """Written as a folder of HuggingFace's form, which lives as long as the model."""
    folder = tempfile.TemporaryDirectory(prefix="deeptail-")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(getattr(source, "name_or_path", "") or type(source).__name__)).strip("-.")
    path = Path(folder.name) / (name or "model")
    source.save_pretrained(path, safe_serialization=True)
    if tokenizer is not None:
        tokenizer.save_pretrained(path)
    return Model(_native.load_model(str(path)), keep=folder)


def load(source: Union[str, Path, Model, Any], *, tokenizer: Any = None) -> Model:
    """A model by name ("dt-1l"), folder, GGUF file, "hf:ORG/NAME" of the HuggingFace cache, or a transformers model in
    memory, with its tokenizer where texts shall be understood. A Model is given back as it is.

    >>> import deeptail as dt
    >>> dt.load("dt-1l").n_layers
    1
    >>> dt.load("dt-9l")
    Traceback (most recent call last):
    ...
    deeptail.InputError: ...
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, (str, Path)):
        return Model(_native.load_model(str(source)))
    if _is_transformers(source):
        return _from_transformers(source, tokenizer)
    raise InputError(f"load: expected a name, a path or a transformers model, found {type(source).__name__}")


def fetch(name: str, *, progress: Progress = None) -> Any:
    """Fetches "hf:ORG/NAME" into the HuggingFace cache, hashes checked; what is there already is kept."""
    with watching(progress, name) as told:
        return _native.call("fetch", {"name": name}, progress=told)


def models() -> list[str]:
    """Names that ``load`` knows.

    >>> import deeptail as dt
    >>> [name for name in dt.models() if name.startswith("dt-") and name.endswith("l")]
    ['dt-1l', 'dt-2l', 'dt-4l']
    """
    return [entry["name"] if isinstance(entry, dict) else str(entry) for entry in _native.call("list", {"what": "models"})]
