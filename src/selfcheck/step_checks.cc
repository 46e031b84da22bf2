#include "selfcheck/step_checks.h"

#include <algorithm>
#include <cmath>

#include "comm/host_exchange.h"
#include "param/param_names.h"
#include "runtime/gather_json.h"

namespace hlat {

namespace {

// The distance between neighbours of a type, at the larger of two values.
double resolution(DType type, double a, double b) {
  constexpr int kBf16Bits = 7, kF32Bits = 23;
  const double size = std::max(std::abs(a), std::abs(b));
  return size == 0 ? 0 : std::ldexp(1.0, std::ilogb(size) - (type == DType::bf16 ? kBf16Bits : kF32Bits));
}

DType updated_type(const Precision& p) { return p.master ? DType::f32 : p.weight; }

// What AdamW adds to the elements of one part in the first step.
std::vector<double> right_updates(const OptimConfig& optim, double lr, const FirstStep& first, size_t part) {
  const LocalPart &before = first.before[part], &gradient = first.gradients[part];
  const double scale = optim.clip > 0 ? std::min(1.0, optim.clip / (first.result.grad_norm + 1e-6)) : 1.0;
  const double decay = before.decays ? optim.weight_decay : 0;
  std::vector<double> updates(before.values.size());
  for (size_t i = 0; i < updates.size(); ++i) {
    const double g = scale * gradient.values[i];
    updates[i] = -lr * (g / (std::abs(g) + optim.eps) + decay * before.values[i]);
  }
  return updates;
}

// Updates against those that AdamW makes: sums over elements.
struct UpdateSums {
  double error_sq = 0, right_sq = 0, product = 0, rounding_sq = 0;
  void add(const UpdateSums& o) { error_sq += o.error_sq, right_sq += o.right_sq, product += o.product, rounding_sq += o.rounding_sq; }
  // Relative, less what the resolution of the stored type allows; negative where that is more.
  double distance() const { return (std::sqrt(error_sq) - std::sqrt(rounding_sq)) / std::sqrt(right_sq); }
};

UpdateSums update_sums(const FirstStep& first, size_t part, const std::vector<double>& updates, DType type) {
  UpdateSums sums;
  for (size_t i = 0; i < updates.size(); ++i) {
    const double before = first.before[part].values[i], right = updates[i], moved = first.after[part].values[i] - before;
    const double step = resolution(type, before, before + right);
    sums.add(
        {.error_sq = (moved - right) * (moved - right), .right_sq = right * right, .product = moved * right, .rounding_sq = step * step});
  }
  return sums;
}

constexpr double kUpdateNoise = 0.02;

// Whether a part has stood still in the first step although an element was to move by more than its resolution: what the optimizer updates,
// or the weight that is a copy of it. A step of one resolution moves a value however it is rounded.
bool stands_still(const Precision& precision, const FirstStep& first, size_t part, ParamId id, const std::vector<double>& updates) {
  const LocalPart &before = first.before[part], &after = first.after[part];
  const auto due = [&](DType type) {
    for (size_t i = 0; i < updates.size(); ++i)
      if (std::abs(updates[i]) > resolution(type, before.values[i], before.values[i] + updates[i])) return true;
    return false;
  };
  const bool copied = first.start_bits[static_cast<size_t>(id)] == first.end_bits[static_cast<size_t>(id)];
  return (before.values == after.values && due(updated_type(precision))) || (copied && due(precision.weight));
}

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
  first.end_bits = state_hashes(model.params(), model.device());
  return first;
}

ModelVerdict check_updates(const SelfCheckRun& run, CheckModel& model, const FirstStep& first) {
  const DType type = updated_type(model.params().precision());
  nlohmann::json own = nlohmann::json::array();
  for (size_t i = 0; i < first.before.size(); ++i) {
    const std::string& tensor = first.before[i].tensor;
    const UpdateSums s = update_sums(first, i, right_updates(run.config.optim, model.lr(), first, i), type);
    if (s.right_sq > 0) own.push_back({tensor, s.error_sq, s.right_sq, s.product, s.rounding_sq});
  }
  std::map<std::string, UpdateSums> tensors;
  UpdateSums all;
  for (const auto& of_rank : gather_json(run.world, own))
    for (const auto& j : of_rank) {
      const UpdateSums s{.error_sq = j[1], .right_sq = j[2], .product = j[3], .rounding_sq = j[4]};
      tensors[j[0].get<std::string>()].add(s);
      all.add(s);
    }
  std::vector<std::string> wrong;
  double worst = 0;
  for (const auto& [name, s] : tensors) {
    worst = std::max(worst, s.distance());
    if (!(s.distance() <= kUpdateNoise)) wrong.push_back(fmt::format("{} ({:.3f} times)", name, s.product / s.right_sq));
  }
  const double factor = all.product / all.right_sq;
  if (wrong.empty())
    return ModelVerdict::ok(fmt::format(
        "{:.4f} times what AdamW with bias correction makes; no tensor is off by more than {:.2g} and the resolution of {} (limit {:.2g})",
        factor, worst, name_of(type), kUpdateNoise));
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

ModelVerdict check_shared(const SelfCheckRun& run, CheckModel& model, const FirstStep& first, const std::string& tied_words) {
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
  for (size_t part = 0; part < first.before.size(); ++part) {
    const ParamId id = params.units()[part].param;
    const bool tied = run.config.model.tied && params.spec(id).name == kEmbeddingName;
    if (!tied && params.spec(id).sharing.empty()) continue;
    if (stands_still(params.precision(), first, part, id, right_updates(run.config.optim, model.lr(), first, part)))
      own.push_back(fmt::format("the weight {} has not moved on {}", params.spec(id).name, run.rank_words(run.rank())));
  }
  std::vector<std::string> wrong = joined(run.world, own);
  if (!tied_words.empty()) wrong.push_back(tied_words);
  if (!wrong.empty()) return ModelVerdict::failed(some_of(wrong));
  const std::string tied = run.config.model.tied ? "; the gradient of the tied table is the sum of those of embedding and head" : "";
  if (shared == 0 && tied.empty()) return ModelVerdict::none("no tied weights, and none that tp or pp ranks share");
  const std::string_view bits = run.drifts() ? "; precision.keyed_noise = false lets them drift apart" : " and have the same bits";
  return ModelVerdict::ok(
      fmt::format("{} tensors of rank 0 that tp or pp ranks share have moved where their type resolves it{}{}", shared, bits, tied));
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
