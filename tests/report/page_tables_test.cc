// Tables of the page, whose scripts run with as much of a browser as they need: a click on a title sorts, and lists say what they lack.
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

constexpr const char* kNodes = R"(
class Node {
  constructor(tag) { Object.assign(this, { tag, kids: [], attributes: {}, listeners: {}, dataset: {}, classList: { remove() {} } }); }
  append(...kids) { this.kids.push(...kids); }
  replaceChildren(...kids) { this.kids = kids; }
  setAttribute(key, value) { this.attributes[key] = String(value); }
  addEventListener(type, listener) { this.listeners[type] = listener; }
  all(tag) { return this.kids.flatMap((k) => (k instanceof Node ? [...(k.tag === tag ? [k] : []), ...k.all(tag)] : [])); }
  querySelector(selector) { return this.all("div").find((n) => "." + n.attributes.class === selector); }
  get textContent() { return this.kids.map((k) => (k instanceof Node ? k.textContent : String(k))).join(""); }
}
const known = {}, getElementById = (id) => (known[id] = known[id] || new Node("div"));
const document = { createElement: (tag) => new Node(tag), createElementNS: (space, tag) => new Node(tag), getElementById };
)";

// What the script prints behind those of the page that make tables and sections.
std::string said_by_page(const std::string& script) {
  const test::TempDir dir;
  std::string all = kNodes;
  for (const char* name : {"format.js", "axis.js", "plot.js", "tables.js", "sections.js", "timeline.js"})
    all += test::slurp(test::source_path(std::string("src/report/page/") + name)) + "\n";
  const std::string file = dir.write("page.js", all + script);
  const int status = std::system(("node " + file + " >" + dir.path("said") + " 2>&1").c_str());
  EXPECT_EQ(status, 0);
  return test::slurp(dir.path("said"));
}

class PageTables : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v node >/dev/null 2>&1") != 0) GTEST_SKIP() << "no node on this machine";
  }
};

// Numbers decide where words would not: 980 MiB are less than 1.2 GiB, 12.3k more than 950, +0.2 more than -0.1.
TEST_F(PageTables, ResultsOfAStudySortByAClick) {
  EXPECT_EQ(said_by_page(R"(
const results = [["point", "runs", "final_loss", "gap", "planned_bytes", "tokens_per_s", "alarms"],
  ["lr=10", "2", "3.1000 ±0.1000", "", "1.2 GiB", "950", "growth 12"],
  ["lr=9", "1 of 2", "2.9000", "-0.1000 [-0.2, 0.1] 3.4 sd", "980 MiB", "12.3k", "leak 3"],
  ["base", "0 of 2", "", "+0.2000", "", "", ""]];
const values = [[null, 2, 3.1, null, 1.2e9, 950, 12], [null, 1, 2.9, -0.1, 9.8e8, 12300, 3], [null, 0, null, 0.2, null, null, null]];
const grid = new Node("div");
sortedCard(grid, "results", values.length, (again) => resultsTable(results, values, again));
const table = () => grid.all("table")[0], heads = () => table().all("th");
const told = (what) => console.log(what + ": " + table().all("tr").slice(1).map((row) => row.all("td")[0].textContent).join(" "));
told(grid.kids[0].dataset.points + " rows of " + table().attributes.class);
for (const title of ["point", "runs", "final_loss", "gap", "planned_bytes", "tokens_per_s", "alarms"])
  for (const way of ["up", "down"]) {
    heads().find((h) => h.textContent === title).listeners.click();
    const by = heads().filter((h) => (" " + h.attributes.class + " ").includes(" by "));
    told(by.map((h) => h.textContent + (h.attributes.class.includes("up") ? " up" : " down")).join());
  }
console.log(table().all("tr")[1].all("td").map((cell) => cell.textContent).join(" | "));
)"),
            "3 rows of sorts: lr=10 lr=9 base\n"
            "point up: base lr=9 lr=10\n"
            "point down: lr=10 lr=9 base\n"
            "runs up: base lr=9 lr=10\n"
            "runs down: lr=10 lr=9 base\n"
            "final_loss up: lr=9 lr=10 base\n"
            "final_loss down: lr=10 lr=9 base\n"
            "gap up: lr=9 base lr=10\n"
            "gap down: base lr=9 lr=10\n"
            "planned_bytes up: lr=9 lr=10 base\n"
            "planned_bytes down: lr=10 lr=9 base\n"
            "tokens_per_s up: lr=10 lr=9 base\n"
            "tokens_per_s down: lr=9 lr=10 base\n"
            "alarms up: lr=9 lr=10 base\n"
            "alarms down: lr=10 lr=9 base\n"
            "lr=10 | 2 | 3.1000 ±0.1000 |  | 1.2 GiB | 950 | growth 12\n");
}

TEST_F(PageTables, TheTableOfRunsSortsByItself) {
  EXPECT_EQ(said_by_page(R"(
const runs = [["b", 3.5], ["c", null], ["a", 2.25]].map(([name, loss]) => ({ row: { name, loss, state: "finished" } })), grid = new Node("div");
sortedCard(grid, "results", 1, (again) => resultsTable([["point"], ["y"], ["x"]], [[null], [null]], again));
sortedCard(grid, "table", runs.length, (again) => runTable(runs, again));
const names = () => grid.all("table").map((t) => t.all("tr").slice(1).map((row) => row.all("td")[0].textContent).join(" ")).join(", ");
const click = (title) => { grid.all("th").find((h) => h.textContent === title).listeners.click(); console.log(title + ": " + names()); };
["loss", "loss", "run", "point"].forEach(click);
)"),
            "loss: y x, a b c\n"
            "loss: y x, b a c\n"
            "run: y x, a b c\n"
            "point: x y, a b c\n");
}

