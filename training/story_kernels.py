"""Sampling texts of dt-story on a CUDA device: Triton kernels, one token of every text of a batch at a time.

Precision. Products multiply fp16 operands (the weights are fp16) and accumulate in fp32; residuals, norms, softmax and the draw are fp32; keys,
values and queries are kept in fp16. A token is the winner of a race: the smallest E_v / p_v, with independent exponential E_v, one Philox
word each, keyed by (seed, text, step, token). That is exact for rare tokens too, where a sum of fp32 probabilities would not be.
"""

import torch
import triton
import triton.language as tl

import story_plain
from story_model import rotary

# Of one program: texts, warps, pipeline stages, and columns at a time where there is a loop over them. None: plain PyTorch instead of the
# kernel. These are what story_parts.py chose on an H200 with Triton 3.6; tiles are not a matter of speed alone there: most tiles of the
# two kernels that write keys gave wrong keys.
PARTS = {"embed": None, "attention": (16, 4, 3, 0), "block": (128, 8, 1, 32), "draw": (64, 4, 1, 32)}
PLAIN = dict.fromkeys(PARTS)


@triton.jit
def rms_norm(x, w, eps, D: tl.constexpr):
    """x [rows, D] fp32 -> fp32."""
    return x * tl.rsqrt(tl.sum(x * x, 1) / D + eps)[:, None] * w[None, :]


@triton.jit
def matrix(w, N: tl.constexpr, K: tl.constexpr):
    """A whole matrix [K, N]."""
    return tl.load(w + tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :])


