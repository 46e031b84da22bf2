// A small web server for one page, on this machine alone: 127.0.0.1, GET and HEAD, one request at a time, each with limits of size and
// time. Requests under another host's name are refused, so that a web page of elsewhere cannot read a report through the browser.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hlat {

struct Served {
  int status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string body = {};
};

// What to answer for a path with its query, "/data.json?since=3".
using ServeAnswer = std::function<Served(const std::string& path)>;

class LocalServer {
 public:
  explicit LocalServer(int port);  // 0: a free one. UsageError: it is taken or not allowed
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  int port() const { return port_; }
  // Waits at most so long for a request and answers it.
  void serve_one(const ServeAnswer& answer, int wait_ms);

 private:
  int socket_ = -1, port_ = 0;
};

// The whole answer to a request's text; port: that of the server, whose names are the hosts that are taken. Where `answer` throws, status
// 500 with its words.
std::string http_reply(std::string_view request, int port, const ServeAnswer& answer);

}  // namespace hlat
