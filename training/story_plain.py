"""What the kernels of story_kernels.py do, in plain PyTorch: to compare with, and in their place. s: a Sampler, whose buffers they fill."""

import torch

CHUNK = 1 << 14  # texts whose logits are held at a time


def normed(x, weight, eps):
    return (x * torch.rsqrt(x.square().mean(1, keepdim=True) + eps) * weight).half()


def turned(s, y, first, second, t, scale):
    """-> [n, heads, 2, half]: rotated products with the halves of all heads."""
    a, b = ((y @ w).float().view(s.n, -1, s.half) for w in (first, second))
    cos, sin = s.cos[t] * scale, s.sin[t] * scale
    return torch.stack([a * cos - b * sin, b * cos + a * sin], 2).half()


def queries_keys_values(s, layer, t):
    norm, q1, q2, k1, k2, v = s.attention_weights[layer]
    y = normed(s.x, norm, s.eps)
    s.q.copy_(turned(s, y, q1, q2, t, s.scale).view(s.n, -1))
    s.k[layer, t].copy_(turned(s, y, k1, k2, t, 1.0).view(s.n, -1))
    s.values[layer, t].copy_(y @ v)


def embed(s, t):
    s.x.copy_(s.embedding[s.tokens[t].long()])
    queries_keys_values(s, 0, t)


def weighted(q, k, v):
    """q [n, groups, per, d_head]; k, v [positions, n, groups, d_head] -> as q."""
    scores = (q.float()[None] * k.float()[:, :, :, None]).sum(4)  # [positions, n, groups, per]
    p = torch.exp2(scores - scores.amax(0))
    return ((p[..., None] * v.float()[:, :, :, None]).sum(0) / p.sum(0)[..., None]).half()


compiled = torch.compile(weighted, dynamic=True)  # the products never leave the chip


def attention(s, layer, t):
    heads = lambda x: x[: t + 1].view(t + 1, s.n, s.groups, -1)
    run = weighted if s.n <= CHUNK * 2 else compiled
    s.z.copy_(run(s.q.view(s.n, s.groups, s.per, -1), heads(s.k[layer]), heads(s.values[layer])).view(s.n, -1))


def block(s, layer, t):
    wo, norm, gate, up, down = s.block_weights[layer]
    s.x += (s.z @ wo).float()
    y = normed(s.x, norm, s.eps)
    s.x += ((torch.nn.functional.silu((y @ gate).float()) * (y @ up).float()).half() @ down).float()
    if layer + 1 < len(s.block_weights):
        queries_keys_values(s, layer + 1, t)


def draw(s, t, logits_out=None):
    """The race of story_kernels.py; 48 random bits make each exponential, since small ones must be right."""
    y = s.x * torch.rsqrt(s.x.square().mean(1, keepdim=True) + s.eps) * s.norm
    embedding = s.embedding.float().t()
    for first in range(0, s.n, CHUNK):
        rows = slice(first, first + CHUNK)
        logits = y[rows] @ embedding
        if logits_out is not None:
            logits_out[rows] = logits
        u = torch.rand(logits.shape, device=s.device, generator=s.generator)
        u += torch.rand(logits.shape, device=s.device, generator=s.generator) * 2.0**-24
        race = torch.log1p(-u.clamp_(max=1 - 2.0**-24)).neg_().clamp_(min=1e-15) * torch.exp(-logits)
        s.tokens[t + 1, rows] = race.argmin(1).int()
