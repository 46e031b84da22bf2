#!/usr/bin/env python3
"""Reads a run folder's event file with the real tensorboard package and compares it to metrics.jsonl, eval.jsonl and events.jsonl.

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


def put(expected, tag, step, value, not_finite):
    """A null stands for a value that was not finite, or for the loss of a step that was not computed, which has no event."""
    if value is not None or not_finite:
        expected[tag, step] = None if value is None else as_float32(value)


def put_monitors(expected, step, monitors):
    names = monitors.get("not_finite", {})
    for name, value in monitors.items():
        if name == "not_finite":
            continue
        items = {"": value}
        if isinstance(value, list):
            items = {f"/{i}": item for i, item in enumerate(value)}
        elif isinstance(value, dict):
            items = {"/" + key: item for key, item in value.items()}
        for suffix, item in items.items():
            tag = f"{name}/{int(suffix[1:]):02}" if isinstance(value, list) else name + suffix
            put(expected, "monitor/" + tag, step, item, name + suffix in names)


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def read_records(folder):
    """{(tag, step): value}; None stands for a value that was not finite, a text for itself."""
    expected = {}
    for file, prefix in (("metrics.jsonl", "train/"), ("eval.jsonl", "")):
        for record in lines_of(folder / file):
            step = record["step"]
            for name, value in record.items():
                if name == "monitors":
                    put_monitors(expected, step, value)
                elif name not in ("step", "tokens", "not_finite"):
                    put(expected, prefix + name, step, value, name in record.get("not_finite", {}))
    for event in lines_of(folder / "events.jsonl"):
        if event["kind"] == "alarm":
            put(expected, "alarm/" + event["rule"], event["step"], event["value"], True)
            expected[f"alarm/{event['rule']}/evidence", event["step"]] = event["evidence"]
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
            value = tensor_util.make_ndarray(event.tensor_proto).item()
            found[tag, event.step] = value.decode() if isinstance(value, bytes) else float(value)
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    files = sorted(folder.glob("events.out.tfevents.*"))
    if len(files) != 1:
        sys.exit(f"{folder} has {len(files)} event files, expected 1")
    expected, found = read_records(folder), read_events(folder)
    problems = [f"missing in events: {key}" for key in sorted(expected.keys() - found.keys())]
    problems += [f"missing in the records: {key}" for key in sorted(found.keys() - expected.keys())]
    for key in sorted(expected.keys() & found.keys()):
        want, got = expected[key], found[key]
        if math.isfinite(got) if want is None else want != got:
            problems.append(f"{key}: recorded {want}, events {got}")
    for problem in problems[:20]:
        print(problem)
    if problems or not expected:
        sys.exit(f"{len(problems)} differences, {len(expected)} values expected")
    print(f"ok: {len(expected)} values in {len({tag for tag, _ in found})} tags agree ({files[0].name})")


if __name__ == "__main__":
    main()
