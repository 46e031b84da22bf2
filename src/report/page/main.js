// Puts the page together, and renews it where hlat report --serve is behind it.
let report = null;

// What is wrong, by who told it: a script that failed did so for good, the server may answer again.
const problems = {};
function complain(who, words) {
  problems[who] = words;
  const line = document.getElementById("problem"), text = Object.values(problems).filter(Boolean).join("; ");
  line.hidden = !text;
  line.textContent = text;
  if (text) document.documentElement.dataset.error = text;
}
const failed = (words) => complain("script", "a script of this page failed: " + words);
addEventListener("error", (event) => failed(event.message));

const isHidden = (r) => view.hidden.has(r.row.folder);

function bar() {
  const modes = document.getElementById("modes"), runs = document.getElementById("runs");
  modes.replaceChildren(...Object.entries(MODES).map(([mode, word]) => el("button", { type: "button", class: view.mode === mode ? "on" : null, onclick: () => { view.mode = mode; view.zoom = view.times = null; render(); } }, word)));
  const toggle = (r) => {
    isHidden(r) ? view.hidden.delete(r.row.folder) : view.hidden.add(r.row.folder);
    render();
  };
  runs.replaceChildren(...report.runs.map((r) => el("span", { class: "chip" + (isHidden(r) ? " off" : ""), title: r.row.folder, onclick: () => toggle(r) }, el("i", { style: "background:" + r.color }), r.row.name)));
}

function tableSection() {
  if (report.results.length > 0) sortedCard(section("Results"), "results", report.results.length - 1, (again) => resultsTable(report.results, report.result_values, again));
  const grid = section("Runs");
  sortedCard(grid, "table", report.runs.length, (again) => runTable(report.runs, again));
  if (report.settings.length > 0) card(grid, "settings that differ", "settings", settingsTable(report));
}

// Whether lists are open, by their order on the page.
const openLists = () => [...document.querySelectorAll("main details")].map((d) => d.open);

function render() {
  const top = scrollY, open = openLists();
  plots.length = 0;
  if (report.runs.every(isHidden)) view.hidden.clear();
  shown = report.runs.filter((r) => !isHidden(r));
  document.getElementById("main").replaceChildren();
  document.getElementById("made").textContent = `${report.runs.length} run${report.runs.length === 1 ? "" : "s"}, ${report.made_at.slice(0, 19).replace("T", " ")} UTC, hlat ${report.version}`;
  bar();
  for (const part of [tableSection, lossSection, evaluationSection, speedSection, timeSection, monitorSection, dataSection, planSection]) part();
  document.querySelectorAll("main details").forEach((d, i) => { d.open = open[i] || false; });
  scrollTo(0, top);
}

function take(data) {
  report = data;
  const groups = [...new Set(report.runs.map((r) => r.group ?? r.row.folder))];
  for (const r of report.runs) r.color = colorOf(groups.indexOf(r.group ?? r.row.folder));
  document.title = document.getElementById("title").textContent = report.study ? "hlat study " + report.study : "hlat report";
  render();
}

async function renew() {
  let data = null;
  try {
    const answer = await fetch("/data.json?since=" + encodeURIComponent(report.state || ""));
    if (answer.status === 200) data = await answer.json();
    complain("server", answer.status === 500 ? "the runs cannot be read now: " + (await answer.text()) : "");
  } catch (problem) {
    complain("server", "hlat report --serve does not answer any more: this is what it said last");
  }
  setTimeout(renew, 1000 * report.refresh_s);
  try {
    if (data) take(data);
  } catch (problem) {
    failed(problem.message);
  }
}

const began = performance.now();
take(JSON.parse(document.getElementById("data").textContent));
document.getElementById("reset").addEventListener("click", () => zoomTo(null));
let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(() => plots.forEach((p) => p.resize()), 120); });
if (report.refresh_s > 0) setTimeout(renew, 1000 * report.refresh_s);
// For tests: what was drawn, and how long it took.
Object.assign(document.documentElement.dataset, { ready: "1", plots: plots.length, ms: Math.round(performance.now() - began) });
