// A small plot of a view over time: a line for each series, each with its own dashes and its name at its end.
import { h, s } from "./dom.js";
import { isNumeric, isTime, isWindow, moment, rate, shown } from "./format.js";
import { niceAbove } from "./timeline.js";

const [HIGH, LEFT, RIGHT, TOP, FOOT] = [200, 52, 110, 12, 26];
const SERIES = 5;
const POINTS = 60;

/** The column that says when, and those that say how much; null where there are none. */
export function plotted(view) {
  const time = view.columns.find((column) => isWindow(column)) ?? view.columns.find((column) => isTime(column) && view.key.includes(column.name));
  const measures = view.columns.filter((column) => isNumeric(column) && !view.key.includes(column.name)).map((column) => column.name);
  return time && measures.length ? { time: time.name, measures } : null;
}

export function plot(view, { time, measures }) {
  const drawing = s("svg", { role: "img" });
  const choice = h("select", { id: "measure" }, ...measures.map((name) => h("option", { value: name, text: name })));
  const more = h("p", { class: "muted" });
  let rows = [];
  const show = () => draw(drawing, seriesOf(view, rows, time, choice.value), { measure: choice.value, time, more });
  choice.addEventListener("change", show);
  return {
    element: h("div", { class: "card plot" }, h("div", { class: "bar" }, h("div", { class: "field" }, h("label", { for: "measure", text: "Over time" }), choice)), drawing, more),
    update: (found) => { rows = found; show(); },
  };
}

const when = (value) => Date.parse(typeof value === "object" && value ? value.start : value);

/** `[{name, points: [[time, value], ...]}]`, those with the largest newest values first. */
function seriesOf(view, rows, time, measure) {
  const others = view.key.filter((name) => name !== time && !isTimePart(view, name));
  const found = new Map();
  for (const row of rows) {
    const [at, value] = [when(row[time]), Number(row[measure])];
    if (!Number.isFinite(at) || row[measure] === null || !Number.isFinite(value)) continue;
    const name = others.map((each) => shown(row[each])).join(", ") || measure;
    if (!found.has(name)) found.set(name, []);
    found.get(name).push([at, value]);
  }
  const series = [...found].map(([name, points]) => ({ name, points: points.sort((one, other) => one[0] - other[0]).slice(-POINTS) }));
  return series.sort((one, other) => other.points.at(-1)[1] - one.points.at(-1)[1]);
}

const isTimePart = (view, name) => view.columns.some((column) => column.name === name && isTime(column));

function draw(drawing, all, { measure, time, more }) {
  const series = all.slice(0, SERIES);
  more.textContent = all.length > SERIES ? `${all.length - SERIES} more series are not drawn.` : "";
  const points = series.flatMap((each) => each.points);
  if (!points.length) {
    drawing.replaceChildren();
    return;
  }
  const wide = drawing.clientWidth || 700;
  const [first, last] = [Math.min(...points.map(([at]) => at)), Math.max(...points.map(([at]) => at))];
  const top = niceAbove(Math.max(1e-9, ...points.map(([, value]) => value)));
  const low = Math.min(0, ...points.map(([, value]) => value));
  const x = (at) => (last === first ? LEFT + (wide - LEFT - RIGHT) / 2 : LEFT + ((at - first) / (last - first)) * (wide - LEFT - RIGHT));
  const y = (value) => HIGH - FOOT - ((value - low) / (top - low)) * (HIGH - FOOT - TOP);
  drawing.setAttribute("viewBox", `0 0 ${wide} ${HIGH}`);
  drawing.setAttribute("aria-label", `${measure} by ${time}: ${series.map((each) => `${each.name} ${rate(each.points.at(-1)[1])}`).join(", ")}`);
  const ends = spread(series.map((each) => y(each.points.at(-1)[1])));
  drawing.replaceChildren(
    ...[0, top / 2, top].flatMap((value) => [
      s("line", { class: "grid", x1: LEFT, x2: wide - RIGHT, y1: y(value), y2: y(value) }),
      s("text", { class: "axis", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, rate(value))]),
    ...(first === last ? [first] : [first, last]).map((at, end) => s("text", { class: "axis", x: x(at), y: HIGH - 6, "text-anchor": first === last ? "middle" : end ? "end" : "start" }, moment(new Date(at).toISOString()).slice(0, 16))),
    ...series.flatMap((each, at) => [
      s("path", { class: `series s${at}`, d: each.points.map(([time_, value], n) => `${n ? "L" : "M"}${x(time_)} ${y(value)}`).join("") }),
      ...each.points.slice(-1).map(([time_, value]) => s("circle", { class: `point s${at}`, cx: x(time_), cy: y(value), r: 3 })),
      s("text", { class: "name", x: x(each.points.at(-1)[0]) + 9, y: ends[at] + 4 }, each.name)]),
  );
}

/** Heights of names, so that none lies on another. */
function spread(heights) {
  const order = heights.map((height, at) => [height, at]).sort((one, other) => one[0] - other[0]);
  const found = [];
  let least = -Infinity;
  for (const [height, at] of order) {
    found[at] = Math.max(height, least);
    least = found[at] + 14;
  }
  return found;
}
