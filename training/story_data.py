#!/usr/bin/env python3
"""Turns the novels into token arrays for train_story.py.

    python3 training/story_data.py --corpora CORPORA --tokenizer models/dt-story/tokenizer.json --out DATA

Each paragraph is its tokens, a line break and EOS. DATA gets, for train and heldout: story-SPLIT.npz with ids (uint16, all pieces one
after the other), ends (where each piece ends) and paragraphs (where each paragraph begins).
"""

import argparse
import pathlib

import numpy as np
from tokenizers import Tokenizer

from story_text import novels

EOS_ID = 1


def encode(tokenizer, pieces):
    ids, ends, starts, n = [], [], [], 0
    for piece in pieces:
        for encoding in tokenizer.encode_batch([line + "\n" for line in piece], add_special_tokens=False):
            starts.append(n)
            ids.append(np.array(encoding.ids + [EOS_ID], dtype=np.uint16))
            n += len(ids[-1])
        ends.append(n)
    return np.concatenate(ids), np.array(ends), np.array(starts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(args.tokenizer))
    args.out.mkdir(parents=True, exist_ok=True)
    for split, pieces in zip(("train", "heldout"), novels(args.corpora)):
        ids, ends, starts = encode(tokenizer, pieces)
        np.savez_compressed(args.out / f"story-{split}.npz", ids=ids, ends=ends.astype(np.int32), paragraphs=starts.astype(np.int32))
        n_bytes = sum(len(line.encode()) + 1 for piece in pieces for line in piece)
        print(f"{split:8} {len(pieces):5} pieces {len(starts):6} paragraphs {len(ids):9} tokens {n_bytes / len(ids):.2f} bytes/token")


if __name__ == "__main__":
    main()
