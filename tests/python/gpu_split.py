"""deeptail.split with models of transformers on a GPU, against counted truth; how much of the time is the model's.

    python3 tests/python/gpu_split.py --zoo models/dt-4l --truth truth/dt-4l-hex.json [--llama FOLDER] [--device cuda]

Two parts: dt-4l as a GPT-2 on hex, 16 rare tokens with counted truth; and a Llama on a law of its own tokens, 16 tokens
that are counted first. For each: the rms error of log10 p (bar 0.15), the share of the device's own forward rate that
the run reaches (bar 1/2), and the share of the time that is spent outside the score (bar 10 %).
"""

import argparse
import json
import math
import pathlib
import sys
import time
import warnings

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import deeptail as dt
from gpt2_form import gpt2_form



class Timed:
    """A score whose time is measured; the device is waited for, as the caller has to."""

    def __init__(self, model, target):
        self.model, self.target, self.seconds, self.rows, self.calls = model, target, 0.0, 0, 0

    def __call__(self, tokens):
        start = time.perf_counter()
        found = dt.torch.margin(dt.torch.last_logits(self.model, tokens), self.target).double().cpu().numpy()
        self.seconds += time.perf_counter() - start
        self.rows += len(tokens)
        self.calls += 1
        return found


def forward_rate(model, tokens):
    """Rows a second of the model alone: last_logits on a batch that lies on the device already."""
    device = next(model.parameters()).device
    rows, calls = torch.as_tensor(tokens, device=device).long(), 20 if device.type == "cuda" else 2
    dt.torch.last_logits(model, rows)
    synchronise(model)
    start = time.perf_counter()
    for _ in range(calls):
        dt.torch.last_logits(model, rows)
    synchronise(model)
    return calls * len(rows) / (time.perf_counter() - start)


def synchronise(model):
    if next(model.parameters()).is_cuda:
        torch.cuda.synchronize()


def spread(tokens, q, count, seed=1):
    """count of these tokens, evenly over log q, in an order that is fair where the time ends."""
    order = np.argsort(q)
    chosen = [int(tokens[order[k]]) for k in np.unique(np.linspace(0, len(order) - 1, count).astype(int))]
    return [chosen[k] for k in np.random.default_rng(seed).permutation(len(chosen))]


def measure(name, model, law, truth, targets, arguments, deadline):
    rate = forward_rate(model, law.sample(arguments.batch))
    errors, inside, seconds, in_score, rows, passes = [], 0, 0.0, 0.0, 0, 0.0
    for target in targets:
        if time.perf_counter() > deadline:
            break
        score = Timed(model, target)
        start = time.perf_counter()
        r = dt.split(law, dt.score(batch=arguments.batch, name=f"says {target}")(score), budget=arguments.budget, seed=1, check=False)
        seconds += time.perf_counter() - start
        in_score, rows, passes = in_score + score.seconds, rows + score.rows, passes + r.cost.forward_equivalents
        q = truth[target]
        error = math.log10(r.p / q) if r.p > 0 else -math.inf
        inside += r.interval.low <= q <= r.interval.high
        errors.append(error)
        print(f"  {name} {target}: q {q:.3g} p {r.p:.3g} [{r.interval.low:.3g}, {r.interval.high:.3g}] error {error:+.3f} "
              f"{r.guarantee} {score.rows} rows, {score.calls} batches", flush=True)
    finite = [e for e in errors if math.isfinite(e)]
    rms = math.sqrt(sum(e * e for e in finite) / max(1, len(finite)))
    found = {
        "part": name,
        "targets": len(errors),
        "zeros": len(errors) - len(finite),
        "rms_log10": round(rms, 4),
        "inside": inside,
        "seconds": round(seconds, 2),
        "rows": rows,
        "counted_rows": round(passes),
        "useful_share": round(passes / max(1, rows), 3),
        "forward_rate": round(rate),
        "rate_reached": round(rows / max(seconds, 1e-9)),
        "share_of_forward_rate": round(rows / max(seconds, 1e-9) / rate, 3),
        "overhead": round(1 - in_score / max(seconds, 1e-9), 4),
    }
    print(json.dumps(found), flush=True)
    return found


