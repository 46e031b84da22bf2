#include "data/train_batches.h"

namespace hlat {

TrainBatches::TrainBatches(const Dataset& data, const Part& own, int64_t lanes, int64_t seq_len)
    : data_(data), loader_(Lanes(data.train(), lanes, seq_len), own.begin, own.count, data.loader_options()) {}

void TrainBatches::read(int64_t first, Batch& batch) {
  const double nats = loader_.fill(loader_.first_lane() + first, batch.rows, batch.inputs.data(), batch.targets.data());
  entropy_ = nats == nats ? std::optional(nats) : std::nullopt;
}

DataState TrainBatches::position() const { return state_of(data_.identity(), data_.train(), {}, loader_.first_lane(), loader_.states()); }

}  // namespace hlat
