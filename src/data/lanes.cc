#include "data/lanes.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace hlat {

Readers::Readers(const Mixture& mixture) {
  for (const DocumentSource* s : mixture.sources) readers_.push_back(s == nullptr ? nullptr : s->reader());
}

Lanes::Lanes(const Mixture& mixture, int64_t lanes, int64_t seq_len)
    : mixture_(mixture), seq_len_(seq_len), shares_(std::make_shared<LaneShares>(mixture, static_cast<uint64_t>(lanes))) {
  HLAT_CHECK(lanes > 0 && seq_len > 0, "{} lanes of {} tokens", lanes, seq_len);
  HLAT_CHECK(!mixture.sources.empty() && mixture.names.size() == mixture.sources.size() && !mixture.segments.empty(),
             "{} sources, {} names, {} segments", mixture.sources.size(), mixture.names.size(), mixture.segments.size());
  lanes_.resize(static_cast<size_t>(lanes));
  for (Lane& l : lanes_) l.state.cursors.resize(mixture.sources.size()), l.open.resize(mixture.sources.size());
}

const LaneShare& Lanes::share(Stream& s) {
  if (!s.open.share) s.open.share = shares_->share(s.source, s.at.epoch, s.lane);
  return *s.open.share;
}

// Takes the document at a position as the current one; false where the lane has nothing to read there.
bool Lanes::enter(Stream& s, uint64_t position) {
  const uint64_t document = mixture_.document_at(s.source, s.at.epoch, position);
  if (!mixture_.has(s.source, document)) return false;
  uint64_t from = 0;
  s.open.to = DocumentReader::kEnd;
  if (mixture_.sources[s.source]->documents() > 0) {
    const auto [begin, end] = share(s);
    if (position == begin.position && begin.at > 0) from = s.reader.cut(document, begin.at);
    if (position == end.position) s.open.to = s.reader.cut(document, end.at);
  }
  if (from >= s.open.to) return false;
  s.at.position = position;
  s.at.piece = from;
  s.at.offset = 0;
  s.open.document = document;
  return true;
}

void Lanes::next_document(Stream& s) {
  const uint64_t documents = mixture_.sources[s.source]->documents(), n = lanes_.size();
  uint64_t position = s.at.position;
  if (documents == 0) {  // endless: every n-th document
    do position = position == Cursor::kNone ? s.lane : position + n;
    while (!enter(s, position));
    return;
  }
  // A lane without text in one epoch has some in another; only a split without any would have this go on for ever.
  const uint64_t last_epoch = s.at.epoch + 1000 * n;
  for (position = position == Cursor::kNone ? share(s).begin.position : position + 1;; ++position) {
    const LaneShare::Place end = share(s).end;
    if (position > end.position || (position == end.position && end.at == 0)) {
      HLAT_CHECK(s.at.epoch < last_epoch, "source {} has nothing for lane {}", mixture_.names[s.source], s.lane);
      ++s.at.epoch;
      s.open.share.reset();
      position = share(s).begin.position - 1;  // may wrap around; the loop adds one
    } else if (enter(s, position)) {
      return;
    }
  }
}

// Counts the document that begins here.
void Lanes::note_document(Stream& s) {
  if (s.at.piece != 0) return;
  ++s.count.documents;
  Lane& l = lanes_[s.lane];
  const uint64_t hash = mixture_.sources[s.source]->hash(s.open.document);
  l.state.repeats += std::find(l.in_row.begin(), l.in_row.end(), hash) != l.in_row.end() ? 1 : 0;
  l.in_row.push_back(hash);
}

void Lanes::load(Stream& s) {
  Open& o = s.open;
  o.piece.tokens.clear();
  o.piece.surprisals.clear();
  o.next = s.reader.read(o.document, s.at.piece, o.to, o.piece);
  o.loaded = true;
  HLAT_CHECK((!o.piece.tokens.empty() || o.next == o.to) && (o.next == 0 || (o.next > s.at.piece && o.next <= o.to)),
             "piece {} of document {} has {} tokens, the next is {}", s.at.piece, o.document, o.piece.tokens.size(), o.next);
  // Only a restored position can be wrong: the state then belongs to other data.
  if (s.at.offset > o.piece.tokens.size())
    fail("lane {} stands at token {} of document {} of {}, which has {} tokens: the saved position belongs to other data", s.lane,
         s.at.offset, o.document, mixture_.names[s.source], o.piece.tokens.size());
  const uint64_t extent = extent_of(*mixture_.sources[s.source], o.document);
  s.at.tokens = o.piece.tokens.size();
  s.at.size = (o.next == 0 ? extent : o.next) - s.at.piece;
  s.at.end = std::min(o.to, extent);
}

