#!/usr/bin/env python3
"""Writes the folders of tests/fixtures/hf: tiny models as Hugging Face's `transformers` saves them, and the logits it computes.

Three shapes: mha (untied, as many kv heads as heads, bf16), gqa (rope_scaling llama3, f32, in shards) and tied (rope_scaling linear,
f16). Each folder has config.json, generation_config.json, safetensors files and logits.json: a prompt, and the f32 logits after each of its
tokens. Needs torch, transformers and safetensors (written with transformers 5.22, torch 2.15); the CPU is enough:
    python3 tools/hf_fixtures.py tests/fixtures/hf
"""
import argparse
import json
import pathlib
import shutil

import torch
from transformers import LlamaConfig, LlamaForCausalLM

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
CASES = {
    "mha": dict(dtype=torch.bfloat16, shard="1GB", num_key_value_heads=4, tie_word_embeddings=False, rope_theta=10000.0),
    "gqa": dict(dtype=torch.float32, shard="20KB", num_key_value_heads=2, tie_word_embeddings=False, rope_theta=500.0, rope_scaling=LLAMA3),
    "tied": dict(dtype=torch.float16, shard="1GB", num_key_value_heads=1, tie_word_embeddings=True, rope_theta=1000.0,
                 rope_scaling={"rope_type": "linear", "factor": 2.5}),
}


def make(folder, name, dtype, shard, **config):
    torch.manual_seed(len(name))
    model = LlamaForCausalLM(LlamaConfig(
        hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, vocab_size=61, max_position_embeddings=64,
        rms_norm_eps=1e-5, initializer_range=0.2, bos_token_id=1, eos_token_id=2, attn_implementation="eager", **config))
    with torch.no_grad():  # norms of all ones would not show where they go
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    shutil.rmtree(folder, ignore_errors=True)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    prompt = [(7 * i + 3) % 61 for i in range(48)]
    with torch.no_grad():
        logits = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)(torch.tensor([prompt])).logits[0]
    rows = [0, 1, 23, 47]  # after so many tokens and one
    (folder / "logits.json").write_text(json.dumps(
        {"prompt": prompt, "logits": {str(row): [float(f"{v:.7g}") for v in logits[row].tolist()] for row in rows}}))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=pathlib.Path)
    folder = arguments.parse_args().folder
    for name, case in CASES.items():
        make(folder / name, name, **case)


if __name__ == "__main__":
    main()
