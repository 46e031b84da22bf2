// Viterbi over the bytes of a word, forward from each character border; the path is read backward. Sums and ties are the reference's: a
// later path wins only with a higher sum.
#include "data/tokenizer/unigram_model.h"

#include <algorithm>

#include "data/tokenizer/unicode.h"

namespace hlat::tokenizer {
namespace {

constexpr double kUnknownPenalty = 10;

class UnigramEncoder final : public WordEncoder {
 public:
  explicit UnigramEncoder(const UnigramModel& model) : model_(model) {}
  void encode(std::string_view word, std::vector<int32_t>& ids) override { model_.encode(word, steps_, ids); }

 private:
  const UnigramModel& model_;
  std::vector<UnigramModel::Step> steps_;
};

size_t bytes_of(const IdMap& ids) {
  size_t n = 0;
  for (const auto& [token, id] : ids) n += token.size();
  return n;
}

}  // namespace

UnigramModel::UnigramModel(const UnigramOptions& options, const IdMap& ids, std::vector<double> scores,
                           const std::array<int32_t, 256>& byte_tokens)
    : options_(options), trie_(bytes_of(ids)), scores_(std::move(scores)), byte_tokens_(byte_tokens) {
  const auto lowest = std::min_element(scores_.begin(), scores_.end());
  unknown_score_ = (lowest == scores_.end() ? 0 : *lowest) - kUnknownPenalty;
  int32_t nodes = 1;
  for (const auto& [token, id] : ids) {
    int32_t node = 0;
    for (size_t i = 0; i < token.size(); ++i) {
      const int32_t byte = static_cast<uint8_t>(token[i]);
      PairTable::Merge edge = trie_.find(node, byte);
      if (edge.id < 0) edge = {PairTable::kNone, nodes++};
      if (i + 1 == token.size()) edge.rank = static_cast<uint32_t>(id);
      trie_.set(node, byte, edge);
      node = edge.id;
    }
  }
}

std::unique_ptr<WordEncoder> UnigramModel::encoder() const { return std::make_unique<UnigramEncoder>(*this); }

void UnigramModel::find_best(std::string_view word, std::vector<Step>& steps) const {
  steps.assign(word.size() + 1, {});
  const auto offer = [&](size_t from, size_t to, double score, int32_t id) {
    Step& step = steps[to];
    const double sum = score + steps[from].score;
    if (!step.reached || sum > step.score) step = {sum, from, id, true};
  };
  for (size_t at = 0; at < word.size();) {
    const size_t character = unicode::decode(word.data() + at).size;
    bool single = false;
    int32_t node = 0;
    for (size_t end = at; end < word.size();) {
      const PairTable::Merge edge = trie_.find(node, static_cast<uint8_t>(word[end]));
      if (edge.id < 0) break;
      ++end;
      node = edge.id;
      if (edge.rank == PairTable::kNone) continue;
      offer(at, end, scores_[edge.rank], static_cast<int32_t>(edge.rank));
      single |= end - at == character;
    }
    if (!single) offer(at, at + character, unknown_score_, options_.unknown);
    at += character;
  }
}

void UnigramModel::append_unknown(std::string_view text, std::vector<int32_t>& reversed) const {
  const std::string marked = options_.space_is_mark ? replace_all(text, " ", kSpaceMark) : std::string(text);
  const auto token = [&](char c) { return byte_tokens_[static_cast<uint8_t>(c)]; };
  if (options_.byte_fallback && std::all_of(marked.begin(), marked.end(), [&](char c) { return token(c) >= 0; })) {
    for (size_t i = marked.size(); i > 0; --i) reversed.push_back(token(marked[i - 1]));
  } else if (options_.unknown >= 0) {
    reversed.push_back(options_.unknown);
  }
}

void UnigramModel::encode(std::string_view word, std::vector<Step>& steps, std::vector<int32_t>& ids) const {
  find_best(word, steps);
  ids.clear();
  // Neighbours without a token become one unknown.
  size_t unknown_end = 0;
  for (size_t end = word.size(); end > 0; end = steps[end].from) {
    const Step& step = steps[end];
    const bool unknown = step.id == options_.unknown;
    if (unknown && unknown_end == 0) unknown_end = end;
    if (unknown && step.from > 0 && steps[step.from].id == options_.unknown) continue;
    if (unknown)
      append_unknown(word.substr(step.from, unknown_end - step.from), ids);
    else
      ids.push_back(step.id);
    unknown_end = 0;
  }
  std::reverse(ids.begin(), ids.end());
}

}  // namespace hlat::tokenizer
