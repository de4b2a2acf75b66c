"""dt-story in plain PyTorch: Llama's form, with HuggingFace's names."""

import json

import torch
import torch.nn as nn
import torch.nn.functional as F

import safetensors_io

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128, "intermediate_size": 384,
          "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 2048,
          "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
          "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False, "bos_token_id": 0, "eos_token_id": 1,
          "torch_dtype": "float16"}


class RmsNorm(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(cfg["hidden_size"])), cfg["rms_norm_eps"]

    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def rotary(cfg, length, device):
    """-> (cos, sin), both [length, d_head / 2]."""
    half = cfg["head_dim"] // 2
    frequency = cfg["rope_theta"] ** (-torch.arange(half, dtype=torch.float64, device=device) / half)
    angle = torch.arange(length, dtype=torch.float64, device=device)[:, None] * frequency
    return angle.cos().float(), angle.sin().float()


def rotate(x, cos, sin):
    """x [n, heads, length, d_head]: the first and the second half of a head are turned together."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        d, self.d_head = cfg["hidden_size"], cfg["head_dim"]
        self.q_proj = nn.Linear(d, cfg["num_attention_heads"] * self.d_head, bias=False)
        self.k_proj = nn.Linear(d, cfg["num_key_value_heads"] * self.d_head, bias=False)
        self.v_proj = nn.Linear(d, cfg["num_key_value_heads"] * self.d_head, bias=False)
        self.o_proj = nn.Linear(cfg["num_attention_heads"] * self.d_head, d, bias=False)

    def forward(self, x, cos, sin):
        n, length, _ = x.shape
        heads = lambda y: y.view(n, length, -1, self.d_head).transpose(1, 2)  # [n, heads, length, d_head]
        q, k, v = heads(self.q_proj(x)), heads(self.k_proj(x)), heads(self.v_proj(x))
        q, k = rotate(q, cos, sin).to(v.dtype), rotate(k, cos, sin).to(v.dtype)
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(z.transpose(1, 2).reshape(n, length, -1))


class Mlp(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        d, d_mlp = cfg["hidden_size"], cfg["intermediate_size"]
        self.gate_proj, self.up_proj = nn.Linear(d, d_mlp, bias=False), nn.Linear(d, d_mlp, bias=False)
        self.down_proj = nn.Linear(d_mlp, d, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RmsNorm(cfg), RmsNorm(cfg)
        self.self_attn, self.mlp = Attention(cfg), Mlp(cfg)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Story(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed_tokens = nn.Embedding(cfg["vocab_size"], cfg["hidden_size"])
        self.layers = nn.ModuleList([Block(cfg) for _ in range(cfg["num_hidden_layers"])])
        self.norm = RmsNorm(cfg)

    def forward(self, ids):
        """ids [n, length] -> logits [n, length, d_vocab]."""
        cos, sin = rotary(self.cfg, ids.shape[1], ids.device)
        x = self.embed_tokens(ids)
        for block in self.layers:
            x = block(x, cos, sin)
        return F.linear(self.norm(x), self.embed_tokens.weight)


def init_weights(model, seed):
    torch.manual_seed(seed)
    depth = (2 * model.cfg["num_hidden_layers"]) ** -0.5
    for name, p in model.named_parameters():
        if p.dim() == 2:
            nn.init.normal_(p, std=0.02 if "embed" in name else p.shape[1] ** -0.5 * (depth if "o_proj" in name or "down" in name else 1))


def half_weights(model):
    """-> {HuggingFace's name: fp16 tensor}: what ships."""
    return {f"model.{name}": value.detach().half().cpu() for name, value in model.state_dict().items()}


def load(folder):
    model = Story(json.loads((folder / "config.json").read_text()))
    weights = safetensors_io.load(folder / "model.safetensors")
    model.load_state_dict({name.removeprefix("model."): value.float() for name, value in weights.items()})
    return model
