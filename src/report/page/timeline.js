// What a run did when: a bar of its attempts on the time axis with its events, and what its time went to.
const PHASES = { start: ["starting", "#f2b84b"], steps: ["steps that were kept", "#53b87c"], repeated: ["steps that were repeated", "#b6ddc4"], down: ["no process, or faults", "#d9dee7"] };
const EVENT_COLORS = { fault: "#d64545", save_failed: "#d64545", end: "#5b6b84", stop: "#5b6b84", finished: "#1f9d63", straggler: "#e8792b", evict: "#e8792b", signal: "#5b6b84", spike: "#d64545", non_finite: "#d64545", skip: "#e8792b", alarm: "#a11212", save: "#2f6fed" };
// Causes that the time line has too have its colours.
const LOST_COLORS = { "starting": PHASES.start[1], "loading": "#e8792b", "finding faults": "#d64545", "ending processes": "#8a94a6", "repeated steps": PHASES.repeated[1], "waiting for saves": "#2f6fed",
  "slow steps": "#128c9e", "between steps": "#5b6b84", "checks": "#a6761d", "pauses": "#e356a0", "waiting for hosts": "#7a9a01", "not running": PHASES.down[1], "unknown": "#333a46" };

// Times are asked for on the time axis, whatever the plots show.
function timeOfStep(run, step) {
  const mode = view.mode;
  view.mode = "time";
  const t = place(run, step);
  view.mode = mode;
  return t;
}

function phasesOf(run) {
  const out = [], attempts = run.time.attempts;
  attempts.forEach((a, i) => {
    const next = attempts[i + 1];
    const words = `attempt ${i + 1}, ${a.ranks} rank${a.ranks === 1 ? "" : "s"}` + (a.words ? ": ended by " + a.words.slice(0, 160) : "");
    out.push(["start", a.begin, a.ready ?? a.end, words]);
    if (a.ready != null) {
      const later = attempts.slice(i + 1).filter((b) => b.ready != null).map((b) => b.from);
      const kept = later.length ? Math.min(...later) : Infinity;
      const until = kept < a.reached ? Math.max(a.ready, Math.min(a.end, kept > a.from ? timeOfStep(run, kept) : a.ready)) : a.end;
      out.push(["steps", a.ready, until, words]);
      if (until < a.end) out.push(["repeated", until, a.end, words]);
    }
    if (next) out.push(["down", a.end, next.begin, "between attempts"]);
  });
  return out.filter(([, from, to]) => to > from);
}

function addTimeline(card, runs) {
  const width = Math.max(500, card.clientWidth - 26), left = Math.min(220, 14 + 7 * Math.max(...runs.map((r) => r.row.name.length))), row = 46;
  const end = Math.max(1e-3, ...runs.map((r) => Math.max(r.time.wall_s || 0, ...r.time.attempts.map((a) => a.end || 0))));
  const x = (t) => left + (t / end) * (width - left - 20);
  const svg = el("svg:svg", { width, height: runs.length * row + 26, role: "img" });
  const hover = (title, rows) => ({ onmousemove: (event) => showTip(event, title, rows), onmouseleave: hideTip });
  const step = TIME_TICKS.find((v) => (end / v) * 70 < width - left) || end;
  for (let t = 0; t <= end; t += step) {
    svg.append(el("svg:line", { x1: x(t), x2: x(t), y1: 0, y2: runs.length * row, stroke: "#eceff4" }));
    svg.append(el("svg:text", { x: x(t), y: runs.length * row + 16, "text-anchor": "middle" }, duration(t)));
  }
  runs.forEach((run, i) => {
    const y = i * row + 20;
    svg.append(el("svg:text", { x: left - 10, y: y + 12, "text-anchor": "end", style: "fill:#1c2330" }, run.row.name.length > 28 ? "\u2026" + run.row.name.slice(-27) : run.row.name));
    for (const [phase, from, to, words] of phasesOf(run))
      svg.append(el("svg:rect", { x: x(from), y, width: Math.max(0.5, x(to) - x(from)), height: 17, fill: PHASES[phase][1], ...hover(PHASES[phase][0], [[null, words, duration(to - from)]]) }));
    for (const event of run.events) {
      const color = EVENT_COLORS[event.kind];
      if (!color || event.t == null) continue;
      const save = event.kind === "save", at = x(Math.max(0, event.t));
      svg.append(save ? el("svg:rect", { x: at - 1, y: y + 17, width: 2, height: 5, fill: color, ...hover(event.words, [[null, "after", duration(event.t)]]) })
        : el("svg:path", { d: `M${at - 5} ${y - 10}h10l-5 9z`, fill: color, ...hover(event.words, [[null, "after", duration(event.t)]]) }));
    }
  });
  card.append(svg);
}

function timelineKeys(runs) {
  const kinds = [...new Set(runs.flatMap((r) => r.events.map((e) => e.kind)))].filter((k) => EVENT_COLORS[k]);
  const marks = kinds.map((k) => el("span", { class: "key" }, el("i", { style: `background:${EVENT_COLORS[k]}` + (k === "save" ? ";width:3px" : ";clip-path:polygon(0 0,100% 0,50% 100%)") }), k.replace("_", " ")));
  return el("div", { class: "keys" }, Object.values(PHASES).map(([name, color]) => el("span", { class: "key" }, el("i", { style: "background:" + color }), name)), marks);
}

// Where the wall time of each run went, as parts of one bar.
function goodputRows(runs) {
  const causes = [...new Set(runs.flatMap((r) => r.time.lost.map(([cause]) => cause)))];
  const color = (cause) => LOST_COLORS[cause] || "#c9ced8";
  const rows = runs.filter((r) => r.time.wall_s > 0).map((run) => {
    const share = (s) => s / run.time.wall_s;
    const part = (name, seconds, fill) => el("span", { style: `width:${100 * share(seconds)}%;background:${fill}`, onmousemove: (event) => showTip(event, name, [[null, duration(seconds), percent(share(seconds))]]), onmouseleave: hideTip });
    return el("tr", {}, el("td", {}, run.row.name), el("td", { class: "n" }, percent(share(run.time.useful_s))), el("td", { class: "n" }, duration(run.time.wall_s)),
      el("td", { style: "width:70%" }, el("div", { class: "bar" }, part("useful steps", run.time.useful_s, "#53b87c"), run.time.lost.map(([cause, s]) => part(cause, s, color(cause))))));
  });
  const keys = el("div", { class: "keys" }, el("span", { class: "key" }, el("i", { style: "background:#53b87c" }), "useful steps"),
    causes.map((c) => el("span", { class: "key" }, el("i", { style: "background:" + color(c) }), c)));
  return [keys, el("table", {}, el("tr", {}, el("th", {}, "run"), el("th", { class: "n" }, "goodput"), el("th", { class: "n" }, "wall time"), el("th", {}, "")), rows)];
}
