// Curves on the shared axis, drawn by uPlot. A plot is a card with a title, keys, and a switch to a logarithmic scale.
const plots = [];
const PLOT_HEIGHT = 230;
const FEW_POINTS = 8;  // of a line: they are drawn as such, and one alone can be seen
const MARKS = { spike: "#d64545", non_finite: "#d64545", skip: "#e8792b", alarm: "#a11212", restart: "#8a94a6", stage: "#128c9e" };

// What is marked on the loss of a run: steps whose loss was off, alarms, restarts, stages of the data.
function marksOf(run) {
  const out = [];
  for (const note of run.losses) out.push({ step: note.step, t: note.t, kind: note.kind, words: note.reason });
  for (const alarm of run.alarms) out.push({ step: alarm.step, t: alarm.t, kind: "alarm", words: alarm.rule });
  run.time.attempts.forEach((a, i) => { if (i > 0 && a.ready != null) out.push({ step: a.from, t: a.ready, kind: "restart", words: "restart after step " + a.from }); });
  run.mixture.forEach((part, i) => { if (i > 0 && part.from_step <= lastStep(run)) out.push({ step: part.from_step, kind: "stage", words: "other weights of the data" }); });
  // A step that was done again has two times: that of the event, and that of the step which counts.
  for (const mark of out) mark.x = view.mode === "time" && mark.t != null ? mark.t : place(run, mark.step);
  return out;
}

function drawMarks(u, marks) {
  const { ctx } = u, { left, top, width, height } = u.bbox, size = 5 * devicePixelRatio;
  ctx.save();
  for (const mark of marks) {
    const x = u.valToPos(mark.x, "x", true);
    if (x < left || x > left + width) continue;
    ctx.strokeStyle = ctx.fillStyle = MARKS[mark.kind];
    ctx.globalAlpha = 0.35;
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    ctx.globalAlpha = 1;
    ctx.beginPath();
    ctx.moveTo(x - size, top);
    ctx.lineTo(x + size, top);
    ctx.lineTo(x, top + 1.6 * size);
    ctx.fill();
  }
  ctx.restore();
}

function keyList(lines) {
  return el("div", { class: "keys" }, lines.filter((l) => l.key).map((l) => el("span", { class: "key" }, el("i", { style: `background:${l.color};opacity:${l.alpha || 1}` }), l.key)));
}

function markKeys(marks) {
  const words = { spike: "spike", non_finite: "not finite", skip: "skipped", alarm: "alarm", restart: "restart", stage: "data stage" };
  const seen = [...new Set(marks.map((m) => m.kind))];
  return seen.map((kind) => el("span", { class: "key" }, el("i", { style: `background:${MARKS[kind]};clip-path:polygon(0 0,100% 0,50% 100%)` }), words[kind]));
}

function tickSpace(u) { return u.width > 500 ? 80 : 64; }

// A line that does not move gets room around it.
function yRange(u, low, high) {
  if (low == null) return [0, 1];
  const still = high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high));
  if (still) return low === 0 ? [0, 1] : [low - 0.5 * Math.abs(low), low + 0.5 * Math.abs(low)];
  return uPlot.rangeNum(low, high, 0.08, true);
}

