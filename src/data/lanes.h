// Packing lanes: the data stream is one lane per sequence of the global batch. Lane l of n reads documents l, l + n,
// l + 2n, ... end to end; its row r holds stream tokens [r T, r T + T], so each token but the very first is a target
// exactly once. Lanes do not know ranks: any split of them over data-parallel ranks sees the same batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/source.h"

namespace hlat {

// Where the next row of a lane starts. This is all there is to save.
struct LaneState {
  uint64_t document = 0;  // how many documents of the lane lie behind
  uint64_t offset = 0;    // tokens of the current document that lie behind
  bool operator==(const LaneState&) const = default;
};

class Lanes {
 public:
  // `source` must outlive the lanes and may not return empty documents.
  Lanes(const DocumentSource& source, int64_t lanes, int64_t seq_len);

  // The next row of each of lanes [first, first + count); those lanes move on, others stay.
  // Returns the mean surprisal of the targets in nats, NaN when the source does not know it. It assumes the whole
  // document so far is known, so it is a floor for the loss of rows that start inside a document.
  double next(int64_t first, int64_t count, int32_t* inputs /* (count, T) */, int32_t* targets /* (count, T) */);

  int64_t lanes() const { return static_cast<int64_t>(states_.size()); }
  int64_t seq_len() const { return seq_len_; }
  const std::vector<LaneState>& states() const { return states_; }
  void restore(const std::vector<LaneState>& states);  // a position that does not fit the data is an Error at the next row

 private:
  double read_row(size_t lane, int32_t* inputs, int32_t* targets);
  void load(size_t lane);

  const DocumentSource& source_;
  int64_t seq_len_;
  std::vector<LaneState> states_;
  std::vector<Document> current_;  // by lane; empty until needed
};

}  // namespace hlat
