#!/usr/bin/env python3
"""Writes src/data/tokenizer/unicode_tables.inc: what the tokenizers' reference libraries take for a letter, a number, a space,
a part of a word, and how they compose text (NFC).

The values are asked from the `tokenizers` library itself, code point by code point, because its parts follow different versions
of Unicode: patterns a recent one, NFC an old one. Needs the pip packages tokenizers and tiktoken (to see that both agree).

  make_unicode_tables.py > src/data/tokenizer/unicode_tables.inc
"""

import sys
import unicodedata

import tiktoken
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
TABLE_END = 0x20000  # above it only ranges of letters
LETTER, NUMBER, SPACE, UNSTABLE, WORD = 1, 2, 3, 4, 8


def matching(pattern):
    """code points that a pattern of one character matches"""
    splitter = pre_tokenizers.Split(Regex(pattern), "removed")
    out = set()
    for i in range(0, len(CODE_POINTS), 4096):
        chunk = CODE_POINTS[i : i + 4096]
        kept = {ord(c) for piece, _ in splitter.pre_tokenize_str("".join(map(chr, chunk))) for c in piece}
        out.update(c for c in chunk if c not in kept)
    return out


def matching_tiktoken(pattern):
    encoding = tiktoken.Encoding("one", pat_str=pattern, mergeable_ranks={bytes([b]): b for b in range(256)}, special_tokens={})
    return {c for c in CODE_POINTS if encoding.encode_ordinary(chr(c))}


def word_characters():
    """characters beside which a single_word token is no word of its own"""
    t = Tokenizer(models.BPE(vocab={"<u>": 0}, merges=[], unk_token="<u>", fuse_unk=True))
    t.add_tokens([AddedToken("x", single_word=True, normalized=False)])
    mark = t.token_to_id("x")
    return {c for c in CODE_POINTS if c != ord("x") and mark not in t.encode("x" + chr(c)).ids} | {ord("x")}


def digits():
    """what the Digits pre-tokenizer takes for one: it follows yet another version"""
    splitter = pre_tokenizers.Digits(individual_digits=True)
    return {c for c in CODE_POINTS if len(splitter.pre_tokenize_str("a" + chr(c))) == 2}


def compositions(nfc):
    """(first, second, composed) of every pair that the library composes, and decomposed code point -> (first, second or 0)"""
    pairs, parts = [], {}
    nfd = normalizers.NFD().normalize_str
    for c in CODE_POINTS:
        if 0xAC00 <= c <= 0xD7A3:
            continue  # Hangul is arithmetic
        text = unicodedata.decomposition(chr(c))
        if not text or text.startswith("<") or nfd(chr(c)) == chr(c):
            continue
        codes = [int(x, 16) for x in text.split()]
        parts[c] = (codes[0], codes[1] if len(codes) > 1 else 0)
        if len(codes) == 2 and nfc(chr(codes[0]) + chr(codes[1])) == chr(c):
            pairs.append((codes[0], codes[1], c))
    return pairs, parts


def combining_classes(nfc):
    """code point -> combining class, 0 left out; those the library does not know count as 0"""
    out = {}
    for c in CODE_POINTS:
        ccc = unicodedata.combining(chr(c))
        if ccc and all(nfc(s) == unicodedata.normalize("NFC", s) for s in ("a" + chr(c) + "\u0301", "a" + chr(c) + "\u0323")):
            out[c] = ccc
    return out


def ranges(values):
    """sorted (first, last, value) of a code point -> value map"""
    out = []
    for c in sorted(values):
        if out and out[-1][1] == c - 1 and out[-1][2] == values[c]:
            out[-1][1] = c
        else:
            out.append([c, c, values[c]])
    return out


def emit(kind, name, values, fmt):
    print(f"inline constexpr {kind} {name}[] = {{")
    line = "   "
    for v in values:
        text = " " + fmt(v) + ","
        if len(line) + len(text) > 138:
            print(line)
            line = "   "
        line += text
    print(line + "\n};")


def main():
    nfc = normalizers.NFC().normalize_str
    letters, numbers, spaces = matching(r"\p{L}"), matching(r"\p{N}"), matching(r"\s")
    for mine, pattern in ((letters, r"\p{L}"), (numbers, r"\p{N}"), (spaces, r"\s")):
        if mine != matching_tiktoken(pattern):
            sys.exit(f"tokenizers and tiktoken differ about {pattern}")
    words = word_characters()
    pairs, parts = compositions(nfc)
    classes = combining_classes(nfc)
    unstable = set(classes) | {b for _, b, _ in pairs} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    unstable |= {c for c in parts if nfc(chr(c)) != chr(c)}

    def traits(c):
        kind = LETTER if c in letters else NUMBER if c in numbers else SPACE if c in spaces else 0
        return kind | (UNSTABLE if c in unstable else 0) | (WORD if c in words else 0)

    blocks, index = {}, []
    for start in range(0, TABLE_END, 128):
        words64 = tuple(sum(traits(c) << (4 * i) for i, c in enumerate(range(w, w + 16))) for w in range(start, start + 128, 16))
        index.append(blocks.setdefault(words64, len(blocks)))
    high = ranges({c: traits(c) for c in CODE_POINTS if c >= TABLE_END and traits(c)})

    print("// Generated by tools/make_unicode_tables.py with tokenizers", tokenizers.__version__, "and tiktoken", tiktoken.__version__ + ".")
    print("// Traits of a code point are 4 bits: 0 other, 1 letter, 2 number, 3 space; 4 may change under NFC; 8 part of a word.")
    print("// clang-format off")
    assert len(blocks) <= 256
    emit("uint8_t", "kTraitBlock", index, str)
    emit("uint64_t", "kTraitBits", [w for b in blocks for w in b], lambda w: hex(w) + "u")
    emit("TraitRange", "kHighTraits", high, lambda r: f"{{{r[0]:#x}, {r[1]:#x}, {r[2]}}}")
    emit("TraitRange", "kCombiningClass", ranges(classes), lambda r: f"{{{r[0]:#x}, {r[1]:#x}, {r[2]}}}")
    composed = {c for _, _, c in pairs}
    rows = [(c, a, b, int(c in composed)) for c, (a, b) in sorted(parts.items())]
    emit("Decomposition", "kDecompositions", rows, lambda r: f"{{{r[0]:#x}, {r[1]:#x}, {r[2]:#x}, {r[3]}}}")
    emit("TraitRange", "kMoreDigits", ranges({c: NUMBER for c in digits() - numbers}), lambda r: f"{{{r[0]:#x}, {r[1]:#x}, {r[2]}}}")
    print("// clang-format on")


if __name__ == "__main__":
    main()
