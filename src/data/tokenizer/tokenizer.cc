// Tokenizer files.
#include "data/tokenizer/tokenizer.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/nearest_file.h"
#include "data/tokenizer/formats.h"

namespace hlat::tokenizer {
namespace {

nlohmann::json parse_json(std::string_view content) try {
  return nlohmann::json::parse(content);
} catch (const nlohmann::json::exception& e) {
  fail("not JSON: {}", e.what());
}

std::unique_ptr<Tokenizer> read_json(std::string_view content) {
  const nlohmann::json json = parse_json(content);
  if (json.contains("config") && json.contains("vocab") && json["vocab"].is_array()) return read_tekken(json, content);
  // A vocabulary may have the token "model".
  const std::string other = json.contains("model") && json["model"].is_object() ? "" : name_other_json(json);
  if (!other.empty()) fail("this is {}", other);
  return read_hf_json(json, content);
}

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer(std::string_view content) {
  const size_t first = content.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) fail("the file is empty");
  if (content[first] == '{') return read_json(content);
  const std::string other = name_other_text(content);
  if (!other.empty()) fail("this is {}", other);
  if (looks_like_tiktoken(content)) return read_tiktoken(content);
  return read_sentencepiece(content);
}

}  // namespace hlat::tokenizer

namespace hlat {
namespace {

// A tokenizer with the begin and end tokens that the settings in its folder name.
class NamedTokenizer final : public Tokenizer {
 public:
  NamedTokenizer(std::unique_ptr<Tokenizer> file, std::optional<int32_t> bos, std::optional<int32_t> eos)
      : file_(std::move(file)), bos_(bos), eos_(eos) {}

  std::unique_ptr<Encoder> encoder() const override { return file_->encoder(); }
  std::string decode(std::span<const int32_t> ids) const override { return file_->decode(ids); }
  int64_t vocab_size() const override { return file_->vocab_size(); }
  std::optional<int32_t> id_of(std::string_view token) const override { return file_->id_of(token); }
  std::optional<int32_t> eos() const override { return eos_; }
  std::optional<int32_t> bos() const override { return bos_; }
  bool is_fallback(int32_t id) const override { return file_->is_fallback(id); }
  std::string describe() const override { return file_->describe(); }
  uint64_t fingerprint() const override { return file_->fingerprint(); }
  std::vector<std::string> warnings() const override { return file_->warnings(); }

 private:
  std::unique_ptr<Tokenizer> file_;
  std::optional<int32_t> bos_, eos_;
};

// The settings spell a token as a text, or as an object with its content. What cannot be read names nothing.
std::optional<int32_t> named_token(const nlohmann::json& settings, const char* key, const Tokenizer& tokenizer) {
  if (!settings.is_object() || !settings.contains(key)) return std::nullopt;
  const nlohmann::json& value = settings[key];
  const nlohmann::json& name = value.is_object() && value.contains("content") ? value["content"] : value;
  return name.is_string() ? tokenizer.id_of(name.get<std::string>()) : std::nullopt;
}

std::unique_ptr<Tokenizer> with_named_tokens(std::unique_ptr<Tokenizer> tokenizer, const std::string& path) {
  if (tokenizer->bos() && tokenizer->eos()) return tokenizer;
  std::ifstream file(std::filesystem::path(path).parent_path() / "tokenizer_config.json");
  if (!file) return tokenizer;
  const nlohmann::json settings = nlohmann::json::parse(file, nullptr, false);
  const auto bos = tokenizer->bos() ? tokenizer->bos() : named_token(settings, "bos_token", *tokenizer);
  const auto eos = tokenizer->eos() ? tokenizer->eos() : named_token(settings, "eos_token", *tokenizer);
  return std::make_unique<NamedTokenizer>(std::move(tokenizer), bos, eos);
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  if (std::filesystem::is_directory(path)) throw UsageError(fmt::format("{}: a folder; name the tokenizer file in it", path));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError(fmt::format("{}: cannot be read: {}{}", path, std::strerror(errno), file_hint(path)));
  const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) throw UsageError(fmt::format("{}: cannot be read", path));
  try {
    return with_named_tokens(tokenizer::read_tokenizer(content), path);
  } catch (const Error& e) {
    throw UsageError(fmt::format("{}: {}", path, e.what()));
  }
}

std::unique_ptr<Tokenizer> load_tokenizer_of(const DataConfig& data) try {
  return load_tokenizer(data.tokenizer);
} catch (const UsageError& e) {
  throw UsageError(fmt::format("data.tokenizer = {}", e.what()));
}

}  // namespace hlat
