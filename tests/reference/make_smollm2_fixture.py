#!/usr/bin/env python3
"""Writes tests/data/model/smollm2.json: what transformers' own loading of the GGUF file says after 50 prompts.

Usage: make_smollm2_fixture.py SmolLM2-135M-Instruct.Q4_1.gguf OUT.json      (needs torch, transformers and gguf)

For each prompt its text and ids, the ids and logits of the eight best tokens at the last position, and 20 more tokens,
always the best, with the smallest gap between the best two on the way. The weights are the dequantised ones; they are
multiplied in float64.
"""
import argparse
import json
import os

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

PROMPTS = [
    "The capital of France is", "Once upon a time, there was a little", "Water boils at a temperature of",
    "The three primary colors are red,", "def fibonacci(n):\n    if n < 2:\n        return", "2 + 2 =", "1234567890",
    "The year 1969 is known for", "import numpy as np\n\nx = np.", "Roses are red, violets are", "My name is",
    "In 2024, the population of the world was about 8.1", "To be, or not to be, that is the",
    "SELECT name FROM users WHERE", "<html>\n<head>\n<title>", "The quick brown fox jumps over the lazy",
    "Photosynthesis is the process by which", "E = mc", "The mitochondria is the", "Dear Sir or Madam,\n\nI am writing",
    "1, 1, 2, 3, 5, 8, 13,", "Monday, Tuesday, Wednesday,", "The opposite of hot is", "A dog is an animal; an oak is a",
    "She said: \"I don't know, but I'll", "Je m'appelle", "Der Hund ist", "caf\u00e9 na\u00efve r\u00e9sum\u00e9",
    "\u65e5\u672c\u8a9e\u306e\u6587", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440", "emoji \U0001f600 and",
    "    indented\n\ttabbed  twice   three", "ALL CAPS TEXT IS", "http://www.example.com/index", "x = [i**2 for i in range(",
    "The recipe calls for 2 cups of flour, 1 cup of", "According to the theory of evolution,", "Q: What is 7 times 8?\nA:",
    "A haiku about the sea:\n", "The stock market fell by 3.5% on", "while (true) {\n    printf(\"",
    "Paris, London, Berlin and", "The chemical symbol for gold is", "Bonjour! Comment",
    "It was the best of times, it was the", "#include <stdio.h>\n\nint main(", "Therefore, we conclude that",
    "<|im_start|>user\nWhat is the capital of Italy?<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>system\nYou are a helpful AI assistant.<|im_end|>\n<|im_start|>user\nSay hello.<|im_end|>\n<|im_start|>assistant\n",
    "<|endoftext|>",
]
BEST, MORE = 8, 20


def continuation(model, ids):
    """MORE tokens, and the smallest gap between the best two."""
    tokens, gaps = [], []
    cache, step = None, ids
    for _ in range(MORE):
        out = model(step, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        best = torch.topk(out.logits[0, -1], 2)
        tokens.append(int(best.indices[0]))
        gaps.append(float(best.values[0] - best.values[1]))
        step = best.indices[:1].reshape(1, 1)
    return tokens, min(gaps)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gguf")
    parser.add_argument("out")
    args = parser.parse_args()
    folder, name = os.path.split(os.path.abspath(args.gguf))
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).double().eval()
    rows = []
    with torch.no_grad():
        for text in PROMPTS:
            ids = tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids
            logits = model(ids).logits[0, -1]
            best = torch.topk(logits, BEST)
            more, gap = continuation(model, ids)
            rows.append({"text": text, "ids": ids[0].tolist(), "best": best.indices.tolist(),
                         "logits": [float(f"{v:.9g}") for v in best.values], "more": more, "gap": float(f"{gap:.4g}")})
    with open(args.out, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