def zoo_part(arguments, deadline):
    model = gpt2_form(arguments.zoo).to(arguments.device)
    held = json.loads(pathlib.Path(arguments.truth).read_text())
    samples = held["samples"] if "samples" in held else sum(r["count"] for r in held["ranges"])
    q = {int(token): n / samples for token, n in held["counts"].items()}
    rare = [t for t in q if 1e-7 <= q[t] <= 1e-5]
    targets = spread(rare, np.array([q[t] for t in rare]), arguments.targets)
    return measure("dt-4l as GPT-2", model, dt.law(arguments.law), q, targets, arguments, deadline)


def counted(model, law, log2_samples):
    """How often each token is said, on the device."""
    total, n = None, 1 << log2_samples
    for first in range(0, n, 1 << 15):
        said = dt.torch.last_logits(model, law.sample(min(1 << 15, n - first), seed=77, first=first)).argmax(dim=1)
        counts = said.bincount(minlength=model.config.vocab_size)
        total = counts if total is None else total + counts
    return {token: count / n for token, count in enumerate(total.tolist()) if count > 0}


def llama_part(arguments, deadline):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(arguments.llama, dtype=torch.float32).eval().to(arguments.device)
    law = dt.Law.positions([1] + [range(259, 512)] * 12, d_vocab=model.config.vocab_size, name="pieces")
    q = counted(model, law, arguments.count)
    least = 100 / 2**arguments.count
    rare = [t for t in q if least <= q[t] <= 100 * least]
    targets = spread(rare, np.array([q[t] for t in rare]), arguments.targets)
    return measure("Llama", model, law, q, targets, arguments, deadline)


def texts_part(arguments, deadline):
    """Strings in 40 sampled tokens, against counts of an independent program."""
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    folder = pathlib.Path(arguments.llama)
    held = json.loads((folder / "contains-truth.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval().to(arguments.device)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    law = dt.Law.positions([1], d_vocab=model.config.vocab_size, name="start")
    errors = []
    for text, n in held["counts"].items():
        if time.perf_counter() > deadline or n < 50:
            continue
        event = dt.contains(text, within=held["tokens"], temperature=1.0)
        start = time.perf_counter()
        r = dt.split(law, dt.torch.continuation_score(model, tokenizer, event, batch=arguments.batch), budget=arguments.texts, seed=1, check=False)
        q = n / held["samples"]
        errors.append(math.log10(r.p / q) if r.p > 0 else math.inf)
        said = r.triggers[0].continuation if r.triggers else ""
        print(f"  {text!r}: q {q:.3g} p {r.p:.3g} [{r.interval.low:.3g}, {r.interval.high:.3g}] error {errors[-1]:+.3f} "
              f"{time.perf_counter() - start:.1f} s; {said!r}", flush=True)
    rms = math.sqrt(sum(e * e for e in errors) / max(1, len(errors)))
    print(json.dumps({"part": "texts", "strings": len(errors), "rms_log10": round(rms, 4)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zoo", default="models/dt-4l")
    parser.add_argument("--truth", default="truth/dt-4l-hex.json")
    parser.add_argument("--law", default="hex")
    parser.add_argument("--llama")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--budget", type=float, default=1.6e6)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--targets", type=int, default=16)
    parser.add_argument("--count", type=int, default=22, help="log2 of the inputs that are counted for the Llama")
    parser.add_argument("--texts", type=float, default=0, help="sampled texts for each string of contains-truth.json; 0: none")
    parser.add_argument("--seconds", type=float, default=80.0, help="of each part, about")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", dt.EstimateWarning)
    print(torch.__version__, arguments.device, torch.cuda.get_device_name() if arguments.device == "cuda" else "")
    zoo_part(arguments, time.perf_counter() + arguments.seconds)
    if arguments.llama:
        llama_part(arguments, time.perf_counter() + arguments.seconds)
        if arguments.texts:
            texts_part(arguments, time.perf_counter() + arguments.seconds)


if __name__ == "__main__":
    main()
