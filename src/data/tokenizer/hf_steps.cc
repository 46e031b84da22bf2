// Normalizers and pre-tokenizers of tokenizer.json.
#include "data/tokenizer/hf_steps.h"

#include <algorithm>

namespace hlat::tokenizer {
namespace {

NormalizerStep read_replace_step(const JsonNode& node) {
  node.allow_keys({"type", "pattern", "content"});
  const JsonNode pattern = node.at("pattern");
  pattern.allow_keys({"String", "Regex"});
  NormalizerStep step{.kind = NormalizerStep::replace, .from = "", .to = node.text("content")};
  if (pattern.has("Regex")) {
    step.kind = NormalizerStep::replace_pattern;
    step.pattern = std::make_shared<const Regex>(pattern.text("Regex"));
  } else {
    step.from = pattern.text("String");
    if (step.from.empty()) node.refuse("an empty pattern is not supported");
  }
  return step;
}

std::optional<NormalForm> form_of(std::string_view type) {
  if (type == "NFC") return NormalForm::nfc;
  if (type == "NFD") return NormalForm::nfd;
  if (type == "NFKC") return NormalForm::nfkc;
  if (type == "NFKD") return NormalForm::nfkd;
  return std::nullopt;
}

[[noreturn]] void refuse_normalizer(const JsonNode& node, const std::string& type) {
  if (type == "Precompiled")
    node.refuse("normalizer 'Precompiled' is not supported; give the SentencePiece file that this one was made from (spiece.model, *.spm)");
  node.refuse(fmt::format(
      "normalizer '{}' is not supported; NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Nmt, Prepend, Replace and Sequence are",
      type));
}

void add_normalizer(const JsonNode& node, std::vector<NormalizerStep>& steps) {
  const std::string type = node.text("type");
  const auto plain = [&](NormalizerStep step) {
    node.allow_keys({"type"});
    steps.push_back(std::move(step));
  };
  if (type == "Sequence") {
    node.allow_keys({"type", "normalizers"});
    node.at("normalizers").each([&](const JsonNode& n) { add_normalizer(n, steps); });
  } else if (const auto form = form_of(type)) {
    plain({.kind = NormalizerStep::form, .from = "", .to = "", .normal_form = *form});
  } else if (type == "Lowercase") {
    plain({.kind = NormalizerStep::lowercase, .from = "", .to = ""});
  } else if (type == "StripAccents") {
    plain({.kind = NormalizerStep::strip_accents, .from = "", .to = ""});
  } else if (type == "Nmt") {
    plain({.kind = NormalizerStep::nmt, .from = "", .to = ""});
  } else if (type == "Strip") {
    node.allow_keys({"type", "strip_left", "strip_right"});
    steps.push_back({.kind = NormalizerStep::strip,
                     .from = "",
                     .to = "",
                     .left = node.flag("strip_left", true),
                     .right = node.flag("strip_right", true)});
  } else if (type == "Prepend") {
    node.allow_keys({"type", "prepend"});
    steps.push_back({.kind = NormalizerStep::prepend, .from = "", .to = node.text("prepend")});
  } else if (type == "Replace") {
    steps.push_back(read_replace_step(node));
  } else {
    refuse_normalizer(node, type);
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
  const SplitStep isolated = step_of_pattern(text);
  // Scanners are of patterns that match all of any text, so nothing is between the matches.
  const bool only_matches = step.behavior == SplitBehavior::removed && step.invert;
  if (step.behavior == SplitBehavior::isolated || (only_matches && isolated.kind != SplitStep::regex)) return isolated;
  step.pattern = isolated.pattern ? isolated.pattern : std::make_shared<const Regex>(text);
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

SplitStep read_punctuation(const JsonNode& node) {
  node.allow_keys({"type", "behavior"});
  return {.kind = SplitStep::punctuation, .behavior = node.has("behavior") ? read_behavior(node) : SplitBehavior::isolated};
}

// Steps after ByteLevel look at the printable characters that it makes of bytes.
void add_after_bytes(PreTokenizerSection& out) {
  const auto spells = [](const SplitStep& s) { return s.kind == SplitStep::spell_bytes; };
  if (std::none_of(out.steps.begin(), out.steps.end(), spells)) out.steps.push_back({.kind = SplitStep::spell_bytes});
}

void add_pre_tokenizer(const JsonNode& node, PreTokenizerSection& out) {
  const std::string type = node.text("type");
  const bool after_bytes = out.byte_level && type != "Sequence";
  if (out.space_marks || (after_bytes && (type == "ByteLevel" || type == "Metaspace")))
    node.refuse(fmt::format("the pre-tokenizer '{}' after ByteLevel or Metaspace is not supported", type));
  if (after_bytes) add_after_bytes(out);
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
  } else if (type == "Punctuation") {
    out.steps.push_back(read_punctuation(node));
  } else if (type == "WhitespaceSplit") {
    node.allow_keys({"type"});
    out.steps.push_back({.kind = SplitStep::white_space, .behavior = SplitBehavior::removed});
  } else {
    node.refuse(fmt::format(
        "pre-tokenizer '{}' is not supported; ByteLevel, Split, Digits, Punctuation, WhitespaceSplit, Metaspace and Sequence are", type));
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
  const auto spells = [](const SplitStep& s) { return s.kind == SplitStep::spell_bytes; };
  if (std::any_of(out.steps.begin(), out.steps.end(), spells)) out.steps.push_back({.kind = SplitStep::read_bytes});
  return out;
}

}  // namespace hlat::tokenizer
