// Token ids and their spelling in the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hlat::tokenizer {

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
using IdMap = std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>>;

inline constexpr int32_t kMaxTokenId = (1 << 24) - 1;  // a file that asks for more is broken

class Vocab {
 public:
  // An Error for a token that is there with another id, an id that another token has, or an id out of range.
  void add(std::string_view token, int64_t id);
  std::optional<int32_t> find(std::string_view token) const {
    const auto it = ids_.find(token);
    return it == ids_.end() ? std::nullopt : std::optional(it->second);
  }
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }  // largest id + 1
  bool has(int64_t id) const { return id >= 0 && id < size() && there_[static_cast<size_t>(id)]; }
  const std::string& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }

 private:
  IdMap ids_;
  std::vector<std::string> tokens_;
  std::vector<bool> there_;
};

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, which stands for a space in SentencePiece's tokens

// `text` with every `from` replaced.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// "<0x0A>" -> 10: how a byte is spelled where a character has no token; nothing for other tokens.
std::optional<uint8_t> byte_of_token(std::string_view token);
std::string token_of_byte(uint8_t byte);

// GPT-2's way to write bytes as printable characters: the bytes of such a token, nothing when a character is none of the 256.
std::optional<std::string> bytes_of_printable(std::string_view token);
std::string printable_of_byte(uint8_t byte);

}  // namespace hlat::tokenizer
