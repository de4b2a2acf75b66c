#!/usr/bin/env python3
"""Writes tests/data/model/smollm2.json: what transformers' own loading of the GGUF file says after 50 prompts.

Usage: make_smollm2_fixture.py SmolLM2-135M-Instruct.Q4_1.gguf OUT.json      (needs torch, transformers, accelerate and gguf)

For each prompt its text and ids, the ids and logits of the eight best tokens at the last position, and 20 more tokens,
always the best, with the smallest gap between the best two on the way. The weights are the dequantised ones; all that is
computed with them is computed in float64, also norms and angles, which transformers does in float32 whatever the model's type.
"float32_off" is how far transformers' own float32 is from that, at those eight tokens.
"""
import argparse
import json
import os

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.models.llama import modeling_llama

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


def exact_norm(self, x):
    return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon)


def exact_angles(self, x, position_ids):
    d = self.config.hidden_size // self.config.num_attention_heads
    frequencies = self.config.rope_parameters["rope_theta"] ** (-torch.arange(0, d, 2).double() / d)
    angles = position_ids[..., None].double() * frequencies
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


def in_double(model):
    for module in model.double().modules():
        if isinstance(module, modeling_llama.LlamaRMSNorm):
            module.forward = exact_norm.__get__(module)
        if isinstance(module, modeling_llama.LlamaRotaryEmbedding):
            module.forward = exact_angles.__get__(module)
    return model


def answers(model, batch):
    """Logits after each prompt of a batch, MORE tokens, and the smallest gap between the best two on the way."""
    longest = max(len(ids) for ids in batch)
    pads = [longest - len(ids) for ids in batch]
    step = torch.tensor([[0] * pad + ids for pad, ids in zip(pads, batch)])
    mask = torch.tensor([[0] * pad + [1] * len(ids) for pad, ids in zip(pads, batch)])
    places = (mask.cumsum(1) - 1).clamp(min=0)
    cache, first, tokens, gaps = None, None, [], []
    for _ in range(MORE):
        out = model(step, attention_mask=mask, position_ids=places, past_key_values=cache, use_cache=True,
                    logits_to_keep=1)
        cache, logits = out.past_key_values, out.logits[:, -1]
        first = logits if first is None else first
        best = torch.topk(logits, 2)
        tokens.append(best.indices[:, 0])
        gaps.append(best.values[:, 0] - best.values[:, 1])
        step = best.indices[:, :1]
        mask = torch.cat([mask, torch.ones_like(step)], 1)
        places = places[:, -1:] + 1
    return first, torch.stack(tokens, 1).tolist(), torch.stack(gaps, 1).min(1).values.tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gguf")
    parser.add_argument("out")
    args = parser.parse_args()
    folder, name = os.path.split(os.path.abspath(args.gguf))
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    all_ids = [tokenizer(text, add_special_tokens=False).input_ids for text in PROMPTS]
    with torch.no_grad():
        float32 = [model(torch.tensor([ids])).logits[0, -1].double() for ids in all_ids]
    model = in_double(model)
    order = sorted(range(len(PROMPTS)), key=lambda i: len(all_ids[i]))
    rows = [None] * len(PROMPTS)
    with torch.no_grad():
        for start in range(0, len(order), 10):
            chosen = order[start:start + 10]
            logits, more, gaps = answers(model, [all_ids[i] for i in chosen])
            for k, i in enumerate(chosen):
                best = torch.topk(logits[k], BEST)
                rows[i] = {"text": PROMPTS[i], "ids": all_ids[i], "best": best.indices.tolist(),
                           "logits": [float(f"{v:.9g}") for v in best.values], "more": more[k],
                           "gap": float(f"{gaps[k]:.4g}"),
                           "float32_off": float(f"{(float32[i][best.indices] - best.values).abs().max():.3g}")}
            print("prompts done:", start + len(chosen), flush=True)
    with open(args.out, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
