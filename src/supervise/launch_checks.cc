#include "supervise/launch_checks.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/machine.h"
#include "flight/flight_ring.h"
#include "supervise/rank_start.h"

namespace hlat {

namespace {

constexpr int64_t kShortLimit = 300;  // seconds
constexpr int64_t kCheckGrace = 1;    // seconds: a check that has failed on one rank has nothing to save on the others
constexpr int kNoProgram = 127;       // the exit code of a shell
constexpr int kTries = 3;             // of a check of the model that does not come to its end

}  // namespace

std::vector<std::string> LaunchChecks::bad_hosts(const std::vector<Host>& hosts) const {
  const CheckResult result =
      run(setup_.check, hosts, "all ranks are well",
          {.seconds = kShortLimit, .why = "it takes a few", .read = [&](const std::string& text) { return read_check(text, hosts); }});
  if (result.passed || stop_()) return {};
  setup_.say("hlat check: " + result.words);
  return result.bad;
}

bool LaunchChecks::check_model(const std::vector<Host>& hosts) {
  // It opens the data, as the start of the run does.
  const CheckResult result =
      run(setup_.check_model, hosts, "the model is well",
          {.seconds = setup_.config.parallel.start_timeout_s, .why = "parallel.start_timeout_s", .read = read_model_check});
  if (result.passed || stop_()) {
    cut_off_ = 0;
    return true;
  }
  const std::string words = "hlat check --model: " + result.words;
  if (result.exit_code == kUsage || result.exit_code == kNoProgram) throw UsageError(words);
  if (result.wrong || result.exit_code == kNumerical) throw NumericalError(words);
  if (result.exit_code == kBug) throw CheckFailed(words);
  if (++cut_off_ == kTries) {
    const std::string often = fmt::format("{}, {} times in a row", words, kTries);
    if (result.exit_code == kFailed) throw Error(often);
    throw FaultError(often);
  }
  setup_.say(words + "; the check is made again");
  return false;
}

CheckResult LaunchChecks::run(const std::vector<std::string>& words, const std::vector<Host>& hosts, const std::string& passed,
                              const HostsCheck& check) const {
  const double begin = now_s();
  const LaunchConfig& launch = setup_.config.launch;
  const Starter starter = starter_of(launch, hosts, setup_.in_slurm_job);
  const RankCommand command = rank_command(words, hosts, starter, {{kFlightVariable, job_}}, kCheckGrace, folder_);
  CheckResult result = check_hosts(command, starter, launch, job_, agents_, stop_, check);
  journal_.check(now_s() - begin, result.passed, result.passed ? passed : result.words);
  return result;
}

}  // namespace hlat
