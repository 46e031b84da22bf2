#include "selfcheck/one_rank.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/failure_word.h"
#include "comm/host_exchange.h"
#include "ops/download.h"
#include "param/param_names.h"
#include "runtime/from_rank_0.h"

namespace hlat {

namespace {

Config one_rank_config(const Config& c) {
  Config one = c;
  one.parallel = {};
  one.parallel.dp = 1;
  one.parallel.bucket_mb = c.parallel.bucket_mb;
  one.parallel.health_every = 0;
  one.train.global_batch = c.train.global_batch / c.parallel.dp;
  one.fault = {};
  return one;
}

struct ReplicaStep {
  OneRankGradients gradients;
  double loss = 0;
};

ReplicaStep replica_step(const Config& whole, CheckModel& model, int64_t replica) {
  KnownRows rows(whole, part_of(whole.train.global_batch, replica, whole.parallel.dp).begin);
  ReplicaStep result;
  result.loss = model.step(1, rows, false).loss;
  for (ParamId id = 0; id < model.params().size(); ++id)
    result.gradients[model.params().spec(id).name] = download_f32(model.device(), model.params().grad(id));
  return result;
}

void copy_weight(CheckModel& model, std::string_view from, std::string_view to) {
  const ParamStore& params = model.params();
  Tensor source, target;
  for (ParamId id = 0; id < params.size(); ++id) {
    if (params.spec(id).name == from) source = params.weight(id);
    if (params.spec(id).name == to) target = params.weight(id);
  }
  std::vector<std::byte> bytes(source.bytes());
  model.device().download(bytes.data(), source);
  model.device().upload(target, bytes.data());
}

// The gradient of a tied table is the sum of those that embedding and head have when they are two tables with the same values.
std::string tied_words(const SelfCheckRun& run, Comm& self, const Config& one, const OneRankGradients& tied) {
  Config untied = one;
  untied.model.tied = false;
  CheckModel model(untied, run.backend, self, 1, false);
  model.start();
  copy_weight(model, kEmbeddingName, kHeadName);
  const OneRankGradients two = replica_step(run.config, model, 0).gradients;
  const std::vector<float>&a = two.at(std::string(kEmbeddingName)), &b = two.at(std::string(kHeadName)),
        &sum = tied.at(std::string(kEmbeddingName));
  double error = 0, size = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    const double right = static_cast<double>(a[i]) + b[i];
    error += (sum[i] - right) * (sum[i] - right), size += right * right;
  }
  const double distance = std::sqrt(error / size), limit = sum_limit(model.params().precision());
  if (distance <= limit) return {};
  return fmt::format("the gradient of the tied table differs by {:.2g} (limit {:.2g}) from the sum of those of embedding and head",
                     distance, limit);
}

// Rank 0's tensors, on all ranks.
void hand_round(Comm& world, OneRankGradients& tensors) {
  const auto sizes = nlohmann::json::parse(from_rank_0(world, [&] {
    nlohmann::json list = nlohmann::json::object();
    for (const auto& [name, values] : tensors) list[name] = values.size();
    return list.dump();
  }));
  for (const auto& [name, size] : sizes.items()) {
    std::vector<float>& values = tensors[name];
    values.resize(size.get<size_t>());
    world.host().broadcast_bytes(values.data(), values.size() * sizeof(float), 0);
  }
}

}  // namespace

// fp32: sums in another order. bf16: partial sums are rounded to 8 bits before they are added; up to 0.02 was seen over many layouts.
double sum_limit(const Precision& p) { return p.compute == DType::bf16 || p.grad == DType::bf16 ? 0.08 : 1e-4; }

// FP8: a last bit of bf16 moves one value in thirty to its neighbour, 6 or 12 % away; up to 0.24 was seen. Last bits come from sums over
// tp, and from gradients that are divided by another number of tokens than one rank divides by, unless the ratio is a power of two.
double gradient_limit(const Precision& p, const ParallelConfig& parallel) {
  const bool same_codes = parallel.tp == 1 && std::has_single_bit(static_cast<uint64_t>(parallel.dp));
  return p.fp8 && !same_codes ? 0.35 : sum_limit(p);
}

OneRankStep one_rank_step(const SelfCheckRun& run) {
  const std::unique_ptr<Comm> self = run.world.split(run.rank(), 0, "one rank");
  const Config config = one_rank_config(run.config);
  std::unique_ptr<CheckModel> model;
  if (run.rank() == 0) {
    model = std::make_unique<CheckModel>(config, run.backend, *self, 1, false);
    model->start();
  }
  OneRankStep result;
  for (int64_t d = 0; d < run.config.parallel.dp; ++d) {
    ReplicaStep step;
    std::string broken;  // numbers of rank 0 alone: all ranks must hear of it
    try {
      if (model) step = replica_step(run.config, *model, d);
      if (model && d == 0 && config.model.tied) result.tied_words = tied_words(run, *self, config, step.gradients);
    } catch (const FailedStep& e) {
      broken = e.what();
    }
    broken = from_rank_0(run.world, [&] { return broken; });
    if (!broken.empty()) throw FailedStep(FailureKind::non_finite, 1, "on one rank alone: " + broken);
    hand_round(run.world, step.gradients);
    result.loss += broadcast_value(run.world, step.loss, 0) / static_cast<double>(run.config.parallel.dp);
    result.replicas.push_back(std::move(step.gradients));
  }
  result.tied_words = from_rank_0(run.world, [&] { return result.tied_words; });
  return result;
}

}  // namespace hlat
