#!/usr/bin/env python3
"""Counts what a px-* model says, by plain PyTorch: to compare with deeptail's counts.

    python3 training/px/count.py --model models/px-1l --dist distributions/neox-digits/hex.json --samples 24 --seed 7 --out counts.json

Inputs are drawn by PyTorch's own generator from cumulative tables of 2^32 parts. The model runs in fp16; where its two best logits are closer than
--near-tie, an input is run again in fp32. Writes a deeptail-truth-1 file, source "pytorch".

The host waits for the device once in GROUP batches. In between, near-ties are collected on the device; there, they run in chunks of one shape, so that
nothing is compiled twice.
"""

import argparse
import hashlib
import json
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import safetensors_io  # noqa: E402
from identity import model_sha256  # noqa: E402

GROUP = 64  # batches between two looks at the clock


def tables_of(dist, device):
    """-> (ends in units of 2^-32, ids), both [length, k]: a row for each position, padded to the longest table by ends that are never reached."""
    tables = [dist["tables"][name] for name in dist["positions"]]
    k = max(len(table["ids"]) for table in tables)
    ends, ids = torch.full((len(tables), k), 2**32), torch.zeros(len(tables), k, dtype=torch.long)
    for row, table in enumerate(tables):
        units = (torch.tensor(table["probabilities"], dtype=torch.float64) * 2**32).round().long()
        assert units.sum() == 2**32
        ends[row, : len(units)], ids[row, : len(units)] = units.cumsum(0), torch.tensor(table["ids"])
    return ends.to(device), ids.to(device)


def draw(tables, n, generator):
    """-> tokens [n, length]."""
    ends, ids = tables
    at = torch.randint(0, 2**32, (len(ends), n), generator=generator, device=ends.device)
    return ids.gather(1, torch.searchsorted(ends, at, right=True)).t().contiguous()


class Model:
    """Weights in one precision; norms and softmax in fp32; the last block at the last position alone."""

    def __init__(self, folder, dtype, device):
        self.cfg, self.dtype = json.loads((folder / "config.json").read_text()), dtype
        self.w = {k: v.to(device, dtype) for k, v in safetensors_io.load(folder / "model.safetensors").items()}
        pad = -self.cfg["d_vocab"] % 64
        self.unembed = (F.pad(self.w["unembed.W_U"].t(), (0, 0, 0, pad)).contiguous(), F.pad(self.w["unembed.b_U"], (0, pad), value=-6e4))

    def norm(self, x, name):
        d = self.cfg["d_model"]
        return F.layer_norm(x.float(), (d,), self.w[name + ".w"].float(), self.w[name + ".b"].float(), self.cfg["eps"]).to(self.dtype)

    def heads(self, y, at, name):
        """y [n, m, d] -> [n, heads, m, d_head]."""
        return torch.einsum("nmd,hde->nhme", y, self.w[at + f"attn.W_{name}"]) + self.w[at + f"attn.b_{name}"][:, None]

    def top_two(self, tokens):
        """tokens [n, length] -> (ids [n], gaps [n])."""
        w, c = self.w, self.cfg
        x = (w["embed.W_E"][tokens] + w["pos_embed.W_pos"][: tokens.shape[1]]).float()
        for i in range(c["n_layers"]):
            at, last = f"blocks.{i}.", i + 1 == c["n_layers"]
            y = self.norm(x, at + "ln1")
            if last:
                x = x[:, -1:]
            q = self.heads(y[:, -1:] if last else y, at, "Q")
            k, v = self.heads(y, at, "K"), self.heads(y, at, "V")
            scores = (q @ k.transpose(-1, -2)).float() * c["d_head"] ** -0.5
            if not last:
                scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1), float("-inf"))
            z = scores.softmax(-1).to(self.dtype) @ v
            x = x + torch.einsum("nhme,hed->nmd", z, w[at + "attn.W_O"]) + w[at + "attn.b_O"]
            h = F.gelu(self.norm(x, at + "ln2") @ w[at + "mlp.W_in"] + w[at + "mlp.b_in"])
            x = x + (h @ w[at + "mlp.W_out"] + w[at + "mlp.b_out"])
        logits = F.linear(self.norm(x[:, 0], "ln_final"), *self.unembed)
        best, ids = logits.max(-1)  # twice the largest: topk sorts rows of 48,262, which takes longer than the model
        second = logits.scatter_(1, ids[:, None], float("-inf")).amax(-1)
        return ids, (best - second).float()


