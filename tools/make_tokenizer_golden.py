#!/usr/bin/env python3
"""Makes the fixtures of the tokenizer tests: small tokenizers trained on the text below, and the ids that the reference
libraries give for texts made to be difficult.

Needs the pip packages tokenizers, sentencepiece and tiktoken. With SHARED, a folder that has the published tokenizers
(gpt2/tokenizer.json and so on), also the ids that those give.

  make_tokenizer_golden.py [SHARED]     writes tests/fixtures/tokenizer/
"""

import base64
import io
import json
import pathlib
import random
import sys

import sentencepiece
import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/fixtures/tokenizer"

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")

CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
UPPER, LOWER, ENDS = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LEAD = r"[^\r\n\p{L}\p{N}]?"
O200K = f"{LEAD}{UPPER}*{LOWER}+{ENDS}|{LEAD}{UPPER}+{LOWER}*{ENDS}|" + r"\p{N}{1,3}" + TAIL
TEKKEN = f"{LEAD}{UPPER}*{LOWER}+|{LEAD}{UPPER}+{LOWER}*|" + r"\p{N}" + TAIL
KIMI = r"[\p{Han}]+|" + O200K.replace("M}]", "M}&&[^\\p{Han}]]").replace("/]*", "]*")
DEEPSEEK_CJK = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
DEEPSEEK = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
BLOOM = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"

STEP = 3  # patched fixtures are held against every third text

CORPUS = [
    "The river turned slowly past the mill, and the miller's daughter counted the boats that didn't stop.",
    "There were seven of them on Monday, twelve on Tuesday, and by the end of the week nobody had counted more than 1234.",
    "We're certain they've seen it; I'm not, she'll say, and he'd rather walk than wait in the rain again.",
    "def count(boats):\n    total = 0\n    for boat in boats:\n        total += boat.size\n    return total\n",
    "Der Müller zählte die Boote am Fluss und fragte, warum keines anhielt; die Brücke war längst gesperrt.",
    "Le meunier a compté les bateaux près de la rivière, où l'été était déjà passé.",
    "Мельник считал лодки на реке и не понимал, почему ни одна не остановилась у моста.",
    "磨坊主数着河上的船，不明白为什么没有一艘停下来。", "粉屋は川の船を数えたが、どれも止まらなかった。", "방앗간 주인은 강 위의 배를 세었다.",
    "كان الطحان يعد القوارب في النهر.", "चक्की वाला नदी में नावें गिन रहा था।",
    "The boats, the boats! They counted and counted: 10, 20, 30, 400, 5000.   Then   it   rained.\n\n\tAnd then it stopped.\r\n",
]  # fmt: skip

TEXTS = [
    "", " ", "  ", "\n", "a", " a", "The boats didn't stop.", "  two  spaces   three    four", "tabs\tand\nlines\r\nand\n\n\nmore \n \n x",
    "trailing   ", "   leading", "I'M, i'm, we'Re, they'LL she'd 'S 'ſ 'tis o'clock ''s", "1 12 123 1234 12345 3.14159 1,000,000 ½ ² Ⅻ ٣٤٥ १२३",
    "Müller, zählte; café vs cafe\u0301, A\u030a = Å = \u212b, e\u0323\u0301 and e\u0301\u0323, \u1100\u1161\u11a8 = 각",
    "磨坊主数着河上的船。为什么？", "粉屋は川の船を数えた。カ\u3099 = ガ", "방앗간 주인", "كان الطحان ١٢٣", "चक्की वाला", "ไม่มีเรือ", "שָׁלוֹם",
    "emoji: 😀👍🏽 👩\u200d👩\u200d👧\u200d👦 🏳\ufe0f\u200d🌈 🇩🇪 ❤\ufe0f", "\x00\x01\x1b[0m\x7f\x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\u200b\ufeff\u180e|",
    "<s>The</s> <s> boats <unk></s>", "▁The▁boats▁▁ ▁", "<|endoftext|>a<|endoftext|> b <|endoftext|>\n", "<pad> <mask> <mask>x x<mask>x <word> a<word>b <word>",
    "<0x0A> is a token, is it?", "def count(boats):\n    return [b ** 2 for b in boats]  # 4 spaces\n\t\tx = {}\n", "https://example.org/a_b?c=1&d=%20#e",
    "a" * 100, "ab" * 70, " " * 90 + "x", "\n" * 70, "counted" * 14, "é" * 70, "船" * 40, "!?" * 40, "日本" * 20 + " " + "x" * 20,
    "\u0344\u0958\u0fb9\u1fef\u037e\U0002f800 \U00011935\U00011930 \U00011de0", "ﬁ ﬂ ﬆ ﷺ ™ ㎏ ａｂｃ１２３", "the-boat-the_boat.the/boat", "x\u0301\u0301 \u0301x \u0301",
]  # fmt: skip

