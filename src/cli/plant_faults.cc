#include "cli/plant_faults.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "cli/print.h"
#include "runtime/job_processes.h"

namespace hlat {

namespace {

std::vector<int> processes_of_host(const RunGuard& guard, int own_rank) {
  std::vector<int> pids;
  if (const int agent = guard.flight().ring().agent_pid; agent > 0) pids.push_back(agent);
  for (const auto& [rank, process] : job_processes([](const char* name) { return std::getenv(name); }))
    if (rank != own_rank) pids.push_back(process.pid);
  return pids;
}

}  // namespace

int this_attempt() {
  const char* value = std::getenv(kAttemptVariable);
  if (value == nullptr || *value == 0) return 1;
  const std::string_view text = value;
  int attempt = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), attempt);
  if (error != std::errc() || end != text.data() + text.size() || attempt < 1)
    fail<UsageError>("environment variable {} = {}: must be an integer above 0", kAttemptVariable, text);
  return attempt;
}

std::unique_ptr<fault::Injector> plant_faults(const Config& config, const Launch& launch, bool fresh, RunGuard& guard) {
  if (!fault::plants_faults(config.fault)) return nullptr;
  fault::InjectorSetup setup{.rank = launch.rank, .ranks = launch.ranks, .attempt = this_attempt(), .fresh = fresh};
  setup.say = [&guard](const std::string& text) {
    print_err(fmt::format("\nhlat: {}\n", text));
    guard.note(text);
  };
  setup.host_processes = [&guard, rank = launch.rank] { return processes_of_host(guard, rank); };
  auto injector = std::make_unique<fault::Injector>(config, std::move(setup));
  guard.start().on_begin([faults = injector.get()](const std::string& phase) { faults->at_phase(phase); });
  return injector;
}

}  // namespace hlat
