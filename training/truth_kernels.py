"""Argmax counts of sampled inputs on a CUDA device: Triton kernels for what is wide, plain PyTorch fp32 for the rest.

Precision. Blocks before the last one multiply fp16 operands and accumulate in fp32; residuals, layer norms, softmax and GELU
are fp32. The last block, which runs for the last position only, is fp32 throughout; the unembedding multiplies the fp16 weights by
its input split into two fp16 parts, which together carry 22 bits.
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def layer_norm(x, w, b, eps, D: tl.constexpr):
    """x [rows, D]; w, b [D]."""
    c = x - (tl.sum(x, 1) / D)[:, None]
    scale = tl.rsqrt(tl.sum(c * c, 1) / D + eps)
    return c * scale[:, None] * w[None, :] + b[None, :]


@triton.jit
def sample_kernel(out, seed, first, shift, base, offset, threshold, primary, alias, n, L, BLOCK: tl.constexpr):
    """One 32-bit Philox word per (seed, sample, position), then an exact alias lookup -> row of the embedding table."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = i < n
    sample = first + i // L
    pos = (i % L).to(tl.int32)
    low = (sample & 0x7FFFFFFF).to(tl.int32)
    high = (sample >> 31).to(tl.int32)
    word, _, _, _ = tl.philox(seed, low, high, pos, pos * 0)
    r = word.to(tl.int64) & 0xFFFFFFFF
    bits = tl.load(shift + pos, mask=live, other=0)
    bucket = r >> bits
    entry = tl.load(base + pos, mask=live, other=0) + bucket
    rest = r - (bucket << bits)
    below = rest < tl.load(threshold + entry, mask=live, other=0)
    index = tl.where(below, tl.load(primary + entry, mask=live, other=0), tl.load(alias + entry, mask=live, other=0))
    tl.store(out + i, (tl.load(offset + pos, mask=live, other=0) + index).to(tl.int32), mask=live)


@triton.jit
def attention_kernel(qkv, x, idx, out, W_O, b_O, scale, L, GATHER: tl.constexpr, P: tl.constexpr, H: tl.constexpr,
                     D: tl.constexpr, DH: tl.constexpr):
    """out = x + attention of one input, all positions; qkv [rows, 3, H, DH] fp16."""
    n = tl.program_id(0).to(tl.int64)
    pos = tl.arange(0, P)
    live = pos < L
    d = tl.arange(0, D)
    dh = tl.arange(0, DH)
    if GATHER:
        rows = tl.load(idx + n * L + pos, mask=live, other=0).to(tl.int64)
    else:
        rows = n * L + pos
    acc = tl.load(x + rows[:, None] * D + d[None, :], mask=live[:, None], other=0.0) + tl.load(b_O + d)[None, :]  # [P, D]
    causal = pos[None, :] <= pos[:, None]
    for h in tl.static_range(H):
        at = qkv + rows[:, None] * (3 * H * DH) + h * DH + dh[None, :]
        q = tl.load(at, mask=live[:, None], other=0.0)  # [P, DH]
        v = tl.load(at + 2 * H * DH, mask=live[:, None], other=0.0)
        k = tl.load(qkv + rows[None, :] * (3 * H * DH) + (H + h) * DH + dh[:, None], mask=live[None, :], other=0.0)  # [DH, P]
        s = tl.where(causal, tl.dot(q, k) * scale, float("-inf"))  # [P, P]
        p = tl.exp(s - tl.max(s, 1)[:, None])
        p = p / tl.sum(p, 1)[:, None]
        z = tl.dot(p.to(tl.float16), v)  # [P, DH]
        acc += tl.dot(z.to(tl.float16), tl.load(W_O + h * DH * D + dh[:, None] * D + d[None, :]))
    tl.store(out + (n * L + pos)[:, None] * D + d[None, :], acc, mask=live[:, None])


