// Why nothing deadlocks. Let P = stages, V = chunks, and let P divide micros. Every stage s runs its k-th forward, F, and its k-th
// backward, B, in the order of (micro, chunk) that all stages share. Number them
//   V > 1: F(s, k) = 2k + 2s, B(s, k) = 2k - 2s + 2(P - 1) + 2VP - 1      V = 1: F(s, k) = 2k + s, B(s, k) = 2k - s + 2P - 1
// Each waits for smaller numbers only, so there is no circle of waits. The stage's own order, with warm-up w, is F(s, w + i) <
// B(s, i) < F(s, w + i + 1). A message leads from F(s, k) to F(s + 1, k) or, into the next chunk, from F(P - 1, k) to F(0, k + P).
// For a buffer F(s, k) waits for F(s + 1, k - 2), and F(P - 1, k) for F(0, k + P - 2), or earlier ones where some do not send.
// Backwards mirror this. The loss leads from F(P - 1, k + (V - 1)P) to B(P - 1, k), which is one more: the next action.
// Other numbers of micro-batches are rounded up and the actions of those too many left out: the rest keeps its order, and waits
// for the same actions as before or, at a buffer, for earlier ones.
#include "parallel/pipeline_schedule.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace hlat {

namespace {

// Forwards before the first pair of forward and backward. Interleaving doubles the distance to the last stage: both directions of
// a round trip then have the slack to come back for the next chunk without a gap.
int warm_up(int stage, int stages, int chunks) {
  const int distance = stages - stage - 1;
  return chunks == 1 ? distance : 2 * distance + (chunks - 1) * stages;
}

// Appends actions and gives each micro-batch the smallest free slot of its chunk.
class Builder {
 public:
  explicit Builder(int chunks) : holders_(static_cast<size_t>(chunks)) {}

  void forward(int micro, int chunk) {
    std::vector<int>& holders = holders_[static_cast<size_t>(chunk)];
    auto place = std::find(holders.begin(), holders.end(), kFree);
    if (place == holders.end()) place = holders.insert(place, kFree);
    *place = micro;
    add(ActionKind::forward, micro, chunk, place - holders.begin());
  }

  void backward(int micro, int chunk) {
    std::vector<int>& holders = holders_[static_cast<size_t>(chunk)];
    const auto place = std::find(holders.begin(), holders.end(), micro);
    HLAT_CHECK(place != holders.end(), "backward of micro-batch {} before its forward, chunk {}", micro, chunk);
    *place = kFree;
    add(ActionKind::backward, micro, chunk, place - holders.begin());
  }

  Schedule finish() && {
    for (const std::vector<int>& holders : holders_) result_.slots.push_back(static_cast<int>(holders.size()));
    return std::move(result_);
  }

 private:
  static constexpr int kFree = -1;

  void add(ActionKind kind, int micro, int chunk, int64_t slot) {
    result_.actions.push_back({.kind = kind, .micro = micro, .chunk = chunk, .slot = static_cast<int>(slot)});
  }

  std::vector<std::vector<int>> holders_;  // per chunk and slot: the micro-batch in it
  Schedule result_;
};

}  // namespace

Schedule make_schedule(int stage, int stages, int micros, int chunks) {
  HLAT_CHECK(stage >= 0 && stage < stages && micros > 0 && chunks > 0 && (chunks == 1 || stages > 1),
             "stage {} of {}, {} micro-batches, {} chunks", stage, stages, micros, chunks);
  const int groups = (micros + stages - 1) / stages;
  const int total = groups * stages * chunks;
  const int ahead = warm_up(stage, stages, chunks);
  // The k-th forward, or backward: groups of one micro-batch per stage, each group through all chunks before the next one.
  const auto micro_of = [&](int k) { return k / (stages * chunks) * stages + k % stages; };
  const auto chunk_of = [&](int k) { return k / stages % chunks; };
  Builder builder(chunks);
  for (int k = 0; k < total + ahead; ++k) {
    if (k < total && micro_of(k) < micros) builder.forward(micro_of(k), chunk_of(k));
    const int i = k - ahead;
    if (i >= 0 && micro_of(i) < micros) builder.backward(micro_of(i), chunks - 1 - chunk_of(i));
  }
  return std::move(builder).finish();
}

}  // namespace hlat
