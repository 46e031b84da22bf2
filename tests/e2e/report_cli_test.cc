// hlat report over the folder of a real run: the file, the table, the terminal, wrong input, and the page in a browser without a window.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "support/browser.h"
#include "support/paths.h"
#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

using nlohmann::json;

// One run for all tests: training takes seconds.
class Report : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    const RunResult trained =
        run_binary({"train", "--config", nano_config(), "run.dir=" + dir_->path("run"), "run.sample_lines=0", "device.backend=cpu",
                    "train.steps=6", "train.global_batch=2", "train.micro_batch=2", "train.seq_len=32", "optim.warmup=2",
                    "checkpoint.every=3", "data.validation=0.2", "data.validate_every=2"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static std::string run() { return dir_->path("run"); }
  // Nothing but the message says so: a report that fails is to fail the tests.
  static bool has_plots() {
    return run_binary({"report", run(), "--out", dir_->path("probe.html")}).err.find("built without uPlot") == std::string::npos;
  }
  static OpenedPage opened(const std::string& page) {
    const OpenedPage found = open_in_browser(page, dir_->path("profile"));
    EXPECT_TRUE(found.opened);
    return found;
  }
  static inline TempDir* dir_ = nullptr;
};

TEST_F(Report, TableAndTerminal) {
  const RunResult table = run_binary({"report", run(), "--json"});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  const json row = json::parse(table.out)["runs"][0];
  EXPECT_EQ(row["name"], "run");
  EXPECT_EQ(row["state"], "finished");
  EXPECT_EQ(row["step"], 6);
  EXPECT_EQ(row["steps"], 6);
  EXPECT_EQ(row["tokens"], 6 * 64);
  EXPECT_TRUE(row["val_loss"].is_number());
  EXPECT_EQ(row["alarms"], 0);
  const RunResult text = run_binary({"report", "--text", run()});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  for (const char* words : {"loss\n", "gradient norm", "learning rate", "tokens/s", "step 6", "finished"})
    EXPECT_NE(text.out.find(words), std::string::npos) << words;
}

TEST_F(Report, TheRunKeepsItsPlanAndItsLedger) {
  const json plan = json::parse(slurp(run() + "/plan.json")), ledger = json::parse(slurp(run() + "/ledger.json"));
  EXPECT_GT(plan["bytes"]["total"], 0);
  EXPECT_TRUE(plan["warnings"].is_array());
  EXPECT_EQ(ledger["total"][0]["tokens"], 6 * 64);
}

TEST_F(Report, WrongInputIsToldWithExitCode2) {
  std::filesystem::create_directories(dir_->path("empty"));
  std::filesystem::create_directories(dir_->path("young"));
  dir_->write("young/events.jsonl", "");
  dir_->write("mine.html", "<html>mine</html>");
  const std::string out = dir_->path("new.html");
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
      {{"report", dir_->path("nowhere"), "--out", out}, "there is no folder"},
      {{"report", dir_->path("empty"), "--out", out}, "is no run folder"},
      {{"report", dir_->path("young"), "--out", out}, "has no metrics yet"},
      {{"report", "--text"}, "needs a run folder"},
      {{"report", run(), "--out", dir_->path("mine.html")}, "is no report of hlat"},
      {{"report", run(), "--out", dir_->path("no/such/file.html")}, "there is no folder"},
      {{"report", run(), "--out", dir_->path("empty")}, "is a folder"},
      {{"report", run(), "--serve", "70000"}, "a port is a number"},
      {{"report", run(), "--text", "--json"}, "one of them"},
  };
  for (const auto& [args, words] : rows) {
    const RunResult r = run_binary(args);
    EXPECT_EQ(r.exit_code, 2) << words;
    EXPECT_NE(r.err.find(words), std::string::npos) << r.err;
  }
  EXPECT_EQ(slurp(dir_->path("mine.html")), "<html>mine</html>");
}

