// A rank's micro-batches of training data: reads its lanes ahead of time (loader.h), from the start of the data or from a saved position.
#pragma once

#include "data/batch.h"
#include "data/dataset.h"
#include "data/ledger.h"
#include "data/loader.h"
#include "data/train_data.h"

namespace hlat {

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

  // Of the own lanes, after the rows handed out; between steps, when all have handed out the same number. join() makes one of all ranks'.
  DataState position() const { return data_.position(own_lanes_.begin, loader_.states()); }
  // What all ranks that share the lanes have read; `sum` is called the same number of times on each.
  Ledger ledger(const SumOver& sum) const { return ledger_of(data_.mixture(), loader_.states(), sum); }
  uint64_t rows_read() const { return loader_.rows_read(); }  // and tokenized, those that lie ready included

 private:
  TrainData data_;
  Part own_lanes_;
  Loader loader_;
  std::optional<double> entropy_;
};

}  // namespace hlat
