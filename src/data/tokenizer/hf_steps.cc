// Normalizers and pre-tokenizers of tokenizer.json.
#include "data/tokenizer/hf_steps.h"

#include <algorithm>

namespace hlat {
namespace {

// A pattern that is plain text; the regex kind only where `allow_regex` gives a place for it.
std::string literal(const JsonNode& pattern) {
  if (!pattern.has("String")) pattern.refuse("only a pattern of kind String is supported here");
  pattern.allow_keys({"String"});
  return pattern.text("String");
}

void add_normalizer(const JsonNode& node, std::vector<NormalizerStep>& steps) {
  const std::string type = node.text("type");
  if (type == "Sequence") {
    node.allow_keys({"type", "normalizers"});
    node.at("normalizers").each([&](const JsonNode& n) { add_normalizer(n, steps); });
  } else if (type == "NFC") {
    node.allow_keys({"type"});
    steps.push_back({NormalizerStep::nfc, "", ""});
  } else if (type == "Prepend") {
    node.allow_keys({"type", "prepend"});
    steps.push_back({NormalizerStep::prepend, "", node.text("prepend")});
  } else if (type == "Replace") {
    node.allow_keys({"type", "pattern", "content"});
    const std::string from = literal(node.at("pattern"));
    if (from.empty()) node.refuse("an empty pattern is not supported");
    steps.push_back({NormalizerStep::replace, from, node.text("content")});
  } else {
    node.refuse(fmt::format("normalizer '{}' is not supported; NFC, Prepend, Replace and Sequence are", type));
  }
}

SplitBehavior read_behavior(const JsonNode& node) {
  const std::string name = node.text("behavior");
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  if (name == "MergedWithPrevious") return SplitBehavior::with_previous;
  if (name == "MergedWithNext") return SplitBehavior::with_next;
  node.refuse(fmt::format("behavior '{}' is not supported", name));
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view(R"(\/()[]{}.*+?|^$-#)").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

SplitStep read_split(const JsonNode& node) {
  node.allow_keys({"type", "pattern", "behavior", "invert"});
  SplitStep step{.kind = SplitStep::regex, .behavior = read_behavior(node), .invert = node.flag("invert", false)};
  const JsonNode pattern = node.at("pattern");
  pattern.allow_keys({"String", "Regex"});
  const std::string text = pattern.has("String") ? escaped(pattern.text("String")) : pattern.text("Regex");
  if (text.empty()) pattern.refuse("an empty pattern is not supported");
  // These match all of any text, so nothing is between the matches.
  const bool keeps_all = step.behavior == SplitBehavior::isolated || (step.behavior == SplitBehavior::removed && step.invert);
  if (keeps_all && text == scan::kGpt2Pattern) return {.kind = SplitStep::gpt2};
  if (keeps_all && text == scan::kLlama3Pattern) return {.kind = SplitStep::llama3};
  if (keeps_all && text == scan::kQwen2Pattern) return {.kind = SplitStep::qwen2};
  step.pattern = std::make_shared<const Regex>(text);
  return step;
}

void add_byte_level(const JsonNode& node, PreTokenizerSection& out) {
  node.allow_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  out.byte_level = true;
  if (node.flag("add_prefix_space", true)) out.steps.push_back({.kind = SplitStep::prefix_space, .prefix = SplitStep::Prefix::always});
  if (node.flag("use_regex", true)) out.steps.push_back({.kind = SplitStep::gpt2});
}

void add_metaspace(const JsonNode& node, PreTokenizerSection& out) {
  node.allow_keys({"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
  if (node.text("replacement") != kSpaceMark) node.refuse("a replacement other than U+2581 is not supported");
  const std::string scheme = node.has("prepend_scheme")            ? node.text("prepend_scheme")
                             : node.flag("add_prefix_space", true) ? "always"
                                                                   : "never";
  using Prefix = SplitStep::Prefix;
  if (scheme != "always" && scheme != "first" && scheme != "never")
    node.refuse(fmt::format("prepend_scheme '{}' is not supported", scheme));
  out.space_marks = true;
  out.steps.push_back({.kind = SplitStep::unmark,
                       .prefix = scheme == "always"  ? Prefix::always
                                 : scheme == "first" ? Prefix::first
                                                     : Prefix::never});
  if (node.flag("split", true)) out.steps.push_back({.kind = SplitStep::each_space});
}

void add_pre_tokenizer(const JsonNode& node, PreTokenizerSection& out) {
  if (out.byte_level || out.space_marks) node.refuse("a pre-tokenizer after ByteLevel or Metaspace is not supported");
  const std::string type = node.text("type");
  if (type == "Sequence") {
    node.allow_keys({"type", "pretokenizers"});
    node.at("pretokenizers").each([&](const JsonNode& n) { add_pre_tokenizer(n, out); });
  } else if (type == "ByteLevel") {
    add_byte_level(node, out);
  } else if (type == "Metaspace") {
    add_metaspace(node, out);
  } else if (type == "Split") {
    out.steps.push_back(read_split(node));
  } else if (type == "Digits") {
    node.allow_keys({"type", "individual_digits"});
    out.steps.push_back({.kind = node.flag("individual_digits", false) ? SplitStep::each_digit : SplitStep::digits});
  } else {
    node.refuse(fmt::format("pre-tokenizer '{}' is not supported; ByteLevel, Split, Digits, Metaspace and Sequence are", type));
  }
}

}  // namespace

Normalizer read_normalizer(const JsonNode& root) {
  Normalizer out;
  if (root.has("normalizer")) add_normalizer(root.at("normalizer"), out.steps);
  return out;
}

PreTokenizerSection read_pre_tokenizer(const JsonNode& root) {
  PreTokenizerSection out;
  if (root.has("pre_tokenizer")) add_pre_tokenizer(root.at("pre_tokenizer"), out);
  return out;
}

}  // namespace hlat
