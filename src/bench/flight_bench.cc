#include "bench/flight_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/machine.h"
#include "base/median.h"
#include "bench/bench_model.h"

namespace hlat {

namespace {

// Steps of a model, recorded or not.
class TimedSteps {
 public:
  TimedSteps(const Config& config, Backend& backend, Comm& world, int local_ranks, FlightRecorder* flight)
      : assembly_(config, backend, world, local_ranks), model_(assembly_, config, world), flight_(flight) {
    if (flight_ == nullptr) return;
    model_.placed().ops().record_to(*flight_);
    model_.mesh().record_to(*flight_);
    model_.step().record_to(*flight_);
  }

  void run() {
    ++number_;
    times_.push_back(model_.timed([&] {
      if (flight_ != nullptr) flight_->begin_step(number_);
      model_.run(number_);
    }));
    if (flight_ != nullptr) flight_->end_step(number_, times_.back(), times_.back());
  }
  void forget() { times_.clear(); }
  double median_s() const { return median(times_); }
  std::string machine() { return assembly_.describe(); }

 private:
  Assembly assembly_;
  BenchModel model_;
  FlightRecorder* flight_;
  int64_t number_ = 0;
  std::vector<double> times_;
};

// Of the dearest kind of event, in a ring like those of a run.
double event_ns() {
  constexpr int kEvents = 100000, kTimes = 7;
  FlightRecorder flight({}, {});
  const int group = flight.add_group("dp", 1, 0, 2, false);
  const auto measure = [&](const auto& body) {
    std::vector<double> times;
    for (int i = 0; i < kTimes; ++i) {
      const double start = now_s();
      for (int n = 0; n < kEvents; n += 2) body();
      times.push_back((now_s() - start) / kEvents * 1e9);
    }
    return median(times);
  };
  const double ops = measure([&] {
    flight.op(1);
    flight.op(2);
  });
  const double calls = measure([&] {
    flight.enter(group, 0, -1);
    flight.leave(group);
  });
  const double actions = measure([&] {
    flight.action(FlightAction::forward, 0, 0);
    flight.action(FlightAction::backward, 0, 0);
  });
  return std::max({ops, calls, actions});
}

}  // namespace

FlightBench bench_flight(const Config& config, Backend& backend, Comm& world, int local_ranks, int64_t steps) {
  FlightBench b;
  b.ranks = world.size();
  b.steps = steps;
  b.event_ns = event_ns();
  FlightRecorder flight({}, {.rank = world.rank(), .ranks = world.size(), .host = host_name()});
  TimedSteps plain(config, backend, world, local_ranks, nullptr), recorded(config, backend, world, local_ranks, &flight);
  b.machine = plain.machine();
  for (TimedSteps* kind : {&plain, &recorded}) {
    kind->run();  // touches the memory, makes the library's kernels
    kind->run();  // a GPU records graphs
    kind->forget();
  }
  const uint64_t before = flight.ring().events_written;
  for (int64_t i = 0; i < steps; ++i) {
    (i % 2 == 0 ? plain : recorded).run();
    (i % 2 == 0 ? recorded : plain).run();
  }
  b.events_per_step = static_cast<double>(flight.ring().events_written - before) / static_cast<double>(steps);
  b.step_s = plain.median_s();
  b.recorded_step_s = recorded.median_s();
  return b;
}

std::string flight_bench_text(const FlightBench& b) {
  return fmt::format(
      "machine            {}\n"
      "event              {:.0f} ns\n"
      "events per step    {:.0f}\n"
      "share of a step    {:.4f} %\n"
      "step               {:.2f} ms without the recorder, {:.2f} ms with it ({:+.2f} %; medians of {} steps each, in turn, {} rank{})\n",
      b.machine, b.event_ns, b.events_per_step, 100 * b.share(), 1e3 * b.step_s, 1e3 * b.recorded_step_s,
      100 * (b.recorded_step_s / b.step_s - 1), b.steps, b.ranks, b.ranks == 1 ? "" : "s");
}

nlohmann::ordered_json flight_bench_json(const FlightBench& b) {
  return {{"machine", b.machine},
          {"ranks", b.ranks},
          {"steps", b.steps},
          {"event_ns", b.event_ns},
          {"events_per_step", b.events_per_step},
          {"share", b.share()},
          {"step_s", b.step_s},
          {"recorded_step_s", b.recorded_step_s}};
}

}  // namespace hlat
