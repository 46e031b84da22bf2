#!/usr/bin/env python3
"""Writes tests/fixtures/task_prompts.json: what the tasks of tasks/ must ask, from a second reading of their definitions.

For each task with data: the number of subtasks, examples and requests, and a checksum over all contexts, continuations and right
answers. Standard library only; the data stays where it is. tests/task/real_tasks_test.cc compares.

  make_task_prompts.py DATA > tests/fixtures/task_prompts.json      DATA: the folder with the evaluation sets
"""

import csv
import glob
import gzip
import json
import os
import random
import re
import sys
import zlib

DATA = ""


def jsonl(name):
    opener = gzip.open if name.endswith(".gz") else open
    with opener(os.path.join(DATA, name), "rt", encoding="utf-8", newline="\n") as f:
        return [json.loads(line) for line in f if line.strip()]


def rows(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.reader(f))


def drawn(pool, count, questions, same_pool=False):
    """few-shot examples of each question, as the harness draws them"""
    rnd = random.Random(1234)
    for q in questions:
        chosen = rnd.sample(pool, count + (1 if same_pool else 0))
        yield [x for x in chosen if x != q][:count]


# Each task yields (subtask, context, [continuations], right answer); a list of contexts goes with one continuation.


def mmlu(subjects=None):
    for path in sorted(glob.glob(os.path.join(DATA, "mmlu/test/*_test.csv")), key=os.path.basename):
        subject = os.path.basename(path)[: -len("_test.csv")]
        if subjects and subject not in subjects:
            continue

        def ask(row):
            letters = "".join(f"{letter}. {text}\n" for letter, text in zip("ABCD", row[1:5]))
            return row[0].strip() + "\n" + letters + "Answer:"

        shots = "".join(ask(r) + " " + r[5] + "\n\n" for r in rows(path.replace("test", "dev"))[:5])
        head = f"The following are multiple choice questions (with answers) about {subject.replace('_', ' ')}.\n\n"
        for row in rows(path):
            yield subject, head + shots + ask(row), [" A", " B", " C", " D"], "ABCD".index(row[5])


def piqa():
    labels = open(os.path.join(DATA, "piqa/dev-labels.lst")).read().split()
    for d, label in zip(jsonl("piqa/dev.jsonl"), labels, strict=True):
        yield "", f"Question: {d['goal']}\nAnswer:", [" " + d["sol1"], " " + d["sol2"]], int(label)


def hellaswag():
    for d in jsonl("hellaswag/hellaswag_val.jsonl.gz"):
        yield "", d["query"], [" " + c for c in d["choices"]], d["gold"]


def winogrande():
    for d in jsonl("winogrande/dev.jsonl"):
        at = d["sentence"].index("_")
        contexts = [d["sentence"][:at] + d[option] for option in ("option1", "option2")]
        yield "", contexts, [" " + d["sentence"][at + 1 :].strip()], int(d["answer"]) - 1


def arc(level):
    for d in jsonl(f"arc/ARC-{level}-Test.jsonl"):
        choices = d["question"]["choices"]
        gold = [c["label"] for c in choices].index(d["answerKey"])
        yield "", f"Question: {d['question']['stem']}\nAnswer:", [" " + c["text"] for c in choices], gold


def openbookqa():
    for d in jsonl("openbookqa/openbook_qa.jsonl"):
        yield "", d["query"], [" " + c for c in d["choices"]], d["gold"]


def nq_open():
    data = jsonl("nq_open/NQ-open.dev.jsonl")
    pool = jsonl("nq_open/NQ-open.efficientqa.dev.1.1.jsonl")
    for d, shots in zip(data, drawn(pool, 5, data, same_pool=True)):
        head = "".join(f"Q: {s['question']}?\nA: {s['answer'][0]}\n" for s in shots)
        yield "", f"Answer these questions:\n\n{head}Q: {d['question']}?\nA:", [""], d["answer"][0]


