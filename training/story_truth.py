#!/usr/bin/env python3
"""Makes the truth files of dt-story from what count_story.py counted. Needs plain Python.

    python3 training/story_truth.py --model models/dt-story --counts DATA/counts/counts.json --out truth

truth/dt-story-32.json: texts of 32 tokens, no stop. truth/dt-story-32-eos.json: the same texts, each ending where EOS is drawn.
"""

import argparse
import hashlib
import json
import pathlib

from identity import model_sha256

EOS_ID = 1
PROMPT = ""


def write(path, model, stop, counts, key):
    rows = sorted(zip(counts[key], counts["strings"]), key=lambda row: (-row[0], row[1]))
    out = {"format": "deeptail-event-counts-1", "model": model.name, "law": "prompt", "model_sha256": model_sha256(model),
           "law_sha256": hashlib.sha256(PROMPT.encode()).hexdigest(),
           "sampling": {"temperature": 1.0, "greedy": False, "top_k": 0, "top_p": 1.0, "stop": stop}, "samples": counts["samples"],
           "ranges": [{"source": "pytorch", "seed": counts["seed"], "first": 0, "count": counts["samples"]}],
           "events": [{"event": {"contains": string, "within": counts["tokens"]}, "count": count} for count, string in rows]}
    path.write_text(json.dumps(out, separators=(",", ":"), ensure_ascii=False) + "\n")
    print(f"{path}: {len(rows)} strings, {sum(count > 0 for count, _ in rows)} seen")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--counts", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    counts = json.loads(args.counts.read_text())
    name = f"{args.model.name}-{counts['tokens']}"
    write(args.out / f"{name}.json", args.model, [], counts, "all")
    write(args.out / f"{name}-eos.json", args.model, [EOS_ID], counts, "before_eos")


if __name__ == "__main__":
    main()
