#include "selfcheck/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "runtime/gather_json.h"

namespace hlat {

namespace {

constexpr double kShareNoise = 0.2;  // of a share that is right
constexpr size_t kMostShares = 64;   // replicas whose shares are told apart
constexpr double kChance = 30;       // times what shares explain of noise; 12 was seen with one off by 0.19, 1.5 above 0.2

bool is_wrong_share(double share) { return !(std::abs(share - 1) <= kShareNoise); }

// The solution of a symmetric system; none: it has no single one.
std::optional<std::vector<double>> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  double largest = 0;
  for (size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(a[i][i]));
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i)
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    if (!(std::abs(a[pivot][k]) > 1e-9 * largest)) return std::nullopt;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

// The elements of one tensor on this rank: its own gradient, and each replica's part of the mean.
struct Elements {
  std::vector<double> own;
  std::vector<std::vector<double>> replicas;
  double whole_sq = 0;  // of the mean, over the whole tensor
  int64_t whole = 0;
};

std::vector<const std::vector<float>*> tensors_of(const OneRankStep& one, const std::string& name) {
  std::vector<const std::vector<float>*> tensors;
  for (const OneRankGradients& replica : one.replicas) tensors.push_back(&replica.at(name));
  return tensors;
}

std::map<std::string, Elements> elements_of(const std::vector<LocalPart>& own, const OneRankStep& one) {
  const size_t dp = one.replicas.size();
  std::map<std::string, Elements> all;
  for (const LocalPart& part : own) {
    Elements& e = all[part.tensor];
    e.replicas.resize(dp);
    e.whole = part.whole;
    const auto replicas = tensors_of(one, part.tensor);
    for (size_t i = 0; i < part.values.size(); ++i) {
      e.own.push_back(part.values[i]);
      const auto global = static_cast<size_t>(part.map.global(static_cast<int64_t>(i)));
      for (size_t d = 0; d < dp; ++d) e.replicas[d].push_back((*replicas[d])[global] / static_cast<double>(dp));
    }
  }
  for (auto& [name, e] : all) {
    const auto replicas = tensors_of(one, name);
    for (size_t g = 0; g < static_cast<size_t>(e.whole); ++g) {
      double mean = 0;
      for (const std::vector<float>* replica : replicas) mean += (*replica)[g] / static_cast<double>(dp);
      e.whole_sq += mean * mean;
    }
  }
  return all;
}

// Of own - sum of shares times replicas, squared.
double error_sq(const Elements& e, const std::vector<double>& shares) {
  double sum = 0;
  for (size_t i = 0; i < e.own.size(); ++i) {
    double right = 0;
    for (size_t d = 0; d < shares.size(); ++d) right += shares[d] * e.replicas[d][i];
    sum += (e.own[i] - right) * (e.own[i] - right);
  }
  return sum;
}

std::optional<std::vector<double>> shares_of(const Elements& e) {
  const size_t dp = e.replicas.size();
  if (dp > kMostShares) return std::nullopt;
  std::vector<std::vector<double>> a(dp, std::vector<double>(dp));
  std::vector<double> b(dp);
  const auto product = [](const std::vector<double>& x, const std::vector<double>& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  };
  for (size_t d = 0; d < dp; ++d) {
    b[d] = product(e.own, e.replicas[d]);
    for (size_t k = 0; k <= d; ++k) a[d][k] = a[k][d] = product(e.replicas[d], e.replicas[k]);
  }
  return solve(std::move(a), std::move(b));
}

// Shares that are not 1 by more than chance: each share explains one part in n of the squares of noise over n elements. In large tensors
// the noise of FP8 has shares beyond chance too, of up to 0.1.
bool shares_are_wrong(const Elements& e, const GradientError& error) {
  const auto n = static_cast<double>(e.own.size()), dp = static_cast<double>(error.shares.size());
  if (n <= dp || std::none_of(error.shares.begin(), error.shares.end(), is_wrong_share)) return false;
  const double rest = error.rest * error.rest, explained = error.distance * error.distance - rest;
  return explained / dp > kChance * rest / (n - dp);
}

GradientError error_of(const Elements& e, const GradientLimit& limit) {
  double size = 0;
  for (size_t i = 0; i < e.own.size(); ++i) {
    double right = 0;
    for (const auto& replica : e.replicas) right += replica[i];
    size += right * right;
  }
  // A few elements of a tensor may be small by chance.
  size = std::max(size, e.whole_sq * static_cast<double>(e.own.size()) / static_cast<double>(e.whole));
  const double off = error_sq(e, std::vector<double>(e.replicas.size(), 1.0));
  GradientError result;
  result.distance = off == 0 ? 0 : size > 0 ? std::sqrt(off / size) : std::numeric_limits<double>::max();
  if (!std::isfinite(result.distance)) result.distance = std::numeric_limits<double>::max();
  result.rest = result.distance;
  result.wrong = result.distance > limit.distance;
  if (!result.wrong && (!limit.shares || result.distance == 0)) return result;
  if (const auto shares = shares_of(e)) {
    result.shares = *shares;
    result.rest = std::sqrt(error_sq(e, *shares) / size);
    result.wrong = result.wrong || shares_are_wrong(e, result);
  }
  return result;
}

// Ranks whose share is wrong, with the shares and the tensors.
struct WrongShare {
  double share = 0;
  std::vector<std::string> tensors;
};

std::map<int, WrongShare> wrong_shares(const SelfCheckRun& run, const std::vector<GradientError>& errors, const GradientLimit& limit) {
  std::map<int, WrongShare> wrong;
  const MeshShape shape = mesh_shape(run.config.parallel);
  for (const GradientError& e : errors) {
    if (!e.wrong || e.rest > 2 * limit.distance) continue;
    for (size_t d = 0; d < e.shares.size(); ++d) {
      if (!is_wrong_share(e.shares[d])) continue;
      MeshCoord at = run.coord(e.rank);
      at.dp = static_cast<int>(d);
      WrongShare& w = wrong[rank_of(at, shape)];
      if (std::find(w.tensors.begin(), w.tensors.end(), e.tensor) != w.tensors.end()) continue;
      w.share = e.shares[d];
      w.tensors.push_back(e.tensor);
    }
  }
  return wrong;
}

}  // namespace

