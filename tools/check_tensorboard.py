#!/usr/bin/env python3
"""Reads a run folder's event file with the real tensorboard package and compares it to metrics.jsonl.

    python3 -m venv /tmp/tb && /tmp/tb/bin/pip install tensorboard
    /tmp/tb/bin/python tools/check_tensorboard.py RUN_DIR

Exit code 0 when every recorded value of every step is there and equal in float32, and nothing else is.
"""
import json
import math
import pathlib
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util


def as_float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def read_metrics(folder):
    """{(tag, step): value}; null stands for a value that was not finite."""
    expected = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        for name, value in record.items():
            if name not in ("step", "tokens"):
                expected["train/" + name, record["step"]] = None if value is None else as_float32(value)
    return expected


def read_events(folder):
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    found = {}
    for tag in accumulator.Tags()["scalars"]:
        for event in accumulator.Scalars(tag):
            found[tag, event.step] = event.value
    for tag in accumulator.Tags()["tensors"]:  # newer versions turn simple values into tensors
        for event in accumulator.Tensors(tag):
            found[tag, event.step] = float(tensor_util.make_ndarray(event.tensor_proto))
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    files = sorted(folder.glob("events.out.tfevents.*"))
    if len(files) != 1:
        sys.exit(f"{folder} has {len(files)} event files, expected 1")
    expected, found = read_metrics(folder), read_events(folder)
    problems = [f"missing in events: {key}" for key in sorted(expected.keys() - found.keys())]
    problems += [f"missing in metrics.jsonl: {key}" for key in sorted(found.keys() - expected.keys())]
    for key in sorted(expected.keys() & found.keys()):
        want, got = expected[key], found[key]
        if math.isfinite(got) if want is None else want != got:
            problems.append(f"{key}: metrics.jsonl {want}, events {got}")
    for problem in problems[:20]:
        print(problem)
    if problems or not expected:
        sys.exit(f"{len(problems)} differences, {len(expected)} values expected")
    print(f"ok: {len(expected)} values in {len({tag for tag, _ in found})} tags agree ({files[0].name})")


if __name__ == "__main__":
    main()
