"""What `transformers` computes with stories260K: its greedy text after BOS, and its loss on TinyStories, for tools/harness_fixtures.py.

The loss is that of llama2.c, which trained it: stories are stripped of white space, each gets BOS in front and no end token, all stand one
after the other, and the stream is cut into rows of 512 tokens, each with the token after it as its last target.
"""
import json

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

LENGTH = 512
BOS = 1
STORIES = 250  # of tinystories_1000.json


def stream_of(tokenizer, stories):
    ids = []
    for story in stories:
        ids += [BOS] + tokenizer.encode(story.strip(), add_special_tokens=False)
    return ids


def mean_loss(model, ids):
    rows = (len(ids) - 1) // LENGTH
    total = 0.0
    with torch.inference_mode():
        for row in range(rows):
            part = torch.tensor([ids[row * LENGTH:(row + 1) * LENGTH + 1]])
            total += float(torch.nn.functional.cross_entropy(model(part[:, :-1]).logits[0].double(), part[0, 1:], reduction="sum"))
    return total / (rows * LENGTH), rows


def reference(folder, data):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    known = json.loads((folder / "greedy_200.json").read_text())["ids"]
    greedy = model.generate(torch.tensor([[BOS]]), max_new_tokens=len(known), min_new_tokens=len(known), do_sample=False)[0, 1:].tolist()
    assert greedy == known, "the greedy text is not the known one"
    stories = json.loads((data / "corpora/tinystories/tinystories_1000.json").read_text())
    loss, rows = mean_loss(model, stream_of(tokenizer, stories[:STORIES]))
    return {"file": "corpora/tinystories/tinystories_1000.json", "stories": STORIES, "rows": rows, "loss": loss}
