// A rank's micro-batches of training data: reads its lanes ahead of time (loader.h), from the start of the data or from a saved position.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/batch.h"
#include "data/batch_documents.h"
#include "data/data_state.h"
#include "data/dataset.h"
#include "data/ledger.h"
#include "data/loader.h"

namespace hlat {

// What a run trains on and where it begins: at the start of its data, or where a saved position stands; both are one path. The mixture
// has the sources of this run, then those that only the position knows. Weights and sources may have changed since it was saved, which
// begins a segment; anything else that differs from the saved run is a UsageError that names it.
class TrainData {
 public:
  // `configured` is the mixture that the config makes; its sources must outlive this.
  TrainData(const DataIdentity& identity, const Mixture& configured, std::optional<DataState> from = {});
  TrainData(const TrainData&) = delete;
  TrainData& operator=(const TrainData&) = delete;

  const Mixture& mixture() const { return mixture_; }
  const DataIdentity& identity() const { return identity_; }
  Lanes lanes() const;  // all of them, where the run begins; this must outlive them
  // The position when lanes [first_lane, first_lane + states.size()) stand so; they have served the same number of rows.
  DataState position(int64_t first_lane, std::vector<LaneState> states) const;
  uint64_t fingerprint() const { return fingerprint_; }  // of every position

 private:
  std::vector<size_t> place_sources(std::vector<SourceRecord> records);  // where the sources of the position lie in the mixture
  void place_segments(const Mixture& configured, const DataState& state, const std::vector<size_t>& place);

  DataIdentity identity_;
  Mixture mixture_;
  std::vector<SourceRecord> gone_;  // sources of the position that the config no longer has, the last of the mixture
  std::vector<LaneState> begin_;    // by lane
  uint64_t fingerprint_ = 0;
};

class TrainBatches : public BatchSource {
 public:
  // `own_lanes` are those of this rank's replica: row i of the batch is the next one of lane own_lanes.begin + i. The data must outlive
  // this.
  TrainBatches(const Dataset& data, Part own_lanes, std::optional<DataState> from = {})
      : TrainBatches(data.identity(), data.train(), own_lanes, data.loader_options(), std::move(from)) {}
  TrainBatches(const DataIdentity& identity, const Mixture& configured, Part own_lanes, const LoaderOptions& options,
               std::optional<DataState> from = {})
      : data_(identity, configured, std::move(from)), own_lanes_(own_lanes), loader_(data_.lanes(), own_lanes, options) {}

  void read(int64_t first, Batch& batch) override { entropy_ = loader_.fill(first, batch); }
  std::optional<double> entropy() const override { return entropy_; }
  int32_t source_of(int64_t step, int64_t row) const override {
    const auto lane = static_cast<uint64_t>(own_lanes_.begin + row), lanes = static_cast<uint64_t>(data_.identity().lanes);
    return static_cast<int32_t>(data_.mixture().source_of(static_cast<uint64_t>(step - 1), lane, lanes));
  }

  // Rows of the whole batch of a step, of all ranks, by source that has a weight there; empty for a run of one source.
  std::vector<std::pair<std::string, int64_t>> source_rows(int64_t step) const {
    const Mixture& mixture = data_.mixture();
    std::vector<std::pair<std::string, int64_t>> out;
    if (mixture.names.size() < 2) return out;
    const std::vector<double>& weights = mixture.segments[mixture.segment_at(step)].weights;
    const std::vector<int64_t> rows = mixture.rows_by_source(step, static_cast<uint64_t>(data_.identity().lanes));
    for (size_t s = 0; s < rows.size(); ++s)
      if (weights[s] > 0) out.emplace_back(mixture.names[s], rows[s]);
    return out;
  }

  // Of the own lanes, after the rows handed out; between steps, when all have handed out the same number. join() makes one of all ranks'.
  // It holds the fingerprints of all files: made when a run is saved, not with every step, and by one rank.
  DataState position() const { return data_.position(own_lanes_.begin, loader_.states()); }
  RankLanes rank_lanes() const { return {data_.fingerprint(), own_lanes_.begin, loader_.states()}; }  // what the other ranks give to join()
  // What all ranks that share the lanes have read; `sum` is called the same number of times on each.
  Ledger ledger(const SumOver& sum) const { return ledger_of(data_.mixture(), loader_.states(), sum); }
  // What the latest row of each lane holds: the documents of a step, read once more beside the loader.
  BatchDocuments documents() const {
    return documents_of(data_.mixture(), data_.identity().lanes, data_.identity().seq_len, own_lanes_.begin, loader_.states_before());
  }
  uint64_t rows_read() const { return loader_.rows_read(); }  // and tokenized, those that lie ready included

 private:
  TrainData data_;
  Part own_lanes_;
  Loader loader_;
  std::optional<double> entropy_;
};

}  // namespace hlat
