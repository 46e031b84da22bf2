// The sections of the page. Plots of all runs have a line for each; what cannot be overlaid is of the run that is chosen.
const run = () => shown.find((r) => r.row.folder === view.chosen) || shown[0];
let shown = [];  // runs that are not hidden

function section(title, chosen) {
  const grid = el("div", { class: "grid" });
  const head = el("h2", {}, title);
  if (chosen && shown.length > 1)
    head.append(el("select", { title: "of this run", onchange: (event) => { view.chosen = event.target.value; render(); } },
      shown.map((r) => el("option", { value: r.row.folder, selected: r === run() ? "" : null }, r.row.name))));
  document.getElementById("main").append(head, grid);
  return grid;
}

function card(grid, title, id, ...content) {
  const node = el("section", { class: "card wide", "data-plot": id, "data-points": content.length }, title ? el("h3", {}, title) : null, el("div", { class: "scroll" }, content));
  grid.append(node);
  return node;
}

// A table that is made again by a click on a title.
function sortedCard(grid, id, rows, table) {
  const node = card(grid, null, id), fill = () => node.querySelector(".scroll").replaceChildren(table(fill));
  fill();
  node.dataset.points = rows;
}

// One line for each run that has the curve.
function linesOf(key, more = {}) {
  return shown.filter((r) => r.curves[key]).map((r) => {
    const [xs, ys] = points(r, r.curves[key], more.dots);
    return { name: r.row.name, key: shown.length > 1 ? r.row.name : null, color: r.color, xs, ys, ...more };
  });
}

function curvePlot(grid, id, title, unit, more = {}) {
  const lines = linesOf(id, more.line);
  if (lines.length) addPlot(grid, { id, title, unit, lines, ...more }, shown);
}

function lossSection() {
  const grid = section("Loss");
  const raw = linesOf("loss", { width: 1, alpha: 0.35, key: null }), smooth = linesOf("smooth", { width: 2 });
  smooth.forEach((l) => { l.name += " smooth"; if (shown.length === 1) l.key = "smooth"; });
  if (shown.length === 1 && raw.length) raw[0].key = "loss";
  const floor = linesOf("floor", { width: 1, dash: [4, 4], color: "#8a94a6", key: "entropy of the data" });
  floor.forEach((l, i) => { l.name += " floor"; if (i) l.key = null; });
  const marks = shown.flatMap((r) => marksOf(r).map((m) => ({ ...m, run: r.row.name })));
  if (raw.length) addPlot(grid, { id: "loss", title: "loss", unit: "nats per token", lines: [...raw, ...smooth, ...floor], marks, wide: true, height: 320 }, shown);
  curvePlot(grid, "grad_norm", "gradient norm", "before clipping", { log: "on", line: { width: 1 } });
  curvePlot(grid, "param_norm", "parameter norm", "", {});
  curvePlot(grid, "lr", "learning rate", "", { log: false });
  curvePlot(grid, "val_loss", "validation loss", "nats per token", { line: { dots: true } });
  for (const id of keysLike("val_loss/")) curvePlot(grid, id, "validation loss: " + id.slice(9), "nats per token", { line: { dots: true } });
}

const keysLike = (start) => [...new Set(shown.flatMap((r) => Object.keys(r.curves)))].filter((k) => k.startsWith(start)).sort();

function evaluationSection() {
  const keys = keysLike("eval/");
  if (!keys.length) return;
  const grid = section("Evaluations");
  for (const id of keys) curvePlot(grid, id, id.slice(5), "", { line: { dots: true }, log: false });
}

function speedSection() {
  const grid = section("Speed", true);
  curvePlot(grid, "tokens_per_s", "tokens/s", "", { log: false, text: count, line: { width: 1 } });
  curvePlot(grid, "mfu", "MFU", "share of the measured matmul rate", { log: false, text: percent, line: { width: 1 } });
  curvePlot(grid, "goodput", "goodput so far", "share of the wall time", { log: false, text: percent });
  const r = run(), split = r.split;
  if (!split) return;
  const [xs, data] = points(r, [split.step, split.data]), comm = points(r, [split.step, split.comm])[1], rest = points(r, [split.step, split.rest])[1];
  const sum = (...lists) => xs.map((x, i) => (lists[0][i] == null ? null : lists.reduce((n, l) => n + l[i], 0)));
  const line = (name, color, ys, real) => ({ name, key: name, color, fill: color, width: 0.5, xs, ys, real });
  addPlot(grid, { id: "split", title: "split of a step", unit: "mean time", log: false, aligned: true, text: duration, lines: [
    line("computing", "#53b87c", sum(data, comm, rest), rest),
    line("waiting for messages", "#2f6fed", sum(data, comm), comm), line("waiting for data", "#e8792b", data, data)] }, shown);
}

// Shares of the sources as areas on each other; of(source): its share at each of xs, or null.
function sharePlot(grid, id, title, unit, sources, xs, of, more) {
  const under = xs.map(() => 0);
  const lines = sources.map((s, i) => {
    const real = of(s);
    return { name: s, key: s, color: colorOf(i), fill: colorOf(i), width: 0.5, xs, real, ys: real.map((v, k) => (v == null ? null : (under[k] += v))), ...more };
  });
  addPlot(grid, { id, title, unit, lines: lines.reverse(), aligned: true, log: false, range: [0, 1], text: percent }, shown);
}