RANDOM_PARTS = [
    "the boats", "counted", "'s", "'LL", "é", "e\u0301", "船", "の", "각", "١", "½", " ", "  ", "   ", "\n", "\r\n", "\t", "\u3000", "\xa0", "12", "3", ".", "--", "!",
    "😀", "\u200d", "\u0301", "\u0323", "<s>", "</s>", "<mask>", "<word>", "▁", "\x00", "ſ", "ß", "Я", "नी", "<|endoftext|>", "a", "B", "_", "'", "\u1161",
]  # fmt: skip


# Categories of all kinds, letters and signs of recent versions of Unicode, and what normalizers change.
MORE_TEXTS = [
    "CamelCase HTTPServer iPhone McDonald's O'REILLY'S ISN'T Ǆ ǅ ǆ ʰʷ ªº Ⅷ ⅷ x² ⓐ", "\u1c89\u1c8a \ua7cb\ua7cc\ua7da \U00010d50\U00010d70 \U00010d4e \u088f \U00016d40",
    "\u20c1 \U0001cc00\U0001cce0 \U0001fae9 \u2e5d \U00010d6e \U00011f43 \U0001e4d0 \u1dfa\u0300", "a\u20dd \u0488x 𞤀𞤢 ꙮ ᏸᎠ Ꭰꭰ ẞß ıI İi Σσς ΑΣ",
    "end of text \n \t ", "x\n\n  \n", "  \n  y \n", "path/to/file.py//x /* c */\n//\n", "1234567890 12 34,56.78 0x1F 1e-9 ²³¼½ ①② ٤٥٦ ५६७ 〇一二",
    "漢字かなカナ混じり文, 漢字abc漢 𠀀𪚥 々〆 中文English混排123。", "ﬁﬃ ℌ ㍿ ㌀ ½ ① ﷺ ｶﾞ Ａ １ ™ … ‼ \u00a8 \u2126 \u212b \ufb1d \u0132 \u2f00 \u3392 \u1e9b\u0323",
    "Ünïcödé ÀÉÎÕÜ ǺǻŹ Đđ Łł Øø ệ Ệ \u1eaf\u0323", "\x01\x08\x0b\x0e\x1f\x8f\x9f a\u200bb\u200ec\u2581d\ufeffe\ufffdf", "<|im_start|>user\nhi<|im_end|> [INST] x [/INST] <|begin_of_text|> [BOS] <unk>",
    "if (a&&b||!c) { return a[i]->b::c<D>(*e); } // ~`@#$%^&*()_+-={}|\\:;'<>?,./", "(a|b) (c. d! e? f… g。h，i、j। k۔l،m)", "   \t\t\n \u00a0\u2003x  \u3000y",
]  # fmt: skip


def texts():
    rng = random.Random(7)
    return TEXTS + CORPUS + ["".join(rng.choice(RANDOM_PARTS) for _ in range(rng.randint(1, 24))) for _ in range(40)]


def train(tokenizer, size, specials, alphabet=()):
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=specials, initial_alphabet=list(alphabet), show_progress=False)
    tokenizer.train_from_iterator(CORPUS * 2, trainer)
    return tokenizer


