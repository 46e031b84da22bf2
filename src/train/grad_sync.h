// Makes gradients whole and weights equal. When the last micro-batch's backward completes a group, what its parameters' sharing
// lists call partial is summed at once, and a bucket whose groups are all complete starts its reduction over dp on a queue of its
// own, overlapped with the rest of the backward. Late buckets wait for the last action. After the update the weights of a bucket
// are gathered the same way. A policy that sums gradients in another type than it accumulates them in, or rounds them
// stochastically, has one buffer for the sums: its buckets are reduced one after the other, with nothing overlapped. With ZeRO-1 a rank
// gets the sum of its own shard only (reduce-scatter), otherwise of the whole bucket.
#pragma once

#include <vector>

#include "comm/comm_queue.h"
#include "fault/injector.h"
#include "health/health.h"

namespace hlat {

class GradSync {
 public:
  GradSync(const ParamStore& params, const Mesh& mesh, bool zero1, uint64_t seed, Ops& ops, Region& region);

  void begin_step(int64_t step, const Health* health);  // null unless this step is checked
  void group_done(int group);
  void all_done();  // every group, in one go
  void finish();    // after the last action: all gradients are whole when it returns

  void gather(int bucket);  // starts; the bucket's own part has been updated
  void finish_gathers() { queue_.wait_all(); }

  void inject(fault::Injector& faults) { faults_ = &faults; }  // it must outlive this

  const CommQueue& queue() const { return queue_; }

 private:
  void sum_partial(ParamId id) const;
  void reduce(size_t bucket);
  void reduce_converted(size_t bucket);

  const ParamStore& params_;
  const Mesh& mesh_;
  bool zero1_;
  const Health* health_ = nullptr;
  fault::Injector* faults_ = nullptr;            // null: none are planted
  std::vector<std::vector<ParamId>> members_;    // by group
  std::vector<std::vector<size_t>> buckets_of_;  // by group: more than one where some of its weights are FP8
  std::vector<int> groups_in_, pending_;         // by bucket: all its groups, those not complete yet
  uint64_t seed_;
  Ops& ops_;
  int64_t step_ = 0;
  Tensor converted_;  // a bucket in the type it is summed in; undefined: as it is accumulated
  CommQueue queue_;
};

}  // namespace hlat
