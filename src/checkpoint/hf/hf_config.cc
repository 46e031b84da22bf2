#include "checkpoint/hf/hf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "checkpoint/hf/hf_json.h"
#include "config/validate.h"

namespace hlat {

namespace {

using Json = nlohmann::json;

// Values of an object by key, and what is wrong with them. A key that is null counts as absent, as in the library.
class Keys {
 public:
  Keys(const Json& json, std::string prefix, std::vector<std::string>& problems)
      : json_(json), prefix_(std::move(prefix)), problems_(problems) {}

  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  int64_t integer(const char* key, std::optional<int64_t> otherwise = {}) const {
    return value<int64_t>(key, otherwise, "whole number", whole_number);
  }
  double number(const char* key, std::optional<double> otherwise = {}) const {
    return value<double>(key, otherwise, "number",
                         [](const Json& v) { return v.is_number() ? std::optional(v.get<double>()) : std::nullopt; });
  }
  bool flag(const char* key) const {
    return value<bool>(key, false, "truth value",
                       [](const Json& v) { return v.is_boolean() ? std::optional(v.get<bool>()) : std::nullopt; });
  }
  std::string text(const char* key, std::optional<std::string> otherwise) const {
    return value<std::string>(key, std::move(otherwise), "text",
                              [](const Json& v) { return v.is_string() ? std::optional(v.get<std::string>()) : std::nullopt; });
  }
  template <class... Args>
  void problem(fmt::format_string<Args...> text, Args&&... args) const {
    problems_.push_back(prefix_ + fmt::format(text, std::forward<Args>(args)...));
  }
  Keys inner(const char* key) const { return {*find(key), prefix_ + key + ": ", problems_}; }

 private:
  template <class T, class Read>
  T value(const char* key, std::optional<T> otherwise, const char* kind, const Read& read) const {
    const Json* v = find(key);
    if (v == nullptr && otherwise) return *otherwise;
    const std::optional<T> got = v != nullptr ? read(*v) : std::nullopt;
    if (v == nullptr) problem("{} is missing", key);
    if (v != nullptr && !got) problem("{} is no {}", key, kind);
    return got.value_or(T{});
  }

  const Json& json_;
  std::string prefix_;
  std::vector<std::string>& problems_;
};

struct Refusal {
  std::string_view architecture, why;
};
constexpr std::array<Refusal, 6> kRefused = {{
    {"Qwen2ForCausalLM", "its query, key and value projections have biases"},
    {"Qwen3ForCausalLM", "it normalizes queries and keys (QK-norm)"},
    {"MixtralForCausalLM", "it is a mixture of experts"},
    {"Phi3ForCausalLM", "its layers are not those of Llama"},
    {"GemmaForCausalLM", "its layers are not those of Llama"},
    {"Gemma2ForCausalLM", "its layers are not those of Llama"},
}};

// "LlamaForCausalLM" or "MistralForCausalLM"; what else it is becomes a problem.
std::string architecture_of(const Keys& keys) {
  constexpr std::string_view kLlama = "LlamaForCausalLM", kMistral = "MistralForCausalLM";
  const std::string type = keys.text("model_type", "");
  std::string name = type == "mistral" ? std::string(kMistral) : type == "llama" ? std::string(kLlama) : "";
  if (const Json* list = keys.find("architectures")) {
    if (!list->is_array() || list->size() != 1 || !list->front().is_string()) {
      keys.problem("architectures is no list of one name");
      return name;
    }
    name = list->front().get<std::string>();
  }
  for (const Refusal& r : kRefused)
    if (r.architecture == name) keys.problem("architecture {} is not supported: {}", name, r.why);
  if (!keys.find("architectures") && name.empty()) keys.problem("neither architectures nor model_type says that it is a Llama");
  const bool known = name == kLlama || name == kMistral;
  const bool told = std::any_of(kRefused.begin(), kRefused.end(), [&](const Refusal& r) { return r.architecture == name; });
  if (!known && !told && !name.empty()) keys.problem("architecture {} is not supported; {} and {} are", name, kLlama, kMistral);
  if (known && !type.empty() && type != (name == kMistral ? "mistral" : "llama"))
    keys.problem("model_type {} and architecture {} contradict each other", type, name);
  return name;
}

struct Rope {
  std::string scaling = "none";
  double factor = 1, low = 1, high = 4;
  int64_t original = 8192;
  std::optional<double> theta;
  bool same_scaling(const Rope& o) const {
    return scaling == o.scaling && factor == o.factor && low == o.low && high == o.high && original == o.original;
  }
};

void refuse_partial(const Keys& keys) {
  if (keys.number("partial_rotary_factor", 1) != 1) keys.problem("partial_rotary_factor is not supported: all of a head is rotated");
}

Rope rope_of(const Keys& keys) {
  Rope rope;
  if (keys.find("rope_theta")) rope.theta = keys.number("rope_theta");
  refuse_partial(keys);
  const std::string type = keys.find("rope_type") ? keys.text("rope_type", {}) : keys.text("type", "default");
  if (type == "default") return rope;
  if (type != "linear" && type != "llama3") {
    keys.problem("rotary scaling of type {} is not supported; default, linear and llama3 are", type);
    return rope;
  }
  rope.scaling = type;
  rope.factor = keys.number("factor");
  if (type == "linear") return rope;
  rope.low = keys.number("low_freq_factor");
  rope.high = keys.number("high_freq_factor");
  rope.original = keys.integer("original_max_position_embeddings");
  return rope;
}

void read_rope(const Keys& keys, ModelConfig& m) {
  Rope rope;
  if (keys.find("rope_theta")) rope.theta = keys.number("rope_theta");
  refuse_partial(keys);
  bool scaled = false;
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const Json* object = keys.find(key);
    if (object == nullptr) continue;
    if (!object->is_object() || std::any_of(object->begin(), object->end(), [](const Json& v) { return v.is_structured(); })) {
      keys.problem("{} is no plain object: one setting for all layers is supported", key);
      continue;
    }
    Rope here = rope_of(keys.inner(key));
    if ((scaled && !here.same_scaling(rope)) || (here.theta && rope.theta && *here.theta != *rope.theta))
      keys.problem("rope_theta, rope_scaling and rope_parameters contradict each other");
    if (!here.theta) here.theta = rope.theta;
    rope = here;
    scaled = true;
  }
  m.rope_theta = rope.theta.value_or(10000);
  m.rope_scaling = rope.scaling;
  m.rope_factor = rope.factor;
  m.rope_low_freq_factor = rope.low;
  m.rope_high_freq_factor = rope.high;
  m.rope_original_len = rope.original;
}

// Keys that make a Llama another model.
void refuse_variants(const Keys& keys, bool mistral, const ModelConfig& m) {
  for (const char* key : {"attention_bias", "mlp_bias", "use_qk_norm"})
    if (keys.flag(key)) keys.problem("{} is true: such weights are not supported", key);
  const std::string act = keys.text("hidden_act", "silu");
  if (act != "silu" && act != "swish") keys.problem("hidden_act {} is not supported; silu is", act);
  if (keys.find("sliding_window"))
    keys.problem("sliding_window {} is not supported: attention is to all tokens before", keys.integer("sliding_window"));
  const auto given = [&](const char* key) { return keys.find(key) != nullptr; };
  if (const Json* types = keys.find("layer_types"))
    for (const Json& type : *types)
      if (type != "full_attention") return keys.problem("layer_types other than full_attention are not supported");
  if (given("quantization_config")) {
    const Json& q = *keys.find("quantization_config");
    const bool named = q.is_object() && q.contains("quant_method") && q["quant_method"].is_string();
    keys.problem("its weights are quantized{}; give the model that they were made of",
                 named ? " (" + q["quant_method"].get<std::string>() + ")" : "");
  }
  const bool divides = m.heads > 0 && m.hidden % m.heads == 0;
  if (given("head_dim") && (!divides || keys.integer("head_dim") != m.hidden / m.heads))
    keys.problem("head_dim {} is not supported: a head has hidden_size / num_attention_heads = {} / {} elements", keys.integer("head_dim"),
                 m.hidden, m.heads);
  if (mistral && given("use_sliding_window") && keys.flag("use_sliding_window")) keys.problem("use_sliding_window is not supported");
}

}  // namespace