TEST_F(Report, WhatIsLeftOutIsTold) {
  std::filesystem::create_directories(dir_->path("some/young"));
  std::filesystem::create_directories(dir_->path("some/torn"));
  dir_->write("some/young/events.jsonl", "");
  dir_->write("some/torn/metrics.jsonl", "{\"step\":1,\"tokens\":8,\"loss\":3}\n\x01\xff garbage\n");
  const RunResult r = run_binary({"report", dir_->path("some"), "--json"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(json::parse(r.out)["runs"].size(), 1u);
  EXPECT_NE(r.err.find("young has no metrics yet: no step is recorded in its metrics.jsonl; it is left out"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("1 damaged line is left out of"), std::string::npos) << r.err;
  dir_->write("some/torn/metrics.jsonl", "x{\"step\":1}\n\x01\xff garbage\n");
  const RunResult none = run_binary({"report", dir_->path("some/torn")});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("some/torn/metrics.jsonl: none of the 2 lines can be read"), std::string::npos) << none.err;
}

TEST_F(Report, WithoutAnOptionItIsText) { EXPECT_EQ(run_binary({"report", run()}).out, run_binary({"report", run(), "--text"}).out); }

TEST_F(Report, OpensInABrowser) {
  if (!has_plots()) GTEST_SKIP() << "built without uPlot";
  if (!has_browser()) GTEST_SKIP() << "no chromium on this machine";
  const std::string page = dir_->path("page.html");
  ASSERT_EQ(run_binary({"report", run(), "--out", page}).exit_code, 0);
  const OpenedPage shown = opened(page);
  EXPECT_EQ(shown.told("ready"), "1");
  EXPECT_EQ(shown.told("error"), "");
  std::printf("the page: %s plots in %s ms\n", shown.told("plots").c_str(), shown.told("ms").c_str());
  const std::string script = shown.dom.substr(0, shown.dom.find("<script type=\"application/json\""));
  const std::regex plot("data-plot=\"([^\"]*)\" data-points=\"([0-9]*)\"");
  std::set<std::string> seen;
  for (std::sregex_iterator m(script.begin(), script.end(), plot), end; m != end; ++m) {
    EXPECT_NE((*m)[2], "0") << (*m)[1];
    seen.insert((*m)[1]);
  }
  for (const char* id : {"table", "loss", "grad_norm", "lr", "val_loss", "tokens_per_s", "split", "timeline", "ledger", "plan"})
    EXPECT_TRUE(seen.contains(id)) << id;
}

// What the page does while it is renewed, with as much of a browser as that needs.
TEST_F(Report, ThePageKeepsWhatIsHiddenChosenAndWrong) {
  if (std::system("command -v node >/dev/null 2>&1") != 0) GTEST_SKIP() << "no node on this machine";
  std::string script = R"(
const nodes = {}, node = () => ({ dataset: {}, style: {}, hidden: true, append() {}, replaceChildren() {}, setAttribute() {}, addEventListener() {}, querySelectorAll: () => [] });
const document = { documentElement: node(), createElement: node, createElementNS: node, querySelectorAll: () => [], getElementById: (id) => (nodes[id] = nodes[id] || node()) };
let answer = null;
const addEventListener = () => {}, setTimeout = () => {}, scrollTo = () => {}, scrollY = 0, fetch = async () => { if (!answer) throw new Error("gone"); return answer; };
const data = (...names) => ({ version: "1", made_at: "2026-01-01T00:00:00", refresh_s: 5, runs: names.map((n) => ({ row: { name: n, folder: "/runs/" + n } })) });
nodes.data = Object.assign(node(), { textContent: JSON.stringify(data("b", "d")) });
)";
  for (const char* name : {"format.js", "axis.js", "plot.js", "sections.js", "main.js"})
    script += slurp(source_path(std::string("src/report/page/") + name)) + "\n";
  for (const char* part : {"table", "loss", "evaluation", "speed", "time", "monitor", "data", "plan"})
    script += "function " + std::string(part) + "Section() {" +
              (part == std::string("loss") ? " if (fails) throw new Error('bad run'); " : "") + "}\n";
  script += R"(
var fails;
const told = (what) => console.log(what + ": " + shown.map((r) => r.row.name).join(" ") + " | " + (nodes.problem.hidden ? "" : nodes.problem.textContent));
const comes = async (...names) => { answer = { status: 200, json: async () => data(...names) }; await renew(); };
(async () => {
  nodes.problem = node();
  view.hidden.add("/runs/b");
  view.chosen = "/runs/d";
  await comes("a", "b", "c", "d");
  told("two more");
  console.log("chosen: " + run().row.name);
  await comes("b");
  told("only a hidden one");
  answer = null;
  await renew();
  told("no server");
  answer = { status: 204 };
  await renew();
  told("a server");
  fails = true;
  await comes("x");
  told("a script");
  fails = false;
  answer = { status: 204 };
  await renew();
  told("no news");
})();
)";
  const std::string file = dir_->write("page.js", script);
  ASSERT_EQ(std::system(("node " + file + " >" + dir_->path("said") + " 2>&1").c_str()), 0) << slurp(dir_->path("said"));
  EXPECT_EQ(slurp(dir_->path("said")),
            "two more: a c d | \n"
            "chosen: d\n"
            "only a hidden one: b | \n"
            "no server: b | hlat report --serve does not answer any more: this is what it said last\n"
            "a server: b | \n"
            "a script: x | a script of this page failed: bad run\n"
            "no news: x | a script of this page failed: bad run\n");
}

