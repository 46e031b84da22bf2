// One row per family.
#include "data/tokenizer/tiktoken_families.h"

#include <algorithm>

#include "base/error.h"
#include "data/tokenizer/patterns.h"

namespace hlat::tokenizer {
namespace {

using Special = std::vector<std::pair<std::string, int64_t>>;

// Consecutive ids.
void append_names(Special& out, std::initializer_list<const char*> names) {
  for (const char* name : names) out.emplace_back(name, out.back().second + 1);
}

// <|..._0|>, <|..._1|> and so on, as many as it takes to fill ids below `end`.
void append_numbered(Special& out, const char* stem, int64_t first, int64_t end) {
  for (int64_t id = out.back().second + 1; id < end; ++id) out.emplace_back(fmt::format("<|{}_{}|>", stem, first++), id);
}

Special gpt2() { return {{"<|endoftext|>", 50256}}; }

Special cl100k() {
  return {{"<|endoftext|>", 100257},
          {"<|fim_prefix|>", 100258},
          {"<|fim_middle|>", 100259},
          {"<|fim_suffix|>", 100260},
          {"<|endofprompt|>", 100276}};
}

Special o200k() { return {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}; }

Special llama3() {
  Special out = {{"<|begin_of_text|>", 128000}};
  append_names(out, {"<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>",
                     "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>", "<|image|>"});
  append_numbered(out, "reserved_special_token", 2, 128000 + 256);
  return out;
}

Special llama4() {
  Special out = {{"<|begin_of_text|>", 200000}};
  append_names(out, {"<|end_of_text|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|header_start|>", "<|header_end|>",
                     "<|eom|>", "<|eot|>", "<|step|>"});
  append_numbered(out, "text_post_train_reserved_special_token", 0, 200018);
  append_names(out, {"<|finetune_right_pad|>"});
  append_numbered(out, "text_post_train_reserved_special_token", 8, 200080);
  append_names(out, {"<|image_start|>", "<|image_end|>"});
  append_numbered(out, "vision_reserved_special_token", 0, 200084);
  append_names(out, {"<|tile_x_separator|>", "<|tile_y_separator|>"});
  append_numbered(out, "vision_reserved_special_token", 2, 200090);
  append_names(out, {"<|image|>", "<|vision_reserved_special_token_6|>", "<|patch|>"});
  append_numbered(out, "vision_reserved_special_token", 7, 201134);
  append_numbered(out, "reasoning_reserved_special_token", 0, 201142);
  append_names(out, {"<|reasoning_thinking_start|>", "<|reasoning_thinking_end|>"});
  append_numbered(out, "reserved_special_token", 0, 200000 + 2048);
  return out;
}

Special qwen() {
  Special out = {{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}};
  append_numbered(out, "extra", 0, 151851);
  return out;
}

Special glm4() {
  Special out = {{"<|endoftext|>", 151329}};
  append_names(out, {"[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>",
                     "<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>"});
  return out;
}

Special kimi() {
  const std::initializer_list<std::pair<int64_t, const char*>> named = {{163584, "[BOS]"},
                                                                        {163585, "[EOS]"},
                                                                        {163586, "<|im_end|>"},
                                                                        {163587, "<|im_user|>"},
                                                                        {163588, "<|im_assistant|>"},
                                                                        {163590, "<|start_header_id|>"},
                                                                        {163591, "<|end_header_id|>"},
                                                                        {163593, "[EOT]"},
                                                                        {163594, "<|im_system|>"},
                                                                        {163601, "<|im_middle|>"},
                                                                        {163838, "[UNK]"},
                                                                        {163839, "[PAD]"}};
  Special out;
  for (int64_t id = 163584; id < 163840; ++id) {
    const auto* it = std::find_if(named.begin(), named.end(), [&](const auto& n) { return n.first == id; });
    out.emplace_back(it != named.end() ? it->second : fmt::format("<|reserved_token_{}|>", id), id);
  }
  return out;
}

std::string counts() {
  std::string out;
  for (const TiktokenFamily& f : tiktoken_families()) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", f.name, f.ranks);
  return out;
}

}  // namespace

const std::vector<TiktokenFamily>& tiktoken_families() {
  using namespace patterns;  // NOLINT(google-build-using-namespace)
  static const std::vector<TiktokenFamily> families = {
      {"r50k_base (GPT-2)", 50256, {{256, " t"}, {50255, " gazed"}}, kGpt2, gpt2, "", "<|endoftext|>"},
      {"p50k_base", 50280, {{256, " t"}, {50255, " gazed"}}, kGpt2, gpt2, "", "<|endoftext|>"},
      {.name = "cl100k_base",
       .ranks = 100256,
       .known = {{256, "  "}, {72325, " Bosch"}},
       .pattern = kLlama3,
       .special_tokens = cl100k,
       .bos = "",
       .eos = "<|endoftext|>",
       .ends_with_space = true},
      {"o200k_base", 199998, {{111062, " avoids"}, {111067, "ENDOR"}}, kO200k, o200k, "", "<|endoftext|>"},
      {"Llama 3", 128000, {{256, "  "}, {127999, "\xE9\x94\xA6"}}, kLlama3, llama3, "<|begin_of_text|>", "<|end_of_text|>"},
      {"Llama 4", 200000, {}, kO200k, llama4, "<|begin_of_text|>", "<|end_of_text|>"},
      {"Qwen", 151643, {{68032, " lions"}, {68893, "County"}}, kQwen2, qwen, "", "<|endoftext|>", true},
      {"GLM-4", 151329, {}, kLlama3, glm4, "", "<|endoftext|>"},
      {"Kimi", 163584, {}, kKimi, kimi, "[BOS]", "[EOS]"},
  };
  return families;
}

const TiktokenFamily& family_of(const std::vector<RankedToken>& tokens) {
  const auto has = [&](const TiktokenFamily::Known& k) {
    return std::any_of(tokens.begin(), tokens.end(), [&](const RankedToken& t) { return t.rank == k.rank && t.bytes == k.bytes; });
  };
  for (const TiktokenFamily& f : tiktoken_families()) {
    if (static_cast<size_t>(f.ranks) != tokens.size()) continue;
    if (std::all_of(f.known.begin(), f.known.end(), has)) return f;
    fail(
        "{} ranks, as {} has, but not its tokens; a file of ranks does not say its pattern and special tokens: give the model's "
        "tokenizer.json",
        f.ranks, f.name);
  }
  fail(
      "{} ranks of no family that is known ({}); a file of ranks does not say its pattern and special tokens: give the model's "
      "tokenizer.json",
      tokens.size(), counts());
}

}  // namespace hlat::tokenizer
