#include "checkpoint/rank_state.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/bf16.h"
#include "checkpoint/piece_file.h"

namespace hlat {

namespace {

// In place: element i is read before anything is written behind it.
void round_to_bf16(std::byte* data, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    float wide = 0;
    std::memcpy(&wide, data + i * sizeof(float), sizeof(float));
    const bf16 narrow = to_bf16(wide);
    std::memcpy(data + i * sizeof(bf16), &narrow, sizeof(bf16));
  }
}

// Fills one buffer after the other.
class Stager {
 public:
  Stager(Staging& staging, CopyStream* copies, const std::function<void(uint64_t)>& copied)
      : staging_(staging), copies_(copies), copied_(copied) {}

  // rounds: what is there is f32 and becomes bf16.
  bool add(const std::byte* from, size_t bytes, bool rounds) {
    if (rounds != rounds_) hand_on();
    rounds_ = rounds;
    while (bytes > 0) {
      if (buffer_ == nullptr) buffer_ = staging_.take_free();
      if (buffer_ == nullptr) return false;
      const size_t n = std::min(bytes, staging_.buffer_bytes() - filled_);
      if (copies_ != nullptr)
        copies_->fetch(buffer_ + filled_, from, n);
      else
        std::memcpy(buffer_ + filled_, from, n);
      filled_ += n, from += n, bytes -= n;
      if (filled_ == staging_.buffer_bytes()) hand_on();
    }
    return true;
  }

  void hand_on() {
    if (filled_ == 0) return;
    if (copies_ != nullptr) copies_->finish();
    done_ += filled_;
    copied_(done_);
    if (rounds_) round_to_bf16(buffer_, filled_ / sizeof(float));
    staging_.add_filled({buffer_, rounds_ ? filled_ / 2 : filled_});
    buffer_ = nullptr;
    filled_ = 0;
  }

 private:
  Staging& staging_;
  CopyStream* copies_;
  bool rounds_ = false;
  const std::function<void(uint64_t)>& copied_;
  std::byte* buffer_ = nullptr;
  size_t filled_ = 0;
  uint64_t done_ = 0;
};

}  // namespace

RankState::RankState(const ParamStore& params, int shard, int shards, CheckpointContent content) : bucket_end(params.buckets().size(), 0) {
  const bool all = content == CheckpointContent::training;
  rounds = !all;
  std::map<std::pair<ParamId, StateKind>, int32_t> numbers;
  for (const StatePiece& run : state_pieces(params, shard, shards, Rows::counted)) {
    if (!all && run.kind != StateKind::weight) continue;
    const auto [place, is_new] = numbers.try_emplace({run.param, run.kind}, static_cast<int32_t>(tensors.size()));
    if (is_new) {
      tensors.push_back(saved_tensor(params, run.param, run.kind));
      if (!all) tensors.back().dtype = DType::bf16;
    }
    const SavedTensor& tensor = tensors[static_cast<size_t>(place->second)];
    add_pieces(pieces, place->second, tensor, run.map, run.tensor.numel());
    bytes += static_cast<uint64_t>(run.tensor.numel()) * size_of(tensor.dtype);
    source_bytes += run.tensor.bytes();
    bucket_end[static_cast<size_t>(run.bucket)] = source_bytes;
    runs.push_back(run);
  }
  // A bucket of which another rank saves everything is done with the one before.
  for (size_t b = 1; b < bucket_end.size(); ++b) bucket_end[b] = std::max(bucket_end[b], bucket_end[b - 1]);
}

bool stage(const RankState& state, Staging& staging, CopyStream* copies, const std::function<void(uint64_t)>& copied) {
  Stager stager(staging, copies, copied);
  for (const StatePiece& run : state.runs)
    if (!stager.add(run.tensor.as<const std::byte>(), run.tensor.bytes(), state.rounds && run.tensor.dtype == DType::f32)) return false;
  stager.hand_on();
  staging.close();
  return true;
}

}  // namespace hlat
