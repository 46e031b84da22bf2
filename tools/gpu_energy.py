#!/usr/bin/env python3
"""Time, energy and power of single operations on an NVIDIA GPU that run for seconds, from NVML's energy counter.

    gpu_energy.py          matrix products on several kinds of data, copies, attention; one after the other and on two streams

Under load a large GPU is limited by its power: what an operation takes in a step is its energy over the limit. Needs PyTorch and a GPU.
"""
import ctypes
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

nvml, device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
nvml.nvmlInit_v2()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))


def energy():  # joules since the driver was loaded
    value = ctypes.c_ulonglong()
    nvml.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(value))
    return value.value / 1e3


def clock():  # MHz
    value = ctypes.c_uint()
    nvml.nvmlDeviceGetClockInfo(device, 1, ctypes.byref(value))
    return value.value


def row(name, work, flops=0, moved=0, settle=0.6, seconds=1.6):
    work()
    torch.cuda.synchronize()
    start = time.time()
    work()
    torch.cuda.synchronize()
    times = max(1, int(0.1 / (time.time() - start)))
    start = time.time()
    while time.time() - start < settle:
        [work() for _ in range(times)]
        torch.cuda.synchronize()
    before, start, count, clocks = energy(), time.time(), 0, []
    while time.time() - start < seconds:
        [work() for _ in range(times)]
        clocks.append(clock())
        torch.cuda.synchronize()
        count += times
    joules, s = energy() - before, time.time() - start
    rate = f"{flops * count / s / 1e12:7.1f} TFLOP/s" if flops else f"{moved * count / s / 1e12:7.2f} TB/s"
    print(f"{name:40s} {1e3 * s / count:8.3f} ms {joules / count:8.4f} J {joules / s:5.0f} W {sorted(clocks)[len(clocks) // 2]:5d} MHz {rate}", flush=True)


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.05


def products():
    n = 8192
    a, b, c, flops = random(n, n), random(n, n), random(n, n), 2 * n**3
    row("8192^3", lambda: torch.mm(a, b.t(), out=c), flops)
    zero, positive = torch.zeros_like(a), (a.abs(), b.abs())
    row("8192^3, zeros", lambda: torch.mm(zero, zero.t(), out=c), flops)
    row("8192^3, positive numbers", lambda: torch.mm(positive[0], positive[1].t(), out=c), flops)
    x, w, y = random(4096, 4096), random(22016, 4096), random(4096, 22016)
    dx, dw, flops = random(4096, 4096), random(22016, 4096), 2 * 4096 * 4096 * 22016
    row("4096 x 22016 x 4096 forward", lambda: torch.mm(x, w.t(), out=y), flops)
    row("4096 x 22016 x 4096 by input", lambda: torch.mm(y, w, out=dx), flops)
    row("4096 x 22016 x 4096 by weight", lambda: torch.mm(y.t(), x, out=dw), flops)


def attention(name, batch, seq, heads, kv, head):
    q, k, v = (random(batch, n, seq, head).requires_grad_() for n in (heads, kv, kv))
    dout, flops = random(batch, heads, seq, head), 2 * batch * heads * seq * seq * head
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        forward = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != kv)
        with torch.no_grad():
            row(f"{name}, cuDNN forward", forward, flops)
        out = forward()
        row(f"{name}, cuDNN backward", lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True), 2.5 * flops)


def together():
    a, b, c, flops = random(8192, 8192), random(8192, 8192), random(8192, 8192), 4 * 8192**3
    source = torch.empty(256 << 20, dtype=torch.uint8, device="cuda").random_()
    target, side, done, ready = torch.empty_like(source), torch.cuda.Stream(), torch.cuda.Event(), torch.cuda.Event()

    def one_by_one():
        [torch.mm(a, b.t(), out=c) for _ in range(2)]
        [target.copy_(source) for _ in range(2)]

    def beside():
        with torch.cuda.stream(side):
            [target.copy_(source) for _ in range(2)]
        [torch.mm(a, b.t(), out=c) for _ in range(2)]
        done.record(side)
        torch.cuda.current_stream().wait_event(done)
        ready.record()
        side.wait_event(ready)

    row("two 8192^3, two copies of 256 MiB", one_by_one, flops)
    row("the same, copies on a stream of their own", beside, flops)


torch.manual_seed(0)
products()
source = torch.empty(2 << 30, dtype=torch.uint8, device="cuda").random_()
target = torch.empty_like(source)
row("copy of 2 GiB", lambda: target.copy_(source), moved=2 * source.numel())
attention("attention of hlat-7b", 1, 4096, 32, 32, 128)
attention("attention of llama-1b", 8, 4096, 32, 4, 64)
together()
