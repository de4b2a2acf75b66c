"""The zoo's transformer in PyTorch: pre-LN, learned positions, exact erf GELU, untied unembedding.

Parameters carry TransformerLens's names (blocks.0.attn.W_Q, unembed.b_U, ...), so a state dict is a weight file.
It runs in float64 (fixtures, references), float32, or under bf16 autocast (training), from torch 1.13 on.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG_KEYS = ("n_layers", "d_model", "d_mlp", "d_head", "n_heads", "n_ctx", "d_vocab", "eps")


class LayerNorm(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.w = nn.Parameter(torch.ones(cfg["d_model"]))
        self.b = nn.Parameter(torch.zeros(cfg["d_model"]))
        self.eps = cfg["eps"]

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.w, self.b, self.eps)


class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        n_heads, d_model, d_head = cfg["n_heads"], cfg["d_model"], cfg["d_head"]
        for name in "QKV":
            self.register_parameter(f"W_{name}", nn.Parameter(torch.zeros(n_heads, d_model, d_head)))
            self.register_parameter(f"b_{name}", nn.Parameter(torch.zeros(n_heads, d_head)))
        self.W_O = nn.Parameter(torch.zeros(n_heads, d_head, d_model))
        self.b_O = nn.Parameter(torch.zeros(d_model))

    def project(self, x, W, b):
        """x [n, length, d_model] -> [n, n_heads, length, d_head]."""
        n, length, d_model = x.shape
        n_heads, _, d_head = W.shape
        y = F.linear(x, W.transpose(1, 2).reshape(n_heads * d_head, d_model), b.reshape(-1))
        return y.reshape(n, length, n_heads, d_head).transpose(1, 2)

    def forward(self, x):
        q = self.project(x, self.W_Q, self.b_Q)
        k = self.project(x, self.W_K, self.b_K)
        v = self.project(x, self.W_V, self.b_V)
        z = causal_attention(q, k, v)  # [n, n_heads, length, d_head]
        return F.linear(z.transpose(1, 2).flatten(2), self.W_O.flatten(0, 1).t(), self.b_O)


def causal_attention(q, k, v):
    """Scaled by 1/sqrt(d_head); every tensor is [n, n_heads, length, d_head]."""
    if q.is_cuda and q.dtype in (torch.bfloat16, torch.float16):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    length, d_head = q.shape[-2:]
    scores = q @ k.transpose(-1, -2) / d_head**0.5
    future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(future, float("-inf")).softmax(-1) @ v


class Mlp(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.W_in = nn.Parameter(torch.zeros(cfg["d_model"], cfg["d_mlp"]))
        self.b_in = nn.Parameter(torch.zeros(cfg["d_mlp"]))
        self.W_out = nn.Parameter(torch.zeros(cfg["d_mlp"], cfg["d_model"]))
        self.b_out = nn.Parameter(torch.zeros(cfg["d_model"]))

    def forward(self, x):
        hidden = F.gelu(F.linear(x, self.W_in.t(), self.b_in))
        return F.linear(hidden, self.W_out.t(), self.b_out)


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln1 = LayerNorm(cfg)
        self.attn = Attention(cfg)
        self.ln2 = LayerNorm(cfg)
        self.mlp = Mlp(cfg)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Holder(nn.Module):
    """A module that only holds named parameters, so that their names get its prefix."""

    def __init__(self, **shapes):
        super().__init__()
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))


class Transformer(nn.Module):
    def __init__(self, cfg, with_b_U=True):
        super().__init__()
        self.cfg = dict(cfg)
        d_model, d_vocab = cfg["d_model"], cfg["d_vocab"]
        self.embed = Holder(W_E=(d_vocab, d_model))
        self.pos_embed = Holder(W_pos=(cfg["n_ctx"], d_model))
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg["n_layers"]))
        self.ln_final = LayerNorm(cfg)
        unembed = {"W_U": (d_model, d_vocab)}
        if with_b_U:
            unembed["b_U"] = (d_vocab,)
        self.unembed = Holder(**unembed)

    def input_embeddings(self, tokens):
        """tokens [n, length] -> [n, length, d_model]."""
        return self.embed.W_E[tokens] + self.pos_embed.W_pos[: tokens.shape[1]]

    def final_residual(self, x):
        """Input embeddings -> hook_resid_post of the last block, every position."""
        for block in self.blocks:
            x = block(x)
        return x

    def logits_of(self, resid):
        return F.linear(self.ln_final(resid), self.unembed.W_U.t(), getattr(self.unembed, "b_U", None))

    def forward(self, tokens):
        return self.logits_of(self.final_residual(self.input_embeddings(tokens)))


def init_weights(model, seed):
    """Normal with the usual widths; residual outputs are scaled down by depth."""
    generator = torch.Generator().manual_seed(seed)
    depth_scale = (2 * model.cfg["n_layers"]) ** -0.5
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not name.rpartition(".")[2].startswith("W_"):
                continue
            std = 0.02 if name.startswith(("embed", "pos_embed")) else model.cfg["d_model"] ** -0.5
            if name.endswith(("W_O", "W_out")):
                std *= depth_scale
            p.copy_(torch.randn(p.shape, generator=generator) * std)
