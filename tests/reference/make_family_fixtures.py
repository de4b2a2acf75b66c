#!/usr/bin/env python3
"""Tiny random models of every family, and what transformers computes with them in float64.

    python3 tests/reference/make_family_fixtures.py --out tests/data/families

Runs in seconds on the CPU with torch and transformers 5. Each model is a folder with weights in fp16, config.json and a
fixture.json in the form of make_model_fixtures.py. Of two models of a family one keeps the keys that transformers 5
writes, the other has those of transformers 4; between them they cover the options that change results, and the forms
in which files come: one safetensors file, shards, pytorch_model.bin, with and without prefix and old buffers.
"""

import argparse
import json
import pathlib
import shutil

import torch
import transformers
from safetensors.torch import save_file

N_SEQUENCES = 8
SIZES = dict(vocab_size=61, max_position_embeddings=20)


def v4(*renames, **extra):
    """What a folder of transformers 4 says instead: keys to put in, keys to take out."""
    return dict(put=extra, drop=["rope_parameters", "layer_types", "dtype", *renames])


LLAMA = dict(**SIZES, hidden_size=24, intermediate_size=36, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
NEO = dict(**SIZES, hidden_size=24, num_heads=3, intermediate_size=40)
NEOX = dict(**SIZES, hidden_size=32, intermediate_size=28, num_attention_heads=2, num_hidden_layers=2)
GPT2 = dict(vocab_size=61, n_positions=20, n_embd=24, n_head=3, n_layer=2)

MODELS = {
    "gpt2-a": ("gpt2", dict(**GPT2), {}),
    "gpt2-b": ("gpt2", dict(**GPT2, n_inner=40, activation_function="gelu", scale_attn_by_inverse_layer_idx=True,
                            tie_word_embeddings=False, layer_norm_epsilon=3e-5),
               dict(**v4(n_ctx=20), form="bin", buffers=True)),
    "gpt2-c": ("gpt2", dict(**GPT2, n_inner=32), dict(bare=True, buffers=True)),
    "gpt_neo-a": ("gpt_neo", dict(**NEO, num_layers=2, window_size=9, attention_types=[[["global", "local"], 1]]), {}),
    "gpt_neo-b": ("gpt_neo", dict(**NEO, num_layers=3, attention_types=[[["global"], 3]]),
                  dict(**v4("attention_layers"), buffers=True)),
    "gpt_neox-a": ("gpt_neox", dict(**NEOX), {}),
    "gpt_neox-b": ("gpt_neox", dict(**NEOX | dict(intermediate_size=20), use_parallel_residual=False, hidden_act="gelu_fast", attention_bias=False,
                                    layer_norm_eps=2e-5,
                                    rope_parameters=dict(rope_type="linear", factor=2.5, rope_theta=500.0,
                                                         partial_rotary_factor=0.5)),
                   dict(**v4(rotary_pct=0.5, rotary_emb_base=500, rope_scaling=dict(type="linear", factor=2.5)),
                        buffers=True)),
    "llama-a": ("llama", dict(**LLAMA, head_dim=10, rms_norm_eps=1e-5,
                              rope_parameters=dict(rope_type="llama3", rope_theta=50.0, factor=4.0, low_freq_factor=1.0,
                                                   high_freq_factor=3.0, original_max_position_embeddings=12)), {}),
    "llama-b": ("llama", dict(**LLAMA | dict(num_key_value_heads=1), attention_bias=True, mlp_bias=True,
                              tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=300.0)),
                dict(**v4("head_dim", rope_theta=300.0, rope_scaling=None, pretraining_tp=1, rope_interleaved=False),
                     form="shards")),
    "mistral-a": ("mistral", dict(**LLAMA, sliding_window=11), {}),
    "mistral-b": ("mistral", dict(**LLAMA | dict(num_hidden_layers=1), sliding_window=None, head_dim=None),
                  v4("head_dim", rope_theta=10000.0)),
    "qwen2-a": ("qwen2", dict(**LLAMA, tie_word_embeddings=True), {}),
    "qwen2-b": ("qwen2", dict(**LLAMA, use_sliding_window=True, sliding_window=10, max_window_layers=1),
                v4(rope_theta=10000.0)),
    "qwen3-a": ("qwen3", dict(**LLAMA, head_dim=8, tie_word_embeddings=True), {}),
    "qwen3-b": ("qwen3", dict(**LLAMA | dict(num_key_value_heads=4), head_dim=12, attention_bias=True,
                              rope_parameters=dict(rope_type="default", rope_theta=1000.0)),
                v4(rope_theta=1000.0, rope_scaling=None, sliding_window=None, max_window_layers=28)),
}


def random_std(name, p, family, tied):
    """Widths that leave attention far from uniform, and embeddings so small that eps matters, where they are no head too."""
    if any(part in name for part in ("wte", "wpe", "embed_tokens", "embed_in")):
        return 0.3 if tied else 0.03
    if p.dim() == 1:
        return 0.2
    wide = 2.5 if "lm_head" in name or "embed_out" in name else 1.2
    if any(part in name for part in ("q_proj", "k_proj", "query_key_value", "c_attn")):
        wide = 0.9 if family == "gpt_neo" else 1.8
    fan_in = p.shape[0] if family == "gpt2" and "lm_head" not in name else p.shape[1]
    return wide * fan_in**-0.5


def is_norm(name):
    return name.endswith("weight") and any(part in name for part in ("norm", "ln_"))


def random_model(family, settings, seed):
    generator = torch.Generator().manual_seed(seed)
    config = transformers.AutoConfig.for_model(family, **settings, attn_implementation="eager")
    model = transformers.AutoModelForCausalLM.from_config(config)
    tied = config.tie_word_embeddings
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(is_norm(name) + random_std(name, p, family, tied) * torch.randn(p.shape, generator=generator))
            p.copy_(p.half())  # what the file holds is what is computed with
    return model.eval().double()


