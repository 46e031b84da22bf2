// The forward half of a step, for held-out data: the same layers, buffers and links, so it needs no memory beyond the step's.
#include "train/step_runner.h"

namespace hlat {

// All stages walk micro-batches and chunks in one order, each waiting for the virtual stage before it: that cannot deadlock.
double StepRunner::evaluate(int64_t rows, const FillBatch& fill) {
  const int64_t dp = mesh_.shape().dp, micro_batch = config_.train.micro_batch;
  HLAT_CHECK(device_ != nullptr && rows > 0 && rows % (dp * micro_batch) == 0, "{} rows for {} replicas with micro-batches of {}", rows, dp,
             micro_batch);
  // load() counts rows as a training step does.
  const int64_t trained = mesh_.coord().dp * (config_.train.global_batch / dp), own = mesh_.coord().dp * (rows / dp);
  const FillBatch shifted = [&](int64_t first, int32_t* in, int32_t* out) { fill(first - trained + own, in, out); };
  StepResult unused;
  ops_.fill(loss_sum_, 0);
  for (int64_t micro = 0; micro < rows / dp / micro_batch; ++micro)
    for (int c = 0; c < static_cast<int>(model_.chunks().size()); ++c) {
      const Llama::Chunk& chunk = model_.chunks()[static_cast<size_t>(c)];
      const Action a{.kind = ActionKind::forward, .micro = static_cast<int>(micro), .chunk = c, .slot = 0};
      Flight& f = flight(c, a.slot);
      Ctx ctx = context(false, config_.train.seq_len);
      if (chunk.first || chunk.last) load(a, f.state, shifted, unused);
      if (!chunk.first) links_.recv(Flow::forward, model_.chunk_input(ctx, f.state), a.micro, c);
      const Tensor y = chunk.last ? f.out : links_.buffer(Flow::forward);
      model_.forward(ctx, c, f.state, y);
      if (chunk.last)
        model_.loss(ctx, f.state, y, loss_sum_);
      else
        links_.send(Flow::forward, a.micro, c);
    }
  links_.flush();
  ops_.cast(total(kLoss), loss_sum_);
  sum_over_ranks(total(kLoss), false, true);
  double sum = 0;
  device_->download(&sum, total(kLoss));
  return sum / static_cast<double>(rows * config_.train.seq_len);
}

}  // namespace hlat
