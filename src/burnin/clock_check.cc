#include "burnin/clock_check.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "base/machine.h"
#include "comm/host_exchange.h"

namespace hlat {

namespace {

constexpr int kClockTries = 8, kClockTag = 77;

double wall_s() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

void exchange(Comm& world, bool sends, double& value, int peer) {
  Comm& host = world.host();
  const Tensor t = Tensor::contiguous(&value, DType::f64, {1});
  Request request = sends ? host.send(t, peer, kClockTag) : host.recv(t, peer, kClockTag);
  host.wait(request);
}

struct Skew {
  double seconds = 0, round_trip_s = 0;
};

// On rank 0: how far the clock of `peer` is ahead.
Skew ask(Comm& world, int peer) {
  Skew best{.seconds = 0, .round_trip_s = 1e9};
  for (int i = 0; i < kClockTries; ++i) {
    double answer = 0;
    const double wall = wall_s(), start = now_s();
    exchange(world, true, answer, peer);
    exchange(world, false, answer, peer);
    const double trip = now_s() - start;
    if (trip < best.round_trip_s) best = {.seconds = answer - (wall + trip / 2), .round_trip_s = trip};
  }
  return best;
}

void answer(Comm& world) {
  for (int i = 0; i < kClockTries; ++i) {
    double time = 0;
    exchange(world, false, time, 0);
    time = wall_s();
    exchange(world, true, time, 0);
  }
}

}  // namespace

PartReport check_clock(const CheckRun& run) {
  run.say("clock");
  const auto speakers = all_gather_values(run.world(), static_cast<int>(run.speaks_for_host()));
  PartReport report{.name = "clock", .alignment = "rlrr"};
  report.rows.push_back({"rank", "host", "ahead of rank 0 ms", "round trip ms"});
  report.json["hosts"] = nlohmann::ordered_json::array();
  double most = 0;
  for (int peer = 1; peer < run.world().size(); ++peer) {
    if (speakers[static_cast<size_t>(peer)] == 0) continue;
    if (run.rank() == peer) answer(run.world());
    if (run.rank() != 0) continue;
    const auto r = static_cast<size_t>(peer);
    const Skew skew = ask(run.world(), peer);
    most = std::max(most, std::abs(skew.seconds));
    report.rows.push_back(
        {fmt::format("{}", peer), run.hosts[r], fmt::format("{:.3f}", skew.seconds * 1e3), fmt::format("{:.3f}", skew.round_trip_s * 1e3)});
    report.json["hosts"].push_back(
        {{"rank", peer}, {"host", run.hosts[r]}, {"ahead_s", skew.seconds}, {"round_trip_s", skew.round_trip_s}});
    if (std::abs(skew.seconds) > kMostSkew)
      report.findings.push_back(
          run.finding("clock", r, fmt::format("is {:.1f} s {} rank 0's", std::abs(skew.seconds), skew.seconds > 0 ? "ahead of" : "behind"),
                      Severity::warning));
  }
  run.world().barrier();
  const bool one = report.rows.size() == 1;
  if (one) report.rows.clear();
  report.title = one ? "one host, one clock" : fmt::format("clocks of {} hosts agree within {:.1f} ms", report.rows.size(), most * 1e3);
  return report;
}

}  // namespace hlat
