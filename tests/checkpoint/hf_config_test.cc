// config.json of Hugging Face: what is read, in both spellings, and what is refused by name.
#include "checkpoint/hf/hf_config.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "support/message_of.h"

namespace hlat {
namespace {

using Json = nlohmann::ordered_json;

Json llama() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", 1000},
          {"hidden_size", 64},
          {"intermediate_size", 160},
          {"num_hidden_layers", 3},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 2},
          {"max_position_embeddings", 4096},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 500000},
          {"hidden_act", "silu"}};
}

Json mistral() {
  Json json = llama();
  json["architectures"] = {"MistralForCausalLM"};
  json["model_type"] = "mistral";
  json["sliding_window"] = nullptr;
  return json;
}

HfConfig parse(const Json& json) { return parse_hf_config(json.dump()); }

using Change = std::function<void(Json&)>;
std::string refusal(const Change& change, Json json = llama()) {
  change(json);
  return message_of([&] { parse(json); });
}

TEST(HfConfig, ShapeAndDefaults) {
  const HfConfig c = parse(llama());
  EXPECT_EQ(c.architecture, "LlamaForCausalLM");
  EXPECT_EQ(c.model.layers, 3);
  EXPECT_EQ(c.model.hidden, 64);
  EXPECT_EQ(c.model.heads, 8);
  EXPECT_EQ(c.model.kv_heads, 2);
  EXPECT_EQ(c.model.ffn, 160);
  EXPECT_EQ(c.model.vocab, 1000);
  EXPECT_EQ(c.model.norm_eps, 1e-5);
  EXPECT_EQ(c.model.rope_theta, 500000);
  EXPECT_EQ(c.model.rope_scaling, "none");
  EXPECT_FALSE(c.model.tied);
  EXPECT_EQ(c.max_length, 4096);
  EXPECT_TRUE(c.notes.empty());
  Json sparse = llama();
  for (const char* key : {"num_key_value_heads", "rms_norm_eps", "rope_theta", "max_position_embeddings", "model_type"}) sparse.erase(key);
  const HfConfig d = parse(sparse);
  EXPECT_EQ(d.model.kv_heads, 8);
  EXPECT_EQ(d.model.norm_eps, 1e-6);
  EXPECT_EQ(d.model.rope_theta, 10000);
  EXPECT_EQ(d.max_length, 2048);
}

