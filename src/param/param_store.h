// Weights, gradients and optimizer state in flat buckets. A bucket holds the parameters of neighbouring groups one after
// the other, the same elements at the same places in weights and gradients, so one message reduces or gathers it.
// A store for evaluation has weights only: no gradients, no optimizer state, nothing to update.
// With optimizer sharding (ZeRO-1) each of `shards` ranks keeps the state of an equal flat range of every bucket.
// Initial values are functions of (seed, name, global element) alone.
// Under a policy with FP8 products the weights of linear layers are FP8, in buckets of their own, beside a transposed copy. What the
// optimizer updates is their master: f32, or with no masters the bf16 value that the weight would be.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/ops.h"
#include "param/fp8_state.h"
#include "param/param_spec.h"
#include "param/precision.h"
#include "tensor/region.h"

namespace hlat {

struct Sharding {
  int shards = 1;
  int shard = 0;
  int64_t bucket_bytes = 32 << 20;  // a bucket is closed when its gradients reach this
};

enum class ParamUse : uint8_t { training, weights };

struct Bucket {
  std::vector<ParamId> params;
  Tensor weight, grad;  // (n); grad, own and the state only for training
  Tensor transposed;    // (n): weights of FP8, each as its transpose
  Tensor wide;          // (n): the memory of both as weights in the type of activations, in place of them (model/fp8_weights.h)
  Part own;             // elements whose optimizer state is here
  Tensor master, m, v;  // (own.count); master undefined without one
  bool late = false;    // its gradients are complete only after the last action of a step (ParamSpec::late)
  bool fp8 = false;
};

// A run of elements of one parameter that this rank updates, in one optimizer call.
struct UpdateUnit {
  ParamId param = -1;
  AdamwTensors tensors;  // scale, step and weight_sq are filled in by the optimizer
  ElementMap map;
  int bucket = 0;
  int64_t begin = 0;    // of its first element in the bucket
  bool counted = true;  // in global norms and in what FP8 scales follow from
};

class ParamStore {
 public:
  ParamStore(std::vector<ParamSpec> specs, const Precision& precision, Memory& memory, const Sharding& sharding, ParamUse use);

  int32_t size() const { return static_cast<int32_t>(specs_.size()); }
  const ParamSpec& spec(ParamId id) const { return specs_[static_cast<size_t>(id)]; }
  const Precision& precision() const { return precision_; }
  Tensor weight(ParamId id) const { return weight_[static_cast<size_t>(id)]; }
  Tensor grad(ParamId id) const {
    const Tensor& t = grad_[static_cast<size_t>(id)];
    HLAT_CHECK(t.defined(), "gradient of {}: the store has weights only", spec(id).name);
    return t;
  }

  bool fp8(ParamId id) const { return precision_.fp8 && spec(id).fp8; }
  // Of a weight in FP8: its transpose, and what its products scale with.
  Tensor transposed(ParamId id) const { return transposed_[static_cast<size_t>(id)]; }
  const Fp8State& fp8_state() const { return fp8_state_; }
  // What passes without FP8 products multiply with: of a weight in FP8 there only while it is widened.
  Tensor wide(ParamId id) const {
    const Tensor& t = wide_[static_cast<size_t>(id)];
    return t.defined() ? t : weight(id);
  }

  int64_t offset(ParamId id) const { return offset_[static_cast<size_t>(id)]; }  // of its first element in its bucket

  // Buckets in the order in which a backward begins them.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // Those that count in global norms first.
  const std::vector<UpdateUnit>& units() const { return units_; }
  int64_t counted_units() const { return counted_units_; }

  // Weights, masters; all else to zero. Weights of FP8 follow from their masters (model/fp8_weights.h).
  void init(Ops& ops, uint64_t seed) const;

 private:
  void plan_buckets(int64_t bucket_bytes);
  void place_state(Memory& memory, const Sharding& sharding, Bucket& b, int64_t total);
  void place(Memory& memory, const Sharding& sharding, ParamUse use);
  Tensor lay_out(Region& region, const Bucket& b, int64_t total, DType dtype, const std::string& what, std::vector<Tensor>& views) const;
  Tensor both_forms(const Bucket& b);
  void make_units();
  void start(Ops& ops, uint64_t seed, const ParamSpec& spec, Tensor t, const ElementMap& map) const;

  std::vector<ParamSpec> specs_;
  Precision precision_;
  std::vector<Tensor> weight_, grad_, transposed_, wide_;
  Fp8State fp8_state_;
  Tensor uncounted_seen_;        // (kFp8Seen): of rows that another rank counts; read by nobody
  std::vector<int64_t> offset_;  // of each parameter in its bucket
  std::vector<Bucket> buckets_;
  std::vector<UpdateUnit> units_;
  int64_t counted_units_ = 0;
};

}  // namespace hlat
