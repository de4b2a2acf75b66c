#!/usr/bin/env python3
"""Makes the tokenizer fixtures with the HuggingFace `tokenizers` library (0.20 or newer).

    python3 make_tokenizer_fixtures.py --out DIR [--real DIR_WITH_TOKENIZER_FOLDERS]

Writes to DIR, eight files at most:
    digits.json, split.json, nfc.json             three small tokenizers, trained here
    {digits,split,nfc}.jsonl                      one {"text": ..., "ids": [...]} a line, ids without special tokens added
    {gpt2,gpt-neox-digits}.jsonl                  the same for REAL/*gpt2*/tokenizer.json and REAL/*neox*/tokenizer.json
2,000 strings for each tokenizer. Only code points whose category has not changed since Unicode 3.2, or that are in blocks
settled before Unicode 14, are used, so that libraries with different Unicode versions agree on them.
"""

import argparse
import inspect
import json
import pathlib
import random
import unicodedata

STRINGS_PER_TOKENIZER = 2000

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

ENGLISH = """The probability of a rare event is small, but it isn't zero. We've seen models say things that nobody
expected; they'll say them again. I'm not sure you'd notice: it's one input in a billion. Don't stop at the first answer,
he's told us, because the second is often better (and the third "better still"). How likely is that? Let's count!"""

SPANISH = """El niño comió una manzana y después bebió agua. ¿Dónde está la estación más cercana? ¡Qué día tan bonito!
La información según el señor Peña: pingüinos, camión, corazón, útil, él, sí, mañana, años, vergüenza, Córdoba."""

CODE = """def estimate(model, tokens, n_samples=1024):
    \"\"\"Counts how often argmax(model(x)) == target.\"\"\"
    hits = 0
    for i in range(n_samples):
        if model.logits(tokens[i])[-1].argmax() == 0x1F:
            hits += 1  # counted
    return hits / n_samples

template <class T> struct Batch { std::size_t n_rows = 0; T* data{nullptr}; };
int main(int argc, char** argv) { return argc > 1 ? 0 : -1; }
	if (a->b != c && d >= 10e-3) { printf("%d\\n", x[i]); }
{"key": [1, 2.5, null, true], "path": "C:\\\\dir\\\\file.txt"}"""

OTHER = """我想在苹果工作。今天天气很好，我们去公园吧！ 日本語のテキスト、カタカナ、ひらがな。 한국어 문장도 있습니다.
Привет, мир! Это проверка. Γειά σου Κόσμε. שלום עולם מה שלומך مرحبا بالعالم كيف حالك नमस्ते दुनिया สวัสดีชาวโลก
Việt Nam, Cửa hàng, Äpfel, façade, naïve café, œuvre, smørrebrød, İstanbul, straße, ½ ¼ ² ³ ① Ⅷ ٣٤٥ ۶۷ १२३"""

