// SentencePiece models. BPE models with the usual options (Llama's) run on our own merges; all others on the library.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/rng.h"
#include "data/tokenizer/bpe_model.h"
#include "data/tokenizer/formats.h"
#include "data/tokenizer/pipeline.h"
#include "data/tokenizer/unicode.h"

namespace hlat::tokenizer {
namespace {

// Pieces that text can become, a space in place of U+2581.
std::optional<std::vector<RankedToken>> normal_pieces(const SpmModel& model) {
  std::vector<float> scores;
  for (const SpmPiece& p : model.pieces) {
    if (p.type == SpmPiece::user_defined || p.type == SpmPiece::unused) return std::nullopt;
    if (p.type == SpmPiece::normal) scores.push_back(p.score);
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<RankedToken> out;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SpmPiece& p = model.pieces[id];
    if (p.type != SpmPiece::normal || p.text.find(' ') != std::string::npos) continue;
    const auto rank = std::lower_bound(scores.begin(), scores.end(), p.score, std::greater<>()) - scores.begin();
    out.push_back({replace_all(p.text, kSpaceMark, " "), static_cast<int32_t>(id), static_cast<uint32_t>(rank)});
  }
  return out;
}

// Every character of every piece is a piece, and a space only leads: then words can be merged one by one.
bool is_regular(const std::vector<RankedToken>& pieces, const IdMap& ids) {
  if (!ids.contains(" ")) return false;
  for (const RankedToken& p : pieces) {
    const size_t word = p.bytes.find_first_not_of(' ');
    if (word != std::string::npos && p.bytes.find(' ', word) != std::string::npos) return false;
    for (const char *c = p.bytes.data(), *end = c + p.bytes.size(); c < end;) {
      const unicode::Char one = unicode::decode_any(c, end);
      if (one.code == unicode::kInvalid || !ids.contains(std::string_view(c, one.size))) return false;
      c += one.size;
    }
  }
  return true;
}

bool usual_options(const SpmModel& m) {
  return m.model_type == SpmModel::bpe && !m.has_charsmap && !m.has_denormalizer && !m.remove_extra_whitespaces && m.escape_whitespaces &&
         !m.whitespace_as_suffix;
}

void fill_decoder(const SpmModel& model, Decoder& decoder) {
  for (const SpmPiece& p : model.pieces) {
    const auto byte = p.type == SpmPiece::byte ? byte_of_token(p.text) : std::nullopt;
    decoder.bytes.push_back(byte                          ? std::string(1, static_cast<char>(*byte))
                            : p.type == SpmPiece::control ? ""
                            : p.type == SpmPiece::unknown ? model.unk_surface
                                                          : replace_all(p.text, kSpaceMark, " "));
    decoder.known.push_back(true);
  }
  decoder.strip = model.add_dummy_prefix ? 1 : 0;
  decoder.strip_first_only = true;
}

std::optional<int32_t> control(const SpmModel& model, int32_t id) {
  const bool is =
      id >= 0 && static_cast<size_t>(id) < model.pieces.size() && model.pieces[static_cast<size_t>(id)].type == SpmPiece::control;
  return is ? std::optional(id) : std::nullopt;
}

// Nothing when the model needs the library.
std::unique_ptr<Tokenizer> make_own(const SpmModel& model, std::string_view content) {
  const auto pieces = usual_options(model) ? normal_pieces(model) : std::nullopt;
  if (!pieces) return nullptr;
  PipelineParts parts;
  IdMap ids;
  for (const RankedToken& p : *pieces) ids.emplace(p.bytes, p.id);
  if (!is_regular(*pieces, ids)) return nullptr;
  BpeOptions options{.byte_fallback = model.byte_fallback, .space_is_mark = true, .fuse_unknown = true};
  parts.fallback.resize(model.pieces.size(), false);
  std::array<int32_t, 256> byte_tokens{};
  byte_tokens.fill(-1);
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SpmPiece& p = model.pieces[i];
    const auto id = static_cast<int32_t>(i);
    parts.vocab.add(p.text, id);
    parts.fallback[i] = p.type == SpmPiece::unknown || p.type == SpmPiece::byte;
    if (p.type == SpmPiece::unknown) options.unknown = id;
    if (p.type != SpmPiece::byte) continue;
    const auto byte = byte_of_token(p.text);
    if (!byte) fail("piece {}: '{}' is no byte", i, p.text);
    byte_tokens[*byte] = id;
  }
  if (options.unknown < 0) fail("no piece for what is unknown");
  if (model.byte_fallback && std::find(byte_tokens.begin(), byte_tokens.end(), -1) != byte_tokens.end()) fail("not every byte has a piece");
  PairTable pairs = pairs_of_ranked(*pieces, ids, false);
  parts.model = std::make_unique<BpeModel>(options, ids, std::move(pairs), byte_tokens);
  parts.normalizer.marks_spaces = true;
  if (model.add_dummy_prefix) parts.normalizer.steps.push_back({.kind = NormalizerStep::prepend, .from = "", .to = " "});
  parts.steps = {{.kind = SplitStep::joints, .joint_bytes = std::make_shared<const Joints>(ids, model.byte_fallback)}};
  fill_decoder(model, parts.decoder);
  parts.bos = control(model, model.bos_id);
  parts.eos = control(model, model.eos_id);
  parts.kind = "SentencePiece BPE";
  parts.fingerprint = hash_name(content);
  return make_pipeline_tokenizer(std::move(parts));
}

}  // namespace

std::unique_ptr<Tokenizer> read_sentencepiece(std::string_view content) {
  const SpmModel model = parse_spm(content);
  std::unique_ptr<Tokenizer> own = make_own(model, content);
  return own ? std::move(own) : make_library_tokenizer(content, model);
}

}  // namespace hlat::tokenizer
