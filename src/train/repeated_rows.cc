#include "train/repeated_rows.h"

#include <algorithm>
#include <iterator>

namespace hlat {

void RepeatedRows::add(const Batch& batch) {
  constexpr uint64_t kPrime = 0x9e3779b97f4a7c15;
  for (int64_t r = 0; r < batch.rows; ++r) {
    uint64_t hash = 0;
    for (int64_t t = 0; t < batch.seq_len; ++t) {
      hash = (hash ^ static_cast<uint64_t>(static_cast<uint32_t>(batch.inputs[static_cast<size_t>(r * batch.seq_len + t)]))) * kPrime;
      hash ^= hash >> 32;
    }
    own_.push_back(hash);
  }
}

int64_t RepeatedRows::count(Comm& dp) {
  std::vector<uint64_t> all(own_.size() * static_cast<size_t>(dp.size()));
  std::copy(own_.begin(), own_.end(), all.begin() + static_cast<int64_t>(own_.size()) * dp.rank());
  if (dp.size() > 1) dp.host().all_gather_bytes(all.data(), own_.size() * sizeof(uint64_t));
  std::sort(all.begin(), all.end());
  std::vector<uint64_t> distinct, fresh;
  std::unique_copy(all.begin(), all.end(), std::back_inserter(distinct));
  std::set_difference(distinct.begin(), distinct.end(), before_.begin(), before_.end(), std::back_inserter(fresh));
  const auto repeated = static_cast<int64_t>(all.size() - fresh.size());
  before_ = std::move(distinct);
  return repeated;
}

}  // namespace hlat
