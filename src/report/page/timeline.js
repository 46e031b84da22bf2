// What a run did when: a bar of its attempts on the time axis with its events, and what its time went to.
const PHASES = { start: ["starting", "#f2b84b"], steps: ["steps that were kept", "#53b87c"], repeated: ["steps that were repeated", "#b6ddc4"], down: ["no process, or faults", "#d9dee7"] };
const EVENT_COLORS = { fault: "#d64545", save_failed: "#d64545", end: "#5b6b84", stop: "#5b6b84", finished: "#1f9d63", straggler: "#e8792b", evict: "#e8792b", signal: "#5b6b84", spike: "#d64545", non_finite: "#d64545", skip: "#e8792b", alarm: "#a11212", save: "#2f6fed" };
// Causes that the time line has too have its colours.
const LOST_COLORS = { "starting": PHASES.start[1], "loading": "#e8792b", "finding faults": "#d64545", "ending processes": "#8a94a6", "repeated steps": PHASES.repeated[1], "waiting for saves": "#2f6fed",
  "slow steps": "#128c9e", "between steps": "#5b6b84", "checks": "#a6761d", "pauses": "#e356a0", "waiting for hosts": "#7a9a01", "not running": PHASES.down[1], "unknown": "#333a46" };

function phasesOf(run) {
  const out = [], attempts = run.time.attempts;
  attempts.forEach((a, i) => {
    const next = attempts[i + 1];
    const words = `attempt ${i + 1}, ${a.ranks} rank${a.ranks === 1 ? "" : "s"}` + (a.words ? ": ended by " + a.words.slice(0, 160) : "");
    out.push(["start", a.begin, a.ready ?? a.end, words]);
    if (a.ready != null) {
      const later = attempts.slice(i + 1).filter((b) => b.ready != null).map((b) => b.from);
      const kept = later.length ? Math.min(...later) : Infinity;
      const until = kept < a.reached ? Math.max(a.ready, Math.min(a.end, kept > a.from ? onAxis(run, kept, "step", "time") : a.ready)) : a.end;
      out.push(["steps", a.ready, until, words]);
      if (until < a.end) out.push(["repeated", until, a.end, words]);
    }
    if (next) out.push(["down", a.end, next.begin, "between attempts"]);
  });
  return out.filter(([, from, to]) => to > from);
}

const TIMELINE_ROW = 46;  // pixels
// What lies in [low, high] of the times, drawn from `left` on.
function drawTimeline(svg, runs, left, width, [low, high]) {
  const row = TIMELINE_ROW, x = (t) => left + ((t - low) / (high - low)) * width, isIn = (from, to) => to >= low && from <= high;
  const hover = (title, rows) => ({ onmousemove: (event) => showTip(event, title, rows), onmouseleave: hideTip });
  svg.replaceChildren();
  const ticks = niceTicks(low, high, width / 90, "time");
  for (const t of ticks) {
    svg.append(el("svg:line", { x1: x(t), x2: x(t), y1: 0, y2: runs.length * row, stroke: "#eceff4" }));
    svg.append(el("svg:text", { x: x(t), y: runs.length * row + 16, "text-anchor": "middle" }, instant(t, ticks[1] - ticks[0])));
  }
  runs.forEach((run, i) => {
    const y = i * row + 20;
    svg.append(el("svg:text", { x: left - 10, y: y + 12, "text-anchor": "end", style: "fill:#1c2330" }, run.row.name.length > 28 ? "\u2026" + run.row.name.slice(-27) : run.row.name));
    for (const [phase, from, to, words] of phasesOf(run)) {
      const begin = x(Math.max(low, from)), end = x(Math.min(high, to));
      if (isIn(from, to)) svg.append(el("svg:rect", { x: begin, y, width: Math.max(0.5, end - begin), height: 17, fill: PHASES[phase][1], ...hover(PHASES[phase][0], [[null, words, duration(to - from)]]) }));
    }
    for (const event of run.events) {
      const color = EVENT_COLORS[event.kind], t = Math.max(0, event.t);
      if (!color || event.t == null || !isIn(t, t)) continue;
      const save = event.kind === "save", at = x(t);
      svg.append(save ? el("svg:rect", { x: at - 1, y: y + 17, width: 2, height: 5, fill: color, ...hover(event.words, [[null, "after", duration(event.t)]]) })
        : el("svg:path", { d: `M${at - 5} ${y - 10}h10l-5 9z`, fill: color, ...hover(event.words, [[null, "after", duration(event.t)]]) }));
    }
  });
}

// While the button is down the part between where it went down and the mouse is shown; then take(from, to), shares of what is in view.
function dragged(svg, left, width, take) {
  svg.addEventListener("mousedown", (event) => {
    if (event.button !== 0) return;
    event.preventDefault();  // of texts being selected
    const shareAt = (e) => Math.max(0, Math.min(1, (e.clientX - svg.getBoundingClientRect().left - left) / width()));
    const began = shareAt(event), ends = (e) => [began, shareAt(e)].sort((a, b) => a - b);
    const part = el("svg:rect", { height: "100%", fill: "#2f6fed", "fill-opacity": 0.12, "pointer-events": "none" });
    const move = (e) => {
      const [from, to] = ends(e);
      part.setAttribute("x", left + from * width());
      part.setAttribute("width", (to - from) * width());
    };
    svg.append(part);
    document.addEventListener("mousemove", move);
    document.addEventListener("mouseup", (e) => {
      document.removeEventListener("mousemove", move);
      const [from, to] = ends(e);
      part.remove();
      if (svg.isConnected && (to - from) * width() > 3) take(from, to);
    }, { once: true });
  });
}

// Over the time of the runs, also where the plots are over steps or tokens: then a drag on it is of it alone.
function addTimeline(card, runs) {
  const left = Math.min(220, 14 + 7 * Math.max(...runs.map((r) => r.row.name.length))), width = () => Math.max(500, card.clientWidth - 26) - left - 20;
  const end = Math.max(1e-3, ...runs.map((r) => Math.max(r.time.wall_s || 0, ...r.time.attempts.map((a) => a.end || 0))));
  const svg = el("svg:svg", { height: runs.length * TIMELINE_ROW + 26, role: "img" }), range = () => timesInView(runs) || [0, end];
  const draw = () => {
    hideTip();
    svg.setAttribute("width", left + width() + 20);
    drawTimeline(svg, runs, left, width(), range());
  };
  dragged(svg, left, width, (from, to) => {
    const [low, high] = range(), times = [from, to].map((share) => low + share * (high - low));
    if (view.mode === "time") return zoomTo(...times);
    view.times = times;
    draw();
  });
  svg.addEventListener("dblclick", () => zoomTo(null));
  card.append(svg);
  draw();
  plots.push({ times: range, redraw: draw, resize: draw });
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
