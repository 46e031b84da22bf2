// Decoders of tokenizer.json.
#include "data/tokenizer/hf_decoder.h"

namespace hlat::tokenizer {
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
