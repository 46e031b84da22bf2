// Ranks to a pipeline.
#include "data/tokenizer/ranked.h"

#include <algorithm>
#include <bitset>

#include "base/error.h"

namespace hlat::tokenizer {

void check_bytes(const std::vector<RankedToken>& tokens) {
  std::bitset<256> there;
  for (const RankedToken& t : tokens)
    if (t.bytes.size() == 1) there.set(static_cast<uint8_t>(t.bytes[0]));
  for (size_t b = 0; b < there.size(); ++b)
    if (!there[b]) fail("the byte 0x{:02X} is no token", b);
}

std::unique_ptr<Tokenizer> make_ranked_tokenizer(RankedFile file) {
  PipelineParts parts;
  IdMap ids;
  for (const RankedToken& t : file.tokens) {
    if (!ids.emplace(t.bytes, t.id).second) fail("rank {}: a token that is there twice", t.rank);
    parts.vocab.add(t.bytes, t.id);
  }
  for (const auto& [name, id] : file.special) parts.vocab.add(name, id);

  const auto size = static_cast<size_t>(parts.vocab.size());
  parts.fallback.resize(size, false);
  for (const auto& [token, id] : ids)
    if (token.size() == 1 && static_cast<uint8_t>(token[0]) >= 0x80) parts.fallback[static_cast<size_t>(id)] = true;
  for (int32_t id = 0; id < parts.vocab.size(); ++id) {
    parts.decoder.bytes.push_back(parts.vocab.token(id));
    parts.decoder.known.push_back(parts.vocab.has(id));
  }
  PairTable pairs = pairs_of_ranked(file.tokens, ids, true);
  parts.model =
      std::make_unique<BpeModel>(BpeOptions{.bytes = true, .whole_first = true}, ids, std::move(pairs), std::array<int32_t, 256>{});
  parts.normalizer = std::move(file.normalizer);
  parts.steps = {std::move(file.step)};
  if (!file.bos.empty()) parts.bos = parts.vocab.find(file.bos);
  if (!file.eos.empty()) parts.eos = parts.vocab.find(file.eos);
  parts.kind = std::move(file.kind);
  parts.fingerprint = file.fingerprint;
  return make_pipeline_tokenizer(std::move(parts));
}

}  // namespace hlat::tokenizer
