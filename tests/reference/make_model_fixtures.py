#!/usr/bin/env python3
"""Random-weight models and what PyTorch computes with them in float64: the engine's reference.

    python3 tests/reference/make_model_fixtures.py --out tests/data/model

Runs in seconds on the CPU with torch 1.13 or later and numpy. Each model is a folder:

    model.safetensors   fp16 weights, TransformerLens names
    config.json         TransformerLens keys
    fixture.json        {"format": "deeptail-model-fixture-1", "sequences": [{
        "tokens": ids, "logits": [d_vocab], "resid_post": [d_model] (last position, before ln_final), "argmax": id,
        "target": id, "target_logit": x, "targets": ids, "margin": best logit in targets minus best other logit,
        "grad_target_logit", "grad_margin": [length, d_model], with respect to W_E[tokens] + W_pos
                                            (in some sequences only)}]}

NAME-pth holds the smallest model once more, as an old TransformerLens checkpoint: model_final.pth with buffers, old config keys.
"""

import argparse
import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "training"))
import safetensors_io
from transformer import Transformer

# d_head need not be d_model / n_heads, and no size need be a multiple of a SIMD width.
MODELS = {
    "rand-1l-64": dict(n_layers=1, d_model=64, n_heads=2, d_head=32, d_mlp=256, d_vocab=97, n_ctx=40),
    "rand-2l-96-no-bias": dict(n_layers=2, d_model=96, n_heads=3, d_head=32, d_mlp=200, d_vocab=130, n_ctx=33),
    "rand-4l-64": dict(n_layers=4, d_model=64, n_heads=4, d_head=16, d_mlp=256, d_vocab=97, n_ctx=24),
    "rand-1l-128": dict(n_layers=1, d_model=128, n_heads=4, d_head=32, d_mlp=512, d_vocab=257, n_ctx=33),
    "rand-3l-256": dict(n_layers=3, d_model=256, n_heads=8, d_head=32, d_mlp=104, d_vocab=101, n_ctx=20),
    "rand-1l-512": dict(n_layers=1, d_model=512, n_heads=8, d_head=32, d_mlp=72, d_vocab=64, n_ctx=12),
}
WITHOUT_B_U = "rand-2l-96-no-bias"
AS_PTH = "rand-1l-64"
N_SEQUENCES = 12


def random_std(name, cfg):
    """Widths that leave attention far from uniform and spread the logits over several units."""
    leaf = name.rpartition(".")[2]
    if leaf in ("W_E", "W_pos"):
        return {"W_E": 1.0, "W_pos": 0.5}[leaf]
    if leaf.startswith("W_"):
        fan_in = {"W_O": cfg["n_heads"] * cfg["d_head"], "W_out": cfg["d_mlp"]}.get(leaf, cfg["d_model"])
        return {"W_Q": 1.5, "W_K": 1.5, "W_U": 2.5, "W_out": 1.5}.get(leaf, 1.0) * fan_in**-0.5
    return 0.2  # biases, LN weights (around 1) and LN biases


def random_model(name, cfg, seed):
    generator = torch.Generator().manual_seed(seed)
    model = Transformer(cfg, with_b_U=name != WITHOUT_B_U)
    with torch.no_grad():
        for key, p in model.named_parameters():
            centre = 1.0 if key.endswith(".w") else 0.0
            p.copy_(centre + random_std(key, cfg) * torch.randn(p.shape, generator=generator))
            p.copy_(p.half())  # what the file holds is what is computed with
    return model.double()


