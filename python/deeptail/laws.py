"""Laws of inputs: which inputs a model is asked about, and how likely each is.

A law is a name ("hex"), a file, or made here: of tables for each position, a template with slots, a pool of texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from . import _native
from .choices import Choices, choices_of
from .errors import InputError
from .models import Model, Tokenizer
from .tokenizers import encode_plain, facts_of, is_one_token, one_token

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Law", "law", "laws"]


def _pieces(text: str, slots: Mapping[str, Any]) -> list[Union[str, Choices]]:
    """Texts and the choices between them."""
    pieces: list[Union[str, Choices]] = []
    for k, piece in enumerate(re.split(r"\{(\w+)\}", text)):
        if k % 2 == 0:
            pieces += [piece] if piece else []
        elif piece in slots:
            pieces.append(choices_of(slots[piece]))
        else:
            raise InputError(f"the template has a slot {{{piece}}}, but no choices for it were given")
    missing = [slot for slot in slots if "{" + slot + "}" not in text]
    if missing:
        raise InputError(f"the template has no slot {{{missing[0]}}}")
    return pieces


def _template_json(pieces: Sequence[Union[str, Choices]], start: Sequence[int], name: str) -> str:
    """A law of text, in which every slot has a name of its own."""
    text = ""
    slots: dict[str, Any] = {}
    for piece in pieces:
        if isinstance(piece, str):
            text += piece.replace("{", "{{").replace("}", "}}")
            continue
        slot = f"s{len(slots) + 1}"
        text += "{" + slot + "}"
        slots[slot] = {"list": [{"text": str(t), "weight": w} for t, w in zip(piece.items, piece.weights) if w > 0]}
    bos = start[0] if start else "none"
    return json.dumps({"format": "deeptail-law-1", "name": name, "kind": "template", "bos": bos, "text": text, "slots": slots})


class Law:
    """A law of inputs. ``deeptail.law("hex")`` finds one by name or file; the class methods make one.

    >>> import deeptail as dt
    >>> law = dt.law("hex")
    >>> law
    Law('hex', max_length=33, d_vocab=4096)
    >>> law.sample(3, seed=1).shape
    (3, 33)
    """

    def __init__(self, source: Union[str, Path], *, folder: str = "", tokenizer: Any = None) -> None:
        self._source = str(source)
        self._folder = folder
        self._tokenizer = tokenizer
        self._loaded: dict[int, tuple[Optional[_native.Model], _native.Law]] = {}  # by the model's id, which is kept

    def native(self, model: Optional[Model] = None) -> _native.Law:
        """As the library holds it, checked against the model that shall read its inputs."""
        owner = model._native if model is not None else None
        if owner is None and isinstance(self._tokenizer, (Model, Tokenizer)):
            owner = self._tokenizer._native if isinstance(self._tokenizer, Model) else self._tokenizer._model
        key = id(owner)
        if key not in self._loaded:
            self._loaded[key] = (owner, _native.load_law(self._source, model=owner, folder=self._folder))
        return self._loaded[key][1]

    @property
    def info(self) -> dict[str, Any]:
        return dict(self.native().info)

    @property
    def name(self) -> str:
        return str(self.info["name"])

    @property
    def max_length(self) -> int:
        return int(self.info["max_length"])

    @property
    def d_vocab(self) -> int:
        return int(self.info["d_vocab"])

    @property
    def tokenizer(self) -> Any:
        """The tokenizer that it was made with, if any."""
        return self._tokenizer.tokenizer if isinstance(self._tokenizer, Model) else self._tokenizer

    def sample(self, n: int, *, seed: int = 1, first: int = 0, threads: int = 0) -> npt.NDArray[np.int32]:
        """Samples first .. first + n - 1 of a seed: [n, max_length], 0 beyond an input's length."""
        return np.asarray(_native.sample(self.native(), n, seed=seed, first=first, threads=threads)[0])

    def to_json(self) -> str:
        """The file's text, of a law that was made here or that is a file."""
        if self._source.lstrip().startswith("{"):
            return self._source
        if Path(self._source).is_file():
            return Path(self._source).read_text(encoding="utf-8")
        raise InputError(f"{self._source}: a law that ships with deeptail; `deeptail dist show {self._source}` has its tables")

    def save(self, path: Union[str, Path]) -> None:
        """As a file, which the command line takes too."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        return f"Law({self.name!r}, max_length={self.max_length}, d_vocab={self.d_vocab})"

    @classmethod
    def positions(
        cls, positions: Sequence[Any], *, tokenizer: Any = None, d_vocab: Optional[int] = None, name: str = "positions"
    ) -> Law:
        """Independent positions: each a token (id or text), a list of tokens, a dictionary of weights, or Choices.

        >>> import deeptail as dt
        >>> model = dt.load("dt-1l")
        >>> law = dt.Law.positions([model.tokenizer.bos, {"He": .7, "She": .3}] + [dt.tokens("abc")] * 2, tokenizer=model)
        >>> law.max_length
        4
        """
        facts = facts_of(tokenizer, d_vocab)
        tables: dict[str, Any] = {}
        names: dict[Choices, str] = {}
        used = []
        for entry in positions:
            choices = choices_of(entry)
            if choices not in names:
                names[choices] = f"t{len(names)}"
                ids = [one_token(tokenizer, item) for item in choices.items]
                kept = [(k, p) for k, p in zip(ids, choices.probabilities) if p > 0]
                tables[names[choices]] = {"ids": [k for k, _ in kept], "probabilities": [p for _, p in kept]}
            used.append(names[choices])
        if not used:
            raise InputError("a law needs at least one position")
        spec = {"format": "deeptail-distribution-1", "name": name, **facts, "tables": tables, "positions": used}
        return cls(json.dumps(spec), tokenizer=tokenizer)

    @classmethod
    def template(cls, text: str, *, tokenizer: Any, bos: Optional[bool] = None, name: str = "template", **slots: Any) -> Law:
        """A text with slots in braces, each drawn by itself. Where every choice of every slot is one token, the tokens of
        the text lie between them; else the text is made first and its tokens are those of deeptail's tokenizer.

        >>> import deeptail as dt
        >>> model = dt.load("dt-1l")
        >>> law = dt.Law.template("PIN: {d}{d}{d}{d} Name:", d=dt.uniform("0123456789"), tokenizer=model)
        >>> model.tokenizer.decode(law.sample(1, seed=1)[0])
        '<|BOS|>PIN: 7384 Name:'
        """
        pieces = _pieces(text, slots)
        start = [] if bos is False else encode_plain(tokenizer, "", bos=True)
        choices = [piece for piece in pieces if isinstance(piece, Choices)]
        if isinstance(tokenizer, (Model, Tokenizer)) and not all(is_one_token(tokenizer, c) for one in choices for c in one.items):
            return cls(_template_json(pieces, start, name), tokenizer=tokenizer)
        parts: list[Any] = list(start)
        for piece in pieces:
            parts += [piece] if isinstance(piece, Choices) else encode_plain(tokenizer, piece)
        return cls.positions(parts, tokenizer=tokenizer, name=name)

    @classmethod
    def chat(cls, messages: Sequence[Mapping[str, str]], *, tokenizer: Any, name: str = "chat", **slots: Any) -> Law:
        """Messages with slots, in the form of the tokenizer's chat template (transformers), up to where the answer begins."""
        if not hasattr(tokenizer, "apply_chat_template"):
            raise InputError("a chat needs a tokenizer of transformers with a chat template")
        text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        return cls.template(text, tokenizer=tokenizer, bos=False, name=name, **slots)

    @classmethod
    def pool(cls, texts: Sequence[str], *, weights: Optional[Sequence[float]] = None, name: str = "pool", tokenizer: Any = None) -> Law:
        """One of these texts, with weights where they are given; tokens by the tokenizer of the model that is asked."""
        if not texts:
            raise InputError("a pool needs at least one text")
        if weights is not None and len(weights) != len(texts):
            raise InputError(f"a pool of {len(texts)} texts needs as many weights, found {len(weights)}")
        prompts: list[Any] = list(texts)
        if weights is not None:
            prompts = [{"text": text, "weight": float(w)} for text, w in zip(texts, weights)]
        spec = {"format": "deeptail-law-1", "name": name, "kind": "pool", "prompts": prompts}
        return cls(json.dumps(spec, ensure_ascii=False), tokenizer=tokenizer)

    @classmethod
    def constant(cls, text: str, *, name: str = "constant", tokenizer: Any = None) -> Law:
        """Always this text: for events on sampled continuations."""
        spec = {"format": "deeptail-law-1", "name": name, "kind": "constant", "prompt": text}
        return cls(json.dumps(spec, ensure_ascii=False), tokenizer=tokenizer)


def law(source: Union[str, Path, Law, Mapping[str, Any]], *, tokenizer: Any = None) -> Law:
    """A law by name ("hex"), by file, from its JSON text or object; a Law is given back as it is.

    >>> import deeptail as dt
    >>> dt.law("hex").max_length
    33
    """
    if isinstance(source, Law):
        return source
    if isinstance(source, Mapping):
        return Law(json.dumps(dict(source)), tokenizer=tokenizer)
    found = Law(source, tokenizer=tokenizer)
    if "deeptail-law-" not in found._source and not Path(found._source).exists():
        found.native()  # a name that there is not is told here, not later
    return found


def laws() -> list[str]:
    """Names that ``law`` knows.

    >>> import deeptail as dt
    >>> dt.laws()[:3]
    ['camel', 'caps', 'colon']
    """
    return [entry["name"] if isinstance(entry, dict) else str(entry) for entry in _native.call("list", {"what": "laws"})]
