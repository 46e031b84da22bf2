// The progress line of an evaluation and its estimate.
#include "cli/eval_shown.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/eval_table.h"

namespace hlat {
namespace {

TEST(EvalShown, EstimatesEachKindOfTaskByItsOwnPace) {
  double now = 0;
  ProgressOptions options{.live = true, .now = [&] { return now; }, .width = [] { return 120; }};
  std::ostringstream out;
  EvalShown shown(out, options,
                  {{.name = "piqa", .kind = TaskKind::choice, .examples = 100},
                   {.name = "gsm8k", .kind = TaskKind::generate, .examples = 10},
                   {.name = "boolq", .kind = TaskKind::choice, .examples = 300}});
  now = 10;
  shown.show(0, 50);
  EXPECT_EQ(out.str(), "\rpiqa (1 of 3): 50 of 100 examples, ETA 1m 12s\x1b[K") << "0.2 s for each of 360";
  now = 20;
  shown.show(0, 100);
  now = 30;
  out.str("");
  shown.show(1, 2);
  EXPECT_EQ(out.str(), "\rgsm8k (2 of 3): 2 of 10 examples, ETA 1m 40s\x1b[K") << "8 of 5 s and 300 of 0.2 s";
  out.str("");
  shown.end_line();
  EXPECT_EQ(out.str(), "\r\x1b[K");
}

TEST(EvalShown, InAPipeALineEveryHalfMinute) {
  double now = 0;
  ProgressOptions options{.live = false, .now = [&] { return now; }, .width = [] { return 10; }};
  std::ostringstream out;
  EvalShown shown(out, options, {{.name = "piqa", .kind = TaskKind::choice, .examples = 100}});
  now = 29;
  shown.show(0, 29);
  EXPECT_EQ(out.str(), "");
  now = 31;
  shown.show(0, 31);
  now = 60;
  shown.show(0, 60);
  EXPECT_EQ(out.str(), "piqa (1 of 1): 31 of 100 examples, ETA 1m 09s\n");
  shown.end_line();
  now = 61;
  shown.show(0, 61);
  EXPECT_EQ(out.str(), "piqa (1 of 1): 31 of 100 examples, ETA 1m 09s\npiqa (1 of 1): 61 of 100 examples, ETA 39s\n");
}

TEST(EvalTable, ALimitIsSeenBesideTheNumberOfExamples) {
  NamedMetrics n;
  n.examples = 10, n.available = 1838;
  EXPECT_EQ(examples_text(n), "10 of 1838");
  n.examples = 1838;
  EXPECT_EQ(examples_text(n), "1838");
}

TEST(EvalTable, AWarningOfAllTasksIsToldOnce) {
  Results r;
  for (const char* name : {"a", "b"}) {
    TaskScores t;
    t.name = t.title = name, t.group = "CR", t.warnings = {"the tokenizer differs", std::string("only ") + name};
    t.metrics = {{.key = "acc,none", .value = 0.5, .error = 0.1}};
    r.tasks.push_back(t);
  }
  const std::string text = results_text(r);
  EXPECT_NE(text.find("warning: the tokenizer differs\nwarning: only a\nwarning: only b\n"), std::string::npos) << text;
}

TEST(EvalTable, ATaskThatFailedIsSeenAmongModels) {
  const auto failed = [](const std::string& name, const std::string& group) {
    TaskScores t;
    t.name = name, t.title = name, t.group = group, t.error = "broken";
    return t;
  };
  Results r;
  r.tasks = {failed("PIQA", "CR"), failed("WikiText", "LM")};
  EXPECT_EQ(models_text({r}, {"step"}, "r", {{"2"}}),
            "step      CR  WikiText\n"
            "   2  failed    failed\n");
}

TEST(EvalTable, GroupsWithTheirTasksBelowThem) {
  Results r;
  const auto add = [&](const std::string& name, const std::string& group, double value) {
    TaskScores t;
    t.name = name, t.title = name, t.group = group, t.examples = 50, t.shots = 5;
    t.metrics = {{.key = "acc,none", .value = value, .error = 0.0123}};
    r.tasks.push_back(t);
  };
  add("piqa", "CR", 0.7), add("arc_easy", "CR", 0.5), add("mmlu", "MMLU", 0.25), add("mine", "poetry", 0.1), add("nq_open", "WK", 0.5);
  r.tasks[1].metrics.push_back({.key = "acc_norm,none", .value = 0.52, .error = 0.01});
  EXPECT_EQ(results_text(r),
            "            metric          value  stderr  shots   n\n"
            "MMLU        acc              25.0     1.2\n"
            "  mmlu      acc              25.0     1.2      5  50\n"
            "CR          mean of 2 of 6   60.0     0.9\n"
            "  piqa      acc              70.0     1.2      5  50\n"
            "  arc_easy  acc              50.0     1.2      5  50\n"
            "            acc_norm         52.0     1.0\n"
            "WK          acc, 1 of 2      50.0     1.2\n"
            "  nq_open   acc              50.0     1.2      5  50\n"
            "poetry      acc              10.0     1.2\n"
            "  mine      acc              10.0     1.2      5  50\n");
}

}  // namespace
}  // namespace hlat
