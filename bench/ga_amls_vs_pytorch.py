"""Seconds per target of ga-amls at the paper's setting (d_model 512, d_vocab 48262, 2000 particles, 900 moves per level) on a GPU:
deeptail against a straightforward PyTorch version of the same algorithm, on the same head, activations and target, in one run.

    python3 bench/ga_amls_vs_pytorch.py [--binary build/cuda_ga_amls_time] [--rank 3000] [--compile] [--particles 2000] [--moves 900]

Build first: cmake --build --preset release --target cuda_ga_amls_time. The PyTorch version keeps everything on the GPU and batched, with the prior's gradient in closed form and without autograd; in fp32, then
with TF32 products, then (--compile) with torch.compile on top. Times include the fit of the prior. Both print their estimate, which must
agree.
"""

import argparse
import json
import math
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import safetensors.torch
import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[1]
NU, SURVIVE, RIDGE, BURN_IN, ADAPTATION, WANTED = 5.0, 0.4, 1e-6, 126, 0.1, 0.57


class Head:
    def __init__(self, path):
        w = {k: v.cuda() for k, v in safetensors.torch.load_file(path).items()}
        self.w_u, self.b_u = w["unembed.W_U"], w["unembed.b_U"]
        self.ln_w, self.ln_b = w["ln_final.w"], w["ln_final.b"]


class Fit:
    def __init__(self, activations):
        a = activations.double()
        self.mean = a.mean(0)
        centred = a - self.mean
        covariance = centred.T @ centred / a.shape[0]
        covariance.diagonal().add_(RIDGE * covariance.diagonal().mean())
        self.l = torch.linalg.cholesky(covariance)
        self.u = torch.linalg.solve_triangular(self.l, centred.T, upper=False).T.float().contiguous()
        self.l_t, self.mean = self.l.T.float().contiguous(), self.mean.float()


def log_prior(u):
    return -(NU + 1) / 2 * torch.log1p(u * u / NU).sum(1)


def grad_log_prior(u):
    return -(NU + 1) * u / (NU + u * u)


def scores(u, head, fit, target):
    x = torch.addmm(fit.mean, u, fit.l_t)
    y = F.layer_norm(x, (x.shape[1],), head.ln_w, head.ln_b, 1e-5)
    logits = torch.addmm(head.b_u, y, head.w_u)
    own = logits[:, target].clone()
    logits[:, target] = -math.inf
    return own - logits.amax(1)


def mala_step(u, gradient, log_p, h, level, head, fit, target):
    v = u + h * gradient + torch.sqrt(2 * h) * torch.randn_like(u)
    gradient_v, log_p_v = grad_log_prior(v), log_prior(v)
    there = ((v - u - h * gradient) ** 2).sum(1)
    back = ((u - v - h * gradient_v) ** 2).sum(1)
    log_ratio = log_p_v - log_p + (there - back) / (4 * h)
    accept = (torch.rand_like(log_ratio).log() < log_ratio) & (scores(v, head, fit, target) >= level)
    keep = accept[:, None]
    return (torch.where(keep, v, u), torch.where(keep, gradient_v, gradient), torch.where(accept, log_p_v, log_p),
            accept.float().mean())


@torch.no_grad()
def ga_amls(head, activations, target, particles, moves, step, max_levels=200):
    torch.cuda.synchronize()
    start = time.time()
    fit = Fit(activations)
    u = fit.u[torch.randint(0, fit.u.shape[0], (particles,), device="cuda")]
    h = torch.tensor(1e-3, device="cuda")
    log_p, levels, first = 0.0, 0, None
    for _ in range(max_levels):
        s = scores(u, head, fit, target)
        level = s.topk(math.ceil(SURVIVE * particles)).values[-1].clamp(max=0.0)
        alive = (s >= level).nonzero()[:, 0]
        log_p += math.log(len(alive) / particles)
        levels += 1
        first = first or time.time() - start
        if level >= 0.0:
            break
        places = (torch.arange(particles, device="cuda") + torch.rand(1, device="cuda")) / particles * len(alive)
        u = u[alive[places.long().clamp(max=len(alive) - 1)]]
        gradient, log_density = grad_log_prior(u), log_prior(u)
        for move in range(moves):
            u, gradient, log_density, acceptance = step(u, gradient, log_density, h, level, head, fit, target)
            if move < min(BURN_IN, moves // 2):
                h = h * torch.exp(ADAPTATION * (acceptance - WANTED))
    torch.cuda.synchronize()
    seconds = time.time() - start
    return {"seconds": seconds, "levels": levels, "seconds_per_level": (seconds - first) / max(1, levels - 1),
            "log10_p": log_p / math.log(10), "step_size": h.item()}


def deeptail(binary, folder, rank, particles, moves):
    command = [binary, "--rank", rank, "--write", folder, "--particles", particles,
               "--moves", moves, "--stages", 1]
    out = subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, text=True).stdout
    print(out, end="", flush=True)
    return json.loads(out.splitlines()[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "cuda_ga_amls_time")
    parser.add_argument("--rank", type=int, default=3000, help="the target's rank by its logit at the mean activation")
    parser.add_argument("--particles", type=int, default=2000)
    parser.add_argument("--moves", type=int, default=900)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ours = deeptail(args.binary, folder, args.rank, args.particles, args.moves)
        head = Head(pathlib.Path(folder) / "head.safetensors")
        activations = torch.from_numpy(np.load(pathlib.Path(folder) / "activations.npy")).cuda()
    variants = [("PyTorch fp32", "highest", mala_step), ("PyTorch TF32", "high", mala_step)]
    if args.compile:
        variants.append(("PyTorch TF32, torch.compile", "high", torch.compile(mala_step, dynamic=False)))
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, token {ours['target']}")
    row = "{:28} {:>8} {:>14} {:>14} {:>10} {:>7}"
    print(row.format("", "levels", "s per level", "s per target", "log10 p", "ratio"))
    tell = lambda name, r, ratio: print(  # noqa: E731
        row.format(name, r["levels"], f"{r['seconds_per_level']:.3f}", f"{r['seconds']:.2f}", f"{r['log10_p']:.3f}", ratio),
        flush=True)
    tell("deeptail", ours, "1")
    for name, precision, step in variants:
        torch.set_float32_matmul_precision(precision)
        ga_amls(head, activations, ours["target"], args.particles, 5, step, max_levels=2)  # warm
        theirs = ga_amls(head, activations, ours["target"], args.particles, args.moves, step)
        # Their number of levels may differ by one: per level is the fairer of the two.
        tell(name, theirs, f"{theirs['seconds_per_level'] / ours['seconds_per_level']:.1f} / "
                           f"{theirs['seconds'] / ours['seconds']:.1f}")
        if abs(theirs["log10_p"] - ours["log10_p"]) > 0.5:
            raise SystemExit(f"{name}: log10 p {theirs['log10_p']:.3f}, deeptail's {ours['log10_p']:.3f}: not the same algorithm")


if __name__ == "__main__":
    main()
