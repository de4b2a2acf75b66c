#!/usr/bin/env python3
"""Turns the corpora into token arrays and counts the tokens of each language.

    python3 training/data.py --corpora CORPORA --tokenizer models/tokenizer.json --out DATA --counts training/token_counts.json

DATA gets, for each language and split (train, heldout): LANGUAGE-SPLIT.npy, the token ids of all pieces one after the
other (uint16), and LANGUAGE-SPLIT-ends.npy, where each piece ends. Counts are of the train split.
"""

import argparse
import hashlib
import json
import pathlib

import numpy as np
from tokenizers import Tokenizer

import corpora

PIECES_PER_CALL = 512


def encode(tokenizer, pieces):
    """-> (ids uint16 [n_tokens], ends int64 [n_pieces])."""
    arrays = []
    for i in range(0, len(pieces), PIECES_PER_CALL):
        batch = tokenizer.encode_batch_fast(pieces[i : i + PIECES_PER_CALL], add_special_tokens=False)
        arrays += [np.array(encoding.ids, dtype=np.uint16) for encoding in batch]
    return np.concatenate(arrays), np.cumsum([len(a) for a in arrays])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--counts", type=pathlib.Path, required=True)
    args = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(args.tokenizer))
    d_vocab = tokenizer.get_vocab_size()
    args.out.mkdir(parents=True, exist_ok=True)
    counts = {}
    for language in corpora.LANGUAGES:
        splits = {"train": [], "heldout": []}
        for piece in corpora.pieces(args.corpora, language):
            splits["heldout" if corpora.is_held_out(piece) else "train"].append(piece)
        for split, pieces in splits.items():
            ids, ends = encode(tokenizer, pieces)
            np.save(args.out / f"{language}-{split}.npy", ids)
            np.save(args.out / f"{language}-{split}-ends.npy", ends)
            n_bytes = sum(len(piece.encode()) for piece in pieces)
            print(f"{language:8} {split:8} {len(pieces):6} pieces {n_bytes:10} bytes {len(ids):9} tokens "
                  f"{n_bytes / len(ids):.2f} bytes/token", flush=True)
            if split == "train":
                counts[language] = np.bincount(ids, minlength=d_vocab).tolist()
    sha256 = hashlib.sha256(args.tokenizer.read_bytes()).hexdigest()
    args.counts.write_text(json.dumps({"tokenizer_sha256": sha256, "counts": counts}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