EMOJI = ["😀", "🚀", "🦙", "✅", "❤️", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇪🇸", "😶‍🌫️", "1️⃣", "☂"]
SPACES = [" ", "  ", "   ", "    ", "\n", "\n\n", "\r\n", "\t", " \n ", "\n    ", "\t\t", "\u00a0", "\u2003", "\u3000",
          "\u200b", "\u2028", "\u1680", "\u180e", "\u0085", "\x0b", "\x0c", "\ufeff"]
COMBINING = ["\u0301", "\u0300", "\u0308", "\u0303", "\u0327", "\u0323", "\u0302", "\u0331", "\u093c", "\u3099", "\u0345"]
HANGUL = ["\u1100", "\u1161", "\u11a8", "\uac00", "\u1112", "\u1175", "\u11c2"]
SINGLETONS = ["\u212b", "\u2126", "\u212a", "\u0344", "\uf900", "\u0958", "\ufb1d", "\u1fbe", "\u2adc", "\U0001d15e"]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'lL", "'\u017f", "''s", "' s", "\u2019s"]
ADDED = [
    # content, special, normalized, lstrip, rstrip, single_word
    ("<|bos|>", True, False, False, False, False),
    ("<|mask|>", True, False, True, False, False),
    ("<|sep|>", True, False, False, True, False),
    ("<|both|>", True, False, True, True, False),
    ("<|norm\u00e9|>", True, True, False, False, False),
    ("caf\u00e9", False, True, False, False, False),
    ("e\u0301tude", False, True, False, False, True),
    ("na\u0131\u0308ve", False, False, False, False, False),
    ("token", False, True, False, False, True),
    ("two words", False, True, True, True, True),
    ("ab", False, False, False, False, False),
    ("abc", False, False, False, False, False),
    ("bcd", False, True, False, True, False),
    ("\u00a7", False, False, True, False, True),
]
ADDED_TEXTS = [entry[0] for entry in ADDED] + ["<|endoftext|>", "<|EOS|>", "<|BOS|>", "cafe\u0301", "\u00e9tude", "tokens",
                                               "_token", "<|norme\u0301|>", "<|mask|", "two  words", "abcd"]


def stable_code_points():
    """Code points on which every Unicode version from 3.2 (a few later blocks: from 13) agrees."""
    old = unicodedata.ucd_3_2_0
    pool = [c for c in range(0x110000)
            if not 0xD800 <= c <= 0xDFFF and old.category(chr(c)) not in ("Cn", "Co")
            and old.category(chr(c)) == unicodedata.category(chr(c))]
    bmp = [c for c in pool if c < 0x10000]
    later = [range(0x1F600, 0x1F640), range(0x2A700, 0x2B734), range(0x2B740, 0x2B81D), range(0x2B820, 0x2CEA1),
             range(0x30000, 0x3134A), range(0x12000, 0x1236E), range(0x1F300, 0x1F320)]
    private = [range(0xE000, 0xF8FF), range(0xF0000, 0xFFFFD), range(0x100000, 0x10FFFD)]
    unassigned = [range(p << 16, (p << 16) + 0xFFFE) for p in range(4, 14)]
    noncharacters = [(p << 16) + low for p in range(17) for low in (0xFFFE, 0xFFFF)] + list(range(0xFDD0, 0xFDF0))
    by_plane = [[c for c in pool if c >> 16 == p] for p in (1, 2, 14)]
    return [bmp, *by_plane, *later, *private, *unassigned, noncharacters], bmp


class Strings:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.groups, self.bmp = stable_code_points()
        self.kinds = [self.english, self.code, self.spanish, self.other, self.combining, self.emoji, self.digits,
                      self.whitespace, self.control, self.random_points, self.random_bmp, self.added, self.contraction,
                      self.repeats, self.mixed, self.mixed]

    def slice_of(self, text, most):
        start = self.rng.randrange(len(text))
        return text[start:start + self.rng.randint(1, most)]

    def english(self): return self.slice_of(ENGLISH, 40)
    def code(self): return self.slice_of(CODE, 40)
    def spanish(self): return self.slice_of(SPANISH, 32)
    def other(self): return self.slice_of(OTHER, 16)

    def combining(self):
        pieces = "aeiouncAEOs\u00e9\u00f1\u00fc\u1ea1 \u304b\u0928\u3046" + "".join(HANGUL) + "".join(SINGLETONS)
        return "".join(self.rng.choice(pieces) + "".join(self.rng.choices(COMBINING, k=self.rng.randint(0, 3)))
                       for _ in range(self.rng.randint(1, 5)))

    def emoji(self): return "".join(self.rng.choices(EMOJI + [" ", "a", "\u200d", "\ufe0f"], k=self.rng.randint(1, 4)))

    def digits(self):
        return "".join(self.rng.choices(["0", "7", "42", "1314151", " 3", ".", ",", "x", "\u00b2", "\u2167", "\u0663", "\u00bd",
                                         "\u2460", " ", "\u4e09", "9999"], k=self.rng.randint(1, 7)))

    def whitespace(self):
        words = ["a", "Hello", "x1", "(", "\u00e9", "7"]
        return "".join(self.rng.choice(self.rng.choice([SPACES, SPACES, words])) for _ in range(self.rng.randint(1, 9)))

    def control(self):
        return "".join(self.rng.choice([chr(self.rng.randrange(32)), "\x00", "\x7f", chr(self.rng.randrange(0x80, 0xA0)),
                                        "ok", " "]) for _ in range(self.rng.randint(1, 9)))

    def random_points(self):
        return "".join(chr(self.rng.choice(self.rng.choice(self.groups))) for _ in range(self.rng.randint(1, 6)))

    def random_bmp(self): return "".join(chr(self.rng.choice(self.bmp)) for _ in range(self.rng.randint(1, 9)))

    def added(self):
        glue = ["", "", " ", "  ", "\n", "a", "_", ".", "\u00a0", "\u0301", "hello", "7", "\u200d", "\t"]
        return "".join(self.rng.choice(glue) + self.rng.choice(ADDED_TEXTS) + self.rng.choice(glue)
                       for _ in range(self.rng.randint(1, 3)))

    def contraction(self):
        return "".join(self.rng.choice(["I", "we", " they", "1", ".", " ", ""]) + self.rng.choice(CONTRACTIONS)
                       for _ in range(self.rng.randint(1, 4)))

    def repeats(self): return self.rng.choice("aA=-.\n 0\u00e9\u4e00'") * self.rng.randint(2, 60)

    def mixed(self):
        kinds = self.rng.choices(self.kinds[:-2], k=self.rng.randint(2, 3))
        return "".join(kind()[:self.rng.randint(1, 14)] for kind in kinds)

    def make(self, count):
        texts, seen = ["", " ", "\n", "\x00"], {"", " ", "\n", "\x00"}
        while len(texts) < count:
            text = self.kinds[len(texts) % len(self.kinds)]()
            if text not in seen:
                seen.add(text)
                texts.append(text)
        return texts


def training_text():
    import ast
    import bisect
    import heapq
    import textwrap
    sources = [inspect.getsource(module) for module in (textwrap, bisect, heapq, ast)]
    return [line for text in [ENGLISH, SPANISH, CODE, OTHER] * 3 + sources for line in text.splitlines(keepends=True)]


def train(tokenizer, special):
    from tokenizers import pre_tokenizers, trainers
    trainer = trainers.BpeTrainer(vocab_size=1000, min_frequency=2, special_tokens=special, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(training_text(), trainer)
    return tokenizer


def make_digits():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, ["<|endoftext|>"])
    # Merges as "a b" strings, the older form of the file.
    spec = json.loads(tokenizer.to_str())
    spec["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in spec["model"]["merges"]]
    return Tokenizer.from_str(json.dumps(spec)), spec


def make_split():
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3_PATTERN), "isolated", invert=False),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, ["<|endoftext|>"])
    # Whole words that no merge reaches: only ignore_merges finds them.
    spec = json.loads(tokenizer.to_str())
    spec["model"]["ignore_merges"] = True
    vocab = spec["model"]["vocab"]
    for word in ["\u0120probability", "\u0120expected", "n_samples", "\u0120billion", "argmax", "\u0120manzana"]:
        vocab.setdefault(word, len(vocab))
    return Tokenizer.from_str(json.dumps(spec)), spec


