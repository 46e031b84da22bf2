// config.json of a Hugging Face folder as a config of ours. What a Llama of ours cannot be is refused in words; what does not change the
// model's output and is not kept is a note. Both spellings of the rotary embedding are read: rope_theta with rope_scaling, and
// rope_parameters. Keys that are absent have the defaults of the `transformers` library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/hf/hf_json.h"
#include "config/config.h"

namespace hlat {

struct HfConfig {
  std::string architecture;  // "LlamaForCausalLM"
  ModelConfig model;
  int64_t max_length = 0;  // max_position_embeddings
  TokenIds ids;
  std::vector<std::string> notes;
};

// UsageError with one line for each thing that is wrong or not supported.
HfConfig parse_hf_config(std::string_view text);

}  // namespace hlat
