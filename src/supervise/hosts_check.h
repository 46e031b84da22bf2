// hlat check on the hosts of a mesh, before ranks are started there: which hosts --short found bad, and what --model found wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/config.h"
#include "supervise/agents.h"
#include "supervise/rank_start.h"

namespace hlat {

struct CheckResult {
  bool passed = false;
  std::vector<std::string> bad;  // hosts, as the launcher names them
  std::string words;             // what was found; empty: it has not said
  int exit_code = -1;            // -1: it was ended
  bool wrong = false;            // --model: a check has failed
};

// What hlat check --json has printed. Ranks are found on `hosts` as they were started: `slots` on each, in order.
CheckResult read_check(const std::string& output, const std::vector<Host>& hosts);
// The same of --model: checks that failed.
CheckResult read_model_check(const std::string& output);

// One of the two, and the time that it may take.
struct HostsCheck {
  int64_t seconds = 0;
  std::string why = {};  // where the limit comes from, for people
  std::function<CheckResult(const std::string& output)> read = {};
};

// Runs it; `stop` ends it early. Nothing of it is left afterwards.
CheckResult check_hosts(const RankCommand& command, Starter starter, const LaunchConfig& launch, const std::string& job, Agents& agents,
                        const std::function<bool()>& stop, const HostsCheck& check);

}  // namespace hlat