def make_nfc():
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, ["<|endoftext|>"])
    for content, special, normalized, lstrip, rstrip, single_word in ADDED:
        token = AddedToken(content, normalized=normalized, lstrip=lstrip, rstrip=rstrip, single_word=single_word)
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([token])
    return tokenizer, json.loads(tokenizer.to_str())


def find_real(folder):
    from tokenizers import Tokenizer
    found = {}
    for name, part in (("gpt2", "gpt2"), ("gpt-neox-digits", "neox")):
        for path in sorted(pathlib.Path(folder).glob(f"*{part}*/tokenizer.json")):
            found[name] = Tokenizer.from_file(str(path))
            break
        else:
            raise SystemExit(f"{folder}: no folder *{part}*/ with a tokenizer.json")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--real", help="folder with the folders of the gpt2 and gpt-neox-digits tokenizers")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    tokenizers = {}
    for name, make in (("digits", make_digits), ("split", make_split), ("nfc", make_nfc)):
        tokenizers[name], spec = make()
        with open(args.out / f"{name}.json", "w", encoding="utf-8") as out:
            json.dump(spec, out, ensure_ascii=False, indent=None, separators=(",", ":"))
            out.write("\n")
    if args.real:
        tokenizers.update(find_real(args.real))

    for seed, (name, tokenizer) in enumerate(tokenizers.items()):
        with open(args.out / f"{name}.jsonl", "w", encoding="utf-8", newline="\n") as out:
            for text in Strings(seed).make(STRINGS_PER_TOKENIZER):
                ids = tokenizer.encode(text, add_special_tokens=False).ids
                json.dump({"text": text, "ids": ids}, out, ensure_ascii=False, separators=(",", ":"))
                out.write("\n")
        print(f"{name}: {STRINGS_PER_TOKENIZER} strings, {tokenizer.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
