// A fixed micro-batch that is computed now and then and never learned from: its loss tells how the model moves, without the noise of new
// data. Computed once more with the inputs of the second half of every sequence changed, the losses of the first half must keep their bits:
// a later token that changes an earlier one's loss is a leak in the mask, which a training loss shows late and as something good. Every
// replica computes the same micro-batch; the first one's numbers are told. Buffers come from the io region when this is made.
#pragma once

#include "data/batch.h"
#include "model/executor.h"
#include "record/monitors.h"

namespace hlat {

class Probe {
 public:
  // micros: of a step
  Probe(Executor& executor, int64_t micros);

  // Whether a step that is measured probes too: the first one that is, and then as often as monitor.probe_every says.
  bool due(int64_t step) const;
  int64_t every() const { return every_; }  // steps; 0: never

  // probe_loss, leak, max_logit and drift. `batch` is read where the executor reads batches, and null elsewhere. Collective.
  void run(const Batch* batch, Monitors& monitors);

 private:
  std::vector<double> losses(const Batch& batch, const Watch& watch);
  double drift() const;

  Executor& executor_;
  const Config& config_;
  const Mesh& mesh_;
  int64_t monitored_, every_;
  Tensor scores_;          // (L) f64
  Tensor losses_, rows_;   // (B, T) f64 and (B) i32, on the last stage
  Watch watch_, changed_;  // of the batch as it is, and of the changed one
};

}  // namespace hlat
