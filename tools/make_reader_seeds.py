#!/usr/bin/env python3
"""Writes the seeds of the readers' fuzz targets to tests/fuzz/seeds: small files of each format, whole and broken.

Needs pyarrow, which tools/setup_arrow.sh installs:  .venv-build/bin/python tools/make_reader_seeds.py
"""

import gzip
import json
import pathlib
import struct

import pyarrow as pa
import pyarrow.parquet

SEEDS = pathlib.Path(__file__).resolve().parent.parent / "tests/fuzz/seeds"
TEXTS = ["one", "", "na\u00efve \U0001f642\u65e5\u672c", 'quote " backslash \\ line\nend', "long " * 40]


def put(target, name, data):
    folder = SEEDS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def zstd(data):
    return pa.compress(data, codec="zstd", asbytes=True)


def lines(ascii_only):
    return "".join(json.dumps({"id": i, "text": t}, ensure_ascii=ascii_only) + "\n" for i, t in enumerate(TEXTS)).encode()


def jsonl():
    put("jsonl", "escaped", lines(True))
    put("jsonl", "utf8", lines(False))
    put("jsonl", "mark_crlf_blank", b"\xef\xbb\xbf" + lines(False).replace(b"\n", b"\r\n") + b"\r\n\n  \n")
    put("jsonl", "bad", b'{"text": "a\n{"text": 1}\n[]\n{"body": "x"}\n{"text": "\xff"}\n{"text": "\\ud800"}\n{"text": "a"} x\nnull')
    put("jsonl", "deep", b'{"meta": ' + b"[" * 40 + b"]" * 40 + b', "text": "deep"}')


def compressed():
    data = lines(False)
    for target, pack in (("gz", lambda d: gzip.compress(d, mtime=0)), ("zst", zstd)):
        put(target, "whole", pack(data))
        put(target, "joined", pack(data[:50]) + pack(b"") + pack(data[50:]))
        put(target, "cut", pack(data)[:-9])
        put(target, "garbage", pack(data) + b"garbage")
        put(target, "padded", pack(data) + bytes(8))
    put("zst", "skippable", struct.pack("<II", 0x184D2A50, 4) + b"skip" + zstd(data))


def tables():
    texts = pa.array(TEXTS + [None], pa.string())
    columns = {"utf8": texts, "large": texts.cast(pa.large_string()), "view": texts.cast(pa.string_view()), "words": texts.dictionary_encode()}
    for name, column in columns.items():
        table = pa.table({"id": pa.array(range(6), pa.int64()), "text": column})
        for codec in (None, "lz4"):
            options = pa.ipc.IpcWriteOptions(compression=codec)
            for form, make in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
                sink = pa.BufferOutputStream()
                with make(sink, table.schema, options=options) as writer:
                    writer.write_table(table, max_chunksize=4)
                put("arrow", f"{name}_{form}_{codec or 'plain'}", sink.getvalue().to_pybytes())
        for codec in ("none", "snappy", "zstd"):
            if name == "view":
                continue
            sink = pa.BufferOutputStream()
            words = name == "words"
            pa.parquet.write_table(table, sink, compression=codec, row_group_size=4, use_dictionary=words, store_schema=name != "utf8")
            put("parquet", f"{name}_{codec}", sink.getvalue().to_pybytes())


def megatron():
    documents = [[1, 2, 3], [], [4], [5, 6, 7, 8]]
    for code, form in ((1, "B"), (4, "i"), (5, "q"), (8, "H")):
        size = struct.calcsize(form)
        data = b"".join(struct.pack(f"<{len(d)}{form}", *d) for d in documents)
        starts = [size * sum(len(d) for d in documents[:i]) for i in range(len(documents))]
        idx = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(documents), len(documents) + 1)
        idx += struct.pack("<4i", *map(len, documents)) + struct.pack("<4q", *starts) + struct.pack("<5q", *range(5))
        put("megatron", f"type_{code}", struct.pack("<H", len(idx)) + idx + data)


def index():
    """Index files by their layout (src/data/reader/index.h); the target sets key and checksums."""
    block = zstd(b"onetwothree")
    block += bytes(-len(block) % 8)
    for name, layout, detail, stored, blocks in (("json_lines", 1, 0, 15, b""), ("in_place", 2, 0, 3, b""), ("blocks", 3, 0, 0, block),
                                                 ("whole", 4, 0, 0, b""), ("tokens", 5, 4, 12, b"")):
        entries = b"".join(struct.pack("<QIIQ", 3 * i if layout == 3 else 16 * i, stored, 3, 0) for i in range(3))
        table = struct.pack("<QQII", 0, 128, len(block), 11) if blocks else b""
        body = entries + table + b"4 malformed JSON\n"
        counts = (detail, 3, 11, 1, 0, len(table) // 24, 128 + len(blocks), len(body), 0, 0)
        header = struct.pack("<8sII4Q10Q", b"hlatidx\n", 1, layout, 0, 0, 0, 0, *counts)
        put("index", name, header + blocks + body)


jsonl()
compressed()
tables()
megatron()
index()
