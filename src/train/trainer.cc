#include "train/trainer.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "base/json_text.h"
#include "base/memory_limits.h"
#include "checkpoint/health_record.h"
#include "data/first_rows.h"
#include "data/ledger_json.h"
#include "optim/learning_rate.h"
#include "record/run_file.h"
#include "train/means.h"
#include "train/shown_source.h"
#include "train/vote.h"

namespace hlat {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_between(Clock::time_point a, Clock::time_point b) { return std::chrono::duration<double>(b - a).count(); }

// One rank's run: what lives from the first step of a process to its last.
class Trainer {
 public:
  Trainer(const Config& config, const TrainSetup& setup, TrainState& state)
      : config_(config),
        setup_(setup),
        mesh_(setup.model.mesh()),
        step_(setup.model.executor()),
        policy_(config.loss, state.loss),
        alarms_(config, state.alarms, policy_, setup.model.mesh().coord() == MeshCoord{}),
        means_(state.step, config.train.steps),
        executed_flops_(sum_over(mesh_, setup.plan.executed_flops())),
        peak_flops_(sum_over(mesh_, setup.peak_flops)) {
    HLAT_CHECK((setup.data != nullptr) == setup.model.executor().reads_batches(), "data is for the ranks that read batches");
    if (setup.flight != nullptr) step_.record_to(*setup.flight);
    if (policy_.gates())
      step_.before_updates(
          [this](int64_t step, double loss, double grad_norm) { return policy_.judge(step, loss, grad_norm).action != LossAction::skip; });
    if (setup.faults != nullptr) step_.inject(*setup.faults);
    if (validate_rows(config) > 0) validation_.emplace(config, setup.data, mesh_);
    if (setup.data == nullptr) return;
    const Part own = part_of(config.train.global_batch, mesh_.coord().dp, mesh_.shape().dp);
    batches_ = std::make_unique<TrainBatches>(*setup.data, own, state.data);
  }

  // Saves of this process, of a run that stands after `start`.
  void prepare_saves(const TrainState& state) {
    const int64_t start = state.step;
    first_step_ = start + 1;
    if (!setup_.saves) return;
    // One rank of each replica tells where its lanes stand.
    std::function<OwnPosition()> position;
    if (batches_ != nullptr && mesh_.coord().pp == 0)
      position = [this] { return mesh_.coord().dp == 0 ? OwnPosition(batches_->position()) : OwnPosition(batches_->rank_lanes()); };
    saves_.emplace(config_, *setup_.saves, start, mesh_.coord() == MeshCoord{}, std::move(position));
    saves_->add_records([this, &state](int64_t step) {
      return std::vector{to_record(state.loss), to_record(state.alarms),
                         to_record(HealthRecord{.checked = verified_ == step ? step : 0, .passed = state.health_passed})};
    });
    step_.on_update([this](int bucket) { before_update(bucket); });
  }

  // Returns the signal that ends the run after this step, the same on all ranks; 0: none.
  int advance(TrainState& state) {
    const int64_t step = state.step + 1;
    LossVerdict verdict;
    auto [m, checked] = take_step(step, verdict);
    const bool measures = measure_after(m);
    // Until a step was computed none is known to hang (HangWatch).
    if (first_ && m.skipped)
      now(FlightPhase::start, "skipping the first steps");
    else
      now(FlightPhase::training, "training");
    const Vote vote = at_boundary(step, m, verdict);
    if (setup_.goodput) m.goodput = setup_.goodput(m);
    record(m, checked);
    alarms_.answer(m, vote.alarm, [this](const LossEvent& event) { tell_alarm(event); });
    remember(state, m, verdict);
    const bool ends = vote.signal != 0 || step == config_.train.steps;
    const bool saves = saves_ && vote.due != 0 && vote.busy == 0 && !ends;
    if (saves) begin_save(static_cast<RunSaves::Due>(vote.due), state);
    if (saves || validates_after(step)) put_ledger(state);
    check_memory(m, measures);
    return ends ? vote.signal : evaluate(step);
  }

