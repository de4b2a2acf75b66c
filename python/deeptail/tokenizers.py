"""Tokenizers of others beside our own: those of transformers, and of the models that deeptail loads."""

from __future__ import annotations

from typing import Any, Optional

from .errors import InputError
from .models import Model, Tokenizer

__all__ = ["decode_ids", "encode_plain", "facts_of", "ids", "is_one_token", "one_token"]


def _own(tokenizer: Any) -> Any:
    return tokenizer.tokenizer if isinstance(tokenizer, Model) else tokenizer


def encode_plain(tokenizer: Any, text: str, *, bos: bool = False) -> list[int]:
    """Token ids without anything added, but for what goes before a text where bos says so."""
    tokenizer = _own(tokenizer)
    if isinstance(tokenizer, Tokenizer):
        return tokenizer.encode(text, bos=bos)
    if tokenizer is None:
        raise InputError("texts need a tokenizer=")
    found = [int(k) for k in tokenizer.encode(text, add_special_tokens=False)] if text else []
    first = getattr(tokenizer, "bos_token_id", None)
    added = first is not None and first in tokenizer.encode("")  # GPT-2's has one and does not use it
    return ([int(first)] if bos and added else []) + found  # type: ignore[arg-type]


def one_token(tokenizer: Any, item: Any) -> int:
    """The id of a token that is given as id or text."""
    if not isinstance(item, str):
        return int(item)
    found = encode_plain(tokenizer, item)
    if len(found) != 1:
        raise InputError(f"{item!r} is {len(found)} tokens, not one; name its tokens one by one")
    return found[0]


def is_one_token(tokenizer: Any, item: Any) -> bool:
    return not isinstance(item, str) or len(encode_plain(tokenizer, item)) == 1


def ids(tokenizer: Any, *texts: str) -> list[int]:
    """The ids of texts that are one token each.

    >>> import deeptail as dt
    >>> dt.ids(dt.load("dt-1l"), " the", " be")
    [293, 377]
    """
    return [one_token(tokenizer, text) for text in texts]


def decode_ids(tokenizer: Any, tokens: Any) -> str:
    tokenizer = _own(tokenizer)
    return str(tokenizer.decode([int(k) for k in tokens]))


def facts_of(tokenizer: Any, d_vocab: Optional[int]) -> dict[str, Any]:
    """What a law says of its vocabulary."""
    facts: dict[str, Any] = {}
    own = _own(tokenizer)
    if isinstance(tokenizer, Model):
        facts["d_vocab"] = tokenizer.d_vocab
    elif own is not None:
        facts["d_vocab"] = len(own)
    if isinstance(own, Tokenizer):
        facts["tokenizer_sha256"] = own.sha256
    if d_vocab is not None:
        facts["d_vocab"] = int(d_vocab)
    if "d_vocab" not in facts:
        raise InputError("a law needs a tokenizer= or d_vocab=, the size of the vocabulary")
    return facts
