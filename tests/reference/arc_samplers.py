"""ITGIS and MHIS in plain PyTorch, as their authors' public program computes them: one-hot inputs, autograd, every position
through every block. What `deeptail estimate --method itgis|mhis` is compared with (tests/statistical/arc_agreement,
bench/samplers_vs_pytorch). The one difference: MHIS's estimate is formed in logs, since exp(logit / temperature) overflows in fp32.
"""

import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "training"))
import safetensors_io


class Model:
    """A folder of ours as a PyTorch forward pass from one-hot tokens to the last position's logits."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.config = json.loads((folder / "config.json").read_text())
        self.w = {name: t.float() for name, t in safetensors_io.load(folder / "model.safetensors").items()}
        self.d_vocab = self.config["d_vocab"]
        if "unembed.b_U" not in self.w:
            self.w["unembed.b_U"] = torch.zeros(self.d_vocab)

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.w[name + ".w"], self.w[name + ".b"], self.config["eps"])

    def attention(self, y, block):
        w = {k: self.w[f"{block}.attn.{k}"] for k in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O")}
        q, k, v = (torch.einsum("bnd,hde->bhne", y, w["W_" + x]) + w["b_" + x][:, None] for x in "QKV")
        n = y.shape[1]
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -math.inf)
        return torch.einsum("bhne,hed->bnd", scores.softmax(-1) @ v, w["W_O"]) + w["b_O"]

    def last_logits(self, onehot):
        """onehot: [batch, length, d_vocab] -> [batch, d_vocab]."""
        w = self.w
        x = onehot @ w["embed.W_E"] + w["pos_embed.W_pos"][: onehot.shape[1]]
        for i in range(self.config["n_layers"]):
            b = f"blocks.{i}"
            x = x + self.attention(self.norm(x, b + ".ln1"), b)
            hidden = F.gelu(self.norm(x, b + ".ln2") @ w[b + ".mlp.W_in"] + w[b + ".mlp.b_in"])
            x = x + hidden @ w[b + ".mlp.W_out"] + w[b + ".mlp.b_out"]
        return self.norm(x[:, -1], "ln_final") @ w["unembed.W_U"] + w["unembed.b_U"]

    def score(self, tokens, target):
        """-> target logits [batch], gradients w.r.t. the one-hot input [batch, length, d_vocab], whether the target is said [batch]."""
        onehot = F.one_hot(tokens, self.d_vocab).float().requires_grad_(True)
        y = self.last_logits(onehot)
        y[:, target].sum().backward()
        return y[:, target].detach(), onehot.grad, y.argmax(-1) == target


def load_dist(path):
    """-> per position (ids, log probabilities)."""
    file = json.loads(pathlib.Path(path).read_text())
    tables = {name: (torch.tensor(t["ids"]), torch.tensor(t["probabilities"], dtype=torch.float64).log().float())
              for name, t in file["tables"].items()}
    return [tables[name] for name in file["positions"]]


def draw(log_weights, shape, rng):
    return torch.multinomial(log_weights.double().softmax(-1), shape, replacement=True, generator=rng)


def itgis(model, dist, target, *, temperature, n_samples, seed, batch=256, decay=0.9):
    rng = torch.Generator().manual_seed(seed)
    scores, total = torch.zeros(len(dist), model.d_vocab), 0.0
    for step in range(n_samples // batch):
        scale = temperature * (1 - decay**step) / (1 - decay) if step else 1.0  # makes the decayed sum a mean
        tokens, log_ratio = [], torch.zeros(batch, dtype=torch.float64)
        for (ids, log_p), score in zip(dist, scores):
            tilt = score[ids] / scale
            place = draw(log_p + tilt, batch, rng)
            tokens.append(ids[place])
            log_ratio += (torch.logsumexp(log_p + tilt, 0) - tilt[place]).double()
        _, gradient, said = model.score(torch.stack(tokens, 1), target)
        total += (log_ratio.exp() * said).sum().item()
        scores = decay * scores + gradient.mean(0)
    return total / (n_samples // batch * batch)


def mhis(model, dist, target, *, temperature, n_samples, seed, burn_in=1024, chains=32):
    rng = torch.Generator().manual_seed(seed)
    prior = torch.full((len(dist), model.d_vocab), -math.inf)
    for i, (ids, log_p) in enumerate(dist):
        prior[i, ids] = log_p
    every = torch.arange(chains)
    now = torch.stack([ids[draw(log_p, chains, rng)] for ids, log_p in dist], 1)
    value, gradient, said = model.score(now, target)
    values, events = [], []
    for step in range(burn_in + n_samples // chains):
        at = torch.randint(0, len(dist), (chains,), generator=rng)  # constant positions too: nothing happens there
        forward = (prior[at] + gradient[every, at] / temperature).log_softmax(-1)
        token = torch.multinomial(forward.exp(), 1, generator=rng)[:, 0]
        there = now.clone()
        there[every, at] = token
        there_value, there_gradient, there_said = model.score(there, target)
        back = (prior[at] + there_gradient[every, at] / temperature).log_softmax(-1)
        old = now[every, at]
        log_ratio = ((there_value - value) / temperature + prior[at, token] - prior[at, old]
                     + back[every, old] - forward[every, token])
        accept = torch.rand(chains, generator=rng).log() < log_ratio
        now[accept], value[accept], gradient[accept], said[accept] = (
            there[accept], there_value[accept], there_gradient[accept], there_said[accept])
        if step >= burn_in:
            values.append(value.clone())
            events.append(said.clone())
    log_weight = -torch.cat(values).double() / temperature
    events = torch.cat(events)
    if not events.any():
        return 0.0
    return (torch.logsumexp(log_weight[events], 0) - torch.logsumexp(log_weight, 0)).exp().item()