  TrainSummary finish(TrainState& state, int ended_by) {
    if (setup_.progress != nullptr) setup_.progress->finish();
    now(FlightPhase::last_save, "the last save");
    TrainSummary s;
    if (saves_) verify(state);
    finish_saves(s, state.step, ended_by != 0);
    if (ended_by == 0) {
      ended_by = evaluate(state.step);
      // Who ends a run by a signal wants its step saved, also where the end alone asks for no save (checkpoint.at_end).
      if (ended_by != 0) finish_saves(s, state.step, true);
    }
    tell_notes();
    if (batches_ != nullptr) state.data = batches_->position();
    s.steps = state.step;
    s.first_step = first_step_;
    s.ended_by = ended_by;
    means_.finish(s);
    s.mfu = s.tokens_per_s * setup_.plan.flops_per_token / peak_flops_;
    s.hfu = s.tokens_per_s / static_cast<double>(tokens_per_step()) * executed_flops_ / peak_flops_;
    s.validation = validated_;
    s.skipped_steps = static_cast<int64_t>(state.loss.skipped.size());
    for (const auto& [rule, told] : state.alarms.told)
      if (told.times > 0) s.alarms[rule] = told.times;
    s.planned = setup_.plan.memory;
    s.used = setup_.model.high_water();
    s.resident = peak_resident_bytes();
    s.device_in_use = setup_.model.device().memory_in_use();
    if (setup_.data == nullptr) return s;
    s.floor = setup_.data->floor();
    s.ledger = put_ledger(state);
    return s;
  }

 private:
  struct Taken {
    StepMetrics metrics;
    bool checked = false;  // StepResult::checked
  };

  // The step with what is known of it when it is done.
  Taken take_step(int64_t step, LossVerdict& verdict) {
    const auto begin = Clock::now();
    if (setup_.flight != nullptr) setup_.flight->begin_step(step);
    if (!first_) now(FlightPhase::training, "training");  // the first belongs to the start
    if (setup_.faults != nullptr) setup_.faults->at_step(step);
    const int64_t schedule_end = config_.optim.schedule_steps > 0 ? config_.optim.schedule_steps : config_.train.steps;
    const double lr = learning_rate(config_.optim, step, schedule_end);
    std::optional<ShownSource> source;
    if (batches_ != nullptr) source.emplace(*batches_, setup_.progress, step_.micros());
    const StepResult r = run_step(step, lr, source ? &*source : nullptr, verdict);
    StepMetrics m = metrics(step, lr, r, seconds_between(begin, Clock::now()));
    if (r.calibrated) tell_calibrated(*r.calibrated);
    m.skipped = r.skipped;
    m.computed = verdict.cause != LossCause::asked;
    // One that was left out only read its rows: it tells nothing of how long steps take.
    const double computing = m.step_s - m.data_wait_s - m.comm_wait_s;
    if (setup_.flight != nullptr) setup_.flight->end_step(step, m.computed ? m.step_s : 0, m.computed ? computing : 0);
    if (m.computed && source && source->entropy())
      m.floor = sum_over(mesh_.along(Axis::dp), *source->entropy()) / static_cast<double>(step_.micros() * mesh_.shape().dp);
    if (setup_.folder != nullptr && batches_ != nullptr) m.source_rows = batches_->source_rows(step);
    m.monitors = r.monitors;
    return {.metrics = std::move(m), .checked = r.checked};
  }

  // What is due after a step, on its weights. Returns whether anything was.
  bool measure_after(StepMetrics& m) {
    const bool probes = m.monitors && !m.skipped && (step_.probe().due(m.step) || !probed_);
    if (probes) probe(m.step, *m.monitors);
    const bool validates = validates_after(m.step);
    if (validates) validate(m);
    return probes || validates;
  }

  // measures: more was done than in other steps. A process whose steps were all skipped so far has not used all of its memory yet: the
  // first whole one is held against the plan.
  void check_memory(const StepMetrics& m, bool measures) {
    if (first_ && m.skipped) return;
    if (first_ || measures) setup_.plan.check_used(setup_.model.high_water(), mesh_);
    if (std::exchange(first_, false)) tell_memory(m.step);
  }

