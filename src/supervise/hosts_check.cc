#include "supervise/hosts_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "supervise/child.h"
#include "supervise/start_output.h"

namespace hlat {

namespace {

constexpr double kCheckLimit = 300;  // seconds; the short form takes some

// The host of a rank; empty: there is no such rank.
std::string host_of_rank(const std::vector<Host>& hosts, int rank) {
  for (const Host& h : hosts) {
    if (rank >= 0 && rank < h.slots) return h.name;
    rank -= h.slots;
  }
  return {};
}

}  // namespace

CheckResult read_check(const std::string& output, const std::vector<Host>& hosts) try {
  const size_t begin = output.find('{'), end = output.rfind('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  const auto report = nlohmann::json::parse(output.substr(begin, end - begin + 1));
  CheckResult result{.passed = report.at("well").get<bool>(), .bad = {}, .words = {}};
  for (const auto& finding : report.at("findings")) {
    if (finding.at("severity") != "fault") continue;
    const int rank = finding.at("rank");
    const std::string host = host_of_rank(hosts, rank);
    result.words += fmt::format("{}rank {} on {}: {} {}", result.words.empty() ? "" : "; ", rank, host.empty() ? "no known host" : host,
                                finding.at("part").get<std::string>(), finding.at("words").get<std::string>());
    if (!host.empty() && std::find(result.bad.begin(), result.bad.end(), host) == result.bad.end()) result.bad.push_back(host);
  }
  return result;
} catch (const nlohmann::json::exception&) {
  return {};
}

CheckResult check_hosts(const RankCommand& command, Starter starter, const LaunchConfig& launch, const std::string& job, Agents& agents,
                        const std::function<bool()>& stop) {
  Child child(start_words(command, starter, launch, geteuid() == 0),
              {.variables = command.variables, .take_errors = true, .take_output = true});
  std::string output, errors;
  const double limit = now_s() + kCheckLimit;
  const auto read = [&] {
    output += child.read_output();
    errors += child.read_errors();
  };
  while (child.running() && now_s() < limit && !stop()) {
    agents.poll(0.1);
    read();
  }
  const bool ended = !child.running();
  if (!ended) agents.end(job, {.hurry = {}});
  child.end();
  read();
  CheckResult result = read_check(output, command.hosts);
  result.passed = result.passed && ended && child.status() == 0;
  if (!ended)
    result.words = stop() ? "it was ended by a signal" : fmt::format("it had not ended after {:.0f} s", kCheckLimit);
  else if (!result.passed && result.words.empty())
    result.words = fmt::format("it ended with code {}: {}", child.status().value_or(-1), last_words(errors));
  return result;
}

}  // namespace hlat
