#include "burnin/matmul_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include "backend/null/null_ops.h"
#include "base/format.h"
#include "base/machine.h"
#include "base/median.h"
#include "burnin/cpu_counters.h"
#include "comm/host_exchange.h"
#include "health/known_product.h"
#include "ops/device.h"
#include "param/param_store.h"

namespace hlat {

namespace {

// Larger than a core's caches; a device that is through with it in a millisecond needs the larger one to be under load.
constexpr int64_t kProduct = 1024, kLargeProduct = 8192;
constexpr double kSlowed = 4;  // a planted slow rank sleeps so many times as long as it computes

struct ProductTensors {
  Tensor a, b, c, sum;
  ProductTensors(Memory& memory, DType dtype, int64_t size) {
    Region& region = memory[Purpose::temp];
    a = region.alloc(dtype, {size, size}, "a");
    b = region.alloc(dtype, {size, size}, "b");
    c = region.alloc(DType::f32, {size, size}, "c");
    sum = region.alloc(DType::i32, {2}, "fingerprint");
  }
};

MemoryPlan plan_product(Backend& backend, DType dtype, int64_t size) {
  Memory memory;
  const auto model = backend.make_ops(memory[Purpose::temp]);
  const ProductTensors t(memory, dtype, size);
  NullOps ops(memory[Purpose::temp], model.get());
  ops.matmul(t.c, t.a, t.b, {.trans_b = true});
  ops.checksum(t.sum, t.c);
  return memory.high_water();
}

class LoadedProduct {
 public:
  LoadedProduct(Backend& backend, DType dtype, int64_t size, bool wrong, bool slow)
      : device_(backend.device()),
        memory_(device_, plan_product(backend, dtype, size)),
        ops_(backend.make_ops(memory_.memory()[Purpose::temp])),
        t_(memory_.memory(), dtype, size),
        known_(size, 5),
        fingerprint_(known_.fingerprint()),
        planted_wrong_(wrong),
        planted_slow_(slow) {
    device_.upload(t_.a, known_.a(dtype).data());
    device_.upload(t_.b, known_.b(dtype).data());
  }

  double flops() const { return 2 * std::pow(static_cast<double>(known_.size()), 3); }

  // Seconds of one product, which is then held against the known one.
  double run(MatmulMeasured& measured) {
    ops_->finish();
    const double start = now_s();
    ops_->matmul(t_.c, t_.a, t_.b, {.trans_b = true});
    ops_->finish();
    if (planted_slow_) std::this_thread::sleep_for(std::chrono::duration<double>(kSlowed * (now_s() - start)));
    const double seconds = now_s() - start;
    if (planted_wrong_) plant();
    verify(measured);
    return seconds;
  }

 private:
  void plant() {
    const int64_t i = known_.size() / 2, j = known_.size() / 3;
    const float off = known_.at(i, j) + 1;
    device_.upload(Tensor::contiguous(t_.c.as<float>() + i * known_.size() + j, DType::f32, {1}), &off);
  }

  void verify(MatmulMeasured& measured) {
    uint64_t got = 0;
    ops_->checksum(t_.sum, t_.c);
    device_.download(&got, t_.sum);
    ++measured.products;
    if (got == fingerprint_) return;
    if (measured.wrong++ > 0) return;
    std::vector<float> c(static_cast<size_t>(t_.c.numel()));
    device_.download(c.data(), t_.c);
    measured.words = known_.wrong(c).value_or("its fingerprint is not that of its elements");
  }

