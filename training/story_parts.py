#!/usr/bin/env python3
"""Finds, for each kernel of story_kernels.py, the tile that is right and fastest on this device, and writes them; None where none is right.

    python3 training/story_parts.py --model models/dt-story --out parts.json

Every tile is tried in a process of its own, since a kernel that reads where it must not leaves nothing to go on with.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

import torch

import story_model
import story_plain
from story_kernels import PARTS, PLAIN, Sampler

CHOICES = {
    "embed": [(64, 4, 1, 0), (128, 8, 1, 0), (64, 4, 3, 0)],
    "attention": [(16, 4, 1, 0), (8, 4, 1, 0), (16, 2, 1, 0), (32, 8, 1, 0), (16, 4, 3, 0)],
    "block": [(64, 4, 1, 64), (128, 8, 1, 64), (64, 4, 2, 64), (128, 8, 2, 64), (64, 4, 2, 32), (64, 4, 1, 32), (128, 8, 1, 32)],
    "draw": [(64, 4, 1, 32), (128, 8, 1, 32), (64, 4, 2, 32), (64, 4, 1, 16), (64, 8, 1, 32)],
}


def fill(sampler):
    """Texts of plausible tokens, with plain PyTorch's keys and values of all positions."""
    torch.manual_seed(3)
    sampler.tokens[1:].random_(2, sampler.v)
    sampler.parts = dict(PLAIN)
    last = sampler.length - 1
    for t in range(last + 1):
        sampler.embed(t)
        for layer in range(len(sampler.block_weights)):
            if t == last:
                sampler.attention(layer, t)
            else:
                sampler.z.copy_(sampler.values[layer, t].repeat(1, sampler.per))  # no attention: plausible is enough
            sampler.block(layer, t)
    return last


def run_part(sampler, part, t):
    """-> what the part writes, copied."""
    if part == "embed":
        sampler.embed(t)
        return [sampler.x.clone(), sampler.q.clone(), sampler.k[0, t].clone(), sampler.values[0, t].clone(), sampler.k[0, t - 1].clone()]
    if part == "attention":
        sampler.attention(2, t)
        return [sampler.z.clone()]
    if part == "block":
        sampler.block(2, t)
        kept = [sampler.x.clone(), sampler.q.clone(), sampler.k[3, t].clone(), sampler.values[3, t].clone()]
        sampler.block(len(sampler.block_weights) - 1, t)
        return kept + [sampler.x.clone()]
    logits = torch.zeros(sampler.n, sampler.v, device=sampler.device)
    sampler.draw(t, 5, 1000, logits)
    return [logits]


def check_draws(sampler, t, logits):
    """The drawn tokens against their probabilities; the same tokens without keeping logits."""
    drawn = sampler.tokens[t + 1].clone()
    sampler.draw(t, 5, 1000)
    same = bool((drawn == sampler.tokens[t + 1]).all())
    expected = sum(part.double().softmax(1).sum(0) for part in logits.split(1 << 13))
    seen = torch.bincount(drawn, minlength=sampler.v).double()
    z = (seen - expected) / expected.sqrt().clamp(min=1)
    return same and z.abs().max().item() < 6.5 and z[expected > 5].square().mean().item() < 1.5


def try_part(args):
    """Prints one JSON line: whether the part is right."""
    part, tile = args.part, tuple(args.tile)
    sampler = Sampler(story_model.load(args.model), args.batch, args.length, args.device, args.split)
    t = fill(sampler)
    before = [b.clone() for b in (sampler.x, sampler.z, sampler.q)]
    restore = lambda: [b.copy_(old) for b, old in zip((sampler.x, sampler.z, sampler.q), before)]
    want = run_part(sampler, part, t)
    restore()
    sampler.parts[part] = tile
    got = run_part(sampler, part, t)
    errors = [(a.float() - b.float()).abs().max().item() / (a.float().abs().max().item() + 1e-9) for a, b in zip(want, got)]
    right = all(error < 4e-3 for error in errors)
    if part == "draw":
        right = right and check_draws(sampler, t, got[0])
    print(json.dumps({"part": part, "tile": tile, "right": right, "errors": errors}), flush=True)


def milliseconds(sampler, part, tile, repeats=5):
    sampler.parts[part] = tile
    t = sampler.length // 2
    call = {"embed": lambda: sampler.embed(t), "attention": lambda: sampler.attention(2, t), "block": lambda: sampler.block(2, t),
            "draw": lambda: sampler.draw(t, 5, 0)}[part]
    call()
    torch.cuda.synchronize()
    began = time.time()
    for _ in range(repeats):
        call()
    torch.cuda.synchronize()
    return (time.time() - began) / repeats * 1e3


def time_tiles(args):
    """Of tiles that are right: writes the fastest of each part."""
    sampler = Sampler(story_model.load(args.model), args.batch, args.length, split=args.split)
    parts = dict(PLAIN)
    for part, tiles in json.loads(args.tiles).items():
        times = [(milliseconds(sampler, part, tile), tile) for tile in tiles]
        print(part, [(round(ms, 3), tile) for ms, tile in times], flush=True)
        if times:
            parts[part] = min(times)[1]
    args.out.write_text(json.dumps(parts) + "\n")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--batch", type=int, default=1 << 15)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--no-split", dest="split", action="store_false")
    parser.add_argument("--seconds", type=float, default=70)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--tile", type=int, nargs=4)
    parser.add_argument("--tiles")
    parser.add_argument("--out", type=pathlib.Path)
    return parser.parse_args()


@torch.no_grad()
def main():
    args = arguments()
    if args.part:
        return try_part(args)
    if args.tiles:
        return time_tiles(args)
    command = [sys.executable, __file__, "--model", args.model, "--length", args.length, "--device", args.device, *([] if args.split else ["--no-split"])]
    start = lambda *more: subprocess.Popen([str(c) for c in [*command, *more]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    began, right = time.time(), {part: [] for part in PARTS}
    jobs = [(part, tile, start("--batch", args.batch, "--part", part, "--tile", *tile)) for part, tiles in CHOICES.items() for tile in tiles]
    for part, tile, job in jobs:
        try:
            out, err = job.communicate(timeout=max(1.0, args.seconds - (time.time() - began)))
        except subprocess.TimeoutExpired:
            job.kill()
            out, err = "", "too slow"
        line = out.strip().split("\n")[-1]
        result = json.loads(line) if line.startswith("{") else {"right": False, "error": err.strip()[-300:]}
        print(part, tile, json.dumps(result), f"{time.time() - began:.0f} s", flush=True)
        if result["right"]:
            right[part].append(tile)
    args.out.write_text(json.dumps({part: tiles[0] if tiles else None for part, tiles in right.items()}) + "\n")
    timing = start("--batch", 4 * args.batch, "--tiles", json.dumps(right), "--out", args.out)
    try:
        out, err = timing.communicate(timeout=40)
        print(out, err[-300:], flush=True)
    except subprocess.TimeoutExpired:
        timing.kill()
    print(f"{args.out.read_text().strip()} {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
