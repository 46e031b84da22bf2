#include "train/run_saves.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/machine.h"
#include "checkpoint/checkpoint_folder.h"
#include "config/run_length.h"

namespace hlat {

namespace {

constexpr double kFirstRetry = 10, kLongestRetry = 600;        // seconds after a failed save
constexpr int kLastAttempts = 4;                               // to save what nothing comes after
constexpr double kWait = 1;                                    // between looks at a save that the end waits for
constexpr double kRemovalAtEnd = 30, kRemovalAfterSignal = 5;  // that the end waits for a removal
enum class Stand : uint8_t { idle, stuck, busy };              // of a rank whose save is waited for; of all: the largest

std::string utc_now() {
  return fmt::format("{:%FT%TZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

// Whether a multiple of `every` lies in (before, now].
bool crossed(int64_t before, int64_t now, int64_t every) { return every > 0 && now / every > before / every; }

// The oldest that retention would remove after the next commit, where that makes room for so many bytes. Where there seems to be room
// already, something else than the file system's size was the limit (a quota, others that write): then the oldest one.
std::vector<int64_t> oldest_for_room(const std::filesystem::path& parent, const CheckpointConfig& config, uint64_t bytes) {
  const std::vector<int64_t> gone = beyond_retention(checkpoint_steps(parent), std::max<int64_t>(1, config.keep - 1), config.keep_every);
  uint64_t room = free_bytes(parent);
  if (room >= bytes) return {gone.begin(), gone.begin() + (gone.empty() ? 0 : 1)};
  std::vector<int64_t> chosen;
  for (const int64_t step : gone) {
    if (room >= bytes) break;
    room += read_index(checkpoint_path(parent, step)).bytes();
    chosen.push_back(step);
  }
  return room >= bytes ? chosen : std::vector<int64_t>();
}

}  // namespace

RunSaves::RunSaves(const Config& config, const SavesSetup& setup, int64_t start, bool leads, std::function<OwnPosition()> position)
    : config_(config.checkpoint),
      setup_(setup),
      position_(std::move(position)),
      tokens_per_step_(tokens_per_step(config.train)),
      leads_(leads),
      saved_(setup.owns_start ? start : 0) {
  training_.begun = start;
  training_.begun_at = weights_.begun_at = now_s();
  weights_.begun = newest_copy(start);
}

RunSaves::~RunSaves() = default;

void RunSaves::tell(const std::string& text, SaveNews::Kind kind) const {
  if (leads_ && setup_.tell) setup_.tell({text, kind, saved_});
}

// A copy that the process before this one owed is still owed.
int64_t RunSaves::newest_copy(int64_t start) const try {
  if (!leads_ || config_.weights_every_tokens == 0 || !setup_.owns_start) return start;
  int64_t newest = 0;
  for (const int64_t step : checkpoint_steps(setup_.weights))
    if (step <= start) newest = step;
  return newest;
} catch (const Error& e) {
  tell(fmt::format("cannot look for copies of the weights: {}", e.what()));
  return start;
}

// Begins what removal is wanted and tells of the one that ended.
void RunSaves::remove_old() {
  if (const std::optional<RemovalOutcome> end = removal_.take_outcome()) {
    if (!end->problem.empty()) tell("old checkpoints stay: " + end->problem);
    if (makes_room_ && end->removed > 0) {
      tell(fmt::format("removed {} of the oldest checkpoints to make room", end->removed));
      series(*makes_room_).retry_at = now_s();
    }
    makes_room_.reset();
  }
  if (removal_.busy()) return;
  if (shortage_ && !busy()) {  // what the failed save wrote is removed by now
    makes_room_ = shortage_->content;
    removal_.begin(setup_.checkpoints, [parent = setup_.checkpoints, config = config_, room = shortage_->room] {
      return oldest_for_room(parent, config, room);
    });
    shortage_.reset();
  } else if (std::exchange(prune_wanted_, false)) {
    removal_.begin(setup_.checkpoints, [parent = setup_.checkpoints, keep = config_.keep, every = config_.keep_every] {
      return beyond_retention(checkpoint_steps(parent), keep, every);
    });
  }
}

void RunSaves::await_removal(double seconds) {
  if (!leads_) return;
  const double limit = now_s() + seconds;
  do {
    if (!removal_.wait(limit - now_s())) return tell("old checkpoints are still being removed; nobody waits for it");
    remove_old();
  } while (removal_.busy());
}

void RunSaves::collect(StepMetrics* metrics) {
  while (const std::optional<SaveOutcome> outcome = setup_.saver.take_outcome()) take(*outcome, metrics);
  if (leads_) remove_old();
}

void RunSaves::take(const SaveOutcome& outcome, StepMetrics* metrics) {
  const bool full = outcome.content == CheckpointContent::training;
  Series& own = series(outcome.content);
  if (metrics != nullptr) metrics->save_wait_s = metrics->save_wait_s.value_or(0) + outcome.update_wait_s;
  own.problem = outcome.problem;
  if (setup_.ended) setup_.ended(outcome);
  if (own.problem.empty()) {
    own.failures = 0;
    if (shortage_ && shortage_->content == outcome.content) shortage_.reset();
    if (full) saved_ = outcome.step;
    if (metrics != nullptr) metrics->saved = static_cast<double>(outcome.step);
    tell(fmt::format(
             "saved {} of step {}: {} in {}{}", full ? "the state" : "the weights", outcome.step, format_bytes(outcome.bytes),
             format_duration(outcome.seconds),
             outcome.update_wait_s > 0.05 ? fmt::format("; the update waited {} for it", format_duration(outcome.update_wait_s)) : ""),
         SaveNews::Kind::saved);
    prune_wanted_ = prune_wanted_ || full;
    return;
  }
  const double pause = std::min(kLongestRetry, kFirstRetry * static_cast<double>(1 << std::min(own.failures++, 10)));
  own.retry_at = now_s() + pause;
  if (metrics != nullptr) metrics->save_failed = static_cast<double>(outcome.step);
  tell(fmt::format("the save of step {} failed: {}; the last checkpoint is {}; training is not held up, and a next attempt comes within {}",
                   outcome.step, own.problem, saved_ > 0 ? fmt::format("that of step {}", saved_) : "none", format_duration(pause)),
       SaveNews::Kind::failed);
  if (outcome.disk_full) shortage_ = {.content = outcome.content, .room = outcome.room};
}

bool RunSaves::weights_due(int64_t step) const {
  return crossed(weights_.begun * tokens_per_step_, step * tokens_per_step_, config_.weights_every_tokens);
}

RunSaves::Due RunSaves::due(int64_t step) {
  if (!leads_) return Due::nothing;
  const double now = now_s();
  const auto again = [now](const Series& s) { return s.failures > 0 && now >= s.retry_at; };
  const bool training = crossed(training_.begun, step, config_.every) || again(training_) ||
                        (config_.minutes > 0 && now - training_.begun_at >= 60 * config_.minutes);
  const Due what = weights_due(step) || again(weights_) ? Due::weights : training ? Due::training : Due::nothing;
  const Series& latest = series(latest_);
  if (what != Due::nothing && busy() && told_late_ != latest.begun) {
    told_late_ = latest.begun;
    tell(fmt::format("the save of step {} has not ended after {}; the next one waits for it", latest.begun,
                     format_duration(now - latest.begun_at)));
  }
  return what;
}

void RunSaves::begin(Due what, int64_t step, double loss) {
  latest_ = what == Due::weights ? CheckpointContent::weights : CheckpointContent::training;
  SaveRequest request;
  request.parent = what == Due::weights ? setup_.weights : setup_.checkpoints;
  request.content = request.index.content = latest_;
  request.index.run = setup_.run;
  request.index.hlat = setup_.version;
  request.index.created = utc_now();
  request.index.step = step;
  request.index.tokens = step * tokens_per_step_;
  request.index.loss = loss;
  request.index.config = setup_.config;
  request.index.records = setup_.records;
  if (latest_ == CheckpointContent::training) {
    request.own_record =
        own_record(position_ ? position_() : OwnPosition(), setup_.kernels ? setup_.kernels() : "", setup_.fp8 ? setup_.fp8() : "");
    request.join_records = join_records;
    if (more_records_)
      for (Record& record : more_records_(step)) request.index.records.push_back(std::move(record));
  }
  Series& own = series(latest_);
  own.begun = step;
  own.begun_at = now_s();
  own.retry_at = std::numeric_limits<double>::infinity();  // this is the attempt
  setup_.saver.begin(std::move(request));
}

// Until no rank is busy; a writer that the system does not let go keeps it busy beyond its outcome. False: nothing moved for too long.
bool RunSaves::await_idle(double patience_s, const std::function<int(int)>& agree) {
  double limit = now_s() + patience_s;
  uint64_t progress = setup_.saver.progress();
  for (;;) {
    if (const uint64_t now = setup_.saver.progress(); std::exchange(progress, now) != now) limit = now_s() + patience_s;
    const Stand own = !busy() ? Stand::idle : now_s() > limit ? Stand::stuck : Stand::busy;
    const auto all = static_cast<Stand>(agree(static_cast<int>(own)));
    if (all != Stand::busy) {
      collect();
      return all == Stand::idle;
    }
    setup_.saver.wait(kWait);
    if (busy()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::string RunSaves::finish(int64_t step, double loss, bool signalled, double patience_s, const std::function<int(int)>& agree) {
  const double removal_s = std::min(signalled ? kRemovalAfterSignal : kRemovalAtEnd, patience_s / 2);
  const auto any = [&](bool own) { return agree(own ? 1 : 0) != 0; };
  // A rank that has heard of the commit is right; others may have lost the exchange after it.
  const auto saved = [&] {
    if (any(saved_ == step)) saved_ = step;
    return saved_ == step;
  };
  bool done = await_idle(patience_s, agree);
  const bool regular = config_.every > 0 || config_.minutes > 0;
  const bool wants =
      config_.at_end || (signalled && regular) || any(crossed(training_.begun, step, config_.every) || training_.failures > 0);
  for (int attempt = 0; done && wants && attempt < kLastAttempts && !saved(); ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::duration<double>(attempt));
    if (attempt > 0) await_removal(removal_s);
    begin(Due::training, step, loss);
    done = await_idle(patience_s, agree);
  }
  if (done && any(weights_due(step) || weights_.failures > 0)) {
    begin(Due::weights, step, loss);
    done = await_idle(patience_s, agree);
  }
  const bool lost = wants && !saved();
  await_removal(removal_s);
  if (!lost) return {};
  return done ? training_.problem : fmt::format("a save has not ended after {} without progress", format_duration(patience_s));
}

}  // namespace hlat
