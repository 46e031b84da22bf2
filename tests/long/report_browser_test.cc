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
RunResult train_shown(const TempDir& dir, const std::string& name, const std::string& lr) {
  const std::string stories = dir.path("data/stories.jsonl");
  return run_binary({"train",
                     "--config",
                     nano_config(),
                     "--skip",
                     "7",
                     "run.dir=" + dir.path(name),
                     "run.sample_lines=0",
                     "device.backend=cpu",
                     "device.threads=1",
                     "model.layers=2",
                     "model.hidden=32",
                     "model.heads=2",
                     "model.ffn=64",
                     "model.vocab=2048",
                     "train.steps=40",
                     "train.global_batch=8",
                     "train.micro_batch=4",
                     "train.seq_len=32",
                     "optim.warmup=2",
                     "optim.lr=" + lr,
                     "monitor.every=4",
                     "checkpoint.every=20",
                     "data.tokenizer=" + dir.path("data/tokenizer.json"),
                     "data.sources[0].name=web",
                     "data.sources[0].weight=3",
                     "data.sources[0].path=" + stories,
                     "data.sources[1].name=books",
                     "data.sources[1].path=" + stories,
                     "data.stages[0].from_step=21",
                     "data.stages[0].weights=web:1,books:3",
                     "data.validation=0.1",
                     "data.validate_every=8"});
}

TEST(ReportInABrowser, ZoomsResetsAndSorts) {
  if (!has_browser()) GTEST_SKIP() << "no chromium on this machine: tools/setup.sh long installs it";
  const TempDir dir;
  ASSERT_EQ(run_binary({"data", "sample", "--out", dir.path("data"), "--documents", "300"}).exit_code, 0);
  for (const auto& [name, lr] : {std::pair("a", "1e-2"), {"b", "1e-4"}}) {
    const RunResult trained = train_shown(dir, name, lr);
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
