"""make_report_run.py OUT: the run folder in tests/data/report. Truths are the zoo's, estimates are made up around them."""
import hashlib, json, math, random, sys, zlib
from pathlib import Path

root = Path(__file__).resolve().parents[2]
out = Path(sys.argv[1])
rng = random.Random(7)
MODELS, DISTS, TARGETS = [("dt-1l", 1), ("dt-2l", 2)], ["hex", "if"], 3
# variant, method, bias and spread of log10(p/q), chance of a zero, half-width of the interval, forward passes, seconds
VARIANTS = [("tokensplit", "tokensplit", 0, .1, 0, .2, 2e5, 24), ("ga-amls/mala", "ga-amls", .25, .65, 0, .24, 1.3e4, 31),
            ("ga-amls/rwmh", "ga-amls", .4, .8, 0, .24, 1.2e4, 30), ("qld", "qld", .75, .35, 0, .6, 6.6e4, 2.1),
            ("itgis", "itgis", -.2, .9, .4, .4, 1.9e5, 41), ("mc", "mc", 0, 0, 1, 0, 65536, .8)]
# The byte that each character of a byte-level token stands for.
plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
byte_of = {chr(b): b for b in plain} | {chr(256 + k): b for k, b in enumerate(b for b in range(256) if b not in plain)}
vocab = {i: t for t, i in json.loads((root / "models/tokenizer.json").read_text())["model"]["vocab"].items()}


def estimate(q, bias, spread, zero, half, cost, seconds):
    if rng.random() < zero:
        p, low, high, status = 0.0, 0.0, 3.69 / cost, "not_reached_upper_bound"
    else:
        p = q * 10 ** rng.gauss(bias, spread)
        low, high, status = p * 10 ** -half, p * 10 ** half, "ok"
    return {"p": p, "log10_p": math.log10(p) if p else "-inf", "ci95": [low, high], "status": status, "guarantee": "consistent",
            "seed": 1, "cost": {"forward": int(cost), "backward": 0, "score_evals": 0, "logits": 0, "flops": cost * 1e6,
                                "forward_equivalents": cost * rng.uniform(.9, 1.1), "seconds": seconds * rng.uniform(.8, 1.3)},
            "warnings": ["a made-up warning"] if rng.random() < .1 else []}


lines, hashes = [], {}
for model, _ in MODELS:
    for dist in DISTS:
        truth = json.loads((root / f"truth/{model}-{dist}.json").read_text())
        hashes[model], hashes[dist], samples = truth["model_sha256"], truth["dist_sha256"], truth["samples"]
        rare = sorted((int(i), k) for i, k in truth["counts"].items() if k >= 5 and 1e-9 <= k / samples <= 1e-5)
        for target, count in sorted(rng.sample(rare, TARGETS)):
            for variant, method, *numbers in VARIANTS:
                item = hashlib.sha256(f"{model} {dist} {target} {variant}".encode()).hexdigest()[:16]
                data = json.dumps({"item": item, "model": model, "dist": dist, "target": [target],
                                   "target_text": bytes(byte_of[c] for c in vocab[target]).decode(errors="replace"), "method": method, "variant": variant,
                                   "replica": 0, "seconds": 1.0, "calibration_seed": 1, "truth": {"count": count, "samples": samples},
                                   "estimate": estimate(count / samples, *numbers)}, ensure_ascii=False, separators=(",", ":"))
                lines += [data, json.dumps({"commit": item, "crc32": zlib.crc32(data.encode())}, separators=(",", ":"))]
out.mkdir(parents=True, exist_ok=True)
(out / "shard-0.jsonl").write_text("\n".join(lines) + "\n")
text = "# Made-up estimates around real truths, for the tests of the report.\n"
header = {"schema": 1, "deeptail": "0.1.0", "suite": {"name": "made-up", "sha256": hashlib.sha256(text.encode()).hexdigest(), "text": text},
          "profiles": ["benchmarking", "oversight", "stress", "audit"],
          "models": [{"name": m, "sha256": hashes[m], "n_layers": n, "d_model": 128, "d_vocab": 4096} for m, n in MODELS],
          "distributions": [{"name": d, "sha256": hashes[d]} for d in DISTS], "truths": [], "items": len(lines) // 2, "device": "cpu",
          "created": "2025-01-01T00:00:00Z"}
(out / "run.json").write_text(json.dumps(header, indent=1) + "\n")