  // The step, or what is left of one that is skipped, and what the policy says about it. What is off is told, and ends the run where the
  // policy wants that; the numbers are equal on all ranks, so all of them come here.
  StepResult run_step(int64_t step, double lr, BatchSource* source, LossVerdict& verdict) {
    StepResult r;
    if (policy_.is_asked(step)) {
      step_.pass_over(source);
      verdict = policy_.asked();
      r.loss = verdict.loss;
      r.skipped = true;
    } else {
      try {
        r = step_.run(step, lr, source);
      } catch (const FailedStep& e) {
        if (e.kind != FailureKind::non_finite) throw;
        verdict = policy_.judge(step, e.loss, e.grad_norm);
        tell(step, verdict);
        if (verdict.no_skips_left) throw LossPolicy::failure(step, verdict);
        throw;
      }
      verdict = policy_.judge(step, r.loss, r.grad_norm);
    }
    if (verdict.cause != LossCause::none) tell(step, verdict);
    if (verdict.ends()) throw LossPolicy::failure(step, verdict);
    return r;
  }

  // Its rows are read when they are first asked for. Collective. Where none is due in the first measured step of a process, that tells of a
  // leak alone, which a new binary or machine may bring: all else of probes alarms hold against earlier ones.
  void probe(int64_t step, Monitors& monitors) {
    now(FlightPhase::validation, "validation");
    if (setup_.data != nullptr && !probe_rows_) probe_rows_ = first_rows(*setup_.data, config_.train.micro_batch);
    Monitors probed;
    const bool due = step_.probe().due(step);
    step_.probe().run(probe_rows_ ? &*probe_rows_ : nullptr, due ? monitors : probed);
    if (!due) monitors.leak = probed.leak;
    probed_ = true;
  }

  void validate(StepMetrics& m) {
    now(FlightPhase::validation, "validation");
    const ValidationResult v = *(validated_ = validation_->run(setup_.model.executor()));
    m.val_loss = v.loss, m.val_ppl = v.perplexity, m.val_bpb = v.bits_per_byte;
    if (v.sets.size() > 1)
      for (const SetLoss& set : v.sets) m.val_losses.emplace_back(set.name, set.loss);
  }

  // The step is done, on all ranks.
  void remember(TrainState& state, const StepMetrics& m, const LossVerdict& verdict) {
    means_.add(m, tokens_per_step());
    state.step = m.step;
    policy_.add(m.step, verdict);
    if (m.computed && compares() && m.step % config_.parallel.health_every == 0) state.health_passed = m.step;
    latest_loss_ = m.loss;
    if (!m.skipped) finite_ = std::isfinite(m.param_norm);
  }

  // Collective over the ranks that read the first stage's rows, which are rank 0's replicas.
  void tell(int64_t step, const LossVerdict& verdict) {
    if (batches_ == nullptr || mesh_.coord().pp != 0) return;
    LossEvent event{.step = step, .verdict = verdict, .rows = config_.train.global_batch, .documents = {}};
    BatchDocuments own;
    try {
      own = batches_->documents();
    } catch (const Error& e) {
      event.problem = e.what();
    }
    event.documents = gather_documents(mesh_.along(Axis::dp), own);
    alarms_.told(event);
    if (setup_.tell_loss && mesh_.coord() == MeshCoord{}) setup_.tell_loss(event);
    if (setup_.progress != nullptr) setup_.progress->say(fmt::format("step {}: {}", step, reason_of(event)));
  }

  // On rank 0.
  void tell_alarm(const LossEvent& event) {
    if (setup_.tell_loss) setup_.tell_loss(event);
    const Alarm& alarm = *event.alarm;
    const std::string rule(name_of(alarm.rule));
    if (setup_.folder != nullptr) {
      setup_.folder->record(ToldAlarm{.step = event.step, .rule = rule, .value = alarm.value, .evidence = alarm.evidence});
      setup_.folder->log().info("step {}: against {} try: {}", event.step, rule, alarm.advice);
    }
    if (setup_.progress != nullptr)
      setup_.progress->alarm(fmt::format("step {}: {}\n  try: {}", event.step, event.verdict.words, alarm.advice));
  }

  // Whether replicas are compared now and then. A mesh without any has nothing to compare and finds nothing wrong.
  bool compares() const { return config_.parallel.health_every > 0 && mesh_.shape().ranks() > 1; }

