// One rank's model in memory, ready to run: parameters, tape, the micro-batches in flight, the links between pipeline stages. It offers
// forward, backward, loss and logits of a micro-batch on any mesh, and knows no optimizer, no data and no loop. Training, evaluation,
// generation and the dry run all drive it: with null ops, null comms and measuring memory the same code yields the plan.
//
// A micro-batch is named by an Action (parallel/pipeline_schedule.h): the pipeline stages run the same ones in an order that cannot
// deadlock. It occupies a slot; what it keeps there (block inputs, the tape's outputs) is allocated when the slot is first used and
// stays, because micro-batches of a pipeline do not end in the reverse order of their start.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "model/fp8_weights.h"
#include "model/llama.h"
#include "model/pipeline_links.h"
#include "ops/device.h"
#include "parallel/pipeline_schedule.h"

namespace hlat {

// How a backward adds up gradients.
struct GradientSums {
  bool accumulate = false;                         // they add to those of earlier micro-batches
  std::function<void(int group)> group_done = {};  // called when a group of parameters has all of its gradient
};

class Executor {
 public:
  // One per mesh: its groups reserve their staging once. mesh, memory, ops and device must outlive this.
  // inference: computes the passes with a cache; it may be `ops`.
  Executor(const Config& config, const Precision& precision, const Mesh& mesh, Memory& memory, Ops& ops, Ops& inference, Device& device,
           ParamUse use);

  void init_weights();
  // After the parameters' state was loaded, and scales of FP8 where they are saved ones. Collective.
  void weights_loaded(Fp8Start scales) { fp8_.make(scales); }
  const Fp8Weights& fp8() const { return fp8_; }
  Fp8Weights& fp8() { return fp8_; }

  // Passes from now on are those of this training step: its number is part of the noise with which they round. 0: of none.
  void set_step(int64_t step) { step_ = step; }

  // The token ids (micro_batch, T) of a micro-batch whose chunk begins or ends the model. The first rank of tp gives them and sends
  // them to the others, whose pointers are ignored.
  void load(const Action& a, const int32_t* inputs, const int32_t* targets);
  void forward(const Action& a);
  // Of the last chunk, after its forward. Adds the losses of the tokens to loss_sum().
  void loss(const Action& a);
  // The same, and its output becomes its gradient, in which token losses are weighted with `scale`.
  void loss_and_gradient(const Action& a, const GradientSums& sums, double scale);
  void backward(const Action& a, const GradientSums& sums);
  void finish_sends() { links_.flush(); }  // after the last action of a step
  // What forward passes and losses from here on measure on the way; null: nothing. It must live as long as it is watched.
  void watch(const Watch* watch) { watch_ = watch; }
  void plant(const PlantedPasses* planted) { planted_ = planted; }  // faults; they must live as long as passes are computed

  // Runs tokens of any texts through all chunks of this rank, with their keys and values in a cache. `use` is called on the last stage with
  // the residual stream of the tokens. Collective over the replica.
  using OutputUse = std::function<void(Ctx& ctx, const Head& head, Tensor out /*(rows, D)*/)>;
  void forward_cached(Tensor ids /*(N)*/, const KvPass& kv, const OutputUse& use);

  // Logits (B, V) that follow the first `length` tokens of each row of a micro-batch, for generation. ids is (B, seq), the same on all
  // ranks of the replica, with seq at most the training length: shorter rows cost less. Collective over the replica; all get them.
  std::vector<float> next_logits(const std::vector<int32_t>& ids, int64_t seq, int64_t length);

  const Config& config() const { return config_; }
  const Mesh& mesh() const { return mesh_; }
  const ParamStore& params() const { return params_; }
  const std::vector<Llama::Chunk>& chunks() const { return model_.chunks(); }
  Memory& memory() const { return memory_; }
  Ops& ops() const { return ops_; }
  Device& device() const { return device_; }
  Tensor loss_sum() const { return loss_sum_; }  // (1) f64
  Tensor rope_table() const { return rope_; }    // (T, E)
  DType stat() const { return stat_; }           // of statistics and scalars
  size_t fp8_saves() const { return tape_.fp8_saves(); }
  bool reads_batches() const { return hlat::reads_batches(mesh_.coord(), mesh_.shape()); }

 private:
  // A micro-batch in flight, and on the last stage its output, which becomes the gradient.
  struct Flight {
    MicroState state;
    Tensor out;  // (rows, D)
  };
  Flight& flight(const Action& a);
  Ctx context(const GradientSums& sums, int64_t seq) { return context(ops_, sums, config_.train.micro_batch, seq); }
  Ctx context(Ops& ops, const GradientSums& sums, int64_t batch, int64_t seq);
  Ctx context(const Action& a, const GradientSums& sums = {});  // of a micro-batch of a step or a validation
  Ctx watched_context(const Action& a, const GradientSums& sums = {});
  void forward(Ctx& ctx, const Action& a, const MicroState& state, Tensor out);
  const Llama::Chunk& chunk(const Action& a) const { return model_.chunks()[static_cast<size_t>(a.chunk)]; }

  Config config_;
  const Mesh& mesh_;
  Memory& memory_;
  Ops &ops_, &inference_;
  Device& device_;
  DType stat_;
  ParamUse use_;
  Llama model_;
  ParamStore params_;
  Fp8Weights fp8_;
  Tape tape_;
  PipelineLinks links_;
  std::map<std::pair<int, int>, Flight> flights_;  // by chunk and slot
  const Watch* watch_ = nullptr;
  const PlantedPasses* planted_ = nullptr;
  Tensor rope_;       // (T, E)
  Tensor loss_sum_;   // (1) f64
  int64_t step_ = 0;  // under way, 0: none
};

}  // namespace hlat
