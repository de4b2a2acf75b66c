"""The name by which results refer to a model: src/model/identity.cpp in Python, for the forms the zoo has."""
import hashlib
import json
import struct

from distribution_file import sha256_of

SIZES = ("n_layers", "d_model", "n_heads", "d_head", "d_mlp", "n_ctx", "d_vocab")
LLAMA_SIZES = ("num_hidden_layers", "hidden_size", "num_attention_heads", "head_dim", "intermediate_size", "max_position_embeddings", "vocab_size")


def zoo_text(config):
    text = "norm layer\npositions learned\nresidual sequential\nmlp gelu\nkv_groups 1\n"
    return text + "".join(f"{key} {config[key]}\n" for key in SIZES), config["eps"]


def llama_text(config):
    groups = config["num_attention_heads"] // config["num_key_value_heads"]
    text = f"norm rms\npositions rotary\nresidual sequential\nmlp swiglu\nkv_groups {groups}\n"
    text += "tied_head\n" if config["tie_word_embeddings"] else ""
    for i in range(config["head_dim"] // 2):
        text += f"frequency {struct.pack('>d', config['rope_theta'] ** (-2.0 * i / config['head_dim'])).hex()}\n"
    return text + "".join(f"{key} {config[name]}\n" for key, name in zip(SIZES, LLAMA_SIZES)), config["rms_norm_eps"]


def model_sha256(folder):
    config = json.loads((folder / "config.json").read_text())
    text, eps = llama_text(config) if config.get("model_type") == "llama" else zoo_text(config)
    eps_bits = struct.unpack("<I", struct.pack("<f", eps))[0]
    text = f"deeptail-model-1\n{text}eps {eps_bits:08x}\nweights {sha256_of(folder / 'model.safetensors')}\n"
    return hashlib.sha256(text.encode()).hexdigest()
