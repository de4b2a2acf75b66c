#!/usr/bin/env python3
"""The first samples of every distribution, computed by other code: plain Python integers and fractions.

    python3 tests/reference/make_input_fixtures.py --distributions distributions --out tests/data/inputs/golden_samples.json
"""

import argparse
import json
import pathlib
from fractions import Fraction

MASK = (1 << 32) - 1
INPUT_STREAM = 1


def philox4x32_10(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK, (a >> 32) ^ c[3] ^ k[1], a & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def uniform64(seed, index, slot):
    w = philox4x32_10([index & MASK, index >> 32, slot // 2, INPUT_STREAM], [seed & MASK, seed >> 32])
    return w[2 * (slot % 2)] | w[2 * (slot % 2) + 1] << 32


def draw(table, u):
    reached = Fraction(0)
    for token, p in zip(table["ids"], table["probabilities"]):
        reached += Fraction(p)  # exact: a double is a fraction
        if Fraction(u, 1 << 64) < reached:
            return token
    raise ValueError("the probabilities do not sum to 1")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--distributions", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    cases = []
    for path in sorted(args.distributions.glob("*.json")):
        dist = json.loads(path.read_text())
        for seed, index in [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (2**64 - 1, 2**40 + 7)]:
            tokens = [draw(dist["tables"][name], uniform64(seed, index, position))
                      for position, name in enumerate(dist["positions"])]
            cases.append({"dist": path.stem, "seed": seed, "index": index, "tokens": tokens})
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
