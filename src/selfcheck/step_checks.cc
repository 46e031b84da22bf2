#include "selfcheck/step_checks.h"

#include <algorithm>
#include <cmath>

#include "comm/host_exchange.h"
#include "param/param_names.h"
#include "runtime/gather_json.h"

namespace hlat {

namespace {

// Updates against those that AdamW makes: sums over elements.
struct UpdateSums {
  double error_sq = 0, right_sq = 0, product = 0;
  void add(const UpdateSums& o) { error_sq += o.error_sq, right_sq += o.right_sq, product += o.product; }
  double distance() const { return std::sqrt(error_sq / right_sq); }
};

UpdateSums update_sums(const OptimConfig& optim, double lr, double grad_norm, const FirstStep& first, size_t part) {
  const LocalPart &before = first.before[part], &after = first.after[part], &gradient = first.gradients[part];
  const double scale = optim.clip > 0 ? std::min(1.0, optim.clip / (grad_norm + 1e-6)) : 1.0;
  const double decay = before.decays ? optim.weight_decay : 0;
  UpdateSums sums;
  for (size_t i = 0; i < before.values.size(); ++i) {
    const double g = scale * gradient.values[i];
    const double right = -lr * (g / (std::abs(g) + optim.eps) + decay * before.values[i]);
    const double moved = static_cast<double>(after.values[i]) - before.values[i];
    sums.add({.error_sq = (moved - right) * (moved - right), .right_sq = right * right, .product = moved * right});
  }
  return sums;
}

// Of a weight in bf16 without a master: it moves by whole steps of its type, and norms, near one, by few of them.
constexpr double kUpdateNoise = 0.02, kCoarseUpdateNoise = 0.3;

// Groups of ranks along an axis in which hashes differ.
std::vector<std::string> unequal(const SelfCheckRun& run, CheckModel& model, Axis axis, const std::string& what, uint64_t hash) {
  const std::vector<uint64_t> all = all_gather_values(model.mesh().along(axis), hash);
  const std::vector<int>& ranks = model.mesh().ranks_along(axis);
  for (size_t i = 1; i < all.size(); ++i)
    if (all[i] != all[0])
      return {
          fmt::format("{} differs along {} between {} and {}", what, name_of(axis), run.rank_words(ranks[0]), run.rank_words(ranks[i]))};
  return {};
}

// All ranks' words, each once, in rank order.
std::vector<std::string> joined(Comm& world, const std::vector<std::string>& own) {
  std::vector<std::string> all;
  for (const auto& of_rank : gather_json(world, own))
    for (const auto& words : of_rank)
      if (std::find(all.begin(), all.end(), words.get<std::string>()) == all.end()) all.push_back(words);
  return all;
}

}  // namespace

FirstStep take_first_step(CheckModel& model) {
  const auto parts = [&](const TensorOfUnit& tensor) { return local_parts(model.params(), model.device(), tensor); };
  FirstStep first;
  first.before = parts(updated_tensor);
  first.start_bits = state_hashes(model.params(), model.device());
  first.result = model.step(1);
  first.gradients = parts(gradient_tensor);
  first.after = parts(updated_tensor);
  first.gradient_bits = gradient_hashes(model.params(), model.device());
  return first;
}

ModelVerdict check_updates(const SelfCheckRun& run, CheckModel& model, const FirstStep& first) {
  const bool coarse = model.params().precision().weight == DType::bf16 && !model.params().precision().master;
  nlohmann::json own = nlohmann::json::array();
  for (size_t i = 0; i < first.before.size(); ++i) {
    const std::string& tensor = first.before[i].tensor;
    if (coarse && tensor.find(".norm") != std::string::npos) continue;
    const UpdateSums s = update_sums(run.config.optim, model.lr(), first.result.grad_norm, first, i);
    if (s.right_sq > 0) own.push_back({tensor, s.error_sq, s.right_sq, s.product});
  }
  std::map<std::string, UpdateSums> tensors;
  UpdateSums all;
  for (const auto& of_rank : gather_json(run.world, own))
    for (const auto& j : of_rank) {
      const UpdateSums s{.error_sq = j[1], .right_sq = j[2], .product = j[3]};
      tensors[j[0].get<std::string>()].add(s);
      all.add(s);
    }
  const double limit = coarse ? kCoarseUpdateNoise : kUpdateNoise;
  std::vector<std::string> wrong;
  double worst = 0;
  for (const auto& [name, s] : tensors) {
    worst = std::max(worst, s.distance());
    if (!(s.distance() <= limit)) wrong.push_back(fmt::format("{} ({:.3f} times)", name, s.product / s.right_sq));
  }
  const double factor = all.product / all.right_sq;
  if (wrong.empty())
    return ModelVerdict::ok(fmt::format(
        "{:.4f} times what AdamW with bias correction makes; no tensor is off by more than {:.2g} (limit {:.2g})", factor, worst, limit));
  return ModelVerdict::failed(
      fmt::format("the first update is {:.3f} times what AdamW with bias correction makes: {}", factor, some_of(wrong, 3)));
}

ModelVerdict check_replicas(const SelfCheckRun& run, CheckModel& model, int64_t steps) {
  if (run.config.parallel.dp == 1) return ModelVerdict::none("no replicas: dp is 1");
  if (run.drifts()) return ModelVerdict::none("precision.keyed_noise = false lets replicas drift apart");
  const ParamStore& params = model.params();
  std::vector<std::string> own;
  const auto compare = [&](const std::string& what, const Tensor& t) {
    for (const std::string& words : unequal(run, model, Axis::dp, what, hash_of(model.device(), t))) own.push_back(words);
  };
  for (ParamId id = 0; id < params.size(); ++id) compare("the weight " + params.spec(id).name, params.weight(id));
  if (!run.config.parallel.zero1)
    for (const UpdateUnit& u : params.units())
      for (const auto& [what, t] :
           {std::pair{"the first moment of ", u.tensors.m}, {"the second moment of ", u.tensors.v}, {"the master of ", u.tensors.master}})
        if (t.defined()) compare(what + params.spec(u.param).name, t);
  const std::vector<std::string> wrong = joined(run.world, own);
  if (!wrong.empty()) return ModelVerdict::failed(fmt::format("after {} steps {}", steps, some_of(wrong)));
  return ModelVerdict::ok(fmt::format("{} replicas have the same bits after {} steps", run.config.parallel.dp, steps));
}

ModelVerdict check_shared(const SelfCheckRun& run, CheckModel& model, const std::vector<StateHash>& start_bits,
                          const std::string& tied_words) {
  const ParamStore& params = model.params();
  std::vector<std::string> own;
  int64_t shared = 0;
  // All ranks of a group hold the same tensors along it, in the same order.
  for (ParamId id = 0; id < params.size(); ++id)
    for (const Sharing& s : params.spec(id).sharing) {
      ++shared;
      if (run.drifts()) continue;
      const Tensor w = params.weight(id);
      for (const std::string& words :
           unequal(run, model, s.axis, "the weight " + params.spec(id).name, hash_of(model.device(), w.rows(s.first_row, w.dim(0)))))
        own.push_back(words);
    }
  const std::vector<StateHash> now = state_hashes(params, model.device());
  for (ParamId id = 0; id < params.size(); ++id) {
    const bool tied = run.config.model.tied && params.spec(id).name == kEmbeddingName;
    if ((tied || !params.spec(id).sharing.empty()) && now[static_cast<size_t>(id)] == start_bits[static_cast<size_t>(id)])
      own.push_back(fmt::format("the weight {} has not moved on {}", params.spec(id).name, run.rank_words(run.rank())));
  }
  std::vector<std::string> wrong = joined(run.world, own);
  if (!tied_words.empty()) wrong.push_back(tied_words);
  if (!wrong.empty()) return ModelVerdict::failed(some_of(wrong));
  const std::string tied = run.config.model.tied ? "; the gradient of the tied table is the sum of those of embedding and head" : "";
  if (shared == 0 && tied.empty()) return ModelVerdict::none("no tied weights, and none that tp or pp ranks share");
  const std::string_view bits = run.drifts() ? "; precision.keyed_noise = false lets them drift apart" : " and have the same bits";
  return ModelVerdict::ok(fmt::format("{} tensors of rank 0 that tp or pp ranks share have moved{}{}", shared, bits, tied));
}

ModelVerdict check_recompute(const SelfCheckRun& run, const FirstStep& first) {
  Config other = run.config;
  const bool none = other.train.recompute.kind == RecomputeKind::none;
  other.train.recompute = none ? Recompute{.kind = RecomputeKind::full, .every = 0} : Recompute{};
  CheckModel model(other, run.backend, run.world, run.local_ranks, true);
  model.start();
  const StepResult result = model.step(1);
  std::vector<std::string> own = differences(first.gradient_bits, gradient_hashes(model.params(), model.device()));
  if (result.loss != first.result.loss) own.emplace_back("the loss");
  const std::vector<std::string> wrong = joined(run.world, own);
  const std::string policies = fmt::format("{} and {}", run.config.train.recompute.str(), other.train.recompute.str());
  if (!wrong.empty()) return ModelVerdict::failed(fmt::format("train.recompute {}: {} differ", policies, some_of(wrong)));
  return ModelVerdict::ok(fmt::format("train.recompute {}: loss and all gradients have the same bits", policies));
}

}  // namespace hlat