  // What is about to be saved. Collective.
  void verify(TrainState& state) {
    const bool alone = mesh_.shape().ranks() == 1;
    if (compares()) {
      step_.check_state(state.step);
      state.health_passed = state.step;
    }
    if ((alone || compares()) && finite_) verified_ = state.step;
  }

  void finish_saves(TrainSummary& s, int64_t step, bool signalled) {
    if (!saves_) return;
    now(FlightPhase::last_save, "the last save");
    s.save_problem = saves_->finish(step, latest_loss_, signalled, static_cast<double>(config_.parallel.timeout_s),
                                    [&](int n) { return agree(mesh_, {.signal = n}).signal; });
    if (saves_->saved_step() > 0) s.saved_step = saves_->saved_step();
  }

  void begin_save(RunSaves::Due due, TrainState& state) {
    if (due == RunSaves::Due::training) verify(state);
    saves_->begin(due, state.step, latest_loss_);
  }

  // What was read so far; a report of a run under way shows it. Collective over the ranks that read batches, nothing on others.
  Ledger put_ledger(const TrainState& state) {
    if (batches_ == nullptr) return {};
    Ledger ledger = batches_->ledger([&](double v) { return sum_over(mesh_.along(Axis::dp), v); });
    const auto skipped = static_cast<int64_t>(state.loss.skipped.size());
    ledger.skipped_rows = static_cast<uint64_t>(skipped * config_.train.global_batch);
    ledger.skipped_tokens = static_cast<uint64_t>(skipped * tokens_per_step());
    if (setup_.folder != nullptr) put_run_file(*setup_.folder, "ledger.json", json_text(ledger_json(ledger, state.step), 2) + "\n");
    return ledger;
  }

  // When all of the step is recorded and its save is under way, or done: an evaluation may take long, and may be cut off. Returns the
  // signal that did so, the same on all ranks; 0: none.
  int evaluate(int64_t step) {
    if (!setup_.evaluate || !setup_.evaluation_due(step)) return 0;
    now(FlightPhase::evaluation, "evaluating tasks");
    StepEvaluation found = setup_.evaluate(step);
    if (!found.values.empty()) {
      if (setup_.folder != nullptr)
        setup_.folder->record(TaskMetrics{.step = step, .tokens = step * tokens_per_step(), .values = std::move(found.values)});
      if (!first_) setup_.plan.check_used(setup_.model.high_water(), mesh_);
    }
    return agree(mesh_, {.signal = found.cut_off_by}).signal;
  }

  // Comes back when all ranks have done this step, and passed its checks, with what they agree on.
  Vote at_boundary(int64_t step, StepMetrics& m, const LossVerdict& verdict) {
    Vote vote{.signal = setup_.end_signal ? setup_.end_signal() : 0, .alarm = alarms_.look(m, verdict)};
    if (saves_) {
      vote.busy = saves_->busy() ? 1 : 0;  // before: a save that ends in between is not begun over with its outcome untaken
      saves_->collect(&m);
      if (setup_.flight != nullptr) setup_.flight->saving(setup_.saves->saver.progress(), saves_->saved_step());
      vote.due = static_cast<int>(saves_->due(step));
    }
    return agree(mesh_, vote);
  }

  void before_update(int bucket) {
    const bool told = setup_.flight != nullptr && setup_.saves->saver.busy();
    if (told) setup_.flight->action(FlightAction::save_wait);
    saves_->before_update(bucket);
    if (told) setup_.flight->action(FlightAction::update);
  }

  // Phases of one kind that follow each other are one.
  void now(FlightPhase phase, const char* words) {
    if (setup_.flight != nullptr && std::exchange(phase_, phase) != phase) setup_.flight->phase(phase, words);
  }

  int64_t tokens_per_step() const { return config_.train.global_batch * config_.train.seq_len; }
  bool validates_after(int64_t step) const {
    if (setup_.model.executor().fp8().uncalibrated()) return false;  // no step was computed yet that scales could come from
    const int64_t every = config_.data.validate_every;
    return validation_ && (step == config_.train.steps || (every > 0 && step % every == 0));
  }