HfConfig parse_hf_config(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) fail<UsageError>("it is no JSON object");
  std::vector<std::string> problems;
  const Keys keys(json, "", problems);
  HfConfig c;
  c.architecture = architecture_of(keys);
  if (!problems.empty()) fail<UsageError>("{}", fmt::join(problems, "\n"));  // its other keys may mean anything
  const bool mistral = c.architecture == "MistralForCausalLM";
  ModelConfig& m = c.model;
  m.layers = keys.integer("num_hidden_layers");
  m.hidden = keys.integer("hidden_size");
  m.heads = keys.integer("num_attention_heads");
  // Defaults of the library, which leaves out what has them.
  m.kv_heads = keys.integer("num_key_value_heads", mistral && !json.contains("num_key_value_heads") ? 8 : m.heads);
  m.ffn = keys.integer("intermediate_size");
  m.vocab = keys.integer("vocab_size");
  m.norm_eps = keys.number("rms_norm_eps", 1e-6);
  m.tied = keys.flag("tie_word_embeddings");
  if (const double std = keys.number("initializer_range", m.init_std); std > 0 && std <= 100) m.init_std = std;
  c.max_length = keys.integer("max_position_embeddings", mistral ? 131072 : 2048);
  if (mistral && !json.contains("sliding_window")) keys.problem("sliding_window is missing, which is 4096 in a Mistral; null is supported");
  read_rope(keys, m);
  refuse_variants(keys, mistral, m);
  if (problems.empty()) {
    Config config;
    config.model = m;
    config.train.seq_len = c.max_length;
    for (const Violation& v : validate(config)) problems.push_back(fmt::format("{} {}", v.keys.front(), v.message));
    if (m.vocab == 0 || json.value("num_key_value_heads", Json(1)) == 0)
      problems.emplace_back("vocab_size and num_key_value_heads are above 0");
  }
  if (!problems.empty()) fail<UsageError>("{}", fmt::join(problems, "\n"));
  if (const int64_t tp = keys.integer("pretraining_tp", 1); tp > 1)
    c.notes.push_back(fmt::format("pretraining_tp {} is ignored: it changes the order of sums, not the model", tp));
  c.ids = token_ids_of(json);
  return c;
}

}  // namespace hlat
