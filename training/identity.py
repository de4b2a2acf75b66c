"""The name by which results refer to a model: src/model/identity.cpp in Python."""
import hashlib
import json
import struct

from distribution_file import sha256_of

SIZES = ("n_layers", "d_model", "n_heads", "d_head", "d_mlp", "n_ctx", "d_vocab")


def model_sha256(folder):
    config = json.loads((folder / "config.json").read_text())
    eps_bits = struct.unpack("<I", struct.pack("<f", config["eps"]))[0]
    text = "deeptail-model-1\nnorm layer\npositions learned\nresidual sequential\nmlp gelu\nkv_groups 1\n"
    text += "".join(f"{key} {config[key]}\n" for key in SIZES)
    text += f"eps {eps_bits:08x}\nweights {sha256_of(folder / 'model.safetensors')}\n"
    return hashlib.sha256(text.encode()).hexdigest()
