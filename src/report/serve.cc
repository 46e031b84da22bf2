#include "report/serve.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.h"

namespace hlat {

namespace {

constexpr size_t kMostRequest = 16 << 10;
constexpr int kRequestMs = 2000, kReplyMs = 10000;

const char* status_words(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    default: return "Internal Server Error";
  }
}

std::string reply_text(const Served& served, bool with_body) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
      "Connection: close\r\n\r\n{}",
      served.status, status_words(served.status), served.type, served.body.size(), with_body ? served.body : "");
}

Served refusal(int status, const std::string& words) {
  return {.status = status, .type = "text/plain; charset=utf-8", .body = words + "\n"};
}

std::string host_of(std::string_view request) {
  for (size_t at = request.find("\r\n"); at != std::string_view::npos; at = request.find("\r\n", at + 2)) {
    std::string_view line = request.substr(at + 2, request.find("\r\n", at + 2) - at - 2);
    constexpr std::string_view kHost = "host:";
    if (line.size() < kHost.size() || !std::equal(kHost.begin(), kHost.end(), line.begin(), [](char a, char b) {
          return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
        }))
      continue;
    line.remove_prefix(kHost.size());
    while (line.starts_with(' ')) line.remove_prefix(1);
    while (line.ends_with(' ')) line.remove_suffix(1);
    return std::string(line);
  }
  return "";
}

// 80 is the port that browsers leave out.
bool is_own_host(const std::string& host, int port) {
  for (const char* name : {"127.0.0.1", "localhost"})
    if (host == fmt::format("{}:{}", name, port) || (port == 80 && host == name)) return true;
  return false;
}

int ms_until(std::chrono::steady_clock::time_point limit) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::max<int64_t>(0, left));
}

// The head of a request; what it has of it where its time is over.
std::string read_request(int fd) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kRequestMs);
  std::string text;
  while (text.find("\r\n\r\n") == std::string::npos && text.size() < kMostRequest) {
    pollfd waits{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&waits, 1, ms_until(limit)) <= 0) break;
    char block[4096];
    const ssize_t n = recv(fd, block, sizeof block, 0);
    if (n <= 0) break;
    text.append(block, static_cast<size_t>(n));
  }
  return text;
}

void send_all(int fd, std::string_view text) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kReplyMs);
  while (!text.empty()) {
    pollfd waits{.fd = fd, .events = POLLOUT, .revents = 0};
    if (poll(&waits, 1, ms_until(limit)) <= 0) return;
    const ssize_t n = send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return;  // who asked has left
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

std::string http_reply(std::string_view request, int port, const ServeAnswer& answer) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const size_t first = line.find(' '), second = line.rfind(' ');
  if (request.find("\r\n\r\n") == std::string_view::npos || first == std::string_view::npos || second <= first + 1 ||
      !line.substr(second + 1).starts_with("HTTP/1."))
    return reply_text(refusal(400, "no request of HTTP/1"), true);
  const std::string_view method = line.substr(0, first);
  if (method != "GET" && method != "HEAD") return reply_text(refusal(405, "GET only"), true);
  if (!is_own_host(host_of(request), port)) return reply_text(refusal(403, fmt::format("ask for 127.0.0.1:{}", port)), true);
  try {
    return reply_text(answer(std::string(line.substr(first + 1, second - first - 1))), method == "GET");
  } catch (const std::exception& e) {  // a run that is restarted cuts the files that are read: the next request may go well
    return reply_text(refusal(500, e.what()), method == "GET");
  }
}

LocalServer::LocalServer(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (socket_ < 0) fail<FaultError>("cannot make a socket: {}", std::strerror(errno));
  const int yes = 1;
  setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket_, any, sizeof address) != 0 || listen(socket_, 16) != 0 || getsockname(socket_, any, &size) != 0) {
    const int error = errno;
    close(socket_);
    fail<UsageError>("--serve {}: cannot listen on 127.0.0.1:{}: {}; --serve 0 takes a free port", port, port, std::strerror(error));
  }
  port_ = ntohs(address.sin_port);
}

LocalServer::~LocalServer() { close(socket_); }

void LocalServer::serve_one(const ServeAnswer& answer, int wait_ms) {
  pollfd waits{.fd = socket_, .events = POLLIN, .revents = 0};
  if (poll(&waits, 1, wait_ms) <= 0) return;
  const int fd = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  if (const std::string request = read_request(fd); !request.empty()) send_all(fd, http_reply(request, port_, answer));
  close(fd);
}

}  // namespace hlat
