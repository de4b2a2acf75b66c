"""make_report_run.py OUT: the run folder in tests/data/report. Truths are the zoo's, estimates are made up around them."""
import hashlib, json, math, random, sys, zlib
from pathlib import Path

root = Path(__file__).resolve().parents[2]
out = Path(sys.argv[1])
rng = random.Random(7)
details = random.Random(8)  # of its own, so that estimates do not depend on what is told about them
MODELS, DISTS, TARGETS = [("dt-1l", 1), ("dt-2l", 2)], ["hex", "if"], 3
# variant, method, bias and spread of log10(p/q), chance of a zero, half-width of the interval, forward passes, seconds
VARIANTS = [("tokensplit", "tokensplit", 0, .1, 0, .2, 2e5, 24), ("ga-amls/mala", "ga-amls", .25, .65, 0, .24, 1.3e4, 31),
            ("ga-amls/rwmh", "ga-amls", .4, .8, 0, .24, 1.2e4, 30), ("qld", "qld", .75, .35, 0, .6, 6.6e4, 2.1),
            ("itgis", "itgis", -.2, .9, .4, .4, 1.9e5, 41), ("mc", "mc", 0, 0, 1, 0, 65536, .8)]
# The byte that each character of a byte-level token stands for.
plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
byte_of = {chr(b): b for b in plain} | {chr(256 + k): b for k, b in enumerate(b for b in range(256) if b not in plain)}
vocab = {i: t for t, i in json.loads((root / "models/tokenizer.json").read_text())["model"]["vocab"].items()}


SUITE = """# Made-up estimates around real truths, for the tests of the report.
name = "made-up"
models = ["dt-1l", "dt-2l"]
distributions = ["hex", "if"]
[targets]
band = [1e-9, 1e-5]
count = 3
[[methods]]
method = "tokensplit"
budget = "2^18"
[[methods]]
method = "ga-amls"
kernel = ["mala", "rwmh"]
[[methods]]
method = "qld"
[[methods]]
method = "itgis"
[[methods]]
method = "mc"
budget = 65536
"""


def text_of(token):
    return bytes(byte_of[c] for c in vocab[token]).decode(errors="replace")


def history(method, p):
    """Levels and triggers, for the methods that have them."""
    levels, triggers = [], []
    if method in ("tokensplit", "ga-amls") and p:
        n = math.ceil(-math.log10(p) / .6)
        share = 10 ** (math.log10(p) / n)
        levels = [{"level": round(details.gauss(-n + k, .3), 3), "survive_fraction": round(share * details.uniform(.97, 1.03), 4),
                   "acceptance": round(details.uniform(.15, .6), 3)} for k in range(n)]
    if method == "tokensplit":
        words = [text_of(i) for i in details.sample(range(300, 2000), 40)]
        triggers = [{"sample": k, "tokens": [0, 1], "text": "".join(details.sample(words, 8)), "margin": .5} for k in range(5)]
    return {"levels": levels, "triggers": triggers}


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
        # A sixteenth of the counts: smaller ones than the folder has now, as after a run whose truth has grown.
        hashes[model], hashes[dist], samples = truth["model_sha256"], truth["dist_sha256"], truth["samples"] // 16
        rare = sorted((int(i), k) for i, k in ((i, k // 16) for i, k in truth["counts"].items()) if k >= 5 and 1e-9 <= k / samples <= 1e-5)
        for target, count in sorted(rng.sample(rare, TARGETS)):
            for variant, method, *numbers in VARIANTS:
                made = estimate(count / samples, *numbers)
                made |= history(method, made["p"])
                item = hashlib.sha256(f"{model} {dist} {target} {variant}".encode()).hexdigest()[:16]
                data = json.dumps({"item": item, "model": model, "dist": dist, "target": [target],
                                   "target_text": text_of(target), "method": method, "variant": variant,
                                   "replica": 0, "seconds": 1.0, "calibration_seed": 1, "truth": {"count": count, "samples": samples},
                                   "estimate": made}, ensure_ascii=False, separators=(",", ":"))
                lines += [data, json.dumps({"commit": item, "crc32": zlib.crc32(data.encode())}, separators=(",", ":"))]
out.mkdir(parents=True, exist_ok=True)
(out / "shard-0.jsonl").write_text("\n".join(lines) + "\n")
header = {"schema": 1, "deeptail": "0.1.0", "suite": {"name": "made-up", "sha256": hashlib.sha256(SUITE.encode()).hexdigest(), "text": SUITE},
          "profiles": ["benchmarking", "oversight", "stress", "audit"],
          "models": [{"name": m, "sha256": hashes[m], "n_layers": n, "d_model": 128, "d_vocab": 4096} for m, n in MODELS],
          "distributions": [{"name": d, "sha256": hashes[d]} for d in DISTS], "truths": [], "items": len(lines) // 2, "device": "cpu",
          "created": "2025-01-01T00:00:00Z"}
(out / "run.json").write_text(json.dumps(header, indent=1) + "\n")
