#!/usr/bin/env python3
"""Prints what the truth files hold, and whether every distribution has enough rare tokens. Needs plain Python.

    python3 training/truth_table.py --truth truth
"""

import argparse
import json
import math
import pathlib

DECADES = range(-9, 0)  # a token in decade k has 10^k <= q < 10^(k+1)
ENOUGH = 40


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=pathlib.Path, required=True)
    rare = {}
    print(f"{'pair':14} {'samples':>7} {'seen':>5} {'rare':>5}  " + " ".join(f"1e{k}".rjust(5) for k in DECADES))
    for path in sorted(parser.parse_args().truth.glob("*.json")):
        truth = json.loads(path.read_text())
        if truth["format"] != "deeptail-truth-1":  # counts of texts, not of tokens
            continue
        q = [count / truth["samples"] for count in truth["counts"].values()]
        per_decade = [sum(math.floor(math.log10(x) + 1e-12) == k or (k == -1 and x == 1) for x in q) for k in DECADES]
        n_rare = sum(1e-7 <= x <= 1e-5 for x in q)
        rare.setdefault(truth["dist"], []).append(n_rare)
        print(f"{path.stem:14} {'2^' + str(int(math.log2(truth['samples']))):>7} {len(q):5} {n_rare:5}  "
              + " ".join(f"{n:5}" for n in per_decade))
    for dist, numbers in rare.items():
        if sum(n >= ENOUGH for n in numbers) < 2:
            print(f"{dist}: fewer than {ENOUGH} tokens in [1e-7, 1e-5] in two of the models: {numbers}")


if __name__ == "__main__":
    main()