@triton.jit
def mlp_kernel(x_ptr, ln_w, ln_b, W_in, b_in, W_out, b_out, eps, n_rows,
               M: tl.constexpr, D: tl.constexpr, D_MLP: tl.constexpr, BLOCK: tl.constexpr):
    """x += mlp(ln2(x)), M rows at a time; the hidden layer never leaves the chip."""
    rows = tl.program_id(0).to(tl.int64) * M + tl.arange(0, M)
    live = rows < n_rows
    d = tl.arange(0, D)
    at = rows[:, None] * D + d[None, :]
    x = tl.load(x_ptr + at, mask=live[:, None], other=0.0)
    y = layer_norm(x, tl.load(ln_w + d), tl.load(ln_b + d), eps, D).to(tl.float16)
    acc = tl.zeros([M, D], dtype=tl.float32)
    for start in range(0, D_MLP, BLOCK):
        f = start + tl.arange(0, BLOCK)
        h = tl.dot(y, tl.load(W_in + d[:, None] * D_MLP + f[None, :])) + tl.load(b_in + f)[None, :]  # [M, BLOCK]
        h = 0.5 * h * (1.0 + tl.erf(h * 0.7071067811865476))
        acc += tl.dot(h.to(tl.float16), tl.load(W_out + f[:, None] * D + d[None, :]))
    x = tl.load(x_ptr + at, mask=live[:, None], other=0.0)
    tl.store(x_ptr + at, x + acc + tl.load(b_out + d)[None, :], mask=live[:, None])


@triton.jit
def last_attention_kernel(src, idx, query, out, ln_w, ln_b, eps, L,
                          GATHER: tl.constexpr, P: tl.constexpr, H: tl.constexpr, D: tl.constexpr):
    """Averages ln1(x) with the last position's attention; query [n, H, D] already holds W_K and the scale. out [n, H, D]."""
    n = tl.program_id(0).to(tl.int64)
    pos = tl.arange(0, P)
    live = pos < L
    d = tl.arange(0, D)
    if GATHER:
        rows = tl.load(idx + n * L + pos, mask=live, other=0).to(tl.int64)
    else:
        rows = n * L + pos
    x = tl.load(src + rows[:, None] * D + d[None, :], mask=live[:, None], other=0.0)
    y = layer_norm(x, tl.load(ln_w + d), tl.load(ln_b + d), eps, D)
    for h in tl.static_range(H):
        q = tl.load(query + (n * H + h) * D + d)
        s = tl.where(live, tl.sum(y * q[None, :], 1), float("-inf"))  # [P]
        p = tl.exp(s - tl.max(s, 0))
        p = p / tl.sum(p, 0)
        tl.store(out + (n * H + h) * D + d, tl.sum(p[:, None] * y, 0))


@triton.jit
def argmax_kernel(x_ptr, ln_w, ln_b, W_U, b_U, out, eps, n_rows,
                  M: tl.constexpr, D: tl.constexpr, V: tl.constexpr, BLOCK: tl.constexpr):
    """The smallest id among the largest logits of every row."""
    rows = tl.program_id(0).to(tl.int64) * M + tl.arange(0, M)
    live = rows < n_rows
    d = tl.arange(0, D)
    x = tl.load(x_ptr + rows[:, None] * D + d[None, :], mask=live[:, None], other=0.0)
    y = layer_norm(x, tl.load(ln_w + d), tl.load(ln_b + d), eps, D)
    high = y.to(tl.float16)
    low = (y - high.to(tl.float32)).to(tl.float16)
    best = tl.full([M, BLOCK], float("-inf"), dtype=tl.float32)
    where = tl.zeros([M, BLOCK], dtype=tl.int32)
    column = tl.arange(0, BLOCK)
    for start in range(0, V, BLOCK):
        w = tl.load(W_U + d[:, None] * V + (start + column)[None, :])
        logits = tl.dot(low, w)
        logits = tl.dot(high, w, logits) + tl.load(b_U + start + column)[None, :]  # [M, BLOCK]
        better = logits > best
        best = tl.where(better, logits, best)
        where = tl.where(better, start, where)
    ids = where + column[None, :]
    ids = tl.where(best == tl.max(best, 1)[:, None], ids, V)
    tl.store(out + rows, tl.min(ids, 1), mask=live)


def last_query(x, p, eps, scale):
    """x [n, d_model], last position -> [n, n_heads, d_model]. b_K shifts all scores of a query alike: it drops out."""
    y = F.layer_norm(x, x.shape[-1:], p["ln1_w"], p["ln1_b"], eps)
    q = torch.einsum("nm,hmd->hnd", y, p["W_Q"]) + p["b_Q"][:, None]
    return (torch.einsum("hnd,hmd->nhm", q, p["W_K"]) * scale).contiguous()


def last_position(x, averaged, p, eps):
    """The rest of the last block: x [n, d_model], averaged [n, n_heads, d_model] -> final residual."""
    z = torch.einsum("nhm,hmd->nhd", averaged, p["W_V"]) + p["b_V"]
    x = x + z.flatten(1) @ p["W_O"].flatten(0, 1) + p["b_O"]
    y = F.layer_norm(x, x.shape[-1:], p["ln2_w"], p["ln2_b"], eps)
    return x + F.gelu(y @ p["W_in"] + p["b_in"]) @ p["W_out"] + p["b_out"]


