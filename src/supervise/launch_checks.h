// hlat check on the hosts of a mesh before its ranks are started, where launch.check asks for it: --short finds hosts that are bad, and a
// model that --model finds wrong ends the launch. What they found is an event of the run.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "record/events.h"
#include "supervise/agents.h"
#include "supervise/hosts_check.h"
#include "supervise/launcher.h"

namespace hlat {

class LaunchChecks {
 public:
  // folder: of the launcher's files. job: of the processes of a check. stop ends a check, which then has found nothing. All that is
  // referred to must outlive this.
  LaunchChecks(const LaunchSetup& setup, std::filesystem::path folder, std::string job, Agents& agents, LaunchJournal& journal,
               std::function<bool()> stop)
      : setup_(setup), folder_(std::move(folder)), job_(std::move(job)), agents_(agents), journal_(journal), stop_(std::move(stop)) {}

  std::vector<std::string> bad_hosts(const std::vector<Host>& hosts) const;
  // UsageError, NumericalError, CheckFailed: what no other host would change ends the launch. False: the check did not come to its end, as
  // where a host is gone or too slow, and has to be made again; FaultError when that comes again and again, Error when it ends with code 1
  // again and again, which a host may cause (an error of CUDA) or the run.
  bool check_model(const std::vector<Host>& hosts);

 private:
  CheckResult run(const std::vector<std::string>& words, const std::vector<Host>& hosts, const std::string& passed,
                  const HostsCheck& check) const;

  const LaunchSetup& setup_;
  std::filesystem::path folder_;
  std::string job_;
  Agents& agents_;
  LaunchJournal& journal_;
  std::function<bool()> stop_;
  int cut_off_ = 0;  // checks of the model in a row that did not come to their end
};

}  // namespace hlat
