#include "checkpoint/save_run.h"

#include <algorithm>
#include <chrono>

#include "base/file.h"
#include "base/format.h"
#include "base/machine.h"
#include "checkpoint/piece_file.h"

namespace hlat {

namespace {

// More than the header and the index have for a piece.
constexpr uint64_t kPieceText = 512, kFileText = uint64_t{64} << 10;

uint64_t room_for(const RankState& state) { return state.pieces.empty() ? 0 : state.bytes + state.pieces.size() * kPieceText + kFileText; }

}  // namespace

SaveRun::SaveRun(const Tools& tools, SaveRequest request, uint64_t mark, const std::string& problem)
    : tools_(tools), request_(std::move(request)), mark_(mark), begin_s_(now_s()) {
  tools_.staging.reopen();
  if (!problem.empty()) fail_save(problem, false);
  try {
    start_threads();
  } catch (const std::exception& e) {
    // The rank has no thread to tell the others with.
    fail_save(e.what(), false);
    SaveStatus own;
    own.set_problem(rank(), e.what(), false);
    tell_outcome(own);
    const std::lock_guard lock(mutex_);
    broken_ = e.what();
    over_ = true;
    changed_.notify_all();
  }
}

// Threads end by themselves: the exchange ends the disk's, and the copier ends when all is copied or staging was stopped.
SaveRun::~SaveRun() = default;

void SaveRun::start_threads() {
  copier_ = std::jthread([this] { copy(); });
  disk_ = std::jthread([this] { run_jobs(); });
  exchange_ = std::jthread([this] { run(); });
}

// The first problem is the one that is told.
void SaveRun::fail_save(const std::string& text, bool disk_full) {
  {
    const std::lock_guard lock(mutex_);
    if (!problem_) problem_ = {.text = text, .disk_full = disk_full};
  }
  tools_.staging.stop();
  changed_.notify_all();
}

template <class Work>
void SaveRun::guarded(const Work& work) noexcept {
  try {
    work();
  } catch (const DiskFull& e) {
    fail_save(e.what(), true);
  } catch (const std::exception& e) {
    fail_save(e.what(), false);
  } catch (...) {
    fail_save("an exception of no known type", false);
  }
}

void SaveRun::copy() {
  guarded([&] {
    if (tools_.copies != nullptr) tools_.copies->wait_for(mark_);
    const bool whole = stage(tools_.state, tools_.staging, tools_.copies, [&](uint64_t bytes) {
      const std::lock_guard lock(mutex_);
      copied_ = bytes;
      changed_.notify_all();
    });
    if (!whole) return;
    const std::lock_guard lock(mutex_);
    copy_s_ = now_s() - begin_s_;
  });
  const std::lock_guard lock(mutex_);
  copier_done_ = true;
  changed_.notify_all();
}

// Where the wait is too long the save is given up; the copier is then waited for all the same, because nothing may be changed under it:
// at most for one buffer.
void SaveRun::await_copy(int bucket) {
  const uint64_t end = tools_.state.bucket_end.at(static_cast<size_t>(bucket));
  std::unique_lock lock(mutex_);
  const auto copied = [&] { return copied_ >= end || copier_done_; };
  if (copied()) return;
  const double left = std::max(0.0, tools_.options.max_wait_s - update_wait_s_);
  double start = now_s();
  const auto count = [&] { update_wait_s_ += now_s() - std::exchange(start, now_s()); };
  const bool in_time = changed_.wait_for(lock, std::chrono::duration<double>(left), copied);
  count();
  if (in_time) return;
  lock.unlock();
  fail_save(fmt::format("given up after the update had waited {:g} s for the copy (checkpoint.max_wait_s): the disk does not take what is "
                        "more than checkpoint.staging_mb in that time",
                        tools_.options.max_wait_s),
            false);
  lock.lock();
  changed_.wait(lock, copied);
  count();
}

void SaveRun::run_jobs() {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return job_ || over_; });
      if (!job_) return;
      job = job_;
    }
    guarded(job);
    const std::lock_guard lock(mutex_);
    job_ = nullptr;
    changed_.notify_all();
  }
}

void SaveRun::give_job(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  job_ = std::move(job);
  changed_.notify_all();
}

void SaveRun::prepare(uint64_t room) {
  const std::filesystem::path folder = NewCheckpoint::folder_of(request_.parent, request_.index.step);
  checkpoint_.emplace(request_.parent, request_.index.step);
  const uint64_t there = free_bytes(folder);
  if (there < room)
    fail<DiskFull>("the file system of {} has {} free, a checkpoint takes {}", request_.parent.string(), format_bytes(there),
                   format_bytes(room));
}

