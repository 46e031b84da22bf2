#include "train/run_saves.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/format.h"
#include "base/machine.h"
#include "checkpoint/checkpoint_folder.h"
#include "config/run_length.h"

namespace hlat {

namespace {

constexpr double kFirstRetry = 10, kLongestRetry = 600;  // seconds after a failed save
constexpr int kLastAttempts = 4;                         // to save what nothing comes after
constexpr double kWait = 1;                              // between looks at a save that the end waits for

std::string utc_now() {
  return fmt::format("{:%FT%TZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

// Whether a multiple of `every` lies in (before, now].
bool crossed(int64_t before, int64_t now, int64_t every) { return every > 0 && now / every > before / every; }

std::string removed(const std::filesystem::path& parent, const std::vector<int64_t>& steps) try {
  for (const int64_t step : steps) remove_checkpoint(checkpoint_path(parent, step));
  return {};
} catch (const Error& e) {
  return e.what();
}

}  // namespace

RunSaves::RunSaves(const Config& config, const SavesSetup& setup, int64_t start, bool leads, std::function<OwnPosition()> position)
    : config_(config.checkpoint),
      setup_(setup),
      position_(std::move(position)),
      tokens_per_step_(tokens_per_step(config.train)),
      leads_(leads),
      saved_(start),
      begun_(start),
      weights_(start),
      begun_at_(now_s()) {}

RunSaves::~RunSaves() = default;

void RunSaves::tell(const std::string& text, bool problem) const {
  if (leads_ && setup_.tell) setup_.tell({text, problem, saved_});
}

void RunSaves::wait_pruned() {
  if (!pruning_.valid()) return;
  if (const std::string problem = pruning_.get(); !problem.empty()) tell("old checkpoints stay: " + problem, true);
}

// Overlapped with the training: removing many large files takes its time.
void RunSaves::prune() {
  wait_pruned();
  pruning_ = std::async(std::launch::async, [parent = setup_.checkpoints, keep = config_.keep, every = config_.keep_every] {
    return removed(parent, beyond_retention(checkpoint_steps(parent), keep, every));
  });
}

// The oldest checkpoints make room where retention would remove them after the next commit, and where that is enough. One always stays.
void RunSaves::make_room(uint64_t bytes) try {
  const std::vector<int64_t> gone =
      beyond_retention(checkpoint_steps(setup_.checkpoints), std::max<int64_t>(1, config_.keep - 1), config_.keep_every);
  uint64_t room = free_bytes(setup_.checkpoints);
  std::vector<int64_t> chosen;
  for (const int64_t step : gone) {
    if (room >= bytes) break;
    room += read_index(checkpoint_path(setup_.checkpoints, step)).bytes();
    chosen.push_back(step);
  }
  if (chosen.empty() || room < bytes) return;
  const std::string problem = removed(setup_.checkpoints, chosen);
  tell(problem.empty() ? fmt::format("removed {} of the oldest checkpoints to make room", chosen.size()) : problem, !problem.empty());
  if (problem.empty()) retry_at_ = now_s();
} catch (const Error& e) {
  tell(fmt::format("cannot make room: {}", e.what()), true);
}

void RunSaves::collect(StepMetrics* metrics) {
  const std::optional<SaveOutcome> outcome = setup_.saver.take_outcome();
  if (!outcome) return;
  const bool full = under_way_ == CheckpointContent::training;
  if (metrics != nullptr) metrics->save_wait_s = outcome->update_wait_s;
  problem_ = outcome->problem;
  if (problem_.empty()) {
    failures_ = 0;
    retry_at_ = 0;
    if (full) saved_ = outcome->step;
    if (metrics != nullptr) metrics->saved = static_cast<double>(outcome->step);
    tell(fmt::format(
             "saved {} of step {}: {} in {}{}", full ? "the state" : "the weights", outcome->step, format_bytes(outcome->bytes),
             format_duration(outcome->seconds),
             outcome->update_wait_s > 0.05 ? fmt::format("; the update waited {} for it", format_duration(outcome->update_wait_s)) : ""),
         false);
    if (full && leads_) prune();
    return;
  }
  const double pause = std::min(kLongestRetry, kFirstRetry * static_cast<double>(1 << std::min(failures_++, 10)));
  retry_at_ = now_s() + pause;
  if (!full) weights_ = std::min(weights_, outcome->step - 1);  // due again
  if (metrics != nullptr) metrics->save_failed = static_cast<double>(outcome->step);
  tell(fmt::format("the save of step {} failed: {}; training goes on, the last checkpoint is {}; next attempt in {} at the latest",
                   outcome->step, problem_, saved_ > 0 ? fmt::format("that of step {}", saved_) : "none", format_duration(pause)),
       true);
  if (outcome->disk_full && leads_) make_room(outcome->bytes);
}

RunSaves::Due RunSaves::due(int64_t step) {
  if (!leads_) return Due::nothing;
  const double now = now_s();
  const bool retry = failures_ > 0 && now >= retry_at_;
  const bool weights = crossed(weights_ * tokens_per_step_, step * tokens_per_step_, config_.weights_every_tokens);
  const bool training = crossed(begun_, step, config_.every) || (config_.minutes > 0 && now - begun_at_ >= 60 * config_.minutes) ||
                        (retry && under_way_ == CheckpointContent::training);
  const Due what = weights && (failures_ == 0 || retry) ? Due::weights : training ? Due::training : Due::nothing;
  if (what != Due::nothing && busy() && told_late_ != begun_) {
    told_late_ = begun_;
    tell(fmt::format("the save of step {} has not ended after {}; the next one waits for it", begun_, format_duration(now - begun_at_)),
         true);
  }
  return what;
}

void RunSaves::begin(Due what, int64_t step, double loss) {
  under_way_ = what == Due::weights ? CheckpointContent::weights : CheckpointContent::training;
  SaveRequest request;
  request.parent = what == Due::weights ? setup_.weights : setup_.checkpoints;
  request.content = request.index.content = under_way_;
  request.index.run = setup_.run;
  request.index.hlat = setup_.version;
  request.index.created = utc_now();
  request.index.step = step;
  request.index.tokens = step * tokens_per_step_;
  request.index.loss = loss;
  request.index.config = setup_.config;
  request.index.records = setup_.records;
  if (under_way_ == CheckpointContent::training) {
    request.own_record = own_record(position_ ? position_() : OwnPosition(), setup_.kernels ? setup_.kernels() : "");
    request.join_records = join_records;
    begun_ = step;
  } else {
    weights_ = step;
  }
  begun_at_ = now_s();
  setup_.saver.begin(std::move(request));
}

std::string RunSaves::finish(int64_t step, double loss, bool signalled, double limit_s, const std::function<int(int)>& agree) {
  const double limit = now_s() + limit_s;
  // Until no rank is busy; a writer that the system does not let go keeps it busy beyond its outcome. False: it took too long.
  const auto idle = [&] {
    while (agree(busy() ? 1 : 0) != 0) {
      if (agree(now_s() > limit ? 1 : 0) != 0) return false;
      setup_.saver.wait(kWait);
      if (busy()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    collect();
    return true;
  };
  const bool regular = config_.every > 0 || config_.minutes > 0;
  const bool wants = config_.at_end || (signalled && regular) || agree(crossed(begun_, step, config_.every) ? 1 : 0) != 0;
  bool done = idle();
  for (int attempt = 0; done && wants && saved_ < step && attempt < kLastAttempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::duration<double>(attempt));
    begin(Due::training, step, loss);
    done = idle();
  }
  if (done && crossed(weights_ * tokens_per_step_, step * tokens_per_step_, config_.weights_every_tokens)) {
    begin(Due::weights, step, loss);
    done = idle();
  }
  wait_pruned();
  if (!wants || saved_ == step) return {};
  return done ? problem_ : fmt::format("a save has not ended after {}", format_duration(limit_s));
}

}  // namespace hlat
