#!/usr/bin/env python3
"""Writes tests/fixtures/torch_llama.json: loss and all gradients of a small Llama, from PyTorch autograd in float64.

The model is written here from the formulas, independently of hlat. Weights and tokens follow from short formulas
that tests/model/torch_fixture_test.cc repeats, so the file holds only results. Needs PyTorch:
    python3 tools/make_torch_fixture.py > tests/fixtures/torch_llama.json
"""
import json
import math

import torch
import torch.nn.functional as F

CASES = [
    dict(name="gqa", layers=2, hidden=24, heads=6, kv_heads=2, ffn=20, vocab=23, theta=10000.0, eps=1e-5, tied=False, batch=2, seq=9),
    dict(name="mha_tied", layers=1, hidden=16, heads=4, kv_heads=4, ffn=12, vocab=19, theta=500.0, eps=1e-6, tied=True, batch=1, seq=13),
]


def weight(shape, tensor, is_norm):
    """Element i of tensor number t: 0.3 sin(0.37 i + t), plus one for norms; rounded to float32 as hlat stores it."""
    n = math.prod(shape)
    values = [(1.0 if is_norm else 0.0) + 0.3 * math.sin(0.37 * i + tensor) for i in range(n)]
    w = torch.tensor(values, dtype=torch.float32).double().reshape(shape)
    return w.requires_grad_(True)


def rms_norm(x, w, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w


def rotate(x, theta):  # (B, heads, T, E), pairs (i, i + E/2)
    half = x.shape[-1] // 2
    frequency = theta ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), frequency)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def run(c):
    d, h, k, f, v, b, t = (c[n] for n in ("hidden", "heads", "kv_heads", "ffn", "vocab", "batch", "seq"))
    e = d // h
    names, params = [], []

    def param(name, shape, is_norm=False):
        names.append(name)
        params.append(weight(shape, len(params), is_norm))
        return params[-1]

    embedding = param("embedding", (v, d))
    layers = []
    for i in range(c["layers"]):
        p = f"layers.{i}."
        layers.append([param(p + "norm1", (d,), True), param(p + "attention.qkv", ((h + 2 * k) * e, d)), param(p + "attention.output", (d, h * e)),
                       param(p + "norm2", (d,), True), param(p + "mlp.gate_up", (2 * f, d)), param(p + "mlp.down", (d, f))])
    norm = param("head.norm", (d,), True)
    head = embedding if c["tied"] else param("head.output", (v, d))

    ids = torch.tensor([(7 * i + 3) % v for i in range(b * t)]).reshape(b, t)
    targets = torch.tensor([(5 * i + 1) % v for i in range(b * t)])
    x = embedding[ids]
    for n1, qkv, out, n2, gate_up, down in layers:
        q, key, value = (rms_norm(x, n1, c["eps"]) @ qkv.T).split([h * e, k * e, k * e], -1)
        heads = lambda y, n: y.reshape(b, t, n, e).transpose(1, 2)
        q, key, value = rotate(heads(q, h), c["theta"]), rotate(heads(key, k), c["theta"]), heads(value, k)
        key, value = (y.repeat_interleave(h // k, 1) for y in (key, value))
        scores = (q @ key.transpose(-1, -2) / math.sqrt(e)).masked_fill(torch.ones(t, t).triu(1).bool(), -math.inf)
        x = x + (scores.softmax(-1) @ value).transpose(1, 2).reshape(b, t, d) @ out.T
        gate, up = (rms_norm(x, n2, c["eps"]) @ gate_up.T).chunk(2, -1)
        x = x + (F.silu(gate) * up) @ down.T
    loss = F.cross_entropy((rms_norm(x, norm, c["eps"]) @ head.T).reshape(b * t, v), targets)
    loss.backward()
    gradients = {n: [float(f"{g:.10g}") for g in p.grad.flatten().tolist()] for n, p in zip(names, params)}
    return dict(config=c, loss=loss.item(), gradients=gradients)


print(json.dumps([run(c) for c in CASES]))
