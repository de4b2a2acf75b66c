#!/usr/bin/env python3
"""Times the kernels of story_kernels.py in tiles of several sizes on a CUDA device, and writes the fastest.

    python3 training/story_tiles.py --model models/dt-story --out tiles.json
"""

import argparse
import json
import pathlib
import time

import torch

import story_model
from story_kernels import TILES, Sampler

CHOICES = {
    "embed": [(128, 8, 1, 0), (64, 4, 1, 0), (64, 8, 1, 0)],
    "attention": [(m, w, s, 0) for m in (8, 16, 32) for w in (2, 4, 8) for s in (1, 3) if 4 <= 4 * m / w <= 32],
    "block": [(64, 4, 1, 64), (64, 4, 2, 64), (128, 8, 1, 64), (128, 8, 2, 64), (128, 8, 3, 64), (128, 8, 2, 32), (64, 4, 2, 32), (64, 4, 3, 32)],
    "draw": [(64, 4, 1, 32), (64, 4, 2, 32), (128, 8, 1, 32), (128, 8, 2, 32), (64, 8, 1, 32), (64, 8, 2, 64), (64, 4, 1, 16), (64, 4, 2, 16)],
}


def milliseconds(sampler, t, repeats=6):
    sampler.step(t, 1, 0)
    torch.cuda.synchronize()
    began = time.time()
    for _ in range(repeats):
        sampler.step(t, 1, 0)
    torch.cuda.synchronize()
    return (time.time() - began) / repeats * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--batch", type=int, default=1 << 17)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--no-split", dest="split", action="store_false")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    sampler = Sampler(story_model.load(args.model), args.batch, args.length, split=args.split, tiles=dict(TILES))
    sampler.sample(1, 0)  # keys of all positions
    for name, choices in CHOICES.items():
        best = milliseconds(sampler, args.length // 2)
        for choice in choices:
            kept, sampler.tiles[name] = sampler.tiles[name], choice
            try:
                ms = milliseconds(sampler, args.length // 2)
            except Exception as error:  # more shared memory than there is, say
                ms = float("inf")
                print(f"{name} {choice}: {str(error)[:80]}", flush=True)
            print(f"{name} {choice} {ms:.2f} ms a step", flush=True)
            best, sampler.tiles[name] = (ms, choice) if ms < best else (best, kept)
    print(f"{sampler.tiles}: {args.batch / (best * args.length) * 1e3:.0f} texts a second", flush=True)
    args.out.write_text(json.dumps(sampler.tiles) + "\n")


if __name__ == "__main__":
    main()