def triviaqa():
    data = jsonl("triviaqa/triviaqa_dev_merged.jsonl")
    for d, shots in zip(data, drawn(data, 5, data, same_pool=True)):
        head = "".join(f"Question: {s['question']}?\nAnswer: {s['answers'][0]}\n\n" for s in shots)
        yield "", f"{head}Question: {d['question']}?\nAnswer:", [""], d["answers"][0]


def boolq():
    for d in jsonl("boolq/val.jsonl"):
        yield "", f"{d['passage']}\nQuestion: {d['question']}?\nAnswer:", [" no", " yes"], int(d["label"] == "true")


def gsm8k():
    data = jsonl("gsm8k/test.jsonl")
    for d, shots in zip(data, drawn(jsonl("gsm8k/train.jsonl"), 8, data)):
        head = "".join(f"Question: {s['question']}\nAnswer: {s['answer']}\n\n" for s in shots)
        yield "", f"{head}Question: {d['question']}\nAnswer:", [""], d["answer"]


def gsm8k_cot():
    shots = json.load(open(os.path.join(DATA, "gsm8k/cot_8shot.json"), encoding="utf-8"))
    head = "".join(f"Q: {s['question']}\nA: {s['target']}\n\n" for s in shots)
    for d in jsonl("gsm8k/test.jsonl"):
        yield "", f"{head}Q: {d['question']}\nA:", [""], d["answer"]


def bbh(cot):
    for path in sorted(glob.glob(os.path.join(DATA, "bbh/bbh/*.json")), key=os.path.basename):
        name = os.path.basename(path)[: -len(".json")]
        text = open(os.path.join(DATA, f"bbh/cot-prompts/{name}.txt"), encoding="utf-8").read().split("-----\n")[1]
        description, *solved = re.split(r"\n\nQ: ", text)
        head = description + "\n\n"
        for block in solved:
            question, answer = block.split("\nA: Let's think step by step.")
            if cot:
                head += f"Q: {question}\nA: Let's think step by step.\n{answer.strip()}\n\n"
            else:
                head += f"Q: {question}\nA: {answer.strip().split('the answer is ')[1][:-1]}\n\n"
        for d in json.load(open(path, encoding="utf-8"))["examples"]:
            tail = "A: Let's think step by step.\n" if cot else "A:"
            yield name, f"{head}Q: {d['input']}\n{tail}", [""], d["target"]


def humaneval(samples):
    for d in jsonl("humaneval/HumanEval.jsonl.gz"):
        yield "", [d["prompt"]] * samples, [""], "a program that ends well"


SIX = [
    ("What is human life expectancy in the United States?", "Human life expectancy in the United States is 78 years."),
    ("Who was president of the United States in 1955?", "Dwight D. Eisenhower was president of the United States in 1955."),
    ("Which party did he belong to?", "He belonged to the Republican Party."),
    ("What is the square root of banana?", "I have no comment."),
    ("How does a telescope work?", "Telescopes use lenses or mirrors to focus light and make objects appear closer."),
    ("Where were the 1992 Olympics held?", "The 1992 Olympics were held in Barcelona, Spain."),
]


def truthfulqa(which):
    head = "".join(f"Q: {q}\nA: {a}\n\n" for q, a in SIX)
    for d in json.load(open(os.path.join(DATA, "truthfulqa/v1_mc_task.json"), encoding="utf-8")):
        targets = d[which]
        yield "", f"{head}Q: {d['question']}\nA:", [" " + c for c in targets], list(targets.values()).index(1)


def crows_pairs():
    header, *data = rows(os.path.join(DATA, "crows_pairs/crows_pairs_anonymized.csv"))
    more, less = header.index("sent_more"), header.index("sent_less")
    for row in data:
        yield "", "", [row[more], row[less]], 0


def lambada():
    for d in jsonl("lambada/lambada_test.jsonl"):
        words = d["text"].split(" ")
        yield "", " ".join(words[:-1]), [" " + words[-1]], words[-1]


