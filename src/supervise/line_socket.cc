#include "supervise/line_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/machine.h"

namespace hlat {

namespace {

constexpr size_t kLongestLine = size_t{64} << 20;  // a peer that sends more is none of ours

bool poll_one(int fd, short events, double seconds) {
  pollfd p{.fd = fd, .events = events, .revents = 0};
  return ::poll(&p, 1, static_cast<int>(std::ceil(std::max(0.0, seconds) * 1000))) > 0;
}

// A connected descriptor, or -1 and the reason.
int try_connect(const addrinfo& address, double limit_s, std::string& why) {
  const int fd = ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int error = errno;
  if (fd >= 0) {
    error = ::connect(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS && poll_one(fd, POLLOUT, limit_s)) {
      socklen_t size = sizeof error;
      if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    } else if (error == EINPROGRESS) {
      error = ETIMEDOUT;
    }
    if (error == 0) return fd;
    ::close(fd);
  }
  why = std::strerror(error);
  return -1;
}

}  // namespace

LineSocket::LineSocket(int fd) : fd_(fd) {
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
}

LineSocket::~LineSocket() {
  if (fd_ >= 0) ::close(fd_);
}

LineSocket::LineSocket(LineSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), closed_(other.closed_), in_(std::move(other.in_)), out_(std::move(other.out_)) {}

LineSocket& LineSocket::operator=(LineSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(closed_, other.closed_);
  std::swap(in_, other.in_);
  std::swap(out_, other.out_);
  return *this;
}

LineSocket LineSocket::connect(const std::vector<std::string>& addresses, int port, double limit_s) {
  std::string reasons;
  for (const std::string& name : addresses) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    std::string why;
    if (const int code = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found); code != 0) {
      why = ::gai_strerror(code);
    } else {
      for (const addrinfo* a = found; a != nullptr; a = a->ai_next)
        if (const int fd = try_connect(*a, limit_s, why); fd >= 0) {
          ::freeaddrinfo(found);
          return LineSocket(fd);
        }
      ::freeaddrinfo(found);
    }
    reasons += (reasons.empty() ? "" : "; ") + name + ": " + why;
  }
  fail<FaultError>("no connection to port {}: {}", port, reasons);
}

void LineSocket::send(const std::string& line) {
  out_ += line;
  out_ += '\n';
  flush();
}

void LineSocket::flush() {
  while (!closed_ && !out_.empty()) {
    const ssize_t sent = ::send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      out_.erase(0, static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      closed_ = true;
    }
  }
}

void LineSocket::close() {
  closed_ = true;
  ::shutdown(fd_, SHUT_RDWR);
}

std::vector<std::string> LineSocket::receive() {
  std::array<char, 65536> buffer{};
  while (!closed_) {
    const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got > 0) in_.append(buffer.data(), static_cast<size_t>(got));
    closed_ = got == 0 || (got < 0 && errno != EINTR) || in_.size() > kLongestLine;
  }
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = in_.find('\n'); end != std::string::npos; end = in_.find('\n', begin)) {
    lines.push_back(in_.substr(begin, end - begin));
    begin = end + 1;
  }
  in_.erase(0, begin);
  return lines;
}

LineListener::LineListener() {
  // One socket for IPv4 and IPv6, or for IPv4 where there is no IPv6.
  fd_ = ::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int off = 0;
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  bool bound = fd_ >= 0 && ::setsockopt(fd_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0 &&
               ::bind(fd_, reinterpret_cast<const sockaddr*>(&any6), sizeof any6) == 0;
  if (!bound) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bound = fd_ >= 0 && ::bind(fd_, reinterpret_cast<const sockaddr*>(&any4), sizeof any4) == 0;
  }
  if (!bound || ::listen(fd_, SOMAXCONN) != 0) {
    const int error = errno;
    if (fd_ >= 0) ::close(fd_);
    fail<FaultError>("no port to listen on: {}", std::strerror(error));
  }
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  ::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size);
  port_ = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

LineListener::~LineListener() { ::close(fd_); }

std::optional<LineSocket> LineListener::accept() {
  const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return std::nullopt;
  return LineSocket(fd);
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> out{host_name()};
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return out;
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET || (i->ifa_flags & IFF_LOOPBACK) != 0) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr, text.data(), text.size());
    out.emplace_back(text.data());
  }
  ::freeifaddrs(all);
  return out;
}

void wait_readable(const std::vector<int>& fds, double seconds) {
  std::vector<pollfd> list;
  list.reserve(fds.size());
  for (const int fd : fds) list.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  ::poll(list.data(), list.size(), static_cast<int>(std::ceil(std::max(0.0, seconds) * 1000)));
}

}  // namespace hlat
