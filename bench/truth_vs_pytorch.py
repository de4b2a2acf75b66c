"""Inputs per second of `deeptail truth --device cuda` and of a compiled PyTorch model in fp16 that samples, runs and counts, in one
run, with the share of the measured ceilings. Prints Markdown.

    python3 bench/truth_vs_pytorch.py BINARY [--models dt-1l,dt-2l,dt-4l] [--dist hex] [--seconds 4] [--batches 12,13] [--home FOLDER]

--home: the folder that has models/ and distributions/.

PyTorch: only the last position goes through the last block's query, output and MLP and through the unembedding; tokens come from lookup tables
of 2^16 entries. torch.compile fuses what it can. The best batch size counts.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

import safetensors.torch
import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[1]
ENTRIES = 1 << 16


def lookup_tables(dist):
    """[length, ENTRIES] token ids, as often as they are likely."""
    tables = {}
    for name, table in dist["tables"].items():
        probabilities = torch.tensor(table["probabilities"], dtype=torch.float64)
        ends = (probabilities.cumsum(0) / probabilities.sum() * ENTRIES).round().long().clamp(max=ENTRIES)
        at = torch.searchsorted(ends, torch.arange(ENTRIES), right=True).clamp(max=len(probabilities) - 1)
        tables[name] = torch.tensor(table["ids"])[at]
    return torch.stack([tables[i] for i in dist["positions"]])


class Model:
    def __init__(self, folder):
        self.cfg = json.loads((folder / "config.json").read_text())
        files = sorted(folder.glob("*.safetensors"))
        raw = {k: v.cuda().half() for f in files for k, v in safetensors.torch.load_file(f).items()}
        self.raw = raw
        # Products want a multiple of 64 columns; those that are no token never win.
        pad = -self.cfg["d_vocab"] % 64
        self.unembed = (F.pad(raw["unembed.W_U"].t(), (0, 0, 0, pad)).contiguous(), F.pad(raw["unembed.b_U"], (0, pad), value=-6e4))
        self.layers = []
        for i in range(self.cfg["n_layers"]):
            at = f"blocks.{i}."
            flat = lambda n: raw[at + f"attn.W_{n}"].permute(1, 0, 2).flatten(1)  # noqa: E731  [d_model, d_attn]
            bias = lambda n: raw[at + f"attn.b_{n}"].flatten()  # noqa: E731
            self.layers.append({
                "ln1": (raw[at + "ln1.w"], raw[at + "ln1.b"]), "ln2": (raw[at + "ln2.w"], raw[at + "ln2.b"]),
                "q": (flat("Q").t().contiguous(), bias("Q")),
                "kv": (torch.cat([flat("K"), flat("V")], 1).t().contiguous(), torch.cat([bias("K"), bias("V")])),
                "o": (raw[at + "attn.W_O"].flatten(0, 1).t().contiguous(), raw[at + "attn.b_O"]),
                "in": (raw[at + "mlp.W_in"].t().contiguous(), raw[at + "mlp.b_in"]),
                "out": (raw[at + "mlp.W_out"].t().contiguous(), raw[at + "mlp.b_out"])})

    def __call__(self, tokens):
        c, raw = self.cfg, self.raw
        n, length = tokens.shape
        heads, d_head, d = c["n_heads"], c["d_head"], c["d_model"]
        x = raw["embed.W_E"][tokens] + raw["pos_embed.W_pos"][:length]
        for i, w in enumerate(self.layers):
            last = i + 1 == len(self.layers)
            y = F.layer_norm(x, (d,), *w["ln1"], c["eps"])
            if last:
                x = x[:, -1:]
            q = F.linear(y[:, -1:] if last else y, *w["q"]).view(n, -1, heads, d_head).transpose(1, 2)
            kv = F.linear(y, *w["kv"]).view(n, length, 2, heads, d_head)
            k, v = kv[:, :, 0].transpose(1, 2), kv[:, :, 1].transpose(1, 2)
            if last:
                z = ((q @ k.transpose(-1, -2)).float() * d_head**-0.5).softmax(-1).half() @ v
            else:
                z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + F.linear(z.transpose(1, 2).flatten(2), *w["o"])
            x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (d,), *w["ln2"], c["eps"]), *w["in"])), *w["out"])
        y = F.layer_norm(x[:, 0], (d,), raw["ln_final.w"], raw["ln_final.b"], c["eps"])
        return F.linear(y, *self.unembed).argmax(-1)


def pytorch_rate(model, tables, seconds, log_batches):
    """-> (inputs per second, log2 of the batch) of the best batch size."""
    length, results = tables.shape[0], {}
    for log_batch in log_batches:
        batch = 1 << log_batch
        inner = torch.compile(model.__call__, dynamic=False)

        @torch.no_grad()
        def run(counts):
            at = torch.randint(0, ENTRIES, (batch, length), device="cuda")
            tokens = tables[torch.arange(length, device="cuda"), at]
            return counts + torch.bincount(inner(tokens), minlength=model.cfg["d_vocab"])

        counts = torch.zeros(model.cfg["d_vocab"], dtype=torch.long, device="cuda")
        for _ in range(3):
            run(counts)
        torch.cuda.synchronize()
        start, done = time.time(), 0
        while time.time() - start < seconds:
            for _ in range(4):
                counts = run(counts)
                done += batch
            torch.cuda.synchronize()
        results[done / (time.time() - start)] = log_batch
    best = max(results)
    return best, results[best]


def deeptail_rate(binary, home, name, dist, flags, log_samples):
    """Inputs per second, without what loading takes: from the times of two counts of different size."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for k in (log_samples - 3, log_samples):
            start = time.time()
            subprocess.run([binary, "truth", "--model", name, "--dist", dist, "--samples", f"2^{k}", "--device", "cuda", *flags,
                            "--quiet", "--out", f"{folder}/{k}.json"], check=True, cwd=home, env={**os.environ, "DEEPTAIL_HOME": str(home)},
                           stdout=subprocess.DEVNULL)
            times.append(time.time() - start)
    return ((1 << log_samples) - (1 << log_samples - 3)) / (times[1] - times[0])


