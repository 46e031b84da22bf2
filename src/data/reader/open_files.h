// The descriptors and mappings that a process keeps for its data files. A corpus has more files than a process may have open: the files
// that were read least recently are closed, and opened again when they are read. For all threads. A handle keeps its file open while it
// is in use, whatever is closed meanwhile. Mappings cannot be taken back from a reader; they are counted, and who gets none maps for
// the length of one look.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace hlat::reader {

class OpenFiles {
 public:
  OpenFiles();  // as many as this process may have, with room for others
  OpenFiles(size_t descriptors, size_t maps) : most_(descriptors), maps_left_(static_cast<int64_t>(maps)) {}

  class Descriptor {
   public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor();
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int fd() const { return fd_; }

   private:
    int fd_;
  };
  using Handle = std::shared_ptr<const Descriptor>;

  uint64_t new_id() { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  Handle find(uint64_t id);                      // null when the file with this id is not open
  Handle open(const std::string& path);          // an Error that says why not
  void keep(uint64_t id, const Handle& handle);  // until it is one of the least recently found
  void forget(uint64_t id);
  size_t open_now() const;

  bool take_map() { return maps_left_.fetch_sub(1) > 0 || (return_map(), false); }
  void return_map() { maps_left_.fetch_add(1); }

 private:
  struct Item {
    uint64_t id;
    Handle handle;
  };
  void drop_oldest(size_t most);  // under mutex_

  const size_t most_;
  std::atomic<int64_t> maps_left_;
  std::atomic<uint64_t> next_id_{1};
  mutable std::mutex mutex_;
  std::list<Item> recent_;  // the latest first
  std::unordered_map<uint64_t, std::list<Item>::iterator> places_;
};

}  // namespace hlat::reader
