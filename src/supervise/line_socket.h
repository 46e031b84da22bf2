// Lines of text between launcher and agents, over TCP. Nothing here blocks: what cannot be sent yet is kept, what has come is handed out
// in whole lines. A connection that breaks is closed(), never an exception.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hlat {

class LineSocket {
 public:
  // Tries the addresses one after the other. FaultError, with all reasons, when none answers in time.
  static LineSocket connect(const std::vector<std::string>& addresses, int port, double limit_s);
  explicit LineSocket(int fd);
  ~LineSocket();
  LineSocket(LineSocket&& other) noexcept;
  LineSocket& operator=(LineSocket&& other) noexcept;

  void send(const std::string& line);  // without its end
  std::vector<std::string> receive();  // those that are there by now
  void flush();                        // sends what was kept, as far as it goes
  void close();                        // the other side is told
  bool closed() const { return closed_; }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  bool closed_ = false;
  std::string in_, out_;
};

class LineListener {
 public:
  LineListener();  // on any free port of all addresses; FaultError
  ~LineListener();
  LineListener(const LineListener&) = delete;
  LineListener& operator=(const LineListener&) = delete;

  int port() const { return port_; }
  int fd() const { return fd_; }
  std::optional<LineSocket> accept();

 private:
  int fd_ = -1, port_ = 0;
};

// By what this machine can be reached: its name and the addresses of its network cards.
std::vector<std::string> own_addresses();

// Returns when one of them can be read, or after so many seconds.
void wait_readable(const std::vector<int>& fds, double seconds);

}  // namespace hlat