def byte_level(pre, specials=("<|endoftext|>",), normalizer=None, size=420):
    t = Tokenizer(models.BPE())
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return train(t, size, list(specials), pre_tokenizers.ByteLevel.alphabet())


def split(pattern):
    pieces = [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    return pre_tokenizers.Sequence(pieces)


def llama3():
    t = byte_level(split(LLAMA3), [])
    t.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"])
    bos = ("<|begin_of_text|>", t.token_to_id("<|begin_of_text|>"))
    t.post_processor = processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[bos])
    return t


def neox():
    t = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizer=normalizers.NFC())
    t.add_tokens([AddedToken(" " * n, normalized=True) for n in range(6, 1, -1)])
    return t


def added():
    t = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizer=normalizers.NFC())
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False, special=True), AddedToken("<pad>", rstrip=True, special=True)])
    t.add_tokens([AddedToken("<word>", single_word=True), AddedToken("café", normalized=True), AddedToken("the boat", normalized=False)])
    t.add_tokens([AddedToken("the boats", normalized=False), AddedToken("x", single_word=True, lstrip=True, rstrip=True)])
    return t


def llama2():
    """Merges trained on words, then used on whole texts, as the converted Llama 2 tokenizer does."""
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    train(t, 560, specials)
    t.pre_tokenizer = None
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    out = json.loads(t.to_str())
    out["added_tokens"] = [dict(a, normalized=True) for a in out["added_tokens"] if not a["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(out))


def sentencepiece_model(**options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in CORPUS * 4 for line in text.splitlines() if line]), model_writer=model,
        character_coverage=0.98, minloglevel=2, **options,
    )  # fmt: skip
    return model.getvalue()


def tiktoken_ranks():
    t = byte_level(split(LLAMA3), [], size=400)
    to_byte = {c: b for b, c in zip(sorted(range(256), key=order), sorted(pre_tokenizers.ByteLevel.alphabet()))}
    lines = []
    for rank, (token, _) in enumerate(sorted(t.get_vocab().items(), key=lambda kv: kv[1])):
        lines.append(base64.b64encode(bytes(to_byte[c] for c in token)).decode() + f" {rank}\n")
    return "".join(lines)


