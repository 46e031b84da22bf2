// Watches streams of operations that no thread waits for. A thread looks at each stream a few times a second; when a library reports an
// error, or an operation that has begun is not done after the time limit, it aborts all streams, which lets everybody go who waits for
// the device, and check() throws from then on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace hlat {

// All three are called from the watch's thread.
class WatchedStream {
 public:
  struct Current {
    uint64_t number = 0;  // no two operations of a stream have the same
    std::string what;     // "tp all_reduce on rank 1 of 4"
  };
  WatchedStream() = default;
  virtual ~WatchedStream() = default;
  WatchedStream(const WatchedStream&) = delete;
  WatchedStream& operator=(const WatchedStream&) = delete;

  virtual std::optional<Current> current() = 0;  // the oldest operation that has begun and is not done
  virtual std::string error() = 0;               // what the library complains of, or empty
  virtual void abort() = 0;
};

class StreamWatch {
 public:
  explicit StreamWatch(double limit_s);
  ~StreamWatch();
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;

  void add(WatchedStream& stream);
  void remove(WatchedStream& stream);    // it is not looked at any more when this returns
  void give_up(const std::string& why);  // as if it had failed
  void check();                          // FaultError with the reason after a failure

 private:
  struct Seen {
    uint64_t number = 0;
    double since = 0;
  };
  void run();
  std::string look(WatchedStream& stream, Seen& seen) const;
  void fail_with(const std::string& why);

  const double limit_s_;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<WatchedStream*, Seen> streams_;
  std::string reason_;
  bool stopping_ = false;
  std::thread thread_;  // last: it starts when all else is there
};

}  // namespace hlat