  StepMetrics metrics(int64_t step, double lr, const StepResult& r, double step_s) const {
    const double rate = static_cast<double>(tokens_per_step()) / step_s;
    return {.step = step,
            .tokens = step * tokens_per_step(),
            .loss = r.loss,
            .grad_norm = r.grad_norm,
            .param_norm = r.param_norm,
            .lr = lr,
            .step_s = step_s,
            .tokens_per_s = rate,
            .mfu = rate * setup_.plan.flops_per_token / peak_flops_,
            .hfu = executed_flops_ / step_s / peak_flops_,
            .data_wait_s = r.data_wait_s,
            .comm_s = r.comm_s,
            .comm_wait_s = r.comm_wait_s};
  }

  void record(const StepMetrics& m, bool checked) {
    if (setup_.folder != nullptr) setup_.folder->record(m);
    if (setup_.folder != nullptr && checked)
      setup_.folder->log().info("step {}: equal on all {} ranks with their peers; rank 0 compared {}", m.step, mesh_.shape().ranks(),
                                step_.compared());
    if (setup_.folder != nullptr && m.val_loss && !std::isfinite(*m.val_loss))
      setup_.folder->log().warn("step {}: the loss of the held-out documents is {}", m.step, *m.val_loss);
    tell_notes();
    if (setup_.progress != nullptr) setup_.progress->step(m);
  }

  void tell_notes() {
    if (setup_.folder == nullptr || !setup_.notes) return;
    for (const std::string& line : setup_.notes()) setup_.folder->log().info("{}", line);
  }

  void tell_calibrated(const Fp8Calibrated& c) {
    if (setup_.folder != nullptr && !c.finite) return setup_.folder->log().warn("{}", c.words());  // which stderr has too
    if (setup_.folder != nullptr) setup_.folder->log().info("{}", c.words());
    if (setup_.progress != nullptr) setup_.progress->say(c.words());
  }

  // What a device holds outside the plan is logged, not planned: its context, handles and code of libraries.
  void tell_memory(int64_t step) {
    if (setup_.folder == nullptr) return;
    const size_t in_use = setup_.model.device().memory_in_use(), planned = setup_.plan.memory.total();
    setup_.folder->log().info("step {}: memory used equals the plan, {}", step, format_bytes(planned));
    if (in_use > planned)
      setup_.folder->log().info("outside the plan {} of the device are in use: context and libraries, and other processes",
                                format_bytes(in_use - planned));
  }

  const Config& config_;
  const TrainSetup& setup_;
  const Mesh& mesh_;
  TrainStep step_;
  LossPolicy policy_;
  AlarmWatch alarms_;
  std::optional<Validation> validation_;
  std::optional<Batch> probe_rows_;  // on ranks that read batches, once they were needed
  bool probed_ = false;              // by this process
  std::unique_ptr<TrainBatches> batches_;
  Means means_;
  double executed_flops_, peak_flops_;                             // of all ranks
  std::optional<ValidationResult> validated_;                      // the latest
  bool first_ = true;                                              // the next step is the first of this process
  int64_t first_step_ = 1;                                         // of this process
  double latest_loss_ = std::numeric_limits<double>::quiet_NaN();  // none: no step of this process was computed
  bool finite_ = true;                                             // the norm of the weights, after the latest update
  int64_t verified_ = 0;                                           // the latest step whose state was found right, for a save
  FlightPhase phase_ = FlightPhase::start;
  std::optional<RunSaves> saves_;
};

}  // namespace

TrainSummary train(const Config& config, const TrainSetup& setup, TrainState& state, int64_t& step) {
  HLAT_CHECK(config.train.steps > 0, "the steps of {} epochs were not counted", config.train.epochs);
  const auto start = Clock::now();
  Trainer trainer(config, setup, state);
  trainer.prepare_saves(state);
  int ended_by = 0;
  if (state.step >= config.train.steps) {  // what follows the last step is left
    std::atomic_ref(step).store(state.step);
    if (setup.end_signal) setup.end_signal();
  }
  while (state.step < config.train.steps && ended_by == 0) {
    std::atomic_ref(step).store(state.step + 1);
    ended_by = trainer.advance(state);
  }
  if (state.step >= config.train.steps) ended_by = 0;
  TrainSummary summary = trainer.finish(state, ended_by);
  summary.seconds = seconds_between(start, Clock::now());
  return summary;
}

}  // namespace hlat