def order(b):
    """Where GPT-2's printable form of a byte stands: printable bytes are themselves, the others follow from U+0100."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [x for x in range(256) if x not in printable]
    return b if b in printable else 256 + others.index(b)


def variants():
    """Other sections for a fixture: (its name, what they are)."""
    out = []
    for behavior in ("Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"):
        for invert in (False, True):
            cut = {"type": "Split", "pattern": {"Regex": r"\s+|\p{N}"}, "behavior": behavior, "invert": invert}
            rest = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
            out.append(("gpt2.json", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [cut, rest]}}))
    dashes = {"type": "Split", "pattern": {"String": "-"}, "behavior": "MergedWithPrevious", "invert": False}
    digits = {"type": "Digits", "individual_digits": False}
    prefix = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    letters = {"type": "Split", "pattern": {"Regex": r"[\p{L}\p{M}]+|\P{L}"}, "behavior": "Isolated", "invert": False}
    general = {"type": "Split", "pattern": {"Regex": LLAMA3 + "|x"}, "behavior": "Isolated", "invert": False}
    last = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    out.append(("gpt2.json", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [dashes, digits, prefix]}}))
    out.append(("gpt2.json", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [letters, last]}}))
    out.append(("gpt2.json", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [general, last]}}))
    out.append(("added.json", {"pre_tokenizer": prefix}))
    for scheme in ("always", "first", "never"):
        for cut in (True, False):
            meta = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cut}
            out.append(("llama2.json", {"normalizer": None, "pre_tokenizer": meta, "decoder": meta}))
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    spaces = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    out.append(("llama2.json", {"normalizer": replace, "pre_tokenizer": spaces}))
    out.append(("llama2.json", {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, replace]}}))
    out.append(("llama2.json", {"normalizer": None, "decoder": None}))
    for model in ({"fuse_unk": False, "byte_fallback": False}, {"byte_fallback": False}, {"unk_token": None, "byte_fallback": False}, {"ignore_merges": True}):
        out.append(("llama2.json", {"model": model}))
    out.append(("gpt2.json", {"model": {"ignore_merges": True}}))
    return out


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
BYTES_AND_WORDS = {**BYTES, "use_regex": True}


def cut(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def in_order(kind, *steps):
    return {"type": "Sequence", {"pre_tokenizer": "pretokenizers", "normalizer": "normalizers"}[kind]: list(steps)}


def cut_by(*steps):
    return {"pre_tokenizer": in_order("pre_tokenizer", *steps)}


def families():
    """Published pipelines on our small vocabularies: (family, its file here, what their sections are)."""
    nfc = {"normalizer": {"type": "NFC"}}
    digits = [{"type": "Digits", "individual_digits": True}, BYTES_AND_WORDS]
    punctuation = {"type": "Punctuation", "behavior": "Contiguous"}
    falcon = [punctuation, BYTES_AND_WORDS, {"type": "Digits", "individual_digits": False}, cut("[0-9][0-9][0-9]")]
    mark = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    spaces = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    meta = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    first = {**meta, "prepend_scheme": "first", "split": False}
    fuse = {"type": "Sequence", "decoders": [{**mark, "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]}
    runs = [{"id": 420 + i, "content": " " * (8 - i), "single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False} for i in range(7)]
    old = {"id": 0, "content": "<|endoftext|>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    squeeze = in_order("normalizer", {"type": "Nmt"}, {"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    return [
        ("GPT-2, OPT", "gpt2.json", {}), ("GPT-NeoX, Pythia, OLMo", "neox.json", {}), ("Llama 2, Mistral 7B", "llama2.json", {}),
        ("Llama 3", "llama3.json", {}), ("Qwen 2, 2.5, 3", "qwen2.json", {}), ("StarCoder, SmolLM", "gpt2.json", cut_by(*digits)),
        ("Command R", "gpt2.json", {**nfc, **cut_by(*digits)}), ("DeepSeek V3, R1", "gpt2.json", cut_by(cut(r"\p{N}{1,3}"), cut(DEEPSEEK_CJK), cut(DEEPSEEK), BYTES)),
        ("Falcon", "gpt2.json", cut_by(*falcon)), ("BLOOM", "gpt2.json", cut_by(cut(BLOOM), BYTES)), ("GPT-4o, Llama 4", "gpt2.json", cut_by(cut(O200K), BYTES)),
        ("Mistral Nemo (Tekken)", "gpt2.json", cut_by(cut(TEKKEN), BYTES)), ("Phi-4, OLMo 2, GLM-4", "gpt2.json", cut_by(cut(LLAMA3, "Removed", True), BYTES)),
        ("Kimi K2", "gpt2.json", cut_by(cut(KIMI), BYTES)), ("Phi-2, CodeGen", "gpt2.json", {"added_tokens": [old, *runs]}),
        ("Gemma", "llama2.json", {"normalizer": mark, "pre_tokenizer": spaces, "decoder": fuse}), ("Mistral 7B v0.3", "llama2.json", {"normalizer": None, "pre_tokenizer": first, "decoder": fuse}),
        ("T5's pipeline without its table", "unigram.json", cut_by({"type": "WhitespaceSplit"}, meta)), ("Unigram as tokenizers trains it", "unigram.json", {"normalizer": squeeze, "pre_tokenizer": meta}),
        ("Unigram with bytes", "unigram_bytes.json", {}),
    ]  # fmt: skip


def normalizer_variants():
    regex = {"type": "Replace", "pattern": {"Regex": r"\s{2,}|\p{P}+"}, "content": "<>"}
    strip = {"type": "Strip", "strip_left": True, "strip_right": False}
    single = [{"type": t} for t in ("NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")] + [strip, {**strip, "strip_right": True}, regex]
    folded = in_order("normalizer", {"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "Prepend", "prepend": "_"})
    return [("gpt2.json", {"normalizer": n}) for n in [*single, folded]] + [("unigram.json", {"normalizer": {"type": "NFKC"}})]


# Of each the special tokens do not matter here: text that spells one stays text.
TIKTOKEN = {"r50k_base (GPT-2)": GPT2, "cl100k_base": CL100K, "o200k_base": O200K, "Llama 3": LLAMA3, "Llama 4": O200K, "Qwen": QWEN2, "GLM-4": LLAMA3, "Kimi": KIMI}


def unigram(byte_fallback=False):
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    specials = ["<unk>", "</s>"] + ([f"<0x{b:02X}>" for b in range(256)] if byte_fallback else [])
    trainer = trainers.UnigramTrainer(vocab_size=300 + len(specials), special_tokens=specials, unk_token="<unk>", show_progress=False)
    t.train_from_iterator(CORPUS * 2, trainer)
    out = json.loads(t.to_str())
    out["model"]["byte_fallback"] = byte_fallback
    out["added_tokens"] = out["added_tokens"][:2]
    # A character without a token is part of what is tested.
    out["model"]["vocab"] = [row for row in out["model"]["vocab"] if row[0] not in ("磨", "з", "я", "q")]
    return json.dumps(out)


def tekken(ranks):
    """Mistral's file: bytes first, in order, then the merged tokens in theirs."""
    tokens = sorted((base64.b64decode(line.split()[0]) for line in ranks.splitlines()), key=lambda t: (len(t) > 1, t if len(t) == 1 else b""))
    config = {"pattern": TEKKEN, "num_vocab_tokens": 1000, "default_vocab_size": len(tokens) - 8 + 20, "default_num_special_tokens": 20, "version": "v3"}
    special = [{"rank": i, "token_str": s, "is_control": True} for i, s in enumerate(["<unk>", "<s>", "</s>", "[INST]", "[/INST]"])]
    return json.dumps({"config": config, "vocab": [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for i, t in enumerate(tokens)], "special_tokens": special})


