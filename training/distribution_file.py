"""The frozen distribution file: tables of (ids, probabilities), the table of each position. Probabilities are k * 2^-32."""

import hashlib
import json

TOTAL = 1 << 32


def alias_table(weights):
    """-> ([(threshold, primary, alias)] of 2^k buckets, shift): exact for integer weights that sum to 2^32.

    A 32-bit word r falls into bucket r >> shift; its other bits decide: below threshold -> primary, else alias.
    """
    log2 = max(0, (len(weights) - 1).bit_length())
    shift = 32 - log2
    capacity = 1 << shift
    left = list(weights) + [0] * ((1 << log2) - len(weights))
    buckets = [None] * len(left)
    small = [i for i, w in enumerate(left) if w < capacity]
    large = [i for i, w in enumerate(left) if w >= capacity]
    while small:
        i, j = small.pop(), large[-1]
        buckets[i] = (left[i], i if i < len(weights) else j, j)
        left[j] -= capacity - left[i]
        if left[j] < capacity:
            small.append(large.pop())
    for j in large:
        buckets[j] = (capacity, j, j)
    return buckets, shift


def read_distribution(path):
    """As written, with each table's exact integer "weights" beside its probabilities."""
    dist = json.loads(path.read_text())
    for name, table in dist["tables"].items():
        weights = [int(p * TOTAL) for p in table["probabilities"]]
        if [w / TOTAL for w in weights] != table["probabilities"] or sum(weights) != TOTAL or min(weights) < 1:
            raise ValueError(f"{path}: table {name} is not made of positive multiples of 2^-32 that sum to 1")
        if table["ids"] != sorted(set(table["ids"])) or not 0 <= table["ids"][0] <= table["ids"][-1] < dist["d_vocab"]:
            raise ValueError(f"{path}: table {name} has ids that repeat, descend or lie outside the vocabulary")
        table["weights"] = weights
    if dist["tables"][dist["positions"][0]]["ids"] != [0]:
        raise ValueError(f"{path}: position 0 is not BOS")
    return dist


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
