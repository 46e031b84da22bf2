// Heat maps: a list by layer, or by part of the sequence, over the shared axis, with the scale of its colours.
const RAMP = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"]
  .map((c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)));

function rampColor(share) {
  const at = Math.max(0, Math.min(1, share)) * (RAMP.length - 1), k = Math.min(RAMP.length - 2, Math.floor(at)), f = at - k;
  return `rgb(${RAMP[k].map((v, i) => Math.round(v + f * (RAMP[k + 1][i] - v))).join(",")})`;
}

// Colours by value, or by its logarithm where values span more than tenfold.
function heatScale(rows) {
  const all = rows.flat().filter((v) => v != null).sort((a, b) => a - b);
  const positive = all.filter((v) => v > 0);
  const log = positive.length > 0 && all.length === positive.length && all[all.length - 1] > 10 * all[0];
  const low = all[0] ?? 0, high = all[all.length - 1] ?? 1, f = log ? Math.log : (v) => v;
  return { low, high, log, share: (v) => (f(high) > f(low) ? (f(v) - f(low)) / (f(high) - f(low)) : 0.5) };
}

function paintHeat(canvas, map) {
  const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = map.height;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.height = height + "px";
  const ctx = canvas.getContext("2d");
  ctx.scale(scale, scale);
  const [low, high] = map.range(), left = 58, right = 74, bottom = 24, w = width - left - right, h = height - bottom - 4;
  map.toX = (x) => left + ((x - low) / (high - low)) * w;
  map.fromX = (px) => low + ((px - left) / w) * (high - low);
  map.fromY = (py) => Math.floor(((h + 4 - py) / h) * map.parts);
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, 4, w, h);
  ctx.clip();
  const least = map.rows.length <= FEW_POINTS ? 6 : 1;  // pixels
  map.rows.forEach((row, i) => {
    const x0 = Math.floor(map.toX(map.edges[i])), x1 = Math.ceil(map.toX(map.edges[i + 1]));
    if (x1 < left || x0 > left + w) return;
    row.forEach((v, k) => {
      ctx.fillStyle = v == null ? "#ff2d55" : rampColor(map.scale.share(v));
      const top = Math.floor(4 + h - ((k + 1) * h) / map.parts), under = Math.ceil(4 + h - (k * h) / map.parts);
      ctx.fillRect(Math.min(x0, x1 - least), top, Math.max(least, x1 - x0), under - top);
    });
  });
  ctx.restore();
  heatAxes(ctx, map, left, w, h, low, high);
}

function heatAxes(ctx, map, left, w, h, low, high) {
  ctx.font = '11px system-ui, "DejaVu Sans", sans-serif';
  ctx.fillStyle = "#667085";
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  const every = Math.max(1, Math.ceil(map.parts / Math.floor(h / 15)));
  for (let k = 0; k < map.parts; k += every) ctx.fillText(map.names(k), left - 6, 4 + h - ((k + 0.5) * h) / map.parts);
  ctx.textBaseline = "top";
  const ticks = niceTicks(low, high, Math.max(2, w / 80));
  for (const t of ticks) {
    ctx.textAlign = t - low < 0.02 * (high - low) ? "left" : high - t < 0.02 * (high - low) ? "right" : "center";
    ctx.fillText(axisTick[view.mode](t, ticks[1] - ticks[0]), map.toX(t), h + 10);
  }
  const x = left + w + 12;
  for (let i = 0; i < h; i++) {
    ctx.fillStyle = rampColor(1 - i / h);
    ctx.fillRect(x, 4 + i, 10, 1.5);
  }
  ctx.fillStyle = "#667085";
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  const short = (v) => (v !== 0 && Math.abs(v) < 1e-2 ? v.toExponential(1) : count(v));
  ctx.fillText(short(map.scale.high), x + 14, 10);
  ctx.fillText(short(map.scale.low), x + 14, h - 1);
  if (map.scale.log) ctx.fillText("log", x + 14, h / 2);
}

// spec: id, title, unit; run; list {step, rows}; names(k): what a row is
function addHeat(grid, spec, run, runs, list) {
  const canvas = el("canvas", { class: "heat" });
  const parts = Math.max(...list.rows.map((r) => r.length));
  const map = { rows: list.rows, parts, names: (k) => spec.names(k, parts), scale: heatScale(list.rows), height: Math.min(260, Math.max(120, parts * 16 + 28)), range: () => inView(runs) };
  const xs = list.step.map((s) => place(run, s));
  map.edges = xs.map((x, i) => (i === 0 ? Math.max(0, x - ((xs[1] ?? x + 1) - x)) : xs[i - 1])).concat(xs[xs.length - 1]);
  grid.append(el("section", { class: "card", "data-plot": spec.id, "data-points": list.rows.reduce((n, r) => n + r.filter((v) => v != null).length, 0) },
    el("h3", {}, spec.title, spec.unit ? el("span", { class: "unit" }, spec.unit) : null), canvas));
  const paint = () => paintHeat(canvas, map);
  canvas.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect(), x = map.fromX(event.clientX - box.left), k = map.fromY(event.clientY - box.top);
    const i = map.edges.findIndex((e, n) => n > 0 && x <= e) - 1;
    if (i < 0 || k < 0 || k >= parts || x < map.edges[0]) return hideTip();
    showTip(event, `step ${whole(list.step[i])}`, [[null, map.names(k), list.rows[i][k] === undefined ? "not measured" : list.rows[i][k] === null ? "not finite" : number(list.rows[i][k])]]);
  });
  canvas.addEventListener("mouseleave", hideTip);
  canvas.addEventListener("dblclick", () => zoomTo(null));
  paint();
  plots.push({ redraw: paint, resize: paint });
}