def tekken_rows(text, names):
    file = json.loads(text)
    room = file["config"]["default_vocab_size"] - 20
    ranks = {base64.b64decode(t["token_bytes"]): t["rank"] for t in file["vocab"] if t["rank"] < room}
    e = tiktoken.Encoding("tekken", pat_str=file["config"]["pattern"], mergeable_ranks=ranks, special_tokens={})
    return {"ids": [[i + 20 for i in e.encode_ordinary(s)] for s in names], "decoded": [e.decode(e.encode_ordinary(s)) for s in names]}


def family_golden(files):
    names = texts() + MORE_TEXTS
    lines = [compact({"texts": names})]

    def add(head, row, step=1):
        lines.append(compact({**head, "step": step, **without_copies(row, step, names)}))

    for family, name, patch in families():
        add({"file": name, "patch": patch or None, "family": family}, hf_rows(patched(files[name].decode(), patch), 1, names))
    for name, patch in normalizer_variants():
        add({"file": name, "patch": patch}, hf_rows(patched(files[name].decode(), patch), 2, names), 2)
    for family, pattern in TIKTOKEN.items():
        composed = [normalizers.NFC().normalize_str(s) for s in names] if family == "Qwen" else names
        add({"file": "llama3.model", "ranks_of": family, "family": family + ", ranks"}, tiktoken_rows(files["llama3.model"].decode(), pattern, composed))
    add({"file": "tekken.json", "family": "Mistral, tekken.json"}, tekken_rows(files["tekken.json"].decode(), names))
    for family, name in (("Llama 2, Mistral 7B, SentencePiece", "bpe.model"), ("T5, SentencePiece unigram", "unigram.model")):
        add({"file": name, "family": family}, spm_rows(files[name], names))
    return "\n".join(lines) + "\n"