std::vector<GradientError> gradient_errors(const SelfCheckRun& run, const std::vector<LocalPart>& own, const OneRankStep& one,
                                           const GradientLimit& limit) {
  std::vector<GradientError> errors;
  GradientError worst;
  for (const auto& [name, elements] : elements_of(own, one)) {
    GradientError e = error_of(elements, limit);
    e.rank = run.rank();
    e.tensor = name;
    if (e.distance >= worst.distance) worst = e;
    if (e.wrong) errors.push_back(std::move(e));
  }
  if (errors.empty()) errors.push_back(worst);
  return errors;
}

const GradientError& worst_of(const std::vector<GradientError>& errors) {
  return *std::max_element(errors.begin(), errors.end(),
                           [](const GradientError& a, const GradientError& b) { return a.distance < b.distance; });
}

std::string gradient_words(const SelfCheckRun& run, const std::vector<GradientError>& errors, const GradientLimit& limit) {
  std::vector<std::string> words;
  for (const auto& [rank, w] : wrong_shares(run, errors, limit))
    words.push_back(
        run.config.parallel.dp > 1
            ? fmt::format("{}: in the sum over dp the share of {} counts {:.2f} times", some_of(w.tensors), run.rank_words(rank), w.share)
            : fmt::format("{}: the gradient of {} is {:.2f} times that of one rank", some_of(w.tensors), run.rank_words(rank), w.share));
  if (!words.empty()) return some_of(words, 3);
  const GradientError& worst = worst_of(errors);
  std::vector<std::string> tensors;
  for (const GradientError& e : errors)
    if (e.wrong && std::find(tensors.begin(), tensors.end(), e.tensor) == tensors.end()) tensors.push_back(e.tensor);
  return fmt::format("{} tensors differ from one rank's, {} on {} by {:.3g} (limit {:.2g}){}", tensors.size(), worst.tensor,
                     run.rank_words(worst.rank), worst.distance, limit.distance,
                     run.config.parallel.pp > 1 ? fmt::format(": most on pipeline stage {}", run.coord(worst.rank).pp) : "");
}

ModelVerdict check_gradients(const SelfCheckRun& run, const Precision& precision, const std::vector<LocalPart>& own, double loss,
                             const OneRankStep& one) {
  const double sums = sum_limit(precision), most = gradient_limit(precision, run.config.parallel);
  const GradientLimit limit{.distance = most, .shares = most > sums};
  nlohmann::json packed = nlohmann::json::array();
  for (const GradientError& e : gradient_errors(run, own, one, limit)) packed.push_back({e.tensor, e.distance, e.rest, e.shares, e.wrong});
  std::vector<GradientError> errors;
  const std::vector<nlohmann::json> all = gather_json(run.world, packed);
  for (int r = 0; r < static_cast<int>(all.size()); ++r)
    for (const auto& j : all[static_cast<size_t>(r)])
      errors.push_back({.rank = r,
                        .tensor = j[0],
                        .distance = j[1],
                        .rest = j[2],
                        .shares = j[3].get<std::vector<double>>(),
                        .wrong = j[4].get<bool>()});
  if (std::any_of(errors.begin(), errors.end(), [](const GradientError& e) { return e.wrong; }))
    return ModelVerdict::failed(gradient_words(run, errors, limit));
  const GradientError& worst = worst_of(errors);
  const double loss_off = std::abs(loss / one.loss - 1);
  if (!(loss_off <= sums)) return ModelVerdict::failed(fmt::format("the loss is {:.6f}, that of one rank {:.6f}", loss, one.loss));
  return ModelVerdict::ok(fmt::format("{} tensors; largest relative difference {:.2g} of {} on {} (limit {:.2g}); loss {:.6f} and {:.6f}",
                                      one.replicas.front().size(), worst.distance, worst.tensor, run.rank_words(worst.rank), most, loss,
                                      one.loss));
}

}  // namespace hlat