// Makes the lane stand on a token of the source.
void Lanes::ensure_token(Stream& s) {
  if (!s.open.loaded && s.at.position != Cursor::kNone) {
    const Cursor restored = s.at;
    const bool own = mixture_.sources[s.source]->documents() == 0 ||
                     (restored.position >= share(s).begin.position && restored.position <= share(s).end.position);
    if (!own || !enter(s, restored.position) || restored.piece < s.at.piece || restored.piece >= s.open.to)
      fail("lane {} stands in a document of {} that is not its own: the saved position belongs to other data", s.lane,
           mixture_.names[s.source]);
    s.at = restored;
    load(s);
  }
  while (!s.open.loaded || s.at.offset == s.open.piece.tokens.size()) {
    if (s.open.loaded) s.at.behind += s.at.size;
    if (s.open.loaded && s.open.next != 0 && s.open.next != s.open.to) {
      s.at.piece = s.open.next, s.at.offset = 0;
    } else {
      next_document(s);
      note_document(s);
    }
    load(s);
  }
}

// Reads T + 1 tokens and leaves the lane on the last of them, which is the first input of its next row of that source.
std::optional<double> Lanes::read_row(int64_t lane_index, Readers& readers, int32_t* row, std::vector<RowPart>* parts) {
  HLAT_CHECK(lane_index >= 0 && lane_index < lanes(), "lane {} of {}", lane_index, lanes());
  Lane& l = lanes_[static_cast<size_t>(lane_index)];
  LaneState& at = l.state;
  const auto lane = static_cast<uint64_t>(lane_index);
  const size_t segment = mixture_.segment_at(static_cast<int64_t>(at.rows) + 1), sources = mixture_.sources.size();
  const size_t source = mixture_.source_of(at.rows, lane, lanes_.size());
  at.counts.resize(std::max(at.counts.size(), (segment + 1) * sources));
  Stream s{lane, source, at.cursors[source], l.open[source], at.counts[segment * sources + source], readers[source]};
  // A document that goes on from an earlier row counts among those of this one.
  l.in_row.clear();
  if (s.at.position != Cursor::kNone)
    l.in_row.push_back(mixture_.sources[source]->hash(mixture_.document_at(source, s.at.epoch, s.at.position)));
  std::optional<double> surprisal = 0.0;
  for (int64_t t = 0; t <= seq_len_;) {
    ensure_token(s);
    const Document& piece = s.open.piece;
    const int64_t left = static_cast<int64_t>(piece.tokens.size() - s.at.offset), n = std::min(left, seq_len_ + 1 - t);
    const auto begin = static_cast<int64_t>(s.at.offset);
    std::copy_n(piece.tokens.begin() + begin, n, row + t);
    const int64_t first = t == 0 ? 1 : 0;  // the row's first token is no target
    if (piece.surprisals.empty())
      surprisal.reset();
    else if (surprisal)
      surprisal = std::accumulate(piece.surprisals.begin() + begin + first, piece.surprisals.begin() + begin + n, *surprisal);
    if (parts != nullptr)
      parts->push_back({.source = static_cast<uint32_t>(source),
                        .document = s.open.document,
                        .begin = t,
                        .count = n,
                        .starts = s.at.piece == 0 && begin == 0,
                        .ends = s.open.next == 0 && n == left,
                        .piece = s.at.piece,
                        .offset = s.at.offset});
    t += n;
    const auto served = static_cast<uint64_t>(t == seq_len_ + 1 ? n - 1 : n);
    s.at.offset += served;
    s.count.tokens += served;
  }
  ++at.rows;
  return surprisal;
}

void Lanes::restore(int64_t lane, LaneState state) {
  HLAT_CHECK(lane >= 0 && lane < lanes() && state.cursors.size() == mixture_.sources.size(), "state of {} sources for lane {} of {}",
             state.cursors.size(), lane, lanes());
  Lane& l = lanes_[static_cast<size_t>(lane)];
  l = {.state = std::move(state), .open = std::vector<Open>(mixture_.sources.size()), .in_row = {}};
}

}  // namespace hlat
