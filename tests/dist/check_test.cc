// hlat check on four ranks: well where nothing is planted, and each planted fault named with its rank and host. --short takes speeds in
// turns where ranks share cores, so none of this depends on how busy the machine is.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "dist/job.h"

namespace hlat::test {
namespace {

struct Checked {
  int exit_code = 0;
  nlohmann::json report;
  std::string err;
  // Of the faults: "matmul 2".
  std::vector<std::string> faults() const {
    std::vector<std::string> names;
    for (const auto& f : report["findings"])
      if (f["severity"] == "fault") names.push_back(f["part"].get<std::string>() + " " + std::to_string(f["rank"].get<int>()));
    return names;
  }
  std::string words(size_t i) const { return report["findings"][i]["words"]; }
};

Checked check(const std::string& inject, const Job::Words& more) {
  Job::Words words = {"check", "--config", "tiny.yaml", "--short", "--json", "run.dir=run", "fault.inject=" + inject};
  words.insert(words.end(), more.begin(), more.end());
  Job job(4, words, {"--bind-to", "none"});
  const RunResult r = job.wait(240);
  EXPECT_FALSE(std::filesystem::exists(job.dir().path("run"))) << "nothing is left behind";
  return {.exit_code = r.exit_code, .report = nlohmann::json::parse(r.out, nullptr, false), .err = r.err};
}

TEST(Check, SoundRanksAreWell) {
  const Checked c = check("", {"parallel.tp=2"});
  EXPECT_EQ(c.exit_code, 0) << c.err << c.report.dump(1);
  EXPECT_EQ(c.report["well"], true);
  EXPECT_EQ(c.report["hosts"].size(), 4u);
  EXPECT_EQ(c.report["comm"]["collectives"].size(), 2u * 4 * 3) << "axes, ops, sizes";
  EXPECT_EQ(c.report["matmul"]["ranks"][3]["wrong"], 0);
  EXPECT_GT(c.report["matmul"]["ranks"][3]["products"], 0);
}

TEST(Check, AWrongProductAndASlowRankAreNamed) {
  const Checked c = check("check_matmul rank=2; check_slow rank=1", {"--only", "matmul"});
  EXPECT_EQ(c.exit_code, 4) << c.err;
  EXPECT_EQ(c.faults(), (std::vector<std::string>{"matmul 2", "matmul 1"})) << c.report.dump(1);
  EXPECT_EQ(c.report["findings"][0]["host"], host_name());
  EXPECT_EQ(c.words(0).find("wrong: "), 0u) << c.words(0);
  EXPECT_NE(c.words(0).find("element (512, 341) is "), std::string::npos) << c.words(0);
  EXPECT_EQ(c.words(1).find("slow: "), 0u) << c.words(1);
}

TEST(Check, ASlowRankIsNamedByItsMessages) {
  for (const char* layout : {"parallel.tp=1", "parallel.pp=2"}) {
    const Checked c = check("check_slow rank=1", {"--only", "comm", layout});
    EXPECT_EQ(c.exit_code, 4) << c.err;
    EXPECT_EQ(c.faults(), std::vector<std::string>{"comm 1"}) << c.report.dump(1);
  }
}

TEST(Check, ACorruptingTransportIsNamed) {
  for (const char* layout : {"parallel.tp=1", "parallel.tp=2"}) {
    const Checked c = check("check_comm rank=2", {"--only", "comm", layout});
    EXPECT_EQ(c.exit_code, 4) << c.err;
    EXPECT_EQ(c.faults(), std::vector<std::string>{"comm 2"}) << c.report.dump(1);
    EXPECT_EQ(c.words(0).find("wrong: what comes from ranks "), 0u) << c.words(0);
  }
}

TEST(Check, AFullDiskIsNamed) {
  const Checked c = check("check_disk rank=3", {"--only", "disk"});
  EXPECT_EQ(c.exit_code, 4) << c.err;
  EXPECT_EQ(c.faults(), std::vector<std::string>{"disk 3"}) << c.report.dump(1);
  EXPECT_EQ(c.words(0).find("full: "), 0u) << c.words(0);
}

}  // namespace
}  // namespace hlat::test