def context(settings):
    windows = [settings.get("window_size"), settings.get("sliding_window")]
    return min([20] + [w for w in windows if w])


def random_sequences(n_ctx, seed):
    generator = torch.Generator().manual_seed(seed)
    lengths = [1, n_ctx, 2, n_ctx // 2, n_ctx - 1, 3, 6, 5]
    sequences = [torch.randint(0, 61, (n,), generator=generator) for n in lengths[:N_SEQUENCES]]
    sequences[3][:] = sequences[3][0]  # one token repeated: only the positions differ
    return sequences


def rounded(tensor, digits=7):
    if tensor.dim() > 1:
        return [rounded(row, digits) for row in tensor]
    return [float(f"{x:.{digits}g}") for x in tensor.tolist()]


def final_norm(model):
    for name in ("transformer.ln_f", "gpt_neox.final_layer_norm", "model.norm"):
        try:
            return model.get_submodule(name)
        except AttributeError:
            continue
    raise KeyError("no final norm")


def logits_of(model, tokens):
    """Logits of the last position, the residual before the final norm, and the input embeddings."""
    kept = {}
    hook = final_norm(model).register_forward_hook(lambda module, args, out: kept.update(resid=args[0]))
    x = model.get_input_embeddings()(tokens[None]).detach().requires_grad_()
    out = model(inputs_embeds=x, use_cache=False).logits[0, -1]
    hook.remove()
    return out, kept["resid"][0, -1], x


def sequence_entry(model, tokens, index):
    generator = torch.Generator().manual_seed(1000 + index)
    out, resid, x = logits_of(model, tokens)
    target = int(torch.randint(0, 61, (1,), generator=generator))
    targets = sorted(set(torch.randint(0, 61, (3,), generator=generator).tolist()))
    others = torch.ones(61, dtype=torch.bool)
    others[targets] = False
    margin = out[targets].max() - out[others].max()
    entry = dict(tokens=tokens.tolist(), logits=rounded(out), resid_post=rounded(resid), argmax=int(out.argmax()),
                 target=target, target_logit=float(out[target].detach()), targets=targets, margin=float(margin.detach()))
    if index in (0, 3, 5, 6):
        entry["grad_target_logit"] = rounded(torch.autograd.grad(out[target], x, retain_graph=True)[0][0], 6)
        entry["grad_margin"] = rounded(torch.autograd.grad(margin, x)[0][0], 6)
    return entry


def old_buffers(family, config):
    """What files of old releases have beside the weights."""
    n = config.num_hidden_layers
    mask = torch.tril(torch.ones(1, 1, 4, 4, dtype=torch.bool))
    at = {"gpt2": "transformer.h.{}.attn.", "gpt_neo": "transformer.h.{}.attn.attention.",
          "gpt_neox": "gpt_neox.layers.{}.attention."}[family]
    out = {}
    for i in range(n):
        out[at.format(i) + "bias"] = mask.clone()
        out[at.format(i) + "masked_bias"] = torch.tensor(-1e9)
        if family == "gpt_neox":
            out[at.format(i) + "rotary_emb.inv_freq"] = torch.ones(2)
    return out


def stored_weights(model, family, how):
    tied = model.config.tie_word_embeddings
    tensors = {}
    for name, p in model.state_dict().items():
        if name == "lm_head.weight" and (tied or family == "gpt_neox"):
            continue
        tensors[name] = p.half().contiguous()
    if family == "gpt_neox" and not tied:
        tensors["embed_out.weight"] = model.lm_head.weight.detach().half().contiguous()
    if how.get("buffers"):
        tensors.update(old_buffers(family, model.config))
    if how.get("bare"):
        tensors = {name.removeprefix("transformer."): p for name, p in tensors.items()}
    return tensors


def write_weights(folder, tensors, form):
    if form == "bin":
        torch.save(tensors, folder / "pytorch_model.bin")
    elif form == "shards":
        names = sorted(tensors)
        parts = [names[: len(names) // 2], names[len(names) // 2 :]]
        files = [f"model-{i + 1:05}-of-00002.safetensors" for i in range(2)]
        for part, file in zip(parts, files):
            save_file({name: tensors[name] for name in part}, folder / file, metadata={"format": "pt"})
        weight_map = {name: file for part, file in zip(parts, files) for name in part}
        index = dict(metadata=dict(total_size=sum(t.numel() * 2 for t in tensors.values())), weight_map=weight_map)
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    else:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def write_model(name, out):
    family, settings, how = MODELS[name]
    seed = sum(name.encode())
    model = random_model(family, settings, seed)
    folder = out / name
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    config = json.loads(model.config.to_json_string())
    config.pop("_attn_implementation_autoset", None)
    for key in how.get("drop", []):
        config.pop(key, None)
    config.update(how.get("put", {}))
    if "put" in how:
        config["torch_dtype"], config["transformers_version"] = "float16", "4.44.0"
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    write_weights(folder, stored_weights(model, family, how), how.get("form"))
    sequences = random_sequences(context(settings), seed)
    entries = [sequence_entry(model, tokens, i) for i, tokens in enumerate(sequences)]
    fixture = dict(format="deeptail-model-fixture-1", sequences=entries)
    (folder / "fixture.json").write_text(json.dumps(fixture, separators=(",", ":")) + "\n")
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{name:12} {size:6} bytes, logits from {min(min(e['logits']) for e in entries):.2f} to "
          f"{max(max(e['logits']) for e in entries):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    args = parser.parse_args()
    torch.manual_seed(0)
    for name in args.names:
        write_model(name, args.out)


if __name__ == "__main__":
    main()
