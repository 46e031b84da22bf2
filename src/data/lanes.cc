#include "data/lanes.h"

#include <limits>

#include "base/error.h"

namespace hlat {

Lanes::Lanes(const DocumentSource& source, int64_t lanes, int64_t seq_len) : source_(source), seq_len_(seq_len) {
  HLAT_CHECK(lanes > 0 && seq_len > 0, "{} lanes of {} tokens", lanes, seq_len);
  states_.resize(static_cast<size_t>(lanes));
  current_.resize(static_cast<size_t>(lanes));
}

void Lanes::load(size_t lane) {
  const uint64_t index = lane + states_[lane].document * states_.size();
  current_[lane] = source_.document(index);
  HLAT_CHECK(!current_[lane].tokens.empty(), "document {} is empty", index);
  // Only a restored position can be wrong: the state then belongs to other data.
  if (states_[lane].offset > current_[lane].tokens.size())
    fail("lane {} stands at token {} of document {}, which has {} tokens: the saved position belongs to other data", lane,
         states_[lane].offset, index, current_[lane].tokens.size());
}

double Lanes::next(int64_t first, int64_t count, int32_t* inputs, int32_t* targets) {
  HLAT_CHECK(first >= 0 && count > 0 && first + count <= lanes(), "lanes [{}, {}) of {}", first, first + count, lanes());
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += read_row(static_cast<size_t>(first + i), inputs + i * seq_len_, targets + i * seq_len_);
  return sum / static_cast<double>(count * seq_len_);
}

// Reads T + 1 tokens and leaves the lane on the last of them, which is the next row's first input.
double Lanes::read_row(size_t lane, int32_t* inputs, int32_t* targets) {
  LaneState& at = states_[lane];
  double sum = 0;
  if (current_[lane].tokens.empty()) load(lane);
  for (int64_t t = 0;; ++t) {
    if (at.offset == current_[lane].tokens.size()) {
      at = {at.document + 1, 0};
      load(lane);
    }
    const Document& document = current_[lane];
    const int32_t token = document.tokens[at.offset];
    if (t > 0) {
      targets[t - 1] = token;
      sum += document.surprisals.empty() ? std::numeric_limits<double>::quiet_NaN() : document.surprisals[at.offset];
    }
    if (t == seq_len_) return sum;
    inputs[t] = token;
    ++at.offset;
  }
}

void Lanes::restore(const std::vector<LaneState>& states) {
  HLAT_CHECK(states.size() == states_.size(), "state of {} lanes for {} lanes", states.size(), states_.size());
  states_ = states;
  for (Document& d : current_) d = {};
}

}  // namespace hlat
