#!/usr/bin/env python3
"""Writes tests/fixtures/eval: what lm-evaluation-harness with `transformers` says of small models, for tests/eval/harness_test.cc.

prompts.json has the texts that every task asks (a hash of each, and some in full), answers_MODEL.json what the model answers, f32 on the
CPU, one request at a time. Models: llama2 (GQA, Llama-2's SentencePiece tokenizer, BOS) and gpt2 (MHA, tied, GPT-2's byte-level BPE, no
BOS; 1024 tokens, so that long prompts are cut) with weights by formula (tools/formula_llama.py), and the trained stories260K (512 tokens).
Needs torch, transformers and lm-eval (versions are in the files); DATA is the folder with eval, corpora, tokenizers and weights:
    python3 tools/harness_fixtures.py DATA tests/fixtures/eval             all files; --models NAME...: those models alone
"""
import argparse
import importlib.metadata
import json
import os
import pathlib
import shutil
import tempfile

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
import lm_eval
import torch
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager
from transformers import AutoModelForCausalLM, AutoTokenizer

import formula_llama
import harness_tasks
import stories_reference

SHAPE = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_act="silu", hidden_size=32, num_hidden_layers=2,
             num_attention_heads=4, rms_norm_eps=1e-5, rope_theta=10000.0, torch_dtype="float32")
FORMULA_MODELS = {
    "llama2": (SHAPE | dict(intermediate_size=48, num_key_value_heads=2, vocab_size=32003, max_position_embeddings=2048,
                            tie_word_embeddings=False, bos_token_id=1, eos_token_id=2),
               dict(tokenizer_class="PreTrainedTokenizerFast", bos_token="<s>", eos_token="</s>", unk_token="<unk>")),
    "gpt2": (SHAPE | dict(intermediate_size=40, num_key_value_heads=4, vocab_size=50257, max_position_embeddings=1024,
                          tie_word_embeddings=True, bos_token_id=None, eos_token_id=50256),
             dict(tokenizer_class="PreTrainedTokenizerFast", eos_token="<|endoftext|>")),
}
STORIES_TOKENIZER = dict(tokenizer_class="PreTrainedTokenizerFast", bos_token="<s>", eos_token="</s>", unk_token="<unk>")

MODELS = (*FORMULA_MODELS, "stories260K")

NEW_TOKENS = 24        # at most, of each generated text
PROMPTS = 12           # documents of a task whose texts are kept
PROMPTS_OF_FAMILY = 2  # of each of the many tasks of MMLU and BBH
TEXTS = 2              # documents with their texts in full
SCORED = {"wikitext": 2, "humaneval": 4, "gsm8k": 3, "gsm8k_cot": 3, "nq_open": 6, "triviaqa": 6, "boolq": 6, "lambada_openai": 12}
SCORED_OF_FAMILY = 2
SCORED_OTHERS = 12
WITH_OTHER_BOS = ["arc_easy", "wikitext"]


def is_family(task):
    return task.startswith(("mmlu_", "bbh_"))


def scored_tasks(tasks):
    wanted = {f"mmlu_{s}" for s in harness_tasks.MMLU_SCORED}
    wanted |= {f"bbh_{kind}_{s}" for s in harness_tasks.BBH_SCORED for kind in ("fewshot", "cot_fewshot")}
    return [task for task in tasks if task in wanted or not is_family(task)]


