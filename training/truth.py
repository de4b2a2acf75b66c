#!/usr/bin/env python3
"""Ground truth by brute force: which token is the argmax, counted over many sampled inputs, on a CUDA device.

    python3 training/truth.py --models models --distributions distributions --samples dt-1l=28 dt-2l=28 dt-4l=28 --out DATA/truth

Samples come from the frozen tables with integer weights (multiples of 2^-32), one 32-bit Philox word per (seed, sample, position). The
first 2^20 inputs of every pair are also run through the plain fp32 transformer, and the disagreement is reported. Pairs whose file
exists are left alone, so an interrupted run continues.
"""

import argparse
import json
import pathlib
import time

import torch

import truth_kernels
from distribution_file import alias_table, read_distribution, sha256_of
from identity import model_sha256
from reference import load_model

TOTAL = 1 << 32


class Sampler:
    """Rows of a table that holds, position after position, the support of that position."""

    def __init__(self, dist, model, device):
        aliases, base, ids, positions, offsets, shifts = {}, {}, [], [], [], []
        entries = []
        for name, table in dist["tables"].items():
            base[name] = sum(map(len, entries))
            entry, shift = alias_table(table["weights"])
            entries.append(entry)
            aliases[name] = shift
        for pos, name in enumerate(dist["positions"]):
            offsets.append(len(ids))
            shifts.append(aliases[name])
            ids += dist["tables"][name]["ids"]
            positions += [pos] * len(dist["tables"][name]["ids"])
        long = lambda values: torch.tensor(values, dtype=torch.int64, device=device)
        self.shift, self.base, self.offset = long(shifts), long([base[name] for name in dist["positions"]]), long(offsets)
        self.threshold, self.primary, self.alias = long([e for part in entries for e in part]).t().contiguous()
        self.ids, self.length = long(ids), len(dist["positions"])
        weights = [w for name in dist["positions"] for w in dist["tables"][name]["weights"]]
        self.probabilities = torch.tensor(weights, dtype=torch.float64, device=device) / TOTAL  # [rows]
        self.x = (model.embed.W_E[self.ids] + model.pos_embed.W_pos[long(positions)]).detach()  # [rows, d_model]

    def rows(self, seed, first, count):
        out = torch.empty(count, self.length, dtype=torch.int32, device=self.ids.device)
        truth_kernels.sample_kernel[(truth_kernels.triton.cdiv(out.numel(), 1024),)](
            out, seed, first, self.shift, self.base, self.offset, self.threshold, self.primary, self.alias,
            out.numel(), self.length, BLOCK=1024)
        return out


def sampler_z(sampler, rows):
    """Chi-square of the sampled rows against their probabilities, as a standard normal deviate."""
    expected = sampler.probabilities * len(rows)
    seen = torch.bincount(rows.flatten(), minlength=len(expected))
    large = expected >= 10
    chi2 = ((seen - expected)[large] ** 2 / expected[large]).sum().item()
    df = int(large.sum()) - sampler.length
    return (chi2 - df) / max(1, 2 * df) ** 0.5


def flip_z(fast, exact, d_vocab):
    """Are the inputs on which both disagree as often gains as losses of each token? As a standard normal deviate."""
    differ = fast != exact
    gained = torch.bincount(fast[differ], minlength=d_vocab).double()
    lost = torch.bincount(exact[differ], minlength=d_vocab).double()
    moved = gained + lost > 0
    chi2 = ((gained - lost)[moved] ** 2 / (gained + lost)[moved]).sum().item()
    df = int(moved.sum()) - 1
    return (chi2 - df) / max(1, 2 * df) ** 0.5


