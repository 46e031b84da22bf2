#include "dist/saving_run.h"

#include <gtest/gtest.h>

#include <csignal>

#include "checkpoint/checkpoint_folder.h"
#include "support/checkpoint_content.h"
#include "support/paths.h"

namespace hlat::test {

namespace fs = std::filesystem;

std::map<std::string, std::string> IoFault::variables() const {
  std::map<std::string, std::string> v = {{"LD_PRELOAD", io_faults_library()},
                                          {"HLAT_FAULT", action},
                                          {"HLAT_FAULT_CALL", call},
                                          {"HLAT_FAULT_AT", std::to_string(at)},
                                          {"HLAT_FAULT_MS", std::to_string(ms)}};
  if (calls > 0) v["HLAT_FAULT_CALLS"] = std::to_string(calls);
  if (rank >= 0) v["HLAT_FAULT_RANK"] = std::to_string(rank);
  if (!path.empty()) v["HLAT_FAULT_PATH"] = path;
  return v;
}

SavingRun::SavingRun(int ranks, const Words& more) : ranks_(ranks), more_(more) {}

std::unique_ptr<Job> SavingRun::start(const std::optional<IoFault>& fault, const Words& launcher) const {
  Words words = {"train", "--config", "tiny.yaml", "--json", "run.dir=" + folder()};
  words.insert(words.end(), more_.begin(), more_.end());
  Words all_launcher = {"--bind-to", "none"};
  all_launcher.insert(all_launcher.end(), launcher.begin(), launcher.end());
  std::map<std::string, std::string> variables;
  if (fault) variables = fault->variables();
  variables["HLAT_FAULT_NOTE"] = dir_.path("note");
  fs::remove(dir_.path("note"));
  return std::make_unique<Job>(ranks_, words, all_launcher, variables);
}

RunResult SavingRun::run(const std::optional<IoFault>& fault) const { return start(fault)->wait(240); }

bool SavingRun::struck() const { return fs::exists(dir_.path("note")); }

std::vector<int64_t> SavingRun::saved() const { return checkpoint_steps(checkpoints()); }

int64_t SavingRun::latest() const {
  const auto steps = saved();
  return steps.empty() ? 0 : steps.back();
}

std::string SavingRun::content(int64_t step) const { return checkpoint_content(checkpoint_path(checkpoints(), step)); }

std::vector<nlohmann::json> SavingRun::lines(const std::string& file) const {
  std::ifstream in(folder() + "/" + file);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line) && !in.eof();) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::vector<nlohmann::json> SavingRun::events(const std::string& kind) const {
  auto all = lines("events.jsonl");
  std::erase_if(all, [&](const nlohmann::json& event) { return event["kind"] != kind; });
  return all;
}

std::string SavingRun::log() const { return slurp(folder() + "/log.txt"); }

std::vector<double> SavingRun::losses() const {
  std::vector<double> values;
  for (const auto& line : metrics()) {
    EXPECT_EQ(line["step"].get<size_t>(), values.size() + 1) << "every step once, in order";
    values.push_back(line["loss"]);
  }
  return values;
}

void SavingRun::await_step(int64_t step) const {
  const bool came = within(120, [&] {
    const auto all = metrics();
    return !all.empty() && all.back()["step"] >= step;
  });
  if (!came) throw std::runtime_error("no step " + std::to_string(step) + " after two minutes");
}

void kill_all(const Job& job) {
  for (const auto& [rank, pid] : job.ranks()) kill(pid, SIGKILL);
  kill(-job.pid(), SIGKILL);
}

}  // namespace hlat::test
