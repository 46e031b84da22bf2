#!/usr/bin/env python3
"""Opens model folders with Hugging Face's `transformers` and compares them: weights, and the logits of a fixed prompt.

The first folder is the reference, the others are exports of it (hlat ckpt export). Prints the largest difference of each, and ends with
1 when logits differ by more than the tolerance times the largest logit, or when weights or settings are missing. With a tokenizer in a
folder, a text is encoded and decoded with it. Needs torch and transformers; the CPU is enough:
    python3 tools/hf_check.py ORIGINAL EXPORTED... [--tolerance 1e-4]
"""
import argparse
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def load(folder):
    model, report = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    problems = {key: value for key, value in report.items() if value}
    return model.eval(), problems


def logits_of(model, tokens):
    prompt = torch.tensor([[(7 * i + 3) % model.config.vocab_size for i in range(tokens)]])
    with torch.no_grad():
        return model(prompt).logits[0]


def check_tokenizer(folder):
    if not (folder / "tokenizer.json").exists():
        return "no tokenizer.json"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("Once upon a time")["input_ids"]
    return f"{type(tokenizer).__name__}, {tokenizer.decode(ids)!r} is {ids}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("original", type=pathlib.Path)
    arguments.add_argument("exported", type=pathlib.Path, nargs="+")
    arguments.add_argument("--tolerance", type=float, default=1e-4)
    given = arguments.parse_args()
    reference, problems = load(given.original)
    tokens = min(48, reference.config.max_position_embeddings)
    expected, weights = logits_of(reference, tokens), reference.state_dict()
    ok = not problems
    for folder in given.exported:
        model, problems = load(folder)
        state = model.state_dict()
        logits = (logits_of(model, tokens) - expected).abs().max().item() / expected.abs().max().item()
        apart = max((state[name] - weights[name]).abs().max().item() for name in weights) if state.keys() == weights.keys() else None
        good = not problems and apart is not None and logits <= given.tolerance
        ok = ok and good
        print(f"{folder}: {'ok' if good else 'DIFFERS'}: logits {logits:.3g} of the largest, weights "
              f"{'have other names' if apart is None else f'{apart:.3g}'}; {check_tokenizer(folder)}{f'; {problems}' if problems else ''}")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
