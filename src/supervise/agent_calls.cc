#include "supervise/agent_calls.h"

#include <nlohmann/json.hpp>

namespace hlat {

namespace {

constexpr double kSayWho = 5;         // seconds
constexpr size_t kMostCallers = 256;  // agents of that many hosts may call in one moment

std::string text_in(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::vector<int> AgentCalls::fds() const {
  std::vector<int> out{listener_.fd()};
  for (const Caller& caller : callers_) out.push_back(caller.line.fd());
  return out;
}

std::vector<AgentCall> AgentCalls::take(double now) {
  while (auto line = listener_.accept()) {
    if (callers_.size() == kMostCallers) callers_.pop_front();
    callers_.push_back({std::move(*line), now});
  }
  std::vector<AgentCall> calls;
  std::erase_if(callers_, [&](Caller& caller) {
    const std::vector<std::string> lines = caller.line.receive();
    if (lines.empty()) return caller.line.closed() || now - caller.since > kSayWho;
    const nlohmann::json hello = nlohmann::json::parse(lines.front(), nullptr, false);
    if (hello.is_object() && !text_in(hello, "hello").empty())
      calls.push_back({.line = std::move(caller.line),
                       .token = text_in(hello, "hello"),
                       .name = text_in(hello, "name"),
                       .version = text_in(hello, "version")});
    return true;
  });
  return calls;
}

}  // namespace hlat
