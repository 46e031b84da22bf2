"use strict";
// Numbers and elements.
const COLORS = ["#2f6fed", "#e8792b", "#1f9d63", "#a64ac9", "#d64545", "#128c9e", "#a6761d", "#e356a0", "#5b6b84", "#7a9a01"];
const colorOf = (i) => COLORS[i % COLORS.length];

function count(v) {
  if (v == null) return "";
  const size = Math.abs(v);
  for (const [unit, word] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]])
    if (size >= unit) return trim(v / unit) + word;
  return trim(v);
}
const trim = (v) => String(+v.toPrecision(3));

function number(v) {
  if (v == null) return "";
  const size = Math.abs(v);
  if (size === 0) return "0";
  if (size >= 1e5) return count(v);
  if (size < 1e-3) return v.toExponential(2);
  return String(+v.toPrecision(5));
}

const four = (v) => (v == null ? "" : v.toFixed(4));  // digits behind the point, as losses in a column have them
const percent = (v) => (v == null ? "" : (100 * v).toFixed(1) + "%");
const whole = (v) => (v == null ? "" : Math.round(v).toLocaleString("en-US"));

function duration(s) {
  if (s == null) return "";
  if (s === 0) return "0";
  if (s < 1) return +(1000 * s).toPrecision(3) + "ms";
  if (s < 60) return +s.toPrecision(3) + "s";
  const two = (n) => String(n).padStart(2, "0");
  const t = Math.round(s);
  if (t < 3600) return Math.floor(t / 60) + "m" + (t % 60 ? " " + two(t % 60) + "s" : "");
  if (t < 86400) return Math.floor(t / 3600) + "h" + (t % 3600 >= 60 ? " " + two(Math.floor((t % 3600) / 60)) + "m" : "");
  return Math.floor(t / 86400) + "d" + (t % 86400 >= 3600 ? " " + two(Math.floor((t % 86400) / 3600)) + "h" : "");
}

// A time on an axis, to the unit that tells it from the next one `step` seconds later.
function instant(s, step) {
  if (s < 1 || !(step < (s < 3600 ? 1 : s < 86400 ? 60 : 3600))) return duration(s);
  const t = Math.round(1000 * s) / 1000, two = (n) => (n < 10 ? "0" : "") + n, parts = [];
  if (t >= 86400) parts.push(Math.floor(t / 86400) + "d");
  if (t >= 3600) parts.push(two(Math.floor(t / 3600) % 24) + "h");
  if (t >= 60) parts.push(two(Math.floor(t / 60) % 60) + "m");
  if (step < 60) parts.push(two(+(t % 60).toFixed(3)) + "s");
  return parts.join(" ").replace(/^0/, "");
}

function bytes(v) {
  if (v == null) return "";
  for (const [unit, word] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
    if (v >= unit) return trim(v / unit) + " " + word;
  return v + " B";
}

// An element with attributes and children; texts are never HTML.
function el(tag, attributes = {}, ...children) {
  const node = tag.startsWith("svg:") ? document.createElementNS("http:/" + "/www.w3.org/2000/svg", tag.slice(4)) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value != null) node.setAttribute(key, value);
  }
  for (const child of children.flat()) if (child != null) node.append(child);
  return node;
}

const tip = document.getElementById("tip");
function showTip(event, title, rows) {
  tip.replaceChildren(el("b", {}, title),
    el("table", {}, rows.map(([color, name, value]) =>
      el("tr", { class: "key" }, el("td", {}, color ? el("i", { style: "background:" + color }) : null, name), el("td", { class: "n" }, value)))));
  tip.hidden = false;
  const { offsetWidth: w, offsetHeight: h } = tip;
  tip.style.left = (event.clientX + 18 + w > innerWidth ? event.clientX - w - 14 : event.clientX + 18) + "px";
  tip.style.top = Math.max(4, Math.min(event.clientY + 12, innerHeight - h - 6)) + "px";
}
const hideTip = () => { tip.hidden = true; };
