#!/usr/bin/env python3
"""Trains one model of the zoo on a CUDA device.

    python3 training/train.py --data DATA --name dt-1l --layers 1 --steps 24000 --out models/dt-1l

Every sequence is BOS and 63 tokens of one piece of text; each of its 64 positions predicts the next token. Writes
model.safetensors (fp16), config.json and training.json (settings, losses).
"""

import argparse
import json
import math
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F

import corpora
import safetensors_io
from transformer import Transformer, init_weights

SIZES = dict(d_model=128, d_mlp=512, d_head=32, n_heads=4, n_ctx=64, d_vocab=4096, eps=1e-5)
RECIPE = dict(optimizer="AdamW", lr=1e-3, betas=[0.9, 0.98], weight_decay=0.1, warmup=200, schedule="cosine to 0",
              clip_norm=1.0, batch=512)
HELD_OUT_WINDOWS = 4096


def load_windows(data, split, device):
    """-> (tokens int32 [n], starts int32 [m]): windows of n_ctx tokens from each start lie inside one piece."""
    tokens, starts, offset = [], [], 0
    for language in corpora.LANGUAGES:
        ids = np.load(data / f"{language}-{split}.npy")
        ends = np.load(data / f"{language}-{split}-ends.npy")
        inside = np.ones(len(ids), dtype=bool)
        for back in range(1, SIZES["n_ctx"]):
            inside[np.maximum(ends - back, 0)] = False
        starts.append(np.flatnonzero(inside).astype(np.int32) + offset)
        tokens.append(ids.astype(np.int32))
        offset += len(ids)
    return (torch.from_numpy(np.concatenate(tokens)).to(device), torch.from_numpy(np.concatenate(starts)).to(device))


def gather_windows(tokens, starts):
    """-> (inputs, targets), both [n, n_ctx]; inputs are the targets shifted behind BOS."""
    n_ctx = SIZES["n_ctx"]
    targets = tokens[starts[:, None] + torch.arange(n_ctx, device=tokens.device)].long()
    return F.pad(targets[:, :-1], (1, 0), value=0), targets


def learning_rate(step, steps):
    if step < RECIPE["warmup"]:
        return RECIPE["lr"] * (step + 1) / RECIPE["warmup"]
    progress = (step - RECIPE["warmup"]) / max(1, steps - RECIPE["warmup"])
    return RECIPE["lr"] * 0.5 * (1 + math.cos(math.pi * progress))


def make_optimizer(model):
    named = list(model.named_parameters())
    is_matrix = {name: name.rpartition(".")[2].startswith("W_") for name, _ in named}
    groups = [{"params": [p for name, p in named if is_matrix[name]], "weight_decay": RECIPE["weight_decay"]},
              {"params": [p for name, p in named if not is_matrix[name]], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=RECIPE["lr"], betas=RECIPE["betas"], fused=True)


def train(model, data, steps, seed):
    tokens, starts = load_windows(data, "train", "cuda")
    generator = torch.Generator("cuda").manual_seed(seed)
    optimizer = make_optimizer(model)

    @torch.compile
    def loss_of(inputs, targets):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(inputs)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    began, recent = time.time(), []
    for step in range(steps):
        pick = torch.randint(len(starts), (RECIPE["batch"],), device="cuda", generator=generator)
        loss = loss_of(*gather_windows(tokens, starts[pick]))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), RECIPE["clip_norm"])
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step == 100:
            torch.cuda.synchronize()
            began = time.time()
        if step >= steps - 500:
            recent.append(loss.detach())
        if step % 2000 == 0:
            print(f"step {step:6} loss {loss.item():.4f}", flush=True)
    torch.cuda.synchronize()
    ms_per_step = 1e3 * (time.time() - began) / max(1, steps - 101)
    return torch.stack(recent).mean().item(), ms_per_step


@torch.no_grad()
def held_out_losses(model, data):
    """Nats per token in fp32, over evenly spaced windows of each language's held-out pieces."""
    losses = {}
    for language in corpora.LANGUAGES:
        tokens = torch.from_numpy(np.load(data / f"{language}-heldout.npy").astype(np.int32)).cuda()
        starts = torch.linspace(0, len(tokens) - SIZES["n_ctx"] - 1, HELD_OUT_WINDOWS, device="cuda", dtype=torch.float64).long()
        total = 0.0
        for part in starts.split(256):
            inputs, targets = gather_windows(tokens, part)
            total += F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), reduction="sum").item()
        losses[language] = total / (len(starts) * SIZES["n_ctx"])
    losses["mean"] = sum(losses.values()) / len(losses)
    return {key: round(value, 4) for key, value in losses.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    cfg = {"n_layers": args.layers, **SIZES}
    model = Transformer(cfg)
    init_weights(model, args.seed)
    train_loss, ms_per_step = train(model.cuda(), args.data, args.steps, args.seed)

    args.out.mkdir(parents=True, exist_ok=True)
    half = {name: value.half() for name, value in model.state_dict().items()}
    safetensors_io.save(args.out / "model.safetensors", half)
    config = {"model_name": args.name, **cfg, "act_fn": "gelu", "normalization_type": "LN", "tokenizer_file": "../tokenizer.json"}
    (args.out / "config.json").write_text(json.dumps(config, indent=2) + "\n")

    model.load_state_dict(half)  # what ships, rounded to fp16, is what is judged
    report = {"recipe": RECIPE, "steps": args.steps, "seed": args.seed, "train_loss_last_500": round(train_loss, 4),
              "held_out_loss": held_out_losses(model, args.data)}
    (args.out / "training.json").write_text(json.dumps(report, indent=2) + "\n")
    print(f"{args.name} steps {args.steps} ms/step {ms_per_step:.2f} train {train_loss:.4f} "
          f"held-out {report['held_out_loss']}", flush=True)


if __name__ == "__main__":
    main()
