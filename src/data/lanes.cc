#include "data/lanes.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace hlat {

Readers::Readers(const Mixture& mixture) {
  for (const DocumentSource* s : mixture.sources) readers_.push_back(s == nullptr ? nullptr : s->reader());
}

Lanes::Lanes(const Mixture& mixture, int64_t lanes, int64_t seq_len) : mixture_(mixture), seq_len_(seq_len) {
  HLAT_CHECK(lanes > 0 && seq_len > 0, "{} lanes of {} tokens", lanes, seq_len);
  HLAT_CHECK(!mixture.sources.empty() && mixture.names.size() == mixture.sources.size() && !mixture.segments.empty(),
             "{} sources, {} names, {} segments", mixture.sources.size(), mixture.names.size(), mixture.segments.size());
  lanes_.resize(static_cast<size_t>(lanes));
  for (Lane& l : lanes_) l.state.drawn.resize(mixture.sources.size());
}

// Moves on to the next document of the source whose turn it is.
void Lanes::draw(size_t lane, size_t segment) {
  LaneState& at = lanes_[lane].state;
  LaneCount* counts = at.counts.data() + segment * mixture_.sources.size();
  const size_t s = mixture_.choose(lane, segment, counts);
  uint64_t document = 0;
  do document = mixture_.document_at(s, lane + at.drawn[s]++ * lanes_.size());
  while (!mixture_.has(s, document));
  at.source = static_cast<uint32_t>(s);
  at.piece = at.offset = 0;
  ++counts[s].documents;
  const uint64_t hash = mixture_.sources[s]->hash(document);
  std::vector<uint64_t>& in_row = lanes_[lane].in_row;
  at.repeats += std::find(in_row.begin(), in_row.end(), hash) != in_row.end() ? 1 : 0;
  in_row.push_back(hash);
}

uint64_t Lanes::current_document(size_t lane) const {
  const LaneState& at = lanes_[lane].state;
  return mixture_.document_at(at.source, lane + (at.drawn[at.source] - 1) * lanes_.size());
}

void Lanes::load(size_t lane, Readers& readers) {
  Lane& l = lanes_[lane];
  const LaneState& at = l.state;
  l.document = current_document(lane);
  l.piece.tokens.clear();
  l.piece.surprisals.clear();
  l.next = readers[at.source].read(l.document, at.piece, l.piece);
  HLAT_CHECK(!l.piece.tokens.empty() && (l.next == 0 || l.next > at.piece), "piece {} of document {} has {} tokens, the next is {}",
             at.piece, l.document, l.piece.tokens.size(), l.next);
  // Only a restored position can be wrong: the state then belongs to other data.
  if (at.offset > l.piece.tokens.size())
    fail("lane {} stands at token {} of document {} of {}, which has {} tokens: the saved position belongs to other data", lane, at.offset,
         l.document, mixture_.names[at.source], l.piece.tokens.size());
}

// Makes the lane stand on a token.
void Lanes::ensure_token(size_t lane, size_t segment, Readers& readers) {
  Lane& l = lanes_[lane];
  LaneState& at = l.state;
  if (at.source == LaneState::kNone) draw(lane, segment), l.piece = {};
  if (l.piece.tokens.empty()) load(lane, readers);
  while (at.offset == l.piece.tokens.size()) {
    if (l.next != 0)
      at.piece = l.next, at.offset = 0;
    else
      draw(lane, segment);
    load(lane, readers);
  }
}

// Reads T + 1 tokens and leaves the lane on the last of them, which is the next row's first input.
std::optional<double> Lanes::read_row(int64_t lane_index, Readers& readers, int32_t* row, std::vector<RowPart>* parts) {
  HLAT_CHECK(lane_index >= 0 && lane_index < lanes(), "lane {} of {}", lane_index, lanes());
  const auto lane = static_cast<size_t>(lane_index);
  Lane& l = lanes_[lane];
  LaneState& at = l.state;
  const size_t segment = mixture_.segment_at(static_cast<int64_t>(at.rows) + 1), sources = mixture_.sources.size();
  at.counts.resize(std::max(at.counts.size(), (segment + 1) * sources));
  // A document that goes on from the last row counts among those of this one.
  l.in_row.clear();
  if (at.source != LaneState::kNone) l.in_row.push_back(mixture_.sources[at.source]->hash(current_document(lane)));
  std::optional<double> surprisal = 0.0;
  for (int64_t t = 0; t <= seq_len_;) {
    ensure_token(lane, segment, readers);
    const int64_t left = static_cast<int64_t>(l.piece.tokens.size() - at.offset), n = std::min(left, seq_len_ + 1 - t);
    const auto begin = static_cast<int64_t>(at.offset);
    std::copy_n(l.piece.tokens.begin() + begin, n, row + t);
    const int64_t first = t == 0 ? 1 : 0;  // the row's first token is no target
    if (l.piece.surprisals.empty())
      surprisal.reset();
    else if (surprisal)
      surprisal = std::accumulate(l.piece.surprisals.begin() + begin + first, l.piece.surprisals.begin() + begin + n, *surprisal);
    if (parts != nullptr)
      parts->push_back({.source = at.source,
                        .document = l.document,
                        .begin = t,
                        .count = n,
                        .starts = at.piece == 0 && at.offset == 0,
                        .ends = l.next == 0 && n == left});
    t += n;
    const auto served = static_cast<uint64_t>(t == seq_len_ + 1 ? n - 1 : n);
    at.offset += served;
    at.counts[segment * sources + at.source].tokens += served;
  }
  ++at.rows;
  return surprisal;
}

void Lanes::restore(int64_t lane, LaneState state) {
  HLAT_CHECK(lane >= 0 && lane < lanes() && state.drawn.size() == mixture_.sources.size(), "state of {} sources for lane {} of {}",
             state.drawn.size(), lane, lanes());
  lanes_[static_cast<size_t>(lane)] = {};
  lanes_[static_cast<size_t>(lane)].state = std::move(state);
}

}  // namespace hlat