@torch.no_grad()
def check(model, sampler, counter, seed, n):
    """The first n inputs again in plain fp32: how often the argmax differs, and whether that favours any token."""
    all_rows, fast, exact = [], [], []
    for first in range(0, n, 1 << 14):
        rows = sampler.rows(seed, first, 1 << 14)
        fast.append(counter.argmax(rows).long())
        x = model.final_residual(model.input_embeddings(sampler.ids[rows.long()]))
        exact.append(model.logits_of(x[:, -1]).argmax(1))
        all_rows.append(rows)
    fast, exact = torch.cat(fast), torch.cat(exact)
    rare = torch.bincount(exact, minlength=model.cfg["d_vocab"]) <= n >> 13  # seen at most about 1e-4 of the time
    differ = fast != exact
    return (f"disagree {int(differ.sum()) / n:.1e} z {flip_z(fast, exact, model.cfg['d_vocab']):+.1f} "
            f"rare +{int((rare[fast] & differ).sum())} -{int((rare[exact] & differ).sum())} "
            f"sampler z {sampler_z(sampler, torch.cat(all_rows)):+.1f}")


@torch.no_grad()
def count(sampler, counter, d_vocab, seed, samples, batch):
    counts = torch.zeros(d_vocab, dtype=torch.int64, device=sampler.ids.device)
    for first in range(0, samples, batch):
        counts += torch.bincount(counter.argmax(sampler.rows(seed, first, min(batch, samples - first))), minlength=d_vocab)
    return counts.tolist()


def write_truth(path, model_folder, dist_file, seed, samples, counts):
    out = {"format": "deeptail-truth-1", "model": model_folder.name, "dist": dist_file.stem,
           "model_sha256": model_sha256(model_folder), "dist_sha256": sha256_of(dist_file),
           "source": "pytorch", "seed": seed, "samples": samples,
           "ranges": [{"source": "pytorch", "seed": seed, "first": 0, "count": samples}],
           "counts": {str(i): c for i, c in enumerate(counts) if c}}
    assert sum(out["counts"].values()) == samples
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(out, separators=(",", ":")) + "\n")


def run_pair(model_folder, dist_file, seed, samples, args):
    device = "cuda"
    model = load_model(model_folder).to(device)
    sampler = Sampler(read_distribution(dist_file), model, device)
    counter = truth_kernels.Counter(model, sampler.x, sampler.length)
    checked = check(model, sampler, counter, seed, 1 << args.check)
    began = time.time()
    counts = count(sampler, counter, model.cfg["d_vocab"], seed, samples, args.batch)
    seconds = time.time() - began
    write_truth(args.out / f"{model_folder.name}-{dist_file.stem}.json", model_folder, dist_file, seed, samples, counts)
    tail = sum(1e-7 <= c / samples <= 1e-5 for c in counts)
    print(f"{model_folder.name} {dist_file.stem:8} seen {sum(c > 0 for c in counts):4} in [1e-7,1e-5] {tail:4} "
          f"{samples / seconds / 1e6:6.1f} M/s {seconds:5.1f} s  {checked}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--distributions", type=pathlib.Path, required=True)
    parser.add_argument("--samples", nargs="+", required=True, metavar="MODEL=LOG2", help="log2 of the inputs of each model")
    parser.add_argument("--dists", nargs="+", help="only these distributions")
    parser.add_argument("--seed", type=int, default=1000, help="the pairs use this seed and the ones after it")
    parser.add_argument("--batch", type=int, default=1 << 15)
    parser.add_argument("--check", type=int, default=20, metavar="LOG2", help="inputs of each pair also run in plain fp32")
    parser.add_argument("--stop-after", type=float, default=float("inf"), help="start no pair after so many seconds")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    files = sorted(args.distributions.glob("*.json"))
    began = time.time()
    for entry in args.samples:
        name, _, log2 = entry.partition("=")
        layers = int(name.removeprefix("dt-").removesuffix("l"))
        for index, dist_file in enumerate(files):
            done = (args.out / f"{name}-{dist_file.stem}.json").exists()
            if not done and time.time() - began < args.stop_after and (not args.dists or dist_file.stem in args.dists):
                run_pair(args.models / name, dist_file, args.seed + 100 * layers + index, 1 << int(log2), args)


if __name__ == "__main__":
    main()