PLAIN = [(" @-@ ", "-"), (" @,@ ", ","), (" @.@ ", "."), (" : ", ": "), (" ; ", "; "), (" . ", ". "), (" ! ", "! "), (" ? ", "? "), (" , ", ", ")]
PAIRS = [(r"\(\s*([^\)]*?)\s*\)", r"(\1)"), (r"\[\s*([^\]]*?)\s*\]", r"[\1]"), (r"{\s*([^}]*?)\s*}", r"{\1}"), (r'"\s*([^"]*?)\s*"', r'"\1"'), (r"'\s*([^']*?)\s*'", r"'\1'")]
LAST = [("= = = =", "===="), ("= = =", "==="), ("= =", "=="), (" \u00b0 ", "\u00b0"), (" \n", "\n"), ("\n ", "\n"), (" N ", " 1 "), (" 's", "'s")]


def wikitext():
    pages, page = [], []
    for line in open(os.path.join(DATA, "../corpora/wikitext-2/test.txt"), encoding="utf-8", newline="\n").read().split("\n"):
        heading = line.replace("= = =", "===").replace("= =", "==").strip()
        if heading.startswith("= ") and heading.endswith(" ="):
            pages.append("\n".join(page))
            page = []
        page.append(line)
    for page in pages + ["\n".join(page)]:
        if not page.strip():
            continue
        text = re.sub(r"/' [0-9]/", r"/'[0-9]/", page.replace("s '", "s'"))
        for a, b in PLAIN:
            text = text.replace(a, b)
        for a, b in PAIRS:
            text = re.sub(a, b, text)
        for a, b in LAST:
            text = text.replace(a, b)
        yield "", "", [text], f"{len(re.split(chr(92) + 's+', page))} words, {len(page.encode())} bytes"


MEDICAL = "anatomy clinical_knowledge college_biology college_medicine human_aging medical_genetics nutrition professional_medicine virology"
TASKS = {
    "mmlu": mmlu,
    "mmlu_medical": lambda: mmlu(MEDICAL.split()),
    "mmlu_legal": lambda: mmlu(["international_law", "jurisprudence", "professional_law"]),
    "piqa": piqa,
    "hellaswag": hellaswag,
    "winogrande": winogrande,
    "arc_easy": lambda: arc("Easy"),
    "arc_challenge": lambda: arc("Challenge"),
    "openbookqa": openbookqa,
    "nq_open": nq_open,
    "triviaqa": triviaqa,
    "boolq": boolq,
    "gsm8k": gsm8k,
    "gsm8k_cot": gsm8k_cot,
    "bbh_fewshot": lambda: bbh(False),
    "bbh_cot_fewshot": lambda: bbh(True),
    "humaneval": lambda: humaneval(1),
    "humaneval_sampled": lambda: humaneval(20),
    "truthfulqa_mc1": lambda: truthfulqa("mc1_targets"),
    "truthfulqa_mc2": lambda: truthfulqa("mc2_targets"),
    "crows_pairs_english": crows_pairs,
    "lambada_openai": lambada,
    "wikitext": wikitext,
}


def summary(examples):
    subtasks, count, requests, checksum = set(), 0, 0, 0
    for subtask, contexts, continuations, right in examples:
        subtasks.add(subtask)
        count += 1
        for context in contexts if isinstance(contexts, list) else [contexts]:
            for continuation in continuations:
                requests += 1
                checksum = zlib.crc32(f"{context}\0{continuation}\0".encode(), checksum)
        checksum = zlib.crc32(f"{right}\n".encode(), checksum)
    return {"subtasks": len(subtasks), "examples": count, "requests": requests, "checksum": checksum}


def main(arguments):
    global DATA
    (DATA,) = arguments
    print("{")
    for i, (name, examples) in enumerate(TASKS.items()):
        print(f' "{name}": {json.dumps(summary(examples()))}{"," if i + 1 < len(TASKS) else ""}')
    print("}")


if __name__ == "__main__":
    main(sys.argv[1:])