@triton.jit
def write_turned(y, w1, w2, cos, sin, out, rows, scale, W: tl.constexpr, D: tl.constexpr, HALF: tl.constexpr):
    """out [rows, 2 W]: rotated products with the first halves (w1) and the second halves (w2 [D, W]) of all heads."""
    c = tl.arange(0, W)
    a, b = tl.dot(y, matrix(w1, W, D)), tl.dot(y, matrix(w2, W, D))  # [rows, W]
    cs, sn = tl.load(cos + c % HALF)[None, :] * scale, tl.load(sin + c % HALF)[None, :] * scale
    at = out + rows[:, None] * (2 * W) + (c // HALF * (2 * HALF) + c % HALF)[None, :]
    tl.store(at, (a * cs - b * sn).to(tl.float16))
    tl.store(at + HALF, (b * cs + a * sn).to(tl.float16))


@triton.jit
def write_qkv(x, norm, q1, q2, k1, k2, v, cos, sin, q_out, k_out, v_out, rows, t, n, eps, scale,
              D: tl.constexpr, KV: tl.constexpr, HALF: tl.constexpr):
    """Queries [n, D], keys and values [positions, n, KV] of position t; scale goes into the queries."""
    y = rms_norm(x, tl.load(norm + tl.arange(0, D)), eps, D).to(tl.float16)
    past = t.to(tl.int64) * n * KV
    write_turned(y, q1, q2, cos + t * HALF, sin + t * HALF, q_out, rows, scale, D // 2, D, HALF)
    write_turned(y, k1, k2, cos + t * HALF, sin + t * HALF, k_out + past, rows, 1.0, KV // 2, D, HALF)
    at = v_out + past + rows[:, None] * KV + tl.arange(0, KV)[None, :]
    tl.store(at, tl.dot(y, matrix(v, KV, D)).to(tl.float16))


@triton.jit(do_not_specialize=["t"])
def embed_kernel(tokens, embedding, x_ptr, norm, q1, q2, k1, k2, v, cos, sin, q_out, k_out, v_out, t, n, eps, scale,
                 M: tl.constexpr, D: tl.constexpr, KV: tl.constexpr, HALF: tl.constexpr):
    """tokens [n] of position t -> x [n, D] and what the first layer's attention needs."""
    rows = tl.program_id(0).to(tl.int64) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    x = tl.load(embedding + tl.load(tokens + rows)[:, None] * D + d[None, :]).to(tl.float32)
    tl.store(x_ptr + rows[:, None] * D + d[None, :], x)
    write_qkv(x, norm, q1, q2, k1, k2, v, cos, sin, q_out, k_out, v_out, rows, t, n, eps, scale, D, KV, HALF)


@triton.jit(do_not_specialize=["t"])
def attention_kernel(q_ptr, k_ptr, v_ptr, z_ptr, t, n, M: tl.constexpr, GROUPS: tl.constexpr, PER: tl.constexpr, DH: tl.constexpr):
    """z [n, heads, DH]: softmax over positions 0..t; queries hold log2(e) / sqrt(DH)."""
    pair = tl.program_id(0).to(tl.int64) * M * GROUPS + tl.arange(0, M * GROUPS)  # a text and a group of heads
    r, d = tl.arange(0, PER), tl.arange(0, DH)
    at = pair[:, None, None] * (PER * DH) + (r[:, None] * DH + d[None, :])[None, :, :]
    q = tl.load(q_ptr + at).to(tl.float32)  # [pairs, PER, DH]
    kv = pair[:, None] * DH + d[None, :]  # [pairs, DH]
    largest = tl.full([M * GROUPS, PER], float("-inf"), tl.float32)
    total = tl.zeros([M * GROUPS, PER], tl.float32)
    z = tl.zeros([M * GROUPS, PER, DH], tl.float32)
    step = n * GROUPS * DH
    for s in range(0, t + 1):
        k = tl.load(k_ptr + kv).to(tl.float32)[:, None, :]
        v = tl.load(v_ptr + kv).to(tl.float32)[:, None, :]
        score = tl.sum(q * k, 2)  # [pairs, PER]
        higher = tl.maximum(largest, score)
        fade, p = tl.exp2(largest - higher), tl.exp2(score - higher)
        total = total * fade + p
        z = z * fade[:, :, None] + p[:, :, None] * v
        largest = higher
        k_ptr += step
        v_ptr += step
    tl.store(z_ptr + at, (z / total[:, :, None]).to(tl.float16))


@triton.jit(do_not_specialize=["t"])
def block_kernel(x_ptr, z_ptr, wo, norm2, wg, wu, wd, norm, q1, q2, k1, k2, v, cos, sin, q_out, k_out, v_out, t, n, eps, scale,
                 M: tl.constexpr, D: tl.constexpr, F: tl.constexpr, C: tl.constexpr, KV: tl.constexpr, HALF: tl.constexpr,
                 NEXT: tl.constexpr):
    """x += z wo; x += mlp(norm2(x)); and with NEXT what the next layer's attention needs."""
    rows = tl.program_id(0).to(tl.int64) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    at = rows[:, None] * D + d[None, :]
    x = tl.load(x_ptr + at) + tl.dot(tl.load(z_ptr + at), matrix(wo, D, D))
    y = rms_norm(x, tl.load(norm2 + d), eps, D).to(tl.float16)
    for start in range(0, F, C):
        f = start + tl.arange(0, C)
        gate = tl.dot(y, tl.load(wg + d[:, None] * F + f[None, :]))  # [M, C]
        up = tl.dot(y, tl.load(wu + d[:, None] * F + f[None, :]))
        hidden = (gate / (1.0 + tl.exp(-gate)) * up).to(tl.float16)
        x += tl.dot(hidden, tl.load(wd + f[:, None] * D + d[None, :]))
    tl.store(x_ptr + at, x)
    if NEXT:
        write_qkv(x, norm, q1, q2, k1, k2, v, cos, sin, q_out, k_out, v_out, rows, t, n, eps, scale, D, KV, HALF)


@triton.jit
def exponential(word):
    """-log(1 - u) of u = (word + 1/2) / 2^32: small values keep their relative precision, as the race needs."""
    u = tl.minimum((word.to(tl.float32) + 0.5) * 2.3283064365386963e-10, 0.99999994)
    series = u * (1.0 + u * (0.5 + u * (0.3333333333 + u * 0.25)))
    return tl.where(u < 0.03, series, -tl.log(1.0 - u))


@triton.jit(do_not_specialize=["t", "first", "seed"])
def draw_kernel(x_ptr, norm, embedding, tokens, logits_out, t, first, seed, eps,
                M: tl.constexpr, D: tl.constexpr, V: tl.constexpr, C: tl.constexpr, SPLIT: tl.constexpr, LOGITS: tl.constexpr):
    """The next token of every text; text i of the batch is text first + i of the whole count."""
    rows = tl.program_id(0).to(tl.int64) * M + tl.arange(0, M)
    d, c = tl.arange(0, D), tl.arange(0, C)
    y = rms_norm(tl.load(x_ptr + rows[:, None] * D + d[None, :]), tl.load(norm + d), eps, D)
    high = y.to(tl.float16)
    low = (y - high.to(tl.float32)).to(tl.float16)
    best = tl.full([M, C], float("inf"), tl.float32)
    token = tl.zeros([M, C], tl.int32)
    text = ((first + rows).to(tl.int32))[:, None] + tl.zeros([M, C], tl.int32)
    zero = tl.zeros([M, C], tl.int32)
    for start in range(0, V, 4 * C):
        counter = zero + (t * V + start + c)[None, :]
        words = tl.philox(seed, text, counter, zero, zero)
        for part in tl.static_range(4):
            v = start + part * C + c
            w = tl.load(embedding + v[None, :] * D + d[:, None])  # [D, C]
            logits = tl.dot(high, w)
            if SPLIT:
                logits += tl.dot(low, w)
            if LOGITS:
                tl.store(logits_out + rows[:, None] * V + v[None, :], logits)
            time = exponential(words[part]) * tl.exp(-logits)
            sooner = time < best
            best = tl.where(sooner, time, best)
            token = tl.where(sooner, zero + v[None, :], token)
    first_of = tl.min(best, 1)
    winner = tl.min(tl.where(best == first_of[:, None], token, V), 1)
    tl.store(tokens + rows, winner)


@triton.jit
def match_kernel(tokens, next_state, found, out, n, STEPS: tl.constexpr, V: tl.constexpr, M: tl.constexpr):
    """Runs the automaton over tokens [STEPS, n]; out [STEPS, n] is the set of strings that each token completes (0: none)."""
    i = tl.program_id(0).to(tl.int64) * M + tl.arange(0, M)
    state = tl.zeros([M], tl.int64)
    for t in range(STEPS):
        entry = state * V + tl.load(tokens + t * n + i)
        tl.store(out + t * n + i, tl.load(found + entry))
        state = tl.load(next_state + entry).to(tl.int64)


class Sampler:
    """Texts of `length` tokens after BOS, n at a time; n is a multiple of 256."""

    def __init__(self, model, n, length, device="cuda", split=True, parts=PARTS):
        cfg = model.cfg
        self.n, self.length, self.device, self.split, self.parts = n, length, device, split, dict(parts)
        self.d, self.kv, self.half = cfg["hidden_size"], cfg["num_key_value_heads"] * cfg["head_dim"], cfg["head_dim"] // 2
        self.f, self.v, self.eps = cfg["intermediate_size"], cfg["vocab_size"], cfg["rms_norm_eps"]
        self.groups, self.per = cfg["num_key_value_heads"], cfg["num_attention_heads"] // cfg["num_key_value_heads"]
        self.scale = cfg["head_dim"] ** -0.5 * 1.4426950408889634
        half = lambda w: w.detach().t().half().contiguous().to(device)  # [in, out]
        vector = lambda w: w.detach().float().contiguous().to(device)
        self.embedding, self.norm = model.embed_tokens.weight.detach().half().contiguous().to(device), vector(model.norm.weight)
        self.cos, self.sin = (a.contiguous().to(device) for a in rotary(cfg, length, "cpu"))
        self.attention_weights, self.block_weights = [], []
        for block in model.layers:
            a, m = block.self_attn, block.mlp
            halves = lambda w: [half(w.view(-1, 2, self.half, self.d)[:, i].reshape(-1, self.d)) for i in (0, 1)]
            self.attention_weights.append([vector(block.input_layernorm.weight), *halves(a.q_proj.weight), *halves(a.k_proj.weight), half(a.v_proj.weight)])
            self.block_weights.append([half(a.o_proj.weight), vector(block.post_attention_layernorm.weight), half(m.gate_proj.weight),
                                       half(m.up_proj.weight), half(m.down_proj.weight)])
        empty = lambda *shape, dtype=torch.float16: torch.zeros(*shape, dtype=dtype, device=device)
        self.x, self.q, self.z = empty(n, self.d, dtype=torch.float32), empty(n, self.d), empty(n, self.d)
        self.k, self.values = (empty(len(model.layers), length, n, self.kv) for _ in range(2))
        self.tokens = torch.zeros(length + 1, n, dtype=torch.int32, device=device)
        self.logits = empty(1, dtype=torch.float32)
        self.generator = torch.Generator(device)

    def launch(self, kernel, part, *arguments, **constants):
        rows, warps, stages, columns = self.parts[part]
        if columns:
            constants["C"] = columns
        kernel[(self.n // rows,)](*arguments, M=rows, num_warps=warps, num_stages=stages, **constants)

    def qkv_arguments(self, layer):
        return [*self.attention_weights[layer], self.cos, self.sin, self.q, self.k[layer], self.values[layer]]

    def embed(self, t):
        if self.parts["embed"] is None:
            return story_plain.embed(self, t)
        self.launch(embed_kernel, "embed", self.tokens[t], self.embedding, self.x, *self.qkv_arguments(0), t, self.n, self.eps, self.scale,
                    D=self.d, KV=self.kv, HALF=self.half)

    def attention(self, layer, t):
        if self.parts["attention"] is None:
            return story_plain.attention(self, layer, t)
        self.launch(attention_kernel, "attention", self.q, self.k[layer], self.values[layer], self.z, t, self.n,
                    GROUPS=self.groups, PER=self.per, DH=2 * self.half)

    def block(self, layer, t):
        """The rest of a layer, and queries, keys and values of the next."""
        if self.parts["block"] is None:
            return story_plain.block(self, layer, t)
        last = len(self.block_weights) - 1
        self.launch(block_kernel, "block", self.x, self.z, *self.block_weights[layer], *self.qkv_arguments(min(layer + 1, last)), t, self.n,
                    self.eps, self.scale, D=self.d, KV=self.kv, HALF=self.half, F=self.f, NEXT=layer < last)

    def draw(self, t, seed, first, logits=None):
        if self.parts["draw"] is None:
            return story_plain.draw(self, t, logits)
        self.launch(draw_kernel, "draw", self.x, self.norm, self.embedding, self.tokens[t + 1], self.logits if logits is None else logits, t, first,
                    seed, self.eps, D=self.d, V=self.v, SPLIT=self.split, LOGITS=logits is not None)

    def step(self, t, seed, first, logits=None):
        """tokens[t + 1] from tokens[0..t]; logits [n, d_vocab], if given, are kept."""
        self.embed(t)
        for layer in range(len(self.block_weights)):
            self.attention(layer, t)
            self.block(layer, t)
        self.draw(t, seed, first, logits)

    def sample(self, seed, first):
        """-> tokens [length + 1, n] of texts first .. first + n - 1; row 0 is BOS. Overwritten by the next call."""
        self.generator.manual_seed(seed * (1 << 32) + first)  # of plain PyTorch's draws
        for t in range(self.length):
            self.step(t, seed, first)
        return self.tokens


def match(tokens, automaton):
    """tokens [steps, n] -> sets [steps, n] int16."""
    out = torch.empty(tokens.shape, dtype=torch.int16, device=tokens.device)
    match_kernel[(tokens.shape[1] // 256,)](tokens, automaton.next_state, automaton.found, out, tokens.shape[1],
                                            STEPS=tokens.shape[0], V=automaton.next_state.shape[1], M=256, num_warps=8)
    return out
