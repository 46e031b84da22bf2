// Tells agents once a second that the launcher lives, from a thread of its own: whatever holds up the launcher's other thread (a terminal
// that nobody reads, a disk that hangs) must not make agents think that it is gone.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "supervise/line_socket.h"

namespace hlat {

// A connection that several threads use.
class SharedLine {
 public:
  explicit SharedLine(LineSocket socket) : socket_(std::move(socket)), fd_(socket_.fd()) {}

  void send(const std::string& line);
  std::vector<std::string> receive();
  void flush();
  void close();
  bool closed() const;
  int fd() const { return fd_; }

 private:
  mutable std::mutex mutex_;
  LineSocket socket_;
  int fd_;
};

class PingThread {
 public:
  PingThread(std::string line, double every_s);
  ~PingThread();
  PingThread(const PingThread&) = delete;
  PingThread& operator=(const PingThread&) = delete;

  void add(const std::shared_ptr<SharedLine>& line);  // until it is closed, or nobody else has it

 private:
  void run();

  std::string line_;
  double every_s_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::vector<std::weak_ptr<SharedLine>> lines_;
  std::thread thread_;
};

}  // namespace hlat
