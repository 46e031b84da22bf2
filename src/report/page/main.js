// Puts the page together, and renews it where hlat report --serve is behind it.
let report = null;

function complain(words) {
  const line = document.getElementById("problem");
  line.hidden = false;
  line.textContent = words;
  document.documentElement.dataset.error = words;
}
addEventListener("error", (event) => complain("a script of this page failed: " + event.message));

function bar() {
  const modes = document.getElementById("modes"), runs = document.getElementById("runs");
  modes.replaceChildren(...Object.entries(MODES).map(([mode, word]) => el("button", { type: "button", class: view.mode === mode ? "on" : null, onclick: () => { view.mode = mode; view.zoom = null; render(); } }, word)));
  const toggle = (i) => {
    view.hidden.has(i) ? view.hidden.delete(i) : view.hidden.add(i);
    if (view.hidden.size === report.runs.length) view.hidden.clear();
    render();
  };
  runs.replaceChildren(...report.runs.map((r) => el("span", { class: "chip" + (view.hidden.has(r.index) ? " off" : ""), title: r.row.folder, onclick: () => toggle(r.index) }, el("i", { style: "background:" + r.color }), r.row.name)));
}

function tableSection() {
  const grid = section("Runs"), node = card(grid, null, "table");
  const fill = () => node.querySelector(".scroll").replaceChildren(runTable(report.runs, fill));
  fill();
  node.dataset.points = report.runs.length;
}

// Whether lists are open, by their order on the page.
const openLists = () => [...document.querySelectorAll("main details")].map((d) => d.open);

function render() {
  const top = scrollY, open = openLists();
  plots.length = 0;
  shown = report.runs.filter((r) => !view.hidden.has(r.index));
  document.getElementById("main").replaceChildren();
  document.getElementById("made").textContent = `${report.runs.length} run${report.runs.length === 1 ? "" : "s"}, ${report.made_at.slice(0, 19).replace("T", " ")} UTC, hlat ${report.version}`;
  bar();
  for (const part of [tableSection, lossSection, evaluationSection, speedSection, timeSection, monitorSection, dataSection, planSection]) part();
  document.querySelectorAll("main details").forEach((d, i) => { d.open = open[i] || false; });
  scrollTo(0, top);
}

function take(data) {
  report = data;
  report.runs.forEach((r, i) => { r.index = i; r.color = colorOf(i); });
  render();
}

async function renew() {
  try {
    const answer = await fetch("/data.json?since=" + encodeURIComponent(report.state || ""));
    if (answer.status === 200) take(await answer.json());
    if (answer.status === 500) complain("the runs cannot be read now: " + (await answer.text()));
    else document.getElementById("problem").hidden = true;
  } catch (problem) {
    complain("hlat report --serve does not answer any more: this is what it said last");
  }
  setTimeout(renew, 1000 * report.refresh_s);
}

const began = performance.now();
take(JSON.parse(document.getElementById("data").textContent));
document.getElementById("reset").addEventListener("click", () => zoomTo(null));
let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(() => plots.forEach((p) => p.resize()), 120); });
if (report.refresh_s > 0) setTimeout(renew, 1000 * report.refresh_s);
// For tests: what was drawn, and how long it took.
Object.assign(document.documentElement.dataset, { ready: "1", plots: plots.length, ms: Math.round(performance.now() - began) });
