// Tables: results and runs, which sort by a click, steps whose loss was off with their documents, alarms, events, ledger and memory plan.
const RUN_COLUMNS = [
  ["run", "name"], ["state", "state"], ["step", "step", whole], ["tokens", "tokens", count], ["loss", "loss", four], ["smooth", "smooth_loss", four],
  ["val loss", "val_loss", four], ["tokens/s", "tokens_per_s", count], ["MFU", "mfu", percent], ["goodput", "goodput", percent],
  ["restarts", "restarts", whole], ["spikes", "spikes", whole], ["alarms", "alarms", whole],
];
const order = { key: null, up: true }, resultOrder = { key: null, up: true };

// What is not known stands last, whichever way.
function inOrder(rows, by, value) {
  if (by.key == null) return rows;
  const missing = (v) => v == null;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a, by.key), value(b, by.key)];
    if (missing(x) || missing(y)) return missing(x) - missing(y);
    const d = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
    return by.up ? d : -d;
  });
}
const sorted = (runs) => inOrder(runs, order, (run, key) => run.row[key]);

// A title that sorts: upwards first, then the other way.
function sortHead(title, key, isNumber, by, again) {
  return el("th", {
    class: (isNumber ? "n" : "") + (by.key === key ? " by" + (by.up ? " up" : "") : ""),
    onclick: () => { by.up = by.key === key ? !by.up : true; by.key = key; again(); },
  }, title);
}

function runTable(runs, again) {
  const head = RUN_COLUMNS.map(([title, key, text]) => sortHead(title, key, text, order, again));
  const cell = (run, [, key, text]) => {
    const v = run.row[key];
    if (key === "name") return el("td", { class: "key", title: run.row.folder }, el("i", { style: "background:" + run.color }), v);
    if (key === "state") return el("td", {}, el("span", { class: "state " + v }, v));
    if (key === "step") return el("td", { class: "n" }, whole(v) + (run.row.steps ? " / " + whole(run.row.steps) : ""));
    return el("td", { class: "n" + (key === "alarms" && v > 0 ? " bad" : "") }, text ? text(v) : v);
  };
  return el("table", { class: "sorts" }, el("tr", {}, head), sorted(runs).map((run) => el("tr", {}, RUN_COLUMNS.map((c) => cell(run, c)))));
}

// The table of a study, whose means are over seeds: words, and the numbers behind them. Its first column has names alone.
function resultsTable([heads, ...texts], values, again) {
  const rows = inOrder(texts.map((text, i) => ({ text, values: values[i] })), resultOrder, (row, i) => (i ? row.values[i] : row.text[0]));
  return el("table", { class: "sorts" }, el("tr", {}, heads.map((h, i) => sortHead(h, i, i, resultOrder, again))),
    rows.map((row) => el("tr", {}, row.text.map((v, i) => el("td", { class: i ? "n" : "key" }, v)))));
}

// What the runs were given differently.
function settingsTable({ runs, settings }) {
  const head = el("tr", {}, el("th", {}, "run"), settings.map((s) => el("th", {}, s.key)));
  return el("table", {}, head, runs.map((run, i) => el("tr", {}, runCell(run), settings.map((s) => el("td", {}, s.values[i])))));
}

function documentList(note) {
  if (!note.documents.length) return note.document_count ? whole(note.document_count) + " documents" : "";
  const more = note.document_count > note.documents.length ? ` (the first ${note.documents.length})` : "";
  return el("details", {}, el("summary", {}, `${whole(note.document_count || note.documents.length)} documents${more}`),
    el("div", { class: "documents" }, el("table", {},
      el("tr", {}, ["source", "file", "document", "byte", "row", "tokens"].map((t, i) => el("th", { class: i > 1 ? "n" : "" }, t))),
      note.documents.map(([source, file, document, byte, row, token, tokens]) => el("tr", {}, el("td", {}, source), el("td", {}, file),
        [document, byte, row, tokens].map((v) => el("td", { class: "n" }, whole(v))))))));
}

// What a list lacks of some runs: "200 of 1,234 shown: ..."; nothing where it is whole.
function cutNotes(runs, what, words, listed = (run) => run[what]) {
  return runs.filter((run) => listed(run).length < run.all[what]).map((run) => el("p", { class: "note" },
    `${runs.length > 1 ? run.row.name + ": " : ""}${whole(listed(run).length)} of ${whole(run.all[what])} shown: ${words}`));
}
const eventsOf = (run) => run.events.filter((e) => e.kind !== "save"), savesOf = (run) => run.events.filter((e) => e.kind === "save");
const eventCuts = (runs) => cutNotes(runs, "events", "first what no other list has, then spikes, skips and alarms, of each the latest", eventsOf);
const saveCuts = (runs) => cutNotes(runs, "saves", "the latest saves, where other events leave room", savesOf);
const alarmCuts = (runs) => cutNotes(runs, "alarms", "the latest, and of the others those furthest from their limit");
const lossCuts = (runs) => cutNotes(runs, "losses", "the latest, and of the others those furthest above the median before");

