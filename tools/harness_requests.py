#!/usr/bin/env python3
"""Writes the requests that lm-evaluation-harness makes of a task, in token ids: a line {"context": [...], "continuation": [...]} each, for
tools/hf_eval_baseline.py on a machine that has neither the harness nor the data. Needs lm-eval and transformers:
    python3 tools/harness_requests.py DATA --tasks mmlu --limit 20 > mmlu.jsonl       20 documents of each of the 57 subjects, 5 shots
    python3 tools/harness_requests.py DATA --tasks hellaswag --limit 1000 > hellaswag.jsonl
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
import lm_eval
from lm_eval.api.model import TemplateLM
from lm_eval.tasks import TaskManager
from transformers import PreTrainedTokenizerFast

import harness_tasks


class Requests(TemplateLM):
    """Has a tokenizer and no model: it writes down what it is asked."""

    def __init__(self, tokenizer, special):
        super().__init__()
        self.tokenizer, self.special = tokenizer, special

    eot_token_id = property(lambda self: self.tokenizer.eos_token_id)

    def tok_encode(self, string, add_special_tokens=None, **_):
        return self.tokenizer.encode(string, add_special_tokens=self.special if add_special_tokens is None else add_special_tokens)

    def _loglikelihood_tokens(self, requests, **_):
        for _, context, continuation in requests:
            print(json.dumps({"context": context, "continuation": continuation}, separators=(",", ":")))
        return [(0.0, False)] * len(requests)

    def loglikelihood_rolling(self, requests, **_):
        raise NotImplementedError("not needed to compare speed")

    generate_until = loglikelihood_rolling


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--tasks", nargs="+", required=True, help="names; mmlu stands for its 57")
    parser.add_argument("--shots", type=int, help="default: as the task says, 5 for mmlu")
    parser.add_argument("--limit", type=int, help="documents of each task")
    parser.add_argument("--tokenizer", default="tokenizers/llama2/tokenizer.json", help="in DATA")
    parser.add_argument("--no-bos", action="store_true")
    arguments = parser.parse_args()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(arguments.data / arguments.tokenizer), bos_token="<s>", eos_token="</s>")
    with tempfile.TemporaryDirectory() as folder:
        names = harness_tasks.write_tasks(arguments.data.resolve(), pathlib.Path(lm_eval.__file__).parent / "tasks", pathlib.Path(folder))
        manager = TaskManager(include_path=folder, include_defaults=False)
        for wanted in arguments.tasks:
            tasks = [name for name in names if name == wanted or wanted == "mmlu" and name.startswith("mmlu_")]
            if not tasks:
                sys.exit(f"no task {wanted}: there are mmlu, " + ", ".join(n for n in names if not n.startswith("mmlu_")))
            lm_eval.simple_evaluate(model=Requests(tokenizer, not arguments.no_bos), tasks=tasks, limit=arguments.limit,
                                    task_manager=manager, num_fewshot=arguments.shots, bootstrap_iters=0)


if __name__ == "__main__":
    main()
