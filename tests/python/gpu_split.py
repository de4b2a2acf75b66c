"""deeptail.split_many with models of transformers on a GPU, against counted truth; how much of the time is the model's.

    python3 tests/python/gpu_split.py --zoo models/dt-4l --truth truth/dt-4l-hex.json [--llama FOLDER] [--device cuda]

Parts: dt-4l as a GPT-2 on hex, 16 rare tokens with counted truth; a Llama on a law of its own tokens, 16 tokens that are
counted first; strings in sampled texts of the Llama. For the first two: the rms error of log10 p (bar 0.15), the share of
the device's own forward rate that the run reaches in useful rows, copies that fill batches not counted (bar 1/2), and the
share of the time that is spent outside the score (bar 10 %).
"""

import argparse
import json
import math
import pathlib
import re
import sys
import time
import warnings

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import deeptail as dt
from deeptail.torch import graphs
from gpt2_form import gpt2_form

SIZES = (512, 1024, 2048, 4096, 8192)


class Timed:
    """A score whose time is measured; the device is waited for, as the caller has to."""

    def __init__(self, given):
        self._given, self.seconds, self.rows, self.calls = given, 0.0, 0, 0

    def __call__(self, tokens, lengths, which):
        start = time.perf_counter()
        found = self._given(tokens, lengths, which=which).double().numpy()
        self.seconds += time.perf_counter() - start
        self.rows += len(tokens)
        self.calls += 1
        return found


def synchronise(model):
    if next(model.parameters()).is_cuda:
        torch.cuda.synchronize()


def rate_at(model, logits, tokens):
    """Rows a second of the model alone, on a batch that lies on the device already."""
    device = next(model.parameters()).device
    rows, calls = torch.as_tensor(tokens, device=device).long(), 20 if device.type == "cuda" else 1
    logits(rows)
    synchronise(model)
    start = time.perf_counter()
    for _ in range(calls):
        logits(rows)
    synchronise(model)
    return calls * len(rows) / (time.perf_counter() - start)


def forward_rates(model, law, arguments):
    """By batch, kernel by kernel and by a CUDA graph."""
    sizes = (1024, 2048, 4096, 8192) if arguments.device == "cuda" else (64, 256)
    captured = dt.torch.CapturedLogits(model)
    rates = {f"{n}": round(rate_at(model, lambda rows: dt.torch.last_logits(model, rows), law.sample(n))) for n in sizes}
    rates.update({f"{n} captured": round(rate_at(model, captured, law.sample(n))) for n in sizes})
    print("  forward rates:", rates, " graphs:", sum(g is not None for g in captured._graphs.values()), flush=True)
    return rates


def spread(tokens, q, count):
    """count of these tokens, evenly over log q."""
    order = np.argsort(q)
    return [int(tokens[order[k]]) for k in np.unique(np.linspace(0, len(order) - 1, count).astype(int))]


def tell_errors(name, targets, truth, answers):
    errors = []
    for target, r in zip(targets, answers):
        q = truth[target]
        error = math.log10(r.p / q) if r.p > 0 else -math.inf
        inside = r.interval.low <= q <= r.interval.high
        errors.append((error, inside))
        print(f"  {name} {target!r}: q {q:.3g} p {r.p:.3g} [{r.interval.low:.3g}, {r.interval.high:.3g}] error {error:+.3f} "
              f"{'' if inside else 'OUTSIDE '}{r.guarantee}", flush=True)
    finite = [e for e, _ in errors if math.isfinite(e)]
    return {
        "targets": len(errors),
        "zeros": len(errors) - len(finite),
        "rms_log10": round(math.sqrt(sum(e * e for e in finite) / max(1, len(finite))), 4),
        "mean_log10": round(sum(finite) / max(1, len(finite)), 4),
        "inside": sum(i for _, i in errors),
    }


