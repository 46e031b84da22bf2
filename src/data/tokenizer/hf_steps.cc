// Normalizers, pre-tokenizers and decoders of tokenizer.json.
#include "data/tokenizer/hf_steps.h"

#include "data/tokenizer/unicode.h"

namespace hlat::tokenizer {
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

namespace {

// Works the decoder section out per token.
class DecoderReader {
 public:
  DecoderReader(const Vocab& vocab, const std::vector<AddedToken>& added) {
    decoder_.bytes.resize(static_cast<size_t>(vocab.size()));
    decoder_.known.resize(decoder_.bytes.size());
    for (int32_t id = 0; id < vocab.size(); ++id) {
      decoder_.known[static_cast<size_t>(id)] = vocab.has(id);
      decoder_.bytes[static_cast<size_t>(id)] = vocab.token(id);
    }
    for (const AddedToken& t : added) decoder_.bytes[static_cast<size_t>(t.id)] = t.text;
  }

  void read(const JsonNode& node) {
    const std::string type = node.text("type");
    if (type == "Sequence") {
      node.allow_keys({"type", "decoders"});
      node.at("decoders").each([this](const JsonNode& n) { read(n); });
    } else if (type == "ByteLevel") {
      node.allow_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
      if (changed_) node.refuse("a ByteLevel decoder after others is not supported");
      for (std::string& b : decoder_.bytes) b = bytes_of_printable(b).value_or(b);
    } else if (type == "Replace") {
      read_replace(node);
    } else if (type == "ByteFallback") {
      node.allow_keys({"type"});
      for (size_t i = 0; i < decoder_.bytes.size(); ++i) {
        const auto byte = byte_of_token(decoder_.bytes[i]);
        if (byte) decoder_.bytes[i] = std::string(1, static_cast<char>(*byte));
      }
    } else if (type == "Fuse") {
      node.allow_keys({"type"});
      fused_ = true;
    } else if (type == "Strip") {
      read_strip(node);
    } else if (type == "Metaspace") {
      read_metaspace(node);
    } else {
      node.refuse(
          fmt::format("decoder '{}' is not supported; ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace and Sequence are", type));
    }
    changed_ = true;
  }

  Decoder take() { return std::move(decoder_); }

 private:
  void read_replace(const JsonNode& node) {
    node.allow_keys({"type", "pattern", "content"});
    const JsonNode pattern = node.at("pattern");
    if (fused_ || !pattern.has("String") || pattern.text("String").empty()) node.refuse("only text in single tokens can be replaced");
    for (std::string& b : decoder_.bytes) b = replace_all(b, pattern.text("String"), node.text("content"));
  }

  void read_strip(const JsonNode& node) {
    node.allow_keys({"type", "content", "start", "stop"});
    const std::string content = node.text("content");
    const int64_t start = node.has("start") ? node.at("start").integer() : 0;
    const int64_t stop = node.has("stop") ? node.at("stop").integer() : 0;
    if (!fused_ || content.size() != 1 || start < 0 || stop != 0 || decoder_.strip != 0)
      node.refuse("only one character at the start of the whole text can be stripped");
    decoder_.strip_char = content[0];
    decoder_.strip = static_cast<size_t>(start);
  }

  void read_metaspace(const JsonNode& node) {
    node.allow_keys({"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
    const std::string mark = node.text("replacement");
    if (changed_ || mark != kSpaceMark) node.refuse("only U+2581 as a replacement, and no other decoder before it, is supported");
    for (std::string& b : decoder_.bytes) b = replace_all(b, mark, " ");
    const bool never = node.has("prepend_scheme") ? node.text("prepend_scheme") == "never" : !node.flag("add_prefix_space", true);
    decoder_.drop_first_spaces = !never;
  }

  Decoder decoder_;
  bool changed_ = false;
  bool fused_ = false;
};

}  // namespace

Decoder read_decoder(const JsonNode& root, const Vocab& vocab, const std::vector<AddedToken>& added) {
  DecoderReader reader(vocab, added);
  if (!root.has("decoder")) {
    Decoder plain = reader.take();
    plain.separator = " ";
    return plain;
  }
  reader.read(root.at("decoder"));
  return reader.take();
}

}  // namespace hlat::tokenizer