TEST_F(Report, TheTableSortsAndSpikesStayOnTheTimeAxis) {
  if (!has_plots()) GTEST_SKIP() << "built without uPlot";
  if (!has_browser()) GTEST_SKIP() << "no chromium on this machine";
  const std::string page = dir_->path("asked.html");
  ASSERT_EQ(run_binary({"report", run(), "--out", page}).exit_code, 0);
  std::string html = slurp(page);
  html.insert(html.rfind("</body>"), R"(<script>
const told = document.documentElement.dataset, rows = [["seed=10", null], ["seed=9", 2], ["a", 3]].map(([name, loss]) => ({ row: { name, loss } }));
const by = (key, up) => { Object.assign(order, { key, up }); return sorted(rows).map((r) => r.row.name).join(" "); };
told.names = by("name", true);
told.losses = by("loss", false);
view.mode = "time";
const [xs, ys] = points({ axis: { step: [1, 2, 3], tokens: [1, 2, 3], time: [5, 5, 5] }, time: { attempts: [] } }, [[1, 2, 3], [2, 99, 2]]);
const again = { axis: { step: [1, 2, 3], tokens: [1, 2, 3], time: [1, 2, 9] }, time: { attempts: [{ ready: 0, from: 0 }, { ready: 8, from: 2 }] } };
told.gap = JSON.stringify(points(again, [[1, 2, 3], [7, 7, 7]]));
const made = { axis: { step: [1, 9], tokens: [1, 9], time: [1, 9] }, losses: [{ step: 5, t: 2, kind: "spike" }], alarms: [], time: { attempts: [] }, mixture: [{ from_step: 1 }, { from_step: 20 }] };
told.marks = marksOf(made).map((m) => m.kind + " " + m.x).join(" ");
told.spike = ys.join(" ") + (xs[0] < xs[1] && xs[1] < xs[2] ? " ascending" : "");
</script>)");
  dir_->write("asking.html", html);
  const OpenedPage asked = opened(dir_->path("asking.html"));
  EXPECT_EQ(asked.told("names"), "a seed=9 seed=10");
  EXPECT_EQ(asked.told("losses"), "a seed=9 seed=10") << "what is not known stands last";
  EXPECT_EQ(asked.told("marks"), "spike 2") << "an event has its own time; what is to come has no mark";
  EXPECT_EQ(asked.told("gap"), "[[1,2,8,9],[7,7,null,7]]") << "no line where no step was made";
  EXPECT_EQ(asked.told("spike"), "2 99 2 ascending");
}

}  // namespace
}  // namespace hlat::test
