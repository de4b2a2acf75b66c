#!/usr/bin/env python3
"""Trains a model of gelu-1l's sizes for a few minutes on a CUDA device, for benchmarks that need a trained unembedding.

    python3 training/wide_model.py --corpora CORPORA --tokenizer tokenizer.json --steps 6000 --out FOLDER

Writes ln_final, unembed.b_U (small.safetensors), W_U in parts by columns (W_U-0.npy ..., fp16 [512, columns]) and the final
residuals at the last position of held-out windows of 33 tokens (activations.npy, fp16 [n, 512]).
"""

import argparse
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

import corpora
import safetensors_io
from transformer import Transformer, init_weights

SIZES = dict(n_layers=1, d_model=512, d_mlp=2048, d_head=64, n_heads=8, n_ctx=64, d_vocab=48262, eps=1e-5)
N_ACTIVATIONS, WINDOW, PARTS, BATCH, LR, WARMUP = 12288, 33, 4, 512, 1e-3, 200


def token_arrays(folder, tokenizer_path):
    """-> (train, held out) token ids of English and Python, BOS (id 0) between pieces."""
    tokenizer = Tokenizer.from_file(str(tokenizer_path))
    splits = {False: [], True: []}
    for language in ("english", "code"):
        pieces = list(corpora.pieces(folder, language))
        for i in range(0, len(pieces), 512):
            part = pieces[i : i + 512]
            for piece, encoding in zip(part, tokenizer.encode_batch_fast(part, add_special_tokens=False)):
                ids = np.array([0, *encoding.ids], dtype=np.int64)
                splits[corpora.is_held_out(piece)].append(np.minimum(ids, SIZES["d_vocab"] - 1))
    return [torch.from_numpy(np.concatenate(splits[held_out])).cuda() for held_out in (False, True)]


def train(model, tokens, steps):
    generator = torch.Generator("cuda").manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.98), weight_decay=0.1, fused=True)
    ahead = torch.arange(SIZES["n_ctx"] + 1, device="cuda")

    @torch.compile
    def loss_of(inputs, targets):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(inputs)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    began = time.time()
    for step in range(steps):
        starts = torch.randint(len(tokens) - len(ahead), (BATCH, 1), device="cuda", generator=generator)
        window = tokens[starts + ahead]
        loss = loss_of(window[:, :-1], window[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        warm = min(1.0, (step + 1) / WARMUP)
        for group in optimizer.param_groups:
            group["lr"] = LR * warm * 0.5 * (1 + np.cos(np.pi * step / steps))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 500 == 0:
            print(f"step {step} loss {loss.item():.3f} {time.time() - began:.0f} s", flush=True)


def save(model, held_out, out):
    starts = torch.linspace(0, len(held_out) - WINDOW, N_ACTIVATIONS, device="cuda", dtype=torch.float64).long()
    with torch.no_grad():
        windows = held_out[starts[:, None] + torch.arange(WINDOW, device="cuda")]
        windows[:, 0] = 0
        resid = torch.cat([model.final_residual(model.input_embeddings(part))[:, -1] for part in windows.split(512)])
    np.save(out / "activations.npy", resid.half().cpu().numpy())
    W_U = model.unembed.W_U.detach().half().cpu().numpy()
    for i, part in enumerate(np.array_split(W_U, PARTS, axis=1)):
        np.save(out / f"W_U-{i}.npy", np.ascontiguousarray(part))
    small = {"ln_final.w": model.ln_final.w, "ln_final.b": model.ln_final.b, "unembed.b_U": model.unembed.b_U}
    safetensors_io.save(out / "small.safetensors", small)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    train_tokens, held_out = token_arrays(args.corpora, args.tokenizer)
    print(f"{len(train_tokens)} training tokens", flush=True)
    model = Transformer(SIZES)
    init_weights(model, 1)
    train(model.cuda(), train_tokens, args.steps)
    save(model, held_out, args.out)


if __name__ == "__main__":
    main()
