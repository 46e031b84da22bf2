#include "data/embedded/sample_files.h"

#include <cctype>
#include <nlohmann/json.hpp>

#include "data/tokenizer/vocab.h"

namespace hlat {
namespace {

using Json = nlohmann::ordered_json;
using tokenizer::printable_of_byte;

}  // namespace

std::string sample_lines(const EmbeddedCorpus& corpus, uint64_t first, uint64_t count) {
  std::string lines;
  for (uint64_t i = first; i < first + count; ++i) {
    std::string text = corpus.tokenizer().decode(corpus.document(i).tokens);
    text.pop_back();  // the line break that stands for the end
    lines += Json{{"text", text}}.dump() + "\n";
  }
  return lines;
}

std::string sample_tokenizer(const EmbeddedCorpus& corpus) {
  const std::string end = "<|endoftext|>";
  Json vocab{{end, 0}}, merges = Json::array();
  for (int b = 0; b < 256; ++b) vocab[printable_of_byte(static_cast<uint8_t>(b))] = vocab.size();
  const auto grow = [&](std::string token, std::string_view letters) {
    for (const char c : letters) {
      const std::string longer = token + c;
      if (!vocab.contains(longer)) {
        merges.push_back(token + " " + c);
        vocab[longer] = vocab.size();
      }
      token = longer;
    }
  };
  // Words behind a blank first: their merges win over those of words that begin a text.
  for (const std::string& w : corpus.grammar().words())
    if (std::isalpha(static_cast<unsigned char>(w[0])) != 0) grow(printable_of_byte(' '), w);
  for (const std::string& w : corpus.grammar().words())
    if (std::isupper(static_cast<unsigned char>(w[0])) != 0) grow(w.substr(0, 1), std::string_view(w).substr(1));
  const Json byte_level{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const Json added{{"id", 0},         {"content", end},      {"single_word", false}, {"lstrip", false},
                   {"rstrip", false}, {"normalized", false}, {"special", true}};
  const Json model{{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", nullptr},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"vocab", std::move(vocab)},
                   {"merges", std::move(merges)}};
  return Json{{"version", "1.0"},      {"truncation", nullptr},       {"padding", nullptr},        {"added_tokens", Json::array({added})},
              {"normalizer", nullptr}, {"pre_tokenizer", byte_level}, {"post_processor", nullptr}, {"decoder", byte_level},
              {"model", model}}
             .dump(1) +
         "\n";
}

}  // namespace hlat
