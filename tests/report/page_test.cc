// The page is one file that loads nothing, whatever the runs are called, and stays small for long runs.
#include "report/page.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <regex>

#include "base/error.h"
#include "report/page_parts.h"
#include "report/report_data.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

ReportRun run_of(int64_t steps, const std::string& name) {
  ReportRun run{.name = name,
                .overview = {},
                .steps = {},
                .evaluations = {},
                .clock = {},
                .notes = {},
                .config = {},
                .mixture = {},
                .plan = {},
                .ledger = {}};
  run.overview.folder = name;
  for (int64_t s = 1; s <= steps; ++s) {
    run.steps.step.push_back(s), run.steps.tokens.push_back(1000 * s), run.clock.push_back(static_cast<double>(s));
    for (const char* key : {"loss", "grad_norm", "param_norm", "lr", "step_s", "tokens_per_s", "mfu", "hfu", "data_wait_s", "comm_s",
                            "comm_wait_s", "goodput"})
      run.steps.curves[key].add(s, 1 + std::abs(std::sin(static_cast<double>(s) * 1.2345)));
    if (s % 10 == 0)
      for (const char* key : {"grad_norm", "weight_norm", "update_ratio", "unchanged", "max_activation", "max_lse"}) {
        ListCurve& list = run.steps.lists[key];
        list.step.push_back(s);
        list.values.emplace_back(34, std::sin(static_cast<double>(s)));
      }
  }
  return run;
}

TEST(ReportPage, NamesCannotLeaveTheirScript) {
  const nlohmann::ordered_json data = {{"name", "</script><script>alert(1)</script><!-- \xff {{style}}"}};
  const std::string text = script_json(data);
  EXPECT_EQ(text.find('<'), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(text)["name"].get<std::string>().substr(0, 20), "</script><script>ale");
}

TEST(ReportPage, LoadsNothingAndIsSmallForAHundredThousandSteps) {
  if (page_file("uPlot.iife.js").empty()) GTEST_SKIP() << "built without uPlot";
  const std::string html =
      page_html(report_data({run_of(100'000, "</script>{{uplot}}"), run_of(50, "short")}, {.version = "1", .made_at = 1}));
  EXPECT_TRUE(html.starts_with(kPageMark));
  EXPECT_LT(html.size(), 5u << 20);
  const std::regex loads(R"(<(script|img|link|iframe)[^>]*\s(src|href)\s*=|@import|url\(\s*['"]?http|import\()", std::regex::icase);
  const size_t data_begin = html.find("id=\"data\">"), data_end = html.find("</script>", data_begin);
  const std::string around = html.substr(0, data_begin) + html.substr(data_end, 4000);
  EXPECT_FALSE(std::regex_search(around, loads));
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos) << "and the browser is told so";
  EXPECT_NE(html.find("MIT License"), std::string::npos);
  const auto data = nlohmann::json::parse(html.substr(data_begin + 10, data_end - data_begin - 10));
  EXPECT_EQ(data["runs"][0]["row"]["name"], "</script>{{uplot}}");
  EXPECT_EQ(data["runs"][1]["curves"]["loss"][0].size(), 50u) << "a short run is whole";
  EXPECT_LE(data["runs"][0]["curves"]["loss"][0].size(), 1500u);
  EXPECT_LE(data["runs"][0]["lists"]["grad_norm"]["step"].size(), 240u);
}

TEST(ReportPage, ListsKeepTheirLargestValues) {
  ListCurve list;
  for (int64_t s = 1; s <= 1000; ++s) list.step.push_back(s), list.values.push_back({1, s == 321 ? 99.0 : 2.0, s == 900 ? NAN : 3.0});
  const auto data = list_data(list, 10);
  ASSERT_EQ(data["step"].size(), 10u);
  EXPECT_EQ(data["rows"][3][1], 99.0);
  EXPECT_EQ(data["rows"][4][1], 2.0);
  EXPECT_TRUE(data["rows"][8][2].is_null()) << "not finite";
}

TEST(ReportPage, TheSplitOfAStepIsThereWhereLinesLackAPart) {
  ReportRun run = run_of(4, "a");
  run.steps.curves["step_s"] = {.step = {1, 2, 3, 4}, .value = {4, 4, 4, 4}};
  run.steps.curves["data_wait_s"] = {.step = {1, 2, 3, 4}, .value = {1, 1, 1, 1}};
  run.steps.curves["comm_wait_s"] = {.step = {2, 4}, .value = {2, 3}};
  const auto split = report_data({run}, {})["runs"][0]["split"];
  ASSERT_TRUE(split.is_object());
  EXPECT_EQ(split["comm"], (std::vector<double>{0, 2, 0, 3}));
  EXPECT_EQ(split["rest"], (std::vector<double>{3, 1, 3, 0}));
}

TEST(ReportPage, TheMixtureAsReadIsSharesAndNoCurves) {
  ReportRun run = run_of(4, "a");
  EXPECT_TRUE(report_data({run}, {})["runs"][0]["shares"].is_null()) << "a run of one source, or of an older version";
  run.steps.curves["rows/web"] = {.step = {1, 2, 3, 4}, .value = {3, 3, 2, 0}};
  run.steps.curves["rows/books"] = {.step = {1, 2, 3, 4}, .value = {1, 1, 2, 4}};
  const auto data = report_data({run}, {})["runs"][0];
  EXPECT_EQ(data["shares"]["step"], (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(data["shares"]["shares"]["web"], (std::vector<double>{0.75, 0.75, 0.5, 0}));
  EXPECT_FALSE(data["curves"].contains("rows/web"));
  EXPECT_TRUE(data["curves"].contains("loss"));
}

TEST(ReportPage, TheTableOfAStudyHasTheNumbersThatItIsSortedBy) {
  const auto data = report_data({run_of(4, "a")}, {.version = "1",
                                                   .results = {{"point", "runs", "gap"}, {"x", "1 of 2", ""}, {"y", "2", "+0.1235"}},
                                                   .result_values = {{{}, 1, NAN}, {{}, 2, 0.12345678901}}});
  EXPECT_EQ(nlohmann::json::parse(data["result_values"].dump()), nlohmann::json::parse("[[null, 1, null], [null, 2, 0.12345678901]]"))
      << "not rounded, which would make equals of them";
}

TEST(ReportPage, WritesOverReportsOnly) {
  const test::TempDir dir;
  const std::string page = std::string(kPageMark) + "x";
  write_page(dir.path("r.html"), page);
  write_page(dir.path("r.html"), page + "y");
  EXPECT_EQ(test::slurp(dir.path("r.html")), page + "y");
  dir.write("notes.txt", "mine");
  EXPECT_NE(message_of([&] { write_page(dir.path("notes.txt"), page); }).find("is no report of hlat"), std::string::npos);
  EXPECT_EQ(test::slurp(dir.path("notes.txt")), "mine");
  EXPECT_NE(message_of([&] { write_page(dir.path(), page); }).find("is a folder"), std::string::npos);
  EXPECT_THROW(write_page(dir.path("no/such/r.html"), page), UsageError);
  ASSERT_EQ(mkfifo(dir.path("pipe").c_str(), 0600), 0);
  EXPECT_NE(message_of([&] { write_page(dir.path("pipe"), page); }).find("is a device or pipe"), std::string::npos) << "and does not wait";
}

}  // namespace
}  // namespace hlat
