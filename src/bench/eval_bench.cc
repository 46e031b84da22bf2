#include "bench/eval_bench.h"

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/machine.h"
#include "base/median.h"
#include "base/rng.h"
#include "eval/executor_model.h"
#include "runtime/assembly.h"

namespace hlat {

namespace {

constexpr int64_t kPrompt = 128, kNewTokens = 128;

std::vector<int32_t> random_tokens(RandomStream& random, int64_t count, int64_t vocab) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(vocab)));
  return ids;
}

std::vector<ScoreRequest> read_requests(const std::string& path, const Config& config) {
  std::ifstream file(path);
  if (!file) fail<UsageError>("{}: cannot be opened", path);
  std::vector<ScoreRequest> requests;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("context") || !json.contains("continuation"))
      fail<UsageError>("{}:{}: not an object with context and continuation", path, requests.size() + 1);
    ScoreRequest r{json["context"].get<std::vector<int32_t>>(), json["continuation"].get<std::vector<int32_t>>()};
    const auto most = static_cast<size_t>(config.train.seq_len + 1);
    for (const std::vector<int32_t>& ids : {r.context, r.continuation})
      for (const int32_t id : ids)
        if (id < 0 || id >= config.model.vocab) fail<UsageError>("{}:{}: {} is not in the vocabulary", path, requests.size() + 1, id);
    if (r.context.empty() || r.continuation.empty() || r.continuation.size() >= most)
      fail<UsageError>("{}:{}: context and continuation must fit train.seq_len", path, requests.size() + 1);
    if (const size_t n = r.context.size() + r.continuation.size(); n > most)
      r.context.erase(r.context.begin(), r.context.begin() + static_cast<std::ptrdiff_t>(n - most));
    requests.push_back(std::move(r));
  }
  if (requests.empty()) fail<UsageError>("{} has no requests", path);
  return requests;
}

class Bench {
 public:
  Bench(const Config& config, Backend& backend, Comm& world, int local_ranks, const EvalBenchOptions& options)
      : config_(config),
        options_(options),
        world_(world),
        assembly_(config, backend, world, local_ranks, ParamUse::weights, true),
        placed_(assembly_.build()),
        passes_(placed_.executor(), kv_limits(config)),
        model_(passes_),
        random_({.seed = 1, .stream = hash_name("bench"), .purpose = Noise::data}) {
    placed_.executor().init_weights();
    bench_.machine = assembly_.describe();
    bench_.planned_bytes = assembly_.plan().memory.total();
  }

  EvalBench run() {
    for (const auto& [rows, length] : options_.dense) dense(rows, length);
    for (const std::string& path : options_.requests) score(path, read_requests(path, config_));
    for (const int64_t rows : options_.generate) generate(rows);
    return std::move(bench_);
  }

 private:
  void measure(EvalBenchRow row, const std::function<void()>& work) {
    work();
    std::vector<double> seconds;
    for (int64_t i = 0; i < options_.times; ++i) {
      world_.barrier();
      const double begin = now_s();
      work();
      world_.barrier();
      seconds.push_back(now_s() - begin);
    }
    row.seconds = median(seconds);
    if (options_.per_op) {
      Ops& ops = placed_.ops();
      ops.reset_cost();
      ops.set_timing(true);
      work();
      ops.collect_times();
      ops.set_timing(false);
      row.ops = ops.cost();
    }
    bench_.rows.push_back(std::move(row));
  }

  void score(const std::string& what, const std::vector<ScoreRequest>& requests) {
    EvalBenchRow row{.what = what, .requests = static_cast<int64_t>(requests.size())};
    for (const ScoreRequest& r : requests) row.tokens += static_cast<int64_t>(r.context.size() + r.continuation.size()) - 1;
    measure(row, [&] { model_.score(requests, {}); });
  }

  void dense(int64_t rows, int64_t length) {
    if (length > config_.train.seq_len) fail<UsageError>("rows of {} tokens: train.seq_len is {}", length, config_.train.seq_len);
    std::vector<ScoreRequest> requests;
    for (int64_t r = 0; r < rows; ++r)
      requests.push_back({random_tokens(random_, 1, config_.model.vocab), random_tokens(random_, length, config_.model.vocab)});
    score(fmt::format("{} x {}", rows, length), requests);
  }

  void generate(int64_t rows) {
    if (kPrompt + kNewTokens > config_.train.seq_len)
      fail<UsageError>("texts of {} tokens: train.seq_len is {}", kPrompt + kNewTokens, config_.train.seq_len);
    std::vector<GenerateRequest> requests;
    for (int64_t r = 0; r < rows; ++r)
      requests.push_back({.prompt = random_tokens(random_, kPrompt, config_.model.vocab), .max_new = kNewTokens});
    measure({.what = fmt::format("{} texts", rows), .tokens = rows * kNewTokens}, [&] { model_.generate(requests, {}, {}); });
  }

  Config config_;
  const EvalBenchOptions& options_;
  Comm& world_;
  Assembly assembly_;
  PlacedModel& placed_;
  KvPasses passes_;
  ExecutorModel model_;
  RandomStream random_;
  EvalBench bench_;
};

}  // namespace

EvalBench bench_eval(const Config& config, Backend& backend, Comm& world, int local_ranks, const EvalBenchOptions& options) {
  return Bench(config, backend, world, local_ranks, options).run();
}

std::string eval_bench_text(const EvalBench& b) {
  std::string text = fmt::format("{}\nplanned memory {}\n", b.machine, format_bytes(b.planned_bytes));
  text += fmt::format("{:<28} {:>9} {:>10} {:>9} {:>10} {:>10}\n", "", "requests", "tokens", "seconds", "tokens/s", "requests/s");
  for (const EvalBenchRow& row : b.rows) {
    text +=
        fmt::format("{:<28} {:>9} {:>10} {:>9.3f} {:>10.1f} {:>10}\n", row.what, row.requests == 0 ? "" : fmt::format("{}", row.requests),
                    row.tokens, row.seconds, static_cast<double>(row.tokens) / row.seconds,
                    row.requests == 0 ? "" : fmt::format("{:.2f}", static_cast<double>(row.requests) / row.seconds));
    for (int k = 0; k < kOpKinds; ++k)
      if (const OpCost& op = row.ops.op[static_cast<size_t>(k)]; op.seconds > 0)
        text += fmt::format("  {:<24} {:>6} calls {:>10.3f} ms {:>9}FLOP/s {:>9}B/s\n", name_of(static_cast<OpKind>(k)), op.calls,
                            1e3 * op.seconds, format_count(op.flops / op.seconds), format_count(op.bytes / op.seconds));
    for (const auto& [shape, op] : row.ops.matmuls)
      text += fmt::format("    {:<28} {:>6} calls {:>10.3f} ms {:>9}FLOP/s {:>9}B/s\n", shape, op.calls, 1e3 * op.seconds,
                          format_count(op.flops / op.seconds), format_count(op.bytes / op.seconds));
  }
  return text;
}

nlohmann::ordered_json eval_bench_json(const EvalBench& b) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const EvalBenchRow& row : b.rows) {
    nlohmann::ordered_json j{{"what", row.what},
                             {"tokens", row.tokens},
                             {"seconds", row.seconds},
                             {"tokens_per_s", static_cast<double>(row.tokens) / row.seconds}};
    if (row.requests > 0) j["requests"] = row.requests, j["requests_per_s"] = static_cast<double>(row.requests) / row.seconds;
    rows.push_back(std::move(j));
  }
  return {{"machine", b.machine}, {"planned_bytes", b.planned_bytes}, {"rows", rows}};
}

}  // namespace hlat
