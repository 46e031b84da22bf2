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

// The host of a rank; empty: there is no such rank.
std::string host_of_rank(const std::vector<Host>& hosts, int rank) {
  for (const Host& h : hosts) {
    if (rank >= 0 && rank < h.slots) return h.name;
    rank -= h.slots;
  }
  return {};
}

// Of the one object in an output; an exception where there is none.
nlohmann::json object_in(const std::string& output) {
  const size_t begin = std::min(output.find('{'), output.size()), end = output.rfind('}');
  return nlohmann::json::parse(output.substr(begin, end - begin + 1));
}

std::string end_words(int code, const std::string& errors) {
  const std::string said = failure_words(errors);
  return fmt::format("it ended with code {}{}", code, said.empty() ? "" : ": " + said);
}

std::string limit_words(const HostsCheck& check, const std::string& errors) {
  const std::string said = last_words(errors);
  return fmt::format("it was ended after {} s ({}){}", check.seconds, check.why, said.empty() ? "" : "; its last words: " + said);
}

}  // namespace

CheckResult read_check(const std::string& output, const std::vector<Host>& hosts) try {
  const nlohmann::json report = object_in(output);
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

CheckResult read_model_check(const std::string& output) try {
  const nlohmann::json report = object_in(output);
  CheckResult result{.passed = report.at("well").get<bool>(), .bad = {}, .words = {}};
  for (const auto& check : report.at("checks")) {
    if (check.at("state") != "failed") continue;
    result.wrong = true;
    result.words += fmt::format("{}{}: {}", result.words.empty() ? "" : "; ", check.at("name").get<std::string>(),
                                check.at("words").get<std::string>());
  }
  return result;
} catch (const nlohmann::json::exception&) {
  return {};
}

CheckResult check_hosts(const RankCommand& command, Starter starter, const LaunchConfig& launch, const std::string& job, Agents& agents,
                        const std::function<bool()>& stop, const HostsCheck& check) {
  Child child(start_words(command, starter, launch, geteuid() == 0),
              {.variables = command.variables, .take_errors = true, .take_output = true});
  std::string output, errors;
  const double limit = now_s() + static_cast<double>(check.seconds);
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
  CheckResult result = check.read(output);
  if (ended) result.exit_code = child.status().value_or(-1);
  result.passed = result.passed && ended && child.status() == 0;
  if (!ended)
    result.words = stop() ? "it was ended by a signal" : limit_words(check, errors);
  else if (!result.passed && result.words.empty())
    result.words = end_words(result.exit_code, errors);
  return result;
}

}  // namespace hlat
