#include "fault/injector.h"

#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/machine.h"
#include "checkpoint/staging.h"
#include "fault/damage.h"
#include "fault/planted.h"

namespace hlat::fault {

namespace {

constexpr double kSlowFactor = 4, kSpikeFactor = 100;
constexpr int64_t kSlowSteps = 10;

void send_signal(int pid, int number) {
  if (number == SIGSEGV) {  // no handler of a library, and no core file
    const rlimit none{};
    setrlimit(RLIMIT_CORE, &none);
    std::signal(SIGSEGV, SIG_DFL);
  }
  if (pid == getpid())
    std::raise(number);
  else
    kill(pid, number);
}

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

struct Injector::Planned {
  FaultSpec spec;
  int64_t victim = 0;
  int64_t left = 0;  // how often it may still come
};

bool plants_faults(const FaultConfig& config) { return !config.inject.empty() || config.every_s > 0; }

Injector::Injector(const Config& config, InjectorSetup setup)
    : config_(config.fault), setup_(std::move(setup)), file_(config.run.dir, setup_.fresh), in_model_(config) {
  if (!setup_.signal) setup_.signal = send_signal;
  if (!setup_.clock) setup_.clock = now_s;
  std::vector<std::string> problems;
  for (const FaultSpec& spec : parse_faults(config_.inject, problems)) {
    const int64_t left = spec.times - file_.fired(spec.text());
    planned_.push_back({spec, victim_of(spec, config_.seed, setup_.ranks), std::max<int64_t>(left, 0)});
  }
  HLAT_CHECK(problems.empty(), "fault.inject: {}", problems.front());
  check_ranks();
  // Those of saves wait for one; all others have their step.
  for (const Planned& p : planned_)
    if (waits_for_a_save(p.spec.kind) && p.victim == setup_.rank && p.left > 0) in_saves_.add({.spec = p.spec, .left = p.left});
  if (config_.every_s > 0) draw_kinds(config);
  began_at_ = setup_.clock();
}

Injector::~Injector() = default;

void Injector::check_ranks() const {
  if (setup_.attempt > 1) return;
  std::vector<std::string> problems;
  for (const Planned& p : planned_) {
    if (p.left == 0) continue;
    if (p.victim >= setup_.ranks)
      problems.push_back(
          fmt::format("fault.inject: {}: there is no such rank; {}", p.spec.text(),
                      setup_.ranks == 1 ? "the run has rank 0 alone" : fmt::format("there are ranks 0 to {}", setup_.ranks - 1)));
    if (p.spec.kind == FaultKind::lost && setup_.ranks == 1)
      problems.push_back(fmt::format("fault.inject: {}: a run of one rank has no messages to lose", p.spec.text()));
  }
  if (!problems.empty()) throw UsageError(fmt::format("{}", fmt::join(problems, "\n")));
}

void Injector::draw_kinds(const Config& config) {
  std::vector<std::string> problems;
  std::vector<FaultKind> kinds = parse_fault_kinds(config_.kinds, problems);
  HLAT_CHECK(problems.empty(), "fault.kinds: {}", problems.front());
  const bool saves = saves_anything(config.checkpoint);
  std::erase_if(kinds, [&](FaultKind kind) {
    return (kind == FaultKind::lost && setup_.ranks == 1) || (kind == FaultKind::disk_full && !saves) ||
           (kind == FaultKind::corrupt && (!saves || config.checkpoint.keep < 2));
  });
  if (kinds.empty())
    fail<UsageError>("fault.kinds = {}: none of them can come about with {} rank{} and these checkpoints", config_.kinds, setup_.ranks,
                     setup_.ranks == 1 ? "" : "s");
  random_.emplace(config_.seed, setup_.attempt, config_.every_s, std::move(kinds), setup_.ranks);
}

void Injector::place(const Mesh& mesh, const ParamStore& params, Device& device, int64_t last_step) {
  mesh_ = &mesh;
  last_step_ = last_step;
  params_ = &params;
  device_ = &device;
  in_model_.place(params, device);
  for (const Planned& p : planned_) {
    if (p.left == 0 || p.victim != setup_.rank) continue;
    if (!p.spec.tensor.empty() && !find_tensor(params, p.spec.tensor))
      fail<UsageError>("fault.inject: {}: the rank has no tensor of this name; its first is {}", p.spec.text(), params.spec(0).name);
    if (p.spec.kind == FaultKind::lost && mesh.along(choose_axis(p.spec, mesh)).size() == 1)
      fail<UsageError>("fault.inject: {}: the rank has no peers along this axis", p.spec.text());
    if (p.spec.kind == FaultKind::drop_share && mesh.shape().dp == 1)
      fail<UsageError>("fault.inject: {}: with parallel.dp = 1 there is no sum over dp that could lack a share", p.spec.text());
  }
}

void Injector::signal(int pid, int number) const { setup_.signal(pid, number); }

// Recorded before it is told: whoever reads of it finds it there.
void Injector::tell(const FaultSpec& spec, bool random, int64_t step, const std::string& more) {
  file_.add({.fault = spec.text(), .random = random, .rank = setup_.rank, .step = step, .attempt = setup_.attempt});
  const std::string who = meets_all_ranks(spec.kind) ? "all ranks" : fmt::format("rank {}", setup_.rank);
  if (setup_.say)
    setup_.say(fmt::format("fault.inject: {}{} of {} {}{}", random ? "random " : "", fault_row(spec.kind).name, who,
                           step > 0 ? fmt::format("at step {}", step) : "in phase " + spec.phase, more));
}

void Injector::idle(const FaultSpec& spec) const {
  if (spec.seconds > 0) return sleep_for(spec.seconds);
  for (;;) sleep_for(3600);
}

void Injector::at_phase(const std::string& words) {
  for (Planned& p : planned_) {
    if (p.spec.kind != FaultKind::hang_start || p.victim != setup_.rank || p.left == 0) continue;
    const auto phases = fault_phases();
    const auto phase = std::find_if(phases.begin(), phases.end(), [&](const FaultPhase& f) { return f.name == p.spec.phase; });
    if (phase == phases.end() || !words.starts_with(phase->words)) continue;
    --p.left;
    tell(p.spec, false, 0);
    idle(p.spec);
  }
}

void Injector::at_step(int64_t step) {
  nan_ = flipped_grad_ = flipped_weight_ = std::nullopt;
  spike_ = 0;
  in_model_.at_step(step);
  step_ = step;
  const double now = setup_.clock();
  if (steps_begun_ > 0) {
    const double took = now - step_began_at_ - slept_s_;
    shortest_step_s_ = shortest_step_s_ > 0 ? std::min(shortest_step_s_, took) : took;
  }
  step_began_at_ = now;
  slept_s_ = 0;
  fire_planned(step);
  if (random_ && steps_begun_ > 0) fire_random(step);
  ++steps_begun_;
  if (step >= slow_until_) return;
  slept_s_ = pause_s_;
  sleep_for(pause_s_);
}

void Injector::fire_planned(int64_t step) {
  for (Planned& p : planned_) {
    // Faults of the model last: one whose step this start of the run has passed comes all the same.
    const bool due = is_of_model(p.spec.kind) ? p.spec.step <= step : p.spec.step == step && !waits_for_a_save(p.spec.kind);
    if (p.left == 0 || !due || !is_met_by(p)) continue;
    --p.left;
    strike(p.spec, false, step);
  }
}

// A wrong table of RoPE is that of a whole pipeline stage.
bool Injector::is_met_by(const Planned& p) const {
  if (p.spec.kind == FaultKind::rope && mesh_ != nullptr)
    return coord_of(static_cast<int>(p.victim), mesh_->shape()).pp == mesh_->coord().pp;
  return p.victim == setup_.rank || meets_all_ranks(p.spec.kind);
}

void Injector::fire_random(int64_t step) {
  const double elapsed = setup_.clock() - began_at_;
  while (random_->next().at_s <= elapsed) {
    const RandomFault fault = random_->next();
    random_->draw();
    if (fault.rank != setup_.rank) continue;
    const FaultSpec spec{.kind = fault.kind, .rank = fault.rank};
    if (waits_for_a_save(spec.kind))
      in_saves_.add({.spec = spec, .random = true});
    else
      strike(spec, true, step);
  }
}

void Injector::strike(const FaultSpec& spec, bool random, int64_t step) {
  std::string more;
  std::optional<Target> target;
  const FaultKind kind = spec.kind;
  if (kind == FaultKind::nan || kind == FaultKind::bitflip_grad || kind == FaultKind::bitflip_weight) {
    target = choose_target(spec, config_.seed, step, *mesh_, *params_);
    more = fmt::format(", in {}{}", kind == FaultKind::bitflip_weight ? "" : "the gradient of ", target->tensor);
  }
  if (kind == FaultKind::lost) more = fmt::format(", along {}", name_of(choose_axis(spec, *mesh_)));
  // One rank speaks for all.
  if (!meets_all_ranks(kind) || setup_.rank == 0) tell(spec, random, step, more);
  if (is_of_model(kind)) return in_model_.begin(spec, step);
  switch (kind) {
    case FaultKind::kill: return signal(getpid(), SIGKILL);
    case FaultKind::crash: return signal(getpid(), SIGSEGV);
    case FaultKind::stop: return signal(getpid(), SIGSTOP);
    case FaultKind::hang: return idle(spec);
    case FaultKind::slow: return slow_down(spec, step);
    case FaultKind::error: fail("fault.inject: an error that nothing handles, at step {}", step);
    case FaultKind::nan: nan_ = target; return;
    case FaultKind::bitflip_grad: flipped_grad_ = target; return;
    case FaultKind::bitflip_weight: flipped_weight_ = target; return;
    case FaultKind::spike: spike_ = spec.factor > 0 ? spec.factor : kSpikeFactor; return;
    case FaultKind::lost: return mesh_->along(choose_axis(spec, *mesh_)).lose_messages();
    case FaultKind::host: return end_host();
    default: return;  // of phases, saves and hlat check
  }
}

void Injector::slow_down(const FaultSpec& spec, int64_t step) {
  const double factor = spec.factor > 0 ? spec.factor : kSlowFactor;
  pause_s_ = spec.seconds > 0 ? spec.seconds : std::max(0.0, factor - 1) * shortest_step_s_;
  slow_until_ = step + (spec.steps > 0 ? spec.steps : kSlowSteps);
}

void Injector::end_host() {
  if (setup_.host_processes)
    for (const int pid : setup_.host_processes()) signal(pid, SIGKILL);
  signal(getpid(), SIGKILL);
}

void Injector::gradients(size_t bucket) {
  const Tensor grad = params_->buckets()[bucket].grad;
  if (spike_ > 0) multiply(*device_, grad, spike_);
  in_model_.gradients(bucket);
  if (nan_ && nan_->bucket == bucket) set_nan(*device_, grad, nan_->element);
}

void Injector::sums(size_t bucket) {
  in_model_.sums(bucket);
  if (flipped_grad_ && flipped_grad_->bucket == bucket) flip_bit(*device_, params_->buckets()[bucket].grad, flipped_grad_->element);
}

void Injector::loss(Tensor sum) {
  if (spike_ > 0) multiply(*device_, sum, spike_);
}

void Injector::weights() {
  if (flipped_weight_) flip_bit(*device_, params_->buckets()[flipped_weight_->bucket].weight, flipped_weight_->element);
}

void Injector::before_write(uint64_t written) {
  if (written > 0) return;
  const int64_t step = step_;
  in_saves_.before_write(step, [&](const FaultSpec& spec, bool random, const std::string& more) { tell(spec, random, step, more); });
}

void Injector::saved(const SaveOutcome& outcome) {
  const auto told = [&](const FaultSpec& spec, bool random, const std::string& more) { tell(spec, random, step_, more); };
  if (outcome.step < last_step_ && in_saves_.corrupts(outcome, told)) signal(getpid(), SIGKILL);
}

}  // namespace hlat::fault
