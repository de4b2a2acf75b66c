"""Reads the text the zoo is trained on: NAME.txt.xz, UTF-8 pieces separated by a line holding the byte 0x1E."""

import hashlib
import lzma

LANGUAGES = {"english": "english.txt.xz", "spanish": "spanish.txt.xz", "code": "python.txt.xz"}
HELD_OUT_PERCENT = 2


def pieces(folder, language):
    with lzma.open(folder / LANGUAGES[language], "rt", encoding="utf-8", newline="") as f:
        return [piece for piece in f.read().split("\n\x1e\n") if piece]


def is_held_out(piece):
    """By a hash of the text, so that neither order nor chunking matters."""
    return int.from_bytes(hashlib.sha256(piece.encode()).digest()[:4], "big") % 100 < HELD_OUT_PERCENT
