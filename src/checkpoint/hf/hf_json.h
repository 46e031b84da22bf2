// JSON files of a Hugging Face folder: those that an export writes, and values that more than one of them has.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "config/config.h"
#include "tensor/dtype.h"

namespace hlat {

// Ids of special tokens; empty: not known. Several end tokens are what chat models have.
struct TokenIds {
  std::vector<int64_t> bos = {}, eos = {};
  bool operator==(const TokenIds&) const = default;
};
TokenIds token_ids_of(const nlohmann::json& json);  // bos_token_id and eos_token_id, a number or a list
void put_token_ids(nlohmann::ordered_json& json, const TokenIds& ids);

struct HfModel {
  ModelConfig model = {};
  int64_t max_length = 0;
  DType dtype = DType::bf16;
  TokenIds ids = {};
};
nlohmann::ordered_json hf_config_json(const HfModel& of);           // config.json
nlohmann::ordered_json hf_generation_json(const TokenIds& ids);     // generation_config.json
std::optional<int64_t> whole_number(const nlohmann::json& number);  // also one that is written as 4.0

}  // namespace hlat
