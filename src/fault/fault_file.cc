#include "fault/fault_file.h"

#include <fmt/chrono.h>

#include <chrono>
#include <fstream>

#include "base/file.h"
#include "base/json_text.h"
#include "base/machine.h"

namespace hlat::fault {

namespace {

constexpr const char* kFaultFile = "faults.jsonl";

// Lines of a process that died while it wrote one are not looked at.
std::map<std::string, int64_t> read_fired(const std::filesystem::path& file) {
  std::map<std::string, int64_t> fired;
  std::ifstream in(file, std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object() || entry.value("random", false) || !entry.contains("fault") || !entry["fault"].is_string()) continue;
    ++fired[entry["fault"].get<std::string>()];
  }
  return fired;
}

std::string fault_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - seconds).count();
  return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(seconds.count())), ms);
}

bool ends_within_a_line(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in || in.tellg() <= 0) return false;
  in.seekg(-1, std::ios::end);
  return in.get() != '\n';
}

}  // namespace

FaultFile::FaultFile(std::filesystem::path run_folder, bool fresh) : folder_(std::move(run_folder)) {
  if (!fresh) fired_ = read_fired(folder_ / kFaultFile);
}

int64_t FaultFile::fired(const std::string& fault) const {
  const auto found = fired_.find(fault);
  return found == fired_.end() ? 0 : found->second;
}

void FaultFile::add(const FiredFault& f) const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);  // a fault of the start-up may come before the run folder
  const nlohmann::ordered_json entry{{"time", fault_time()}, {"fault", f.fault},     {"random", f.random}, {"rank", f.rank},
                                     {"step", f.step},       {"attempt", f.attempt}, {"host", host_name()}};
  const std::string begin = ends_within_a_line(folder_ / kFaultFile) ? "\n" : "";
  OutputFile(folder_ / kFaultFile, OutputFile::Mode::append).write(begin + json_text(entry) + "\n");
  sync_to_disk(folder_ / kFaultFile);
  sync_to_disk(folder_);
}

}  // namespace hlat::fault
