#!/usr/bin/env python3
"""Tokenizers of every kind that models have, small, and what the HuggingFace `tokenizers` library makes of strings.

    python3 tokenizer_kinds.py --out DIR [--strings 65] [--longest 24] [--merges 60] [--real DIR]... [--corpora DIR]

Writes to DIR, for each kind, KIND.json (the tokenizer) and KIND.jsonl: first {"bos": [...]}, the special tokens before a
text; then one {"text": ..., "ids": [...]} a line, ids without special tokens, with "decoded" where decoding them gives
another text. A folder given with --real adds its tokenizer.json files; texts of --corpora (*.txt.xz) are mixed in.
"""

import argparse
import json
import lzma
import pathlib
import random

from make_tokenizer_fixtures import LLAMA3_PATTERN, Strings, training_text

META = "\u2581"
ALPHABET = 90  # characters of a SentencePiece vocabulary; others are bytes
n_merges = 60
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
QWEN2_PATTERN = LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")


def special(content, normalized=False, **flags):
    return {"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": normalized,
            "special": True, **flags}


def plain(content, **flags):
    return special(content, **{"special": False, **flags})


def template(*before, after=()):
    sequence = [{"Sequence": {"id": "A", "type_id": 0}}]
    piece = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
    single = [piece(name) for name in before] + sequence + [piece(name) for name in after]
    return {"type": "TemplateProcessing", "single": single, "pair": single + [{"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {name: {"id": name, "ids": [name], "tokens": [name]} for name in {*before, *after}}}


def document(model, added, **parts):
    """A tokenizer.json; added tokens that are no entries get the next ids."""
    vocab, added_tokens, free = model["vocab"], [], max(model["vocab"].values()) + 1
    for token in added:
        known = token["content"] in vocab
        added_tokens.append({"id": vocab[token["content"]] if known else free, **token})
        free += not known
    ids = {token["content"]: token["id"] for token in added_tokens}
    text = json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": added_tokens,
                       "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None, **parts,
                       "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                                 "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                                 "ignore_merges": False, **model}})
    spec = json.loads(text)

    def resolve(node):
        for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
            resolve(value)
        if isinstance(node, dict) and "ids" in node:
            node["ids"] = [ids[name] for name in node["ids"]]
    if spec["post_processor"]:
        resolve(spec["post_processor"])
    return spec


