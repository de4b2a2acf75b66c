"""A model of the zoo as a GPT-2 of transformers: the same function, computed by torch."""

import json
import pathlib

import torch
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel

# TransformerLens's "gelu" is the exact one.
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_new", "relu": "relu"}


def gpt2_form(folder, dtype=torch.float32):
    """folder: of a model with learned positions, layer norms and biases everywhere."""
    folder = pathlib.Path(folder)
    config = json.loads((folder / "config.json").read_text())
    weights = {name: value.float() for name, value in load_file(folder / "model.safetensors").items()}
    d_model = config["d_model"]
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=config["d_vocab"],
            n_positions=config["n_ctx"],
            n_embd=d_model,
            n_layer=config["n_layers"],
            n_head=config["n_heads"],
            n_inner=config["d_mlp"],
            activation_function=ACTIVATIONS[config["act_fn"]],
            layer_norm_epsilon=config["eps"],
            tie_word_embeddings=False,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    model.lm_head = torch.nn.Linear(d_model, config["d_vocab"], bias=True)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter.detach())
    with torch.no_grad():
        body = model.transformer
        body.wte.weight.copy_(weights["embed.W_E"])
        body.wpe.weight.copy_(weights["pos_embed.W_pos"])
        for k, block in enumerate(body.h):
            _copy_block(block, weights, f"blocks.{k}.", d_model)
        body.ln_f.weight.copy_(weights["ln_final.w"])
        body.ln_f.bias.copy_(weights["ln_final.b"])
        model.lm_head.weight.copy_(weights["unembed.W_U"].T)
        model.lm_head.bias.copy_(weights["unembed.b_U"])
    return model.to(dtype).eval()


def _copy_block(block, weights, prefix, d_model):
    """Conv1D of transformers holds [in, out]; heads lie side by side, queries before keys before values."""
    into = lambda name: weights[prefix + f"attn.W_{name}"].permute(1, 0, 2).reshape(d_model, -1)
    bias = lambda name: weights[prefix + f"attn.b_{name}"].reshape(-1)
    block.attn.c_attn.weight.copy_(torch.cat([into(x) for x in "QKV"], dim=1))
    block.attn.c_attn.bias.copy_(torch.cat([bias(x) for x in "QKV"]))
    block.attn.c_proj.weight.copy_(weights[prefix + "attn.W_O"].reshape(-1, d_model))
    block.attn.c_proj.bias.copy_(weights[prefix + "attn.b_O"])
    for ours, theirs in (("ln1", block.ln_1), ("ln2", block.ln_2)):
        theirs.weight.copy_(weights[prefix + ours + ".w"])
        theirs.bias.copy_(weights[prefix + ours + ".b"])
    if prefix + "mlp.W_in" in weights:
        block.mlp.c_fc.weight.copy_(weights[prefix + "mlp.W_in"])
        block.mlp.c_fc.bias.copy_(weights[prefix + "mlp.b_in"])
        block.mlp.c_proj.weight.copy_(weights[prefix + "mlp.W_out"])
        block.mlp.c_proj.bias.copy_(weights[prefix + "mlp.b_out"])
