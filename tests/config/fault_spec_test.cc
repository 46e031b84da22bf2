// How faults are written: what is read, what is refused, and with which words.
#include "config/fault_spec.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "config/load.h"
#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

std::vector<FaultSpec> read_sound(const std::string& text) {
  std::vector<std::string> problems;
  std::vector<FaultSpec> faults = parse_faults(text, problems);
  EXPECT_TRUE(problems.empty()) << text << ": " << (problems.empty() ? "" : problems.front());
  return faults;
}

std::vector<std::string> wrong_in(const std::string& text) {
  std::vector<std::string> problems;
  parse_faults(text, problems);
  return problems;
}

TEST(FaultSpec, FaultsAreReadInOrder) {
  const auto faults = read_sound("kill rank=1 step=20; hang step=40 seconds=0.5 ;slow rank=any step=3 steps=2 factor=1.5;");
  ASSERT_EQ(faults.size(), 3u);
  EXPECT_EQ(faults[0], (FaultSpec{.kind = FaultKind::kill, .rank = 1, .step = 20}));
  EXPECT_EQ(faults[1], (FaultSpec{.kind = FaultKind::hang, .step = 40, .seconds = 0.5}));
  EXPECT_EQ(faults[2], (FaultSpec{.kind = FaultKind::slow, .step = 3, .factor = 1.5, .steps = 2}));
  EXPECT_TRUE(read_sound("").empty());
  EXPECT_TRUE(read_sound(" ; \n").empty());
}

TEST(FaultSpec, WordsOfOtherKinds) {
  const auto faults =
      read_sound("hang_start phase=mpi rank=0\tseconds=2; nan step=7 tensor=layers.0.wq; lost step=8 axis=tp; disk_full; spike step=2");
  ASSERT_EQ(faults.size(), 5u);
  EXPECT_EQ(faults[0].phase, "mpi");
  EXPECT_EQ(faults[1].tensor, "layers.0.wq");
  EXPECT_EQ(faults[2].axis, "tp");
  EXPECT_EQ(faults[3].step, 0);
  EXPECT_EQ(faults[4].text(), "spike step=2");
}

TEST(FaultSpec, AFaultIsKnownByOneText) {
  EXPECT_EQ(read_sound("kill step=20 rank=1 times=3")[0].text(), "kill rank=1 step=20");
  EXPECT_EQ(read_sound(" kill   rank=1 step=20")[0].text(), "kill rank=1 step=20");
  EXPECT_EQ(read_sound("stop step=2")[0].text(), read_sound("stop rank=any step=2")[0].text());
  const auto twice = read_sound("kill rank=1 step=20; kill step=20 rank=1 times=2");
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(twice[0].times, 3);
}

TEST(FaultSpec, WhatATextSaysIsReadBack) {
  for (const std::string text : {"slow rank=2 step=9 steps=4 factor=2.5 seconds=0.25", "hang_start rank=any phase=data",
                                 "lost rank=3 step=1 axis=pp", "bitflip_weight rank=0 step=5 tensor=norm"})
    EXPECT_EQ(read_sound(text)[0].text(), text);
}

TEST(FaultSpec, EveryProblemIsTold) {
  const std::vector<std::string> expected = {
      "there is no fault kil; did you mean kill?",
      "hang: it takes rank, step, seconds, times, not phase",
      "hang: it needs step=",
      "stop: step=0: must be an integer above 0",
      "stop: rank=-1: must be a rank, from 0 on, or any",
      "hang_start: phase=dta: there is no phase dta; did you mean data?",
      "slow: step is given twice",
      "slow: factor=x: must be a number above 0",
      "lost: 5 is no key=value",
      "lost: axis=: needs a value",
      "lost: it needs step=",
  };
  EXPECT_EQ(wrong_in("kil rank=1; hang phase=mpi; stop step=0 rank=-1; hang_start phase=dta; slow step=2 step=3 factor=x; lost 5 axis="),
            expected);
}

TEST(FaultSpec, KindsAreOfOneTable) {
  std::set<std::string_view> names;
  for (int k = 0; k < kFaultKinds; ++k) {
    const FaultKindRow& row = fault_row(static_cast<FaultKind>(k));
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_NE(row.keys.find("times"), std::string_view::npos) << row.name;
  }
  const std::string docs = test::slurp(test::source_path("docs/faults.md"));
  for (const FaultKindRow& row : fault_kinds()) {
    EXPECT_NE(docs.find("| `" + std::string(row.name) + "` |"), std::string::npos) << row.name << " is not in docs/faults.md";
    EXPECT_NE(docs.find(std::string(row.help)), std::string::npos) << "docs/faults.md has another help of " << row.name;
  }
  for (const FaultPhase& phase : fault_phases()) EXPECT_NE(docs.find("`" + std::string(phase.name) + "`"), std::string::npos) << phase.name;
}

TEST(FaultSpec, KindsOfRandomFaults) {
  std::vector<std::string> problems;
  EXPECT_EQ(parse_fault_kinds("stop, kill,stop", problems), (std::vector{FaultKind::stop, FaultKind::kill}));
  EXPECT_TRUE(problems.empty());
  const std::vector<FaultKind> usual = parse_fault_kinds("", problems);
  EXPECT_EQ(usual.size(), 10u);
  EXPECT_EQ(std::count(usual.begin(), usual.end(), FaultKind::bitflip_weight), 0);
  parse_fault_kinds("kilt, check_disk", problems);
  EXPECT_EQ(problems, (std::vector<std::string>{"there is no fault kilt; did you mean kill?",
                                                "check_disk cannot come at random: plant it with fault.inject"}));
}

std::string refused(const std::vector<std::string>& words) {
  try {
    load_config("", words);
    return "";
  } catch (const UsageError& e) {
    return e.what();
  }
}

TEST(FaultSpec, AConfigWithWrongFaultsIsRefused) {
  const std::string text = refused({"fault.inject=kil step=1; stop", "fault.kinds=nap", "train.steps=0"});
  EXPECT_NE(text.find("fault.inject = kil step=1; stop: there is no fault kil; did you mean kill?"), std::string::npos) << text;
  EXPECT_NE(text.find("stop: it needs step="), std::string::npos) << text;
  EXPECT_NE(text.find("fault.kinds = nap: there is no fault nap; did you mean nan?"), std::string::npos) << text;
  EXPECT_NE(text.find("train.steps"), std::string::npos) << text;
  EXPECT_NE(refused({"fault.inject=corrupt", "checkpoint.keep=1"}).find("set checkpoint.keep=2"), std::string::npos);
  EXPECT_EQ(refused({"fault.inject=corrupt; kill rank=3 step=7"}), "");
}

}  // namespace
}  // namespace hlat
