#!/usr/bin/env python3
"""Trains dt-story on a CUDA device.

    python3 training/train_story.py --data DATA --steps 40000 --out models/dt-story

Half of the sequences are BOS and what follows the beginning of a paragraph; the others begin anywhere, without BOS, so that the middles of
long paragraphs are seen too. Writes model.safetensors (fp16), config.json and training.json (settings, losses).
"""

import argparse
import json
import math
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F

import safetensors_io
import story_model

RECIPE = dict(optimizer="AdamW", lr=3e-3, betas=[0.9, 0.98], weight_decay=0.1, warmup=500, schedule="cosine to 0", clip_norm=1.0, batch=256)
HELD_OUT_WINDOWS = 2048


class Windows:
    """Sequences of n_ctx inputs and targets; none goes beyond its piece of text."""

    def __init__(self, path, n_ctx, device):
        data = np.load(path)
        ids, ends, paragraphs = (data[key].astype(np.int64) for key in ("ids", "ends", "paragraphs"))
        end_of = ends[np.searchsorted(ends, np.arange(len(ids)), side="right")]
        fits = np.arange(len(ids)) + n_ctx < end_of
        tensor = lambda a: torch.from_numpy(a).to(device)
        self.ids, self.n_ctx = tensor(ids), n_ctx
        self.anywhere, self.paragraphs = tensor(np.flatnonzero(fits)), tensor(paragraphs[fits[paragraphs]])

    def after_bos(self, starts):
        targets = self.ids[starts[:, None] + torch.arange(self.n_ctx, device=starts.device)]
        return F.pad(targets[:, :-1], (1, 0), value=0), targets

    def batch(self, n, generator):
        """-> (inputs, targets), both [n, n_ctx]; the first half after BOS."""
        def pick(choices):
            return choices[torch.randint(len(choices), (n // 2,), device=choices.device, generator=generator)]

        inputs, targets = self.after_bos(pick(self.paragraphs))
        middle = self.ids[pick(self.anywhere)[:, None] + torch.arange(self.n_ctx + 1, device=self.ids.device)]
        return torch.cat([inputs, middle[:, :-1]]), torch.cat([targets, middle[:, 1:]])


def learning_rate(step, steps):
    if step < RECIPE["warmup"]:
        return RECIPE["lr"] * (step + 1) / RECIPE["warmup"]
    progress = (step - RECIPE["warmup"]) / max(1, steps - RECIPE["warmup"])
    return RECIPE["lr"] * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


def make_optimizer(model, device):
    groups = [{"params": [p for p in model.parameters() if p.dim() == 2], "weight_decay": RECIPE["weight_decay"]},
              {"params": [p for p in model.parameters() if p.dim() != 2], "weight_decay": 0.0}]
    lr = torch.tensor(RECIPE["lr"], device=device)  # a tensor: a compiled step does not depend on its value
    return torch.optim.AdamW(groups, lr=lr, betas=RECIPE["betas"], fused=device == "cuda", capturable=device == "cuda")


def train(model, windows, args):
    """-> (steps, mean loss of the last 500, milliseconds of a step)."""
    device = args.device
    generator = torch.Generator(device).manual_seed(args.seed)
    optimizer = make_optimizer(model, device)

    def loss_of(inputs, targets):
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(inputs)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    if args.compile:
        loss_of = torch.compile(loss_of)
    steps, began, recent = args.steps or 10**9, time.time(), []
    step = 0
    while step < steps:
        loss = loss_of(*windows.batch(RECIPE["batch"], generator))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), RECIPE["clip_norm"])
        for group in optimizer.param_groups:
            group["lr"].fill_(learning_rate(step, steps))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        if step in (args.timing, 3 * args.timing):
            loss.item()  # waits for the device
            if step == args.timing:
                began = time.time()
            else:
                ms = 1e3 * (time.time() - began) / (2 * args.timing)
                steps = args.steps or int(args.seconds * 1e3 / ms) // 1000 * 1000
                print(f"{ms:.2f} ms a step, {steps} steps", flush=True)
        if step > steps - 500:
            recent.append(loss.detach())
        if step % 2000 == 1:
            print(f"step {step:6} loss {loss.item():.4f} {time.time() - began:.0f} s", flush=True)
    return steps, torch.stack(recent).mean().item(), ms


@torch.no_grad()
def held_out_loss(model, windows):
    """Nats per token in fp32, over evenly spaced paragraphs of the held-out pieces, after BOS."""
    starts = windows.paragraphs[torch.linspace(0, len(windows.paragraphs) - 1, HELD_OUT_WINDOWS).long().to(windows.ids.device)]
    total = 0.0
    for part in starts.split(256):
        inputs, targets = windows.after_bos(part)
        total += F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), reduction="sum").item()
    return total / (len(starts) * windows.n_ctx)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, help="without it: as many as fit into --seconds")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--timing", type=int, default=200, help="steps before the first look at the clock")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    cfg = story_model.CONFIG
    model = story_model.Story(cfg)
    story_model.init_weights(model, args.seed)
    n_ctx = cfg["max_position_embeddings"]
    steps, train_loss, ms = train(model.to(args.device), Windows(args.data / "story-train.npz", n_ctx, args.device), args)

    args.out.mkdir(parents=True, exist_ok=True)
    half = story_model.half_weights(model)
    safetensors_io.save(args.out / "model.safetensors", half)
    (args.out / "config.json").write_text(json.dumps(cfg, indent=2) + "\n")
    model = story_model.load(args.out).to(args.device)  # what ships, rounded to fp16, is what is judged
    loss = held_out_loss(model, Windows(args.data / "story-heldout.npz", n_ctx, args.device))
    report = {"recipe": RECIPE, "steps": steps, "seed": args.seed, "train_loss_last_500": round(train_loss, 4), "held_out_loss": round(loss, 4)}
    (args.out / "training.json").write_text(json.dumps(report, indent=2) + "\n")
    print(f"parameters {sum(p.numel() for p in model.parameters())} steps {steps} ms/step {ms:.2f} train {train_loss:.4f} held-out {loss:.4f}")


if __name__ == "__main__":
    main()
