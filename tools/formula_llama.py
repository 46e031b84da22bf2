"""Llama folders in Hugging Face's form whose weights follow from their names, so that no fixture has to keep them. Element i of NAME:

    k = sum of the four 16-bit parts of splitmix64(hash_name(NAME) + (i + 1) * 0x9e3779b97f4a7c15), less 131070
    matrix: k * 2^-17 (like a normal distribution with deviation 0.29); vector of a norm: 1 + k * 2^-19

which f32 holds exactly. hash_name is that of src/base/rng.cc, and tests/support/formula_llama.h makes the same folders.
"""
import json
import pathlib
import shutil

import numpy as np

U64 = (1 << 64) - 1


def hash_name(name):
    h = 0xCBF29CE484222325
    for byte in name if isinstance(name, bytes) else name.encode():
        h = (h ^ byte) * 0x100000001B3 & U64
    h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9 & U64
    return h ^ h >> 32


def tensor(name, shape):
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = np.uint64(hash_name(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    k = sum((z >> np.uint64(shift) & np.uint64(0xFFFF)).astype(np.int64) for shift in (0, 16, 32, 48)) - 131070
    values = k * 2.0**-17 if len(shape) == 2 else 1 + k * 2.0**-19
    return values.astype(np.float32).reshape(shape)


def shapes(c):
    """Names and shapes of a Llama's tensors, from the keys of its config.json."""
    d, f, head = c["hidden_size"], c["intermediate_size"], c["hidden_size"] // c["num_attention_heads"]
    kv = c["num_key_value_heads"] * head
    yield "model.embed_tokens.weight", (c["vocab_size"], d)
    for layer in range(c["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", (d,)
        for part, rows in (("q", d), ("k", kv), ("v", kv)):
            yield f"{at}self_attn.{part}_proj.weight", (rows, d)
        yield at + "self_attn.o_proj.weight", (d, d)
        yield at + "post_attention_layernorm.weight", (d,)
        for part, shape in (("gate", (f, d)), ("up", (f, d)), ("down", (d, f))):
            yield f"{at}mlp.{part}_proj.weight", shape
    yield "model.norm.weight", (d,)
    if not c["tie_word_embeddings"]:
        yield "lm_head.weight", (c["vocab_size"], d)


def write(folder, config, tokenizer, tokenizer_config):
    """config: the keys of config.json; tokenizer: a tokenizer.json; tokenizer_config: the keys of tokenizer_config.json."""
    from safetensors.numpy import save_file

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config, indent=1))
    shutil.copyfile(tokenizer, folder / "tokenizer.json")
    save_file({name: tensor(name, shape) for name, shape in shapes(config)}, folder / "model.safetensors", {"format": "pt"})