def multiply_adds(cfg, length):
    """Of one input, as far as the last position needs them: first-layer queries, keys and values come from a table, and the last
    of several blocks has no keys or values (docs/cuda.md)."""
    d, a, h = cfg["d_model"], cfg["n_heads"] * cfg["d_head"], cfg["d_mlp"]
    rest = d * a + 2 * d * h  # W_O and MLP of a position
    attention = length * (length + 1) * a  # scores and averages, causal
    full = (cfg["n_layers"] - 1) * (length * rest + attention)
    middle = (cfg["n_layers"] - 2) * length * 3 * d * a
    last = 3 * d * a + 2 * length * cfg["n_heads"] * d  # W_Q, W_K^T, W_V of one position, then rows of width d
    deep = full + middle + last if cfg["n_layers"] > 1 else 2 * length * a
    return deep + rest + d * cfg["d_vocab"]


def ceilings():
    """Measured: fp16 multiply-adds per second of a large matrix product, and bytes per second of a large copy."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.float16) for _ in range(2))
    source = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)

    def rate(what, amount, repeats=20):
        for _ in range(3):
            what()
        torch.cuda.synchronize()
        start = time.time()
        for _ in range(repeats):
            what()
        torch.cuda.synchronize()
        return amount * repeats / (time.time() - start)

    return rate(lambda: a @ b, 8192**3), rate(source.clone, 2 << 30)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--models", default="dt-1l,dt-2l,dt-4l")
    parser.add_argument("--dist", default="hex")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--batches", type=lambda text: [int(part) for part in text.split(",")], help="log2 of the sizes to try")
    parser.add_argument("--home", type=pathlib.Path, default=ROOT)
    args = parser.parse_args()
    binary = str(pathlib.Path(args.binary).resolve())
    torch.backends.cuda.enable_cudnn_sdp(False)  # fails on large batches
    home = args.home.resolve()
    dist = json.loads((home / "distributions" / f"{args.dist}.json").read_text())
    tables = lookup_tables(dist).cuda()
    macs, copied = ceilings()
    print(f"{torch.cuda.get_device_name()}, `{args.dist}`: measured ceilings {macs / 1e12:.0f} TMAC/s (fp16 product of 8192), "
          f"{copied / 1e12:.2f} TB/s (copy)\n")
    print("| model | deeptail M/s | near-ties decided again | PyTorch M/s (batch) | ratio | TMAC/s | of the ceiling |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in args.models.split(","):
        model = Model(home / "models" / name)
        deep, wide = model.cfg["n_layers"] > 1, model.cfg["d_model"] > 128
        log_samples = (22 if deep else 25) if wide else (27 if deep else 31)
        fast, exact = (deeptail_rate(binary, home, name, args.dist, flags, log_samples) for flags in (["--near-tie", "0"], []))
        theirs, log_batch = pytorch_rate(model, tables, args.seconds, args.batches or ((12, 13) if deep else (13, 14) if wide else (15, 17)))
        done = fast * multiply_adds(model.cfg, tables.shape[0])
        print(f"| {name} | {fast / 1e6:.1f} | {exact / 1e6:.1f} | {theirs / 1e6:.2f} (2^{log_batch}) | {fast / theirs:.1f}, "
              f"{exact / theirs:.1f} | {done / 1e12:.0f} | {100 * done / macs:.0f} % |", flush=True)


if __name__ == "__main__":
    main()