def measure(name, model, law, truth, targets, rates, batch, budget, seed):
    """All targets at once, on one device."""
    given = dt.torch.margin_scores(model, targets)
    for n in [batch] if isinstance(batch, int) else batch:  # graphs are captured once, before the clock runs
        given(law.sample(n), None, which=np.zeros(n, np.int32))
    timed = Timed(given)
    synchronise(model)
    start = time.perf_counter()
    answers = dt.split_many(law, dt.score(batch=batch, name=name)(timed), [f"says {t}" for t in targets], budget=budget, seed=seed)
    seconds = time.perf_counter() - start
    useful = sum(r.cost.forward_equivalents for r in answers)
    best = max(rates.values())
    found = {
        "part": name,
        "batch": batch,
        "budget": budget,
        "seed": seed,
        **tell_errors(name, targets, truth, answers),
        "seconds": round(seconds, 2),
        "calls": timed.calls,
        "rows": timed.rows,
        "useful_share": round(useful / max(1, timed.rows), 3),
        "best_forward_rate": best,
        "useful_rate": round(useful / seconds),
        "useful_share_of_forward_rate": round(useful / seconds / best, 3),
        "share_of_forward_rate": round(timed.rows / seconds / best, 3),
        "overhead": round(1 - timed.seconds / seconds, 4),
    }
    print(json.dumps(found), flush=True)


def measure_all(name, model, law, truth, targets, arguments):
    rates = forward_rates(model, law, arguments)
    for seed, batch in ((1, arguments.batch), (2, list(SIZES))):
        measure(name, model, law, truth, targets, rates, batch, arguments.budget, seed)


def zoo_part(arguments):
    model = gpt2_form(arguments.zoo).to(arguments.device)
    held = json.loads(pathlib.Path(arguments.truth).read_text())
    samples = held["samples"] if "samples" in held else sum(r["count"] for r in held["ranges"])
    q = {int(token): n / samples for token, n in held["counts"].items()}
    rare = [t for t in q if 1e-7 <= q[t] <= 1e-5]
    targets = spread(rare, np.array([q[t] for t in rare]), arguments.targets)
    measure_all("dt-4l as GPT-2", model, dt.law(arguments.law), q, targets, arguments)


def counted(model, law, log2_samples):
    """How often each token is said, on the device."""
    total, n = None, 1 << log2_samples
    for first in range(0, n, 1 << 15):
        said = dt.torch.last_logits(model, law.sample(min(1 << 15, n - first), seed=77, first=first)).argmax(dim=1)
        counts = said.bincount(minlength=model.config.vocab_size)
        total = counts if total is None else total + counts
    return {token: count / n for token, count in enumerate(total.tolist()) if count > 0}


def llama_of(arguments):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(arguments.llama, dtype=torch.float32).eval().to(arguments.device)


def llama_part(arguments):
    model = llama_of(arguments)
    law = dt.Law.positions([1] + [range(259, 512)] * 12, d_vocab=model.config.vocab_size, name="pieces")
    start = time.perf_counter()
    q = counted(model, law, arguments.count)
    print(f"  counted 2^{arguments.count} in {time.perf_counter() - start:.1f} s", flush=True)
    least = 100 / 2**arguments.count
    rare = [t for t in q if least <= q[t] <= 100 * least]
    targets = spread(rare, np.array([q[t] for t in rare]), arguments.targets)
    measure_all("Llama", model, law, q, targets, arguments)


def stops_after(seconds):
    """A watcher that ends the work: what is known by then is told."""
    end = time.perf_counter() + seconds
    return lambda done, total: time.perf_counter() < end


def as_regex(text):
    """The same texts, said otherwise."""
    return re.escape(text[:2]).replace("\\ ", " ") + "".join(f"[{c}]" if c.isalpha() else c for c in text[2:])


