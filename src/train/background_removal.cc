#include "train/background_removal.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "checkpoint/checkpoint_folder.h"

namespace hlat {

// Owned by the thread as well.
struct BackgroundRemoval::Shared {
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool busy = false;
  std::optional<RemovalOutcome> outcome;

  void end(RemovalOutcome result) {
    const std::lock_guard lock(mutex);
    outcome = std::move(result);
    busy = false;
    changed.notify_all();
  }
};

namespace {

RemovalOutcome remove_steps(const std::filesystem::path& parent, const std::function<std::vector<int64_t>()>& choose) noexcept {
  RemovalOutcome result;
  try {
    for (const int64_t step : choose()) {
      remove_checkpoint(checkpoint_path(parent, step));
      ++result.removed;
    }
  } catch (const std::exception& e) {
    result.problem = e.what();
  }
  return result;
}

}  // namespace

BackgroundRemoval::BackgroundRemoval() : shared_(std::make_shared<Shared>()) {}
BackgroundRemoval::~BackgroundRemoval() = default;

bool BackgroundRemoval::busy() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->busy;
}

void BackgroundRemoval::begin(std::filesystem::path parent, std::function<std::vector<int64_t>()> choose) {
  {
    const std::lock_guard lock(shared_->mutex);
    HLAT_CHECK(!shared_->busy, "a removal begins while another is at work");
    shared_->busy = true;
    shared_->outcome.reset();
  }
  try {
    std::thread([shared = shared_, parent = std::move(parent), choose = std::move(choose)] {
      shared->end(remove_steps(parent, choose));
    }).detach();
  } catch (const std::system_error& e) {
    shared_->end({.problem = e.what()});
  }
}

std::optional<RemovalOutcome> BackgroundRemoval::take_outcome() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->outcome, std::nullopt);
}

bool BackgroundRemoval::wait(double seconds) const {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, std::chrono::duration<double>(std::max(0.0, seconds)), [this] { return !shared_->busy; });
}

}  // namespace hlat