TEST_F(PageTables, ListsSayWhatTheyLack) {
  EXPECT_EQ(said_by_page(R"(
const list = (n, kind) => Array.from({ length: n }, () => ({ kind }));
const runs = [{ row: { name: "a" }, losses: list(200), alarms: list(7), events: [...list(399, "fault"), ...list(1, "save")], all: { losses: 1234, alarms: 7, events: 399, saves: 50 } },
  { row: { name: "b" }, losses: [], alarms: list(200), events: list(400, "spike"), all: { losses: 0, alarms: 201, events: 1000000, saves: 0 } }];
const told = (what, notes) => console.log(what + ": " + notes.map((n) => n.attributes.class + " " + n.textContent).join("; "));
told("one", lossCuts([runs[0]]));
for (const [what, cuts] of Object.entries({ lossCuts, alarmCuts, eventCuts, saveCuts })) told(what, cuts(runs));
)"),
            "one: note 200 of 1,234 shown: the latest, and of the others those furthest above the median before\n"
            "lossCuts: note a: 200 of 1,234 shown: the latest, and of the others those furthest above the median before\n"
            "alarmCuts: note b: 200 of 201 shown: the latest, and of the others those furthest from their limit\n"
            "eventCuts: note b: 400 of 1,000,000 shown: first what no other list has, then spikes, skips and alarms, of each the latest\n"
            "saveCuts: note a: 1 of 50 shown: the latest saves, where other events leave room\n");
}

TEST_F(PageTables, SectionsHaveTheNotesOfTheirLists) {
  EXPECT_EQ(said_by_page(R"(
const made = (name, n) => ({
  row: { name, folder: name, state: "finished" }, axis: { step: [1, 5], tokens: [1, 5], time: [1, 9] }, mixture: [], shares: null,
  time: { wall_s: 10, useful_s: 5, lost: [], attempts: [{ begin: 0, ready: 1, end: 10, from: 0, reached: 5, ranks: 1, words: "" }] },
  losses: Array.from({ length: n }, () => ({ step: 1, kind: "spike", loss: 1, documents: [] })), alarms: Array.from({ length: n }, () => ({ rule: "leak" })),
  events: ["fault", "save"].map((kind) => ({ t: 1, step: 1, kind, words: kind })),
  all: { losses: n + 1000, alarms: n, events: 5, saves: 1 }, ledger: { step: 1200, total: [], repeats: 3 } });
shown = [made("a", 2), made("b", 1)];
timeSection(), dataSection();
for (const card of getElementById("main").all("section")) console.log(card.attributes["data-plot"] + ": " + card.all("p").map((p) => p.textContent).join("; "));
)"),
            "timeline: a: 1 of 5 shown: first what no other list has, then spikes, skips and alarms, of each the latest; "
            "b: 1 of 5 shown: first what no other list has, then spikes, skips and alarms, of each the latest\n"
            "goodput_parts: \n"
            "alarms: \n"
            "losses: a: 2 of 1,002 shown: the latest, and of the others those furthest above the median before; "
            "b: 1 of 1,001 shown: the latest, and of the others those furthest above the median before\n"
            "events: 1 of 5 shown: first what no other list has, then spikes, skips and alarms, of each the latest\n"
            "ledger: up to step 1,200; 3 documents came twice in one row\n");
}

TEST_F(PageTables, TicksOfAZoomedTimeAxisDiffer) {
  EXPECT_EQ(said_by_page(R"(
for (const [low, high] of [[0, 3], [61, 62], [3599, 3602], [7190, 7220], [93600, 93800], [93600, 180000], [0, 1209600]]) {
  const ticks = niceTicks(low, high, 4, "time");
  console.log(ticks.map((t) => instant(t, ticks[1] - ticks[0])).join(", "));
}
)"),
            "0, 1s, 2s, 3s\n"
            "1m 01s, 1m 01.5s, 1m 02s\n"
            "59m 59s, 1h 00m 00s, 1h 00m 01s, 1h 00m 02s\n"
            "1h 59m 50s, 2h 00m 00s, 2h 00m 10s, 2h 00m 20s\n"
            "1d 02h 00m, 1d 02h 01m, 1d 02h 02m, 1d 02h 03m\n"
            "1d 06h, 1d 12h, 1d 18h, 2d\n"
            "0, 5d, 10d\n");
}

TEST_F(PageTables, TheTimeLineShowsWhenTheStepsInViewWereMade) {
  EXPECT_EQ(said_by_page(R"(
const made = (...time) => ({ axis: { step: [10, 20, 30], tokens: [100, 200, 300], time } });
const fast = made(1, 2, 3), slow = made(50, 100, 300), later = { axis: { step: [40, 50], tokens: [400, 500], time: [7, 8] } }, none = { axis: { step: [], tokens: [], time: [] } };
const told = (mode, zoom, times = null) => { Object.assign(view, { mode, zoom, times }); console.log(mode + " " + zoom + ": " + JSON.stringify(timesInView([fast, slow, later, none]))); };
told("step", null);
told("step", [15, 30]);
told("tokens", [150, 200]);
told("step", [35, 45]);
told("step", [31, 39]);
told("time", [2, 80]);
told("step", [15, 30], [5, 6]);
zoomTo(null);
console.log(view.zoom, view.times);
)"),
            "step null: null\n"
            "step 15,30: [1.5,300]\n"
            "tokens 150,200: [1.5,100]\n"
            "step 35,45: [6.125,7.5]\n"
            "step 31,39: null\n"
            "time 2,80: [2,80]\n"
            "step 15,30: [5,6]\n"
            "null null\n");
}

}  // namespace
}  // namespace hlat