def texts_part(arguments):
    """Strings in 40 sampled tokens, as they are and as regular expressions, against counts of an independent program."""
    from transformers import PreTrainedTokenizerFast

    folder = pathlib.Path(arguments.llama)
    held = json.loads((folder / "contains-truth.json").read_text())
    model, tokenizer = llama_of(arguments), PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    law = dt.Law.positions([1], d_vocab=model.config.vocab_size, name="start")
    q = {text: n / held["samples"] for text, n in held["counts"].items() if n >= 50}
    texts = {("contains", text): value for text, value in list(q.items())[::2]}
    texts.update({("matches", text): value for text, value in list(q.items())[::4]})
    how = {"within": held["tokens"], "temperature": 1.0}
    events = [dt.contains(t, **how) if kind == "contains" else dt.matches(as_regex(t), **how) for kind, t in texts]
    given = dt.torch.continuation_scores(model, tokenizer, events, batch=arguments.text_batch)
    names = [f"{kind} {text}" for kind, text in texts]
    start = time.perf_counter()
    answers = dt.split_many(law, given, names, budget=arguments.texts, seed=1, check=False, moves=6, progress=stops_after(arguments.seconds))
    if not answers:
        return print("  the time was too short for any answer")
    told = max((r.to_dict()["diagnostics"] for r in answers), key=lambda d: d["scored_rows"])
    by_name = {r.event: r for r in answers}
    for kind in ("contains", "matches"):
        there = [text for k, text in texts if k == kind and f"{kind} {text}" in by_name]
        found = tell_errors(kind, there, q, [by_name[f"{kind} {text}"] for text in there])
        print(json.dumps({"part": kind, "texts": arguments.texts, **found}), flush=True)
    padded = told["padded_rows"] / (told["padded_rows"] + told["scored_rows"])
    print(json.dumps({"part": "texts", "seconds": round(time.perf_counter() - start, 1), "scored": told["scored_rows"],
                      "batches": told["batches"], "padded": round(padded, 3), "seconds_scoring": round(told["seconds_scoring"], 1)}), flush=True)
    for r in list(answers)[:14:3]:
        if r.triggers:
            print(f"    {r.event!r}: {r.triggers[0].continuation!r}", flush=True)
    judge_part(model, tokenizer, law, held, q, arguments)


def judge_part(model, tokenizer, law, held, q, arguments):
    """A judge that says how much of a word is in the text."""
    word = " castle"
    near = lambda prompts, said: [max(k for k in range(len(word) + 1) if word[:k] in s) - len(word) for s in said]
    start = time.perf_counter()
    given = dt.torch.continuation_score(model, tokenizer, near, held["tokens"], batch=512)
    try:
        r = dt.split(law, given, budget=arguments.texts / 6, seed=1, check=False, moves=4, progress=stops_after(arguments.seconds / 4))
    except dt.Stopped as error:
        return print("  judge:", error)
    print(json.dumps({"part": "judge", **tell_errors("judge", [word], q, [r]), "seconds": round(time.perf_counter() - start, 1)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zoo", default="models/dt-4l")
    parser.add_argument("--truth", default="truth/dt-4l-hex.json")
    parser.add_argument("--law", default="hex")
    parser.add_argument("--llama")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--budget", type=float, default=6e5, help="scored rows of each token")
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--text-batch", type=int, default=2048)
    parser.add_argument("--targets", type=int, default=16)
    parser.add_argument("--count", type=int, default=24, help="log2 of the inputs that are counted for the Llama")
    parser.add_argument("--texts", type=float, default=0, help="sampled texts for each string of contains-truth.json; 0: none")
    parser.add_argument("--seconds", type=float, default=1e6, help="of the texts, about")
    parser.add_argument("--eager", action="store_true", help="no CUDA graphs")
    parser.add_argument("--parts", default="zoo,llama,texts")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", dt.EstimateWarning)
    if arguments.eager:
        graphs.MOST_SHAPES = 0
    print(torch.__version__, arguments.device, torch.cuda.get_device_name() if arguments.device == "cuda" else "")
    if "zoo" in arguments.parts:
        zoo_part(arguments)
    if arguments.llama and "llama" in arguments.parts:
        llama_part(arguments)
    if arguments.llama and "texts" in arguments.parts and arguments.texts:
        texts_part(arguments)


if __name__ == "__main__":
    main()
