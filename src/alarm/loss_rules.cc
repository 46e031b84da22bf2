// Rules about what a loss is: a spike, one that is too good, one that others do not share, one that grows along the row.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "alarm/robust.h"
#include "alarm/rules.h"
#include "base/median.h"
#include "config/run_length.h"

namespace hlat {

namespace {

constexpr size_t kSmooth = 16;  // steps of a running median

// Below the entropy of the batch by a share that noise over 16 steps does not reach: a model of any size comes to it from above.
constexpr double kBelowFloor = 0.05;
// Of what copying within the row and the frequencies of tokens leave. HLAT-70B ends at 1.18 nats where that is about 6: a fifth.
constexpr double kBelowCopy = 0.1;

// Held-out or probe loss 3 % above its lowest for three measurements, while the training loss is 3 % below what it was then. A small probe
// moves with the weights from one measurement to the next: five times that noise is more than the lowest of many lies below the rest.
constexpr size_t kProbes = 64, kFewestProbes = 6, kProbesAbove = 3;
constexpr double kGap = 0.03, kProbeNoise = 5;
constexpr int64_t kProbeDistance = 10;  // steps between measurements that are kept: those of neighbouring steps move together

// Later parts of a sequence have more to go by. The median of 16 measurements, since a part of a small batch has few tokens; the noise of
// one from the moves between up to 64, which a level that changes does not widen. Of few moves it is known badly itself: 9 errors of the
// median with 16 measurements, 6.75 with 64. Without trouble that is met less than once in a million looks, where a part's loss has a noise
// of 20 %.
constexpr size_t kPositionLooks = 16, kPositionMoves = 64;
constexpr double kWorsePosition = 0.15, kPositionErrors = 6, kFewMoves = 8;

double mean(const double* first, const double* last) { return std::accumulate(first, last, 0.0) / static_cast<double>(last - first); }

std::optional<Finding> leak_below_floor(const StepMetrics& m, AlarmMemory& memory) {
  if (!(m.floor > 0)) return {};
  const std::vector<double>& shares = keep(memory, "share", m.loss / m.floor, kSmooth);
  const double share = upper_median(shares), error = median_deviation(shares, share);  // of one step; of a median it is less
  const double limit = 1 - std::max(kBelowFloor, error);
  if (shares.size() < kSmooth || share >= limit) return {};
  return Finding{
      .value = m.loss,
      .limit = limit * m.floor,
      .since = m.step - static_cast<int64_t>(kSmooth) + 1,
      .evidence = fmt::format("over {} steps the loss is {:.1f}% of the entropy of its targets, which no model can go below; now {:.4f} "
                              "where the floor is {:.4f}",
                              kSmooth, 100 * share, m.loss, m.floor)};
}

std::optional<Finding> leak_below_copy(const AlarmView& view, AlarmMemory& memory) {
  const StepMetrics& m = view.metrics;
  if (m.floor == m.floor) return {};
  if (const Monitors* own = view.monitors(); own != nullptr && own->copy_baseline > 0) keep(memory, "copy", own->copy_baseline, kSmooth);
  const std::vector<double>& losses = keep(memory, "loss", m.loss, kSmooth);
  const double baseline = upper_median(memory["copy"]), loss = upper_median(losses);
  if (losses.size() < kSmooth || baseline <= 0 || loss >= kBelowCopy * baseline) return {};
  return Finding{
      .value = loss,
      .limit = kBelowCopy * baseline,
      .since = m.step - static_cast<int64_t>(kSmooth) + 1,
      .evidence = fmt::format("the loss {:.4f} (median of {} steps) is below {:.0f}% of {:.4f} nats, which copying from the same row and "
                              "the frequencies of tokens leave",
                              loss, kSmooth, 100 * kBelowCopy, baseline)};
}

// One series of losses of what is not trained on. `name`: for people.
Look gap_in(const StepMetrics& m, AlarmMemory& memory, const std::string& name, double loss, double trained) {
  const std::vector<double>& kept = memory[name + " at"];
  if (!std::isfinite(loss) || (!kept.empty() && static_cast<double>(m.step) - kept.back() < kProbeDistance)) return {};
  Look look{.looked = true};
  const std::vector<double>& steps = keep(memory, name + " at", static_cast<double>(m.step), kProbes);
  const std::vector<double>& before = keep(memory, name + " trained", trained, kProbes);
  const std::vector<double>& losses = keep(memory, name, loss, kProbes);
  if (losses.size() < kFewestProbes) return look;
  const auto latest = losses.end() - kProbesAbove;
  const auto best = static_cast<size_t>(std::min_element(losses.begin(), latest) - losses.begin());
  std::vector<double> moves;
  for (size_t i = 1; i < losses.size(); ++i) moves.push_back(losses[i] - losses[i - 1]);
  const double noise = median_deviation(moves, upper_median(moves)) / std::sqrt(2);
  const double limit = losses[best] + std::max(kGap * losses[best], kProbeNoise * noise);
  const bool rises = std::all_of(latest, losses.end(), [&](double v) { return v > limit; });
  if (!rises || trained >= before[best] * (1 - kGap)) return look;
  look.found = Finding{
      .value = loss,
      .limit = limit,
      .since = static_cast<int64_t>(steps[best]) + 1,
      .evidence = fmt::format("since step {} the loss of the {} has risen from {:.4f} to {:.4f}, while that of training fell from {:.4f} "
                              "to {:.4f}",
                              steps[best], name, losses[best], loss, before[best], trained)};
  return look;
}

// The rows of the probe are those that the run begins with. In a later stage of the data its loss tells what is forgotten of them.
bool probes_own_stage(const AlarmView& view) {
  const Config& c = view.config;
  return std::none_of(c.data.stages.begin(), c.data.stages.end(), [&](const DataStage& s) {
    const int64_t first = s.first_step(tokens_per_step(c.train));
    return 1 < first && first <= view.metrics.step;
  });
}

// A probe is a micro-batch: after a resume with another size it has other rows, and its losses begin anew.
void begin_probe_anew(AlarmMemory& memory, int64_t micro_batch) {
  std::vector<double>& rows = memory["probe rows"];
  const std::vector<double> now = {static_cast<double>(micro_batch)};
  if (rows == now) return;
  rows = now;
  for (const char* series : {"probe", "probe at", "probe trained"}) memory.erase(series);
}

}  // namespace

Look look_at_spike(const AlarmView& view, AlarmMemory&) {
  if (view.spike.empty()) return {.looked = true};
  return {.looked = true, .found = Finding{.value = view.metrics.loss, .limit = 0, .since = view.metrics.step, .evidence = view.spike}};
}

Look look_at_leak(const AlarmView& view, AlarmMemory& memory) {
  const Monitors* own = view.monitors();
  const bool probed = own != nullptr && own->leak;
  std::vector<double>& leaks = memory["leaks"];  // of the latest probe: 1 or 0
  if (probed) leaks.assign(1, *own->leak > 0 ? 1 : 0);
  // What a probe has found lasts until a probe finds it no more: the steps between them say nothing of it.
  Look look{.looked = probed || leaks.empty() || leaks[0] == 0};
  if (probed && *own->leak > 0)
    look.found =
        Finding{.value = *own->leak,
                .limit = 0,
                .since = view.metrics.step,
                .evidence = fmt::format("a change of later tokens changes the loss of an earlier one, by {:.3g} nats", *own->leak)};
  // Both keep their memories, whatever the other finds.
  std::optional<Finding> floor = leak_below_floor(view.metrics, memory), copy = leak_below_copy(view, memory);
  if (!look.found) look.found = floor ? floor : copy;
  return look;
}

Look look_at_probe_gap(const AlarmView& view, AlarmMemory& memory) {
  const StepMetrics& m = view.metrics;
  const double trained = upper_median(keep(memory, "loss", m.loss, kSmooth));
  const Monitors* own = view.monitors();
  Look look;
  if (own != nullptr && own->probe_loss && probes_own_stage(view)) {
    begin_probe_anew(memory, view.config.train.micro_batch);
    look = gap_in(m, memory, "probe", *own->probe_loss, trained);
  }
  if (m.val_loss) {
    const Look held_out = gap_in(m, memory, "held-out documents", *m.val_loss, trained);
    look.looked |= held_out.looked;
    if (!look.found) look.found = held_out.found;
  }
  return look;
}

Look look_at_position_loss(const AlarmView& view, AlarmMemory& memory) {
  const Monitors* own = view.monitors();
  if (!view.settled || own == nullptr || own->position_loss.size() < 4) return {};
  const std::vector<double>& parts = own->position_loss;
  if (!std::all_of(parts.begin(), parts.end(), [](double v) { return std::isfinite(v); })) return {};
  const size_t quarter = parts.size() / 4;
  const double *begin = parts.data(), *end = begin + parts.size();
  const double last = mean(end - quarter, end);
  Look look{.looked = true};
  for (const auto& [name, before] :
       {std::pair("first quarter", mean(begin, begin + quarter)), std::pair("middle half", mean(begin + quarter, end - quarter))}) {
    const std::vector<double>& more = keep(memory, name, last - before, kPositionMoves);
    if (more.size() < kPositionLooks) continue;
    const double typical = upper_median({more.end() - kPositionLooks, more.end()});
    const double error = kErrorOfMedian * noise_of(more) / std::sqrt(static_cast<double>(kPositionLooks));
    const double errors = kPositionErrors * (1 + kFewMoves / static_cast<double>(more.size()));
    const double limit = std::max(kWorsePosition * view.metrics.loss, errors * error);
    if (typical <= limit || look.found) continue;
    look.found =
        Finding{.value = typical,
                .limit = limit,
                .since = std::max<int64_t>(1, view.metrics.step - static_cast<int64_t>(kPositionLooks) * view.config.monitor.every),
                .evidence = fmt::format("the loss of the last quarter of a row is {:.4f} above that of its {} (median of {} measurements, "
                                        "now {:.4f} and {:.4f})",
                                        typical, name, kPositionLooks, last, before)};
  }
  return look;
}

}  // namespace hlat