void SaveRun::write_file() {
  const RankState& state = tools_.state;
  if (state.pieces.empty()) return;
  const std::filesystem::path folder = NewCheckpoint::folder_of(request_.parent, request_.index.step);
  PieceFile file(folder / fmt::format("rank_{:05}.safetensors", rank()), state.tensors, state.pieces, request_.index.run,
                 request_.index.step);
  uint64_t written = 0;
  while (const auto filled = tools_.staging.take_filled()) {
    if (tools_.options.before_write) tools_.options.before_write(written);
    file.write(filled->data, filled->bytes);
    tools_.staging.add_free(filled->data);
    written += filled->bytes;
    const std::lock_guard lock(mutex_);
    written_ = written;
  }
  if (tools_.staging.stopped()) return;
  file_ = file.finish();
  sync_to_disk(folder);
}

void SaveRun::commit() {
  CheckpointIndex index = std::move(request_.index);
  index.content = request_.content;
  add_files(index, reports_);
  if (request_.join_records) {
    std::vector<std::string> records;
    records.reserve(reports_.size());
    for (RankReport& report : reports_) records.push_back(std::move(report.record));
    request_.join_records(index, std::move(records));
  }
  checkpoint_->commit(index);
}

SaveStatus SaveRun::rounds(const std::function<bool()>& done, bool until_problem) {
  for (;;) {
    SaveStatus own;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::duration<double>(tools_.options.round_s), [&] { return done() || (until_problem && problem_); });
      own.done = done() ? 1 : 0;
      own.bytes = written_;
      if (problem_) own.set_problem(rank(), problem_->text, problem_->disk_full);
    }
    const SaveStatus all = agree(tools_.commit, own);
    {
      const std::lock_guard lock(mutex_);
      progress_ = all.bytes;
    }
    if (all.done != 0 || (until_problem && all.failed())) return all;
  }
}

SaveStatus SaveRun::agree_on_job() {
  return rounds([this] { return !job_; }, true);
}

SaveStatus SaveRun::save() {
  const SaveStatus sizes = agree(tools_.commit, {.done = 1, .bytes = tools_.state.bytes, .room = room_for(tools_.state)});
  bytes_ = sizes.bytes;
  room_ = sizes.room;
  if (rank() == 0) give_job([this] { prepare(room_); });
  SaveStatus all = agree_on_job();
  if (all.failed()) return all;
  give_job([this] { write_file(); });
  all = agree_on_job();
  if (all.failed()) return all;
  reports_ =
      gather_reports(tools_.commit, {.tensors = tools_.state.tensors, .file = std::move(file_), .record = std::move(request_.own_record)});
  if (rank() == 0) give_job([this] { commit(); });
  return agree_on_job();
}

// Nobody writes any more when rank 0 removes the folder.
void SaveRun::clean_up() {
  tools_.staging.stop();
  const auto all_stopped = [this] { return stopped(); };
  rounds(all_stopped, false);
  if (rank() == 0)
    give_job([this] {
      if (checkpoint_) checkpoint_->discard();
    });
  rounds(all_stopped, false);
}

void SaveRun::tell_outcome(const SaveStatus& all) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(told_, true)) return;
  outcome_ = {.folder = checkpoint_path(request_.parent, request_.index.step),
              .content = request_.content,
              .step = request_.index.step,
              .problem = all.failed() ? all.problem() : "",
              .disk_full = all.disk_full != 0,
              .bytes = bytes_,
              .room = room_,
              .seconds = now_s() - begin_s_,
              .copy_s = copy_s_,
              .update_wait_s = update_wait_s_};
  if (all.failed() && tools_.commit != nullptr) outcome_->problem.insert(0, fmt::format("rank {}: ", all.failed_rank));
  changed_.notify_all();
}

void SaveRun::run() {
  try {
    const SaveStatus all = save();
    tell_outcome(all);
    if (all.failed()) clean_up();
  } catch (const std::exception& e) {
    // The ranks cannot be asked: each of them ends alone.
    fail_save(e.what(), false);
    SaveStatus own;
    own.set_problem(rank(), e.what(), false);
    tell_outcome(own);
    std::unique_lock lock(mutex_);
    broken_ = e.what();
    changed_.wait(lock, [this] { return stopped(); });
  }
  const std::lock_guard lock(mutex_);
  over_ = true;
  changed_.notify_all();
}

bool SaveRun::await_outcome(double seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return told_; });
}

std::optional<SaveOutcome> SaveRun::take_outcome() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outcome_, std::nullopt);
}

bool SaveRun::over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

uint64_t SaveRun::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

std::string SaveRun::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

}  // namespace hlat
