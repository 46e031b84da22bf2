// A report as its reader uses it, in Chromium without a window: every plot shows something, a drag zooms all of them, a double click shows
// all again, a click on a title sorts. What is done on the page stands in report_browser.js.
#include <gtest/gtest.h>

#include <cstdio>
#include <iterator>
#include <set>
#include <sstream>

#include "support/browser.h"
#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

// Two sources in two stages, monitors, held-out documents and a step that is passed over.
constexpr const char* kShown = R"(model: {layers: 2, hidden: 32, heads: 2, ffn: 64, vocab: 2048}
train: {steps: 40, seq_len: 32, global_batch: 8, micro_batch: 4}
optim: {warmup: 2}
run: {sample_lines: 0}
device: {backend: cpu, threads: 1}
monitor: {every: 4}
checkpoint: {every: 20}
data:
  tokenizer: data/tokenizer.json
  sources: [{name: web, path: data/stories.jsonl, weight: 3}, {name: books, path: data/stories.jsonl}]
  stages: [{from_step: 21, weights: {web: 1, books: 3}}]
  validation: 0.1
  validate_every: 8
)";

TEST(ReportInABrowser, ZoomsResetsAndSorts) {
  if (!has_browser()) GTEST_SKIP() << "no chromium on this machine: tools/setup.sh long installs it";
  const TempDir dir;
  ASSERT_EQ(run_binary({"data", "sample", "--out", dir.path("data"), "--documents", "300"}).exit_code, 0);
  dir.write("c.yaml", kShown);
  for (const auto& [folder, rate] : {std::pair("run.dir=a", "optim.lr=1e-2"), {"run.dir=b", "optim.lr=1e-4"}}) {
    const RunResult trained = run_binary({"train", "--config", "c.yaml", "--skip", "7", folder, rate}, dir.path());
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
  const RunResult made = run_binary({"report", dir.path("b"), dir.path("a"), "--out", dir.path("page.html")});
  if (made.err.find("built without uPlot") != std::string::npos) GTEST_SKIP() << "built without uPlot";
  ASSERT_EQ(made.exit_code, 0) << made.err;
  std::string html = slurp(dir.path("page.html"));
  // A clock that leaps does not wait for frames, so frames follow the clock.
  html.insert(html.find("<script "), "<script>requestAnimationFrame = (f) => setTimeout(() => f(performance.now()), 16);</script>");
  html.insert(html.rfind("</body>"), "<script>" + slurp(source_path("tests/long/report_browser.js")) + "</script>");

  const OpenedPage page = open_in_browser(dir.write("used.html", html), dir.path("profile"), 60'000);
  ASSERT_TRUE(page.opened);
  EXPECT_EQ(page.told("error"), "");
  EXPECT_EQ(page.said, "") << "the console is silent";
  EXPECT_EQ(page.told("wrong"), "");
  ASSERT_EQ(page.told("done"), "1");
  std::printf("%s checks of: %s\n", page.told("checks").c_str(), page.told("seen").c_str());
  std::istringstream words(page.told("seen"));
  const std::set<std::string> seen(std::istream_iterator<std::string>(words), {});
  for (const char* id : {"table", "loss", "grad_norm", "lr", "val_loss", "split", "timeline", "losses", "monitors/grad_norm",
                         "monitors/source_loss/web", "mixture", "shares", "ledger", "plan"})
    EXPECT_TRUE(seen.contains(id)) << id;
}

}  // namespace
}  // namespace hlat::test
