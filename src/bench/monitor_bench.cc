#include "bench/monitor_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/median.h"
#include "bench/bench_model.h"

namespace hlat {

namespace {

// Steps of a model, which measure themselves when they are asked to.
class MonitoredSteps {
 public:
  MonitoredSteps(const Config& config, Backend& backend, Comm& world, int local_ranks)
      : assembly_(config, backend, world, local_ranks), model_(assembly_, config, world), every_(config.monitor.every) {
    if (model_.rows() == nullptr) return;
    batch_.emplace(config.train.micro_batch, config.train.seq_len);
    model_.rows()->read(0, *batch_);
  }

  // Its number says whether a step measures itself; with monitor.every=1 all do.
  double run(bool measured) {
    number_ += every_;
    return model_.timed([&] { model_.run(measured ? number_ : number_ + 1); });
  }
  double probe() {
    return model_.timed([&] {
      Monitors m;
      model_.step().probe().run(batch_ ? &*batch_ : nullptr, m);
    });
  }
  int64_t probe_every() { return model_.step().probe().every(); }
  std::string machine() { return assembly_.describe(); }

 private:
  Assembly assembly_;
  BenchModel model_;
  int64_t every_, number_ = 0;
  std::optional<Batch> batch_;
};

}  // namespace

MonitorBench bench_monitors(const Config& config, Backend& backend, Comm& world, int local_ranks, int64_t steps) {
  MonitoredSteps run(config, backend, world, local_ranks);
  MonitorBench b{.machine = run.machine(), .ranks = world.size(), .steps = steps, .every = config.monitor.every};
  b.probe_every = run.probe_every();
  for (int i = 0; i < 2; ++i) {  // touches the memory, makes the library's kernels; a GPU then records graphs
    run.run(false);
    run.run(true);
    run.probe();
  }
  std::vector<double> plain, more, probes;
  for (int64_t i = 0; i < steps; ++i) {
    const bool first = i % 2 == 0;  // neither kind always follows the other
    const double a = run.run(!first), b_s = run.run(first);
    plain.push_back(first ? a : b_s);
    more.push_back(first ? b_s - a : a - b_s);
  }
  for (int64_t i = 0; i < std::min<int64_t>(steps, 10); ++i) probes.push_back(run.probe());
  std::sort(more.begin(), more.end());
  b.step_s = median(plain);
  b.more_s = median(more);
  b.least_s = more[more.size() / 4];
  b.most_s = more[more.size() * 3 / 4];
  b.probe_s = median(probes);
  return b;
}

std::string monitor_bench_text(const MonitorBench& b) {
  return fmt::format(
      "machine            {}\n"
      "step               {:.2f} ms, median of {} ({} rank{})\n"
      "a measured step    {:+.3f} ms, median of the differences to its neighbour (half of them from {:+.3f} to {:+.3f}), every {} steps\n"
      "probe              {:.2f} ms, every {} steps\n"
      "share of the time  {:.3f} %: {:.3f} % in steps, {:.3f} % for the probe\n",
      b.machine, 1e3 * b.step_s, b.steps, b.ranks, b.ranks == 1 ? "" : "s", 1e3 * b.more_s, 1e3 * b.least_s, 1e3 * b.most_s, b.every,
      1e3 * b.probe_s, b.probe_every, 100 * b.share(), 100 * b.step_share(), 100 * b.probe_share());
}

nlohmann::ordered_json monitor_bench_json(const MonitorBench& b) {
  return {{"machine", b.machine},
          {"ranks", b.ranks},
          {"steps", b.steps},
          {"every", b.every},
          {"step_s", b.step_s},
          {"more_s", b.more_s},
          {"more_quartiles_s", {b.least_s, b.most_s}},
          {"probe_every", b.probe_every},
          {"probe_s", b.probe_s},
          {"share", b.share()},
          {"step_share", b.step_share()},
          {"probe_share", b.probe_share()}};
}

}  // namespace hlat
