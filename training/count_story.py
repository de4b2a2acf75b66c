#!/usr/bin/env python3
"""Counts, on a CUDA device, how many of many texts sampled from dt-story contain each of a list of strings.

    python3 training/count_story.py --model models/dt-story --strings strings.json --samples 2^28 --seed 2801 --out DATA/counts

A text is 32 tokens drawn after BOS at temperature 1. It contains a string if its decoded bytes do, however they are divided into tokens.
The first 2^16 texts are also run through plain fp32 PyTorch: logits are compared, and the drawn tokens with fp32 probabilities.
OUT/counts.json is written every 20 seconds, so a run that is cut still counts.
"""

import argparse
import json
import pathlib
import time

import numpy as np
import torch
from tokenizers import Tokenizer

import story_model
from story_kernels import PARTS, PLAIN, Sampler, match
from story_strings import Automaton, count_texts, token_bytes

EOS_ID = 1
CHECKED = 1 << 16


def check(model, sampler, seed):
    """Logits and draws of the first texts against plain fp32."""
    model = model.to(sampler.device)
    n = min(CHECKED, sampler.n)
    logits = torch.empty(sampler.n, sampler.v, dtype=torch.float32, device=sampler.device)
    for t in range(sampler.length):
        sampler.step(t, seed, 0, logits)
        if t not in (0, 1, 7, sampler.length - 1):
            continue
        total, worst, weighted = 0.0, 0.0, 0.0
        expected, variance = (torch.zeros(sampler.v, dtype=torch.float64, device=sampler.device) for _ in range(2))
        for part in torch.arange(n, device=sampler.device).split(1 << 12):
            exact = model(sampler.tokens[: t + 1, part].t().long())[:, -1]
            p = exact.double().softmax(1)
            error = (logits[part].log_softmax(1) - exact.log_softmax(1)).double()
            total, worst = total + error.square().mean().item() * len(part), max(worst, error.abs().max().item())
            weighted += (p * error.square()).sum().item()
            expected += p.sum(0)
            variance += (p * (1 - p)).sum(0)
        z = (torch.bincount(sampler.tokens[t + 1, :n], minlength=sampler.v) - expected) / variance.sqrt()
        spread = z[expected >= 5].square().mean().item()
        assert (weighted / n) ** 0.5 < 5e-3 and spread < 1.5, f"step {t}: log p error {(weighted / n) ** 0.5}, mean z^2 {spread}"
        print(f"step {t:2}: log p error rms {(total / n) ** 0.5:.1e}, weighted by p {(weighted / n) ** 0.5:.1e}, worst {worst:.1e}; "
              f"draws of {int((expected >= 5).sum())} tokens: mean z^2 {spread:.3f}", flush=True)


class Counts:
    """Counts of three events for each string: within all tokens, within half of them, and before EOS."""

    def __init__(self, strings, automaton, length, device):
        self.strings, self.automaton, self.n = strings, automaton, 0
        self.place = torch.arange(1, length + 1, device=device)[:, None]
        self.counts = {key: torch.zeros(len(strings), dtype=torch.int64, device=device) for key in ("all", "half", "before_eos")}

    def add(self, tokens):
        """tokens [length, n]."""
        sets = match(tokens, self.automaton)
        ended = (tokens == EOS_ID).cummax(0).values
        for key, kept in (("all", self.place > 0), ("half", self.place <= len(self.place) // 2), ("before_eos", ~ended)):
            self.counts[key] += count_texts(sets, kept.expand_as(sets), self.automaton)
        self.n += tokens.shape[1]

    def write(self, path, seed, length):
        out = {"seed": seed, "samples": self.n, "tokens": length, "strings": self.strings,
               **{key: value.tolist() for key, value in self.counts.items()}}
        path.write_text(json.dumps(out) + "\n")


def power(text):
    base, _, exponent = text.partition("^")
    return int(base) ** int(exponent or 1)


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--strings", type=pathlib.Path, required=True, help="a JSON list")
    parser.add_argument("--samples", type=power, default=1 << 28)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many, with what is counted")
    parser.add_argument("--batch", type=power, default=1 << 15)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--seed", type=int, default=2801)
    parser.add_argument("--no-split", dest="split", action="store_false", help="final residuals as one fp16 number instead of two")
    parser.add_argument("--save-texts", type=int, default=0, help="keep so many texts (uint16, lzma)")
    parser.add_argument("--parts", type=pathlib.Path, help="what story_parts.py wrote")
    parser.add_argument("--plain", action="store_true", help="plain PyTorch instead of kernels: ten times slower")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    began = time.time()
    torch.backends.cuda.matmul.allow_tf32 = False
    args.out.mkdir(parents=True, exist_ok=True)
    strings = json.loads(args.strings.read_text())
    model = story_model.load(args.model)
    parts = PLAIN if args.plain else json.loads(args.parts.read_text()) if args.parts else PARTS
    sampler = Sampler(model, args.batch, args.length, args.device, args.split, parts)
    check(model, sampler, args.seed)
    tokens = token_bytes(Tokenizer.from_file(str(args.model / "tokenizer.json")))
    counts = Counts(strings, Automaton(strings, tokens, args.device), args.length, args.device)
    print(f"{len(strings)} strings, {len(counts.automaton.next_state)} states, {time.time() - began:.0f} s", flush=True)
    started = told = time.time()
    saved = []
    while counts.n < args.samples and time.time() - began < args.seconds:
        texts = sampler.sample(args.seed, counts.n)[1:]
        if sum(map(len, saved)) < args.save_texts:
            saved.append(texts.t().cpu().numpy().astype(np.uint16))
        counts.add(texts)
        if time.time() - told > 20:
            told = time.time()
            counts.write(args.out / "counts.json", args.seed, args.length)
            print(f"{counts.n} texts, {counts.n / (told - started):.0f} a second", flush=True)
    counts.write(args.out / "counts.json", args.seed, args.length)
    print(f"{counts.n} texts, {counts.n / (time.time() - started):.0f} a second, {time.time() - began:.0f} s in all", flush=True)
    if saved:
        import lzma
        (args.out / "texts.u16.xz").write_bytes(lzma.compress(np.concatenate(saved)[: args.save_texts].tobytes(), preset=1))


if __name__ == "__main__":
    main()
