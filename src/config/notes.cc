#include "config/notes.h"

#include <array>

namespace hlat {
namespace {

struct Note {
  std::string_view key;
  std::string_view text;
};

constexpr std::array kNotes = {
    Note{"train.precision",
         R"(| policy | activations | weights | f32 master weights | moments | gradients | rounding of what the optimizer stores |
|---|---|---|---|---|---|---|
| fp32 | f32 | f32 | no need | f32 | f32 | nearest |
| mixed | bf16 | bf16 | yes | f32 | f32 | nearest |
| mixed_sr | bf16 | bf16 | yes | f32 | f32 | stochastic |
| bf16_sr | bf16 | bf16 | no | bf16 | bf16 | stochastic |
| bf16 | bf16 | bf16 | no | bf16 | bf16 | nearest |
| fp8 | bf16 | FP8 in linear layers, else bf16 | yes | f32 | f32 | nearest |
| fp8_sr | bf16 | FP8 in linear layers, else bf16 | no | bf16 | bf16 | stochastic |

Which to take: fp32 on a CPU without AMX and for small models; mixed on GPUs and for large models. bf16_sr needs 8 bytes per parameter
for weights, gradients and optimizer where mixed needs 18; of the presets it is the nearest to what HLAT-7B was trained with. fp8 needs 18 too and fp8_sr 10 (an FP8
weight, its transpose and the bf16 weight they are made of take 4), but what they keep for the backward is smaller. bf16 exists for comparison: updates
smaller than half of a rounding step are lost, and HLAT's runs diverged. Sums inside an operation, norms, softmax and the loss are f32 in all;
the keys of `precision` change single choices (docs/precision.md has the policies of the HLAT study as configs).
There is no fp16 and no loss scaling: bf16 has the exponents of f32.
)"},
    Note{"precision.activations",
         R"(Choices outside a preset may take plain, slow kernels: they are for studies. The curves of the HLAT study:

| curve | keys, on top of train.precision |
|---|---|
| HLAT-7B as written: BF16 and SR everywhere | bf16_sr; softmax, norms, loss = bf16; round_activations, round_sums = stochastic |
| its drift over tp | the same; keyed_noise = false |
| SR/BF16; SR/master weights; pure BF16 | bf16_sr; mixed_sr; bf16 |
| RNE/master weights, BF16 operators and sums | mixed; grads, dp_sums, softmax, norms, loss = bf16 |
| RNE, FP32 operators and collectives | bf16; grads, dp_sums, tp_sums = f32 |
| GPU-compatible precision, HLAT-70B | mixed; tp_sums = f32 for FP32 collectives over tp too |
)"},
    Note{"train.recompute", R"(| policy | kept for the backward, per layer | recomputed |
|---|---|---|
| none | everything | nothing |
| selective | the outputs of the large matrix products and of attention | norms and the SwiGLU product |
| full | the input of the layer | the whole forward of the layer, about a third more work |
| every:K | layers 0, K, 2K, ... as full, the others as none | |

Gradients are the same, bit for bit, under every policy. `hlat plan` shows the memory of each.
)"},
    Note{"train.tokens",
         R"(The length of a run is given by one of train.steps, train.tokens and train.epochs; the other two are then left out.
Tokens and epochs are rounded up to whole steps of train.global_batch x train.seq_len tokens. An epoch is as many tokens as the training
documents of all sources have, end tokens included: sources with weights that differ from their sizes are read more or less often than that.
A length on the command line takes the place of the one in the file, also when it is another of the three keys. What depends on the number
of steps (optim.schedule_steps=auto, optim.warmup) uses the resulting number of steps.
)"},
    Note{"optim.schedule",
         R"(The learning rate grows linearly from 0 to optim.lr in optim.warmup steps. After that it is optim.lr times a
factor, with p from 0 at the end of warm-up to 1 at the end of the schedule (optim.schedule_steps, or the last step) and r =
optim.min_ratio:

| schedule | factor |
|---|---|
| cosine_clamped | max(r, (1 + cos(pi p)) / 2): a cosine to 0 that is cut off at r; the schedule of HLAT |
| cosine | r + (1 - r) (1 + cos(pi p)) / 2: a cosine that ends at r |
| linear | 1 - (1 - r) p |
| constant | 1 |
| warmup_stable_decay | 1, then linear to r over the last optim.decay_share of the schedule's steps |

After the schedule's end the rate stays at its last value. A schedule that ends after the run stops on the way, at a higher rate.
)"},
    Note{"data.sources",
         R"(Relative paths (data.sources[].path, data.sources[].validation, data.tokenizer, data.cache_dir, run.dir) are relative to the
folder in which hlat is started, not to the folder of the config file; so are those in the config.yaml of a run folder. All ranks must be
started in the same folder; an absolute path is independent of it. hlat expands `~/` in the paths of sources alone, and no variables.
)"},
};

}  // namespace

std::string_view note_of(std::string_view key) {
  for (const Note& n : kNotes)
    if (n.key == key) return n.text;
  return {};
}

}  // namespace hlat
