#!/usr/bin/env python3
"""Makes the truth files of dt-story from what count_story.py counted. Needs plain Python.

    python3 training/story_truth.py --model models/dt-story --counts DATA/counts/counts.json --out truth

truth/dt-story-32.json: texts of 32 tokens, no stop; the same strings within 16 tokens are events of their own. truth/dt-story-32-eos.json: texts that end
with EOS. docs/story.md describes the files.
"""

import argparse
import json
import pathlib

from identity import model_sha256

EOS_ID = 1


def write(path, head, stop, counts, events):
    sampling = {"temperature": 1, "top_k": 0, "top_p": 1, "greedy": False, "stop": stop, "max_tokens": counts["tokens"]}
    ranges = [{"source": "pytorch", "seed": counts["seed"], "first": 0, "count": counts["samples"]}]
    out = {**head, "sampling": sampling, "samples": counts["samples"], "ranges": ranges}
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    text = json.dumps(out)[:-1] + ', "events": [\n' + lines + "\n]}\n"
    json.loads(text)
    path.write_text(text)
    print(f"{path}: {len(events)} events, {sum(event['count'] > 0 for event in events)} seen")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--counts", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    counts = json.loads(args.counts.read_text())
    length = counts["tokens"]
    head = {"format": "deeptail-event-counts-1", "model": args.model.name, "model_sha256": model_sha256(args.model), "law": {"prompt": ""}}

    def events(key, within):
        rows = sorted(zip(counts[key], counts["strings"]), key=lambda row: (-row[0], row[1]))
        return [{"contains": string, "within": within, "count": count} for count, string in rows]

    write(args.out / f"{args.model.name}-{length}.json", head, [], counts, events("all", length) + events("half", length // 2))
    write(args.out / f"{args.model.name}-{length}-eos.json", head, [EOS_ID], counts, events("before_eos", length))


if __name__ == "__main__":
    main()
