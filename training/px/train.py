#!/usr/bin/env python3
"""Trains px-1l, px-2l or px-4l, models of the sizes of gelu-1l, gelu-2l and gelu-4l, on a CUDA device.

    python3 training/px/train.py --tokens tokens.xz --name px-1l --layers 1 --out FOLDER/px-1l

The same weights come out every time on the same kind of device and the same PyTorch: order of batches, number of steps and order of all sums
are fixed. expected.json has the hashes; --check compares with it. A sequence is BOS and 63 tokens of one piece of text; each position
predicts the next token.
"""

import argparse
import hashlib
import json
import lzma
import math
import os
import pathlib
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # products repeat exactly only with that

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import safetensors_io  # noqa: E402
from fused_loss import unembed_loss  # noqa: E402
from identity import model_sha256  # noqa: E402
from transformer import Transformer, init_weights  # noqa: E402

SIZES = dict(d_model=512, d_mlp=2048, d_head=64, n_heads=8, n_ctx=64, d_vocab=48262, eps=1e-5)
RECIPE = dict(optimizer="AdamW", lr=2e-3, betas=[0.9, 0.98], weight_decay=0.1, warmup=200, schedule="cosine to 0", clip_norm=1.0,
              batch=256)
LANGUAGES = ("english", "spanish", "code")
BOS = 1
HELD_OUT_WINDOWS = 1024


def read_tokens(path):
    """-> ({"train" and "heldout": int32 arrays by language}, sha256 of the text)."""
    text = lzma.decompress(path.read_bytes())
    line = text.index(b"\n") + 1
    header, flat, at, out = json.loads(text[:line]), np.frombuffer(text[line:], np.uint16), 0, {}
    for split in ("train", "heldout"):
        out[split] = []
        for n in header[split]:
            out[split].append(flat[at : at + n].astype(np.int32))
            at += n
    return out, hashlib.sha256(text).hexdigest()


def window_starts(tokens):
    """Where 64 tokens without BOS begin."""
    inside = np.ones(len(tokens), dtype=bool)
    boundaries = np.append(np.flatnonzero(tokens == BOS), len(tokens))
    for back in range(SIZES["n_ctx"]):
        inside[np.maximum(boundaries - back, 0)[boundaries - back < len(tokens)]] = False
    return np.flatnonzero(inside).astype(np.int32)


def gather_windows(tokens, starts):
    """-> (inputs, targets), both [n, n_ctx]; inputs are the targets shifted behind BOS."""
    targets = tokens[starts[:, None] + torch.arange(SIZES["n_ctx"], device=tokens.device)].long()
    return F.pad(targets[:, :-1], (1, 0), value=BOS), targets


def learning_rate(step, steps):
    if step < RECIPE["warmup"]:
        return RECIPE["lr"] * (step + 1) / RECIPE["warmup"]
    return RECIPE["lr"] * 0.5 * (1 + math.cos(math.pi * (step - RECIPE["warmup"]) / max(1, steps - RECIPE["warmup"])))


def make_optimizer(model, device):
    named = list(model.named_parameters())
    is_matrix = {name: name.rpartition(".")[2].startswith("W_") for name, _ in named}
    groups = [{"params": [p for name, p in named if is_matrix[name]], "weight_decay": RECIPE["weight_decay"]},
              {"params": [p for name, p in named if not is_matrix[name]], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=RECIPE["lr"], betas=RECIPE["betas"], fused=device == "cuda")


def loss_of(model, inputs, targets, device):
    with torch.autocast(device, dtype=torch.bfloat16):
        y = model.ln_final(model.final_residual(model.input_embeddings(inputs)))
    with torch.autocast(device, enabled=False):
        return unembed_loss(y.flatten(0, 1), model.unembed.W_U, model.unembed.b_U, targets.flatten())


def train(model, arrays, steps, seed, batch, device):
    flat = np.concatenate(arrays)
    tokens, starts = torch.from_numpy(flat).to(device), torch.from_numpy(window_starts(flat))
    generator = torch.Generator().manual_seed(seed)  # of the CPU: the same numbers everywhere
    optimizer = make_optimizer(model, device)
    began, recent = time.time(), []
    for step in range(steps):
        pick = torch.randint(len(starts), (batch,), generator=generator)
        loss = loss_of(model, *gather_windows(tokens, starts[pick].to(device)), device)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), RECIPE["clip_norm"])
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step >= steps - 100:
            recent.append(loss.detach())
        if step == 20:
            loss.item()
            began = time.time()
        if step % 500 == 0:
            print(f"step {step:6} loss {loss.item():.4f}", flush=True)
    last = torch.stack(recent).mean().item()
    return last, 1e3 * (time.time() - began) / max(1, steps - 21)


@torch.no_grad()
def held_out_losses(model, arrays, device):
    """Nats per token in fp32, over evenly spaced windows of each language."""
    losses = {}
    for language, ids in zip(LANGUAGES, arrays):
        tokens, starts = torch.from_numpy(ids).to(device), window_starts(ids)
        starts = torch.from_numpy(starts[np.linspace(0, len(starts) - 1, HELD_OUT_WINDOWS).astype(np.int64)]).to(device)
        total = 0.0
        for part in starts.split(128):
            inputs, targets = gather_windows(tokens, part)
            total += F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), reduction="sum").item()
        losses[language] = total / (len(starts) * SIZES["n_ctx"])
    losses["mean"] = sum(losses.values()) / len(losses)
    return {key: round(value, 3) for key, value in losses.items()}


def save(model, name, layers, tokenizer, out):
    out.mkdir(parents=True, exist_ok=True)
    half = {key: value.half() for key, value in model.state_dict().items()}
    safetensors_io.save(out / "model.safetensors", half)
    config = {"model_name": name, "n_layers": layers, **SIZES, "act_fn": "gelu", "normalization_type": "LN"}
    if tokenizer:
        (out / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    model.load_state_dict(half)  # what is written, rounded to fp16, is what is judged


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=pathlib.Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--steps", type=int, default=3200)
    parser.add_argument("--batch", type=int, default=RECIPE["batch"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokenizer", type=pathlib.Path, help="a tokenizer.json to put beside the weights")
    parser.add_argument("--check", action="store_true", help="fail unless the weights are those of expected.json")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    arrays, tokens_sha256 = read_tokens(args.tokens)
    model = Transformer({"n_layers": args.layers, **SIZES})
    init_weights(model, args.seed)
    model.to(device)
    with sdpa_kernel(SDPBackend.MATH):
        train_loss, ms_per_step = train(model, arrays["train"], args.steps, args.seed, args.batch, device)
    save(model, args.name, args.layers, args.tokenizer, args.out)
    report = {"recipe": {**RECIPE, "batch": args.batch}, "steps": args.steps, "seed": args.seed, "tokens_sha256": tokens_sha256,
              "model_sha256": model_sha256(args.out), "train_loss_last_100": round(train_loss, 3),
              "held_out_loss": held_out_losses(model, arrays["heldout"], device)}
    (args.out / "training.json").write_text(json.dumps(report, indent=2) + "\n")
    print(f"{args.name} steps {args.steps} ms/step {ms_per_step:.2f} train {train_loss:.3f} held-out {report['held_out_loss']} "
          f"{report['model_sha256']}", flush=True)
    if args.check:
        expected = json.loads((HERE / "expected.json").read_text()).get(args.name)
        if expected is None:
            print(f"{args.name}: there is no hash to compare with")
        elif report["model_sha256"] != expected:
            raise SystemExit(f"{args.name}: {report['model_sha256']}, expected {expected}")


if __name__ == "__main__":
    main()
