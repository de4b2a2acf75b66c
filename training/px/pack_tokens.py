#!/usr/bin/env python3
"""Makes the training text of px-* one small file: tokens of a part of the pieces, with BOS between them, compressed.

    python3 training/px/pack_tokens.py --data DATA --percent 50 --out tokens.xz

DATA is made by training/data.py with the tokenizer of px-*. A piece is taken by a hash of its tokens, so that the choice does not depend on
their order. The file: a line of JSON ({"train": [tokens of each language], "heldout": [..]}), then the tokens, uint16, in that order.
"""

import argparse
import hashlib
import json
import lzma
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import corpora  # noqa: E402

BOS = 1
LEAST = 64  # shorter pieces have no window
HELD_OUT_TOKENS = 100_000


def chosen(data, language, split, percent):
    ids = np.load(data / f"{language}-{split}.npy")
    ends = np.load(data / f"{language}-{split}-ends.npy")
    parts = []
    for begin, end in zip(np.concatenate([[0], ends[:-1]]), ends):
        piece = ids[begin:end]
        at = int.from_bytes(hashlib.sha256(piece.tobytes()).digest()[:4], "big") % 100
        if len(piece) >= LEAST and at < percent:
            parts += [np.array([BOS], dtype=np.uint16), piece]
    return np.concatenate(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--percent", type=int, default=50)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    arrays = {"train": [chosen(args.data, language, "train", args.percent) for language in corpora.LANGUAGES],
              "heldout": [chosen(args.data, language, "heldout", 100)[:HELD_OUT_TOKENS] for language in corpora.LANGUAGES]}
    header = {split: [len(a) for a in parts] for split, parts in arrays.items()}
    # Low bytes, then high bytes: each compresses better alone.
    flat = np.concatenate(arrays["train"] + arrays["heldout"])
    text = json.dumps(header).encode() + b"\n" + flat.tobytes()
    args.out.write_bytes(lzma.compress(text, preset=9))
    print(header, args.out.stat().st_size, hashlib.sha256(text).hexdigest())


if __name__ == "__main__":
    main()