TEST(HfConfig, RotaryScalingInBothSpellings) {
  const Json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 8192}};
  Json old = llama(), fresh = llama();
  old["rope_scaling"] = llama3;
  fresh.erase("rope_theta");
  fresh["rope_parameters"] = llama3;
  fresh["rope_parameters"]["rope_theta"] = 500000.0;
  for (const Json& json : {old, fresh}) {
    const ModelConfig m = parse(json).model;
    EXPECT_EQ(m.rope_theta, 500000);
    EXPECT_EQ(m.rope_scaling, "llama3");
    EXPECT_EQ(m.rope_factor, 8);
    EXPECT_EQ(m.rope_low_freq_factor, 1);
    EXPECT_EQ(m.rope_high_freq_factor, 4);
    EXPECT_EQ(m.rope_original_len, 8192);
  }
  Json linear = llama();
  linear["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  EXPECT_EQ(parse(linear).model.rope_scaling, "linear");
  EXPECT_EQ(parse(linear).model.rope_factor, 2);
  Json plain = llama();
  plain["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500000}};
  EXPECT_EQ(parse(plain).model.rope_scaling, "none");
  plain["rope_parameters"]["rope_theta"] = 10000;
  EXPECT_EQ(message_of([&] { parse(plain); }), "rope_theta, rope_scaling and rope_parameters contradict each other");
  old["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}};
  EXPECT_EQ(message_of([&] { parse(old); }), "rope_theta, rope_scaling and rope_parameters contradict each other");
}

TEST(HfConfig, MistralWithoutASlidingWindow) {
  EXPECT_EQ(parse(mistral()).architecture, "MistralForCausalLM");
  EXPECT_EQ(refusal([](Json& j) { j["sliding_window"] = 4096; }, mistral()),
            "sliding_window 4096 is not supported: attention is to all tokens before");
  EXPECT_EQ(refusal([](Json& j) { j.erase("sliding_window"); }, mistral()),
            "sliding_window is missing, which is 4096 in a Mistral; null is supported");
}

TEST(HfConfig, RefusedByName) {
  const auto scaled = [](const char* type) { return [type](Json& j) { j["rope_scaling"] = {{"rope_type", type}, {"factor", 4.0}}; }; };
  struct Case {
    Change change;
    std::string message;
  };
  const std::vector<Case> cases = {
      {[](Json& j) { j["architectures"] = {"Qwen2ForCausalLM"}, j["model_type"] = "qwen2"; },
       "architecture Qwen2ForCausalLM is not supported: its query, key and value projections have biases"},
      {[](Json& j) { j["architectures"] = {"Qwen3ForCausalLM"}, j["model_type"] = "qwen3"; },
       "architecture Qwen3ForCausalLM is not supported: it normalizes queries and keys (QK-norm)"},
      {[](Json& j) { j["architectures"] = {"GPT2LMHeadModel"}; },
       "architecture GPT2LMHeadModel is not supported; LlamaForCausalLM and MistralForCausalLM are"},
      {[](Json& j) { j["model_type"] = "qwen2"; }, "model_type qwen2 and architecture LlamaForCausalLM contradict each other"},
      {[](Json& j) { j["attention_bias"] = true; }, "attention_bias is true: such weights are not supported"},
      {[](Json& j) { j["mlp_bias"] = true; }, "mlp_bias is true: such weights are not supported"},
      {[](Json& j) { j["head_dim"] = 16; }, "head_dim 16 is not supported: a head has hidden_size / num_attention_heads = 64 / 8 elements"},
      {scaled("yarn"), "rope_scaling: rotary scaling of type yarn is not supported; default, linear and llama3 are"},
      {scaled("dynamic"), "rope_scaling: rotary scaling of type dynamic is not supported; default, linear and llama3 are"},
      {scaled("longrope"), "rope_scaling: rotary scaling of type longrope is not supported; default, linear and llama3 are"},
      {scaled("llama3"),
       "rope_scaling: low_freq_factor is missing\nrope_scaling: high_freq_factor is missing\n"
       "rope_scaling: original_max_position_embeddings is missing"},
      {[](Json& j) { j["hidden_act"] = "gelu"; }, "hidden_act gelu is not supported; silu is"},
      {[](Json& j) {
         j["quantization_config"] = {{"quant_method", "gptq"}};
       },
       "its weights are quantized (gptq); give the model that they were made of"},
      {[](Json& j) { j["partial_rotary_factor"] = 0.5; }, "partial_rotary_factor is not supported: all of a head is rotated"},
      {[](Json& j) {
         j["layer_types"] = {"full_attention", "sliding_attention", "full_attention"};
       },
       "layer_types other than full_attention are not supported"},
      {[](Json& j) { j.erase("hidden_size"), j["vocab_size"] = "many"; }, "hidden_size is missing\nvocab_size is no whole number"},
      {[](Json& j) { j["num_attention_heads"] = 7, j["num_key_value_heads"] = 7; }, "model.heads must divide model.hidden (64)"},
      {[](Json& j) { j["num_key_value_heads"] = 3; }, "model.kv_heads must divide model.heads (8)"},
  };
  for (const Case& c : cases) EXPECT_EQ(refusal(c.change), c.message);
  EXPECT_EQ(message_of([] { parse_hf_config("[1]"); }), "it is no JSON object");
}

TEST(HfConfig, PretrainingTpIsIgnoredWithAWord) {
  Json json = llama();
  json["pretraining_tp"] = 2;
  EXPECT_EQ(parse(json).notes, std::vector<std::string>{"pretraining_tp 2 is ignored: it changes the order of sums, not the model"});
}

TEST(HfConfig, WhatAnExportWritesIsReadBack) {
  HfModel of{.model = parse(llama()).model, .max_length = 4096, .ids = {.bos = {1}, .eos = {2, 5}}};
  for (const char* scaling : {"none", "linear", "llama3"}) {
    of.model.rope_scaling = scaling;
    of.model.rope_factor = scaling == std::string("none") ? 1 : 8;
    const HfConfig c = parse(hf_config_json(of));
    EXPECT_EQ(c.model, of.model) << scaling;
    EXPECT_EQ(c.max_length, 4096);
    EXPECT_EQ(c.ids, of.ids);
  }
  of.model.tied = true;
  EXPECT_TRUE(parse(hf_config_json(of)).model.tied);
}

}  // namespace
}  // namespace hlat
