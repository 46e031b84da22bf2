#include "train/probe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/download.h"
#include "train/step_monitor.h"

namespace hlat {

namespace {

constexpr double kShareOfTime = 0.002;  // of all steps, where the config leaves it open

// A probe is two forward passes of a micro-batch, which go through the stages one after the other. A step has a forward and a backward,
// twice as long, of each of its micro-batches, and all stages work at once.
int64_t probe_every(const Config& c, int64_t micros, int stages) {
  if (c.monitor.every == 0) return 0;
  if (c.monitor.probe_every > 0) return c.monitor.probe_every;
  const double of_step = 2.0 * stages / (3.0 * static_cast<double>(micros));
  const auto steps = static_cast<int64_t>(std::ceil(of_step / kShareOfTime));
  return (steps + c.monitor.every - 1) / c.monitor.every * c.monitor.every;
}

// Another token of the vocabulary for every one of the second half.
Batch with_other_end(Batch batch, int64_t vocab) {
  for (int64_t r = 0; r < batch.rows; ++r)
    for (int64_t t = batch.seq_len / 2; t < batch.seq_len; ++t) {
      int32_t& token = batch.inputs[static_cast<size_t>(r * batch.seq_len + t)];
      token = static_cast<int32_t>((token + 1) % vocab);
    }
  return batch;
}

}  // namespace

Probe::Probe(Executor& executor, int64_t micros)
    : executor_(executor),
      config_(executor.config()),
      mesh_(executor.mesh()),
      monitored_(config_.monitor.every),
      every_(probe_every(config_, micros, mesh_.shape().pp)) {
  if (every_ == 0) return;
  Region& io = executor.memory()[Purpose::io];
  scores_ = watch_.score = io.alloc(DType::f64, {config_.model.layers}, "largest scores of a probe");
  if (!mesh_.last_stage()) return;
  losses_ = io.alloc(DType::f64, {config_.train.micro_batch, config_.train.seq_len}, "losses of a probe");
  rows_ = io.alloc(DType::i32, {config_.train.micro_batch}, "rows of a probe");
  watch_.losses = changed_.losses = losses_;
  watch_.groups = changed_.groups = rows_;
}

bool Probe::due(int64_t step) const {
  if (every_ == 0) return false;
  return step == monitored_ || step / every_ != (step - monitored_) / every_;
}

// Of every token, on the last stage; nothing elsewhere.
std::vector<double> Probe::losses(const Batch& batch, const Watch& watch) {
  if (losses_.defined()) executor_.ops().fill(losses_, 0);
  executor_.watch(&watch);
  for (int c = 0; c < static_cast<int>(executor_.chunks().size()); ++c) {
    const Llama::Chunk& chunk = executor_.chunks()[static_cast<size_t>(c)];
    const Action a{.kind = ActionKind::forward, .chunk = c};
    if (chunk.first || chunk.last) executor_.load(a, batch.inputs.data(), batch.targets.data());
    executor_.forward(a);
    if (chunk.last) executor_.loss(a);
  }
  executor_.finish_sends();
  executor_.watch(nullptr);
  std::vector<double> all(static_cast<size_t>(losses_.defined() ? losses_.numel() : 0));
  if (losses_.defined()) executor_.device().download(all.data(), losses_);
  return all;
}

void Probe::run(const Batch* batch, Monitors& m) {
  HLAT_CHECK((batch != nullptr) == executor_.reads_batches(), "a probe is for the ranks that read batches");
  const int64_t rows = config_.train.micro_batch, seq = config_.train.seq_len, layers = config_.model.layers;
  const Batch own = batch != nullptr ? *batch : Batch(rows, seq);
  executor_.ops().fill(scores_, -std::numeric_limits<double>::infinity());
  if (rows_.defined()) {
    std::vector<int32_t> numbers(static_cast<size_t>(rows));
    std::iota(numbers.begin(), numbers.end(), 0);
    executor_.device().upload(rows_, numbers.data());
  }
  const std::vector<double> plain = losses(own, watch_), changed = losses(with_other_end(own, config_.model.vocab), changed_);
  std::vector<double> sums(1), largest(static_cast<size_t>(2 + layers), -std::numeric_limits<double>::infinity());
  executor_.device().download(largest.data() + 2, scores_);
  mesh_.check();  // a group that gave up lets the device go, with any numbers
  if (!plain.empty() && mesh_.coord().tp == 0 && mesh_.coord().dp == 0) sums[0] = std::accumulate(plain.begin(), plain.end(), 0.0);
  for (size_t i = 0; i < plain.size(); ++i) {
    if (static_cast<int64_t>(i) % seq >= seq / 2) continue;
    const double difference = std::abs(changed[i] - plain[i]);
    if (std::isnan(difference) || difference > largest[0]) largest[0] = difference;
  }
  largest[1] = drift();
  combine_over(mesh_, sums, largest);
  m.probe_loss = sums[0] / static_cast<double>(rows * seq);
  if (seq > 1) m.leak = largest[0];  // rows of one token have no later one
  if (mesh_.shape().tp * mesh_.shape().dp > 1) m.drift = largest[1];
  m.max_logit.assign(largest.begin() + 2, largest.end());
  for (double& score : m.max_logit) score /= std::sqrt(static_cast<double>(config_.model.head_dim()));
}

// Of the norms' weights, which all ranks of tp and dp hold alike: the few that are, and the first to differ where noise or sums are not the
// same.
double Probe::drift() const {
  const ParamStore& params = executor_.params();
  std::vector<float> own;
  for (ParamId id = 0; id < params.size(); ++id) {
    if (params.spec(id).init_std != 0) continue;
    const std::vector<float> weight = download_f32(executor_.device(), params.weight(id));
    own.insert(own.end(), weight.begin(), weight.end());
  }
  double most = 0;
  for (const Axis axis : {Axis::tp, Axis::dp}) {
    Comm& comm = mesh_.along(axis);
    if (comm.size() == 1 || own.empty()) continue;
    std::vector<float> all(own.size() * static_cast<size_t>(comm.size()));
    std::copy(own.begin(), own.end(), all.begin() + static_cast<int64_t>(own.size()) * comm.rank());
    comm.host().all_gather_bytes(all.data(), own.size() * sizeof(float));
    for (size_t i = 0; i < all.size(); ++i) {
      const double difference = std::abs(static_cast<double>(all[i]) - static_cast<double>(own[i % own.size()]));
      if (std::isnan(difference) || difference > most) most = difference;
    }
  }
  return most;
}

}  // namespace hlat
