// What a run trains on and where it begins: at the start of its data, or where a saved position stands; both are one path. The mixture
// has the sources of this run, then those that only the position knows. Weights and sources may have changed since it was saved, which
// begins a segment; anything else that differs from the saved run is an Error that names it.
#pragma once

#include <optional>
#include <vector>

#include "data/data_state.h"

namespace hlat {

class TrainData {
 public:
  // `configured` is the mixture that the config makes; its sources must outlive this.
  TrainData(const DataIdentity& identity, const Mixture& configured, std::optional<DataState> from = {});
  TrainData(const TrainData&) = delete;
  TrainData& operator=(const TrainData&) = delete;

  const Mixture& mixture() const { return mixture_; }
  Lanes lanes() const;  // all of them, where the run begins; this must outlive them
  // The position when lanes [first_lane, first_lane + states.size()) stand so; they have served the same number of rows.
  DataState position(int64_t first_lane, std::vector<LaneState> states) const;

 private:
  std::vector<size_t> place_sources(std::vector<SourceRecord> records);  // where the sources of the position lie in the mixture
  void place_segments(const Mixture& configured, const DataState& state, const std::vector<size_t>& place);

  DataIdentity identity_;
  Mixture mixture_;
  std::vector<SourceRecord> gone_;  // sources of the position that the config no longer has, the last of the mixture
  std::vector<LaneState> begin_;    // by lane
};

}  // namespace hlat