class RecordingLM(HFLM):
    """Keeps how many tokens each scored request has, and how near the second best token of a generated text ever came."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.token_counts, self.smallest_gap = {}, float("inf")

    def _loglikelihood_tokens(self, requests, **options):
        for texts, context, continuation in requests:
            self.token_counts[texts] = (len(context), len(continuation))
        return super()._loglikelihood_tokens(requests, **options)

    def _model_generate(self, context, max_length, **options):
        ids = super()._model_generate(context, max_length, **options)
        with torch.inference_mode():
            best = self.model(ids).logits[0, context.shape[1] - 1:-1].topk(2, dim=-1).values
        self.smallest_gap = min(self.smallest_gap, float((best[:, 0] - best[:, 1]).min()))
        return ids


def evaluate(model, manager, tasks, limit):
    """Samples of each task, in the order of its documents, and the results; all tasks have the same number of documents."""
    out = lm_eval.simple_evaluate(model=model, tasks=tasks, limit=limit, task_manager=manager, log_samples=True, bootstrap_iters=0,
                                  gen_kwargs={"max_gen_toks": NEW_TOKENS}, verbosity="ERROR")
    return out["samples"], out["results"]


def by_document(samples):
    """Samples of one task come once for each filter."""
    documents = {}
    for sample in samples:
        documents.setdefault(sample["doc_id"], []).append(sample)
    return sorted(documents.items())


def texts_of(sample):
    for arguments in sample["arguments"]:
        if len(arguments) == 1:  # a whole text
            yield "", arguments[0]
        else:
            yield arguments[0], arguments[1] if isinstance(arguments[1], str) else ""


def prompts(manager, tasks):
    groups = {PROMPTS_OF_FAMILY: [t for t in tasks if is_family(t)], PROMPTS: [t for t in tasks if not is_family(t)]}
    kept = {}
    for limit, names in groups.items():
        samples, _ = evaluate("dummy", manager, names, limit)
        for task in names:
            docs = []
            for number, (doc_id, of_doc) in enumerate(by_document(samples[task])):
                pairs = list(texts_of(of_doc[0]))
                entry = {"id": doc_id, "hashes": [[f"{formula_llama.hash_name(t):016x}" for t in pair] for pair in pairs]}
                if number < TEXTS and task in scored_tasks(tasks):
                    entry["texts"] = pairs if len({c for c, _ in pairs}) > 1 else [pairs[0]] + [[None, t] for _, t in pairs[1:]]
                docs.append(entry)
            kept[task] = {"docs": docs}
            options = samples[task][0]["arguments"][0][-1]
            if isinstance(options, dict):
                kept[task]["generation"] = {key: value for key, value in options.items() if key != "max_gen_toks"}
    return kept


def metrics_of(of_doc):
    """As the results name them, `metric,filter`."""
    return {f"{metric},{sample['filter']}": sample[metric] for sample in of_doc for metric in sample["metrics"] if metric != "bypass"}


def answers(model, manager, tasks):
    limits = {}
    for task in tasks:
        limits.setdefault(SCORED_OF_FAMILY if is_family(task) else SCORED.get(task, SCORED_OTHERS), []).append(task)
    kept = {}
    for limit, names in limits.items():
        samples, results = evaluate(model, manager, names, limit)
        for task in names:
            docs = [answers_of_document(model, doc_id, of_doc) for doc_id, of_doc in by_document(samples[task])]
            numbers = {key: value for key, value in results[task].items() if isinstance(value, float) and "stderr" not in key}
            kept[task] = {"docs": docs, "results": numbers}
    return {task: kept[task] for task in tasks}


def answers_of_document(model, doc_id, of_doc):
    first, entry = of_doc[0], {"id": doc_id}
    replies = [reply[0] for reply in first["resps"]]
    if isinstance(replies[0], str):
        entry["text"] = replies[0]
    elif isinstance(replies[0], (list, tuple)):
        pairs = list(texts_of(first))
        entry["scores"] = [[float(p), int(bool(greedy)), *model.token_counts[pair]]
                           for (p, greedy), pair in zip(replies, pairs, strict=True)]
    else:
        entry["rolling"] = [float(replies[0]), len(model.tok_encode(next(texts_of(first))[1]))]
    return entry | {"metrics": metrics_of(of_doc)}


def greedy_requests(model):
    """Continuations that are the model's own greedy text, and the same with another last token: whether that is noticed."""
    kept = []
    for text in ("The quick brown fox", "Question: Why?\nAnswer:", "def f(x):\n    return", "1 2 3 4 5", "Once upon a time"):
        context = model.tok_encode(text)
        ids = model.model.generate(torch.tensor([context]), max_new_tokens=6, min_new_tokens=6, do_sample=False)[0, len(context):].tolist()
        for continuation in (ids, ids[:-1] + [(ids[-1] + 1) % model.vocab_size]):
            logprob, greedy = model._loglikelihood_tokens([((None, None), context, continuation)])[0]
            kept.append({"context": context, "continuation": continuation, "logprob": float(logprob), "greedy": bool(greedy)})
    return kept


def open_model(folder, **options):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return RecordingLM(pretrained=model, tokenizer=AutoTokenizer.from_pretrained(folder), batch_size=1, **options)


def write_folders(data, to):
    tokenizers = data / "tokenizers"
    for name, (config, tokenizer_config) in FORMULA_MODELS.items():
        formula_llama.write(to / name, config, tokenizers / name / "tokenizer.json", tokenizer_config)
    shutil.copytree(data / "weights/stories260K_hf", to / "stories260K", copy_function=shutil.copyfile)
    (to / "stories260K").chmod(0o755)
    (to / "stories260K/tokenizer_config.json").write_text(json.dumps(STORIES_TOKENIZER))


def model_files(name):
    """What the test needs to make the same folder."""
    if name not in FORMULA_MODELS:
        return {"tokenizer_config.json": STORIES_TOKENIZER}
    return dict(zip(("config.json", "tokenizer_config.json"), FORMULA_MODELS[name]))


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(f"{path}: {path.stat().st_size} bytes", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("data", type=pathlib.Path)
    arguments.add_argument("to", type=pathlib.Path)
    arguments.add_argument("--models", nargs="+", choices=MODELS)
    arguments = arguments.parse_args()
    torch.set_num_threads(1)  # sums in one order on every machine
    versions = {name: importlib.metadata.version(name) for name in ("lm_eval", "transformers", "torch", "tokenizers", "datasets")}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "tasks").mkdir()
        tasks = harness_tasks.write_tasks(arguments.data.resolve(), pathlib.Path(lm_eval.__file__).parent / "tasks", folder / "tasks")
        manager = TaskManager(include_path=str(folder / "tasks"), include_defaults=False)
        if not arguments.models:
            write(arguments.to / "prompts.json", {"versions": versions, "notes": harness_tasks.NOTES, "tasks": prompts(manager, tasks)})
        write_folders(arguments.data, folder)
        for name in arguments.models or MODELS:
            model = open_model(folder / name)
            kept = {"versions": versions, **model_files(name), "new_tokens": NEW_TOKENS}
            kept |= {"tasks": answers(model, manager, scored_tasks(tasks)), "greedy": greedy_requests(model)}
            if name == "llama2":  # its tokenizer puts BOS first by itself
                kept["without_bos"] = answers(open_model(folder / name, add_bos_token=False), manager, WITH_OTHER_BOS)
            if name == "stories260K":
                kept["stories"] = stories_reference.reference(folder / name, arguments.data)
            kept["smallest_gap"] = model.smallest_gap
            assert model.smallest_gap > 1e-5, f"{name}: two tokens of a greedy text are too near: {model.smallest_gap}"
            write(arguments.to / f"answers_{name}.json", kept)


if __name__ == "__main__":
    main()
