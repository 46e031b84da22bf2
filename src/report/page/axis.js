// The horizontal axis that all plots share: steps, tokens or time, and what of it is in view. Runs are known by their folders: their
// places change when others begin.
const view = { mode: "step", zoom: null, times: null, hidden: new Set(), chosen: null, log: {} };
const MODES = { step: "step", tokens: "tokens", time: "time" };
const axisText = { step: whole, tokens: count, time: duration };
const axisTick = { step: count, tokens: count, time: instant };  // of a value, and of how far the next one is
const TIME_TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 2592000]
  .flatMap((v) => (v === 1 ? [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1] : [v]));

// Round values between two, at most so many.
function niceTicks(low, high, most, mode = view.mode) {
  const least = (high - low) / most, power = 10 ** Math.floor(Math.log10(least));
  const step = mode === "time" ? TIME_TICKS.find((v) => v >= least) || least : [1, 2, 5, 10].map((v) => v * power).find((v) => v >= least);
  const out = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) out.push(k * step);
  return out;
}

// Where a value of one axis lies on another: what the run has of it, and between that on a straight line.
function onAxis(run, value, mode, other) {
  if (mode === other) return value;
  const from = run.axis[mode], to = run.axis[other];
  if (!from.length) return 0;
  let low = 0, high = from.length - 1;
  if (value <= from[0]) return from[0] > 0 ? (to[0] * value) / from[0] : to[0];
  if (value >= from[high]) return to[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (from[middle] <= value) low = middle;
    else high = middle;
  }
  return to[low] + ((to[high] - to[low]) * (value - from[low])) / (from[high] - from[low]);
}
const place = (run, step) => onAxis(run, step, "step", view.mode);

const lastStep = (run) => run.axis.step[run.axis.step.length - 1] || 0;

// Ends of the axis over all runs that are shown.
function extent(runs) {
  let high = 0;
  for (const run of runs) if (run.axis.step.length) high = Math.max(high, place(run, lastStep(run)));
  return [0, high || 1];
}
const inView = (runs) => view.zoom || extent(runs);

// What the time line shows: what was dragged on it, or when the runs made the steps that the plots show; null: all.
function timesInView(runs) {
  if (view.times || !view.zoom || view.mode === "time") return view.times || view.zoom;
  const [from, to] = view.zoom;
  const made = runs.filter(({ axis: { [view.mode]: xs } }) => xs.length && xs[0] <= to && xs[xs.length - 1] >= from);
  const low = Math.min(...made.map((r) => onAxis(r, from, view.mode, "time"))), high = Math.max(...made.map((r) => onAxis(r, to, view.mode, "time")));
  return high > low ? [low, high] : null;
}

// Where no step was made for a time because the run was started again: behind which step, and when the next began.
function restsOf(run) {
  const out = [];
  run.time.attempts.forEach((a, i) => {
    if (i === 0 || a.ready == null) return;
    while (out.length && out[out.length - 1].from >= a.from) out.pop();  // done again
    out.push(a);
  });
  return out;
}

// [steps, values] of a run as points on the axis, in ascending order. Steps within one instant stand close beside each other: one of them
// may be a spike. On the time axis a line has a gap where the run was started again, unless it is to be whole.
function points(run, curve, whole) {
  const xs = [], ys = [], close = 1e-7 * extent([run])[1], rests = view.mode === "time" && !whole ? restsOf(run) : [];
  const add = (x, y) => { xs.push(xs.length ? Math.max(x, xs[xs.length - 1] + close) : x); ys.push(y); };
  curve[0].forEach((step, i) => {
    for (; rests.length && step > rests[0].from; rests.shift()) if (xs.length) add(rests[0].ready, null);
    add(place(run, step), curve[1][i]);
  });
  return [xs, ys];
}
