#!/usr/bin/env python3
"""The loss curve of a run, again in PyTorch: same first weights, same batches, same learning rates; float32 throughout.

    curve_dump CONFIG DIR key=value ...          writes DIR/weights.bin, names.txt, batches.bin
    hlat train --config CONFIG key=value ...     leaves metrics.jsonl in its run folder
    curve_reference.py DIR METRICS... --batch B --seq T --heads H --kv K

Prints the curve beside those of the METRICS files and how far each is from it. Needs PyTorch; a GPU is used where there is one.
"""
import argparse
import json
import math

import torch
import torch.nn.functional as F


def load_weights(folder, device):
    raw = torch.from_file(f"{folder}/weights.bin", size=sum_elements(folder), dtype=torch.float32)
    weights, at = {}, 0
    for name, shape in names(folder):
        n = math.prod(shape)
        weights[name] = raw[at:at + n].reshape(shape).to(device).clone().requires_grad_(True)
        at += n
    return weights


def names(folder):
    for line in open(f"{folder}/names.txt"):
        name, shape = line.split(" ", 1)
        yield name, [int(x) for x in shape.strip().strip("()").split(",") if x.strip()]


def sum_elements(folder):
    return sum(math.prod(shape) for _, shape in names(folder))


def rms_norm(x, w, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w


def rotate(x, theta):  # (B, heads, T, E), pairs (i, i + E/2)
    half = x.shape[-1] // 2
    frequency = theta ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
    angle = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64, device=x.device), frequency)
    cos, sin = angle.cos().float(), angle.sin().float()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def loss_of(w, ids, targets, a):
    x = w["embedding"][ids]
    b, t, d = x.shape
    e = d // a.heads
    split = [a.heads * e, a.kv * e, a.kv * e]
    for i in range(sum(n.endswith(".norm1") for n in w)):
        p = f"layers.{i}."
        q, k, v = (rms_norm(x, w[p + "norm1"], a.eps) @ w[p + "attention.qkv"].T).split(split, -1)
        q, k, v = (y.reshape(b, t, -1, e).transpose(1, 2) for y in (q, k, v))
        out = F.scaled_dot_product_attention(rotate(q, a.theta), rotate(k, a.theta), v, is_causal=True, enable_gqa=a.heads != a.kv)
        x = x + out.transpose(1, 2).reshape(b, t, d) @ w[p + "attention.output"].T
        gate, up = (rms_norm(x, w[p + "norm2"], a.eps) @ w[p + "mlp.gate_up"].T).chunk(2, -1)
        x = x + (F.silu(gate) * up) @ w[p + "mlp.down"].T
    head = w.get("head.output", w["embedding"])
    return F.cross_entropy((rms_norm(x, w["head.norm"], a.eps) @ head.T).reshape(b * t, -1), targets.reshape(-1).long())


def train(a, rates, device):
    w = load_weights(a.folder, device)
    batches = torch.from_file(f"{a.folder}/batches.bin", size=len(rates) * 2 * a.batch * a.seq, dtype=torch.int32)
    batches = batches.reshape(len(rates), 2, a.batch, a.seq).to(device)
    moments = {n: (torch.zeros_like(p), torch.zeros_like(p)) for n, p in w.items()}
    losses = []
    for step, lr in enumerate(rates, 1):
        loss = loss_of(w, batches[step - 1, 0], batches[step - 1, 1], a)
        grads = dict(zip(w, torch.autograd.grad(loss, list(w.values()))))
        scale = min(1.0, a.clip / (math.sqrt(sum(g.double().pow(2).sum().item() for g in grads.values())) + 1e-6))
        losses.append(loss.item())
        with torch.no_grad():
            for n, p in w.items():
                m, v = moments[n]
                g = grads[n] * scale
                m.mul_(a.beta1).add_(g, alpha=1 - a.beta1)
                v.mul_(a.beta2).addcmul_(g, g, value=1 - a.beta2)
                denominator = (v / (1 - a.beta2 ** step)).sqrt() + a.epsilon
                p.mul_(1 - lr * a.decay).sub_(lr / (1 - a.beta1 ** step) * m / denominator)
    return losses


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("metrics", nargs="+")
    for name, default in (("batch", 2), ("seq", 128), ("heads", 12), ("kv", 12)):
        p.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("eps", 1e-5), ("theta", 1e4), ("clip", 1.0), ("beta1", 0.9), ("beta2", 0.95), ("epsilon", 1e-8), ("decay", 0.1)):
        p.add_argument(f"--{name}", type=float, default=default)
    a = p.parse_args()
    runs = [[json.loads(line) for line in open(path)] for path in a.metrics]
    torch.backends.cuda.matmul.allow_tf32 = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    reference = train(a, [m["lr"] for m in runs[0]], device)
    for step in sorted({1, 2, 5, 10, 20, 50, 100, 200, 300, 400, len(reference)}):
        if step <= len(reference):
            print(f"step {step:4d}  torch {reference[step - 1]:.6f} ", *(f" {r[step - 1]['loss']:.6f}" for r in runs))
    for path, run in zip(a.metrics, runs):
        gaps = [abs(m["loss"] - t) / t for m, t in zip(run, reference)]
        print(f"{path}: largest relative gap {max(gaps):.2e} at step {gaps.index(max(gaps)) + 1}, mean {sum(gaps) / len(gaps):.2e}, "
              f"mean of the last 50 steps: torch {sum(reference[-50:]) / 50:.5f}, hlat {sum(m['loss'] for m in run[-50:]) / 50:.5f}")
    for i in range(1, len(runs)):
        gaps = [abs(x["loss"] - y["loss"]) / y["loss"] for x, y in zip(runs[i], runs[0])]
        print(f"{a.metrics[i]} against {a.metrics[0]}: largest relative gap {max(gaps):.2e}")


main()
