"""Texts over tokens: what a token does to how much of a string has been said, for all ways to cut it into tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..errors import InputError
from ..events import Continuation
from ..models import Model, Tokenizer

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["ByteDfa", "TokenSteps", "steps_of", "token_bytes"]

DECAY = 0.2  # guess of the chance of one more byte of the string


@dataclass(frozen=True)
class TokenSteps:
    """States of a text, the next state for each token, and a guess of the chance to finish from each state."""

    table: npt.NDArray[np.int64]  # [n_states, d_vocab]
    start: int
    accepted: int
    chance: npt.NDArray[np.float32]  # [n_states]; 1 when accepted, 0 where nothing of it is said
    at_end: npt.NDArray[np.bool_]  # [n_states]: a text that ends here has the event


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


@dataclass(frozen=True)
class ByteDfa:
    """A regular expression as the library reads it (docs/patterns.md)."""

    start: int
    delta: npt.NDArray[np.int64]  # [n_states, 256]
    accepting: npt.NDArray[np.bool_]  # [n_states]; whatever follows
    at_end: npt.NDArray[np.bool_]  # [n_states]: a text may end here

    @classmethod
    def of_regex(cls, regex: str) -> ByteDfa:
        found = _native.call("pattern", {"matches": regex})
        delta = np.array(found["next"], dtype=np.int64)[:, found["classes"]]
        accepting = np.array(found["accepting"], dtype=bool)
        return cls(int(found["start"]), delta, accepting, accepting | np.array(found["accepting_at_end"], dtype=bool))

    def ends(self, text: bytes) -> int:
        """Bytes after which it has matched; -1: never."""
        state = self.start
        for at, byte in enumerate(text):
            if self.accepting[state]:
                return at
            state = int(self.delta[state, byte])
        return len(text) if self.at_end[state] else -1

    def find(self, text: bytes) -> tuple[int, int]:
        """The first match to end, cut as short as it can be; (-1, -1): none."""
        end = self.ends(text)
        for begin in range(end, -1, -1):
            if self.ends(text[begin:end]) >= 0:
                return begin, end
        return (0, end) if end >= 0 else (-1, -1)


def _regex_steps(dfa: ByteDfa, pieces: list[bytes], decay: float) -> TokenSteps:
    """The guess counts the bytes that are missing at least; where nothing is matched yet, it must begin anyway."""
    n = len(dfa.delta)
    missing = np.where(dfa.at_end, 0.0, np.inf)
    for _ in range(n):
        nearer = np.minimum(missing, 1.0 + missing[dfa.delta].min(axis=1))
        if (nearer == missing).all():
            break
        missing = nearer
    chance = np.where(np.isfinite(missing), decay ** np.minimum(missing, 1e3), 0.0)
    if not dfa.at_end[dfa.start]:
        chance[dfa.start] = 0.0
    accepted = np.flatnonzero(dfa.accepting)
    # Without one (patterns that end in $) a state that no text comes to stands for it.
    delta = dfa.delta if len(accepted) else np.vstack([dfa.delta, np.full((1, 256), n)])
    end = int(accepted[0]) if len(accepted) else n
    more = delta.shape[0] - n
    chance, at_end = np.append(chance, np.ones(more)), np.append(dfa.at_end, np.ones(more, dtype=bool))
    return TokenSteps(_over_tokens(delta, pieces), dfa.start, end, chance.astype(np.float32), at_end)


def steps_of(event: Continuation, tokenizer: Any, d_vocab: int, decay: float = DECAY) -> TokenSteps:
    """For contains, starts_with, matches and tokens_any."""
    if event.kind == "tokens_any":
        table = np.zeros((2, d_vocab), dtype=np.int64)
        table[0, [int(k) for k in event.what]] = 1
        table[1] = 1
        return TokenSteps(table, 0, 1, np.array([0.0, 1.0], dtype=np.float32), np.array([False, True]))
    text = str(event.what).encode()
    if not text:
        raise InputError(f"{event.kind}: the text is empty")
    if event.kind == "matches":
        return _regex_steps(ByteDfa.of_regex(str(event.what)), token_bytes(tokenizer, d_vocab), decay)
    m = len(text)
    anywhere = event.kind == "contains"
    table = _over_tokens(_string_steps(text, anywhere), token_bytes(tokenizer, d_vocab))
    chance = np.array([decay ** (m - k) for k in range(m + 1)] + [0.0], dtype=np.float32)
    if anywhere:
        chance[0] = 0.0  # nothing of it is said: it must begin anyway
    return TokenSteps(table, 0, m, chance, np.arange(m + 2) == m)