class Counter:
    """Argmax of batches of inputs given as rows of an embedding table."""

    def __init__(self, model, table_x, length):
        self.cfg, self.x0, self.length = model.cfg, table_x.contiguous(), length
        self.blocks = []
        for i, block in enumerate(model.blocks):
            p = {name: value.detach() for name, value in [*block.attn.named_parameters(), *block.mlp.named_parameters()]}
            p.update({f"{ln}_{name}": value.detach() for ln in ("ln1", "ln2")
                      for name, value in getattr(block, ln).named_parameters()})
            if i + 1 < len(model.blocks):  # matrices in fp16, as the file has them
                p = {name: value.half() if name.startswith("W_") else value for name, value in p.items()}
                p.update(self.merge_qkv(p))
            self.blocks.append({name: value.contiguous() for name, value in p.items()})
        self.ln_final = (model.ln_final.w.detach(), model.ln_final.b.detach())
        self.W_U, self.b_U = model.unembed.W_U.detach().half().contiguous(), model.unembed.b_U.detach()
        self.scale = self.cfg["d_head"] ** -0.5
        self.pad = max(16, triton.next_power_of_2(length))
        self.qkv0 = self.qkv(self.x0, self.blocks[0]) if len(self.blocks) > 1 else None

    def merge_qkv(self, p):
        """One matrix [d_model, 3 * n_heads * d_head]."""
        W = torch.stack([p["W_Q"], p["W_K"], p["W_V"]])  # [3, n_heads, d_model, d_head]
        b = torch.stack([p["b_Q"], p["b_K"], p["b_V"]])
        return {"W_QKV": W.permute(2, 0, 1, 3).reshape(self.cfg["d_model"], -1), "b_QKV": b.flatten().half()}

    def qkv(self, x, p):
        """x [rows, d_model] fp32 -> [rows, 3 * n_heads * d_head] fp16."""
        y = F.layer_norm(x, x.shape[-1:], p["ln1_w"], p["ln1_b"], self.cfg["eps"])
        return torch.addmm(p["b_QKV"], y.half(), p["W_QKV"])

    def full_block(self, x, idx, n, gather, p):
        """A block before the last one: every position of n inputs. Returns [n * length, d_model]."""
        cfg, eps = self.cfg, self.cfg["eps"]
        qkv = self.qkv0 if gather else self.qkv(x, p)
        out = torch.empty(n * self.length, cfg["d_model"], device=x.device)
        attention_kernel[(n,)](qkv, x, idx, out, p["W_O"], p["b_O"], self.scale, self.length, GATHER=gather, P=self.pad,
                               H=cfg["n_heads"], D=cfg["d_model"], DH=cfg["d_head"], num_warps=4)
        mlp_kernel[(triton.cdiv(len(out), 64),)](out, p["ln2_w"], p["ln2_b"], p["W_in"], p["b_in"], p["W_out"], p["b_out"], eps,
                                                 len(out), M=64, D=cfg["d_model"], D_MLP=cfg["d_mlp"], BLOCK=64, num_warps=4)
        return out

    def argmax(self, rows):
        """rows int32 [n, length] of the table -> ids int32 [n]."""
        cfg, eps, n = self.cfg, self.cfg["eps"], len(rows)
        x, gather = self.x0, True
        for p in self.blocks[:-1]:
            x, gather = self.full_block(x, rows, n, gather, p), False
        last = x[rows[:, -1].long()] if gather else x.view(n, self.length, -1)[:, -1]
        p = self.blocks[-1]
        query = last_query(last, p, eps, self.scale)
        averaged = torch.empty_like(query)
        last_attention_kernel[(n,)](x, rows, query, averaged, p["ln1_w"], p["ln1_b"], eps, self.length, GATHER=gather,
                                    P=self.pad, H=cfg["n_heads"], D=cfg["d_model"], num_warps=2)
        resid = last_position(last, averaged, p, eps).contiguous()
        ids = torch.empty(n, dtype=torch.int32, device=resid.device)
        argmax_kernel[(triton.cdiv(n, 64),)](resid, *self.ln_final, self.W_U, self.b_U, ids, eps, n, M=64,
                                             D=cfg["d_model"], V=cfg["d_vocab"], BLOCK=64, num_warps=4)
        return ids
