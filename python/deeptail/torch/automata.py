"""Texts over tokens: what a token does to how much of a string has been said, for all ways to cut it into tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..events import Continuation
from ..models import Model, Tokenizer

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["TokenSteps", "steps_of", "token_bytes"]

DECAY = 0.2  # guess of the chance of one more byte of the string


@dataclass(frozen=True)
class TokenSteps:
    """States of a text, the next state for each token, and a guess of the chance to finish from each state."""

    table: npt.NDArray[np.int64]  # [n_states, d_vocab]
    start: int
    accepted: int
    chance: npt.NDArray[np.float32]  # [n_states]; 1 when accepted, 0 where nothing of it is said


def _byte_chars() -> dict[str, int]:
    """The characters that GPT-2's tokenizers write bytes with."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {**{chr(b): b for b in plain}, **{chr(256 + k): b for k, b in enumerate(others)}}


def _piece(token: str, byte_level: bool, chars: dict[str, int]) -> bytes:
    if byte_level:
        return bytes(chars[c] for c in token) if all(c in chars for c in token) else token.encode()
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        return bytes([int(token[3:5], 16)])
    return token.replace("\u2581", " ").encode()


def token_bytes(tokenizer: Any, d_vocab: int) -> list[bytes]:
    """The bytes of each token inside a text; none for special tokens and ids without a token."""
    own = tokenizer.tokenizer if isinstance(tokenizer, Model) else tokenizer
    if isinstance(own, Tokenizer):
        n = min(d_vocab, own.vocab_size)
        return [own.piece(k) if k != own.bos else b"" for k in range(n)] + [b""] * (d_vocab - n)
    backend = getattr(own, "backend_tokenizer", None)
    if backend is None:
        raise InputError("the tokenizer must be one of transformers' fast ones, or deeptail's")
    described = json.loads(backend.to_str())
    byte_level = "ByteLevel" in json.dumps(described.get("decoder"))
    added = {entry["id"] for entry in described.get("added_tokens") or () if entry.get("special")}
    chars, special = _byte_chars(), added | set(own.all_special_ids)
    found = own.convert_ids_to_tokens(list(range(min(d_vocab, len(own)))))
    pieces = [b"" if token is None or k in special else _piece(token, byte_level, chars) for k, token in enumerate(found)]
    return pieces + [b""] * (d_vocab - len(pieces))


def _string_steps(text: bytes, anywhere: bool) -> npt.NDArray[np.int64]:
    """Bytes to states: k bytes of the text were just said; len(text): all; len(text) + 1: never again. [m + 2, 256]."""
    m = len(text)
    delta = np.full((m + 2, 256), m + 1, dtype=np.int64)
    delta[m], delta[m + 1] = m, m + 1
    restart = 0  # the state after the longest proper suffix that is a prefix
    for k in range(m):
        if anywhere:
            delta[k] = delta[restart] if k else 0
        delta[k, text[k]] = k + 1
        if anywhere and k:
            restart = int(delta[restart, text[k]])
    return delta


def _over_tokens(delta: npt.NDArray[np.int64], pieces: list[bytes]) -> npt.NDArray[np.int64]:
    longest = max(map(len, pieces), default=0)
    ends = np.array([len(p) for p in pieces])
    rows = np.zeros((len(pieces), max(1, longest)), dtype=np.uint8)
    for k, piece in enumerate(pieces):
        rows[k, : len(piece)] = np.frombuffer(piece, dtype=np.uint8)
    table = np.repeat(np.arange(len(delta))[:, None], len(pieces), axis=1)
    for j in range(longest):
        table = np.where(ends > j, delta[table, rows[:, j]], table)
    return table


def steps_of(event: Continuation, tokenizer: Any, d_vocab: int, decay: float = DECAY) -> TokenSteps:
    """For contains, starts_with and tokens_any."""
    if event.kind == "tokens_any":
        table = np.zeros((2, d_vocab), dtype=np.int64)
        table[0, [int(k) for k in event.what]] = 1
        table[1] = 1
        return TokenSteps(table, 0, 1, np.array([0.0, 1.0], dtype=np.float32))
    if event.kind not in ("contains", "starts_with"):
        raise InputError(f"{event.kind}: with a model of transformers give contains, starts_with, tokens_any, or a function of texts")
    text = str(event.what).encode()
    if not text:
        raise InputError(f"{event.kind}: the text is empty")
    m = len(text)
    anywhere = event.kind == "contains"
    table = _over_tokens(_string_steps(text, anywhere), token_bytes(tokenizer, d_vocab))
    chance = np.array([decay ** (m - k) for k in range(m + 1)] + [0.0], dtype=np.float32)
    if anywhere:
        chance[0] = 0.0  # nothing of it is said: it must begin anyway
    return TokenSteps(table, 0, m, chance)
