#!/usr/bin/env python3
"""What scoring and generation cost with `transformers`, batched as lm-evaluation-harness batches: the opponent of `hlat eval`.

Requests come from files of {"context": [ids], "continuation": [ids]} per line (tools/harness_requests.py). As the harness does: requests
that differ only in the last token of the continuation share one forward pass; rows are sorted by length, longest first, taken in batches
of one size, padded on the right to the longest of the batch, without a mask; log_softmax in f32 over the logits of all positions. Weights
are random. Each line of the output is a JSON object. Needs torch and transformers:
    python3 tools/hf_eval_baseline.py --shape hlat-7b --requests mmlu.jsonl hellaswag.jsonl --batch 16 --dense 16x512 --generate 1 32
    python3 tools/hf_eval_baseline.py --shape llama-134m --device cpu --threads 2 --dense 4x512
"""
import argparse
import json
import pathlib
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

SHAPES = {
    "hlat-7b": dict(hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, intermediate_size=11008, max_position_embeddings=4096),
    "llama-134m": dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=2048, max_position_embeddings=2048),
}
VOCAB = 32000
PROMPT, NEW_TOKENS = 128, 128  # of the generated texts


def make_model(shape, device):
    torch.set_default_dtype(torch.bfloat16 if device == "cuda" else torch.float32)
    with torch.device(device):
        return LlamaForCausalLM(LlamaConfig(vocab_size=VOCAB, **SHAPES[shape])).eval()


def seconds_of(work, device, times=1):
    if device == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(times):
        work()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / times


def rows_of(requests):
    """Rows to compute, longest first, each with the continuations that are read off it."""
    rows = {}
    for number, (context, continuation) in enumerate(requests):
        rows.setdefault(tuple(context + continuation[:-1]), []).append((number, continuation))
    return sorted(rows.items(), key=lambda row: (-len(row[0]), row[0]))


def score(model, rows, batch, device, answers):
    """Returns the tokens that were computed, padding included."""
    computed = 0
    for first in range(0, len(rows), batch):
        part = rows[first:first + batch]
        longest = len(part[0][0])
        ids = torch.zeros(len(part), longest, dtype=torch.long)
        for row, (tokens, _) in enumerate(part):
            ids[row, :len(tokens)] = torch.tensor(tokens)
        computed += ids.numel()
        logprobs = torch.log_softmax(model(ids.to(device)).logits, -1, dtype=torch.float32)
        for row, (tokens, continuations) in enumerate(part):
            for number, continuation in continuations:
                own = logprobs[row, len(tokens) - len(continuation):len(tokens)]
                target = torch.tensor(continuation, device=device)
                greedy = bool((own.argmax(-1) == target).all())
                answers[number] = (float(own.gather(-1, target[:, None]).sum()), greedy)
    return computed


def score_file(model, path, batch, device, max_length):
    requests = []
    for line in pathlib.Path(path).read_text().splitlines():
        request = json.loads(line)
        context, continuation = request["context"], request["continuation"]
        requests.append((context[-(max_length + 1 - len(continuation)):], continuation))
    answers = [None] * len(requests)
    score(model, rows_of(requests)[:batch], batch, device, answers)  # the longest batch: memory and kernels are there afterwards
    facts = {}

    def work():
        rows = rows_of(requests)
        facts.update(rows=len(rows), computed=score(model, rows, batch, device, answers))

    seconds = seconds_of(work, device)
    assert all(answers)
    tokens = sum(len(context) + len(continuation) for context, continuation in requests)
    return {"score": pathlib.Path(path).name, "batch": batch, "requests": len(requests), "request_tokens": tokens, **facts,
            "seconds": round(seconds, 3), "requests_s": round(len(requests) / seconds, 2)}


def score_dense(model, rows, length, device):
    ids = torch.randint(0, VOCAB, (rows, length), device=device)
    work = lambda: torch.log_softmax(model(ids).logits.float(), -1).gather(-1, ids[:, :, None]).sum()
    work()
    return {"score": f"{rows}x{length}", "tok_s": round(rows * length / seconds_of(work, device, 3))}


def generate(model, rows, device):
    ids = torch.randint(0, VOCAB, (rows, PROMPT), device=device)
    work = lambda: model.generate(ids, max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, do_sample=False)
    work()
    return {"generate": rows, "prompt": PROMPT, "new": NEW_TOKENS, "new_tok_s": round(rows * NEW_TOKENS / seconds_of(work, device, 2), 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="hlat-7b")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU")
    parser.add_argument("--requests", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--batch", nargs="*", type=int, default=[16], help="batch sizes to score the files with")
    parser.add_argument("--dense", nargs="*", default=[], metavar="ROWSxLENGTH")
    parser.add_argument("--generate", nargs="*", type=int, default=[], metavar="ROWS")
    arguments = parser.parse_args()
    device = arguments.device
    if device == "cpu":
        torch.set_num_threads(arguments.threads)
    model = make_model(arguments.shape, device)

    def say(facts):
        program = f"transformers on torch {torch.__version__}"
        print(json.dumps({"program": program, "shape": arguments.shape, "device": device} | facts), flush=True)

    with torch.inference_mode():
        for dense in arguments.dense:
            say(score_dense(model, *map(int, dense.split("x")), device))
        for path in arguments.requests:
            for batch in arguments.batch:
                say(score_file(model, path, batch, device, model.config.max_position_embeddings))
        for rows in arguments.generate:
            say(generate(model, rows, device))


if __name__ == "__main__":
    main()
