#!/usr/bin/env python3
"""Writes models/dt-story/reference.json, as reference.py does for the others.

    python3 training/story_reference.py --data DATA --model models/dt-story

64 inputs, one of each even length up to n_ctx, all starting with BOS: held-out text and, every fourth, uniformly random ids.
"""

import argparse
import pathlib

import numpy as np

import story_model
from reference import SEED, write_reference


def make_inputs(data, cfg, rng):
    text, inputs = np.load(data / "story-heldout.npz")["ids"], []
    for length in range(2, cfg["max_position_embeddings"] + 1, 2):
        start = rng.integers(0, len(text) - length)
        ids = rng.integers(2, cfg["vocab_size"], length - 1) if length % 8 == 0 else text[start : start + length - 1]
        inputs.append([0, *map(int, ids)])
    return inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    args = parser.parse_args()
    model = story_model.load(args.model)
    rng = np.random.default_rng(SEED)
    write_reference(args.model, model, model.cfg["vocab_size"], make_inputs(args.data, model.cfg, rng), rng)


if __name__ == "__main__":
    main()