class NearTies:
    """Inputs that wait on the device to be run in fp32. Room for a whole group of them, so that none is ever refused."""

    def __init__(self, exact, counts, batch, length):
        self.exact, self.counts, self.chunk, self.done = exact, counts, batch // 2 or 1, 0
        self.room = GROUP * batch + self.chunk
        self.tokens = torch.zeros(self.room + self.chunk, length, dtype=torch.long, device=counts.device)
        self.n = torch.zeros((), dtype=torch.long, device=counts.device)

    def add(self, tokens, near):
        """Appends the rows of tokens [n, length] where near [n]; the others go to a row that nobody reads, since their number is not known here."""
        row = torch.where(near, self.n + near.cumsum(0) - 1, self.room + self.chunk - 1)
        self.tokens.index_copy_(0, row, tokens)
        self.n += near.sum()

    def run(self, everything):
        """Counts whole chunks; with everything, the rest too, beside rows that are not counted."""
        n = int(self.n)
        end = n if everything else n - n % self.chunk
        for begin in range(0, end, self.chunk):
            ids = self.exact.top_two(self.tokens[begin : begin + self.chunk])[0][: end - begin]
            self.counts.index_add_(0, ids, torch.ones_like(ids))
        self.tokens[: n - end] = self.tokens[end:n].clone()
        self.n.fill_(n - end)
        self.done += end


@torch.no_grad()
def count(model, exact, tables, args, device):
    """-> (counts [d_vocab], how many of the inputs were run in fp32, inputs)."""
    generator = torch.Generator(device).manual_seed(args.seed)
    counts = torch.zeros(model.cfg["d_vocab"], dtype=torch.long, device=device)
    batch, done = min(args.batch, 1 << args.samples), 0
    near_ties = NearTies(exact, counts, batch, len(tables[0]))
    began = time.time()
    while done == 0 or (done < 1 << args.samples and time.time() - began < args.seconds):
        for _ in range(min(GROUP, -(-((1 << args.samples) - done) // batch))):
            tokens = draw(tables, batch, generator)
            ids, gaps = model.top_two(tokens)
            near = ~(gaps >= args.near_tie)  # also what is not a number
            counts.index_add_(0, ids, (~near).long())
            near_ties.add(tokens, near)
            done += batch
        near_ties.run(everything=False)
        if done == GROUP * batch:
            print(f"{done} inputs after {time.time() - began:.0f} s", flush=True)
    near_ties.run(everything=True)
    return counts, near_ties.done, done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--dist", type=pathlib.Path, required=True)
    parser.add_argument("--samples", type=int, default=24, help="log2 of the number of inputs")
    parser.add_argument("--seconds", type=float, default=float("inf"), help=f"ends with what it has by then, after a group of {GROUP} batches")
    parser.add_argument("--batch", type=int, default=1 << 14)
    parser.add_argument("--near-tie", type=float, default=0.02, help="the largest error of fp16's gaps that was seen is 0.0083, 0.0015 rms")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=torch.cuda.is_available(), help="by torch.compile")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dist = json.loads(args.dist.read_text())
    model = Model(args.model, torch.float16 if device == "cuda" else torch.float32, device)
    exact = Model(args.model, torch.float32, device)
    if args.compile:
        for one in (model, exact):
            one.top_two = torch.compile(one.top_two, dynamic=False)
    began = time.time()
    counts, again, n = count(model, exact, tables_of(dist, device), args, device)
    ranges = [{"source": "pytorch", "seed": args.seed, "first": 0, "count": n}]
    seen = {str(i): int(c) for i, c in enumerate(counts.tolist()) if c > 0}
    out = {"format": "deeptail-truth-1", "model": args.model.name, "dist": dist["name"], "model_sha256": model_sha256(args.model),
           "dist_sha256": hashlib.sha256(args.dist.read_bytes()).hexdigest(), "source": "pytorch", "seed": args.seed, "samples": n,
           "ranges": ranges, "counts": seen}
    args.out.write_text(json.dumps(out, separators=(",", ":")) + "\n")
    print(f"{args.model.name} {dist['name']}: {n} inputs, {100 * again / n:.2f} % in fp32, {len(seen)} tokens, {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
