#include "data/train_batches.h"

#include <algorithm>

#include "base/error.h"

namespace hlat {
namespace {

template <class T>
void same(const char* what, const T& now, const T& then) {
  if (!(now == then)) fail<UsageError>("the saved data position was made with {} {}, this run has {}", what, then, now);
}

void check_identity(const DataIdentity& now, const DataIdentity& then) {
  if (now.tokenizer != then.tokenizer)
    fail<UsageError>(
        "the saved data position was made with another tokenizer than data.tokenizer is now: name that one, or start a new run with "
        "checkpoint.init_from");
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
    fail<UsageError>("source {} had {} files when the data position was saved and has {} now", then.name, then.files.size(), files.size());
  for (size_t i = 0; i < files.size(); ++i)
    if (files[i] != then.files[i])
      fail<UsageError>("{} (source {}) changed since the data position was saved", now.part_name(i), then.name);
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
  l.cursors = spread(l.cursors, place, size);
  return l;
}

SourceRecord record_of(const DocumentSource& source) { return {source.name(), source.documents(), source.identity()}; }

// Before the first row.
DataState start_of(const DataIdentity& identity, const Mixture& mixture) {
  DataState s{.identity = identity, .sources = {}, .segments = {}, .first_lane = 0, .lanes = {}};
  for (const DocumentSource* source : mixture.sources) s.sources.push_back(record_of(*source));
  LaneState lane;
  lane.cursors.resize(mixture.sources.size());
  s.lanes.assign(static_cast<size_t>(identity.lanes), lane);
  return s;
}

}  // namespace

TrainData::TrainData(const DataIdentity& identity, const Mixture& configured, std::optional<DataState> from)
    : identity_(identity), mixture_(configured) {
  DataState state = from ? *std::move(from) : start_of(identity, configured);
  check_identity(identity, state.identity);
  if (state.first_lane != 0 || static_cast<int64_t>(state.lanes.size()) != identity.lanes)
    fail("the saved data position has lanes {} to {} of {}", state.first_lane,
         state.first_lane + static_cast<int64_t>(state.lanes.size()) - 1, identity.lanes);
  const std::vector<size_t> place = place_sources(std::move(state.sources));
  place_segments(configured, state, place);
  for (LaneState& l : state.lanes) begin_.push_back(remap(std::move(l), mixture_, place));
  fingerprint_ = position(0, {}).fingerprint();
}

std::vector<size_t> TrainData::place_sources(std::vector<SourceRecord> records) {
  const std::vector<std::string> known = mixture_.names;
  std::vector<size_t> place;
  for (SourceRecord& record : records) {
    const auto at = std::find(known.begin(), known.end(), record.name);
    if (at != known.end()) {
      place.push_back(static_cast<size_t>(at - known.begin()));
      check_files(*mixture_.sources[place.back()], record);
      continue;
    }
    place.push_back(mixture_.sources.size());
    mixture_.names.push_back(record.name);
    mixture_.sources.push_back(nullptr);
    gone_.push_back(std::move(record));
  }
  return place;
}

// Those that the position has begun, then the config's from the next step on.
void TrainData::place_segments(const Mixture& configured, const DataState& state, const std::vector<size_t>& place) {
  const size_t size = mixture_.sources.size();
  mixture_.segments.clear();
  for (const Segment& g : state.segments) append_segment(mixture_.segments, {g.from_step, spread(g.weights, place, size)});
  const int64_t next = state.step() + 1;
  const size_t active = configured.segment_at(next);
  for (size_t i = active; i < configured.segments.size(); ++i) {
    Segment g = configured.segments[i];
    if (i == active && !mixture_.segments.empty()) g.from_step = next;
    g.weights.resize(size, 0.0);
    append_segment(mixture_.segments, std::move(g));
  }
}

Lanes TrainData::lanes() const {
  Lanes lanes(mixture_, identity_.lanes, identity_.seq_len);
  for (size_t l = 0; l < begin_.size(); ++l) lanes.restore(static_cast<int64_t>(l), begin_[l]);
  return lanes;
}

DataState TrainData::position(int64_t first_lane, std::vector<LaneState> states) const {
  DataState s{.identity = identity_, .sources = {}, .segments = {}, .first_lane = first_lane, .lanes = std::move(states)};
  for (const DocumentSource* source : mixture_.sources)
    if (source != nullptr) s.sources.push_back(record_of(*source));
  s.sources.insert(s.sources.end(), gone_.begin(), gone_.end());
  for (const Segment& g : mixture_.segments)
    if (g.from_step <= s.step()) s.segments.push_back(g);
  for (const LaneState& l : s.lanes)
    HLAT_CHECK(l.rows == s.lanes.front().rows, "lanes have served {} and {} rows", l.rows, s.lanes.front().rows);
  return s;
}

}  // namespace hlat
