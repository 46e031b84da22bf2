// The studies of the tree, and the curves of the HLAT study in docs/precision.md: all are configs that can be trained.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "config/load.h"
#include "config/precision_row.h"
#include "config/resolve.h"
#include "config/validate.h"
#include "study/grid.h"
#include "study/results.h"
#include "support/message_of.h"
#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

using Keys = std::vector<std::string>;  // key=value

std::vector<std::string> study_names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(source_path("studies")))
    if (const std::string name = file.path().stem(); !name.starts_with("base-")) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<PlannedRun> runs_of(const std::string& name) {
  return plan_runs(read_study(source_path("studies/" + name + ".yaml"), collectable_columns()), {}, "out");
}

void expect_valid(const Config& config, const std::string& what) {
  for (const Violation& v : validate(config)) ADD_FAILURE() << what << ": " << v.keys.front() << ": " << v.message;
}

TEST(TreeStudies, ExpandToValidConfigsAndAreListed) {
  const std::vector<std::string> names = study_names();
  EXPECT_GE(names.size(), 16u);
  const std::string listed = slurp(source_path("docs/studies.md"));
  for (const std::string& name : names) {
    const Study study = read_study(source_path("studies/" + name + ".yaml"), collectable_columns());
    EXPECT_FALSE(study.baseline.empty()) << name;
    EXPECT_NE(listed.find("`" + name + ".yaml`"), std::string::npos) << name << " is not in docs/studies.md";
    std::vector<PlannedRun> runs;
    ASSERT_NO_THROW(runs = plan_runs(study, {}, "out")) << name << ": " << message_of([&] { plan_runs(study, {}, "out"); });
    EXPECT_GE(runs.size(), 2u) << name;
    for (const PlannedRun& p : runs) expect_valid(with_ranks(p.config, p.ranks), name + " " + p.run.name);
  }
}

// A point whose keys say what the others' defaults are would be the same run twice, under two names.
TEST(TreeStudies, HaveNoRunTwice) {
  for (const std::string& name : study_names()) {
    std::vector<PlannedRun> runs = runs_of(name);
    for (PlannedRun& p : runs) p.config.precision = precision_row(p.config), p.config.run.dir.clear();
    for (size_t a = 0; a < runs.size(); ++a)
      for (size_t b = a + 1; b < runs.size(); ++b)
        EXPECT_FALSE(runs[a].config == runs[b].config) << name << ": " << runs[a].run.name << " is " << runs[b].run.name;
  }
}

// Where the type in which gradients add up is a line of the study, they must add up.
TEST(TreeStudies, OfSumsHaveSeveralMicroBatches) {
  for (const char* name : {"operators", "recipe", "slides"})
    for (const PlannedRun& p : runs_of(name)) {
      const Config c = with_ranks(p.config, p.ranks);
      EXPECT_GE(c.train.global_batch / (c.train.micro_batch * c.parallel.dp), 4) << name << " " << p.run.name;
      EXPECT_EQ(c.parallel.tp > 1 && c.parallel.dp > 1, name != std::string("recipe")) << name << " " << p.run.name;
    }
}

// A row of the table: what it is called, and its configs; several are alternatives.
struct StudyLine {
  std::string name;
  std::vector<Keys> configs;
};

// The words in backticks; the text before each is what joins it to those before: "or" begins another config.
std::vector<Keys> configs_in(const std::string& cell, const Keys& before) {
  const Keys same = cell.starts_with("the same") ? before : Keys{};
  std::vector<Keys> configs = {same};
  for (size_t at = cell.find('`'), last = 0; at != std::string::npos; at = cell.find('`', last)) {
    const size_t end = cell.find('`', at + 1);
    if (const std::string between = cell.substr(last, at - last); between.find(" or ") != std::string::npos) configs.push_back(same);
    std::istringstream words(cell.substr(at + 1, end - at - 1));
    for (std::string word; words >> word;) configs.back().push_back(word);
    last = end + 1;
  }
  return configs;
}

std::vector<StudyLine> study_lines() {
  const std::string page = slurp(source_path("docs/precision.md"));
  const size_t begin = page.find("## The curves of the HLAT study as configs"), end = page.find("\n## ", begin + 1);
  std::istringstream table(page.substr(begin, end - begin));
  std::vector<StudyLine> lines;
  for (std::string row; std::getline(table, row);) {
    const size_t bar = row.find(" | ");
    if (!row.starts_with("| ") || bar == std::string::npos || row.starts_with("| curve ")) continue;
    const Keys before = lines.empty() ? Keys{} : lines.back().configs.back();
    lines.push_back({row.substr(2, bar - 2), configs_in(row.substr(bar + 3, row.size() - bar - 5), before)});
  }
  return lines;
}

TEST(StudyLines, AreConfigsThatValidate) {
  const std::vector<StudyLine> lines = study_lines();
  ASSERT_GE(lines.size(), 15u);
  for (const StudyLine& line : lines)
    for (Keys keys : line.configs) {
      EXPECT_FALSE(keys.empty()) << line.name << ": no config";
      for (const char* word : {"parallel.tp=2", "parallel.dp=2", "train.global_batch=32", "train.micro_batch=4"}) keys.emplace_back(word);
      Config config;
      ASSERT_NO_THROW(config = load_config("", keys).config) << line.name << ": " << message_of([&] { load_config("", keys); });
      expect_valid(config, line.name);
    }
}

// The parser reads what the page says: three lines as a person does.
TEST(StudyLines, AreReadAsTheyAreMeant) {
  const std::vector<StudyLine> lines = study_lines();
  const auto find = [&](const std::string& part) {
    const auto found = std::find_if(lines.begin(), lines.end(), [&](const StudyLine& l) { return l.name.find(part) != std::string::npos; });
    return found == lines.end() ? std::vector<Keys>{} : found->configs;
  };
  EXPECT_EQ(find("slide 26: SR/master weights"), (std::vector<Keys>{{"train.precision=mixed_sr"}}));
  EXPECT_EQ(find("decay on norms"), (std::vector<Keys>{{"optim.decay_norms=true"}, {"optim.decay_norms=false"}}));
  const std::vector<Keys> drift = find("its drift over tp");
  ASSERT_EQ(drift.size(), 1u);
  EXPECT_EQ(drift[0].front(), "train.precision=bf16_sr");
  EXPECT_EQ(drift[0].back(), "precision.keyed_noise=false");
  EXPECT_EQ(drift[0].size(), 7u);
}

// studies/slides.yaml has every line of slides 26, 27 and 37, and no other.
TEST(StudyLines, OfTheSlidesAreTrainedByTheirStudy) {
  std::vector<std::string> in_study, in_table;
  for (const PlannedRun& p : runs_of("slides")) in_study.push_back(precision_words(p.config));
  for (const StudyLine& line : study_lines())
    if (line.name.starts_with("slide ") && !line.name.starts_with("slide 29"))
      for (const Keys& keys : line.configs) in_table.push_back(precision_words(load_config("", keys).config));
  EXPECT_EQ(std::set(in_study.begin(), in_study.end()), std::set(in_table.begin(), in_table.end()));
}

}  // namespace
}  // namespace hlat::test