// What was read follows the time of the run, and has gaps where it was started again.
function sharesRead(grid, r, sources) {
  const of = (s) => points(r, [r.shares.step, r.shares.shares[s] || r.shares.step.map(() => 0)]);
  sharePlot(grid, "shares", "mixture as read", "share of the tokens", sources, of(sources[0])[0], (s) => of(s)[1]);
}

function dataSection() {
  const r = run();
  if (!r.mixture.length && !r.ledger && !r.shares) return;
  const grid = section("Data", true), steps = r.axis.step;
  const sources = [...new Set([...r.mixture.flatMap((p) => Object.keys(p.shares)), ...Object.keys(r.shares ? r.shares.shares : {})])].sort();
  if (sources.length && r.mixture.length && steps.length) {
    const last = steps[steps.length - 1], parts = r.mixture.filter((p) => p.from_step <= last);
    const xs = [...parts.map((p) => place(r, Math.max(0, p.from_step - 1))), place(r, last)];
    const shares = [...parts, parts[parts.length - 1]].map((p) => p.shares);
    sharePlot(grid, "mixture", "mixture", "share of the tokens, as configured", sources, xs, (s) => shares.map((p) => p[s] || 0), { stepped: true });
  }
  if (r.shares) sharesRead(grid, r, sources);
  if (r.ledger) {
    const ledger = r.ledger, skipped = ledger.skipped_tokens ? `; ${whole(ledger.skipped_tokens)} tokens were read and skipped` : "";
    const until = ledger.step ? `up to step ${whole(ledger.step)}; ` : "";
    const node = card(grid, "ledger: what was read", "ledger", ledgerTable(ledger), el("p", { class: "note" }, `${until}${whole(ledger.repeats || 0)} documents came twice in one row${skipped}`));
    node.classList.remove("wide");
  }
}

// Names of parts: the embedding, the blocks, the head. Blocks count from 0, as in the names of weights and in alarms.
const blockName = (k) => "block " + k;
const partName = (k, n) => (k === 0 ? "embed" : k === n - 1 ? "head" : blockName(k - 1));
const operandName = (k) => ["inputs", "gradients", "weights"][k];
const LISTS = [["grad_norm", "gradient norm", "by part of the model", partName], ["weight_norm", "weight norm", "by part of the model", partName], ["update_ratio", "update to weight ratio", "by part of the model", partName],
  ["unchanged", "weights that the update left unchanged", "share, lost to rounding", partName], ["max_activation", "largest activation", "of what a block and the head get", (k, n) => (k === n - 1 ? "head" : blockName(k))],
  ["max_lse", "largest log-sum-exp of attention", "by block", blockName], ["max_logit", "largest attention logit", "of the probe row, by block", blockName], ["fp8_saturated", "values beyond FP8", "share, by operand", operandName], ["fp8_lost", "values lost to FP8", "share, by operand", operandName],
  ["position_loss", "loss by position", "part of the sequence", (k, n) => `${Math.round((100 * k) / n)}%`]];
const MONITORS = [["moment1_max", "largest first moment", ""], ["moment2_max", "largest second moment", "", { log: "on" }], ["moment2_min", "smallest second moment", "not 0", { log: "on" }], ["probe_loss", "loss on the probe", "nats per token"],
  ["leak", "leak", "change of an earlier loss by later tokens"], ["drift", "drift", "largest difference between replicas"], ["repetition", "repetition", "share of tokens"], ["copy_baseline", "copy baseline", "nats per token"],
  ["repeated_rows", "repeated rows", "share of the batch"], ["update_error", "update error", "share, beyond rounding"]];

function monitorSection() {
  const has = shown.some((r) => Object.keys(r.lists).length || Object.keys(r.curves).some((k) => k.startsWith("monitors/")));
  if (!has) return;
  const grid = section("Monitors", true), r = run();
  for (const [key, title, unit, names] of LISTS)
    if (r.lists[key] && r.lists[key].step.length) addHeat(grid, { id: "monitors/" + key, title, unit, names }, r, shown, r.lists[key]);
  for (const [key, title, unit, more] of MONITORS) curvePlot(grid, "monitors/" + key, title, unit, more);
  for (const key of keysLike("monitors/source_loss/")) curvePlot(grid, key, "loss of " + key.slice(21), "nats per token");
}

function timeSection() {
  const known = shown.filter((r) => r.time.attempts.length);
  if (!known.length) return;
  const grid = section("Time and events", true);
  const line = card(grid, "attempts and events", "timeline", timelineKeys(known), ...eventCuts(known), ...saveCuts(known));
  addTimeline(line.querySelector(".scroll"), known);
  card(grid, "what the time went to", "goodput_parts", ...goodputRows(known));
  if (shown.some((r) => r.alarms.length)) card(grid, "alarms", "alarms", alarmTable(shown), ...alarmCuts(shown));
  if (shown.some((r) => r.losses.length)) card(grid, "steps whose loss was off", "losses", lossTable(shown), ...lossCuts(shown));
  card(grid, null, "events", el("details", {}, el("summary", {}, `all events of ${run().row.name}, saves left out`), eventTable(run()), eventCuts([run()])));
}

function planSection() {
  if (!run().plan) return;
  const grid = section("Memory plan", true);
  const [bar, keys, facts, largest] = planTable(run());
  card(grid, "memory of the fullest rank", "plan", bar, keys);
  card(grid, null, "plan_facts", facts).classList.remove("wide");
  card(grid, null, "plan_largest", largest).classList.remove("wide");
}
