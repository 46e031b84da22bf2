#include "burnin/version_check.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/format.h"
#include "burnin/verdict.h"

namespace hlat {

namespace {

// What follows the colon of the first line that begins with `word`.
std::string value_in(const char* file, const std::string& word) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(word)) continue;
    const size_t at = line.find_first_not_of(" \t:=\"", word.size());
    if (at == std::string::npos) return {};
    line = line.substr(at);
    while (!line.empty() && (line.back() == '"' || line.back() == ' ')) line.pop_back();
    return line;
  }
  return {};
}

std::string line_of(const char* file) {
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

// Machines of one kind differ by some MiB.
std::string memory_of_machine() {
  const double bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  return fmt::format("{:.0f} GiB", bytes / static_cast<double>(1 << 30));
}

uint64_t open_file_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

uint64_t shm_bytes() {
  struct statvfs s {};
  return statvfs("/dev/shm", &s) == 0 ? static_cast<uint64_t>(s.f_blocks) * s.f_frsize : 0;
}

}  // namespace

std::map<std::string, std::string> version_facts(const CheckRun& run) {
  utsname system{};
  uname(&system);
  std::map<std::string, std::string> facts{
      {"hlat", run.options.version},
      {"compiler", __VERSION__},
      {"kernel", system.release},
      {"system", value_in("/etc/os-release", "PRETTY_NAME")},
      {"libc", gnu_get_libc_version()},
      {"cpu", value_in("/proc/cpuinfo", "model name")},
      {"cores", fmt::format("{}", std::thread::hardware_concurrency())},
      {"threads", fmt::format("{}", run.config.device.threads > 0 ? run.config.device.threads : run.session.threads())},
      {"memory", memory_of_machine()},
      {"device", run.backend.describe().substr(0, run.backend.describe().find('\n'))},
      {"open files", fmt::format("{}", open_file_limit())},
      {"/dev/shm", format_bytes(shm_bytes())},
      {"huge pages", line_of("/sys/kernel/mm/transparent_hugepage/enabled")},
      {"governor", line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")},
  };
  if (const std::string mpi = run.session.mpi_library(); !mpi.empty()) facts["mpi"] = mpi;
  std::erase_if(facts, [](const auto& fact) { return fact.second.empty(); });
  return facts;
}

PartReport check_versions(const CheckRun& run) {
  run.say("versions");
  std::vector<std::map<std::string, std::string>> all;
  for (const nlohmann::json& j : gather_json(run.world(), version_facts(run))) all.push_back(j);
  PartReport report{.name = "versions", .alignment = "ll"};
  const std::vector<Minority> different = minorities(all);
  report.title =
      different.empty() ? "the same on all ranks" : fmt::format("{} of {} facts differ between ranks", different.size(), all[0].size());
  std::map<std::string, std::string> usual = all[0];
  for (const Minority& m : different) {
    usual[m.fact] = m.usual;
    for (const auto& [value, ranks] : m.others)
      for (const size_t r : ranks)
        report.findings.push_back(
            run.finding("versions", r, fmt::format("differ: {} is {}, {} on most", m.fact, value, m.usual), Severity::warning));
  }
  for (const auto& [fact, value] : usual) report.rows.push_back({fact, value});
  report.json["usual"] = usual;
  constexpr uint64_t kFewFiles = 1024, kSmallShm = uint64_t{64} << 20;
  for (const auto& j : gather_json(run.world(), {{"files", open_file_limit()},
                                                 {"shm", shm_bytes()},
                                                 {"speaks", run.speaks_for_host()},
                                                 {"ranks", run.session.local_ranks()},
                                                 {"rank", run.rank()}})) {
    if (!j["speaks"].get<bool>()) continue;
    const size_t r = j["rank"];
    if (const uint64_t files = j["files"]; files < kFewFiles)
      report.findings.push_back(run.finding(
          "versions", r, fmt::format("allow {} open files only (ulimit -n): raise it to 4096 or more", files), Severity::warning));
    if (const uint64_t shm = j["shm"]; j["ranks"].get<int>() > 1 && shm < kSmallShm)
      report.findings.push_back(run.finding(
          "versions", r, fmt::format("leave {} in /dev/shm, through which its ranks talk", format_bytes(shm)), Severity::warning));
  }
  return report;
}

}  // namespace hlat
