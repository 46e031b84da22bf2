#include "selfcheck/start_checks.h"

#include <cmath>
#include <map>
#include <set>

#include "health/rope_check.h"
#include "runtime/gather_json.h"
#include "selfcheck/local_parts.h"

namespace hlat {

namespace {

constexpr double kSigmas = 6;  // of a sample's standard deviation and mean
constexpr double kBf16Rounding = 2e-3;
constexpr std::string_view kLastNorm = "head.norm";

struct Moments {
  double n = 0, sum = 0, squares = 0, ones = 0;
};

std::map<std::string, Moments> moments_of(const SelfCheckRun& run, CheckModel& model) {
  nlohmann::json own = nlohmann::json::object();
  for (const LocalPart& part : local_parts(model.params(), model.device(), updated_tensor)) {
    if (!part.counted) continue;
    Moments m{.n = static_cast<double>(part.values.size())};
    for (const float v : part.values) m.sum += v, m.squares += static_cast<double>(v) * v, m.ones += v == 1.0f;
    auto& list = own[part.tensor];
    list.push_back({m.n, m.sum, m.squares, m.ones});
  }
  std::map<std::string, Moments> all;
  for (const auto& of_rank : gather_json(run.world, own))
    for (const auto& [name, list] : of_rank.items())
      for (const auto& m : list) {
        Moments& sum = all[name];
        sum.n += m[0].get<double>(), sum.sum += m[1].get<double>(), sum.squares += m[2].get<double>(), sum.ones += m[3].get<double>();
      }
  return all;
}

// Positions before which nothing of later tokens may show: near both ends, inside the first tiles of attention kernels, and where the
// second and third ones begin.
std::vector<int64_t> leak_lengths(int64_t seq) {
  constexpr int64_t kTile = 64, kLargeTile = 128;  // of the CPU and of most GPU kernels; of others
  std::set<int64_t> lengths;
  for (const int64_t length : {int64_t{1}, seq / 3, kTile, 2 * seq / 3, kLargeTile, seq - 1})
    if (length >= 1 && length < seq) lengths.insert(length);
  return {lengths.begin(), lengths.end()};
}

// What a pass shows of its tokens. A loss in bf16 has few values, and another token may well leave it at the same one; the gradient of the
// last norm is a sum of what the positions that have a loss end in, and tells them apart.
struct Seen {
  double loss = 0;
  std::vector<nlohmann::json> head;
  bool operator==(const Seen&) const = default;
};

// Hashes of the gradient of the last norm, on all ranks. Collective.
std::vector<nlohmann::json> head_gradients(const SelfCheckRun& run, CheckModel& model) {
  const ParamStore& params = model.params();
  nlohmann::json own = nlohmann::json::array();
  for (const UpdateUnit& u : params.units())
    if (params.spec(u.param).name == kLastNorm) own.push_back(hash_of(model.device(), u.tensors.grad));
  return gather_json(run.world, own);
}

}  // namespace

double declared_std(const ModelConfig& m, const std::string& tensor) {
  if (tensor.find(".norm") != std::string::npos) return 0;
  const bool output = tensor.ends_with("attention.output") || tensor.ends_with("mlp.down");
  return output && m.scaled_init ? m.init_std / std::sqrt(2.0 * static_cast<double>(m.layers)) : m.init_std;
}

ModelVerdict check_init(const SelfCheckRun& run, CheckModel& model) {
  std::vector<std::string> wrong;
  double worst = 0;
  const auto all = moments_of(run, model);
  for (const auto& [name, m] : all) {
    const double declared = declared_std(run.config.model, name);
    if (declared == 0) {
      if (m.ones != m.n) wrong.push_back(fmt::format("{}: {} of {} elements are not 1", name, m.n - m.ones, m.n));
      continue;
    }
    const double std = std::sqrt(m.squares / m.n), off = std::abs(std / declared - 1), mean = m.sum / m.n;
    worst = std::max(worst, off);
    if (off > kSigmas / std::sqrt(2 * m.n) + kBf16Rounding)
      wrong.push_back(fmt::format("{}: standard deviation {:.4g}, declared {:.4g}", name, std, declared));
    else if (std::abs(mean) > kSigmas * declared / std::sqrt(m.n))
      wrong.push_back(fmt::format("{}: mean {:.3g} with a standard deviation of {:.3g}", name, mean, std));
  }
  if (!wrong.empty()) return ModelVerdict::failed(some_of(wrong, 3));
  return ModelVerdict::ok(fmt::format("{} tensors; standard deviations within {:.1f} % of the declared ones", all.size(), 100 * worst));
}

// Logits are sums of D products of normalized activations with weights, so their spread is init_std sqrt(D): the mean loss lies above log V
// by half its square. A tied head knows the input token again, by a logit of at most init_std D.
LossRange first_losses(const Config& c) {
  const double log_v = std::log(static_cast<double>(c.model.vocab)), d = static_cast<double>(c.model.hidden);
  const double spread = c.model.init_std * std::sqrt(d);
  const double noise = 0.02 + kSigmas * spread / std::sqrt(static_cast<double>(c.train.global_batch * c.train.seq_len));
  const double above = spread * spread + (c.model.tied ? c.model.init_std * d : 0);
  return {.low = log_v - noise, .high = log_v + above + noise};
}

ModelVerdict check_first_loss(const SelfCheckRun& run, double loss) {
  const LossRange range = first_losses(run.config);
  const std::string words =
      fmt::format("{:.4f}, log V is {:.4f} (V {}); {:.3f} to {:.3f} with these initial weights", loss,
                  std::log(static_cast<double>(run.config.model.vocab)), run.config.model.vocab, range.low, range.high);
  return loss >= range.low && loss <= range.high ? ModelVerdict::ok(words) : ModelVerdict::failed(words);
}

ModelVerdict check_rope(const SelfCheckRun& run, CheckModel& model) {
  const Tensor table = model.executor().rope_table();
  const std::string own = wrong_rope(model.device(), table, rope_frequencies(run.config.model), table.dim(0));
  const std::vector<nlohmann::json> all = gather_json(run.world, own);
  std::map<int, std::vector<int>> stages;  // that are off, with their ranks
  std::string words;
  for (int r = 0; r < static_cast<int>(all.size()); ++r)
    if (const auto told = all[static_cast<size_t>(r)].get<std::string>(); !told.empty()) {
      stages[run.coord(r).pp].push_back(r);
      if (words.empty()) words = told;
    }
  if (stages.empty())
    return ModelVerdict::ok(fmt::format("the table of {} positions is that of theta {:g} on {}", table.dim(0), run.config.model.rope_theta,
                                        all.size() == 1 ? "the rank" : fmt::format("all {} ranks", all.size())));
  std::string where;
  for (const auto& [stage, ranks] : stages)
    where += fmt::format("{}pipeline stage {} (ranks {})", where.empty() ? "" : ", ", stage, fmt::join(ranks, ", "));
  return ModelVerdict::failed(fmt::format("{}: {}", where, words));
}

ModelVerdict check_leak(const SelfCheckRun& run, CheckModel& model) {
  const int64_t seq = model.executor().config().train.seq_len;
  KnownRows rows = model.make_rows();
  const auto seen = [&](int64_t losses, int64_t from, int64_t to) {
    rows.losses = losses, rows.others_from = from, rows.others_to = to;
    const double loss = model.step(1, rows, false).loss;
    return Seen{.loss = loss, .head = head_gradients(run, model)};
  };
  std::vector<std::string> wrong;
  const std::vector<int64_t> tried = leak_lengths(seq);
  for (const int64_t length : tried) {
    const Seen before = seen(length, -1, 0), after = seen(length, length, seq), own = seen(length, length - 1, length);
    if (before.loss != after.loss)
      wrong.push_back(
          fmt::format("the loss of positions 0 to {} changes by {:.2g} with the tokens after them", length - 1, after.loss - before.loss));
    if (before == own) wrong.push_back(fmt::format("the loss of position {} does not change with its own token", length - 1));
  }
  if (!wrong.empty()) return ModelVerdict::failed(some_of(wrong));
  if (tried.empty()) return ModelVerdict::none("a sequence of one token");
  return ModelVerdict::ok(fmt::format("other tokens from positions {} on: earlier losses have the same bits", fmt::join(tried, ", ")));
}

}  // namespace hlat
