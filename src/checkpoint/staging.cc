#include "checkpoint/staging.h"

#include <algorithm>
#include <new>

namespace hlat {

namespace {

constexpr size_t kBuffer = size_t{16} << 20;       // at most: large enough that disks write it at their full rate
constexpr size_t kLeastBuffer = size_t{64} << 10;  // and a multiple of a page
constexpr size_t kPage = 4096;
constexpr size_t kLeastStaging = size_t{64} << 20;  // that is chosen
constexpr std::align_val_t kAlignment{kPage};

size_t buffers_of(size_t bytes) { return std::max<size_t>(2, (bytes + kBuffer - 1) / kBuffer); }

size_t buffer_of(size_t bytes) {
  const size_t count = buffers_of(bytes);
  return std::max(kLeastBuffer, (bytes + count * kPage - 1) / (count * kPage) * kPage);
}

}  // namespace

bool saves_anything(const CheckpointConfig& config) {
  return config.every > 0 || config.minutes > 0 || config.at_end || config.weights_every_tokens > 0;
}

size_t staging_bytes(const CheckpointConfig& config, size_t state_bytes, double available) {
  if (!saves_anything(config) || state_bytes == 0) return 0;
  size_t most = static_cast<size_t>(config.staging_mb) << 20;
  if (most == 0) most = std::max(kLeastStaging, static_cast<size_t>(std::clamp(available / 2, 0.0, static_cast<double>(state_bytes))));
  return Staging::rounded(std::min(state_bytes, most));
}

double longest_update_wait(const Config& config) {
  const auto wait = static_cast<double>(config.checkpoint.max_wait_s), timeout = static_cast<double>(config.parallel.timeout_s);
  return config.parallel.tp * config.parallel.pp * config.parallel.dp > 1 ? std::min(wait, timeout / 2) : wait;
}

size_t Staging::rounded(size_t bytes) { return buffers_of(bytes) * buffer_of(bytes); }

Staging::Staging(size_t bytes, CopyStream* copies) : buffer_bytes_(buffer_of(bytes)) {
  for (size_t i = 0; i < buffers_of(bytes); ++i)
    if (copies != nullptr)
      all_.emplace_back(copies->allocate_pinned(buffer_bytes_), [copies](std::byte* p) { copies->free_pinned(p); });
    else
      all_.emplace_back(static_cast<std::byte*>(::operator new(buffer_bytes_, kAlignment)),
                        [](std::byte* p) { ::operator delete(p, kAlignment); });
  free_all();
}

void Staging::free_all() {
  free_.clear();
  for (const Buffer& buffer : all_) free_.push_back(buffer.get());
}

void Staging::reopen() {
  const std::lock_guard lock(mutex_);
  free_all();
  filled_.clear();
  closed_ = stopped_ = false;
}

std::byte* Staging::take_free() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || !free_.empty(); });
  if (stopped_) return nullptr;
  std::byte* buffer = free_.back();
  free_.pop_back();
  return buffer;
}

void Staging::add_filled(const Filled& filled) {
  {
    const std::lock_guard lock(mutex_);
    filled_.push_back(filled);
  }
  changed_.notify_all();
}

void Staging::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

std::optional<Staging::Filled> Staging::take_filled() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || closed_ || !filled_.empty(); });
  if (stopped_ || filled_.empty()) return {};
  const Filled filled = filled_.front();
  filled_.pop_front();
  return filled;
}

void Staging::add_free(std::byte* buffer) {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(buffer);
  }
  changed_.notify_all();
}

void Staging::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

bool Staging::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

}  // namespace hlat