  Device& device_;
  PlannedMemory memory_;
  std::unique_ptr<Ops> ops_;
  ProductTensors t_;
  KnownProduct known_;
  uint64_t fingerprint_;
  bool planted_wrong_, planted_slow_;
};

std::unique_ptr<LoadedProduct> make_product(const CheckRun& run, MatmulMeasured& measured) {
  const DType compute = precision_of(run.config).compute;
  const bool wrong = run.plants(FaultKind::check_matmul), slow = run.plants(FaultKind::check_slow);
  const auto of_size = [&](int64_t size) {
    measured.size = size;
    auto product = std::make_unique<LoadedProduct>(run.backend, compute, size, wrong, slow);
    product->run(measured);  // a library chooses its kernel
    return product;
  };
  auto product = of_size(kProduct);
  if (product->run(measured) >= 1e-3) return product;
  product = nullptr;  // its memory first
  return of_size(kLargeProduct);
}

// The rate of products that take so long together.
double rate_of_round(LoadedProduct& product, double seconds, MatmulMeasured& measured) {
  double spent = 0;
  int64_t count = 0;
  for (; spent < seconds; ++count) spent += product.run(measured);
  return static_cast<double>(count) * product.flops() / spent;
}

void under_load(const CheckRun& run, LoadedProduct& product, double seconds, MatmulMeasured& measured) {
  const double round_s = run.options.short_form ? 0.05 : 0.5, start = now_s();
  double told = start;
  while (now_s() - start < seconds) {
    measured.loaded.push_back(rate_of_round(product, round_s, measured));
    if (now_s() - told < 10) continue;
    told = now_s();
    run.say(fmt::format("matmul: {:.0f} of {:.0f} s, {} products, {}/s", told - start, seconds, measured.products,
                        format_flops(measured.loaded.back())));
  }
}

// False: it failed, and measured says how.
bool take_turn(LoadedProduct& product, double seconds, MatmulMeasured& measured) try {
  measured.in_turn.push_back(rate_of_round(product, seconds, measured));
  return true;
} catch (const Error& e) {
  measured.words = fmt::format("failed: {}", e.what());
  return false;
}

// Rounds in which each rank of a host computes alone, one after the other.
void take_turns(const CheckRun& run, LoadedProduct* product, MatmulMeasured& measured) {
  constexpr int kRounds = 8;
  constexpr double kTurnS = 0.02;
  for (int round = 0; round < kRounds; ++round)
    for (int turn = 0; turn < run.turns; ++turn) {
      run.world().barrier();
      if (run.session.place().local_rank == turn && product != nullptr && !take_turn(*product, kTurnS, measured)) product = nullptr;
    }
  run.world().barrier();
}

bool any_slow_rank(const CheckRun& run, const MatmulMeasured& measured) {
  return !slow_ranks(all_gather_values(run.world(), measured.speed())).empty();
}

// Again before a rank is called slow: others may have had the core.
void in_turns(const CheckRun& run, LoadedProduct* product, MatmulMeasured& measured) {
  constexpr int kTimes = 4;
  for (int i = 0; i < kTimes; ++i) {
    take_turns(run, product, measured);
    if (!any_slow_rank(run, measured)) return;
  }
}

MatmulMeasured measure_matmul(const CheckRun& run, double seconds) {
  MatmulMeasured measured;
  const CpuCounters before = read_cpu_counters();
  std::unique_ptr<LoadedProduct> product;
  run.world().barrier();  // the load begins everywhere at once
  try {
    product = make_product(run, measured);
    under_load(run, *product, seconds, measured);
  } catch (const Error& e) {
    measured.words = fmt::format("failed: {}", e.what());
    product = nullptr;
  }
  measured.taken = taken_between(before, read_cpu_counters());
  // A second under load is too short to name a rank by: it is tried again without.
  const bool named = !run.competes && run.options.short_form && any_slow_rank(run, measured);
  if (run.competes || named) in_turns(run, product.get(), measured);
  return measured;
}

nlohmann::json packed(const MatmulMeasured& m) {
  return {{"size", m.size},     {"products", m.products}, {"wrong", m.wrong}, {"words", m.words},
          {"loaded", m.loaded}, {"in_turn", m.in_turn},   {"taken", m.taken}};
}

MatmulMeasured unpacked_matmul(const nlohmann::json& j) {
  return {.size = j["size"],
          .products = j["products"],
          .wrong = j["wrong"],
          .words = j["words"],
          .loaded = j["loaded"],
          .in_turn = j["in_turn"],
          .taken = j["taken"]};
}

}  // namespace

Speed MatmulMeasured::speed() const {
  if (!in_turn.empty()) return {.typical = upper_median(in_turn), .best = *std::max_element(in_turn.begin(), in_turn.end())};
  if (loaded.empty()) return {};
  const auto warm = loaded.begin() + static_cast<int64_t>(loaded.size() / 2);
  return {.typical = upper_median({warm, loaded.end()}), .best = *std::max_element(warm, loaded.end())};
}

std::vector<Finding> judge_matmul(const CheckRun& run, const std::vector<MatmulMeasured>& by_rank) {
  std::vector<Finding> findings;
  std::vector<Speed> speeds;
  double fastest = 0;
  for (size_t r = 0; r < by_rank.size(); ++r) {
    const MatmulMeasured& m = by_rank[r];
    if (m.wrong > 0)
      findings.push_back(run.finding("matmul", r, fmt::format("wrong: {} of {} products: {}", m.wrong, m.products, m.words)));
    else if (!m.words.empty())
      findings.push_back(run.finding("matmul", r, m.words));
    if (!m.taken.empty()) findings.push_back(run.finding("matmul", r, m.taken, Severity::warning));
    speeds.push_back(m.speed());
    if (m.words.starts_with("failed")) speeds.back() = {};
    fastest = std::max(fastest, speeds.back().typical);
  }
  for (const size_t r : slow_ranks(speeds))
    if (speeds[r].best > 0)
      findings.push_back(run.finding(
          "matmul", r,
          fmt::format("slow: {}/s at best, where the fastest rank has {}/s", format_flops(speeds[r].best), format_flops(fastest))));
  return findings;
}

PartReport check_matmul(const CheckRun& run, double seconds) {
  std::vector<MatmulMeasured> all;
  for (const nlohmann::json& j : gather_json(run.world(), packed(measure_matmul(run, seconds)))) all.push_back(unpacked_matmul(j));
  PartReport report{.name = "matmul", .alignment = "rlrrrrr", .findings = judge_matmul(run, all)};
  int64_t products = 0;
  report.rows.push_back({"rank", "host", "products", "wrong", "min TFLOP/s", "median", "max"});
  report.json["ranks"] = nlohmann::ordered_json::array();
  for (size_t r = 0; r < all.size(); ++r) {
    const MatmulMeasured& m = all[r];
    std::vector<double> rates = m.in_turn.empty() ? m.loaded : m.in_turn;
    std::sort(rates.begin(), rates.end());
    if (rates.empty()) rates.push_back(0);
    const auto shown = [](double rate) { return figure(rate * 1e-12); };
    products += m.products;
    report.rows.push_back({fmt::format("{}", r), run.hosts[r], fmt::format("{}", m.products), fmt::format("{}", m.wrong),
                           shown(rates.front()), shown(upper_median(rates)), shown(rates.back())});
    report.json["ranks"].push_back({{"rank", r},
                                    {"host", run.hosts[r]},
                                    {"size", m.size},
                                    {"products", m.products},
                                    {"wrong", m.wrong},
                                    {"min_flops", rates.front()},
                                    {"median_flops", upper_median(rates)},
                                    {"max_flops", rates.back()}});
  }
  const int64_t size = all.front().size;
  report.title = fmt::format("{} products of {} x {} with a known answer, all ranks at once{}", products, size, size,
                             run.competes ? "; ranks share cores or GPUs: rates in turns" : "");
  return report;
}

}  // namespace hlat