def train(pre_tokenizer, specials, alphabet, **options):
    from tokenizers import Tokenizer, models, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    size = len(specials) + max(len(alphabet), ALPHABET) + n_merges
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, special_tokens=specials, show_progress=False,
                                  initial_alphabet=sorted(alphabet), **options)
    tokenizer.train_from_iterator(training_text(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return {"vocab": model["vocab"], "merges": model["merges"]}


def pieces(specials=("<unk>", "<s>", "</s>"), byte_tokens=BYTES):
    from tokenizers import pre_tokenizers
    return train(pre_tokenizers.Metaspace(), [*specials, *byte_tokens], [META], limit_alphabet=ALPHABET)


def byte_level(specials, digits=True):
    from tokenizers import pre_tokenizers as p
    chain = p.Sequence([p.Digits(individual_digits=True), p.ByteLevel(add_prefix_space=False)]) if digits else \
        p.ByteLevel(add_prefix_space=False)
    return train(chain, specials, p.ByteLevel.alphabet())


def sequence(key, *parts):
    return {"type": "Sequence", key: list(parts)}


REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": META}
PREPEND = {"type": "Prepend", "prepend": META}
LLAMA_DECODER = sequence("decoders", {"type": "Replace", "pattern": {"String": META}, "content": " "},
                         {"type": "ByteFallback"}, {"type": "Fuse"},
                         {"type": "Strip", "content": " ", "start": 1, "stop": 0})
GEMMA_DECODER = sequence("decoders", *LLAMA_DECODER["decoders"][:3])
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BYTES_ONLY = {**BYTE_LEVEL, "use_regex": False}
LLAMA_ADDED = [special("<unk>"), special("<s>"), special("</s>")]


def split(pattern, behavior="Isolated", kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": False}


def metaspace(scheme, **more):
    return {"type": "Metaspace", "replacement": META, "prepend_scheme": scheme, **more}


def make_llama2():
    model = {**pieces(), "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    model["merges"] = [" ".join(pair) for pair in model["merges"]]
    added = LLAMA_ADDED + [plain("<|user|>", rstrip=True), plain("[INST]", normalized=True), plain("ab", normalized=True)]
    return document(model, added, normalizer=sequence("normalizers", PREPEND, REPLACE), post_processor=template("<s>"),
                    decoder=LLAMA_DECODER)


def make_metaspace(scheme, bytes_known=BYTES, **more):
    model = {**pieces(byte_tokens=bytes_known), "unk_token": "<unk>", "byte_fallback": True}
    step = metaspace(scheme, **more)
    return document(model, LLAMA_ADDED + [plain("two words", lstrip=True)], pre_tokenizer=step,
                    post_processor=template("<s>", after=["</s>"]), decoder={**step})


def make_metaspace_old():
    spec = make_metaspace("always")
    for part in ("pre_tokenizer", "decoder"):
        del spec[part]["prepend_scheme"]
        spec[part]["add_prefix_space"] = True
    return spec


def make_gemma():
    model = {**pieces(("<pad>", "<eos>", "<bos>", "<unk>")), "unk_token": "<unk>", "fuse_unk": True,
             "byte_fallback": True}
    added = [special(t) for t in ("<pad>", "<eos>", "<bos>", "<unk>")] + [plain(t) for t in
                                                                         ("\n\n", META * 2, META * 3, "<h1>")]
    return document(model, added, normalizer=REPLACE, pre_tokenizer=split(" ", "MergedWithPrevious", "String"),
                    post_processor=template("<bos>"), decoder=GEMMA_DECODER)


def make_unknown(fuse, byte_tokens=()):
    model = {**pieces(byte_tokens=byte_tokens), "unk_token": "<unk>", "fuse_unk": fuse,
             "byte_fallback": bool(byte_tokens)}
    return document(model, LLAMA_ADDED, pre_tokenizer=metaspace("always"), decoder=metaspace("always"))


def make_regex():
    """Normalizers with regular expressions, a chain before Metaspace."""
    model = {**pieces(), "unk_token": "<unk>", "byte_fallback": True}
    rewrite = sequence("normalizers", {"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": r"\s{2,}"}, "content": " "},
                       {"type": "Replace", "pattern": {"Regex": r"``|''"}, "content": "\""})
    chain = sequence("pretokenizers", split(r"\p{N}"), metaspace("always"))
    return document(model, LLAMA_ADDED + [plain("caf\u00e9", normalized=True)], normalizer=rewrite, pre_tokenizer=chain,
                    decoder=metaspace("always"))


def make_first():
    """Only what the text begins with gets a prefix, wherever it is cut."""
    spec = make_metaspace("first")
    spec["normalizer"] = sequence("normalizers", {"type": "NFC"}, {**REPLACE, "content": "_"})
    spec["pre_tokenizer"] = sequence("pretokenizers", split(r"\p{N}|_"), metaspace("first"))
    return spec


def make_llama3():
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
    model = {**byte_level([], digits=False), "ignore_merges": True}
    for word in ["\u0120probability", "\u0120expected", "n_samples", "argmax"]:
        model["vocab"].setdefault(word, len(model["vocab"]))
    return document(model, [special(name) for name in names],
                    pre_tokenizer=sequence("pretokenizers", split(LLAMA3_PATTERN), BYTES_ONLY),
                    post_processor=sequence("processors", BYTE_LEVEL, template(names[0])), decoder=BYTE_LEVEL)


def make_qwen2():
    added = [special(t) for t in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")] + [plain("<tool_call>")]
    return document(byte_level([]), added, normalizer={"type": "NFC"},
                    pre_tokenizer=sequence("pretokenizers", split(QWEN2_PATTERN), BYTES_ONLY), post_processor=BYTE_LEVEL,
                    decoder=BYTE_LEVEL)


def make_smollm2():
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>"]
    digits = {"type": "Digits", "individual_digits": True}
    return document(byte_level(names), [special(name) for name in names],
                    pre_tokenizer=sequence("pretokenizers", digits, BYTE_LEVEL), decoder=BYTE_LEVEL)


def make_neox():
    runs = [plain(" " * n, normalized=True) for n in range(2, 8)]
    return document(byte_level(["<|endoftext|>", "<|padding|>"], digits=False),
                    [special("<|endoftext|>"), special("<|padding|>"), *runs], normalizer={"type": "NFC"},
                    pre_tokenizer=BYTE_LEVEL, post_processor=BYTE_LEVEL, decoder=BYTE_LEVEL)


KINDS = {
    "llama2": make_llama2,
    "metaspace-always": lambda: make_metaspace("always"),
    "metaspace-first": lambda: make_metaspace("first", split=False),
    "metaspace-first-piece": make_first,
    "metaspace-never": lambda: make_metaspace("never", split=True),
    "metaspace-old": make_metaspace_old,
    "gemma": make_gemma,
    "unknown": lambda: make_unknown(False),
    "unknown-fused": lambda: make_unknown(True),
    "unknown-some-bytes": lambda: make_unknown(True, BYTES[0xC3:0xE3]),
    "regex": make_regex,
    "llama3": make_llama3,
    "qwen2": make_qwen2,
    "smollm2": make_smollm2,
    "neox": make_neox,
}


class Texts:
    """Strings for one tokenizer: those of make_tokenizer_fixtures, its added tokens, and lines of the corpora."""

    def __init__(self, seed, spec, corpora):
        self.rng, self.strings, self.corpora = random.Random(seed), Strings(seed), corpora
        self.added = [token["content"] for token in spec["added_tokens"]] + [META, "<0x41>", "<0xZZ>", "<0xe9>"]

    def around_added(self):
        glue = ["", " ", "  ", "\n", "a", ".", "hello", " world", "\u00e9", META]
        return "".join(self.rng.choice(glue) + self.rng.choice(self.added) for _ in range(self.rng.randint(1, 4))) + \
            self.rng.choice(glue)

    def of_corpora(self):
        text = self.rng.choice(self.corpora)
        start = self.rng.randrange(len(text))
        return text[start:start + self.rng.randint(1, 200)]

    def long(self): return self.rng.choice(["a", " ", "ab", "\u00e9", "x1 ", "\n"]) * self.rng.randint(20, 80)

    def make(self, count, longest):
        kinds = [self.around_added] + [self.of_corpora] * (2 if self.corpora else 0)
        base = iter(self.strings.make(min(count, 8000)))
        texts = {"": None, " ": None, "\u00e9x": None}
        while len(texts) < count:
            kind = self.rng.randrange(7)
            text = next(base, None) if kind < 4 else self.long() if kind == 4 and len(texts) % 4 == 0 else self.rng.choice(kinds)()
            texts[(text or self.around_added())[:longest]] = None
        return list(texts)


def write_strings(path, spec, texts):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    around = tokenizer.encode("", add_special_tokens=True).ids
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        def line(entry):
            json.dump(entry, out, ensure_ascii=False, separators=(",", ":"))
            out.write("\n")
        after = 1 if "</s>" in json.dumps((spec["post_processor"] or {}).get("single", "")) else 0
        line({"bos": around[:len(around) - after]})
        for text in texts:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            decoded = tokenizer.decode(ids, skip_special_tokens=False)
            line({"text": text, "ids": ids, **({} if decoded == text else {"decoded": decoded})})
    return tokenizer.get_vocab_size()


def read_corpora(folder):
    texts = []
    for path in sorted(pathlib.Path(folder).glob("*.txt.xz")):
        with lzma.open(path, "rt", encoding="utf-8", errors="replace") as file:
            texts.append(file.read(1 << 22).replace("\ufffd", ""))
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--strings", type=int, default=65)
    parser.add_argument("--longest", type=int, default=24, help="characters of a string")
    parser.add_argument("--merges", type=int, default=n_merges, help="of each vocabulary, about")
    parser.add_argument("--real", action="append", default=[], type=pathlib.Path)
    parser.add_argument("--corpora")
    args = parser.parse_args()
    globals()["n_merges"] = args.merges
    args.out.mkdir(parents=True, exist_ok=True)
    specs = {name: make() for name, make in KINDS.items()}
    for folder in args.real:
        for path in sorted(folder.rglob("tokenizer.json")):
            specs[path.parent.name] = json.loads(path.read_text(encoding="utf-8"))
    corpora = read_corpora(args.corpora) if args.corpora else []
    for seed, (name, spec) in enumerate(specs.items()):
        with open(args.out / f"{name}.json", "w", encoding="utf-8") as out:
            json.dump(spec, out, ensure_ascii=False, separators=(",", ":"))
            out.write("\n")
        n = write_strings(args.out / f"{name}.jsonl", spec, Texts(seed, spec, corpora).make(args.strings, args.longest))
        print(f"{name}: {args.strings} strings, {n} tokens")


if __name__ == "__main__":
    main()
