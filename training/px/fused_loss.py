"""Cross entropy of an unembedding whose logits are seldom seen: one pass makes the loss of a row of logits and turns it, in place, into
the gradient. Every sum has a fixed order, so the same numbers come out every time."""

import torch
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl
except ImportError:  # without a GPU
    triton = None

COLUMNS = 128  # logits are as wide as a multiple of this: what products take well
NO_TOKEN = -1e30

if triton is not None:

    @triton.jit
    def loss_and_gradient(logits, targets, losses, stride, n_columns, scale, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        at = logits + row * stride
        target = tl.load(targets + row)
        largest = tl.full([BLOCK], float("-inf"), tl.float32)
        total = tl.zeros([BLOCK], tl.float32)
        for first in range(0, n_columns, BLOCK):
            column = first + tl.arange(0, BLOCK)
            value = tl.load(at + column, mask=column < n_columns, other=-1e30).to(tl.float32)
            now = tl.maximum(largest, value)
            total = total * tl.exp(largest - now) + tl.exp(value - now)
            largest = now
        top = tl.max(largest, 0)
        log_sum = top + tl.log(tl.sum(total * tl.exp(largest - top), 0))
        tl.store(losses + row, log_sum - tl.load(at + target).to(tl.float32))
        for first in range(0, n_columns, BLOCK):
            column = first + tl.arange(0, BLOCK)
            mask = column < n_columns
            value = tl.load(at + column, mask=mask, other=-1e30).to(tl.float32)
            gradient = (tl.exp(value - log_sum) - tl.where(column == target, 1.0, 0.0)) * scale
            tl.store(at + column, gradient.to(tl.bfloat16), mask=mask)


class UnembedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, W_U, b_U, targets):
        """y bf16 [n, d_model], W_U fp32 [d_model, d_vocab], b_U fp32 [d_vocab], targets [n] -> mean loss."""
        pad = -W_U.shape[1] % COLUMNS
        w = F.pad(W_U.bfloat16(), (0, pad))
        logits = torch.addmm(F.pad(b_U.bfloat16(), (0, pad), value=NO_TOKEN), y, w)
        losses = torch.empty(len(y), device=y.device)
        loss_and_gradient[(len(y),)](logits, targets, losses, logits.stride(0), logits.shape[1], 1.0 / len(y), BLOCK=4096, num_warps=8)
        ctx.save_for_backward(y, w, logits)
        ctx.d_vocab = W_U.shape[1]
        return losses.mean()

    @staticmethod
    def backward(ctx, grad):  # grad is 1: the loss is what is minimised
        y, w, gradient = ctx.saved_tensors
        return (gradient @ w.t(), (y.t() @ gradient)[:, : ctx.d_vocab].float(), gradient.sum(0, dtype=torch.float32)[: ctx.d_vocab], None)


def unembed_loss(y, W_U, b_U, targets):
    """y [n, d_model] -> mean cross entropy; plainly where there is no GPU."""
    if y.is_cuda:
        return UnembedLoss.apply(y.bfloat16(), W_U, b_U, targets)
    return F.cross_entropy(y.float() @ W_U + b_U, targets)
