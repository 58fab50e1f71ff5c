// The pipeline's graph: sources, operators, views, and what flows between them. Drawn once for a plan; the figures in it
// change as batches come. Every node can be reached with the keyboard, and the same is there as a table.
import { h, s } from "./dom.js";
import { RECENT_SECONDS } from "./facts.js";
import { clock, count, rate, shorter } from "./format.js";
import { HEIGHT, WIDTH, layout } from "./layout.js";

const LEAST = 0.85;
const KINDS = { source: "Source", operator: "Operator", view: "View" };

/** `{element, update(facts)}`; `choose(node)` is called for an operator, the others are links. */
export function graph(plan, choose) {
  const found = layout(plan.nodes, plan.edges);
  const boxes = plan.nodes.map((node) => ({ node, ...box(node, found.places.get(node.id), choose) }));
  const edges = found.edges.map((edge) => ({ ...edge, path: s("path", { class: "edge", d: curve(edge.points) }) }));
  const drawing = s("svg", {
    class: "graph", width: found.width, height: found.height, viewBox: `0 0 ${found.width} ${found.height}`,
    role: "group", "aria-label": "The graph of the pipeline, from its sources to its views",
  },
  ...captions(plan, found),
  s("g", {}, ...edges.map((edge) => edge.path), ...edges.map((edge) => tip(edge.points.at(-1)))),
  ...boxes.map((each) => each.element));
  drawing.style.minWidth = `${LEAST * found.width}px`; // what is wider is scrolled
  for (const { node, element } of boxes) {
    const light = (on) => edges.forEach((edge) => edge.path.classList.toggle("lit", on && (edge.from === node.id || edge.to === node.id)));
    for (const event of ["mouseenter", "focus"]) element.addEventListener(event, () => light(true));
    for (const event of ["mouseleave", "blur"]) element.addEventListener(event, () => light(false));
  }
  return {
    element: h("div", { class: "drawing", role: "region", "aria-label": "Graph", tabindex: "0" }, drawing),
    update: (facts) => boxes.forEach((each) => each.update(facts)),
  };
}

function box(node, { x, y }, choose) {
  const [strong, weak] = [s("text", { class: "line strong", x: 14, y: 43 }), s("text", { class: "line", x: 14, y: 60 })];
  const inside = [
    s("rect", { class: "box", width: WIDTH, height: HEIGHT, rx: node.kind === "operator" ? 20 : 8 }),
    node.kind !== "operator" && s("rect", { class: "mark", x: node.kind === "source" ? 0 : WIDTH - 4, y: 16, width: 4, height: HEIGHT - 32, rx: 2 }),
    s("text", { class: "title", x: 14, y: 24 }, shorter(node.title, 21)),
    strong, weak,
  ];
  const at = { class: `node ${node.kind}`, transform: `translate(${x} ${y})` };
  const element = node.kind === "operator"
    ? s("g", { ...at, role: "button", tabindex: "0", on: { click: () => choose(node), keydown: pressed(() => choose(node)) } }, ...inside)
    : s("a", { ...at, href: node.kind === "view" ? `#/views/${encodeURIComponent(node.title)}` : `#/topics/${encodeURIComponent(node.title)}` }, ...inside);
  return { element, update: (facts) => {
    const [first, second, warns] = linesOf(node, facts);
    strong.textContent = shorter(first, 25);
    weak.textContent = shorter(second, 26);
    weak.classList.toggle("warn", Boolean(warns));
    element.setAttribute("aria-label", `${KINDS[node.kind]} ${node.title}${onLevel(node)}: ${[first, second].filter(Boolean).join("; ")}`);
  } };
}

const pressed = (act) => (event) => {
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    act();
  }
};

/** What is written in a box: two lines, and whether the second is a warning. */
export function linesOf(node, facts) {
  if (node.kind === "source") {
    const mark = facts.watermarks[node.title];
    return [`${rate((facts.records[node.title] ?? 0) / RECENT_SECONDS)} records/s`, mark ? `watermark ${clock(mark)}` : node.detail.split(/[ ,(]/)[0]];
  }
  if (node.kind === "view") {
    const late = facts.late[node.title] ?? 0;
    return [`${rate((facts.changes[node.title] ?? 0) / RECENT_SECONDS)} changes/s`, late ? `${count(late)} late` : /(no )?key[^;:]*/.exec(node.detail)?.[0] ?? "", late > 0];
  }
  const kept = boundOf(node.state ?? "");
  const does = node.detail.startsWith(node.title) ? node.detail.slice(node.title.length).replace(/^:? /, "") : node.detail;
  return [does, node.warning ? `⚠ ${kept || "grows"}` : kept, Boolean(node.warning)];
}

const boundOf = (state) => (state ? `state: ${state.replace(/^unbounded: it /, "").replace(/^bounded( by|:) (the )?/, "")}` : "");

/** For who does not see the heading of the column. */
export const onLevel = (node) => (node.kind === "operator" ? ` on level ${node.level}` : "");

const headOf = (node) => (node.kind === "operator" ? `Level ${node.level}` : `${KINDS[node.kind]}s`);

/** A heading over the first column of the sources, of each level, and of the views. */
function captions(plan, found) {
  const said = found.columns.map((x) => [x, headOf(plan.nodes.find((node) => found.places.get(node.id).x === x))]);
  const first = said.filter(([, text], at) => text !== said[at - 1]?.[1]);
  return first.map(([x, text]) => s("text", { class: "caption", x: x + 2, y: 22 }, text));
}

function curve(points) {
  let path = `M${points[0].join(" ")}`;
  for (let at = 1; at < points.length; at += 1) {
    const [[x, y], [toX, toY]] = [points[at - 1], points[at]];
    const half = (x + toX) / 2;
    path += `C${half} ${y} ${half} ${toY} ${toX} ${toY}`;
  }
  return path;
}

const tip = ([x, y]) => s("path", { class: "tip", d: `M${x} ${y}l-7 -3.5v7z` });
