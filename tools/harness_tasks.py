"""The tasks of lm-evaluation-harness over local data, for tools/harness_fixtures.py. Each task keeps the harness's own definition: a YAML
of ours includes the installed one and names only where the documents are. The documents are written as JSON with the columns of the data
sets that the harness would download. What cannot be as the harness has it is in NOTES.
"""
import csv
import gzip
import json
import pathlib
import re

import yaml

MMLU_SCORED = ["abstract_algebra", "high_school_us_history", "moral_scenarios"]
BBH_SCORED = ["boolean_expressions", "date_understanding", "word_sorting"]

NOTES = [
    "hellaswag: the documents are an already cleaned copy (query, choices), so the harness's cleaning is not run",
    "nq_open: few-shot examples come from the EfficientQA development file, as the train split is not there",
    "triviaqa: few-shot examples come from the evaluated documents themselves, as the train split is not there",
    "crows_pairs_english: the 1508 pairs of the original set, not the revised multilingual one",
    "wikitext: pages of the word-level variant with <unk>, not of the raw one",
    "humaneval: generated text only, no program is run",
]


def jsonl(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def mmlu(folder, subject, split):
    with open(folder / split / f"{subject}_{split}.csv", newline="", encoding="utf-8") as file:
        for question, *choices, letter in csv.reader(file):
            yield {"question": question, "subject": subject, "choices": choices, "answer": "ABCD".index(letter)}


def arc(path):
    for doc in jsonl(path):
        choices = doc["question"]["choices"]
        yield {"id": doc["id"], "question": doc["question"]["stem"], "answerKey": doc["answerKey"],
               "choices": {"text": [c["text"] for c in choices], "label": [c["label"] for c in choices]}}


def piqa(folder):
    labels = (folder / "dev-labels.lst").read_text().split()
    for doc, label in zip(jsonl(folder / "dev.jsonl"), labels, strict=True):
        yield {"goal": doc["goal"], "sol1": doc["sol1"], "sol2": doc["sol2"], "label": int(label)}


def openbookqa(path):
    for doc in jsonl(path):
        yield {"question_stem": doc["query"], "choices": {"text": doc["choices"], "label": list("ABCD")}, "answerKey": "ABCD"[doc["gold"]]}


def truthfulqa(path):
    for doc in json.loads(path.read_text()):
        yield {"question": doc["question"]} | {
            kind: {"choices": list(doc[kind]), "labels": list(doc[kind].values())} for kind in ("mc1_targets", "mc2_targets")}


def crows_pairs(path):
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield {"sent_more": row["sent_more"], "sent_less": row["sent_less"], "bias_type": row["bias_type"],
                   "stereo_antistereo": row["stereo_antistereo"]}


def wikitext(path):
    """A page begins at a line with a title, ` = title = `; what stands before the first one has no words."""
    page = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        if re.fullmatch(r" = [^=](.*[^=])? = ", line):
            if "".join(page).strip():
                yield {"page": "\n".join(page)}
            page = []
        page.append(line)
    yield {"page": "\n".join(page)}


def documents(data):
    """Task name -> (split name -> documents, keys to override)."""
    def one(name, docs, split="validation", **keys):
        return {name: ({split: list(docs)}, keys)}

    eval_, none = data / "eval", {"training_split": None}
    tasks = {}
    for subject in sorted(p.name[: -len("_test.csv")] for p in (eval_ / "mmlu/test").glob("*.csv")):
        tasks[f"mmlu_{subject}"] = ({split: list(mmlu(eval_ / "mmlu", subject, split)) for split in ("dev", "test")}, {"num_fewshot": 5})
    for path in sorted((eval_ / "bbh/bbh").glob("*.json")):
        examples = json.loads(path.read_text())["examples"]
        for kind in ("fewshot", "cot_fewshot"):
            tasks |= one(f"bbh_{kind}_{path.stem}", examples, "test")
    tasks |= one("piqa", piqa(eval_ / "piqa"), **none)
    hellaswag = [{"query": d["query"], "choices": d["choices"], "label": d["gold"]}
                 for d in jsonl(eval_ / "hellaswag/hellaswag_val.jsonl.gz")]
    tasks |= one("hellaswag", hellaswag, process_docs=None, **none)
    tasks |= one("winogrande", jsonl(eval_ / "winogrande/dev.jsonl"), **none)
    for name, file in (("arc_easy", "ARC-Easy-Test"), ("arc_challenge", "ARC-Challenge-Test")):
        tasks |= one(name, arc(eval_ / f"arc/{file}.jsonl"), "test", validation_split=None, **none)
    tasks |= one("openbookqa", openbookqa(eval_ / "openbookqa/openbook_qa.jsonl"), "test", validation_split=None, **none)
    tasks["nq_open"] = ({"train": jsonl(eval_ / "nq_open/NQ-open.efficientqa.dev.1.1.jsonl"),
                         "validation": jsonl(eval_ / "nq_open/NQ-open.dev.jsonl")}, {"num_fewshot": 5})
    trivia = [{"question": d["question"], "answer": {"aliases": d["answers"]}} for d in jsonl(eval_ / "triviaqa/triviaqa_dev_merged.jsonl")]
    tasks |= one("triviaqa", trivia, num_fewshot=5, **none)
    boolq = [d | {"label": int(d["label"] == "true")} for d in jsonl(eval_ / "boolq/val.jsonl")]
    tasks |= one("boolq", boolq, **none)
    gsm8k = {split: jsonl(eval_ / f"gsm8k/{split}.jsonl") for split in ("train", "test")}
    tasks["gsm8k"] = (gsm8k, {"num_fewshot": 8})
    tasks |= one("gsm8k_cot", gsm8k["test"], "test", **none)
    tasks |= one("humaneval", jsonl(eval_ / "humaneval/HumanEval.jsonl.gz"), "test")
    for kind in ("mc1", "mc2"):
        tasks |= one(f"truthfulqa_{kind}", truthfulqa(eval_ / "truthfulqa/v1_mc_task.json"))
    tasks |= one("crows_pairs_english", crows_pairs(eval_ / "crows_pairs/crows_pairs_anonymized.csv"), "test")
    tasks |= one("lambada_openai", jsonl(eval_ / "lambada/lambada_test.jsonl"), "test")
    tasks |= one("wikitext", wikitext(data / "corpora/wikitext-2/test.txt"), "test", validation_split=None, **none)
    return tasks


def installed_definitions(tasks_folder):
    """Name of a task -> the harness's own YAML of it."""
    found = {}
    for path in sorted(tasks_folder.rglob("*.yaml")):
        name = re.search(r"^[\"']?task[\"']?:\s*[\"']?([\w-]+)[\"']?\s*$", path.read_text(encoding="utf-8"), re.M)
        if name:
            found.setdefault(name[1], path)
    return found


def write_tasks(data, tasks_folder, to):
    """Writes a YAML for each task and its documents to a folder; the names of the tasks."""
    installed = installed_definitions(pathlib.Path(tasks_folder))
    names = []
    for name, (splits, keys) in documents(pathlib.Path(data)).items():
        files = {}
        for split, docs in splits.items():
            files[split] = str(to / f"{name}.{split}.jsonl")
            pathlib.Path(files[split]).write_text("".join(json.dumps(doc) + "\n" for doc in docs))
        definition = {"include": str(installed[name]), "task": name, "dataset_path": "json", "dataset_name": None,
                      "dataset_kwargs": {"data_files": files, "cache_dir": str(to / "cache")}, **keys}
        if name == "humaneval":
            definition = humaneval(installed[name], definition)
        (to / f"{name}.yaml").write_text(yaml.safe_dump(definition))
        names.append(name)
    return names


def humaneval(path, definition):
    """Without the metric, which would load a program from a hub and run what the model wrote."""
    text = re.sub(r"!function \S+", "none", path.read_text(encoding="utf-8"))
    own = yaml.safe_load(text)
    keep = {key: own[key] for key in ("test_split", "output_type", "doc_to_text", "doc_to_target", "generation_kwargs") if key in own}
    del definition["include"]
    return definition | keep | {"metric_list": [{"metric": "bypass"}]}
