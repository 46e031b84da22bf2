#include "checkpoint/hf/hf_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace hlat {

namespace {

using Json = nlohmann::json;

std::vector<int64_t> id_list(const Json& json, const char* key) {
  std::vector<int64_t> ids;
  const auto found = json.find(key);
  if (found == json.end()) return ids;
  const auto add = [&](const Json& v) {
    if (const auto id = whole_number(v); id && *id >= 0) ids.push_back(*id);
  };
  if (found->is_array())
    for (const Json& v : *found) add(v);
  else
    add(*found);
  return ids;
}

}  // namespace

std::optional<int64_t> whole_number(const Json& v) {
  if (v.is_number_unsigned()) return v.get<uint64_t>() <= INT64_MAX ? std::optional(v.get<int64_t>()) : std::nullopt;
  if (v.is_number_integer()) return v.get<int64_t>();
  if (!v.is_number_float() || std::abs(v.get<double>()) > 0x1p53 || std::trunc(v.get<double>()) != v.get<double>()) return {};
  return static_cast<int64_t>(v.get<double>());
}

TokenIds token_ids_of(const Json& json) {
  return json.is_object() ? TokenIds{.bos = id_list(json, "bos_token_id"), .eos = id_list(json, "eos_token_id")} : TokenIds{};
}

void put_token_ids(nlohmann::ordered_json& json, const TokenIds& ids) {
  const auto put = [&](const char* key, const std::vector<int64_t>& list) {
    if (list.size() == 1) json[key] = list[0];
    if (list.size() > 1) json[key] = list;
  };
  put("bos_token_id", ids.bos);
  put("eos_token_id", ids.eos);
}

nlohmann::ordered_json hf_config_json(const HfModel& of) {
  const ModelConfig& m = of.model;
  nlohmann::ordered_json json = {{"architectures", {"LlamaForCausalLM"}},
                                 {"model_type", "llama"},
                                 {"vocab_size", m.vocab},
                                 {"hidden_size", m.hidden},
                                 {"intermediate_size", m.ffn},
                                 {"num_hidden_layers", m.layers},
                                 {"num_attention_heads", m.heads},
                                 {"num_key_value_heads", m.kv()},
                                 {"head_dim", m.head_dim()},
                                 {"hidden_act", "silu"},
                                 {"max_position_embeddings", of.max_length},
                                 {"rms_norm_eps", m.norm_eps},
                                 {"rope_theta", m.rope_theta},
                                 {"rope_scaling", nullptr},
                                 {"attention_bias", false},
                                 {"attention_dropout", 0.0},
                                 {"mlp_bias", false},
                                 {"initializer_range", m.init_std},
                                 {"tie_word_embeddings", m.tied},
                                 {"torch_dtype", of.dtype == DType::bf16 ? "bfloat16" : "float32"},
                                 {"use_cache", true}};
  if (m.rope_scaling == "linear") json["rope_scaling"] = {{"rope_type", "linear"}, {"type", "linear"}, {"factor", m.rope_factor}};
  if (m.rope_scaling == "llama3")
    json["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", m.rope_factor},
                            {"low_freq_factor", m.rope_low_freq_factor},
                            {"high_freq_factor", m.rope_high_freq_factor},
                            {"original_max_position_embeddings", m.rope_original_len}};
  put_token_ids(json, of.ids);
  return json;
}

nlohmann::ordered_json hf_generation_json(const TokenIds& ids) {
  nlohmann::ordered_json json = {{"_from_model_config", true}};
  put_token_ids(json, ids);
  return json;
}

}  // namespace hlat