const runCell = (run) => el("td", { class: "key" }, el("i", { style: "background:" + run.color }), run.row.name);

function lossTable(runs) {
  return el("table", {}, el("tr", {}, ["run", "step", "what", "loss", "median before", "gradient norm", "documents of the batch"].map((t, i) => el("th", { class: [1, 3, 4, 5].includes(i) ? "n" : "" }, t))),
    runs.flatMap((run) => run.losses.map((n) => el("tr", {}, runCell(run), el("td", { class: "n" }, whole(n.step)), el("td", {}, n.reason || n.kind),
      el("td", { class: "n" }, n.loss == null && n.kind !== "skip" ? "not finite" : number(n.loss)), el("td", { class: "n" }, number(n.median)), el("td", { class: "n" }, n.grad_norm == null && n.kind === "non_finite" ? "not finite" : number(n.grad_norm)), el("td", {}, documentList(n))))));
}

function alarmTable(runs) {
  return el("table", {}, el("tr", {}, ["run", "step", "after", "rule", "value", "limit", "evidence", "what to try"].map((t, i) => el("th", { class: [1, 2, 4, 5].includes(i) ? "n" : "" }, t))),
    runs.flatMap((run) => run.alarms.map((a) => el("tr", {}, runCell(run), el("td", { class: "n" }, whole(a.step)), el("td", { class: "n" }, duration(a.t)), el("td", { class: "bad" }, a.rule),
      el("td", { class: "n" }, number(a.value)), el("td", { class: "n" }, a.limit ? number(a.limit) : ""), el("td", {}, a.evidence), el("td", {}, a.advice)))));
}

function eventTable(run) {
  return el("table", {}, el("tr", {}, el("th", { class: "n" }, "after"), el("th", { class: "n" }, "step"), el("th", {}, "event")),
    eventsOf(run).map((e) => el("tr", {}, el("td", { class: "n" }, duration(e.t)), el("td", { class: "n" }, whole(e.step)), el("td", {}, e.words))));
}

// Lines of the ledger, in all and by stage.
function ledgerTable(ledger) {
  const rows = [], sum = (lines) => lines.reduce((n, l) => n + l.tokens, 0);
  const add = (title, lines) => {
    const all = sum(lines);
    if (title) rows.push(el("tr", {}, el("th", { colspan: 6 }, title)));
    for (const l of lines)
      rows.push(el("tr", {}, el("td", {}, l.source), el("td", { class: "n" }, whole(l.documents)), el("td", { class: "n" }, whole(l.tokens)), el("td", { class: "n" }, percent(all ? l.tokens / all : 0)),
        el("td", { class: "n" }, percent(l.weight)), el("td", { class: "n" }, l.epochs == null ? "" : l.epochs.toFixed(3))));
  };
  add(null, ledger.total || []);
  if ((ledger.segments || []).length > 1) for (const part of ledger.segments) add("from step " + whole(part.from_step), part.lines);
  return el("table", {}, el("tr", {}, ["source", "documents", "tokens", "share", "weight", "epochs"].map((t, i) => el("th", { class: i ? "n" : "" }, t))), rows);
}

// A bar of the regions of the fullest rank, and its largest tensors.
function planTable(run) {
  const plan = run.plan, parts = Object.entries(plan.bytes || {}).filter(([name, v]) => name !== "total" && v > 0);
  const all = parts.reduce((n, [, v]) => n + v, 0) || 1;
  const bar = el("div", { class: "bar" }, parts.map(([name, v], i) => el("span", { style: `width:${(100 * v) / all}%;background:${colorOf(i)}`, onmousemove: (event) => showTip(event, name, [[null, bytes(v), percent(v / all)]]), onmouseleave: hideTip })));
  const keys = el("div", { class: "keys" }, parts.map(([name, v], i) => el("span", { class: "key" }, el("i", { style: "background:" + colorOf(i) }), `${name} ${bytes(v)}`)));
  const facts = [["parameters", count(plan.parameters)], ["precision", plan.precision], ["recomputation", plan.recompute], ["micro-batch", plan.micro_batch], ["ranks", `${plan.ranks} (tp ${plan.tp}, pp ${plan.pp}, dp ${plan.dp})`],
    ["planned per rank", bytes((plan.bytes || {}).total)], ["needed of available", `${bytes(plan.needed_bytes)} of ${bytes(plan.available_bytes)}`], ["FLOPs per token", count(plan.flops_per_token)]];
  const largest = el("table", {}, el("tr", {}, el("th", {}, "region"), el("th", {}, "largest entries"), el("th", { class: "n" }, "count"), el("th", { class: "n" }, "bytes")),
    (plan.largest || []).map((e) => el("tr", {}, el("td", {}, e.region), el("td", {}, e.label), el("td", { class: "n" }, whole(e.count)), el("td", { class: "n" }, bytes(e.bytes)))));
  return [bar, keys, el("table", {}, facts.map(([name, v]) => el("tr", {}, el("th", {}, name), el("td", { class: "n" }, v ?? "")))), largest];
}