def random_sequences(cfg, seed):
    generator = torch.Generator().manual_seed(seed)
    n_ctx = cfg["n_ctx"]
    lengths = [1, n_ctx, 2, n_ctx // 2, n_ctx - 1, 3]
    lengths += torch.randint(2, n_ctx + 1, (N_SEQUENCES - len(lengths),), generator=generator).tolist()
    sequences = [torch.randint(0, cfg["d_vocab"], (n,), generator=generator) for n in lengths]
    sequences[3][:] = sequences[3][0]  # one token repeated: only the positions differ
    return sequences


def rounded(tensor, digits=8):
    if tensor.dim() > 1:
        return [rounded(row, digits) for row in tensor]
    return [float(f"{x:.{digits}g}") for x in tensor.tolist()]


def margin_of(logits, targets):
    others = torch.ones_like(logits, dtype=torch.bool)
    others[targets] = False
    return logits[targets].max() - logits[others].max()


def fixture_of(model, tokens, generator, with_gradients):
    d_vocab = model.cfg["d_vocab"]
    x = model.input_embeddings(tokens[None]).detach().requires_grad_()  # [1, length, d_model]
    resid = model.final_residual(x)[0, -1]
    logits = model.logits_of(resid)
    target = int(torch.randint(0, d_vocab, (1,), generator=generator))
    targets = sorted(torch.randperm(d_vocab, generator=generator)[:4].tolist())
    margin = margin_of(logits, targets)
    out = {"tokens": tokens.tolist(), "argmax": int(logits.argmax()), "target": target,
           "target_logit": rounded(logits[target : target + 1])[0], "targets": targets,
           "margin": rounded(margin[None])[0], "logits": rounded(logits), "resid_post": rounded(resid)}
    if with_gradients:
        for key, value in (("grad_target_logit", logits[target]), ("grad_margin", margin)):
            (gradient,) = torch.autograd.grad(value, x, retain_graph=True)
            out[key] = rounded(gradient[0])  # [length, d_model]
    return out


def write_json(path, value):
    path.write_text(json.dumps(value, separators=(",", ":")) + "\n")


def write_model(folder, name, model, seed):
    folder.mkdir(parents=True, exist_ok=True)
    cfg = {"model_name": name, **model.cfg, "act_fn": "gelu", "normalization_type": "LN"}
    (folder / "config.json").write_text(json.dumps(cfg, indent=2) + "\n")
    safetensors_io.save(folder / "model.safetensors", {k: v.half() for k, v in model.state_dict().items()})
    generator = torch.Generator().manual_seed(seed)
    sequences = random_sequences(model.cfg, seed + 1)
    # Gradients of the first four lengths: 1, n_ctx, 2, n_ctx / 2; the wide models skip the long one.
    with_gradients = [i < 4 and len(t) * model.cfg["d_model"] <= 4096 for i, t in enumerate(sequences)]
    write_json(folder / "fixture.json", {
        "format": "deeptail-model-fixture-1",
        "sequences": [fixture_of(model, t, generator, g) for t, g in zip(sequences, with_gradients)]})


def write_old_checkpoint(folder, name, model):
    """As HookedTransformer saved them in 2022: fp32, attention buffers in the state dict, no eps in the config."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {key: value.float() for key, value in model.state_dict().items()}
    for i in range(model.cfg["n_layers"]):
        n_ctx = model.cfg["n_ctx"]
        state[f"blocks.{i}.attn.mask"] = torch.ones(n_ctx, n_ctx).tril().bool()
        state[f"blocks.{i}.attn.IGNORE"] = torch.tensor(-1e5)
    torch.save(state, folder / "model_final.pth")
    sizes = {key: value for key, value in model.cfg.items() if key != "eps"}
    cfg = {**sizes, "act_fn": "gelu", "attn_only": False, "normalization": "LN", "tokenizer_name": "NeelNanda/gpt-neox-tokenizer-digits",
           "model_name": name, "seed": 10, "use_bfloat16_matmul": True, "initializer_scale_global": 1.0}
    (folder / "config.json").write_text(json.dumps(cfg, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    out = parser.parse_args().out
    for index, (name, sizes) in enumerate(MODELS.items()):
        seed = 100 * (index + 1)
        model = random_model(name, {**sizes, "eps": 1e-5}, seed)
        write_model(out / name, name, model, seed)
        if name == AS_PTH:
            write_old_checkpoint(out / f"{name}-pth", f"{name}-pth", model)
        report = json.loads((out / name / "fixture.json").read_text())["sequences"]
        spread = sum(max(s["logits"]) - min(s["logits"]) for s in report) / len(report)
        print(f"{name:20} {len(report)} sequences, mean logit range {spread:.1f}")


if __name__ == "__main__":
    main()
