#!/usr/bin/env python3
"""Writes models/NAME/reference.json: what PyTorch computes in fp32 with the fp16 weights of a model folder.

    python3 training/reference.py --data DATA --model models/dt-1l

64 inputs, one of each length 1..64, all starting with BOS: held-out text of the three languages, and uniformly random ids.
README.md describes the file.
"""

import argparse
import json
import pathlib

import numpy as np
import torch

import corpora
import safetensors_io
from identity import model_sha256
from transformer import Transformer

N_TOKEN_IDS = 64
SEED = 7


def load_model(folder):
    model = Transformer(json.loads((folder / "config.json").read_text()))
    model.load_state_dict(safetensors_io.load(folder / "model.safetensors"))  # fp16 -> fp32
    return model


def make_inputs(data, cfg, rng):
    texts = [np.load(data / f"{language}-heldout.npy") for language in corpora.LANGUAGES]
    inputs = []
    for length in range(1, cfg["n_ctx"] + 1):
        source = length % (len(texts) + 1)
        if source == len(texts):
            ids = rng.integers(1, cfg["d_vocab"], length - 1)
        else:
            start = rng.integers(0, len(texts[source]) - length)
            ids = texts[source][start : start + length - 1]
        inputs.append([0, *map(int, ids)])
    return inputs


def significant(values, digits=7):
    return [float(f"{x:.{digits}g}") for x in values]


@torch.no_grad()
def write_reference(folder, model, d_vocab, inputs, rng):
    """model: ids [1, length] -> logits [1, length, d_vocab]."""
    token_ids = sorted(int(i) for i in rng.choice(d_vocab, N_TOKEN_IDS, replace=False))
    logits = torch.stack([model(torch.tensor([ids]))[0, -1] for ids in inputs])  # [n, d_vocab]
    best = logits.topk(2).values
    out = {
        "format": "deeptail-reference-1",
        "model": folder.resolve().name,
        "model_sha256": model_sha256(folder),
        "token_ids": token_ids,
        "inputs": inputs,
        "argmax": logits.argmax(1).tolist(),
        "gap": significant((best[:, 0] - best[:, 1]).tolist()),
        "log_sum_exp": significant(logits.double().logsumexp(1).tolist()),
        "logits": [significant(row) for row in logits[:, token_ids].tolist()],
    }
    (folder / "reference.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")
    print(f"{out['model']}: smallest gap {min(out['gap']):.2e}, {len(set(out['argmax']))} distinct argmax")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    args = parser.parse_args()
    model = load_model(args.model)
    rng = np.random.default_rng(SEED)
    write_reference(args.model, model, model.cfg["d_vocab"], make_inputs(args.data, model.cfg, rng), rng)


if __name__ == "__main__":
    main()
