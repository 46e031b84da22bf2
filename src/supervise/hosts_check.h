// hlat check --short on the hosts of a mesh, before ranks are started there: which hosts it found bad.
#pragma once

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
};

// What hlat check --json has printed. Ranks are found on `hosts` as they were started: `slots` on each, in order.
CheckResult read_check(const std::string& output, const std::vector<Host>& hosts);

// Runs it, for some minutes at most; `stop` ends it early. Nothing of it is left afterwards.
CheckResult check_hosts(const RankCommand& command, Starter starter, const LaunchConfig& launch, const std::string& job, Agents& agents,
                        const std::function<bool()>& stop);

}  // namespace hlat
