// A device with memory that the host cannot touch: the addresses it hands out have no access rights, and only its copies, which run late on
// threads of their own as a GPU's streams do, go through a second mapping of the same pages. Whoever reads or writes a tensor
// directly, or does not wait for the work that makes it, is found out: by a fault or by wrong values.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ops/device.h"

namespace hlat::test {

// Runs what it is given in order, each a little late.
class FakeStream {
 public:
  FakeStream() : thread_([this] { run(); }) {}
  ~FakeStream() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;

  void enqueue(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_all();
  }
  std::shared_future<void> record() {
    const auto point = std::make_shared<std::promise<void>>();
    enqueue([point] { point->set_value(); });
    return point->get_future().share();
  }
  void wait_for(std::shared_future<void> point) {
    enqueue([point = std::move(point)] { point.wait(); });
  }
  void finish() { record().wait(); }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(30));
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

class FakeDevice final : public Device {
 public:
  ~FakeDevice() override {
    work_.finish();
    for (const auto& [address, block] : blocks_) unmap(address, block);
  }

  std::byte* allocate(size_t bytes) override {
    const size_t size = (bytes + 4095) / 4096 * 4096 + 4096;
    const int file = memfd_create("fake device", 0);
    if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) throw Error("no memory for a fake device");
    void* shown = mmap(nullptr, size, PROT_NONE, MAP_SHARED, file, 0);
    void* real = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    HLAT_CHECK(shown != MAP_FAILED && real != MAP_FAILED, "mmap of {} bytes", size);
    const std::lock_guard lock(mutex_);
    blocks_[static_cast<std::byte*>(shown)] = {static_cast<std::byte*>(real), size};
    return static_cast<std::byte*>(shown);
  }
  void free(std::byte* p) override {
    work_.finish();
    const std::lock_guard lock(mutex_);
    unmap(p, blocks_.at(p));
    blocks_.erase(p);
  }
  void upload(Tensor dst, const void* host) override {
    const auto* from = static_cast<const std::byte*>(host);
    std::byte* to = real(dst.data);
    work_.enqueue([to, data = std::vector<std::byte>(from, from + dst.bytes())] { copy(to, data.data(), data.size()); });
  }
  void download(void* host, Tensor src) override {
    work_.enqueue([host, from = real(src.data), n = src.bytes()] { copy(host, from, n); });
    work_.finish();
  }
  size_t memory_available() const override { return size_t{1} << 30; }
  std::unique_ptr<CopyStream> make_copy_stream() override;

  FakeStream& work() { return work_; }

  // Where the memory behind an address of this device really is.
  std::byte* real(const void* address) {
    const std::lock_guard lock(mutex_);
    const auto* p = static_cast<const std::byte*>(address);
    auto it = blocks_.upper_bound(const_cast<std::byte*>(p));
    HLAT_CHECK(it != blocks_.begin(), "not memory of the device");
    --it;
    HLAT_CHECK(p <= it->first + it->second.bytes, "not memory of the device");
    return it->second.real + (p - it->first);
  }
  static void copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }

 private:
  struct Block {
    std::byte* real = nullptr;
    size_t bytes = 0;
  };
  static void unmap(std::byte* address, const Block& block) {
    munmap(address, block.bytes);
    munmap(block.real, block.bytes);
  }

  std::mutex mutex_;
  std::map<std::byte*, Block> blocks_;
  FakeStream work_;
};

class FakeCopyStream final : public CopyStream {
 public:
  explicit FakeCopyStream(FakeDevice& device) : device_(device) {}
  ~FakeCopyStream() override { copies_.finish(); }

  std::byte* allocate_pinned(size_t bytes) override {
    auto* p = new std::byte[bytes];
    pinned_[p] = bytes;
    return p;
  }
  void free_pinned(std::byte* p) override {
    copies_.finish();
    HLAT_CHECK(pinned_.erase(p) == 1, "not pinned");
    delete[] p;
  }
  uint64_t mark() override {
    const std::lock_guard lock(mutex_);
    marks_[++next_mark_] = device_.work().record();
    return next_mark_;
  }
  void wait_for(uint64_t mark) override { copies_.wait_for(take(mark)); }
  void await(uint64_t mark) override { take(mark).wait(); }
  void fetch(void* host, const void* device, size_t bytes) override { move(pinned(host, bytes), device_.real(device), bytes); }
  void put(void* device, const void* host, size_t bytes) override { move(device_.real(device), pinned(host, bytes), bytes); }
  void copy(void* device, const void* from, size_t bytes) override { move(device_.real(device), device_.real(from), bytes); }
  void finish() override { copies_.finish(); }

 private:
  std::shared_future<void> take(uint64_t mark) {
    const std::lock_guard lock(mutex_);
    const auto found = marks_.find(mark);
    HLAT_CHECK(found != marks_.end(), "mark {} is not there, or was waited for", mark);
    std::shared_future<void> point = std::move(found->second);
    marks_.erase(found);
    return point;
  }
  void move(void* to, const void* from, size_t bytes) {
    copies_.enqueue([=] { FakeDevice::copy(to, from, bytes); });
  }
  void* pinned(const void* host, size_t bytes) const {
    const auto* p = static_cast<const std::byte*>(host);
    for (const auto& [base, size] : pinned_)
      if (base <= p && p + bytes <= base + size) return const_cast<void*>(host);
    HLAT_CHECK(false, "{} bytes that are not pinned", bytes);
    return nullptr;
  }

  FakeDevice& device_;
  FakeStream copies_;
  std::map<std::byte*, size_t> pinned_;
  std::mutex mutex_;
  std::map<uint64_t, std::shared_future<void>> marks_;
  uint64_t next_mark_ = 0;
};

inline std::unique_ptr<CopyStream> FakeDevice::make_copy_stream() { return std::make_unique<FakeCopyStream>(*this); }

}  // namespace hlat::test
