#!/usr/bin/env python3
"""Freezes the eight input distributions of the zoo from its tokenizer and token counts. Needs plain Python and numpy.

    python3 training/distributions.py --tokenizer models/tokenizer.json --counts training/token_counts.json --out distributions

README.md says how each one follows the benchmark of Wu and Hilton 2025, and where the small vocabulary asks for another choice.
"""

import argparse
import json
import pathlib
import string

import numpy as np

from distribution_file import sha256_of, write_distribution

LETTERS = set(string.ascii_letters)
CAPS = set(string.ascii_uppercase + ",.?!:;")
HEX = set("0123456789abcdef")


def byte_alphabet():
    """GPT-2's printable stand-in for every byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(others)}}


class Vocabulary:
    def __init__(self, path):
        model = json.loads(path.read_text())["model"]
        self.id_of = model["vocab"]
        self.rank = {tuple(m.split(" ")) if isinstance(m, str) else tuple(m): i for i, m in enumerate(model["merges"])}
        self.char_of = byte_alphabet()
        byte_of = {c: b for b, c in self.char_of.items()}
        self.text = {}  # id -> text, for tokens that are whole UTF-8
        for token, i in self.id_of.items():
            try:
                self.text[i] = bytes(byte_of[c] for c in token).decode()
            except (KeyError, UnicodeDecodeError):
                pass
        self.text.pop(0, None)  # BOS
        self.id_of_text = {text: i for i, text in self.text.items()}

    def encode(self, word):
        """Ids of one pre-token, by merges in order of rank."""
        parts = [self.char_of[b] for b in word.encode()]
        while len(parts) > 1:
            ranks = [self.rank.get(pair, len(self.rank)) for pair in zip(parts, parts[1:])]
            best = min(range(len(ranks)), key=ranks.__getitem__)
            if ranks[best] == len(self.rank):
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        return [self.id_of[p] for p in parts]


def select(vocab, counts, keep, top=None):
    """{id: count} of the tokens seen whose text passes keep, the top most frequent of them."""
    chosen = [i for i, text in vocab.text.items() if counts[i] > 0 and keep(text)]
    chosen.sort(key=lambda i: (-counts[i], i))
    return {i: counts[i] for i in chosen[:top]}


def is_word(text):
    return text[0] == " " and len(text) > 1 and set(text[1:]) <= LETTERS


def hex_frequencies(vocab):
    """Long-run frequencies of the tokens of a random hex string.

    u may follow t iff the text t + u is tokenized as (t, u); a digit is always a token of its own. A token sequence is what BPE
    makes of its text iff all its neighbours may follow each other. So with M[t, u] = 16^-len(u) where u may follow t, and h = M h the
    chance that the text to come leaves t whole, tokens form a chain with steps M[t, u] h[u] / h[t].
    """
    tokens = {i: text for i, text in vocab.text.items() if set(text) <= HEX and vocab.encode(text) == [i]}
    ids = sorted(tokens)

    def may_follow(t, u):
        same_pre_token = tokens[t].isalpha() and tokens[u].isalpha()
        return not same_pre_token or vocab.encode(tokens[t] + tokens[u]) == [t, u]

    M = np.array([[16.0 ** -len(tokens[u]) * may_follow(t, u) for u in ids] for t in ids])
    h, pi = np.ones(len(ids)), np.ones(len(ids)) / len(ids)
    for _ in range(2000):
        h = M @ h
        growth = h.max()
        h /= growth
    assert abs(growth - 1) < 1e-9, growth
    steps = M * h[None, :] / h[:, None]
    for _ in range(2000):
        pi = pi @ steps
    return dict(zip(ids, (pi / pi.sum()).tolist()))


class Builder:
    def __init__(self, vocab, counts):
        self.vocab, self.english, self.spanish, self.code = vocab, counts["english"], counts["spanish"], counts["code"]
        self.id = vocab.id_of_text

    def build(self, name):
        """-> (description, tables without BOS, positions without BOS)."""
        return getattr(self, f"make_{name}")()

    def constant(self, *words):
        """Tables and positions of constant text given as pre-tokens."""
        ids = [i for word in words for i in self.vocab.encode(word)]
        names = [f"token_{i}" for i in ids]
        return {name: {i: 1} for name, i in zip(names, ids)}, names

    def make_hex(self):
        return "32 tokens of a random hex string", {"hex": hex_frequencies(self.vocab)}, ["hex"] * 32

    def make_camel(self):
        keep = lambda s: (len(s) > 1 and set(s) <= LETTERS and s[0].isupper() and s[1:].islower()
                          and s not in ("None", "True", "False"))
        return "32 CamelCase pieces by code counts", {"camel": select(self.vocab, self.code, keep)}, ["camel"] * 32

    def code_top(self):
        return select(self.vocab, self.code, lambda s: True, top=1024)

    def make_colon(self):
        tables, colon = self.constant(":")
        return "32 of the 1024 most frequent code tokens, then ':'", {"code": self.code_top(), **tables}, ["code"] * 32 + colon

    def make_if(self):
        tables, word = self.constant(" if")
        return "' if', then 32 of the 1024 most frequent code tokens", {**tables, "code": self.code_top()}, word + ["code"] * 32

    def make_caps(self):
        tables, screamed = self.constant(" screamed", ":", ' "')
        he_she = {self.id["He"]: 1, self.id["She"]: 1}
        shout = select(self.vocab, self.english, lambda s: len(s) > 1 and set(s.removeprefix(" ")) <= CAPS and s != " ", top=1024)
        return ("He or She, ' screamed: \"', then 16 all-caps tokens by english counts", {"he_she": he_she, **tables, "caps": shout},
                ["he_she"] + screamed + ["caps"] * 16)

    def make_english(self):
        start = select(self.vocab, self.english, lambda s: set(s) <= LETTERS)
        words = select(self.vocab, self.english, lambda s: is_word(s) or s in list(",.!?;"))
        return ("a token of letters, then 24 word tokens or punctuation, by english counts", {"start": start, "word": words},
                ["start"] + ["word"] * 24)

    def make_spanish(self):
        keep = lambda s: s.replace(" ", "").isalpha()
        return "24 tokens of letters by spanish counts", {"spanish": select(self.vocab, self.spanish, keep, top=1024)}, ["spanish"] * 24

    def make_icl(self):
        tables, positions = self.constant(" for")
        letter_for = positions[0]
        positions = []
        for k, letter in enumerate("ARCTHEORY"):
            constant, name = self.constant(letter if k == 0 else f" {letter}")
            words = select(self.vocab, self.english, lambda s: is_word(s) and len(s) > 4 and s[1] == letter.lower())
            words = [i for i in words if self.english[i] > self.spanish[i]]
            tables.update({**constant, f"words_{letter}": dict.fromkeys(words, 1)})
            positions += name + [letter_for, f"words_{letter}"]
        capitals = [self.id[f" {c}"] for c in string.ascii_uppercase if f" {c}" in self.id]
        tables["capital"] = dict.fromkeys(capitals, 1)
        return ("'A for ' word ... 'Y for ' word, then a capital letter and ' for'", tables, positions + ["capital", letter_for])


NAMES = ("hex", "camel", "colon", "if", "caps", "english", "spanish", "icl")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True)
    parser.add_argument("--counts", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    vocab = Vocabulary(args.tokenizer)
    counted = json.loads(args.counts.read_text())
    if counted["tokenizer_sha256"] != sha256_of(args.tokenizer):
        raise SystemExit(f"{args.counts} was counted with another tokenizer than {args.tokenizer}")
    builder = Builder(vocab, counted["counts"])
    args.out.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        description, tables, positions = builder.build(name)
        path = args.out / f"{name}.json"
        write_distribution(path, name, description, len(vocab.id_of), sha256_of(args.tokenizer),
                           {"bos": {0: 1}, **tables}, ["bos"] + positions)
        supports = " ".join(f"{key}:{len(table)}" for key, table in tables.items())
        print(f"{name:8} {len(positions) + 1:2} positions, {path.stat().st_size:6} bytes, {supports}")


if __name__ == "__main__":
    main()
