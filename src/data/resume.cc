// Fitting a saved position to the data of this run.
#include <algorithm>

#include "base/error.h"
#include "data/data_state.h"

namespace hlat {
namespace {

template <class T>
void same(const char* what, const T& now, const T& then) {
  if (!(now == then)) fail("the saved data position was made with {} {}, this run has {}", what, then, now);
}

void check_identity(const DataIdentity& now, const DataIdentity& then) {
  if (now.tokenizer != then.tokenizer) fail("the saved data position was made with another tokenizer than data.tokenizer is now");
  same("data.seed", now.seed, then.seed);
  same("data.validation", now.validation, then.validation);
  same("train.global_batch", now.lanes, then.lanes);
  same("train.seq_len", now.seq_len, then.seq_len);
  same("end-of-document token", now.eos, then.eos);
  same("data.bos: begin-of-document token", now.bos, then.bos);
}

void check_files(const DocumentSource& now, const SourceRecord& then) {
  const std::vector<uint64_t> files = now.identity();
  if (files.size() != then.files.size())
    fail("source {} had {} files when the data position was saved and has {} now", then.name, then.files.size(), files.size());
  for (size_t i = 0; i < files.size(); ++i)
    if (files[i] != then.files[i]) fail("{} (source {}) changed since the data position was saved", now.part_name(i), then.name);
}

// Where the items of an old list lie in the new one.
template <class T>
std::vector<T> spread(const std::vector<T>& old, const std::vector<size_t>& place, size_t size) {
  std::vector<T> out(size);
  for (size_t i = 0; i < old.size(); ++i) out[place[i]] = old[i];
  return out;
}

LaneState remap(LaneState l, const Mixture& mixture, const std::vector<size_t>& place) {
  const size_t old = place.size(), size = mixture.sources.size();
  std::vector<LaneCount> counts;
  for (size_t begin = 0; begin < l.counts.size(); begin += old) {
    const auto from = l.counts.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::vector<LaneCount> row = spread(std::vector<LaneCount>(from, from + static_cast<std::ptrdiff_t>(old)), place, size);
    counts.insert(counts.end(), row.begin(), row.end());
  }
  l.counts = std::move(counts);
  l.drawn = spread(l.drawn, place, size);
  if (l.source == LaneState::kNone) return l;
  l.source = static_cast<uint32_t>(place[l.source]);
  // The rest of a document whose source is gone cannot be had: the lane goes on with its next document.
  if (mixture.sources[l.source] == nullptr) l.source = LaneState::kNone, l.piece = l.offset = 0;
  return l;
}

}  // namespace

void append_segment(std::vector<Segment>& segments, Segment next) {
  if (segments.empty() || segments.back().weights != next.weights) segments.push_back(std::move(next));
}

Resumed resume(const DataIdentity& identity, const Mixture& fresh, DataState state) {
  check_identity(identity, state.identity);
  if (state.first_lane != 0 || static_cast<int64_t>(state.lanes.size()) != identity.lanes)
    fail("the saved data position has lanes {} to {} of {}", state.first_lane,
         state.first_lane + static_cast<int64_t>(state.lanes.size()) - 1, identity.lanes);
  Resumed r{.mixture = fresh, .earlier = {}, .lanes = {}};
  Mixture& m = r.mixture;
  std::vector<size_t> place;
  for (SourceRecord& record : state.sources) {
    const auto known = std::find(fresh.names.begin(), fresh.names.end(), record.name);
    place.push_back(known == fresh.names.end() ? m.sources.size() : static_cast<size_t>(known - fresh.names.begin()));
    if (known != fresh.names.end()) {
      check_files(*fresh.sources[place.back()], record);
      continue;
    }
    m.names.push_back(record.name);
    m.sources.push_back(nullptr);
    r.earlier.push_back(std::move(record));
  }
  const size_t size = m.sources.size();
  m.segments.clear();
  for (const Segment& g : state.segments) append_segment(m.segments, {g.from_step, spread(g.weights, place, size)});
  const int64_t next = state.step() + 1;
  const size_t active = fresh.segment_at(next);
  for (size_t i = active; i < fresh.segments.size(); ++i) {
    Segment g = fresh.segments[i];
    if (i == active && !m.segments.empty()) g.from_step = next;
    g.weights.resize(size, 0.0);
    append_segment(m.segments, std::move(g));
  }
  for (LaneState& l : state.lanes) r.lanes.push_back(remap(std::move(l), m, place));
  return r;
}

}  // namespace hlat