def patched(document, patch):
    document = json.loads(document)
    for key, value in patch.items():
        if key == "model":
            document["model"].update(value)
        else:
            document[key] = value
    return json.dumps(document)


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def hf_rows(text, step=1, names=None):
    t = Tokenizer.from_str(text)
    ids = [t.encode(s, add_special_tokens=False).ids for s in (names or texts())[::step]]
    return {"ids": ids, "decoded": [t.decode(i, skip_special_tokens=False) for i in ids]}


def spm_rows(content, names=None):
    p = sentencepiece.SentencePieceProcessor(model_proto=content)
    ids = [p.encode(s) for s in names or texts()]
    return {"ids": ids, "decoded": [p.decode(i) for i in ids]}


def tiktoken_rows(text, pattern=LLAMA3, names=None):
    ranks = {base64.b64decode(line.split()[0]): int(line.split()[1]) for line in text.splitlines()}
    e = tiktoken.Encoding("ranks", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    ids = [e.encode_ordinary(s) for s in names or texts()]
    return {"ids": ids, "decoded": [e.decode(i) for i in ids]}


def rows(name, content):
    if name.endswith(".json"):
        return hf_rows(content.decode())
    return tiktoken_rows(content.decode()) if content[:1] != b"\n" else spm_rows(content)


def golden(files, patches=()):
    lines = [compact({"texts": texts()})]
    for name, content in files.items():
        lines.append(compact({"file": name, **without_copies(rows(name, content))}))
    for name, patch in patches:
        row = hf_rows(patched(files[name].decode(), patch), STEP)
        lines.append(compact({"file": name, "patch": patch, "step": STEP, **without_copies(row, STEP)}))
    return "\n".join(lines) + "\n"


def without_copies(row, step=1, names=None):
    """Decoded text that is the text itself is left out."""
    row["decoded"] = {str(i): d for i, (d, t) in enumerate(zip(row["decoded"], (names or texts())[::step])) if d != t}
    return row


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), plain])
    made = {
        "gpt2.json": byte_level(plain), "llama3.json": llama3(), "neox.json": neox(), "added.json": added(), "llama2.json": llama2(),
        "qwen2.json": byte_level(split(QWEN2), normalizer=normalizers.NFC()), "smollm.json": byte_level(digits),
    }  # fmt: skip
    files = {name: compact(json.loads(t.to_str())).encode() for name, t in made.items()}
    llama = {"model_type": "bpe", "normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    files["bpe.model"] = sentencepiece_model(vocab_size=560, byte_fallback=True, **llama)
    files["bpe_unk.model"] = sentencepiece_model(vocab_size=300, **llama)
    files["bpe_user.model"] = sentencepiece_model(vocab_size=300, **dict(llama, remove_extra_whitespaces=True), user_defined_symbols=["<mask>"])
    files["unigram.model"] = sentencepiece_model(vocab_size=240, **dict(llama, model_type="unigram"))
    files["llama3.model"] = tiktoken_ranks().encode()
    for name, content in files.items():
        (OUT / name).write_bytes(content)
    (OUT / "golden.jsonl").write_text(golden(files, variants()))
    more = {"unigram.json": unigram().encode(), "unigram_bytes.json": unigram(True).encode(), "tekken.json": tekken(files["llama3.model"].decode()).encode()}
    for name, content in more.items():
        (OUT / name).write_bytes(content)
    (OUT / "golden_families.jsonl").write_text(family_golden({**files, **more}))
    if len(sys.argv) > 1:
        names = ["gpt2/tokenizer.json", "gpt_neox/20B_tokenizer.json", "llama2/tokenizer.json", "llama2/tokenizer.model", "llama3/tokenizer.model"]
        (OUT / "golden_published.jsonl").write_text(golden({n: (pathlib.Path(sys.argv[1]) / n).read_bytes() for n in names}))


if __name__ == "__main__":
    main()