function uplotOptions(spec, width, log, range) {
  const font = '11px system-ui, "DejaVu Sans", sans-serif';
  const axis = { font, stroke: "#667085", grid: { stroke: "#eceff4", width: 1 }, ticks: { stroke: "#dfe4ec", width: 1, size: 4 } };
  const text = spec.text || number;
  return {
    width, height: spec.height || PLOT_HEIGHT, legend: { show: false }, padding: [10, 14, 0, 0],
    scales: { x: { time: false, range: () => range() }, y: { distr: log ? 3 : 1, range: spec.range ? () => spec.range : log ? undefined : yRange } },
    axes: [
      { ...axis, size: 28, space: tickSpace, incrs: view.mode === "time" ? TIME_TICKS : undefined, values: (u, ticks, axis, space, step) => ticks.map((v) => axisTick[view.mode](v, step)) },
      { ...axis, size: 58, space: 34, values: (u, ticks) => ticks.map((v) => (v == null ? "" : (spec.tick || text)(v))) },
    ],
    series: [{}, ...spec.lines.map((l) => ({
      stroke: l.color, width: l.width || 1.5, alpha: l.alpha || 1, dash: l.dash, fill: l.fill, spanGaps: false, pxAlign: 0,
      paths: l.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined, points: { show: l.dots || l.ys.length <= FEW_POINTS, size: 5 },
    }))],
    cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 }, bind: { dblclick: () => null }, sync: { key: "all", scales: ["x", null], filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } } },
    hooks: {
      draw: spec.marks && spec.marks.length ? [(u) => drawMarks(u, spec.marks)] : [],
      setSelect: [(u) => { if (u.select.width > 3) zoomTo(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")); u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false); }],
    },
  };
}

// The nearest value of each line to where the cursor is.
function tipRows(u, spec, x) {
  const rows = [], xs = u.data[0];
  spec.lines.forEach((line, i) => {
    if (line.quiet) return;
    const ys = u.data[i + 1];
    let best = null;
    for (let at = u.cursor.idx, d = 0; d < 400; d++) {
      for (const k of [at - d, at + d])
        if (best == null && k >= 0 && k < xs.length && ys[k] != null) best = k;
      if (best != null) break;
    }
    if (best != null) rows.push([line.color, line.name, (spec.text || number)(line.real ? line.real[best] : ys[best]), Math.abs(xs[best] - x)]);
  });
  for (const mark of spec.marks || [])
    if (Math.abs(u.valToPos(mark.x, "x") - u.cursor.left) < 5) rows.push([MARKS[mark.kind], mark.run, mark.words.slice(0, 90)]);
  return rows;
}

// spec: title, unit, lines [{name, color, xs, ys, ...}], marks, text, range, log (allowed), id
function addPlot(grid, spec, runs) {
  const logSwitch = el("button", { type: "button", title: "logarithmic scale" }, "log");
  const canLog = spec.log !== false && spec.lines.every((l) => l.ys.every((v) => v == null || v > 0));
  let log = canLog && (view.log[spec.id] ?? (spec.log === "on"));
  const holder = el("div");
  const keys = keyList(spec.lines);
  keys.append(...markKeys(spec.marks || []));
  const card = el("section", { class: "card" + (spec.wide ? " wide" : ""), "data-plot": spec.id, "data-points": spec.lines.reduce((n, l) => n + l.ys.filter((v) => v != null).length, 0) },
    el("h3", {}, spec.title, spec.unit ? el("span", { class: "unit" }, spec.unit) : null, canLog ? logSwitch : null), keys, holder);
  grid.append(card);
  // Where a run has no point of its own the joined column is undefined, and its line goes on.
  const data = spec.aligned ? [spec.lines[0].xs, ...spec.lines.map((l) => l.ys)] : uPlot.join(spec.lines.map((l) => [l.xs, l.ys]));
  let u = null;
  const draw = () => {
    if (u) u.destroy();
    logSwitch.classList.toggle("on", log);
    u = new uPlot(uplotOptions(spec, Math.max(280, holder.clientWidth), log, () => inView(runs)), data, holder);
    u.over.addEventListener("mousemove", (event) => {
      if (u.cursor.idx == null) return;
      const x = u.posToVal(u.cursor.left, "x");
      const rows = tipRows(u, spec, x);
      if (rows.length) showTip(event, `${MODES[view.mode]} ${axisText[view.mode](x)}`, rows);
    });
    u.over.addEventListener("mouseleave", hideTip);
    u.over.addEventListener("dblclick", () => zoomTo(null));
  };
  logSwitch.addEventListener("click", () => { view.log[spec.id] = log = !log; draw(); });
  draw();
  plots.push({ id: spec.id, range: () => [u.scales.x.min, u.scales.x.max], redraw: () => u.setScale("x", { min: inView(runs)[0], max: inView(runs)[1] }), resize: () => u.setSize({ width: Math.max(280, holder.clientWidth), height: spec.height || PLOT_HEIGHT }) });
}

function zoomTo(low, high) {
  view.zoom = low == null ? null : [low, high];
  view.times = null;
  for (const plot of plots) plot.redraw();
}
