#include "plan/time_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/format.h"

namespace hlat {

namespace {

// One line of the account of a stage.
struct TimeLine {
  std::string name;
  double (*of)(const StageTime&);
};

template <OpKind... Kinds>
double ops_of(const StageTime& s) {
  return (s.compute[static_cast<size_t>(Kinds)] + ...);
}

double other_ops(const StageTime& s) {
  return s.computed() - s.optimizer() -
         ops_of<OpKind::matmul, OpKind::attention, OpKind::attention_bwd, OpKind::rmsnorm, OpKind::add_rmsnorm, OpKind::rmsnorm_bwd,
                OpKind::swiglu, OpKind::swiglu_bwd, OpKind::rope, OpKind::cross_entropy, OpKind::cross_entropy_bwd>(s);
}

template <Axis A>
double exposed(const StageTime& s) {
  return s.exposed[static_cast<size_t>(A)];
}

const std::vector<TimeLine>& time_lines() {
  static const std::vector<TimeLine> lines = {
      {"products", ops_of<OpKind::matmul>},
      {"attention", ops_of<OpKind::attention, OpKind::attention_bwd>},
      {"norms, SwiGLU, RoPE",
       ops_of<OpKind::rmsnorm, OpKind::add_rmsnorm, OpKind::rmsnorm_bwd, OpKind::swiglu, OpKind::swiglu_bwd, OpKind::rope>},
      {"cross-entropy", ops_of<OpKind::cross_entropy, OpKind::cross_entropy_bwd>},
      {"other ops", other_ops},
      {"optimizer", [](const StageTime& s) { return s.optimizer(); }},
      {"exposed tp", [](const StageTime& s) { return exposed<Axis::tp>(s) + exposed<Axis::kv>(s); }},
      {"exposed pp", [](const StageTime& s) { return exposed<Axis::pp>(s) + exposed<Axis::ends>(s); }},
      {"exposed dp", exposed<Axis::dp>},
      {"idle in the pipeline", [](const StageTime& s) { return s.bubble; }},
      {"slowed by overlap or shared cores", [](const StageTime& s) { return s.slowed; }},
  };
  return lines;
}

// Stages in columns; of many, the first, the second, and the last two.
std::vector<size_t> shown_stages(size_t count) {
  std::vector<size_t> out;
  for (size_t i = 0; i < count; ++i)
    if (count <= 6 || i < 2 || i + 2 >= count) out.push_back(i);
  return out;
}

std::string mfu_text(const TimedPlan& plan, std::optional<double> peak) {
  return peak ? fmt::format(", MFU {:.1f} %", 100 * plan.mfu(*peak)) : std::string(", MFU unknown: the machine has no peak");
}

}  // namespace

std::string time_text(const TimedPlan& plan, std::optional<double> peak) {
  std::string s =
      fmt::format("estimated step {:.4g} s, {} tokens/s{}\n", plan.time.seconds, format_count(plan.tokens_per_s()), mfu_text(plan, peak));
  const std::vector<size_t> stages = shown_stages(plan.time.stages.size());
  s += fmt::format("{:<34}", plan.time.stages.size() > 1 ? "seconds by stage" : "seconds");
  if (plan.time.stages.size() > 1)
    for (const size_t i : stages) s += fmt::format(" {:>10}", i);
  s += "\n";
  for (const TimeLine& line : time_lines()) {
    double most = 0;
    for (const StageTime& t : plan.time.stages) most = std::max(most, line.of(t));
    if (most < 1e-4 * plan.time.seconds) continue;
    s += fmt::format("{:<34}", line.name);
    for (const size_t i : stages) s += fmt::format(" {:>10.4g}", line.of(plan.time.stages[i]));
    s += "\n";
  }
  if (plan.time.overhead > 0) s += fmt::format("{:<34} {:>10.4g}\n", "host, per step", plan.time.overhead);
  const StageTime& busiest = plan.time.busiest();
  if (busiest.queued > 0)
    s += fmt::format("sums and gathers that overlap: {:.4g} s; waited for dp in all: {:.4g} s\n", busiest.queued,
                     exposed<Axis::dp>(busiest));
  return s;
}

nlohmann::ordered_json time_json(const TimedPlan& plan, std::optional<double> peak) {
  nlohmann::ordered_json j{{"estimated", true},
                           {"step_s", plan.time.seconds},
                           {"tokens_per_s", plan.tokens_per_s()},
                           {"mfu", peak ? nlohmann::ordered_json(plan.mfu(*peak)) : nlohmann::ordered_json()},
                           {"micro_batches", plan.micros},
                           {"host_s", plan.time.overhead}};
  for (const StageTime& t : plan.time.stages) {
    nlohmann::ordered_json stage;
    for (const TimeLine& line : time_lines()) stage[line.name] = line.of(t);
    stage["overlapped dp"] = t.queued;
    j["stages"].push_back(std::move(stage));
  }
  return j;
}

}  // namespace hlat
